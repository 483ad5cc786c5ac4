"""On a new machine, refining is compiled in a second process while this one is at the cuts before.

Numba compiles one function at a time in a process, and keeps the code on disk. So the second
process begins with the kernel that is needed last; where the two meet, each loads what the other
has compiled. It is given no data, and ends with this process at the latest.
"""

import atexit
import importlib
import subprocess
import sys
from contextlib import suppress
from typing import Any

from shoal.data import cores

_CLASSES = "int32[:,::1], int32[::1], int64[::1], int64[::1], int32[:,:,::1], int32[::1]"
KERNELS = (
    (
        "rebuilding",
        "anneal_within",
        f"({_CLASSES}, int32[:,::1], int32[:,::1], int32[::1], int64[::1], uint64[::1])",
    ),
    (
        "near_records",
        "nearest_by_runs",
        "(int32[:,::1], int32[::1], int64[::1], int32[::1], int32[:,::1], int32[:,::1],"
        " int32[:,::1], int32[:,::1])",
    ),
    (
        "near_records",
        "halve",
        "(int32[:,::1], int64[::1], int32[::1], int64[:,::1], int64, int32[::1], int64[:,::1],"
        " int32[:,::1])",
    ),
)
"""Module, name and types of the kernels that refining needs for k alone, the last first."""


def begin() -> None:
    """Starts the second process where nothing of it is compiled and another core may work."""
    if cores.threads() == 1 or getattr(sys, "frozen", False) or _is_compiled(_last()):
        return
    with suppress(OSError):  # at worst, nobody helps
        helper = subprocess.Popen(
            [sys.executable, "-P", "-m", __name__],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        atexit.register(_end, helper)


def _end(helper: subprocess.Popen[bytes]) -> None:
    helper.kill()
    helper.wait()


def _kernel(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"shoal.search.kernels.{module}"), name)


def _last() -> Any:
    return _kernel(*KERNELS[0][:2])


def _is_compiled(kernel: Any) -> bool:
    """Also where there is no compiler."""
    return not hasattr(kernel, "py_func") or bool(kernel.overloads) or kernel._cache.has_code()


def main() -> None:
    from numba.core.sigutils import normalize_signature

    for module, name, types in KERNELS:
        # as a tuple, which is what a call looks for on disk
        _kernel(module, name).compile(normalize_signature(types)[0])


if __name__ == "__main__":
    main()
