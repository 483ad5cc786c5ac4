"""SQLite by the standard library."""

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import polars as pl
from polars import selectors

from shoal.connectors.database.session import (
    BATCH,
    SOURCE,
    DatabaseRefusal,
    Held,
    Session,
    SqlColumn,
    TableName,
    cell_of,
    quoted,
)
from shoal.connectors.location import TableAddress
from shoal.data.regular_files import CELL, MOST, most_unpacked

WAY_OUT = "write what it shows into a table"
PATIENCE = 10.0
"""Seconds to wait for another writer."""
_WHY = {
    "SQLITE_BUSY": "somebody else is writing to it; try again when they are done",
    "SQLITE_LOCKED": "somebody else is writing to it; try again when they are done",
    "SQLITE_READONLY": "may not be written to; check the permissions of its file and folder",
    "SQLITE_CANTOPEN": "can't be opened; check the name and the permissions",
    "SQLITE_NOTADB": "is not an SQLite file; check the name",
    "SQLITE_CORRUPT": "is a damaged SQLite file; restore it",
    "SQLITE_FULL": "has no room left; free some space",
    "SQLITE_IOERR": "reading or writing failed; check the disk",
    "SQLITE_TOOBIG": "has more than fits into a cell, or more columns than SQLite accepts",
    "SQLITE_INTERRUPT": f"was stopped, or takes more than a file of its size; {WAY_OUT}",
}
_OF_NUMBERS = ("REAL", "FLOA", "DOUB", "NUM", "DEC")
"""Parts of the types by which SQLite makes numbers of what looks like one, beside `INT`."""
ROWID = "rowid"
"""What SQLite itself numbers rows by, in tables without a primary key; no column of theirs."""
STEPS = 16
"""Steps of SQLite's machine for each byte that a file may unpack to; tables need a few of these."""


