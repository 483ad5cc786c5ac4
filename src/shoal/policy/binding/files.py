"""Files as a policy says that they are written: the input, its release, and how one is written."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import TypeAlias

import numpy as np
import polars as pl

from shoal.connectors import files
from shoal.connectors.dialect import (
    UTF8,
    Dialect,
    Reading,
    codec_of,
    default_dialect,
    is_written_in,
    reading_as_stated,
)
from shoal.connectors.files import SourceFile
from shoal.connectors.frames import Frame, table_of
from shoal.connectors.location import Format, Location
from shoal.connectors.parquet_parts import check_released
from shoal.connectors.release_drafts import ReleaseDraft
from shoal.data.certificate import Certificate
from shoal.data.coded_table import CodedTable
from shoal.data.formulas import escaped, formula_sentences, unescaped
from shoal.data.numbers import MOST_EXACT
from shoal.data.person_names import without_nobody
from shoal.data.progress import Progress
from shoal.data.room import Room
from shoal.data.shared_room import SharedRoom
from shoal.data.table import Table, as_text
from shoal.data.two_tables import sensitive_path
from shoal.data.unpacking import unpacked
from shoal.errors import InputError
from shoal.policy.binding import notation
from shoal.policy.binding.notation import (
    derived_columns,
    is_date,
    is_number,
    with_derived,
    without_derived,
)
from shoal.policy.binding.past_memory import read_past_memory, require_people
from shoal.policy.binding.people import frame_with_person
from shoal.policy.loading import reading_beside, reading_of
from shoal.policy.model import ReadOptions
from shoal.policy.policy import Policy
from shoal.privacy.two_tables import joined

_UTF8_WITH_MARK = "utf-8-sig"


def read_original(
    path: str | Frame, policy: Policy, room: Room | None = None, *, allow_empty: bool = False
) -> SourceFile:
    """The table that a policy is for, numbers with points and dates in ISO; raises InputError.

    path: its name, or a frame. room: where it goes piece by piece, if it does not fit into memory.
    """
    if not isinstance(path, str):
        given = table_given(path, policy, allow_empty)
        remarks = without_nobody(given.frame, policy.model.missing_values)[1]
        return SourceFile(original_table(given, policy), "", remarks=tuple(remarks))
    if room is not None:
        source = read_past_memory(path, policy, reading_of(policy.model.read), room)
        require_people(source.table, policy)
        return source
    reading = _reading(policy)
    source = files.read(path, _categorical(policy), allow_empty=allow_empty, reading=reading)
    frame, remarks = without_nobody(source.frame, policy.model.missing_values)
    if not frame.height and not allow_empty:
        raise InputError(f"file '{path}': holds no records, only empty rows; give it some")
    table = Table(original_frame(frame, policy))
    return replace(source, table=table, remarks=(*source.remarks, *remarks))


def _reading(policy: Policy) -> Reading:
    declared = policy.model.attributes
    return replace(
        reading_of(policy.model.read),
        dropped=frozenset(name for name, one in declared.items() if one.role == "drop"),
        kept=frozenset(declared) if policy.model.other == "drop" else None,
    )


def table_given(frame: Frame | Table, policy: Policy, allow_empty: bool = False) -> Table:
    """The frame that a policy is for, as a table; raises InputError."""
    return table_of(frame, allow_empty, _reading(policy))


def read_beside(path: str, policy: Policy, what: str) -> Table:
    """Another table of people, written as the policy's input or in UTF-8; raises InputError.

    Numbers with points and dates in ISO. what: its name in findings.
    """
    reading = reading_beside(policy.model.read)
    return table_beside(files.read(path, _categorical(policy), reading=reading).table, policy, what)


def table_beside(table: Table, policy: Policy, what: str) -> Table:
    """Another table of people that was read already; raises InputError."""
    try:
        return original_table(table, policy)
    except InputError as wrong:
        findings = [f"{what}: {finding}" for finding in wrong.said]
        raise InputError.from_findings(findings) from None


def original_frame(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Records that were read already, numbers with points and dates in ISO; raises InputError with
    every column at fault.
    """
    frame, findings = notation.read_original(frame, policy)
    InputError.raise_for(findings)
    return frame_with_person(frame, policy)


