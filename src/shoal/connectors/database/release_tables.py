"""A table in a database that takes the releases of a ledger, each in one transaction, once.

    BEGIN; insert the rows of a release and read them back; list it in
    shoal_releases(name, release, since, rows, certificate, created); the ledger appends it; COMMIT

name: the table. release: its number. since: the first release whose rows are part of the table as
of this one. rows: how many it has. certificate: byte for byte that of the ledger, so that the
certificates of a table are a chain of hashes, too.

`shoal_release` is the number of a row's release; `shoal_row` counts all rows of the table from 1.
Whatever a release shows is proved by its certificate: its rows, written as CSV, are byte for byte
the file of the ledger.

Promise: whatever is killed, a release is there as a whole with its certificate or not at all.
Putting it again, from the ledger's own file, gives the same rows.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl

from shoal.connectors import delimited, dialect
from shoal.connectors.database import session as sql
from shoal.connectors.database import tables
from shoal.connectors.database.session import DatabaseRefusal, Session, SqlColumn, TableName
from shoal.connectors.database.tables import opened
from shoal.connectors.ledger.layout import mapping_in
from shoal.connectors.location import RELEASES, TableAddress, require_whole
from shoal.errors import ANOTHER_LEDGER, InputError, PartyError

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
        return mapping_in(self.stated, "ledger").get("previous")

    @property
    def data_sha256(self) -> object:
        """The hash of the rows, written as CSV."""
        return mapping_in(self.stated, "output").get("sha256")

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
        number = mapping_in(self.stated, "ledger").get("release")
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


def listed_releases(session: Session, table: TableName) -> list[ListedRelease]:
    """The releases of a table, rising; none where the list is missing or another program's."""
    lines = sql.kept_lines(session, table.beside(RELEASES), _ABOUT, table.name)
    return [
        ListedRelease(_number(release), _number(since), _number(count), proof or "", created or "")
        for release, since, count, proof, created in lines
    ]


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
    with sql.beside(kept):
        session.execute(
            f"INSERT INTO {kept.quoted} ({', '.join(_ABOUT)}) VALUES ({places})",
            (table.name, *numbers, line.certificate, line.created),
        )


@dataclass(frozen=True)
class TableState:
    """What a table holds. is_there: whether it exists. damage: what is not as put, by line."""

    is_there: bool
    releases: Sequence[ListedRelease] = ()
    damage: Sequence[str] = ()


# Writing


def check_begin(address: TableAddress) -> None:
    """Raises InputError with every reason why no ledger can begin in a table."""
    require_whole(address)
    # opened for writing, so that missing rights show now and not later; nothing is written
    with opened(address, writing=True) as session:
        table = session.named(address)
        findings = tables.target_findings(session, table)
        is_there = bool(session.columns(table))
        if is_there or listed_releases(session, table):
            findings.append(tables.taken_finding(is_there, RELEASES, "the ledger that writes it"))
    InputError.raise_for(f"output '{address.shown}': {finding}" for finding in findings)


def state_of(address: TableAddress, writing: bool = False) -> TableState:
    """What a table holds, every row compared with the certificates beside it.

    writing: whether it is about to be written, and may have to be made; else it is only read.
    """
    require_whole(address)
    with opened(address, writing) as session:
        table = session.named(address)
        if writing:
            adding = ("SELECT", "INSERT")
            sql.require_rights(session, {table: adding, table.beside(RELEASES): adding})
        columns = session.columns(table)
        releases = listed_releases(session, table)
        rows = TableRows.of(session, table)
        damage = rows.damage(releases) if columns and releases else []
    return TableState(bool(columns), releases, damage)


@contextmanager
def putting(
    address: TableAddress, before: ListedRelease | None, frame: pl.DataFrame, certificate: str
) -> Iterator[ListedRelease]:
    """Puts a release behind another one; committed if the block succeeds, and else rolled back.

    before: the last release that the table holds; None for a new table. frame: the rows, which are
    there in the block, read back, and nobody else sees them. certificate: its text.
    """
    frame = frame.select(pl.all().cast(pl.String))
    line = ListedRelease.after(before, certificate, frame.height)
    with opened(address, writing=True) as session:
        table = session.named(address)
        first = _begin(session, address, table, before, frame.columns)
        of_release = pl.lit(line.release, pl.Int64).alias(tables.RELEASE)
        session.insert(table, tables.numbered(frame.select(of_release, pl.all()), first))
        list_release(session, table, line)
        session.run_deferred()
        _require_as_put(session, address, table, line, first)
        yield line
        _commit(session, address, line)


