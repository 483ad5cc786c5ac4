"""The texts of a project: how the page writes them, a line for each column and promise, so that
changes are lines; and every edit of them with the way back.
"""

import difflib
import hashlib
import json
import os
import secrets
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import yaml

from shoal.errors import InputError
from shoal.policy.loading import SafeLoader, one_line

# Files of a project: private, written whole, and nowhere else.


Context = dict[str, Any]
"""What a file of the project, a look, a job or a screen holds, by name."""
Patch = list[Context]
"""Lines to change: from `at` on, how many go, and what comes."""
T = TypeVar("T")
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


def json_of(path: Path, otherwise: T) -> T:
    """What a file of JSON holds; `otherwise` where it holds nothing of that kind."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return otherwise
    return content if isinstance(content, type(otherwise)) else otherwise


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


def stamp_of(path: Path) -> list[int]:
    """What changes when a file does, or one in a folder; empty where there is none."""
    paths = sorted(path.glob("[!._]*")) if os.path.isdir(path) else [path]
    stats = [one.stat() for one in paths if os.path.isfile(one)]
    return [number for stat in stats for number in (stat.st_mtime_ns, stat.st_size)]


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


BY_LINE = ("attributes", "promises", "sign_off")


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def written(content: Mapping[str, Any]) -> str:
    """The content of a policy or of a context, as the page writes it."""
    return "\n".join([*_lines(content), ""])


def _lines(content: Mapping[str, Any], indent: str = "") -> Iterator[str]:
    """The lines of a policy, or of one of its tables."""
    for key, value in content.items():
        if key in BY_LINE and isinstance(value, dict) and value:
            yield f"{indent}{key}:"
            for name, part in value.items():
                yield f"{indent}  {one_line(name)}: {one_line(part)}"
        elif key in BY_LINE and isinstance(value, list) and value:
            yield f"{indent}{key}:"
            for part in value:
                yield f"{indent}- {one_line(part)}"
        elif key == "tables" and isinstance(value, dict) and all(value.values()):
            yield f"{indent}{key}:"
            for name, table in value.items():
                yield f"{indent}  {one_line(name)}:"
                yield from _lines(table, f"{indent}    ")
        else:
            yield f"{indent}{one_line(key)}: {one_line(value)}"


def read(text: str, what: str = "policy.yaml") -> Context:
    """What a text of YAML holds, by PyYAML's safe loader; raises InputError.

    The same text gives the same object: whoever changes it changes a copy.
    """
    content, line = _parsed(text)
    if line:
        raise InputError(f"{what}: line {line} can't be understood; fix the syntax")
    if not isinstance(content, dict):
        raise InputError(f"{what}: is not a mapping of keys to values")
    return content


@lru_cache(maxsize=64)
def _parsed(text: str) -> tuple[Any, int]:
    """The content, and the line that can't be understood; 0 where there is none."""
    try:
        content = yaml.load(text, Loader=SafeLoader)
    except (yaml.YAMLError, ValueError, RecursionError) as wrong:
        mark = getattr(wrong, "problem_mark", None)
        return None, 1 if mark is None else mark.line + 1
    return {} if content is None else content, 0


def has_comments(text: str) -> bool:
    """Whether writing it anew would lose what somebody has written for people."""
    return any(token in text for token in ("\n#", " #")) or text.startswith("#")


def is_ours(text: str) -> bool:
    """Whether the page would write it as it is."""
    try:
        return written(read(text)) == text
    except InputError:
        return False


def changed_lines(before: str, after: str) -> list[tuple[str, str]]:
    """The lines of `after` with those that are gone: (' ', '+' or '-', line)."""
    old, new = before.splitlines(), after.splitlines()
    found: list[tuple[str, str]] = []
    # not ndiff, which compares the letters of all lines with those of all others
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    for kind, lo, hi, start, end in matcher.get_opcodes():
        if kind == "equal":
            found += [(" ", line) for line in new[start:end]]
        else:
            found += [("-", line) for line in old[lo:hi]] + [("+", line) for line in new[start:end]]
    return found


def only_changes(before: str, after: str) -> list[tuple[str, str]]:
    """The lines that came or went: ('+' or '-', line)."""
    return [(mark, line) for mark, line in changed_lines(before, after) if mark != " "]


def touched_lines(before: str, after: str) -> set[int]:
    """Lines of `before` that are not the same in `after`; an insertion touches its neighbours."""
    matcher = difflib.SequenceMatcher(None, before.splitlines(), after.splitlines(), autojunk=False)
    touched: set[int] = set()
    for kind, lo, hi, _, _ in matcher.get_opcodes():
        if kind == "insert":
            touched |= {lo}
        elif kind != "equal":
            touched |= set(range(lo, hi))
    return touched


def hash_of(text: str | None) -> str | None:
    """None of no text."""
    return None if text is None else sha256(text)


def change_between(before: str | None, after: str | None) -> Context:
    """What an entry of the history holds of a file: both hashes, and the way back."""
    back = None if before is None else reverse_patch(before, after or "")
    return {"before": hash_of(before), "after": hash_of(after), "back": back}