def original_table(table: Table, policy: Policy) -> Table:
    """A table that was read already, numbers with points and dates in ISO; raises InputError."""
    people, _ = without_nobody(table.frame, policy.model.missing_values)
    if not people.height:
        raise InputError("frame: holds no records, only empty rows; give it some")
    return _same_or(table, original_frame(people, policy))


def _same_or(table: Table, frame: pl.DataFrame) -> Table:
    """The table, with what was encoded of it, where its frame is the same."""
    return table if frame is table.frame else Table(frame)


def read_released(path: str, policy: Policy, room: Room | None = None) -> SourceFile:
    """A release of a policy without its derived columns, numbers with points and dates in ISO.

    It is read as its certificate says that it is written, else as `write` or `read` say. Raises
    InputError.
    """
    return _released(read_as_written(path, policy, room), policy)


def read_as_written(
    path: str,
    policy: Policy,
    room: Room | None = None,
    *,
    allow_empty: bool = False,
    stated: Reading | None = None,
) -> SourceFile:
    """A release as it stands in its file, without the escapes of formulas.

    stated: how its certificate says that it is written; by default, the certificate beside it.
    """
    reading = reading_of(policy.model.read, policy.model.write)
    if room is None:
        check_released(path)
        if policy.is_made_of_columns:
            asked = policy.model.read  # of a release of any maker
            reading = replace(reading, sheet=asked.sheet, header=asked.header)
    if stated is None and not isinstance(room, SharedRoom):
        stated = certified_reading(path, reading)
    reading = as_stated(reading, stated)
    if room is not None:
        return read_past_memory(path, policy, reading, room)

    def read(name: str) -> SourceFile:
        source = files.read(name, _categorical(policy), allow_empty=allow_empty, reading=reading)
        return _unescaped(source, policy, Location(name).kind)

    return read_both(path, policy.hidden, read) if policy.is_in_two_tables else read(path)


def as_stated(reading: Reading, stated: Reading | Dialect | None) -> Reading:
    """The reading with the encoding and the delimiter that are stated, if any are."""
    if stated is None:
        return reading
    return replace(reading, encoding=stated.encoding, delimiter=stated.delimiter, is_beside=False)


def read_draft(
    draft: ReleaseDraft,
    policy: Policy,
    dialect: Dialect,
    second: ReleaseDraft | None = None,
    room: Room | None = None,
) -> SourceFile:
    """A release that was just written in a dialect and is not published yet.

    second: of two tables, the other.
    """
    reading = as_stated(reading_of(policy.model.read, policy.model.write), dialect)
    if room is not None:
        return read_past_memory(draft.path, policy, reading, room, draft.name.kind)

    def read(draft: ReleaseDraft) -> SourceFile:
        return _unescaped(draft.read(_categorical(policy), reading), policy, draft.name.kind)

    source = read(draft)
    if second is not None:
        source = with_second(source, read(second), policy.hidden)
    return _released(source, policy)


def _released(source: SourceFile, policy: Policy) -> SourceFile:
    table, contradicted = published_table(source.table, policy)
    return replace(source, table=table, contradicted=contradicted)


def _unescaped(source: SourceFile, policy: Policy, kind: Format) -> SourceFile:
    """What was written, where the policy has formulas escaped."""
    escapes = policy.model.write.formulas == "escape" and kind.is_delimited
    return replace(source, table=Table(unescaped(source.frame))) if escapes else source