def _begin(
    session: Session,
    address: TableAddress,
    table: TableName,
    before: ListedRelease | None,
    names: Sequence[str],
) -> int:
    """Makes a new table, or checks that the old one takes the release; its number of rows."""
    where = f"output '{address.shown}'"
    listed, rows = listed_releases(session, table), TableRows.of(session, table)
    is_left = (listed[-1] if listed else None) == before and bool(rows.columns) == bool(before)
    count = sum(line.rows for line in listed)
    if not is_left or (rows.columns and sql.count_rows(session, table) != count):
        raise InputError(f"{where}: somebody else wrote into it meanwhile; run again")
    if before is None:
        InputError.raise_for(f"{where}: {one}" for one in tables.column_findings(session, names))
        texts = ", ".join(f"{sql.quoted(name)} text" for name in names)
        session.execute(
            f"CREATE TABLE {table.quoted} ({tables.ROW} {session.key_numbers},"
            f" {tables.RELEASE} bigint NOT NULL, {texts})"
        )
    elif {*rows.columns} != {tables.ROW, tables.RELEASE, *names}:
        raise InputError(
            f"{where}: this release has other columns than the table; publish the same columns, or"
            f" {ANOTHER_LEDGER}"
        )
    return count


def _require_as_put(
    session: Session, address: TableAddress, table: TableName, line: ListedRelease, first: int
) -> None:
    """Raises InputError unless the database holds what was audited: triggers may change it."""
    listed = listed_releases(session, table)
    is_listed = bool(listed) and listed[-1] == line
    rows = TableRows.of(session, table)
    is_whole = is_listed and sql.count_rows(session, table) == first + line.rows
    if not is_whole or not rows.are_as_certified(line, first):
        raise InputError(
            f"output '{address.shown}': the database itself changed rows or the certificate after"
            f" the audit; remove the trigger or rule of the table or of '{RELEASES}'; nothing was"
            " written"
        )


def _commit(session: Session, address: TableAddress, line: ListedRelease) -> None:
    try:
        session.commit()
    except DatabaseRefusal as refused:
        if refused.is_lost and _is_there(address, line):
            return
        why = refused.args[0].partition(";")[0]
        raise refused.as_error(
            f"output '{address.shown}': release {line.release:04d} is in the ledger, but perhaps"
            f" not yet in the table ({why}); run the same command again, which writes it there if"
            " it is missing"
        ) from None


def _is_there(address: TableAddress, line: ListedRelease) -> bool:
    try:
        with opened(address) as session:
            return line in listed_releases(session, session.named(address))
    except (InputError, PartyError):
        return False


# Reading


def read_table(
    address: TableAddress, reading: dialect.Reading
) -> tuple[pl.DataFrame, str, Mapping[str, int]]:
    """The cells of a table, the hash of their texts, and how many cells are NaN, by column; raises
    InputError. reading: what is needed, and which mark other numbers have as text. Whole numbers
    and days are such where their columns are declared so; all else is text.

    Of a table that a ledger writes: those of the release that the address names, with the hash of
    its file; or else the table as of the last one.
    """
    with opened(address) as session:
        table = session.named(address)
        releases = _releases_in(session, table)
        if not releases:
            _refuse_number(address)
            frame, sha256 = tables.rows_of_table(session, address, table, reading)
            columns = session.columns(table)
            names = [c.name for c in columns if c.holds is pl.Float64 and reading.needs(c.name)]
            nans = session.nan_counts(table, names)
            return sql.as_declared(frame, columns, reading), sha256, nans
        rows = TableRows.of(session, table)
        if address.release is None:
            last = releases[-1]
            begun = next((line for line in releases if line.release >= last.since), last)
            frame = rows.shown(begun, and_later=True)
            return frame, tables.rows_sha256(frame), {}
        frame = rows.shown(_asked(address, releases), and_later=False)
        return frame, csv_sha256(frame), {}


def certificate_beside(address: TableAddress) -> bytes | None:
    """The certificate that stands in the database beside a release; None where there is none."""
    with opened(address) as session:
        releases = _releases_in(session, session.named(address))
    if not releases:
        _refuse_number(address)
        return tables.certificate_of(address)
    if address.release is None:
        raise InputError(
            f"{address.where}: holds several releases of a ledger; name one with &release=N, or"
            " check all of them with 'shoal ledger verify'"
        )
    return _asked(address, releases).certificate.encode()


