"""Tables in databases: sessions, tables that are read whole in an order, and releases that are made
in one transaction.

    BEGIN; a new table is filled, read back and audited; it takes the name of the release;
    its certificate goes into shoal_certificates(name, sha256, certificate, created); COMMIT

A release has a column more, `shoal_row`, which numbers its rows from 1: a table has no order.
"""

import hashlib
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass

import polars as pl
from polars import selectors

from shoal.connectors import delimited, location
from shoal.connectors.database import session as sql
from shoal.connectors.database.session import DatabaseRefusal, OpenTable, Session
from shoal.connectors.dialect import AS_FOUND, Reading
from shoal.connectors.formats import SourceFile
from shoal.connectors.location import CERTIFICATES, STREAMS, Location, TableAddress
from shoal.data.table import Table, names_like_patterns
from shoal.errors import InputError, PartyError

ROW, RELEASE = "shoal_row", "shoal_release"
EVERY = "*"
"""What `order` names all columns by."""
_TYPES: dict[object, str] = {pl.Int64: "bigint", pl.Float64: "double precision", pl.Date: "date"}
"""What a column of a release is in SQL; all others are text."""
_PROOFS = sql.KeptList(CERTIFICATES, ("name", "sha256", "certificate", "created"))


def certificate_of(address: TableAddress) -> bytes | None:
    """The certificate that stands in the database beside a release; None where there is none."""
    with opened(address) as table:
        _, stored = _certified(table)
    return None if stored is None else stored.encode()


def _certified(table: OpenTable) -> tuple[str | None, str | None]:
    """The hash and the certificate of a release; None where there are none."""
    sha256, certificate, _ = _PROOFS.line(table) or (None, None, None)
    return sha256, certificate


def rows_of_table(table: OpenTable, reading: Reading = AS_FOUND) -> tuple[pl.DataFrame, str]:
    """The cells of a table as text, in its order, and their hash; raises InputError.

    reading: which columns are needed; of others, cells of any type are some text.
    """
    columns, where = table.columns, table.address.where
    if not columns:
        table.session.lacking(table, ["SELECT"])  # refuses a schema that is not there
        hint = "; a schema is named by &schema=NAME" if "." in table.name else "; check its name"
        raise InputError(f"{where}: there is no such table{hint}")
    names = [column.name for column in columns]
    InputError.raise_for(names_like_patterns(names, f"{where}: "))
    columns = [column if reading.needs(column.name) else column.of_any_type for column in columns]
    odd = [
        f"column '{column.name}' is of type {column.unfit}" for column in columns if column.unfit
    ]
    if odd:
        raise InputError(
            f"{where}: {', '.join(odd)}; give plain values, such as in a view, or a policy"
            " that drops the column (role: drop)"
        )
    table.require_rights(["SELECT"])
    order = _order(table, columns)
    frame = table.rows_as_text(columns, f"ORDER BY {', '.join(order.values())}")
    if ROW in names:
        _check_numbers(frame, table.address)
        frame = frame.drop(ROW)
    elif order.keys() < set(names):
        _check_order(frame.select(order.keys()), table.address)
    return frame, rows_sha256(frame)


def _order(table: OpenTable, columns: list[sql.SqlColumn]) -> dict[str, str]:
    """The columns that a table is sorted by, with SQL: all, if nothing tells its rows apart."""
    by_name = {column.name: column.in_order for column in columns}
    if ROW in by_name:
        return {ROW: by_name[ROW]}
    key = table.session.key(table)
    names = list(table.address.order) or key or [EVERY]
    if names == [EVERY]:
        return by_name
    hidden = {name: sql.cell_of(name) for name in key}
    unknown = [name for name in names if name not in hidden | by_name]
    if unknown:
        raise InputError(
            f"{table.address.where}: 'order' names column '{unknown[0]}', which is not there;"
            " name columns that tell its rows apart, or say order=* for all of them"
        )
    return {name: (hidden | by_name)[name] for name in names}


