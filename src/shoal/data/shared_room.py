"""Arrays in the files of a folder that many processes see, and tasks that hand them on by name.

No record is ever part of a message: a task and what it found are files in the folder, and whatever
schedules tasks, such as Spark, passes on names and numbers alone.

Why a task may run twice, or be killed and run again: it maps what it is given as private copies,
writes only files under names of its own, and is distinguished from a lost attempt by the one name
that its winner returns. Files of losers stay in the folder until it is deleted.
"""

import io
import mmap
import os
import pickle
import secrets
import weakref
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from shoal.data.room import A, B, Room, mapped_file
from shoal.errors import ShoalError

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
