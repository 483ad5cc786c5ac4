"""The policy's blocks `read` and `write`: how files come in and go out."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from shoal.connectors.dialect import SOME_ENCODINGS, Reading, codec_of
from shoal.data.notation import THOUSANDS, Notation
from shoal.data.room import bytes_of
from shoal.errors import InputError
from shoal.policy.parameters import suggestion

NEWLINES = {"\n": "\n", "\r\n": "\r\n", "lf": "\n", "crlf": "\r\n", r"\n": "\n", r"\r\n": "\r\n"}
_TABS = (r"\t", "tab")
# one that tells day from month, one of another century, and one with seconds
_PROBES = (datetime(1931, 12, 5), datetime(2024, 3, 14))


class _Options(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    encoding: str | None = Field(
        None, description="Python's name of the encoding; UTF-8, or UTF-16 by its mark, if absent."
    )
    delimiter: str | None = Field(None, description="What parts the cells; found if absent.")

    @field_validator("encoding")
    @classmethod
    def _is_known(cls, name: str | None) -> str | None:
        if name is not None and codec_of(name) is None:
            raise ValueError(
                f"is not an encoding that Python knows; say one such as {SOME_ENCODINGS}"
            )
        return name

    @field_validator("delimiter")
    @classmethod
    def _is_one_sign(cls, text: str | None) -> str | None:
        text = "\t" if text in _TABS else text
        if text is not None and (len(text) != 1 or not text.isascii() or text in '"\r\n\0'):
            raise ValueError("must be one ASCII character, such as ';' or '\\t'")
        return text


class ReadOptions(_Options):
    """How the files that are read are written; what is absent is found in them."""

    decimal: Literal[".", ","] = Field(".", description="The decimal mark of declared numbers.")
    thousands: str | None = Field(
        None, description="What groups their digits by threes: one of . , ' or a blank."
    )
    dates: str | None = Field(
        None, description="strptime form of the dates that the maker 'dates' reads; ISO if absent."
    )
    sheet: str | None = Field(None, description="The sheet of a workbook that has several.")
    header: int = Field(
        1,
        ge=1,
        le=10_000,
        description="The line, or row of a sheet, that names the columns; 1 if absent.",
    )
    unpacked: str | None = Field(
        None, description="What a compressed file may unpack to, such as 16GB."
    )

    @field_validator("unpacked")
    @classmethod
    def _is_size(cls, size: str | None) -> str | None:
        try:
            return size if size is None or bytes_of(size) else None
        except InputError:
            raise ValueError("must be a size, such as 16GB") from None

    @field_validator("thousands")
    @classmethod
    def _groups(cls, mark: str | None) -> str | None:
        if mark is not None and mark not in THOUSANDS:
            raise ValueError("must be one of . , ' or a blank, in quotes")
        return mark

    @field_validator("dates")
    @classmethod
    def _names_a_day(cls, form: str | None) -> str | None:
        if form is not None and not _tells_days(form):
            raise ValueError(
                "must be a strptime form with day, month and a year of four digits, such as"
                " %d.%m.%Y"
            )
        return form

    @model_validator(mode="after")
    def _marks_differ(self) -> ReadOptions:
        if self.thousands == self.decimal:
            raise ValueError("'decimal' and 'thousands' are the same mark; correct one of them")
        return self

    @property
    def notation(self) -> Notation:
        """How numbers and dates are written."""
        return Notation(self.decimal, self.thousands, self.dates)


class WriteOptions(_Options):
    """How the release is written; what is absent is as in the input."""

    newline: str | None = Field(None, description="How lines end: \\n or \\r\\n.")
    formulas: Literal["keep", "escape", "refuse"] = Field(
        "keep", description="What becomes of cells that a spreadsheet would take for formulas."
    )
    numbers: list[Literal["lo", "hi", "mid", "mean"]] = Field(
        [], description="Columns to add behind each number: its ends, their middle, its mean."
    )
    types: Literal["typed", "text"] | None = Field(
        None, description="Declared numbers and dates as such, or as text; typed in Parquet, Arrow."
    )

    @field_validator("newline")
    @classmethod
    def _ends_a_line(cls, text: str | None) -> str | None:
        if text is None:
            return None
        if text.lower() not in NEWLINES:
            raise ValueError("must be \\n or \\r\\n; lf and crlf will do")
        return NEWLINES[text.lower()]


def reading_of(read: ReadOptions, write: WriteOptions | None = None) -> Reading:
    """What is said about the input; or, with `write`, about a release.

    A release that Shoal writes has one sheet and no title, so which sheet and which line of the
    input is read says nothing there.
    """
    encoding, delimiter = read.encoding, read.delimiter
    if write is not None:
        encoding, delimiter = write.encoding or encoding, write.delimiter or delimiter
    unpacked = None if read.unpacked is None else bytes_of(read.unpacked)
    if write is not None:
        return Reading(
            encoding, delimiter, decimal=read.decimal, dates=read.dates, unpacked=unpacked
        )
    return Reading(
        *(encoding, delimiter, read.sheet, read.header, read.decimal, read.dates),
        unpacked=unpacked,
    )


def reading_beside(read: ReadOptions) -> Reading:
    """What is said about tables that belong to the input: they may also be UTF-8."""
    return Reading(
        read.encoding, read.delimiter, decimal=read.decimal, dates=read.dates, is_beside=True
    )


def keys_and_values(option: str, settings: list[str]) -> tuple[dict[str, Any], list[str]]:
    """KEY=VALUE texts of an option as a mapping, and a finding for each that is none or unknown."""
    findings = [
        f"{option} '{text}': is not KEY=VALUE; write for instance {_EXAMPLES[option]}"
        for text in settings
        if "=" not in text
    ]
    pairs = [text.partition("=") for text in settings if "=" in text]
    values: dict[str, Any] = {key.strip(): value for key, _, value in pairs}
    times = Counter(key.strip() for key, _, _ in pairs)
    findings += [
        f"{option} {key}=...: is given {count} times; give it once, several values with commas"
        for key, count in times.items()
        if count > 1
    ]
    known = _KNOWN[option].model_fields
    findings += [
        f"{option} {key}=...: is not a known key; {suggestion(key, known)}{keys_of(_KNOWN[option])}"
        for key in values
        if key not in known
    ]
    if "numbers" in values:
        values["numbers"] = [part.strip() for part in values["numbers"].split(",")]
    return values, findings


def keys_of(block: type[BaseModel]) -> str:
    """What keys there are, as a way out."""
    return f"choose one of {', '.join(block.model_fields)}"


_KNOWN: dict[str, type[BaseModel]] = {"--read": ReadOptions, "--write": WriteOptions}
_EXAMPLES = {"--read": "--read encoding=cp1252", "--write": "--write delimiter=;"}


def _tells_days(form: str) -> bool:
    try:
        return all(
            datetime.strptime(day.strftime(form), form).date() == day.date() for day in _PROBES
        )
    except ValueError:
        return False
