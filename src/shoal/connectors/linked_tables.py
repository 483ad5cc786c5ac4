"""Linked tables: where each of them is, by name, what a database says of its own, and how all are
committed together, or none.

A folder of files (NAME.csv is table NAME), a workbook of several sheets, a database without a table
named or a file of one, or one file, which is the table of people; further files may be named beside
any of them. They are written into a new folder, a file of each; into a workbook (.xlsx), a sheet of
each; or into a database, a table of each.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeAlias

import polars as pl

from shoal.connectors import dialect, files, formats, location, release_drafts
from shoal.connectors.database.tables import check_releases, opened, table_drafts
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.frames import Frame
from shoal.connectors.location import PARQUET, POSTGRESQL, SQLITE, Location
from shoal.connectors.outputs import check_not_read, in_ledgers, signature_path
from shoal.data.certificate import Certificate
from shoal.data.linked import PEOPLE
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError

_TABLES = {
    SQLITE: """
        SELECT name, type FROM main.sqlite_schema WHERE type IN ('table', 'view')
        AND name NOT LIKE 'sqlite~_%' ESCAPE '~' ORDER BY name""",
    POSTGRESQL: """
        SELECT CAST(c.relname AS text), CAST(c.relkind AS text)
        FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
        WHERE c.relkind IN ('r', 'p', 'v', 'm') AND NOT c.relispartition AND n.nspname = $1
        ORDER BY 1""",
}
_FOREIGN_KEYS = {
    SQLITE: """
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
LONGEST = 31
"""Characters of a sheet's name."""


LinkedSource: TypeAlias = "str | Path | Mapping[str, str | Path | Frame]"
"""A folder, a workbook or a database of several tables, the file of people, or by the name of each
table its file or frame.
"""


@dataclass(frozen=True)
class ForeignKey:
    """A column that holds, by the database's own word, values of a column of another table."""

    table: str
    column: str
    to_table: str
    to_column: str


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

    def with_views(self, names: Collection[str]) -> TablePlaces:
        """The places, and those of the views with these names."""
        named = {name: place for name, place in self.views.items() if name in names}
        return replace(self, places={**self.places, **named})

    def with_people(self, below: Collection[str]) -> TablePlaces:
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


@dataclass(frozen=True)
class LinkedSources:
    """All tables as they were read, by name, with the hash of each file's bytes; frames have none.

    remarks: on rows that are nobody, or may be.
    """

    tables: Mapping[str, Table]
    hashes: Mapping[str, str]
    remarks: tuple[ReleaseWarning, ...] = ()

    @classmethod
    def of(cls, found: Mapping[str, files.SourceFile]) -> LinkedSources:
        """The tables of these files or frames."""
        return cls(
            {name: one.table for name, one in found.items()},
            {name: one.sha256 for name, one in found.items() if one.sha256},
            tuple(
                said.at(f"table '{name}'") for name, one in found.items() for said in one.remarks
            ),
        )

    @property
    def sha256(self) -> str:
        """The hash of all tables: of their names and hashes."""
        lines = "".join(f"{name}\t{self.hashes[name]}\n" for name in sorted(self.hashes))
        return hashlib.sha256(lines.encode()).hexdigest()


def is_several(source: object) -> bool:
    """Whether a name means several tables by itself: a folder that is not one table in Parquet
    files, a workbook of several sheets, or a database of which no table is named; or whether tables
    are given by name.
    """
    if not isinstance(source, str | Path):
        return isinstance(source, Mapping)
    place = place_of_several(source)
    if place.is_table:
        return place.is_database
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
    if place.is_database:
        found = _in_database(place)
    elif place.is_path and Path(place).is_dir():
        found = TablePlaces(_in_folder(Path(place), {Path(one).resolve() for one in beside}))
    elif place.is_path and place.kind_to_read.has_sheets:
        found = TablePlaces(_sheets(place))
    else:
        found = TablePlaces({PEOPLE: TablePlace(place)})
    more = {name: TablePlace(str(path)) for name, path in (further or {}).items()}
    InputError.raise_for(
        f"table '{name}': is in '{source}' and beside it; name it once"
        for name in sorted({*found.places} & {*more})
    )
    return replace(found, places={**found.places, **more})


