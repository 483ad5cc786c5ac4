"""Where the tables of a set of linked tables are, by name, and what a database says of its own.

A folder of files (NAME.csv is table NAME), a workbook of several sheets, a database without a table
named or a file of one, or one file, which is the table of people; further files may be named beside
any of them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from shoal.connectors import dialect, formats
from shoal.connectors.database.tables import opened
from shoal.connectors.location import (
    CERTIFICATES,
    DATABASES,
    POSTGRESQL,
    RELEASES,
    STREAMS,
    Location,
    TableAddress,
    names_table,
    of_file,
    of_table,
    parse_address,
)
from shoal.data.linked import PEOPLE
from shoal.errors import InputError

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


@dataclass(frozen=True)
class TablePlace:
    """Where one table is; sheet: of a workbook that has several."""

    path: str
    sheet: str | None = None


@dataclass(frozen=True)
class TablePlaces:
    """Where each table is, and the foreign keys and views of their database, if they are in one."""

    places: Mapping[str, TablePlace]
    foreign_keys: tuple[ForeignKey, ...] = ()
    views: Mapping[str, TablePlace] = field(default_factory=dict)

    def with_views(self, names: Collection[str]) -> "TablePlaces":
        """The places, and those of the views with these names."""
        named = {name: place for name, place in self.views.items() if name in names}
        return replace(self, places={**self.places, **named})

    def with_people(self, below: Collection[str]) -> "TablePlaces":
        """The places, people under their own name: if no table has it, the one below no other."""
        others = [name for name in self.places if name not in below]
        if PEOPLE in self.places or len(others) != 1:
            return self
        (name,) = others
        renamed = {PEOPLE if one == name else one: place for one, place in self.places.items()}
        keys = tuple(
            replace(
                key,
                table=PEOPLE if key.table == name else key.table,
                to_table=PEOPLE if key.to_table == name else key.to_table,
            )
            for key in self.foreign_keys
        )
        return replace(self, places=renamed, foreign_keys=keys)


def is_several(source: object) -> bool:
    """Whether a name means several tables by itself: a folder that is not one table in Parquet
    files, a workbook of several sheets, or a database of which no table is named; or whether tables
    are given by name.
    """
    if not isinstance(source, str | Path):
        return isinstance(source, Mapping)
    place = place_of_several(source)
    if place.is_table:
        return not names_table(place)
    if not place.is_path or not Path(place).exists():
        return False
    if not Path(place).is_dir():
        return place.kind.has_sheets and len(_sheets(place)) > 1
    kinds = {name: Location(one.path).kind for name, one in _in_folder(Path(place), ()).items()}
    return PEOPLE in kinds or not all(kind.is_parquet for kind in kinds.values())


def table_places(
    source: str, further: Mapping[str, str] | None = None, beside: Collection[str] = ()
) -> TablePlaces:
    """The places of all tables; raises InputError where two files are one table.

    further: more tables by name. beside: files that are there for another reason, as hierarchies.
    """
    place = place_of_several(source)
    keys: tuple[ForeignKey, ...] = ()
    views: dict[str, TablePlace] = {}
    if place.is_table and not names_table(place):
        found = catalogue(parse_address(of_table(place, PEOPLE)))
        places, views = (
            {name: TablePlace(of_table(place, name)) for name in names}
            for names in (found.tables, found.views)
        )
        keys = tuple(found.foreign_keys)
    elif place.is_path and Path(place).is_dir():
        places = _in_folder(Path(place), {Path(one).resolve() for one in beside})
    elif place.is_path and place.kind_to_read.has_sheets:
        places = _sheets(place)
    else:
        places = {PEOPLE: TablePlace(place)}
    twice = sorted({*places} & {*(further or {})})
    InputError.raise_for(
        f"table '{name}': is in '{source}' and beside it; name it once" for name in twice
    )
    return TablePlaces(
        {**places, **{name: TablePlace(str(path)) for name, path in (further or {}).items()}},
        keys,
        views,
    )


def place_of_several(name: object) -> Location:
    """The place of several tables: a file that is named like a database is one."""
    place = Location(name)
    is_database = place.is_path and place.lower().endswith(DATABASES) and not Path(place).is_dir()
    return Location(of_file(place)) if is_database else place


def place_of_one(released: str) -> Location:
    """Where a release has its certificate: of a database without a table, that of people."""
    place = place_of_several(released)
    is_whole = place.is_table and not names_table(place)
    return Location(of_table(place, PEOPLE) if is_whole else released)


def place_in_folder(folder: Path, table: str, suffix: str = ".csv") -> Location:
    """Where a folder that is written has a table."""
    return Location(str(folder / f"{table}{suffix}"))


def _in_folder(folder: Path, beside: Collection[Path]) -> dict[str, TablePlace]:
    """Every file of a known format, by its name without that."""
    places: dict[str, TablePlace] = {}
    findings = []
    for path in sorted(folder.iterdir()):
        suffix = next((end for end in formats.SUFFIXES if path.name.lower().endswith(end)), None)
        if suffix is None or path.name.startswith((".", "_")) or path.resolve() in beside:
            continue
        name = path.name[: -len(suffix)]
        if name in places:
            findings.append(
                f"table '{name}': is in '{folder}' in two files; keep one of them there"
            )
        places[name] = TablePlace(str(path))
    InputError.raise_for(findings)
    return places


def _sheets(place: Location) -> dict[str, TablePlace]:
    """The visible sheets of a workbook; of one alone, people."""
    from shoal.connectors import workbooks

    names, _ = workbooks.first_rows(place, dialect.AS_FOUND, 0)
    if len(names) == 1:
        return {PEOPLE: TablePlace(place, names[0])}
    return {name: TablePlace(place, name) for name in names}
