"""Room for large arrays: in memory as far as is allowed, and beyond in files that have no name, or
in the files of a folder that many processes see, with tasks that hand them on by name.

A kernel can't tell where its arrays lie. What lies in a file shares its pages with the disk, so the
system takes them from memory when others need it. Such a file never has a name that anybody could
open, and its blocks come back when the process ends, however it ends.

No record is ever part of a message: a task and what it found are files in the folder, and whatever
schedules tasks, such as Spark, passes on names and numbers alone.

Why a task may run twice, or be killed and run again: it maps what it is given as private copies,
writes only files under names of its own, and is distinguished from a lost attempt by the one name
that its winner returns. Files of losers stay in the folder until it is deleted.
"""

import errno
import io
import mmap
import os
import pickle
import re
import secrets
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from math import ceil, inf, prod
from pathlib import Path
from typing import Any, BinaryIO, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from shoal.errors import InputError, ShoalError, is_full

SHARE = 2
"""Arrays in memory take up to this part of the limit: the rest is for everything else."""

_UNSUPPORTED = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOENT)


BLOCK = 1 << 18
"""Records that are worked on at once where no array of all of them is to be made beside."""

_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_UNITS |= {f"{unit}I": 1 << 10 * power for power, unit in enumerate("KMGT", 1)}
_SHOWN = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))

A = TypeVar("A")
B = TypeVar("B")

_asked: ContextVar[int | None] = ContextVar("memory", default=None)


def limit() -> int | None:
    """Bytes of memory that the run may use; None where nobody limits them."""
    return _asked.get()


@contextmanager
def using(asked: int | str | None) -> Iterator[None]:
    """At most this much memory inside the block, such as 700MB; None: as much as around it."""
    limit_around = _asked.get()
    wanted = bytes_of(asked) if isinstance(asked, str) else asked
    token = _asked.set(limit_around if wanted is None else wanted)
    try:
        yield
    finally:
        _asked.reset(token)


def needs_whole(*what: str, enough: float = inf) -> InputError:
    """That a table past memory can't be worked on. what: clauses that say why, at least one.

    enough: bytes within which the table is worked on as a whole; infinite where nobody knows.
    """
    more = f"{ceil(enough / 1e6)} MB or more" if enough < inf else "more"
    way_out = f"needs the whole table in memory; leave out --memory, or allow {more}"
    return InputError.from_findings([f"memory: {each}, which {way_out}" for each in what])


