"""What a process leaves on disk that is killed at any line, and what runs make of it, without luck.

A run is watched line by line, and each time that something on disk has changed, that is kept. What
a process holds in memory dies with it, and its locks are freed, so nothing more is left by a kill
at that line. A run that goes on from what was left is watched like any other: so recoveries are
killed, too.
"""

import os
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, NamedTuple

WRITERS = re.compile(
    r"shoal/(connectors|data/regular_files|fusion|ledgers|linked|streams|tables/publish)"
    r"(?!.*(kernels|location|methods|clusters|core|dialect))"
)
"""Modules of ours that write, or call what writes; not those of them that only calculate."""
OF_PATHS = {"mkdir", "rename", "replace", "rmdir", "touch", "unlink", "write_bytes", "write_text"}
DRAFT = re.compile(r"(?<=\.)[0-9a-f]{16}(?=\.)")


class Kept(NamedTuple):
    """A file, or a folder where there is no content."""

    mode: int
    changed: int
    content: bytes | None


Left = dict[str, Kept]
"""All that stands in a folder, by path."""


def left_in(folder: Path) -> Left:
    found = {}
    for path in sorted(folder.rglob("*")):
        stat = path.lstat()
        content = None if path.is_dir() else path.read_bytes()
        found[str(path.relative_to(folder))] = Kept(stat.st_mode & 0o777, stat.st_mtime_ns, content)
    return found


def put_back(folder: Path, left: Left) -> None:
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()
    for name, kept in left.items():
        path = folder / name
        if kept.content is None:
            path.mkdir()
        else:
            path.write_bytes(kept.content)
        path.chmod(kept.mode)
    for name, kept in left.items():
        os.utime(folder / name, ns=(kept.changed, kept.changed))


def left_by_kills(folder: Path, run: Callable[[], object]) -> list[Left]:
    """What stands in the folder after each line of a run that changes something there."""
    found: list[Left] = []
    before = _stamps(str(folder))

    def look(*_: object) -> Callable[..., Any]:
        nonlocal before
        now = _stamps(str(folder))
        if now != before:
            before = now
            found.append(left_in(folder))
        return look

    def called(frame: FrameType, *_: object) -> Callable[..., Any] | None:
        return look() if _writes(frame.f_code) else None

    traced = sys.gettrace()
    sys.settrace(called)
    try:
        run()
    finally:
        sys.settrace(traced)
    look()
    return found


_KNOWN: dict[CodeType, bool] = {}


def _writes(code: CodeType) -> bool:
    """Whether it is code of modules that write."""
    if code not in _KNOWN:
        name = code.co_filename
        is_python = name == shutil.__file__ or ("pathlib" in name and code.co_name in OF_PATHS)
        _KNOWN[code] = is_python or WRITERS.search(name) is not None
    return _KNOWN[code]


def _stamps(folder: str) -> list[tuple[object, ...]]:
    """What changes when anything in a folder does."""
    found: list[tuple[object, ...]] = []
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            stat = entry.stat(follow_symlinks=False)
            found.append((entry.name, stat.st_ino, stat.st_size, stat.st_mode, stat.st_ctime_ns))
            if entry.is_dir(follow_symlinks=False):
                found += _stamps(entry.path)
    return found
