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
from shoal.connectors.database.session import DatabaseRefusal, KeptList, OpenTable, SqlColumn
from shoal.connectors.database.tables import opened
from shoal.connectors.formats import SourceFile
from shoal.connectors.ledger.layout import mapping_in
from shoal.connectors.location import RELEASES, TableAddress, require_whole
from shoal.data.table import Table
from shoal.data.warnings import nan_remarks
from shoal.errors import ANOTHER_LEDGER, InputError, PartyError

_LIST = KeptList(
    RELEASES,
    ("name", "release", "since", "rows", "certificate", "created"),
    numbers=("release", "since", "rows"),
    key=2,
)
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


def listed_releases(table: OpenTable) -> list[ListedRelease]:
    """The releases of a table, rising; none where the list is missing or another program's."""
    return [
        ListedRelease(_number(release), _number(since), _number(count), proof or "", created or "")
        for release, since, count, proof, created in _LIST.lines(table)
    ]


def _number(text: str | None) -> int:
    """What a cell of the list says; -1, which no release has, where somebody made it no number."""
    return int(text) if text is not None and _COUNT.fullmatch(text) else -1


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
    with opened(address, writing=True) as table:
        findings = tables.target_findings(table)
        is_there = bool(table.columns)
        if is_there or listed_releases(table):
            findings.append(tables.taken_finding(is_there, RELEASES, "the ledger that writes it"))
    InputError.raise_for(f"output '{address.shown}': {finding}" for finding in findings)


def state_of(address: TableAddress, writing: bool = False) -> TableState:
    """What a table holds, every row compared with the certificates beside it.

    writing: whether it is about to be written, and may have to be made; else it is only read.
    """
    require_whole(address)
    with opened(address, writing) as table:
        if writing:
            adding = ("SELECT", "INSERT")
            table.require_rights(adding, **{RELEASES: adding})
        rows, releases = TableRows.of(table), listed_releases(table)
        damage = rows.damage(releases) if rows.columns and releases else []
    return TableState(bool(rows.columns), releases, damage)


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
    with opened(address, writing=True) as table:
        first = _begin(table, before, frame.columns)
        of_release = pl.lit(line.release, pl.Int64).alias(tables.RELEASE)
        rows = frame.select(of_release, pl.all())
        is_as_put = tables.put_behind(table, rows, first, _LIST, [*map(str, vars(line).values())])
        is_certified = csv_sha256(frame) == line.data_sha256
        if not (is_as_put and is_certified and table.count() == first + line.rows):
            raise InputError(
                f"output '{address.shown}': the database itself changed rows or the certificate"
                f" after the audit; remove the trigger or rule of the table or of '{RELEASES}';"
                " nothing was written"
            )
        yield line
        _commit(table, line)


def _begin(table: OpenTable, before: ListedRelease | None, names: Sequence[str]) -> int:
    """Makes a new table, or checks that the old one takes the release; its number of rows."""
    where = f"output '{table.address.shown}'"
    listed, columns = listed_releases(table), {column.name for column in table.columns}
    is_left = (listed[-1] if listed else None) == before and bool(columns) == bool(before)
    count = sum(line.rows for line in listed)
    if not is_left or (columns and table.count() != count):
        raise InputError(f"{where}: somebody else wrote into it meanwhile; run again")
    if before is None:
        findings = tables.column_findings(table.session, names)
        InputError.raise_for(f"{where}: {finding}" for finding in findings)
        texts = ", ".join(f"{sql.quoted(name)} text" for name in names)
        table.session.execute(
            f"CREATE TABLE {table.quoted} ({tables.ROW} {table.session.key_numbers},"
            f" {tables.RELEASE} bigint NOT NULL, {texts})"
        )
    elif columns != {tables.ROW, tables.RELEASE, *names}:
        raise InputError(
            f"{where}: this release has other columns than the table; publish the same columns, or"
            f" {ANOTHER_LEDGER}"
        )
    return count


def _commit(table: OpenTable, line: ListedRelease) -> None:
    try:
        table.session.commit()
    except DatabaseRefusal as refused:
        if refused.is_lost and _is_there(table.address, line):
            return
        why = refused.args[0].partition(";")[0]
        raise refused.as_error(
            f"output '{table.address.shown}': release {line.release:04d} is in the ledger, but"
            f" perhaps not yet in the table ({why}); run the same command again, which writes it"
            " there if it is missing"
        ) from None


def _is_there(address: TableAddress, line: ListedRelease) -> bool:
    try:
        with opened(address) as table:
            return line in listed_releases(table)
    except (InputError, PartyError):
        return False


# Reading


def read_table(address: TableAddress, reading: dialect.Reading) -> SourceFile:
    """The cells of a table, with the hash of their texts; raises InputError. reading: what is
    needed, and which mark other numbers have as text. Whole numbers and days are such where their
    columns are declared so; all else is text.

    Of a table that a ledger writes: those of the release that the address names, with the hash of
    its file; or else the table as of the last one.
    """
    with opened(address) as table:
        releases = _releases_in(table)
        if not releases:
            _refuse_number(address)
            frame, sha256 = tables.rows_of_table(table, reading)
            columns = table.columns
            names = [c.name for c in columns if c.holds is pl.Float64 and reading.needs(c.name)]
            nans = table.session.nan_counts(table, names)
            frame = sql.as_declared(frame, columns, reading)
            return SourceFile(Table(frame), sha256, remarks=nan_remarks(nans))
        rows = TableRows.of(table)
        if address.release is None:
            last = releases[-1]
            begun = next((line for line in releases if line.release >= last.since), last)
            frame = rows.shown(begun, and_later=True)
            return SourceFile(Table(frame), tables.rows_sha256(frame))
        frame = rows.shown(_asked(address, releases), and_later=False)
        return SourceFile(Table(frame), csv_sha256(frame))


def certificate_beside(address: TableAddress) -> bytes | None:
    """The certificate that stands in the database beside a release; None where there is none."""
    with opened(address) as table:
        releases = _releases_in(table)
    if not releases:
        _refuse_number(address)
        return tables.certificate_of(address)
    if address.release is None:
        raise InputError(
            f"{address.where}: holds several releases of a ledger; name one with &release=N, or"
            " check all of them with 'shoal ledger verify'"
        )
    return _asked(address, releases).certificate.encode()


def _releases_in(table: OpenTable) -> list[ListedRelease]:
    """The releases of a table that a ledger writes; none of other tables."""
    names = {column.name for column in table.columns}
    return listed_releases(table) if {tables.ROW, tables.RELEASE} <= names else []


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
    """A table, with the columns that it has."""

    table: OpenTable
    columns: Mapping[str, SqlColumn]

    @classmethod
    def of(cls, table: OpenTable) -> TableRows:
        return cls(table, {column.name: column for column in table.columns})

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
        return self.table.rows_as_text(columns, f"WHERE {which} ORDER BY {sql.cell_of(tables.ROW)}")

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
        if self.table.count() != first:
            findings.append("rows: some were added or taken away")
        return findings


def csv_sha256(frame: pl.DataFrame) -> str:
    """The hash of the file that a ledger keeps of these rows."""
    file = io.BytesIO()
    delimited.write(frame, file, CSV)
    return hashlib.sha256(file.getvalue()).hexdigest()
