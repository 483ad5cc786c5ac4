"""One connection to a database and its one transaction: what SQLite and PostgreSQL both give."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import polars as pl

from shoal.connectors.dialect import Reading
from shoal.connectors.location import TableAddress
from shoal.errors import InputError, PartyError, ShoalError

BATCH = 1 << 16
"""Rows that are handed over at once."""


@dataclass(frozen=True)
class TableName:
    """A table and its schema, as they stand in the catalogue."""

    schema: str
    name: str

    @property
    def quoted(self) -> str:
        return f"{quoted(self.schema)}.{quoted(self.name)}"

    def beside(self, name: str) -> Self:
        """Another table of the same schema."""
        return replace(self, name=name)


Held: TypeAlias = "type[pl.Int64 | pl.Float64 | pl.Date | pl.String]"


@dataclass(frozen=True)
class SqlColumn:
    """A column of a table. as_text, in_order: SQL for its cells as text, and to sort by it, so that
    whatever differs as text has one order. unneeded: SQL for cells of any type as some text, where
    nobody needs them.

    unfit: its type, where its values have no one text; else empty. holds: whole numbers, numbers or
    days, where it is declared to; else texts.
    """

    name: str
    as_text: str
    in_order: str
    unneeded: str
    unfit: str = ""
    holds: Held = pl.String

    @property
    def of_any_type(self) -> "SqlColumn":
        """The column where nobody needs its cells, which are some text then."""
        return SqlColumn(self.name, self.unneeded, self.unneeded, self.unneeded)


def quoted(name: str) -> str:
    """An identifier in SQL, whatever signs are in it."""
    return '"' + name.replace('"', '""') + '"'


SOURCE = "shoal_source"
"""What a query calls the table that it reads. Cells are named by it: ORDER BY takes a bare name for
that of a result, and a table may have columns that are named like ours."""


def cell_of(name: str) -> str:
    """A column of the table that is read, in SQL."""
    return f"{SOURCE}.{quoted(name)}"


class DatabaseRefusal(Exception):
    """What a database or its driver said no to, in our words: theirs may hold values.

    is_lost: whether no server answers, or no longer, so that nobody knows what became of a commit.
    is_locked: whether somebody else stood in the way, by a lock or a transaction at the same time.
    """

    def __init__(self, why: str, is_lost: bool = False, is_locked: bool = False) -> None:
        super().__init__(why)
        self.is_lost, self.is_locked = is_lost, is_locked

    def as_error(self, message: str) -> ShoalError:
        """What ends a command: PartyError (status 4) where it may succeed later, else InputError
        (2).
        """
        return (PartyError if self.is_lost or self.is_locked else InputError)(message)


class Session(Protocol):
    """A connection in a transaction. Every method raises DatabaseRefusal.

    numbers: the type of a column that numbers rows. key_numbers: as the primary key.
    """

    numbers: ClassVar[str]
    key_numbers: ClassVar[str]

    def named(self, address: TableAddress) -> TableName:
        """The table of an address, with the usual schema where it names none."""

    def columns(self, table: TableName) -> list[SqlColumn]:
        """Its columns in their order; none where there is no such table."""

    def key(self, table: TableName) -> list[str]:
        """The columns of its primary key, or what else tells its rows apart; else none."""

    def name_findings(self, names: Sequence[str]) -> list[str]:
        """What is wrong with names of tables or columns."""

    def lacking(self, table: TableName, rights: Sequence[str]) -> list[str]:
        """Which rights the user lacks, as SQL names them: of these on a table that is there
        (`OWNERSHIP`, too), or to make one that is not. Whoever writes a file has all of them.
        """
        return []

    def execute(self, sql: str, parameters: Sequence[str] = ()) -> None:
        """Runs a statement; parameters stand in it as $1, $2."""

    def query(self, sql: str, parameters: Sequence[str] = ()) -> pl.DataFrame:
        """All rows of a SELECT of text; its columns have any names."""

    def nan_counts(self, table: TableName, names: Sequence[str]) -> Mapping[str, int]:
        """How many cells of these columns of numbers are NaN, which is read as no value; nothing
        where NULL itself is kept in its place.
        """
        return {}

    def insert(self, table: TableName, frame: pl.DataFrame) -> None:
        """Puts rows into a table, by the names of its columns."""

    def run_deferred(self) -> None:
        """Has the database do now what it would do at the commit, such as deferred triggers."""

    def commit(self) -> None: ...

    def rollback(self) -> None: ...

    def close(self) -> None: ...


# What is read and written the same in every database.


@dataclass(frozen=True)
class OpenTable(TableName):
    """The table of an address in a transaction, whether it is there yet or not."""

    session: Session
    address: TableAddress

    @classmethod
    def of(cls, session: Session, address: TableAddress) -> Self:
        return cls(**vars(session.named(address)), session=session, address=address)

    @property
    def columns(self) -> list[SqlColumn]:
        """Those that it has now, in their order; none where there is no such table."""
        return self.session.columns(self)

    def count(self) -> int:
        """How many rows it has."""
        rows = self.session.query(f"SELECT CAST(count(*) AS text) FROM {self.quoted}")
        return int(rows.item())

    def rows_as_text(self, columns: Sequence[SqlColumn], which: str) -> pl.DataFrame:
        """The cells of these columns as text. which: SQL that says of which rows, in which order.

        Raises DatabaseRefusal where one holds what no text can.
        """
        cells = ", ".join(f'{column.as_text} AS "{place}"' for place, column in enumerate(columns))
        frame = self.session.query(f"SELECT {cells} FROM {self.quoted} AS {SOURCE} {which}")
        frame.columns = [column.name for column in columns]
        for held in frame:
            if held.str.contains("\0", literal=True).any():
                raise DatabaseRefusal(f"column '{held.name}' holds null characters; take them out")
        return frame

    def require_rights(self, rights: Sequence[str], **beside: Sequence[str]) -> None:
        """Raises DatabaseRefusal with every right that is lacking, before any work is done.

        beside: the rights that are needed on other tables of the schema, by name.
        """
        wanted = [(self, rights), *((self.beside(name), more) for name, more in beside.items())]
        found = [right for table, more in wanted for right in self.session.lacking(table, more)]
        if found:
            lacking = ", ".join(dict.fromkeys(found))
            more = ", ownership by ALTER TABLE ... OWNER TO" if "OWNERSHIP ON " in lacking else ""
            raise DatabaseRefusal(f"this user lacks {lacking}; ask the owner to grant it{more}")


KEEPING = ("SELECT", "INSERT", "DELETE")
"""The rights that it takes to keep lines in a list, each in place of an earlier one."""


@dataclass(frozen=True)
class KeptList:
    """A table that says something of others of its schema, in lines by their names.

    columns: the first is the name, and the second orders lines; texts but for `numbers`. key: how
    many of them tell lines apart; where it is the name alone, a line gives way to the next.
    """

    name: str
    columns: tuple[str, ...]
    numbers: tuple[str, ...] = ()
    key: int = 1

    def lines(self, table: OpenTable) -> list[tuple[Any, ...]]:
        """What it says of a table, in texts; nothing where it is missing or another program's."""
        kept = table.beside(self.name)
        if not {*self.columns} <= {column.name for column in kept.columns}:
            return []
        cells = ", ".join(f"CAST({name} AS text)" for name in self.columns[1:])
        with self._in_its_name():
            kept.require_rights(["SELECT"])
            return table.session.query(
                f"SELECT {cells} FROM {kept.quoted} AS {SOURCE} WHERE {self.columns[0]} = $1"
                f" ORDER BY {cell_of(self.columns[1])}",
                (table.name,),
            ).rows()

    def line(self, table: OpenTable) -> tuple[Any, ...] | None:
        """The one line of a table; None where there is none, or several."""
        lines = self.lines(table)
        return lines[0] if len(lines) == 1 else None

    def put(self, table: OpenTable, *line: str) -> None:
        """Puts a line about a table; raises DatabaseRefusal for a second one of the same key."""
        kept, run = table.beside(self.name), table.session.execute
        kinds = ["bigint" if name in self.numbers else "text" for name in self.columns]
        with self._in_its_name():
            if not kept.columns:
                typed = zip(self.columns, kinds, strict=True)
                types = ", ".join(f"{name} {kind} NOT NULL" for name, kind in typed)
                key = ", ".join(self.columns[: self.key])
                run(f"CREATE TABLE {kept.quoted} ({types}, PRIMARY KEY ({key}))")
            if self.key == 1:
                run(f"DELETE FROM {kept.quoted} WHERE {self.columns[0]} = $1", (table.name,))
            cells = ", ".join(f"CAST(${place} AS {kind})" for place, kind in enumerate(kinds, 1))
            places = f"{kept.quoted} ({', '.join(self.columns)})"
            run(f"INSERT INTO {places} VALUES ({cells})", (table.name, *line))

    @contextmanager
    def _in_its_name(self) -> Iterator[None]:
        """A refusal names the list that it is about, and not the table beside it."""
        try:
            yield
        except DatabaseRefusal as refused:
            if not refused.is_lost:
                refused.args = (f"the table '{self.name}' beside it: {refused.args[0]}",)
            raise


def as_declared(
    frame: pl.DataFrame, columns: Sequence[SqlColumn], reading: Reading
) -> pl.DataFrame:
    """Texts as the whole numbers or days that their columns are declared to hold, where all are;
    other numbers stay texts, of the digits they have, with the mark of the reading.
    """
    return frame.with_columns(
        _held(frame[column.name], column.holds, reading.of(column.name).decimal)
        for column in columns
        if column.holds is not pl.String and column.name in frame.columns
    )


def _held(text: pl.Series, kind: Held, mark: str) -> pl.Series:
    is_day = kind is pl.Date
    cells = text.str.to_date("%Y-%m-%d", strict=False) if is_day else text.cast(kind, strict=False)
    if kind is not pl.Float64 and cells.cast(pl.String).equals(text):
        return cells
    is_number = text.cast(pl.Float64, strict=False).is_not_null()
    return text.str.replace(".", mark, literal=True).zip_with(is_number, text)