def _releases_in(session: Session, table: TableName) -> list[ListedRelease]:
    """The releases of a table that a ledger writes; none of other tables."""
    names = {column.name for column in session.columns(table)}
    return listed_releases(session, table) if {tables.ROW, tables.RELEASE} <= names else []


def _refuse_number(address: TableAddress) -> None:
    if address.release is not None:
        raise InputError(
            f"{address.where}: holds no releases of a ledger, or none that '{RELEASES}' lists;"
            " leave out 'release'"
        )


def _asked(address: TableAddress, releases: list[ListedRelease]) -> ListedRelease:
    for line in releases:
        if line.release == address.release:
            return line
    raise InputError(
        f"{address.where}: there is no such release; it holds 1 to {releases[-1].release}"
    )


# The rows of a table that takes the releases of a ledger, read and compared with what is listed.
#
# Rows of a release lie behind one another, so its number of rows says where it is; written as
# CSV, they are byte for byte the file that its certificate names.


CSV = dialect.default_dialect(".csv")


@dataclass(frozen=True)
class TableRows:
    """A table in a transaction."""

    session: Session
    table: TableName
    columns: Mapping[str, SqlColumn]

    @classmethod
    def of(cls, session: Session, table: TableName) -> TableRows:
        return cls(session, table, {column.name: column for column in session.columns(table)})

    def shown(self, line: ListedRelease, and_later: bool) -> pl.DataFrame:
        """The published cells that bear the number of a release, wherever they lie, as text.

        These are what somebody's own SELECT finds, also where numbers were changed or rows added.
        """
        which = f"{sql.cell_of(tables.RELEASE)} {'>=' if and_later else '='} {line.release}"
        return self._cells(line, which).drop(tables.ROW, tables.RELEASE)

    def _cells(self, line: ListedRelease, which: str) -> pl.DataFrame:
        """Rows as text, in the order of a release's columns, with both numbers."""
        names = [tables.ROW, tables.RELEASE, *(line.names or self._names)]
        if not {*names} <= {*self.columns}:
            raise InputError(
                f"table '{self.table.name}': lacks columns that its certificates name; restore it"
            )
        columns = [self.columns[name] for name in names]
        which = f"WHERE {which} ORDER BY {sql.cell_of(tables.ROW)}"
        return sql.rows_as_text(self.session, self.table, columns, which)

    @property
    def _names(self) -> list[str]:
        return [name for name in self.columns if name not in (tables.ROW, tables.RELEASE)]

    def are_as_certified(self, line: ListedRelease, first: int) -> bool:
        """Whether a release has the rows and numbers it was put with, behind `first` others."""
        row = sql.cell_of(tables.ROW)
        frame = self._cells(line, f"{row} > {first} AND {row} <= {first + max(line.rows, 0)}")
        # first: the list may state more rows than any memory holds numbers
        if frame.height != line.rows:
            return False
        numbers = pl.int_range(first + 1, first + 1 + line.rows, eager=True).cast(pl.String)
        return (
            frame[tables.ROW].equals(numbers, check_names=False)
            and bool((frame[tables.RELEASE] == str(line.release)).all())
            and csv_sha256(frame.drop(tables.ROW, tables.RELEASE)) == line.data_sha256
        )

    def damage(self, releases: Sequence[ListedRelease]) -> list[str]:
        """What is not as it was put, each in a line: of the columns, the list or the rows."""
        if {*self.columns} != {tables.ROW, tables.RELEASE, *(releases[0].names or self._names)}:
            return ["columns: some were added, removed or renamed"]
        lines: list[ListedRelease | None] = [None, *releases]
        for number, (before, line) in enumerate(zip(lines, releases, strict=False), start=1):
            if not line.follows(before):
                return [f"release {number:04d}: its line in '{RELEASES}' is missing or was changed"]
        findings, first = [], 0
        for line in releases:
            if not self.are_as_certified(line, first):
                findings.append(f"release {line.release:04d}: its rows were changed")
            first += line.rows
        if sql.count_rows(self.session, self.table) != first:
            findings.append("rows: some were added or taken away")
        return findings


def csv_sha256(frame: pl.DataFrame) -> str:
    """The hash of the file that a ledger keeps of these rows."""
    file = io.BytesIO()
    delimited.write(frame, file, CSV)
    return hashlib.sha256(file.getvalue()).hexdigest()