def _without_formulas(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Delimited text as the policy wants its formulas; raises InputError where it refuses them."""
    wanted = policy.model.write.formulas
    if wanted == "refuse":
        findings = list(formula_sentences(frame))
        InputError.raise_for(findings)
    return escaped(frame) if wanted == "escape" else frame


def published_table(table: Table, policy: Policy) -> tuple[Table, int | None]:
    """A released table without its derived columns, and how many records its cells contradict; one
    of codes alone was read as it is needed.
    """
    if isinstance(table, CodedTable):
        return table, None
    frame, findings = notation.read_published(table.frame, policy, _sources(policy))
    InputError.raise_for(findings)
    frame, contradicted = without_derived(frame_with_person(frame, policy), policy)
    return _same_or(table, frame), contradicted


def written_frame(frame: pl.DataFrame, policy: Policy, kind: Format | None) -> pl.DataFrame:
    """A release as it is written: derived columns, types, decimal marks and forms of dates.

    kind: of the file; None for a frame.
    """
    frame = with_derived(frame, policy)
    types = policy.model.write.types or ("typed" if kind and kind.is_columnar else "text")
    if types == "typed":
        frame = typed(frame, policy)
    if kind and kind.is_delimited:
        frame = _without_formulas(frame, policy)
    return notation.written(frame, policy, _sources(policy))


def _sources(policy: Policy) -> dict[str, str]:
    return {column.name: column.source for column in derived_columns(policy)}


def output_dialect(
    policy: Policy, input_path: object, found: Dialect | None, output_path: str
) -> Dialect:
    """How a release is written: as `write` says, else as `read` does, else as its input was.

    found: the input's dialect. What parts the cells is taken over for the same suffix only.
    """
    read, write = policy.model.read, policy.model.write
    kind = Location(output_path).kind
    base = default_dialect(kind)
    if found is not None and kind.is_delimited:
        same = Location(input_path).kind == kind
        base = replace(found, delimiter=found.delimiter if same else base.delimiter)
    if read.delimiter is not None:
        base = replace(base, delimiter=read.delimiter)
    if write.delimiter is not None:
        base = replace(base, delimiter=write.delimiter)
    named = write.encoding or read.encoding
    if named is not None:
        codec = codec_of(named)
        assert codec is not None  # the policy was checked
        is_same = found is not None and codec == found.encoding
        mark = codec == _UTF8_WITH_MARK or (is_same and found is not None and found.bom)
        base = replace(base, encoding="utf-8" if codec == _UTF8_WITH_MARK else codec, bom=mark)
    return replace(base, newline=write.newline or base.newline)


def _categorical(policy: Policy) -> Collection[str]:
    """Columns that are read as categories: not those whose cells are translated."""
    names = policy.audited_columns
    translated = {*notation.translated_columns(policy, names)}
    return [name for name in names if name not in translated]


# Columns of a release as numbers and dates, for formats that have types.


_DAY = r"^\d{4}-\d\d-\d\d$"


def typed(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The release with declared numbers as Int64 or Float64, and days as Date.

    Columns that show anything else, such as intervals or a text for missing values, stay text. So
    do numbers in bins that would not read as they are written, such as `07` or `2` beside `1.5`:
    the leaves of a hierarchy are texts.
    """
    declared = policy.model.attributes
    source_of = {column.name: column.source for column in derived_columns(policy)}
    for name in frame.columns:
        attribute = declared.get(source_of.get(name, name))
        column = frame[name]
        if attribute is None or column.dtype not in (pl.String, pl.Categorical, pl.Enum):
            continue
        text = column.cast(pl.String)
        if is_number(attribute):
            numbers = _numbers(text)
            is_leaf = attribute.hierarchy is not None and name not in source_of
            if not is_leaf or as_text(numbers).equals(as_text(text)):
                frame = frame.with_columns(numbers)
        elif is_date(attribute):
            frame = frame.with_columns(_days(text))
    return frame


def _numbers(text: pl.Series) -> pl.Series:
    numbers = text.str.strip_chars().replace("", None).cast(pl.Float64, strict=False)
    if _says_more(text, numbers) or not bool(numbers.drop_nulls().is_finite().all()):
        return text
    values = numbers.drop_nulls().to_numpy()
    is_large = np.abs(values) >= MOST_EXACT
    if not is_large.any() and (np.floor(values) == values).all():
        return numbers.cast(pl.Int64)
    return text if is_large.any() and _loses_digits(text) else numbers


def _loses_digits(text: pl.Series) -> bool:
    """Whether some number is another one as a float."""
    cells = [cell.strip() for cell in text.drop_nulls().unique().to_list()]
    return any(cell and Decimal(cell) != Decimal(float(cell)) for cell in cells)


def _days(text: pl.Series) -> pl.Series:
    filled = text.replace("", None).drop_nulls()
    if not bool(filled.str.contains(_DAY).all()):
        return text
    days = text.replace("", None).str.to_date("%Y-%m-%d", strict=False)
    return text if _says_more(text, days) else days


def _says_more(text: pl.Series, values: pl.Series) -> bool:
    """Whether some cell that is not empty has no such value."""
    return bool(((text.fill_null("") != "") & values.is_null()).any())


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
    stated = reading_as_stated(output.get("dialect"))
    if _is_same(stated, asked) or files.table_sha256(path) != output.get("sha256"):
        return None
    if _codec(stated) != UTF8 and not is_written_in(_content(path, asked), _codec(stated)):
        return None
    return stated


def _is_same(stated: Reading, asked: Reading) -> bool:
    # where nothing is asked, the delimiter is guessed, and from a few columns wrongly
    parts_alike = stated.delimiter in (None, asked.delimiter)
    return parts_alike and _codec(stated) == _codec(asked)


def _codec(reading: Reading) -> str:
    return (codec_of(reading.encoding) if reading.encoding else None) or UTF8


def _content(path: str, asked: Reading) -> bytes:
    content = Path(path).read_bytes()
    return unpacked(content, f"file '{path}'", asked.unpacked)


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
    second = sensitive_path(path)
    if not Path(second).exists():
        raise InputError(
            f"file '{second}': is not there; the release has two tables, keep both in one folder"
        )
    return with_second(first, read(second), name)


def released_table(released: Frame | tuple[Frame, Frame], policy: Policy) -> Table:
    """A released frame; of two tables both, as one; raises InputError where it is not as many."""
    is_pair = isinstance(released, tuple)
    if is_pair != policy.is_in_two_tables:
        raise InputError(
            "released: is a pair of tables, the policy's method publishes one; give that"
            if is_pair
            else "released: the policy's method publishes two tables; give both as a pair, the"
            " quasi-identifiers first"
        )
    if not isinstance(released, tuple):
        return table_of(released)
    first, second = (table_of(frame).frame for frame in released)
    return Table(joined(first, second, policy.hidden))


# A table that a job of advice is given: the path of a file, or a frame.


Source: TypeAlias = "str | Path | Frame"
"""A table in a file, or as a frame of pandas, polars or pyarrow."""


def read_undeclared(
    source: Source, read: ReadOptions, progress: Progress, policy: Policy | None = None
) -> tuple[Table, Dialect | None]:
    """A table as it is written, and the dialect of a delimited file; raises InputError.

    policy: what columns of a frame are needed for, where it is known.
    """
    if not isinstance(source, (str, Path)):
        return table_of(source) if policy is None else table_given(source, policy), None
    progress("reading the table")
    file = files.read(str(source), reading=reading_of(read))
    return file.table, file.dialect


def read_source(source: Source, policy: Policy, progress: Progress) -> Table:
    """The table as the policy reads it; raises InputError."""
    if isinstance(source, (str, Path)):
        progress("reading the table")
        return read_original(str(source), policy).table
    return original_table(table_given(source, policy), policy)
