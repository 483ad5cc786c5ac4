"""Room for large arrays: in memory as far as is allowed, and beyond in files that have no name.

A kernel can't tell where its arrays lie. What lies in a file shares its pages with the disk, so the
system takes them from memory when others need it. Such a file never has a name that anybody could
open, and its blocks come back when the process ends, however it ends.
"""

from __future__ import annotations

import errno
import mmap
import os
import secrets
import tempfile
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError

SHARE = 2
"""Arrays in memory take up to one part in so many of the limit: the rest is for everything else."""

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Room:
    """Gives arrays of zeros; those that `limit` bytes have no place for lie in nameless files.

    limit: None for always in memory. folder: on whose disk the files are; by default the one for
    temporary files. in_memory, on_disk: bytes that were given so far.
    """

    def __init__(self, limit: int | None = None, folder: str | Path | None = None) -> None:
        self.limit = limit
        self.folder = Path(tempfile.gettempdir() if folder is None else folder)
        self.in_memory = 0
        self.on_disk = 0

    def array(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray[Any, Any]:
        """An array of zeros; raises InputError where the disk has no room for it."""
        kind = np.dtype(dtype)
        size = prod(shape if isinstance(shape, tuple) else (shape,)) * kind.itemsize
        if self.limit is None or self.in_memory + size <= self.limit // SHARE:
            self.in_memory += size
            return np.zeros(shape, dtype=kind)
        self.on_disk += size
        return np.frombuffer(self._mapped(size), dtype=kind).reshape(shape)

    def _mapped(self, size: int) -> mmap.mmap:
        handle = _nameless(self.folder)
        try:
            # all blocks now: a page that finds none later would kill the process
            _allocate(handle, size)
            return mmap.mmap(handle, size)
        except OSError as failed:
            if failed.errno not in _FULL:
                raise
            raise InputError(
                f"memory: needs {size / 1e9:.1f} GB more on the disk of '{self.folder}', which has"
                " no room for it; free some, or name another place in TMPDIR"
            ) from None
        finally:
            os.close(handle)  # the map keeps the file


def _nameless(folder: Path) -> int:
    """A new file without a name, its owner's alone."""
    if hasattr(os, "O_TMPFILE"):
        try:
            return os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_EXCL, 0o600)
        except OSError as failed:
            if failed.errno not in _UNSUPPORTED:
                raise
    # where a file system has no such files: a name that is gone before anything is written
    path = folder / f".shoal-{secrets.token_hex(8)}"
    handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600)
    path.unlink()
    return handle


def _allocate(handle: int, size: int) -> None:
    """Gives a file its blocks, all zeros."""
    if hasattr(os, "posix_fallocate"):
        os.posix_fallocate(handle, 0, size)
        return
    block = bytes(min(size, 1 << 20))
    for begun in range(0, size, len(block)):
        os.write(handle, block[: size - begun])
