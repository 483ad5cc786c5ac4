"""PostgreSQL by ADBC: rows go in and out as Arrow, by COPY; needs the extra `postgres`.

The client library is libpq: it reads PGPASSWORD, ~/.pgpass, PGSERVICE and certificates by itself.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import polars as pl

from shoal.connectors.database.session import (
    BATCH,
    SOURCE,
    DatabaseRefusal,
    Held,
    SqlColumn,
    TableName,
    cell_of,
)
from shoal.connectors.location import TableAddress
from shoal.errors import of_extra

LONGEST = 63
"""Bytes of a name; the server would cut a longer one without a word."""
_OF_THE_SERVER = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")
_PLAIN = "BDEINS"  # categories of types: truth, time, enum, network, number, text
_ODD = ("money",)  # its text depends on the server's place
_SAME_TEXT = (
    "SET LOCAL client_encoding = 'UTF8'",
    "SET LOCAL datestyle = 'ISO, YMD'",
    "SET LOCAL timezone = 'UTC'",
    "SET LOCAL extra_float_digits = 1",
    # rather an error than a part of the table, where a policy of the server hides rows
    "SET LOCAL row_security = off",
)
_ONE_TEXT = {
    "numeric": "trim_scale(NULLIF({}, 'NaN'))",
    "numeric by form": "NULLIF({}, 'NaN')",
    "float4": "(NULLIF({}, 'NaN') + 0::float4)",
    "float8": "(NULLIF({}, 'NaN') + 0::float8)",
}
"""Of numbers that have several texts, as 1.1 and 1.10, or 0 and -0; what is no number is none."""
_HOLDS: dict[str, Held] = {
    **dict.fromkeys(("int2", "int4", "int8"), pl.Int64),
    **dict.fromkeys(_ONE_TEXT, pl.Float64),
    "date": pl.Date,
}
_TRIED = re.compile(r'connection to server (?:at|on socket) "([^"]+)"(?: \([^)]*\))?(, port \d+)?')
_UNKNOWN = re.compile('invalid URI query parameter: "([^"]*)"')
_PASSWORD = re.compile("pass|:[^/]*@")
_STATE = re.compile(r"SQLSTATE:? (\w{5})")
_FULL = "the server has no connection left for this user; try again, or ask its owner for more"
_SETTING = (
    "the server does not take a setting of PGOPTIONS, or of 'options' in the address; correct it,"
    " such as -c lock_timeout=10min"
)
_CONNECTING = {
    "the database system is": "the server is starting or stopping; try again once it has started",
    "could not translate host name": "its host is not known; check the name",
    "password authentication failed": "the password is not accepted; set PGPASSWORD or ~/.pgpass",
    "no password supplied": "asks for a password; set PGPASSWORD or ~/.pgpass",
    "too many": _FULL,
    "connection slots": _FULL,
    "permitted to log in": "this user may not log in; ask its owner for the right (LOGIN)",
    "pg_hba.conf": "the server does not let this user in from here; ask its owner for a line in"
    " pg_hba.conf",
    "authentication failed": "does not know this user; check the name",
    'role "" does not exist': "does not know this user; check the name",
    'database "" does not exist': "has no such database; check the name",
    "currently accepting": "its database accepts no connections; ask its owner",
    "definition of service": "the service is not defined; check PGSERVICEFILE",
    "URI query parameter": "its address has an option{option} that is not known; correct it, or"
    " leave it out, and write & in names and passwords as %26",
    "command-line argument": _SETTING,
    "configuration parameter": _SETTING,
    "for parameter": _SETTING,
    "server is not": "the server is not of the kind that target_session_attrs asks for; name"
    " another, or ask for less",
    "session is not": "the session is not of the kind that target_session_attrs asks for; name"
    " another server, or ask for less",
    "channel binding": "the server does not do what channel_binding asks for; ask for less",
    "SSL": "no secure connection could be made; check sslmode and the certificates",
    "invalid": "an option of its address, or a variable such as PGSSLMODE, has a value that is not"
    " known; correct it",
    "FATAL": "the server refuses the connection{tried}; psql, asked for the same, says why",
    "": "no server answers{tried}; check the host and port, and that it is running",
}
_ROWS = "row-level security"
_NO_SERVER = (
    *("the database system is", "could not translate host name"),
    *("too many", "connection slots", ""),
)
_STATES = {
    "22021": "a text does not fit the encoding of the database; make one in UTF-8",
    "22P05": "a text does not fit the encoding of the database; make one in UTF-8",
    "25P02": "is not read, as another table could not be",
    "25006": "is read-only; name a server that accepts writes",
    "2BP01": "other objects, such as views, depend on the table that is replaced; drop them first",
    "3F000": "there is no such schema; check its name, or make it first",
    "40001": "another process wrote to it at the same time; run again",
    "40P01": "another process wrote to it at the same time; run again",
    "42501": "this user lacks a right on it, or may see a part of its rows only; ask its owner",
    _ROWS: "row-level security hides rows of it from this user; read it as the table's owner or as"
    " a role with BYPASSRLS (only that works where it is forced on the owner, and of a view the"
    " view's owner counts)",
    "42P06": "somebody else published into it meanwhile; run again",
    "42P07": "somebody else published into it meanwhile; name another, or say --replace",
    "23505": "somebody else published into it meanwhile; run again",
    "53100": "the server has no room left; free some space",
    "55P03": "somebody else holds a lock on it; try again when they are done, or wait longer by"
    " PGOPTIONS='-c lock_timeout=10min'",
    "57014": "the server stopped it, such as by statement_timeout; ask its owner for a longer one",
}
_LOST = ("08", "57P")
_PASSING = ("23505", "40001", "40P01", "42P06", "55P03")

_COLUMNS = """
WITH RECURSIVE based (oid, base) AS (
SELECT oid, oid FROM pg_catalog.pg_type WHERE typbasetype = 0
UNION ALL
SELECT t.oid, based.base FROM pg_catalog.pg_type t JOIN based ON based.oid = t.typbasetype
)
SELECT a.attname::text, b.typcategory::text,
b.typname::text || CASE WHEN a.atttypmod = -1 THEN '' ELSE ' by form' END,
pg_catalog.format_type(t.oid, NULL)
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_type t ON t.oid = a.atttypid
JOIN based ON based.oid = t.oid
JOIN pg_catalog.pg_type b ON b.oid = based.base
WHERE n.nspname = $1 AND c.relname = $2 AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
"""
_KEY = """
SELECT a.attname::text
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class c ON c.oid = i.indrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = ANY(i.indkey)
WHERE n.nspname = $1 AND c.relname = $2 AND i.indisprimary
ORDER BY pg_catalog.array_position(i.indkey::int2[], a.attnum)
"""
_LACKING = """
SELECT CASE WHEN may THEN '' ELSE what END FROM (
SELECT CASE
WHEN NOT u.may_enter THEN 'USAGE ON SCHEMA ' || u.schema
WHEN u.oid IS NULL OR r = 'CREATE' THEN 'CREATE ON SCHEMA ' || u.schema
ELSE r || ' ON ' || u.schema || '.' || pg_catalog.quote_ident($2) END AS what,
u.may_enter AND CASE
WHEN u.oid IS NULL OR r = 'CREATE' THEN pg_catalog.has_schema_privilege(u.nspname, 'CREATE')
WHEN r = 'OWNERSHIP' THEN pg_catalog.pg_has_role(u.relowner, 'USAGE')
ELSE pg_catalog.has_table_privilege(u.oid, r) END AS may
FROM (
SELECT n.nspname, pg_catalog.quote_ident(n.nspname) AS schema, c.oid, c.relowner,
pg_catalog.has_schema_privilege(n.nspname, 'USAGE') AS may_enter
FROM pg_catalog.pg_namespace n
LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relname = $2
WHERE n.nspname = $1) u, pg_catalog.unnest(pg_catalog.string_to_array($3, ',')) r) asked
"""
_PATH = """
SELECT pg_catalog.current_schema()::pg_catalog.text,
pg_catalog.current_setting('search_path')::pg_catalog.text
"""
_BOUND_WAITS = """
SELECT pg_catalog.set_config(name, '10s', true) FROM pg_catalog.pg_settings
WHERE name = 'lock_timeout' AND source = 'default'
"""
"""Waits for locks as long as for a file of SQLite, unless the user or the server says how long."""
_SET_PATH = "SELECT pg_catalog.set_config('search_path', $1::pg_catalog.text, true)"


@dataclass
class PostgresSession:
    """A connection to a server."""

    connection: Any
    cursor: Any
    usual_schema: str | None = None
    numbers: ClassVar[str] = "bigint NOT NULL"
    key_numbers: ClassVar[str] = "bigint PRIMARY KEY"

    @classmethod
    def connect(cls, address: TableAddress, writing: bool) -> "PostgresSession":
        """A session in a transaction that sees the database as it is now, whoever changes it."""
        driver = _driver()
        try:
            connection = driver.connect(address.location)
        except driver.Error as failed:
            said = str(failed)
            unnamed = re.sub('"[^"]*"', '""', said)  # somebody's names may be words of the server
            sign = next(sign for sign in _CONNECTING if sign in unnamed)
            tried = " and ".join(dict.fromkeys("".join(found) for found in _TRIED.findall(said)))
            # behind a password, what looks like an option may be its end
            named = _UNKNOWN.search("" if _PASSWORD.search(address.location) else said)
            option = f" '{named[1]}'" if named else ""
            why = _CONNECTING[sign].format(tried=tried and f" at {tried}", option=option)
            raise DatabaseRefusal(why, is_lost=sign in _NO_SERVER) from None
        session = cls(connection, connection.cursor())
        try:
            access = "" if writing else ", READ ONLY"
            session.execute(f"SET TRANSACTION ISOLATION LEVEL REPEATABLE READ{access}")
            for setting in _SAME_TEXT:
                session.execute(setting)
            session.query(_BOUND_WAITS)
            session._look_into_the_catalogue_first()
        except BaseException:
            session.close()
            raise
        return session

    def named(self, address: TableAddress) -> TableName:
        schema = self.usual_schema if address.schema is None else address.schema
        if schema is None:
            raise DatabaseRefusal("the user has no usual schema; name one with &schema=NAME")
        return TableName(schema, address.table)

    def _look_into_the_catalogue_first(self) -> None:
        """Else a type `text` or an operator `=` of somebody's own may stand before the server's."""
        usual, path = self.query(_PATH).row(0)
        self.usual_schema = usual
        self.query(_SET_PATH, (", ".join(filter(None, ("pg_catalog", path))),))

    def columns(self, table: TableName) -> list[SqlColumn]:
        rows = self.query(_COLUMNS, (table.schema, table.name)).rows()
        return [_column(name, category, base, kind) for name, category, base, kind in rows]

    def key(self, table: TableName) -> list[str]:
        return self.query(_KEY, (table.schema, table.name)).to_series().to_list()

    def lacking(self, table: TableName, rights: Sequence[str]) -> list[str]:
        """Raises DatabaseRefusal, too, where there is no such schema."""
        found = self.query(_LACKING, (table.schema, table.name, ",".join(rights))).to_series()
        if not len(found):
            raise DatabaseRefusal(_STATES["3F000"])
        return [right for right in found if right]

    def name_findings(self, names: Sequence[str]) -> list[str]:
        return [
            f"name '{name}': PostgreSQL takes names of 1 to {LONGEST} bytes, and keeps some for"
            " itself; rename it"
            for name in names
            if not 0 < len(name.encode()) <= LONGEST or "\0" in name or name in _OF_THE_SERVER
        ]

    def execute(self, sql: str, parameters: Sequence[str] = ()) -> None:
        with _in_our_words():
            self.cursor.execute(sql, tuple(parameters) or None)

    def query(self, sql: str, parameters: Sequence[str] = ()) -> pl.DataFrame:
        with _in_our_words():
            self.cursor.execute(sql, tuple(parameters) or None)
            return pl.DataFrame(self.cursor.fetch_arrow_table())

    def nan_counts(self, table: TableName, names: Sequence[str]) -> Mapping[str, int]:
        if not names:
            return {}
        counts = [
            f"(count(*) FILTER (WHERE {cell_of(name)} = 'NaN'))::text AS \"{place}\""
            for place, name in enumerate(names)
        ]
        found = self.query(f"SELECT {', '.join(counts)} FROM {table.quoted} AS {SOURCE}")
        return dict(zip(names, map(int, found.row(0)), strict=True))

    def insert(self, table: TableName, frame: pl.DataFrame) -> None:
        texts = frame.select(pl.col(pl.String))
        if any(cells.str.contains("\0", literal=True).any() for cells in texts):
            raise DatabaseRefusal(
                "a cell holds the character NUL, which PostgreSQL does not accept"
            )
        with _in_our_words():
            for rows in frame.iter_slices(BATCH):
                self.cursor.adbc_ingest(
                    table.name, rows, mode="append", db_schema_name=table.schema
                )

    def run_deferred(self) -> None:
        self.execute("SET CONSTRAINTS ALL IMMEDIATE")

    def commit(self) -> None:
        with _in_our_words():
            self.connection.commit()

    def rollback(self) -> None:
        with _in_our_words():
            self.connection.rollback()

    def close(self) -> None:
        with suppress(_driver().Error):
            self.cursor.close()
        with suppress(_driver().Error):
            self.connection.close()


def _column(name: str, category: str, base: str, kind: str) -> SqlColumn:
    fits = (category in _PLAIN and base not in _ODD) or base == "uuid"
    text = f"{cell_of(name)}::text"
    shown = f"{_ONE_TEXT.get(base, '{}').format(cell_of(name))}::text"
    # by bytes, not by the language of the server; the text also parts what is equal otherwise
    by_bytes = f'{text} COLLATE "C"'
    in_order = by_bytes if category == "S" else f"{cell_of(name)}, {by_bytes}"
    holds = _HOLDS.get(base, pl.String)
    return SqlColumn(name, shown, in_order, by_bytes, "" if fits else kind, holds)


def _driver() -> Any:
    what = "PostgreSQL needs adbc-driver-postgresql and pyarrow"
    with of_extra(what, "postgres", are_many=True):
        import adbc_driver_postgresql.dbapi as driver
        import pyarrow  # noqa: F401  # else what fails amid the rows has no SQLSTATE
    return driver


@contextmanager
def _in_our_words() -> Iterator[None]:
    """The server's errors quote statements and cells, so only their kind is reported."""
    driver = _driver()
    try:
        yield
    except driver.Error as failed:
        state = failed.sqlstate or next(iter(_STATE.findall(str(failed))), "")
        lost = state.startswith(_LOST) or (
            not state and isinstance(failed, driver.OperationalError)
        )
        if lost:
            raise DatabaseRefusal(
                "the connection was lost; run again once the server is there", is_lost=True
            ) from None
        kind = f" (SQLSTATE {state})" if state else ""
        known = _ROWS if state == "42501" and _ROWS in str(failed) else state
        raise DatabaseRefusal(
            _STATES.get(known, "the server refused; its log says why") + kind,
            is_locked=state in _PASSING,
        ) from None
