"""The releases of ledgers that stand in a database, each with its certificate.

    shoal_releases(name, release, since, rows, certificate, created)

name: the table. release: its number. since: the first release whose rows are part of the table as
of this one. rows: how many it has. certificate: byte for byte that of the ledger, so that the
certificates of a table are a chain of hashes, too.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any

from shoal.connectors.database.address import RELEASES
from shoal.connectors.database.session import SOURCE, Session, TableName, cell_of

_ABOUT = ("name", "release", "since", "rows", "certificate", "created")
_NUMBERS = ("release", "since", "rows")
_COUNT = re.compile("[0-9]{1,18}")


@dataclass(frozen=True)
class ListedRelease:
    """A line of the list."""

    release: int
    since: int
    rows: int
    certificate: str
    created: str

    @classmethod
    def after(cls, before: ListedRelease | None, certificate: str, rows: int) -> ListedRelease:
        """The line of the release that follows another one, or is the first."""
        said = stated(certificate)
        release = 1 if before is None else before.release + 1
        is_whole = before is None or said.get("covers") == "table"
        since = release if is_whole else before.since if before is not None else 1
        return cls(release, since, rows, certificate, str(said.get("date")))

    @property
    def stated(self) -> dict[str, Any]:
        """What the certificate says; empty where it is none."""
        return stated(self.certificate)

    @property
    def previous(self) -> object:
        """The hash of the certificate before it, or of the ledger's beginning."""
        return _part(self.stated, "ledger").get("previous")

    @property
    def data_sha256(self) -> object:
        """The hash of the rows, written as CSV."""
        return _part(self.stated, "output").get("sha256")

    @property
    def names(self) -> list[str]:
        """The published columns; empty where the certificate is too old to name them."""
        columns = self.stated.get("columns")
        listed = columns if isinstance(columns, list) else []
        parts = [part for part in listed if isinstance(part, dict)]
        return [str(part.get("name")) for part in parts if part.get("technique") != "removed"]

    @property
    def head(self) -> str:
        """The hash that the next release follows."""
        return hashlib.sha256(self.certificate.encode()).hexdigest()

    def follows(self, before: ListedRelease | None) -> bool:
        """Whether this is the line that the release behind another one has."""
        number = _part(self.stated, "ledger").get("release")
        is_next = before is None or self.previous == before.head
        return is_next and (
            number == self.release and self == self.after(before, self.certificate, self.rows)
        )


def stated(certificate: str) -> dict[str, Any]:
    """What the text of a certificate says; empty where it is none."""
    try:
        content = json.loads(certificate)
    except (ValueError, RecursionError):
        return {}
    return content if isinstance(content, dict) else {}


def _part(content: dict[str, Any], name: str) -> dict[str, Any]:
    part = content.get(name)
    return part if isinstance(part, dict) else {}


def listed_releases(session: Session, table: TableName) -> list[ListedRelease]:
    """The releases of a table, rising; none where the list is missing or another program's."""
    kept = table.beside(RELEASES)
    if not {*_ABOUT} <= {column.name for column in session.columns(kept)}:
        return []
    cells = ", ".join(f"CAST({name} AS text)" for name in _ABOUT[1:])
    rows = session.query(
        f"SELECT {cells} FROM {kept.quoted} AS {SOURCE} WHERE name = $1"
        f" ORDER BY {cell_of('release')}",
        (table.name,),
    ).rows()
    return [_listed(*row) for row in rows]


def _listed(release: str, since: str, rows: str, certificate: str, created: str) -> ListedRelease:
    number, first, count = (_number(text) for text in (release, since, rows))
    return ListedRelease(number, first, count, certificate or "", created or "")


def _number(text: str | None) -> int:
    """What a cell of the list says; -1, which no release has, where somebody made it no number."""
    return int(text) if text is not None and _COUNT.fullmatch(text) else -1


def list_release(session: Session, table: TableName, line: ListedRelease) -> None:
    """Adds a line; the database refuses a second one of the same release."""
    kept = table.beside(RELEASES)
    if not session.columns(kept):
        types = ", ".join(
            f"{name} {'bigint' if name in _NUMBERS else 'text'} NOT NULL" for name in _ABOUT
        )
        session.execute(f"CREATE TABLE {kept.quoted} ({types}, PRIMARY KEY (name, release))")
    places = ", ".join(
        f"CAST(${place} AS {'bigint' if name in _NUMBERS else 'text'})"
        for place, name in enumerate(_ABOUT, start=1)
    )
    numbers = (str(line.release), str(line.since), str(line.rows))
    session.execute(
        f"INSERT INTO {kept.quoted} ({', '.join(_ABOUT)}) VALUES ({places})",
        (table.name, *numbers, line.certificate, line.created),
    )
