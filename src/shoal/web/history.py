"""Every edit of a project, each with a sentence, the hashes before and after, and the way back.

An entry is a file, `history/0012.yaml`. Undo adds an entry and takes none away: what was undone can
be read, and undone again.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from shoal.errors import InputError
from shoal.web.policy_text import sha256

Patch = list[dict[str, Any]]


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
    files: dict[str, dict[str, Any]] = field(default_factory=dict)
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
        found = []
        for path in sorted(self.folder.glob("[0-9]*.yaml")):
            if path.stem.isdigit():
                found.append(_read(path, path.stat().st_mtime_ns))
        return sorted(found, key=lambda entry: entry.number)

    def position(self, entries: list[Entry] | None = None) -> int:
        """The entry whose state the files are in; 0 before the first."""
        changing = [e for e in (self.entries() if entries is None else entries) if e.changes]
        if not changing:
            return 0
        last = changing[-1]
        return last.number if last.returns_to is None else last.returns_to

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
        files = {name: _change(before, after) for name, (before, after) in changed.items()}
        now = datetime.now().astimezone().isoformat(timespec="seconds")
        entry = Entry(number, now, sentence, files, self.position(entries), returns_to)
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
        by_number = {entry.number: entry for entry in self.entries()}
        at, now = self.position(), dict(texts)
        changed: dict[str, str | None] = {}
        while at != to:
            entry = by_number.get(at)
            if entry is None:
                raise InputError("history: no way leads back to that entry; a file of it is gone")
            for name, change in entry.files.items():
                if _hash(now.get(name)) != change["after"]:
                    raise InputError(
                        f"history: {name} is not as entry {at} left it; undo needs it unchanged"
                    )
                now[name] = changed[name] = _patched(now.get(name), change)
            at = entry.parent
        return changed

    def before(self) -> int | None:
        """The entry that undo returns to; None where nothing is left to undo."""
        entries = self.entries()
        at = self.position(entries)
        return next((entry.parent for entry in entries if entry.number == at), None)


def _change(before: str | None, after: str | None) -> dict[str, Any]:
    back: Patch | None = None
    if before is not None:
        back = reverse_patch(before, after or "")
    return {"before": _hash(before), "after": _hash(after), "back": back}


def _hash(text: str | None) -> str | None:
    return None if text is None else sha256(text)


def reverse_patch(before: str, after: str) -> Patch:
    """What leads from `after` back to `before`: lines from `at` on, how many go, what comes."""
    old, new = before.splitlines(keepends=True), after.splitlines(keepends=True)
    matcher = difflib.SequenceMatcher(None, new, old, autojunk=False)
    return [
        {"at": lo, "remove": hi - lo, "insert": old[start:end]}
        for kind, lo, hi, start, end in matcher.get_opcodes()
        if kind != "equal"
    ]


def _patched(text: str | None, change: Mapping[str, Any]) -> str | None:
    if change["before"] is None:
        return None
    lines = (text or "").splitlines(keepends=True)
    for part in reversed(change["back"]):
        lines[part["at"] : part["at"] + part["remove"]] = part["insert"]
    found = "".join(lines)
    if sha256(found) != change["before"]:
        raise InputError("history: an entry does not lead back to what it says; it was changed")
    return found


@lru_cache(maxsize=1000)
def _read(path: Path, written_at: int) -> Entry:
    """An entry, read once for as long as its file is the same."""
    try:
        content = yaml.safe_load(path.read_text("utf-8"))
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