def bytes_of(size: str) -> int:
    """The bytes that a size such as 700MB or 1.5GiB names; raises InputError for any other text."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?\s*", size.upper())
    if found is None or found[2] not in _UNITS:
        raise InputError(f"memory '{size}': is not a size; give one such as 700MB or 2GiB")
    return int(float(found[1]) * _UNITS[found[2]])


def size_text(size: float) -> str:
    """Bytes as people say them."""
    for unit, name in _SHOWN:
        if size >= unit:
            number = size / unit
            return f"{number:.1f} {name}" if number < 10 else f"{number:,.0f} {name}"
    return "1 byte" if round(size) == 1 else f"{size:.0f} bytes"


def blocks(records: int) -> Iterator[slice]:
    """All records, block by block."""
    return (slice(at, min(at + BLOCK, records)) for at in range(0, records, BLOCK))


class Room:
    """Gives arrays of zeros; those that `limit` bytes have no place for lie in nameless files.

    limit: None for always in memory. folder: on whose disk the files are; by default the one for
    temporary files. in_memory: bytes of the arrays in use. on_disk: bytes that were given so far.
    """

    def __init__(self, limit: int | None = None, folder: str | Path | None = None) -> None:
        self.limit = limit
        self._folder = folder
        self.in_memory = 0
        self.on_disk = 0

    @property
    def folder(self) -> Path:
        """Where the files are; found when one is wanted, since finding it writes a file."""
        return Path(tempfile.gettempdir() if self._folder is None else self._folder)

    def array(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray[Any, Any]:
        """An array of zeros; raises InputError where the disk has no room for it."""
        kind = np.dtype(dtype)
        size = prod(shape if isinstance(shape, tuple) else (shape,)) * kind.itemsize
        if self.limit is None or self.in_memory + size <= self.limit // SHARE:
            array = np.zeros(shape, dtype=kind)
            if self.limit is not None:
                self.in_memory += size
                weakref.finalize(array, self._free, size)
            return array
        self.on_disk += size
        return np.frombuffer(self._mapped(size), dtype=kind).reshape(shape)

    def _free(self, size: int) -> None:
        self.in_memory -= size

    def gather(
        self,
        lookup: np.ndarray[Any, Any],
        codes: np.ndarray[Any, Any],
        into: np.ndarray[Any, Any] | None = None,
    ) -> np.ndarray[Any, Any]:
        """What each record looks up by its code; (n,) of the type of `lookup`, `into` if given.

        As `lookup[codes]`, in half the time: NumPy turns each code into a wider number and looks
        whether it is in range, unless it may clip those that are not. Here the least and the
        greatest are looked at; raises IndexError, for negative ones, too.
        """
        found = self.array(len(codes), lookup.dtype) if into is None else into
        for rows in blocks(len(codes)):
            some = codes[rows]
            if some.min() < 0 or some.max() >= len(lookup):
                raise IndexError("a code that has no place in the table")
            lookup.take(some, mode="clip", out=found[rows])
        return found

    def each(self, work: Callable[[A], B], items: Iterable[A]) -> Iterable[B]:
        """What `work` finds for each item, one after the other."""
        return map(work, items)

    def _mapped(self, size: int) -> mmap.mmap:
        handle = _nameless(self.folder)
        try:
            return mapped_file(handle, size, self.folder)
        finally:
            os.close(handle)  # the map keeps the file


def mapped_file(handle: int, size: int, folder: Path) -> mmap.mmap:
    """An empty file, filled with zeros and mapped; raises InputError where there is no room."""
    try:
        # all blocks now: a page that finds none later would kill the process
        _allocate(handle, size)
        return mmap.mmap(handle, size)
    except OSError as failed:
        if not is_full(failed):
            raise
        raise InputError(
            f"memory: needs {size / 1e9:.1f} GB more on the disk of '{folder}', which has"
            " no room for it; free some, or name another place in TMPDIR"
        ) from None


@contextmanager
def spooled(folder: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A file without a name to write to, and a path by which this process alone can read it.

    Raises InputError where the system has no such path.
    """
    handle = _nameless(folder)
    with os.fdopen(handle, "w+b") as file:
        path = Path(f"/proc/self/fd/{handle}")
        if not path.exists():
            raise InputError("memory: packed files need /proc, which is not there; unpack it first")
        yield file, path


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


IN_MEMORY = Room()
"""The room of a run that nobody limits."""


LARGE = 1 << 20
"""Bytes from which on an array is handed on in a file of its own."""

GRAIN = 300_000
"""Records that a task is worth starting for."""

_path_of: weakref.WeakKeyDictionary[mmap.mmap, Path] = weakref.WeakKeyDictionary()


class Workers(Protocol):
    """Whoever runs tasks: `run_task` of one job's name and every number below a count."""

    @property
    def cores(self) -> int:
        """Tasks that may run at once."""

    def run(self, job: str, count: int) -> Sequence[str]:
        """What `run_task` returned for each number, by number. job: a file that all workers see.

        Raises ShoalError where a task fails again and again.
        """


