"""Files of a project: private, written whole, and nowhere else."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from shoal.errors import InputError

PRIVATE_FILE, PRIVATE_FOLDER = 0o600, 0o700


class NotThere(Exception):
    """No such file that may be read: the page says 404 and not why."""


def made(folder: Path) -> Path:
    """The folder, private where it is new."""
    if not folder.is_dir():
        with _saying_what_failed(folder):
            folder.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
    return folder


def write(path: Path, text: str) -> None:
    """The text in place of the file, whole or not at all, for its owner alone."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.draft")
    with _saying_what_failed(path):
        try:
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, PRIVATE_FILE)
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            draft.replace(path)
        finally:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def text_of(path: Path) -> str | None:
    """What a file of the project says; None where there is none."""
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return file.read()
    except FileNotFoundError:
        return None
    except UnicodeDecodeError:
        raise InputError(f"{path.name}: is not UTF-8; convert it") from None
    except OSError as failed:
        raise InputError(f"{path.name}: can't be read ({failed.strerror})") from None


def within(name: str, start: Path, *, is_folder: bool = False) -> Path:
    """The file or folder of this name below `start` (rule S7); raises NotThere.

    No link leads out, and no device or pipe is opened.
    """
    if not name or "\0" in name:
        raise NotThere
    try:
        path = (start / name).resolve(strict=True)
        mode = path.stat().st_mode
    except (OSError, RuntimeError):
        raise NotThere from None
    if path != start.resolve() and start.resolve() not in path.parents:
        raise NotThere
    if not (stat.S_ISDIR(mode) if is_folder else stat.S_ISREG(mode)):
        raise NotThere
    return path


@contextmanager
def _saying_what_failed(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as failed:
        why = failed.strerror or "no room or no permission"
        raise InputError(
            f"'{path.name}' can't be written ({why}); make room, or make the folder writable;"
            " nothing was changed"
        ) from None
