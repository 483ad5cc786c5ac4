"""Compiled loops: one contiguous matrix in, one array out, each with a plain twin in the tests.

Compiled code is kept on disk. Numba raises where it finds no place it may write to
(a read-only installation without a home folder), so then it gets a fresh folder for this process.
"""

import os
import tempfile
from pathlib import Path


def needs_cache_place(package: Path, home: Path) -> bool:
    """Whether neither the installed package nor the home folder can be written to."""
    return not (os.access(package, os.W_OK) or os.access(home, os.W_OK))


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError:
        return Path("/nonexistent")


def ensure_cache_place(package: Path) -> None:
    """Gives compiled code a fresh folder where the package and the home folder are read-only."""
    if "NUMBA_CACHE_DIR" not in os.environ and needs_cache_place(package, _home()):
        # fresh and private: what is loaded from it is code
        os.environ["NUMBA_CACHE_DIR"] = tempfile.mkdtemp(prefix="shoal-kernels-")


ensure_cache_place(Path(__file__).parent)