@dataclass
class SqliteSession(Session):
    """A connection to an SQLite file. made: the file, where this session has made it. most: bytes
    that its views and generated columns may show.
    """

    connection: sqlite3.Connection
    made: Path | None = None
    most: int = MOST
    numbers: ClassVar[str] = "INTEGER PRIMARY KEY"
    key_numbers: ClassVar[str] = numbers

    @classmethod
    def connect(cls, address: TableAddress, writing: bool) -> "SqliteSession":
        """A session in a transaction; for writing, one that nobody else writes beside."""
        path = Path(address.location)
        made = _made(path) if writing else None
        if not path.is_file():
            raise DatabaseRefusal("there is no such file; check its name")
        with _in_our_words():
            # rw, also to read: what a killed writer left is rolled back by the next who opens it
            connection = sqlite3.connect(
                f"{path.absolute().as_uri()}?mode=rw",
                uri=True,
                isolation_level=None,
                timeout=PATIENCE,
            )
            session = cls(connection, made)
            try:
                # no unaudited cell reaches the file before the commit, and readers go on reading
                connection.execute("PRAGMA cache_spill = OFF")
                # else a view of the table that gives way keeps the new one from its name
                connection.execute("PRAGMA legacy_alter_table = ON")
                connection.execute("PRAGMA trusted_schema = OFF")
                connection.execute("BEGIN IMMEDIATE" if writing else "BEGIN")
                if not writing:
                    session._bound()
            except BaseException:
                session.close()
                raise
        return session

    def _bound(self) -> None:
        """Ends whatever a file of its size has no need of, and lets signals end all else."""
        pages = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size"
        self.most = most_unpacked(*self.connection.execute(pages).fetchone())
        self.connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, min(self.most, 10**9))
        rounds = iter(range(STEPS * self.most // BATCH))
        self.connection.set_progress_handler(lambda: next(rounds, None) is None, BATCH)

    def named(self, address: TableAddress) -> TableName:
        return TableName("main", address.table)

    def columns(self, table: TableName) -> list[SqlColumn]:
        sql = "SELECT name, upper(type) FROM pragma_table_xinfo($1, 'main') WHERE hidden <> 1"
        columns = [_column_of(*named) for named in self.query(sql, (table.name,)).rows()]
        made = "SELECT 1 FROM pragma_table_xinfo($1, 'main') WHERE hidden > 1"
        if columns and (self.query(made, (table.name,)).height or not self._is_kept(table)):
            self._require_room(table, columns)  # it shows more than cells that stand in the file
        return columns

    def _is_kept(self, table: TableName) -> bool:
        """Whether its cells stand in the file, as those of views don't."""
        kept = "SELECT 1 FROM main.sqlite_schema WHERE lower(name) = lower($1) AND rootpage > 0"
        return self.query(kept, (table.name,)).height > 0

    def _require_room(self, table: TableName, columns: Sequence[SqlColumn]) -> None:
        """Raises DatabaseRefusal where a table shows more than `most` bytes; before it is sorted,
        for which SQLite would keep all of it.
        """
        lengths = ", ".join(f"ifnull(length({column.as_text}), 0)" for column in columns)
        size = CELL * len(columns)
        shown = 0
        with _in_our_words():
            rows = self.connection.execute(f"SELECT {lengths} FROM {table.quoted} AS {SOURCE}")
            for row in rows:
                shown += size + sum(row)
                if shown > self.most:
                    raise DatabaseRefusal(
                        f"shows more than {self.most / 1e6:.0f} MB, too much for a file of its"
                        f" size; {WAY_OUT}"
                    )

    def key(self, table: TableName) -> list[str]:
        sql = "SELECT name FROM pragma_table_info($1, 'main') WHERE pk > 0 ORDER BY pk"
        key = self.query(sql, (table.name,)).to_series().to_list()
        return key or [ROWID] * self._is_kept(table)

    def name_findings(self, names: Sequence[str]) -> list[str]:
        findings = [
            f"name '{name}': SQLite keeps such names for itself, and takes no empty ones"
            for name in names
            if not name or "\0" in name or name.lower().startswith("sqlite_")
        ]
        folded = [name.lower() for name in names]
        return findings + [
            f"name '{name}': SQLite takes it for the same as another; rename one"
            for name, low in zip(names, folded, strict=True)
            if folded.index(low) != names.index(name)
        ]

    def execute(self, sql: str, parameters: Sequence[str] = ()) -> None:
        with _in_our_words():
            self.connection.execute(sql, _numbered(parameters))

    def query(self, sql: str, parameters: Sequence[str] = ()) -> pl.DataFrame:
        with _in_our_words():
            cursor = self.connection.execute(sql, _numbered(parameters))
            names = [f"{number}" for number, _ in enumerate(cursor.description)]
            frames = [_texts(names, [])]
            kinds: dict[str, set[type]] = {name: set() for name in names}
            while rows := cursor.fetchmany(BATCH):
                frames.append(_texts(names, rows))
                for name, cells in zip(names, zip(*rows, strict=True), strict=True):
                    kinds[name].update(map(type, cells))
        # 7 and 7.0 are one number, and may be one person
        mixed = pl.col([name for name in names if {int, float} <= kinds[name]])
        return pl.concat(frames).with_columns(mixed.str.replace(r"^(-?\d+)\.0$", "${1}"))

    def insert(self, table: TableName, frame: pl.DataFrame) -> None:
        names = ", ".join(map(quoted, frame.columns))
        places = ", ".join("?" * frame.width)
        sql = f"INSERT INTO {table.quoted} ({names}) VALUES ({places})"
        with _in_our_words():
            for rows in frame.with_columns(selectors.date().cast(pl.String)).iter_slices(BATCH):
                self.connection.executemany(sql, rows.rows())

    def run_deferred(self) -> None:
        """Nothing: SQLite's triggers run at once."""

    def commit(self) -> None:
        with _in_our_words():
            self.connection.execute("COMMIT")

    def rollback(self) -> None:
        with _in_our_words():
            if self.connection.in_transaction:
                self.connection.execute("ROLLBACK")

    def close(self) -> None:
        """Leaves no file behind in which nothing was committed."""
        self.connection.close()
        with suppress(OSError):
            if self.made is not None and not self.made.stat().st_size:
                self.made.unlink()


def _made(path: Path) -> Path | None:
    """The file of a new database, made here; None where it was there."""
    try:
        path.open("xb").close()
    except FileExistsError:
        return None
    except OSError:
        raise DatabaseRefusal(
            "its file can't be made; name one in a folder that exists and is writable"
        ) from None
    return path


def _column_of(name: str, kind: str) -> SqlColumn:
    cell = cell_of(name)
    holds: Held = pl.Date if kind == "DATE" else pl.String
    if "INT" in kind:
        holds = pl.Int64
    elif any(part in kind for part in _OF_NUMBERS):
        holds = pl.Float64
    is_odd = f"typeof({cell}) = 'blob' OR instr({cell}, char(0)) > 0"
    in_hex = f"CASE WHEN {is_odd} THEN hex({cell}) ELSE {cell} END"
    # by bytes: a collation of the table may take two texts for the same
    return SqlColumn(name, cell, f"{cell} COLLATE BINARY", in_hex, holds=holds)


def _numbered(parameters: Sequence[str]) -> dict[str, str]:
    return {f"{number}": text for number, text in enumerate(parameters, start=1)}


def _texts(names: list[str], rows: list[tuple[object, ...]]) -> pl.DataFrame:
    """Cells as text; a column may hold several types, as SQLite's do. names: places from 0."""
    cells = list(zip(*rows, strict=True)) if rows else [()] * len(names)
    return pl.DataFrame([_column(name, list(c)) for name, c in zip(names, cells, strict=True)])


def _column(name: str, cells: list[object]) -> pl.Series:
    if bytes in set(map(type, cells)):
        raise DatabaseRefusal(f"column {int(name) + 1} holds bytes (BLOB); give plain values")
    return pl.Series(name, [None if c is None else str(c) for c in cells], dtype=pl.String)


@contextmanager
def _in_our_words() -> Iterator[None]:
    """SQLite's errors name the rule that was broken, but their text may hold a cell."""
    try:
        yield
    except sqlite3.Error as failed:
        name = getattr(failed, "sqlite_errorname", None) or ""
        known = next((why for start, why in _WHY.items() if name.startswith(start)), None)
        kind = f" ({name})" if name else ""
        raise DatabaseRefusal(
            known or f"SQLite refused{kind}; check that its tables are sound and its text UTF-8",
            is_locked=name.startswith(("SQLITE_BUSY", "SQLITE_LOCKED")),
        ) from None
    except UnicodeEncodeError:
        raise DatabaseRefusal("a cell is not valid Unicode text; correct it") from None
    except UnicodeDecodeError:  # of a message of SQLite, which quotes the schema
        raise DatabaseRefusal(
            "its schema holds bytes that are not UTF-8; restore the file, or correct the names"
        ) from None
