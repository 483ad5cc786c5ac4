"""Linked tables between their making and their publication: all are committed together, or none.

The name of the output says where they go: into a new folder, a file of each; into a workbook
(.xlsx), a sheet of each; or into a database, a table of each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import polars as pl

from shoal.connectors import files, formats, release_drafts
from shoal.connectors.database.tables import check_releases, table_drafts
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.location import PARQUET, SQLITE, Location, names_table, of_table
from shoal.connectors.outputs import check_not_read, signature_path
from shoal.connectors.table_places import catalogue, place_in_folder, place_of_several
from shoal.data.certificate import Certificate
from shoal.errors import InputError

CERTIFICATE = "certificate.json"
"""The certificate of linked tables, in their folder."""
LONGEST = 31
"""Characters of a sheet's name."""


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
        if not (fits or (place.is_table and not names_table(place))):
            raise InputError(
                f"output '{place}': linked tables go to a new folder, a workbook (.xlsx) or a"
                " database without 'table'; name one"
            )
        return cls(place, tables, PARQUET if is_typed else ".csv")

    @property
    def names(self) -> dict[str, Location]:
        """The place of each table; of a workbook, of all."""
        if self.place.is_table:
            return {name: Location(of_table(self.place, name)) for name in self.tables}
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
            release_drafts.check_target(self.place, replace, OF_TABLES)

    def _check_database(self, replace: bool) -> None:
        addresses = [name.address for name in self.names.values()]
        check_releases(addresses, replace)
        first = addresses[0]
        if first.kind == SQLITE and not Path(first.location).exists():
            return
        others = {*catalogue(first).tables} - {*self.tables}
        if others:
            raise InputError(
                f"output '{first.shown}': there are {len(others)} other tables beside it, which an"
                " audit would take for some of the release; name a new file or schema"
            )

    @contextmanager
    def draft(self, replace: bool) -> Iterator[LinkedDraft]:
        """A draft that is committed if the block succeeds, else removed with all that it held."""
        if self.place.is_table:
            places = list(self.names.values())
            with table_drafts([place.address for place in places], replace) as tables:
                each = zip(self.tables, places, tables, strict=True)
                drafts = {n: release_drafts.DatabaseDraft(Path(p), p, t) for n, p, t in each}
                yield LinkedDraft(
                    drafts, partial(_write_each, drafts), partial(_certify_each, drafts)
                )
        elif self._is_book:
            target = files.atomic_write(self.place, replace=replace)
            with ExitStack() as uncommitted, target as path:
                book = release_drafts.FileDraft(path, self.place, uncommitted)
                sheets = {n: SheetDraft(path, self.place, n) for n in self.tables}
                yield LinkedDraft(sheets, partial(_write_book, path), book.certify)
        else:
            with release_drafts.folder_draft(self.place, replace, OF_TABLES) as folder:
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
    (folder / CERTIFICATE).write_text(certificate, encoding="utf-8")


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
    proof = folder / CERTIFICATE
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


OF_TABLES = release_drafts.Proof(CERTIFICATE, _require_own)
