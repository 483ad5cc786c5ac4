"""Files as a policy says that they are written: the input, its release, and how one is written."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace

import polars as pl

from shoal.connectors import files
from shoal.connectors.dialect import DELIMITED, Dialect, Reading, codec_of, default_dialect
from shoal.connectors.folder_manifest import check_released
from shoal.connectors.release_drafts import ReleaseDraft
from shoal.data.coded_table import CodedTable
from shoal.data.formulas import escaped, formula_sentences, unescaped
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding import notation
from shoal.policy.binding.certified import certified_reading
from shoal.policy.binding.derived import derived_columns, with_derived, without_derived
from shoal.policy.binding.two_tables import read_both, with_second
from shoal.policy.binding.types import typed
from shoal.policy.interchange import reading_beside, reading_of
from shoal.policy.policy import Policy

_UTF8_WITH_MARK = "utf-8-sig"


def read_original(path: str, policy: Policy, *, allow_empty: bool = False) -> files.SourceFile:
    """The table that a policy is for, numbers with points and dates in ISO; raises InputError."""
    source = files.read(
        path, _categorical(policy), allow_empty=allow_empty, reading=reading_of(policy.model.read)
    )
    return replace(source, frame=original_frame(source.frame, policy))


def read_beside(path: str, policy: Policy, what: str) -> Table:
    """Another table of people, written as the policy's input or in UTF-8; raises InputError.

    Numbers with points and dates in ISO. what: its name in findings.
    """
    reading = reading_beside(policy.model.read)
    table = Table(files.read(path, _categorical(policy), reading=reading).frame)
    return table_beside(table, policy, what)


def table_beside(table: Table, policy: Policy, what: str) -> Table:
    """The same of a table that was read already."""
    try:
        return original_table(table, policy)
    except InputError as wrong:
        findings = [f"{what}: {finding}" for finding in (wrong.args[0], *wrong.findings)]
        raise InputError.from_findings(findings) from None


def original_frame(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The same of a table that was read already; raises InputError with every column at fault."""
    frame, findings = notation.read_original(frame, policy)
    if findings:
        raise InputError.from_findings(findings)
    return frame


def original_table(table: Table, policy: Policy) -> Table:
    """The same of a table."""
    return _same_or(table, original_frame(table.frame, policy))


def _same_or(table: Table, frame: pl.DataFrame) -> Table:
    """The table, with what was encoded of it, where its frame is the same."""
    return table if frame is table.frame else Table(frame)


@dataclass(frozen=True)
class ReleasedFile:
    """A release that was read.

    frame: its columns without the derived ones, numbers with points and dates in ISO. names: all
    columns of the file. contradicted: records whose derived numbers their cells contradict, None
    where the policy asks for none. dialect: of delimited text. second: hash of the second table.
    """

    frame: pl.DataFrame
    sha256: str
    names: list[str]
    contradicted: int | None = None
    dialect: Dialect | None = None
    second: str | None = None


def read_released(path: str, policy: Policy) -> ReleasedFile:
    """A release of a policy, written as its certificate says, else as `write` or `read` say.

    Raises InputError.
    """
    return _released(read_as_written(path, policy), policy)


def read_as_written(
    path: str, policy: Policy, *, allow_empty: bool = False, stated: Reading | None = None
) -> files.SourceFile:
    """A release as it stands in its file, without the escapes of formulas.

    stated: how its certificate says that it is written; by default, the certificate beside it.
    """
    check_released(path)
    reading = reading_of(policy.model.read, policy.model.write)
    if policy.is_made_of_columns:
        asked = policy.model.read  # of a release of any maker
        reading = replace(reading, sheet=asked.sheet, header=asked.header)
    if stated is None:
        stated = certified_reading(path, reading)
    if stated is not None:
        reading = replace(
            reading, encoding=stated.encoding, delimiter=stated.delimiter, is_beside=False
        )

    def read(name: str) -> files.SourceFile:
        source = files.read(name, _categorical(policy), allow_empty=allow_empty, reading=reading)
        return _unescaped(source, policy, files.format_of(name))

    return read_both(path, policy.hidden, read) if policy.is_in_two_tables else read(path)


def read_draft(
    draft: ReleaseDraft,
    kind: str,
    policy: Policy,
    dialect: Dialect,
    second: ReleaseDraft | None = None,
) -> ReleasedFile:
    """A release that was just written in a dialect and is not published yet.

    second: of two tables, the other.
    """
    reading = replace(
        reading_of(policy.model.read, policy.model.write),
        encoding=dialect.encoding,
        delimiter=dialect.delimiter,
    )

    def read(draft: ReleaseDraft) -> files.SourceFile:
        return _unescaped(draft.read(_categorical(policy), reading), policy, kind)

    source = read(draft)
    if second is not None:
        source = with_second(source, read(second), policy.hidden)
    return _released(source, policy)


def _released(source: files.SourceFile, policy: Policy) -> ReleasedFile:
    frame, contradicted = published_frame(source.frame, policy)
    names = source.frame.columns
    return ReleasedFile(frame, source.sha256, names, contradicted, source.dialect, source.second)


def _unescaped(source: files.SourceFile, policy: Policy, kind: str) -> files.SourceFile:
    """What was written, where the policy has formulas escaped."""
    escapes = policy.model.write.formulas == "escape" and kind in DELIMITED
    return replace(source, frame=unescaped(source.frame)) if escapes else source


def _without_formulas(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """Delimited text as the policy wants its formulas; raises InputError where it refuses them."""
    wanted = policy.model.write.formulas
    if wanted == "refuse":
        findings = list(formula_sentences(frame))
        if findings:
            raise InputError.from_findings(findings)
    return escaped(frame) if wanted == "escape" else frame


def published_frame(frame: pl.DataFrame, policy: Policy) -> tuple[pl.DataFrame, int | None]:
    """A release without its derived columns, and how many records its cells contradict."""
    frame, findings = notation.read_published(frame, policy, _sources(policy))
    if findings:
        raise InputError.from_findings(findings)
    return without_derived(frame, policy)


def published_table(table: Table, policy: Policy) -> tuple[Table, int | None]:
    """The same of a table; one that is held as codes alone was read as it is needed."""
    if isinstance(table, CodedTable):
        return table, None
    frame, contradicted = published_frame(table.frame, policy)
    return _same_or(table, frame), contradicted


def written_frame(frame: pl.DataFrame, policy: Policy, kind: str | None) -> pl.DataFrame:
    """A release as it is written: derived columns, types, decimal marks and forms of dates.

    kind: of the file; None for a frame.
    """
    frame = with_derived(frame, policy)
    types = policy.model.write.types or ("typed" if kind in files.TYPED else "text")
    if types == "typed":
        frame = typed(frame, policy)
    if kind in DELIMITED:
        frame = _without_formulas(frame, policy)
    return notation.written(frame, policy, _sources(policy))


def _sources(policy: Policy) -> dict[str, str]:
    return {column.name: column.source for column in derived_columns(policy)}


def output_dialect(
    policy: Policy, input_path: str, found: Dialect | None, output_path: str
) -> Dialect:
    """How a release is written: as `write` says, else as `read` does, else as its input was.

    found: the input's dialect. What parts the cells is taken over for the same suffix only.
    """
    read, write = policy.model.read, policy.model.write
    kind = files.format_of(output_path)
    base = default_dialect(kind)
    if found is not None and kind in DELIMITED:
        same = files.format_of(input_path) == kind
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