def place_of_several(name: object) -> Location:
    """The place of several tables: a file that is named like a database is one."""
    place = Location(name)
    is_database = (
        place.is_path and place.lower().endswith(location.DATABASES) and not Path(place).is_dir()
    )
    return Location(location.of_file(place)) if is_database else place


def place_of_one(released: str) -> Location:
    """Where a release has its certificate: of a database without a table, that of people."""
    place = place_of_several(released)
    return Location(location.of_table(place, PEOPLE) if place.is_database else released)


def place_in_folder(folder: Path, table: str, suffix: str = ".csv") -> Location:
    """Where a folder that is written has a table."""
    return Location(str(folder / f"{table}{suffix}"))


def _in_database(place: Location) -> TablePlaces:
    """The tables and views of a schema, and the foreign keys of one column among them; raises
    InputError.
    """
    address = location.parse_address(location.of_table(place, PEOPLE))
    with opened(address) as table:
        parameters = (table.schema,) if address.kind == POSTGRESQL else ()
        found = table.session.query(_TABLES[address.kind], parameters).rows()
        keys = table.session.query(_FOREIGN_KEYS[address.kind], parameters).rows()
    places = {name: TablePlace(location.of_table(place, name)) for name, _ in found}
    views = {name: places[name] for name, kind in found if kind in _VIEWS}
    tables = {name: places[name] for name in places if name not in {*location.OWN_TABLES, *views}}
    return TablePlaces(tables, tuple(ForeignKey(*key) for key in keys), views)


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


# Linked tables between their making and their publication.


@dataclass(frozen=True)
class LinkedDraft:
    """Linked tables that are about to be published, by name.

    write: puts all records of all tables, in a dialect of delimited text. certify: puts the
    certificate where its readers look for it, to be committed with the tables.
    """

    tables: Mapping[str, release_drafts.WrittenDraft]
    write: Callable[[Mapping[str, pl.DataFrame], Dialect], None]
    certify: Callable[[str], None]


@dataclass(frozen=True)
class LinkedOutput:
    """Where linked tables go. tables: their names. suffix: of the files in a folder."""

    place: Location
    tables: Sequence[str]
    suffix: str

    @classmethod
    def of(cls, output: str, tables: Sequence[str], is_typed: bool) -> LinkedOutput:
        """Raises InputError where a name means no place for several tables.

        is_typed: whether files in a folder keep types, as Parquet does; else they are CSV.
        """
        place = place_of_several(output)
        kind = formats.named(place)
        fits = place.is_path and (kind is None or kind.has_sheets)
        if not (fits or place.is_database):
            raise InputError(
                f"output '{place}': linked tables go to a new folder, a workbook (.xlsx) or a"
                " database without 'table'; name one"
            )
        return cls(place, tables, PARQUET if is_typed else ".csv")

    @property
    def names(self) -> dict[str, Location]:
        """The place of each table; of a workbook, of all."""
        if self.place.is_table:
            return {name: Location(location.of_table(self.place, name)) for name in self.tables}
        if self._is_book:
            return dict.fromkeys(self.tables, self.place)
        return {name: place_in_folder(Path(self.place), name, self.suffix) for name in self.tables}

    @property
    def kind(self) -> Location:
        """A place of the format in which all tables are written."""
        return self.names[self.tables[0]]

    @property
    def _is_book(self) -> bool:
        kind = formats.named(self.place)
        return self.place.is_path and kind is not None and kind.has_sheets

    def check(self, read: Collection[str], replace: bool) -> None:
        """Raises InputError, before any work, where the tables can't be put there.

        read: names of what is read. replace: whether an earlier release gives way.
        """
        outputs = self.names.values() if self.place.is_table else [self.place]
        is_folder = self.place.is_path and not self._is_book
        for output in outputs:
            for name in read:
                if not (is_folder and Path(name).is_dir()):  # of a folder, its files alone are read
                    check_not_read(output, name, ())
        if self.place.is_table:
            self._check_database(replace)
        elif self._is_book:
            files.check_writable(self.place, replace)
            require_sheets(self.tables)
        else:
            release_drafts.check_target(self.place, replace, _PROOF)

    def _check_database(self, replace: bool) -> None:
        InputError.raise_for(in_ledgers(*self.names.values()))
        check_releases([*self.names.values()], replace)
        first = self.kind.address
        if first.kind == SQLITE and not Path(first.location).exists():
            return
        others = {*_in_database(self.place).places} - {*self.tables}
        if others:
            raise InputError(
                f"output '{first.shown}': there are {len(others)} other tables beside it, which an"
                " audit would take for some of the release; name a new file or schema"
            )

    @contextmanager
    def draft(self, replace: bool) -> Iterator[LinkedDraft]:
        """A draft that is committed if the block succeeds, else removed with all that it held."""
        if self.place.is_table:
            with table_drafts([*self.names.values()], replace) as tables:
                each = zip(self.names.items(), tables, strict=True)
                drafts = {n: release_drafts.DatabaseDraft(Path(p), p, t) for (n, p), t in each}
                yield LinkedDraft(
                    drafts, partial(_write_each, drafts), partial(_certify_each, drafts)
                )
        elif self._is_book:
            target = files.atomic_write(self.place, replace=replace)
            with ExitStack() as uncommitted, target as path:
                book = release_drafts.FileDraft(path, self.place, uncommitted, replace=replace)
                sheets = {n: SheetDraft(path, self.place, n) for n in self.tables}
                yield LinkedDraft(sheets, partial(_write_book, path), book.certify)
        else:
            with release_drafts.folder_draft(self.place, replace, _PROOF) as folder:
                inside = {n: place_in_folder(folder, n, self.suffix) for n in self.tables}
                files_in = {n: release_drafts.FileDraft(Path(p), p) for n, p in inside.items()}
                yield LinkedDraft(
                    files_in, partial(_write_each, files_in), partial(_certify_in, folder)
                )


