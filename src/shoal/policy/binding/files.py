"""Files as a policy says that they are written: the input, its release, and how one is written."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

import polars as pl

from shoal.connectors import dialect, files, parquet_parts
from shoal.connectors import dialect as dialects
from shoal.connectors.dialect import Dialect, Reading
from shoal.connectors.formats import Format, SourceFile
from shoal.connectors.frames import Frame, nan_in, table_of
from shoal.connectors.location import FRAME, Location
from shoal.connectors.release_drafts import WrittenDraft
from shoal.data import recoding, regular_files
from shoal.data.certificate import Certificate
from shoal.data.coded_table import CodedTable
from shoal.data.person_names import named_together, without_nobody
from shoal.data.progress import Progress
from shoal.data.room import Room
from shoal.data.table import Table
from shoal.data.warnings import (
    FORMULA_CELLS,
    ReleaseWarning,
    nan_remarks,
    unread_lists,
    warn_of_nobody,
)
from shoal.errors import InputError
from shoal.policy.binding.notation import CellNotation, translated_columns
from shoal.policy.binding.past_memory import read_past_memory, require_people, require_readable
from shoal.policy.consistency import renders_two_tables, require_one_record_each
from shoal.policy.loading import reading_beside, reading_of, reading_of_release
from shoal.policy.model import PolicyModel, ReadOptions
from shoal.privacy.two_tables import joined

_UTF8_WITH_MARK = "utf-8-sig"


@dataclass(frozen=True)
class PolicyTables:
    """The tables of a policy, its input and its release: their columns, how they are written.

    base: the folder that names of other tables are relative to. is_made_of_columns: whether nobody
    wrote the policy. links: removed columns that say whose a row is, or hold what it shows.
    """

    model: PolicyModel
    base: Path = Path()
    is_made_of_columns: bool = False
    links: Collection[str] = ()

    @cached_property
    def cells(self) -> CellNotation:
        """How numbers and dates stand in them."""
        return CellNotation(self.model)

    @cached_property
    def written_populations(self) -> dict[str, Table]:
        """The population tables that promises compare with, by the policy's name for them."""
        reading = reading_beside(self.model.read)
        return {
            name: files.read(str(self.base / name), self.model.quasi, reading=reading).table
            for name in self.model.population_names
        }

    @property
    def lacking(self) -> list[str]:
        """Quasi-identifiers that a table of the population lacks."""
        return [
            f"population '{table}': has no column '{name}', a quasi-identifier; add it"
            for table, people in self.written_populations.items()
            for name in self.model.quasi
            if name not in people.names
        ]

    @cached_property
    def populations(self) -> dict[str, Table]:
        """The populations by name, numbers with points and dates in ISO; raises InputError."""
        tables = {
            name: self.table_beside(people, f"population '{name}'")
            for name, people in self.written_populations.items()
        }
        for name, people in tables.items():
            require_one_record_each(people, self.model, f"population '{name}'")
        return tables

    def read_original(
        self, path: str | Frame, room: Room | None = None, *, allow_empty: bool = False
    ) -> SourceFile:
        """The table that a policy is for, numbers with points and dates in ISO; raises InputError.

        path: its name, or a frame. room: where it goes piece by piece, if it does not fit into
        memory.
        """
        reading = self.reading_of(self.model.read)
        if not isinstance(path, str):
            given = self.table_given(path, allow_empty)
            remarks = without_nobody(given.frame, *self.nobody(given.frame.columns))[1]
            remarks += nan_remarks(nan_in(path, reading))
            return SourceFile(self.original_table(given), "", remarks=remarks)
        if room is not None:
            source = self._read_past_memory(path, reading, room)
            require_people(source.table, self.model)
            return source
        source = files.read(path, self._categorical(), allow_empty=allow_empty, reading=reading)
        if source.table.different is not source.table and self._is_plain(source.table.different):
            return source
        frame, remarks = without_nobody(source.frame, *self.nobody(source.frame.columns))
        if not frame.height and not allow_empty:
            raise InputError(f"file '{path}': holds no records, only empty rows; give it some")
        table = Table(self.original_frame(frame))
        unread = [] if self.model.subject_columns else map(unread_lists, source.unread)
        return replace(source, table=table, remarks=(*source.remarks, *remarks, *unread))

    def nobody(self, names: list[str], other: str | None = None) -> tuple[list[str], list[str]]:
        """By what `without_nobody` knows the rows of nobody: texts for no value, and columns that
        are removed and don't say whose a row is.

        other: the role of columns that the policy does not name, if it is another than its own.
        """
        silent = self.model.silent_of(names, other or self.model.other)
        return self.model.no_names, [name for name in silent if name not in self.links]

    def absent_from(self, names: list[str]) -> list[str]:
        """The columns that a policy names and a table has not; people's are made of others."""
        known = (*names, *self.model.subject_columns)
        return [name for name in self.model.attributes if name not in known]

    def _is_plain(self, rows: Table) -> bool:
        """Whether each of these records is somebody's, and read as it is written."""
        if without_nobody(rows.frame, *self.nobody(rows.frame.columns))[0].height < rows.records:
            return False
        try:
            return self.original_frame(rows.frame) is rows.frame
        except InputError:
            return False  # said of all records

    def _read_past_memory(
        self, path: str | Path, reading: Reading, room: Room, kind: str | None = None
    ) -> SourceFile:
        require_readable(self.model, path, bool(self.written_populations))
        source = read_past_memory(path, reading, room, kind)
        return replace(source, table=self.with_person(source.table))

    def reading_of(self, read: ReadOptions) -> Reading:
        """What is said about a table, and which of its columns the policy needs."""
        declared = self.model.attributes
        return replace(
            reading_of(read),
            dropped=frozenset(name for name, one in declared.items() if one.role == "drop"),
            kept=frozenset(declared) if self.model.other == "drop" else None,
        )

    @property
    def _reading_of_release(self) -> Reading:
        """Numbers and dates that are not declared stand there as such, not in the policy's form."""
        reading = reading_of_release(self.model.read, self.model.write)
        sources = {column.name: column.source for column in self.cells.derived}
        translated = translated_columns(self.model, [*self.model.attributes, *sources], sources)
        return replace(reading, translated=frozenset(translated))

    def table_given(self, frame: Frame | Table, allow_empty: bool = False) -> Table:
        """The frame that a policy is for, as a table; raises InputError."""
        return table_of(frame, allow_empty, self.reading_of(self.model.read))

    def read_beside(self, people: Source, what: str) -> Table:
        """Another table of people, a frame or in a file as the policy's input or in UTF-8, numbers
        with points and dates in ISO; raises InputError. what: its name in findings.
        """
        if not isinstance(people, str | Path):
            return self.table_beside(people, what)
        kinds, reading = self._categorical(), reading_beside(self.model.read)
        read = files.read(str(people), kinds, allow_empty=True, reading=reading)
        return self.table_beside(read.table, what)

    def table_beside(self, table: Frame | Table, what: str) -> Table:
        """Another table of people, as a frame or read already; raises InputError."""
        try:
            given = self.table_given(table, allow_empty=True)
            if not given.records:
                raise InputError("holds no records; give it some people, or leave it out")
            return self.original_table(given, other="drop")
        except InputError as wrong:
            raise InputError.from_findings([f"{what}: {one}" for one in wrong.said]) from None

    def original_frame(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Records that were read already, numbers with points and dates in ISO; raises InputError
        with every column at fault.
        """
        frame, findings = self.cells.read_original(frame)
        InputError.raise_for(findings)
        return self.with_person(Table(frame)).frame

    def original_table(self, table: Table, other: str | None = None) -> Table:
        """A table that was read already, with points and dates in ISO; raises InputError.

        other: as for `nobody`.
        """
        people, _ = without_nobody(table.frame, *self.nobody(table.frame.columns, other))
        if not people.height:
            raise InputError("frame: holds no records, only empty rows; give it some")
        return _same_or(table, self.original_frame(people))

    def read_source(self, source: Source, progress: Progress) -> Table:
        """The table as the policy reads it; raises InputError."""
        if isinstance(source, (str, Path)):
            progress("reading the table")
            return self.read_original(str(source)).table
        found = self.read_original(source)
        warn_of_nobody(found.remarks)
        return found.table

    def read_released(self, path: str, room: Room | None = None) -> SourceFile:
        """A release of a policy without its derived columns, numbers with points and dates in ISO.

        It is read as its certificate says that it is written, else as `write` or `read` say. Raises
        InputError.
        """
        return self._released(self.read_as_written(path, room))

    def read_as_written(
        self,
        path: str,
        room: Room | None = None,
        *,
        allow_empty: bool = False,
        stated: Reading | None = None,
        sheet: str | None = None,
    ) -> SourceFile:
        """A release as it stands in its file, without the escapes of formulas.

        stated: how its certificate says that it is written; by default, the certificate beside it.
        sheet: of a workbook that has several.
        """
        reading = replace(self._reading_of_release, sheet=sheet)
        if room is None:
            parquet_parts.check_released(path)
            if self.is_made_of_columns:
                asked = self.model.read  # of a release of any maker
                reading = replace(reading, sheet=asked.sheet, header=asked.line_of())
        reading = reading.as_stated(stated or certified_reading(path, reading))
        if room is not None:
            return self._read_past_memory(path, reading, room)

        def read(name: str) -> SourceFile:
            source = files.read(name, self._categorical(), allow_empty=allow_empty, reading=reading)
            return self._unescaped(source, Location(name).kind)

        if renders_two_tables(self.model):
            return read_both(path, self.model.sensitive[0], read)
        return read(path)

    def read_draft(
        self,
        draft: WrittenDraft,
        dialect: Dialect,
        second: WrittenDraft | None = None,
        room: Room | None = None,
    ) -> SourceFile:
        """A release that was just written in a dialect and is not published yet.

        second: of two tables, the other.
        """
        reading = self._reading_of_release.as_stated(dialect)
        # whose sorted rows repeat: no bound on files from strangers judges it
        reading = replace(reading, unpacked=sys.maxsize)
        if room is not None:
            return self._read_past_memory(draft.path, reading, room, draft.name.kind)

        def read(draft: WrittenDraft) -> SourceFile:
            return self._unescaped(draft.read(self._categorical(), reading), draft.name.kind)

        source = read(draft)
        if second is not None:
            source = with_second(source, read(second), self.model.sensitive[0])
        return self._released(source)

    def _released(self, source: SourceFile) -> SourceFile:
        table, contradicted = self.published_table(source.table)
        return replace(source, table=table, contradicted=contradicted)

    def _unescaped(self, source: SourceFile, kind: Format) -> SourceFile:
        """What was written, where the policy has formulas escaped."""
        escapes = self.model.write.formulas == "escape" and kind.is_delimited
        return replace(source, table=Table(dialect.unescaped(source.frame))) if escapes else source

    def published_table(self, table: Table) -> tuple[Table, int | None]:
        """A released table without its derived columns, and how many records its cells contradict;
        one of codes alone was read as it is needed.
        """
        if isinstance(table, CodedTable) or self._is_plainly_published(table):
            return table, None
        frame, findings = self.cells.read_published(table.frame)
        InputError.raise_for(findings)
        frame, contradicted = self.cells.without_derived(self.with_person(Table(frame)).frame)
        return _same_or(table, frame), contradicted

    def _is_plainly_published(self, table: Table) -> bool:
        """Whether each different record is read as it is written; False where they are not known
        apart from the records.
        """
        rows = table.different.frame
        if table.different is table or any(c.source in table.names for c in self.cells.derived):
            return False
        frame, findings = self.cells.read_published(rows)
        return not findings and self.with_person(Table(frame)).frame is rows

    def released_table(self, released: Frame | tuple[Frame, Frame]) -> Table:
        """A released frame; of two tables both, as one; raises InputError for others."""
        is_pair = isinstance(released, tuple)
        if is_pair != renders_two_tables(self.model):
            raise InputError(
                "released: is a pair of tables, the policy's method publishes one; give that"
                if is_pair
                else "released: the policy's method publishes two tables; give both as a pair, the"
                " quasi-identifiers first"
            )
        if not isinstance(released, tuple):
            return table_of(released)
        first, second = (table_of(frame).frame for frame in released)
        return Table(joined(first, second, self.model.sensitive[0]))

    def written_frame(self, frame: pl.DataFrame, kind: Format | None) -> pl.DataFrame:
        """A release as it is written: derived columns, types, decimal marks and forms of dates.

        kind: of the file; None for a frame. A database shows its numbers and days in one form.
        """
        frame = self.cells.with_derived(frame)
        notation = self.model.read.notation
        is_plain = notation.has_plain_numbers and notation.dates is None
        has_types = kind is not None and kind.has_types and (kind.is_columnar or is_plain)
        types = self.model.write.types or ("typed" if has_types else "text")
        if types == "typed":
            frame = self.cells.typed(frame)
        elif kind == FRAME and self.model.write.types is None:
            frame = self.cells.typed(frame, single_alone=True)
        if kind and kind.is_delimited:
            frame = self._without_formulas(frame)
        is_text = kind is not None and not kind.tells_numbers
        return self.cells.written(frame, numbers_too=is_text)

    def _without_formulas(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Delimited text, formulas as the policy wants them; raises InputError where it refuses."""
        wanted = self.model.write.formulas
        if wanted == "refuse":
            InputError.raise_for(dialect.formula_sentences(Table(frame)))
        return dialect.escaped(frame) if wanted == "escape" else frame

    def formula_warnings(self, released: Table, kind: Format) -> list[ReleaseWarning]:
        """A warning for each column of delimited text that a spreadsheet would compute."""
        if not kind.is_delimited or self.model.write.formulas != "keep":
            return []
        return [ReleaseWarning(FORMULA_CELLS, text) for text in dialect.formula_sentences(released)]

    def output_dialect(
        self, input_path: object, found: Dialect | None, output_path: str
    ) -> Dialect:
        """How a release is written: as `write` says, else as `read` does, else as its input was.

        found: the input's dialect. What parts the cells is taken over for the same suffix only.
        """
        read, write = self.model.read, self.model.write
        kind = Location(output_path).kind
        base = dialects.default_dialect(kind)
        if found is not None and kind.is_delimited:
            same = Location(input_path).kind == kind
            base = replace(found, delimiter=found.delimiter if same else base.delimiter)
        if delimiter := write.delimiter or read.delimiter:
            base = replace(base, delimiter=delimiter)
        named = write.encoding or read.encoding
        if named is not None:
            codec = dialects.codec_of(named)
            assert codec is not None  # the policy was checked
            is_same = found is not None and codec == found.encoding
            mark = codec == _UTF8_WITH_MARK or (is_same and found is not None and found.bom)
            base = replace(base, encoding="utf-8" if codec == _UTF8_WITH_MARK else codec, bom=mark)
        return replace(base, newline=write.newline or base.newline)

    def with_person(self, table: Table) -> Table:
        """A table with its column of people, where several columns name them together.

        The order in which the policy lists them does not matter. Columns that it lacks are found
        by who binds it. Raises InputError where the data has a column of that name.
        """
        name, together = self.model.person, self.model.together
        if name is None or not {*together} <= {*table.names}:
            return table
        if name in table.names:
            raise InputError(
                f"column '{name}': is what 'subject' names its combinations of columns; rename it"
            )
        columns = [table.column(column) for column in together]
        return table.with_column(named_together(name, columns, self.model.no_names, table.room))

    def _categorical(self) -> Collection[str]:
        """Columns that are read as categories: not those whose cells are translated."""
        names = self.model.audited_columns
        translated = {*translated_columns(self.model, names)}
        return [name for name in names if name not in translated]


def _same_or(table: Table, frame: pl.DataFrame) -> Table:
    """The table, with what was encoded of it, where its frame is the same."""
    return table if frame is table.frame else Table(frame)


# How a release is written, as the certificate beside it says; options of `publish` may have
# overridden what the policy says of that.


def certified_reading(path: str, asked: Reading) -> Reading | None:
    """How to read a release where its certificate says otherwise than the policy.

    asked: as the policy says. None where there is no certificate, or none that can be read, or it
    is another file's, or the file is not written in the encoding that it names.
    """
    place = Location(path)
    beside = Path(place.certificate)
    if place.is_standard or not place.kind_to_read.is_delimited or not beside.is_file():
        return None
    try:
        output = Certificate.load(beside).get("output") or {}
    except InputError:
        return None  # an audit needs no certificate
    stated = dialects.reading_as_stated(output.get("dialect"))
    if _is_same(stated, asked) or files.table_sha256(path) != output.get("sha256"):
        return None
    if _codec(stated) != dialects.UTF8:
        content = Path(path).read_bytes()
        content = regular_files.unpacked(content, f"file '{path}'", asked.unpacked)
        if not dialects.is_written_in(content, _codec(stated)):
            return None
    return stated


def _is_same(stated: Reading, asked: Reading) -> bool:
    # where nothing is asked, the delimiter is guessed, and from a few columns wrongly
    parts_alike = stated.delimiter in (None, asked.delimiter)
    return parts_alike and _codec(stated) == _codec(asked)


def _codec(reading: Reading) -> str:
    return (dialects.codec_of(reading.encoding) if reading.encoding else None) or dialects.UTF8


# A release of two tables, read as one: each row with its group and a value of the group.


def with_second(source: SourceFile, second: SourceFile, name: str) -> SourceFile:
    """Both files as one table, `joined`. name: the sensitive attribute."""
    table = Table(joined(source.frame, second.frame, name))
    return replace(source, table=table, second=second.sha256)


def read_both(path: str, name: str, read: Callable[[str], SourceFile]) -> SourceFile:
    """Both files at a path as one table, read by the same function; raises InputError where there
    can be no second one, or is none.
    """
    first = read(path)
    if Location(path).is_standard:
        raise InputError("file '-': a release of two tables is two files; name the first")
    second = recoding.sensitive_path(path)
    if not Path(second).exists():
        raise InputError(
            f"file '{second}': is not there; the release has two tables, keep both in one folder"
        )
    return with_second(first, read(second), name)


# A table that a job of advice is given: the path of a file, or a frame.


Source: TypeAlias = "str | Path | Frame"
"""A table in a file, or as a frame of pandas, polars or pyarrow."""


def read_undeclared(
    source: Source, read: ReadOptions, progress: Progress, known: PolicyTables | None = None
) -> tuple[Table, Dialect | None]:
    """A table as it is written, and the dialect of a delimited file; raises InputError.

    known: of a policy that says which columns are needed.
    """
    if not isinstance(source, (str, Path)):
        return table_of(source) if known is None else known.table_given(source), None
    progress("reading the table")
    reading = reading_of(read) if known is None else known.reading_of(read)
    file = files.read(str(source), reading=reading)
    return file.table, file.dialect
