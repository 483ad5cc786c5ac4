"""Which tables and views a database has, and which column of one points to which of another."""

from dataclasses import dataclass

from shoal.connectors.database.address import (
    CERTIFICATES,
    POSTGRESQL,
    RELEASES,
    STREAMS,
    TableAddress,
)
from shoal.connectors.database.connections import opened

_TABLES = {
    "sqlite": """
        SELECT name, type FROM main.sqlite_schema WHERE type IN ('table', 'view')
        AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name""",
    POSTGRESQL: """
        SELECT CAST(c.relname AS text), CAST(c.relkind AS text)
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition AND n.nspname = $1
        ORDER BY 1""",
}
_FOREIGN_KEYS = {
    "sqlite": """
        SELECT m.name, f."from", f."table", coalesce(f."to",
            (SELECT p.name FROM pragma_table_info(f."table") AS p WHERE p.pk = 1))
        FROM main.sqlite_schema AS m, pragma_foreign_key_list(m.name) AS f
        WHERE m.type = 'table' AND NOT EXISTS (SELECT 1 FROM pragma_foreign_key_list(m.name) AS g
            WHERE g.id = f.id AND g.seq > 0)
        ORDER BY m.name, f.id""",
    POSTGRESQL: """
        SELECT CAST(c.relname AS text) AS "table", CAST(a.attname AS text) AS "column",
            CAST(d.relname AS text) AS to_table, CAST(b.attname AS text) AS to_column
        FROM pg_catalog.pg_constraint f
        JOIN pg_catalog.pg_class c ON c.oid = f.conrelid
        JOIN pg_catalog.pg_class d ON d.oid = f.confrelid
        JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attnum = f.conkey[1]
        JOIN pg_catalog.pg_attribute b ON b.attrelid = d.oid AND b.attnum = f.confkey[1]
        WHERE f.contype = 'f' AND pg_catalog.cardinality(f.conkey) = 1
            AND d.relnamespace = c.relnamespace AND n.nspname = $1
        ORDER BY 1, 2""",
}
_VIEWS = ("view", "v", "m")
OWN = (CERTIFICATES, STREAMS, RELEASES)


@dataclass(frozen=True)
class ForeignKey:
    """A column that holds, by the database's own word, values of a column of another table."""

    table: str
    column: str
    to_table: str
    to_column: str


@dataclass(frozen=True)
class Catalogue:
    """The tables and views of a schema, and the foreign keys of one column among them."""

    tables: list[str]
    views: list[str]
    foreign_keys: list[ForeignKey]


def catalogue(address: TableAddress) -> Catalogue:
    """What the schema of an address has, whatever table it names; raises InputError."""
    with opened(address) as session:
        parameters = (session.named(address).schema,) if address.kind == POSTGRESQL else ()
        found = session.query(_TABLES[address.kind], parameters).rows()
        keys = session.query(_FOREIGN_KEYS[address.kind], parameters).rows()
    return Catalogue(
        [name for name, kind in found if name not in OWN and kind not in _VIEWS],
        [name for name, kind in found if kind in _VIEWS],
        [ForeignKey(*key) for key in keys],
    )