def _check_order(key: pl.DataFrame, address: TableAddress) -> None:
    """A primary key may have duplicates: in tables that inherit, or with NULLs in SQLite."""
    alike = int(key.is_duplicated().sum())
    if alike:
        which = "the columns of 'order'" if address.order else "the primary key"
        way_out = "name more columns" if address.order else "name other columns with &order=A,B"
        way_out += ", or say order=* for all of them"
        raise InputError(
            f"{address.where}: {alike} rows agree in {which}, so their order is open; {way_out}"
        )


class RowsChanged(InputError):
    """Rows of a release were added or taken away. sha256: the hash of what is there, numbered."""

    sha256: str


def _check_numbers(frame: pl.DataFrame, address: TableAddress) -> None:
    counted = pl.int_range(1, frame.height + 1, eager=True).cast(pl.String)
    if not frame[ROW].equals(counted, check_names=False):
        changed = RowsChanged(
            f"{address.where}: its column '{ROW}' does not count from 1 without a gap, so rows were"
            " added or taken away; publish it again, a stream with a new --checkpoint, into a new"
            f" table, or into this one once it is dropped and '{STREAMS}' has no line of it; if the"
            " column is not Shoal's, give it another name, such as in a view"
        )
        changed.sha256 = rows_sha256(frame)
        raise changed


@dataclass
class TableDraft:
    """A release in an open transaction. table: as it is afterwards. unnamed: until then."""

    table: OpenTable
    unnamed: OpenTable
    sha256: str = ""
    certificate: str = ""

    def write(self, frame: pl.DataFrame) -> None:
        """Puts all records; whatever is neither number nor day as text."""
        InputError.raise_for(column_findings(self.table.session, frame.columns))
        typed = selectors.by_dtype(pl.Int64, pl.Float64, pl.Date)
        frame = delimited.with_moments_as_text(frame).with_columns((~typed).cast(pl.String))
        create_release(self.unnamed, frame.schema)
        self.unnamed.session.insert(self.unnamed, numbered(frame))

    def read(self) -> SourceFile:
        frame, self.sha256 = rows_of_table(self.unnamed)
        return SourceFile(Table(frame), self.sha256)

    def certify(self, certificate: str) -> None:
        """Gives the table its name, and puts the certificate beside it."""
        self.certificate = certificate
        run = self.table.session.execute
        if self.table.columns:
            run(f"DROP TABLE {self.table.quoted}")
        run(f"ALTER TABLE {self.unnamed.quoted} RENAME TO {sql.quoted(self.table.name)}")
        keep_certificate(self.table, self.sha256, certificate)


def column_findings(session: Session, names: Sequence[str]) -> list[str]:
    """Why a release can't have columns of these names."""
    findings = session.name_findings(names)
    own = {ROW, RELEASE} & {name.lower() for name in names}
    findings += [f"name '{name}': is Shoal's own; rename the column" for name in sorted(own)]
    return [f"column {finding}" for finding in findings]


def create_release(table: OpenTable, types: Mapping[str, object]) -> None:
    """An empty table for a release, its rows numbered. types: of its columns."""
    cells = ", ".join(
        f"{sql.quoted(name)} {_TYPES.get(kind, 'text')}" for name, kind in types.items()
    )
    table.session.execute(f"CREATE TABLE {table.quoted} ({ROW} {table.session.numbers}, {cells})")


def numbered(frame: pl.DataFrame, before: int = 0) -> pl.DataFrame:
    """The rows with their numbers in front. before: how many rows are before the first."""
    numbers = pl.int_range(before + 1, before + 1 + frame.height, dtype=pl.Int64, eager=True)
    return frame.clone().insert_column(0, numbers.alias(ROW))


