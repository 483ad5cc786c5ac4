"""Finished rows on disk: one JSON line each, appended as soon as it is measured.

A line counts once its line end is written. Whatever follows the last line end is the torn end of a
run that was killed; it is cut off and measured again, so a run can be killed at any instant.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from shoal_papers.reproduce.paper import Row, Setting

ROWS = "rows.jsonl"


def fingerprint(setting: Setting, surroundings: Mapping[str, Any]) -> str:
    """Names a measurement: its setting and everything else that its numbers depend on."""
    text = json.dumps([dict(setting), dict(surroundings)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


class RowFile:
    """The rows of one paper's runs, in whatever order and under whatever settings they were
    measured.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def load(self) -> dict[str, Row]:
        """Finished rows by fingerprint; cuts off a torn end."""
        if not self.path.exists():
            return {}
        content = self.path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            os.truncate(self.path, whole)
        found = {}
        for line in content[:whole].splitlines():
            entry = _entry(line)
            if entry is not None:
                found[entry["fingerprint"]] = entry["row"]
        return found

    def append(self, mark: str, row: Row) -> None:
        """Adds a row; it is on disk when this returns."""
        line = json.dumps({"fingerprint": mark, "row": dict(row)}) + "\n"
        handle = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
            os.fsync(handle)
        finally:
            os.close(handle)

    def clear(self) -> None:
        """Forgets everything."""
        self.path.unlink(missing_ok=True)


def _entry(line: bytes) -> dict[str, Any] | None:
    """A line's entry; None where it is damaged, so that it is measured again."""
    try:
        entry = json.loads(line)
        fits = isinstance(entry["fingerprint"], str) and isinstance(entry["row"], dict)
    except (ValueError, KeyError, TypeError):
        return None
    return entry if fits else None


def as_csv(rows: Iterable[Row]) -> str:
    """The rows as CSV, with every column that one of them has."""
    rows = list(rows)
    columns = list(dict.fromkeys(name for row in rows for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()