class SharedRoom(Room):
    """Gives arrays in named files of a folder, and tasks to workers that see the same folder.

    limit: bytes of memory that the run and each of its tasks may use. most: records that a task
    cuts to the end; None for as many as the limit and the cores ask for.
    """

    limit: int

    def __init__(self, limit: int, folder: Path, workers: Workers, most: int | None = None) -> None:
        super().__init__(limit, folder)
        self.workers = workers
        self._most = most
        self.tasks = 0

    def array(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike) -> np.ndarray[Any, Any]:
        """An array of zeros, which tasks are given by name if it is large."""
        kind = np.dtype(dtype)
        size = int(np.prod(shape)) * kind.itemsize
        if size < LARGE:
            return np.zeros(shape, dtype=kind)
        self.on_disk += size
        path = new_file(self.folder)
        with open(path, "r+b") as file:
            mapped = mapped_file(file.fileno(), size, self.folder)
        _own(mapped, path)
        return np.ndarray(shape, dtype=kind, buffer=mapped)

    def each(self, work: Callable[[A], B], items: Iterable[A]) -> list[B]:
        """What `work` finds for each item, by whoever is free; raises what it raises on purpose.

        work, items: pickled; large arrays in them by name.
        """
        items = list(items)
        if not items:
            return []
        job = write_object((work, items), self.folder)
        self.tasks += len(items)
        try:
            names = self.workers.run(str(job), len(items))
            found = [read_object(Path(name), owned=True) for name in names]
        finally:
            job.unlink(missing_ok=True)
        refused = [one for one in found if isinstance(one, ShoalError)]
        if refused:
            raise refused[0]
        return found

    def most_records(self, records: int, record_bytes: int) -> int:
        """The most records of a table that may be one task's. record_bytes: what one takes."""
        if self._most is not None:
            return self._most
        even = records // (4 * max(self.workers.cores, 1))
        return max(min(even, self.limit // (4 * record_bytes)), GRAIN)

    def __reduce__(self) -> tuple[Any, ...]:
        # what a task needs beside what it is given is its own: nameless, and gone with it
        return Room, (self.limit,)


def run_task(job: str, number: int) -> str:
    """Runs one task of a job; the name of the file that holds what it found.

    An error that Shoal raises on purpose is what was found. Of any other only its kind is
    reported, as its text may hold a cell.
    """
    folder = Path(job).parent
    work, items = read_object(Path(job))
    found: Any
    try:
        found = work(items[number])
    except ShoalError as refused:
        found = refused
    except Exception as failed:
        raise RuntimeError(f"a task failed: {type(failed).__name__}") from None
    return str(write_object(found, folder))


def new_file(folder: Path) -> Path:
    """A new file for its owner alone."""
    path = folder / secrets.token_hex(12)
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    return path


def write_object(value: Any, folder: Path) -> Path:
    """A file with a value; large arrays in it are files of their own, which it names."""
    path = new_file(folder)
    with open(path, "wb") as file:
        _Pickler(file, folder).dump(value)
    return path


def read_object(path: Path, owned: bool = False) -> Any:
    """What such a file holds. owned: the file, and those it names, are deleted after their use."""
    loaded = _Unpickler(io.BytesIO(path.read_bytes()), owned).load()
    if owned:
        path.unlink(missing_ok=True)
    return loaded


class _Pickler(pickle.Pickler):
    """Writes large arrays to files of their own, unless they lie in one."""

    def __init__(self, file: Any, folder: Path) -> None:
        super().__init__(file, protocol=5)
        self._folder = folder
        # with the array itself: the number of one that is gone would be given to another
        self._named: dict[int, tuple[np.ndarray, tuple[Any, ...]]] = {}

    def persistent_id(self, value: Any) -> tuple[Any, ...] | None:
        """How the array is named; None for whatever is written here."""
        if type(value) is not np.ndarray or value.nbytes < LARGE or value.dtype.hasobject:
            return None
        if id(value) not in self._named:
            self._named[id(value)] = value, self._name_of(value)
        return self._named[id(value)][1]

    def _name_of(self, value: np.ndarray) -> tuple[Any, ...]:
        mapped = _map_of(value)
        if mapped is None:
            path = new_file(self._folder)
            with open(path, "wb") as file:
                file.write(np.ascontiguousarray(value).data)
            return str(path), True, value.dtype.str, value.shape, 0, None
        mapped.flush()
        begun = np.frombuffer(mapped, dtype=np.uint8).__array_interface__["data"][0]
        offset = value.__array_interface__["data"][0] - begun
        path = _path_of[mapped]
        return str(path), False, value.dtype.str, value.shape, offset, value.strides


class _Unpickler(pickle.Unpickler):
    """Maps the arrays that a file names as private copies: nobody sees what is written there."""

    def __init__(self, file: Any, owned: bool) -> None:
        super().__init__(file)
        self._owned = owned
        self._maps: dict[str, mmap.mmap] = {}

    def persistent_load(self, pid: Any) -> np.ndarray:
        path, is_new, dtype, shape, offset, strides = pid
        if path not in self._maps:
            with open(path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            self._maps[path] = mapped
            if self._owned:
                _path_of[mapped] = Path(path)
            if self._owned and is_new:
                weakref.finalize(mapped, _forget, Path(path))
        array = np.ndarray(shape, np.dtype(dtype), self._maps[path], offset, strides)
        # its owner hands it on by name, so it stays what the file says; a task may change its copy
        array.flags.writeable = not self._owned
        return array


def _map_of(array: np.ndarray) -> mmap.mmap | None:
    """The map that an array lies in, if its file has a name."""
    base: Any = array
    while isinstance(base, np.ndarray):
        base = base.base
    base = base.obj if isinstance(base, memoryview) else base
    return base if isinstance(base, mmap.mmap) and base in _path_of else None


def _own(mapped: mmap.mmap, path: Path) -> None:
    _path_of[mapped] = path
    weakref.finalize(mapped, _forget, path)


def _forget(path: Path) -> None:
    with suppress(OSError):
        path.unlink()