def put_behind(
    table: OpenTable, frame: pl.DataFrame, before: int, kept: sql.KeptList, line: Sequence[str]
) -> bool:
    """Puts numbered rows behind `before` others, and a line about the table into a list; whether
    the database then holds both as they were put, since triggers may change them.
    """
    rows = numbered(frame, before)
    table.session.insert(table, rows)
    kept.put(table, *line)
    table.session.run_deferred()
    columns, row = {column.name: column for column in table.columns}, sql.cell_of(ROW)
    own = [columns[name] for name in rows.columns]
    found = table.rows_as_text(own, f"WHERE {row} > {before} ORDER BY {row}")
    is_listed = kept.lines(table)[-1:] == [tuple(line)]
    return is_listed and found.equals(rows.select(pl.all().cast(pl.String)))


def keep_certificate(table: OpenTable, sha256: str, certificate: str) -> None:
    """Puts a certificate into the table of certificates, in place of an earlier one.

    Raises InputError where triggers or rules of the database make something else of the
    certificate, or of the rows that it was made for.
    """
    _PROOFS.put(table, sha256, certificate, str(json.loads(certificate).get("date")))
    table.session.run_deferred()
    found = rows_of_table(table)[1], _certified(table)[1]
    if found != (sha256, certificate):
        raise InputError(
            f"output '{table.address.shown}': the database itself changed the release or its"
            f" certificate after the audit; remove the trigger or rule of '{CERTIFICATES}'"
        )


def check_releases(places: Sequence[Location], replace: bool) -> None:
    """Raises InputError where no release can be put into tables of one database."""
    with opened(places[0].address, writing=True) as first:
        for place in places:
            _check_target(OpenTable.of(first.session, place.address), replace)


@contextmanager
def table_drafts(places: Sequence[Location], replace: bool) -> Iterator[list[TableDraft]]:
    """Releases in tables of one database, committed together if the block succeeds, and else rolled
    back.

    replace: whether earlier releases of these names give way; no other table ever does.
    """
    with opened(places[0].address, writing=True) as first:
        drafts = []
        for place in places:
            table = OpenTable.of(first.session, place.address)
            _check_target(table, replace)
            unnamed = table.beside(f"shoal_tmp_{secrets.token_hex(8)}")
            drafts.append(TableDraft(table, unnamed))
        yield drafts
        _commit(drafts[0])


def _check_target(table: OpenTable, replace: bool) -> None:
    location.require_whole(table.address)
    where = f"output '{table.address.shown}'"
    wrong = target_findings(table)
    if wrong:
        raise InputError(f"{where}: {wrong[0]}")
    columns = table.columns
    replaced = ("OWNERSHIP", "SELECT") if columns and replace else ()
    table.require_rights(("CREATE", *replaced), **{CERTIFICATES: sql.KEEPING})
    if not columns:
        return
    is_release = any(column.name == ROW for column in columns)
    sha256, certificate = _certified(table)
    if not is_release or certificate is None:
        raise InputError(f"{where}: is a table that Shoal has not published; name a new one")
    if not replace:
        raise location.is_taken(where, "table")
    if not _has_hash(table, sha256):
        raise InputError(
            f"{where}: holds something other than the release that was certified; drop it yourself"
            " if nobody needs it, or name a new table"
        )


def target_findings(table: OpenTable) -> list[str]:
    """Why no release can have this name."""
    findings = table.session.name_findings([table.name])
    own = location.OWN_TABLES.get(table.name.lower())
    return findings if own is None else [*findings, f"is where {own} are kept"]


def taken_finding(is_there: bool, kept: str, owner: str) -> str:
    """Why nothing can begin in a table. kept: the list that names it. owner: who may write it."""
    if is_there:
        return f"is there already; name a new table, or {owner}"
    return f"is gone, but '{kept}' still lists it; delete its lines there, or name a new table"


def _has_hash(table: OpenTable, sha256: str | None) -> bool:
    try:
        return rows_of_table(table)[1] == sha256
    except InputError:
        return False


