"""Drafts: hidden files and folders beside an output, with personal data. Those of runs that were
killed are deleted.

Every draft has a random name, and whoever writes it holds its lock. The system frees the locks of
the dead, however they died, so that a draft that is locked is never deleted, and neither is one
where there are no locks. A release has another name.
"""

import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.errors import InputError

try:
    import fcntl
except ImportError:  # not on Windows, where drafts of killed runs stay
    fcntl = None  # type: ignore[assignment]

DRAFT_BYTES = 8
"""Of a draft's random name."""
_DRAFT = re.compile(rf"\..+\.[0-9a-f]{{{2 * DRAFT_BYTES}}}\.part", re.DOTALL)


@contextmanager
def draft_beside(target: Path, output: str, is_folder: bool = False) -> Iterator[Path]:
    """A new file or folder, its owner's alone until it takes its place; else it is deleted at the
    end. What dead writers left in that folder, of any output, is deleted first.

    output: the target in messages. Raises InputError where nothing can be made there.
    """
    with suppress(OSError):  # a folder that may be written to, but not listed
        sweep(target.parent)
    draft, lock = _locked_draft(target, output, is_folder)
    try:
        yield draft
    finally:
        if is_folder:
            shutil.rmtree(draft, ignore_errors=True)  # or what stood there before
        else:
            draft.unlink(missing_ok=True)
        os.close(lock)


def _locked_draft(target: Path, output: str, is_folder: bool) -> tuple[Path, int]:
    """A new draft and the descriptor whose lock says that its writer lives."""
    while True:
        # a fresh name that nobody could have prepared
        draft = target.parent / f".{target.name}.{secrets.token_hex(DRAFT_BYTES)}.part"
        try:
            if is_folder:
                draft.mkdir(mode=0o700)
                lock = os.open(draft, os.O_RDONLY)
            else:
                lock = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        except OSError as failed:
            raise InputError(
                f"output '{output}': writing failed ({failed.strerror or 'no room or no right'})"
                + ("; name another place" if is_folder else "")
            ) from None
        if fcntl is None:
            return draft, lock
        with suppress(OSError):  # a file system without locks
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if draft.exists():
            return draft, lock
        os.close(lock)  # swept away by another run between its making and its lock


def sweep(folder: Path) -> None:
    """Deletes the drafts of dead runs in a folder; never a release, nor the draft of a run at work.

    Raises OSError where the folder can't be listed.
    """
    if fcntl is None:
        return
    for name in os.listdir(folder):
        if _DRAFT.fullmatch(name):
            _delete_dead(folder / name)


def _delete_dead(draft: Path) -> None:
    """Deletes it, unless it is another's or its writer lives."""
    with suppress(OSError):
        handle = os.open(draft, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if stat.S_ISDIR(os.fstat(handle).st_mode):
                shutil.rmtree(draft)
            else:
                draft.unlink()
        finally:
            os.close(handle)
