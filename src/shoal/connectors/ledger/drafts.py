"""Drafts: files and folders that are written beside their place and moved into it whole."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shoal.data.durable import sync

DRAFT = ".part"


def is_draft(name: str) -> bool:
    return name.startswith(".") and name.endswith(DRAFT)


def draft_of(parent: Path, name: str) -> Path:
    return parent / f".{name}.{secrets.token_hex(8)}{DRAFT}"


def open_to_readers(folder: Path) -> None:
    """A draft is its owner's alone; what is published follows the owner's rule for new files."""
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)
    for path in folder.rglob("*"):
        path.chmod((0o777 if path.is_dir() else 0o666) & ~mask)


def move_into_place(draft: Path, place: Path) -> None:
    """All of a folder on disk, then there by one rename, then the rename on disk."""
    for path in draft.rglob("*"):
        sync(path)
    sync(draft)
    os.rename(draft, place)
    sync(place.parent)


def write_once(path: Path, content: bytes, private: Path) -> None:
    """A small file of the private part, whole or not there; one that is there stays."""
    if path.exists():
        return
    path.parent.mkdir(mode=0o700, exist_ok=True)
    draft = draft_of(private, path.name)
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(content)
        sync(draft)
        os.rename(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


def write_anew(path: Path, content: bytes) -> None:
    """A small file of the private part in place of an earlier one, by one rename."""
    draft = draft_of(path.parent, path.name)
    try:
        draft.touch(mode=0o600)
        draft.write_bytes(content)
        sync(draft)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync(path.parent)


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


@contextmanager
def signals_deferred() -> Iterator[None]:
    """Ctrl-C and SIGTERM do nothing: whoever stopped an append must not find a release of it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # where no signal arrives
        return
    before = {stop: signal.signal(stop, signal.SIG_IGN) for stop in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for stop, handler in before.items():
            signal.signal(stop, handler or signal.SIG_DFL)