def _write_each(
    drafts: Mapping[str, release_drafts.ReleaseDraft],
    frames: Mapping[str, pl.DataFrame],
    dialect: Dialect,
) -> None:
    for name, frame in frames.items():
        drafts[name].write(frame, dialect)


def _certify_each(drafts: Mapping[str, release_drafts.ReleaseDraft], certificate: str) -> None:
    """Each table of a database has the certificate beside it."""
    for draft in drafts.values():
        draft.certify(certificate)


def _certify_in(folder: Path, certificate: str) -> None:
    (folder / location.OF_TABLES).write_text(certificate, encoding="utf-8")


def _write_book(book: Path, frames: Mapping[str, pl.DataFrame], _: Dialect) -> None:
    from shoal.connectors import workbooks

    with files.draft_file(book, compressed=False) as file:
        workbooks.write(frames, file)


@dataclass(frozen=True)
class SheetDraft(release_drafts.WrittenDraft):
    """A sheet of a workbook."""

    sheet: str

    def read(self, categorical: Collection[str], reading: Reading) -> files.SourceFile:
        return super().read(categorical, replace(reading, sheet=self.sheet))


def require_sheets(tables: Sequence[str]) -> None:
    """Raises InputError with every table that no sheet can be named after."""
    alike = Counter(name.lower() for name in tables)
    InputError.raise_for(
        f"table '{name}': a sheet can't have this name, which has more than {LONGEST} characters or"
        " differs from another by capitals alone; publish to a folder"
        for name in tables
        if len(name) > LONGEST or alike[name.lower()] > 1
    )


def _require_own(folder: Path) -> None:
    """Raises InputError where a folder holds anything other than the tables of its certificate."""
    proof = folder / location.OF_TABLES
    stated = {
        str(table["name"]): table["sha256"]
        for table in Certificate.load(proof).get("tables") or ()
        if table["sha256"]
    }
    found = {
        path.stem: files.file_sha256(path) if path.is_file() else None
        for path in folder.iterdir()
        if str(path) not in (str(proof), signature_path(proof))
    }
    if found != stated:
        raise InputError(
            f"output '{folder}': holds something other than the release that was certified; delete"
            " it yourself if nobody needs it, or name a new folder"
        )


_PROOF = release_drafts.Proof(location.OF_TABLES, _require_own)