def _commit(draft: TableDraft) -> None:
    try:
        draft.table.session.commit()
    except DatabaseRefusal as refused:
        if not refused.is_lost:
            raise
        if _is_there(draft):
            return
        raise refused.as_error(
            f"output '{draft.table.address.shown}': the connection was lost at the commit, and the"
            " release is not there; run again"
        ) from None


def _is_there(draft: TableDraft) -> bool:
    """Whether the certificate was committed though nobody said so; by it, the release was, too."""
    try:
        stored = certificate_of(draft.table.address)
    except (InputError, PartyError):
        raise PartyError(
            f"output '{draft.table.address.shown}': the connection was lost at the commit, and the"
            " server does not answer; look with 'shoal verify' whether the release is there"
        ) from None
    return stored == draft.certificate.encode()


# The hash of a table's rows, the same in any database: what a certificate names.
#
# SHA-256 over the names of the columns and then the rows, each a line. A cell is its length in
# bytes, a colon, its text and a comma; NULL is `-,`. So no two tables are written alike.


def rows_sha256(frame: pl.DataFrame) -> str:
    names = "".join(f"{len(name.encode())}:{name}," for name in frame.columns)
    digest = hashlib.sha256(f"{names}\n".encode())
    cells = [_cell(name) for name in frame.columns]
    for rows in frame.iter_slices(sql.BATCH):
        lines = rows.select(pl.concat_str([*cells, pl.lit("\n")]))
        digest.update(str(lines.to_series().str.join("").item()).encode())
    return digest.hexdigest()


def _cell(name: str) -> pl.Expr:
    cell = pl.col(name)
    length = cell.str.len_bytes().cast(pl.String)
    return pl.concat_str([length, pl.lit(":"), cell, pl.lit(",")]).fill_null("-,")


# A transaction with the database that an address names.


class _Snapshot(ExitStack):
    """Sessions that are kept until its end, by kind and location of their database."""

    def __init__(self) -> None:
        super().__init__()
        self._kept: dict[tuple[str, str], Session] = {}

    def session(self, address: TableAddress) -> Session:
        place = address.kind, address.location
        if place not in self._kept:
            self._kept[place] = self.enter_context(_connected(address, writing=False))
        return self._kept[place]


_snapshot: ContextVar[_Snapshot | None] = ContextVar("snapshot", default=None)


@contextmanager
def one_snapshot() -> Iterator[None]:
    """All that is read of a database in the block is read in one transaction: nothing that others
    write meanwhile is seen in one table and missing in another.
    """
    with _Snapshot() as snapshot:
        before = _snapshot.set(snapshot)
        try:
            yield
        finally:
            _snapshot.reset(before)


@contextmanager
def opened(address: TableAddress, writing: bool = False) -> Iterator[OpenTable]:
    """A table in a transaction, rolled back at the end unless it was committed; refusals become
    InputErrors, and the loss of a server a PartyError. In `one_snapshot`, those that read one
    database share one.
    """
    snapshot = None if writing else _snapshot.get()
    try:
        with ExitStack() as own:
            if snapshot is None:
                session = own.enter_context(_connected(address, writing))
            else:
                session = snapshot.session(address)
            yield OpenTable.of(session, address)
    except DatabaseRefusal as refused:
        raise refused.as_error(f"{address.where}: {refused.args[0]}") from None


@contextmanager
def _connected(address: TableAddress, writing: bool) -> Iterator[Session]:
    session = _connect(address, writing)
    try:
        yield session
    finally:
        with suppress(DatabaseRefusal):
            session.rollback()
        session.close()


def _connect(address: TableAddress, writing: bool) -> Session:
    if address.kind == location.SQLITE:
        from shoal.connectors.database.sqlite import SqliteSession

        return SqliteSession.connect(address, writing)
    from shoal.connectors.database.postgresql import PostgresSession

    return PostgresSession.connect(address, writing)
