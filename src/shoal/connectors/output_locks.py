"""One writer for each output that grows: a lock beside it.

The system frees it when its holder dies: what a killed run leaves is empty and holds nobody off.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from shoal.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps two processes apart
    fcntl = None  # type: ignore[assignment]


def lock_of(output: Path) -> Path:
    """The lock of an output: of the file itself, whatever links lead to it."""
    whole = output.resolve()
    return whole.with_name(f".{whole.name}.lock")


@contextmanager
def sole_writer(outputs: Sequence[Path]) -> Iterator[None]:
    """Nobody else writes these files meanwhile; raises InputError where somebody does already."""
    with ExitStack() as held:
        for output in outputs if fcntl is not None else ():
            held.enter_context(_locked(output))
        yield


@contextmanager
def _locked(output: Path) -> Iterator[None]:
    path = lock_of(output)
    handle = _acquired(path, output)
    try:
        yield
    finally:
        with suppress(OSError):
            path.unlink()  # while it is held, so that nobody waits for a file that is gone
        os.close(handle)


def _acquired(path: Path, output: Path) -> int:
    """The lock, held; not one that its last holder has removed meanwhile."""
    while True:
        try:
            handle = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW, 0o600)
        except OSError as failed:
            raise InputError(
                f"output '{output}': '{path.name}' can't be made beside it ({failed.strerror});"
                " check the permissions there"
            ) from None
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(handle)
            raise InputError(
                f"output '{output}': another stream writes it; name another file, or wait for that"
                " stream or stop it"
            ) from None
        except OSError:
            return handle  # a file system without locks
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        os.close(handle)