def reverse_patch(before: str, after: str) -> Patch:
    """What leads from `after` back to `before`."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, new, old, autojunk=False)
    return [
        {"at": lo, "remove": hi - lo, "insert": old[start:end]}
        for kind, lo, hi, start, end in matcher.get_opcodes()
        if kind != "equal"
    ]


def patched(text: str | None, change: Mapping[str, Any]) -> str | None:
    """The text that an entry of the history leads back to; raises InputError."""
    if change["before"] is None:
        return None
    lines = (text or "").splitlines(keepends=True)
    for part in reversed(change["back"]):
        lines[part["at"] : part["at"] + part["remove"]] = part["insert"]
    found = "".join(lines)
    if sha256(found) != change["before"]:
        raise InputError("history: an entry does not lead back to what it says; it was changed")
    return found


# Every edit of a project, each with a sentence, the hashes before and after, and the way back.
#
# An entry is a file, `history/0012.yaml`. Undo adds an entry and takes none away: what was undone
# can be read, and undone again.


@dataclass(frozen=True)
class Entry:
    """One edit, or an event such as a draft that was made.

    files: by name, the hashes `before` and `after` (None: no such file) and the patch `back`.
    parent: the entry whose state it was made on. returns_to: of an undo, the entry whose state is
    there again.
    """

    number: int
    at: str
    sentence: str
    files: dict[str, Context] = field(default_factory=dict)
    parent: int = 0
    returns_to: int | None = None

    @property
    def changes(self) -> bool:
        """Whether it has changed a file; events have not."""
        return bool(self.files)

    @property
    def time(self) -> str:
        return self.at[11:16]


@dataclass
class History:
    """The entries of a project, oldest first."""

    folder: Path

    def entries(self) -> list[Entry]:
        paths = sorted(self.folder.glob("[0-9]*.yaml"))
        known = [path for path in paths if path.stem.isascii() and path.stem.isdigit()]
        found = [_entry(path, path.stat().st_mtime_ns) for path in known]
        return sorted(found, key=lambda entry: entry.number)

    def position(self) -> int:
        """The entry whose state the files are in; 0 before the first."""
        changing = [entry for entry in self.entries() if entry.changes]
        if not changing:
            return 0
        last = changing[-1]
        return last.number if last.returns_to is None else last.returns_to

    def chain(self) -> list[Entry]:
        """The edits that the files as they are were made by, the last one first."""
        by_number = {entry.number: entry for entry in self.entries()}
        at, found = self.position(), []
        while at in by_number:
            found.append(by_number.pop(at))
            at = found[-1].parent
        return found

    def add(
        self,
        sentence: str,
        changed: Mapping[str, tuple[str | None, str | None]],
        *,
        returns_to: int | None = None,
    ) -> Entry:
        """Writes an entry. changed: by file, its text before and after."""
        entries = self.entries()
        number = entries[-1].number + 1 if entries else 1
        files = {name: change_between(before, after) for name, (before, after) in changed.items()}
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        entry = Entry(number, now, sentence, files, self.position(), returns_to)
        content = {
            "sentence": sentence,
            "at": now,
            "parent": entry.parent,
            **({} if returns_to is None else {"returns_to": returns_to}),
            "files": files,
        }
        text = yaml.safe_dump(content, sort_keys=False, allow_unicode=True, width=100)
        path = self.folder / f"{number:04d}.yaml"
        with path.open("x", encoding="utf-8") as file:
            path.chmod(0o600)
            file.write(text)
        return entry

    def way_back(self, texts: Mapping[str, str | None], to: int) -> dict[str, str | None]:
        """The texts of the files that differ at entry `to`, which must lie before; raises
        InputError.

        texts: the files as they are now.
        """
        at, now = self.position(), dict(texts)
        changed: dict[str, str | None] = {}
        for entry in self.chain():
            if at == to:
                break
            for name, change in entry.files.items():
                if hash_of(now.get(name)) != change["after"]:
                    raise InputError(
                        f"history: {name} is not as entry {at} left it; undo needs it unchanged"
                    )
                now[name] = changed[name] = patched(now.get(name), change)
            at = entry.parent
        if at != to:
            raise InputError("history: no way leads back to that entry; a file of it is gone")
        return changed

    def last(self) -> Entry | None:
        """The entry that undo takes back; None where nothing is left to undo."""
        return next(iter(self.chain()), None)


@lru_cache(maxsize=1000)
def _entry(path: Path, written_at: int) -> Entry:
    """An entry, read once for as long as its file is the same."""
    try:
        content = yaml.load(path.read_text("utf-8"), Loader=SafeLoader)
        return Entry(
            int(path.stem),
            str(content["at"]),
            str(content["sentence"]),
            dict(content.get("files") or {}),
            int(content.get("parent") or 0),
            content.get("returns_to"),
        )
    except (OSError, yaml.YAMLError, ValueError, KeyError, TypeError):
        raise InputError(f"history '{path.name}': can't be read; restore it or remove it") from None
