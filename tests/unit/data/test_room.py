"""Large arrays lie in memory as far as is allowed, and beyond in files without a name."""

import errno
import mmap
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from shoal.data.room import Room
from shoal.errors import InputError

MEGABYTE = 1 << 20


def _is_mapped(array: np.ndarray) -> bool:
    base: Any = array
    while isinstance(base, np.ndarray) and base.base is not None:
        base = base.base
    return isinstance(base, mmap.mmap) or isinstance(getattr(base, "obj", None), mmap.mmap)


def test_without_a_limit_everything_is_in_memory(tmp_path):
    room = Room(None, tmp_path / "not-there")
    assert not _is_mapped(room.array((3, 100_000), np.int32))
    assert room.on_disk == 0


def test_what_half_of_the_limit_has_no_place_for_is_on_disk(tmp_path):
    room = Room(4 * MEGABYTE, tmp_path)
    first, second, third = (room.array(MEGABYTE, np.uint8) for _ in range(3))
    assert [_is_mapped(one) for one in (first, second, third)] == [False, False, True]
    small = room.array((2, 0), np.int64)
    assert not _is_mapped(small)
    assert (room.in_memory, room.on_disk) == (2 * MEGABYTE, MEGABYTE)
    del first
    assert room.in_memory == MEGABYTE
    assert not _is_mapped(room.array(MEGABYTE, np.uint8))


def test_an_array_on_disk_is_like_any_other(tmp_path):
    array = Room(0, tmp_path).array((3, 5_000), np.int32)
    assert (array.shape, array.dtype) == ((3, 5_000), np.int32)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.any()
    array[1] = np.arange(5_000)
    assert int(array.sum()) == 5_000 * 4_999 // 2


@pytest.mark.parametrize("supported", [True, False], ids=["nameless", "unlinked"])
def test_nobody_can_open_it(tmp_path, monkeypatch, supported):
    opened, modes = os.open, []

    def open_like_that(path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        if not supported and flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not here")
        handle = opened(path, flags, mode, **more)
        modes.append(os.fstat(handle).st_mode & 0o777)
        return handle

    monkeypatch.setattr(os, "open", open_like_that)
    array = Room(0, tmp_path).array(MEGABYTE, np.uint8)
    array[:] = 7
    assert list(tmp_path.iterdir()) == []
    assert modes == [0o600]


def test_a_full_disk_is_said_in_a_line_before_anything_is_lost(tmp_path, monkeypatch):
    def full(*given: Any):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(InputError, match=r"needs 3\.0 GB more on the disk of .*TMPDIR"):
        Room(0, tmp_path).array(3_000_000_000, np.uint8)
    assert list(tmp_path.iterdir()) == []


def test_a_killed_process_gives_the_disk_back(tmp_path):
    size = 64 * MEGABYTE
    code = (
        "import sys, time; import numpy as np; from shoal.data.room import Room\n"
        f"array = Room(0, sys.argv[1]).array({size}, np.uint8); array[:] = 1\n"
        "print('written', flush=True); time.sleep(60)"
    )
    running = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE)
    assert running.stdout is not None
    assert running.stdout.readline() == b"written\n"
    assert list(tmp_path.iterdir()) == []
    maps = Path(f"/proc/{running.pid}/maps").read_text()
    assert "(deleted)" in maps
    running.send_signal(signal.SIGKILL)
    running.wait()
    running.stdout.close()
    assert list(tmp_path.iterdir()) == []
