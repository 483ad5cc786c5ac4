"""The keys of a policy file, and what each of them may hold."""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    field_validator,
    model_serializer,
    model_validator,
)

from shoal.connectors.dialect import SOME_ENCODINGS, codec_of, is_delimiter
from shoal.data.linked import PEOPLE
from shoal.data.numbers import FARTHEST, THOUSANDS, Notation, parse_numbers
from shoal.data.option import suggestion
from shoal.data.regular_files import Json
from shoal.data.room import bytes_of
from shoal.data.schema import RECORD_LINES, Kind, Shown
from shoal.data.table import with_decimals
from shoal.data.warnings import REMOVED_ROLES
from shoal.errors import InputError
from shoal.policy import registry

ORDERS = ("frequency", "alphabetical")
SHOWN = ("quasi", "sensitive", "plain")
"""The roles of columns that a release has."""


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


def setting(help: str, default: Any = None, **bounds: Any) -> Any:
    """A key of a file: what it says, and what holds without it, `...` where it must be there."""
    return Field(default, description=help, **bounds)


# The policy's blocks `read` and `write`: how files come in and go out.


NEWLINES = {"\n": "\n", "\r\n": "\r\n", "lf": "\n", "crlf": "\r\n", r"\n": "\n", r"\r\n": "\r\n"}
MOST_PROMISES = 5_000  # each is judged for every class
# one that tells day from month, one of another century, and one with seconds
_PROBES = (datetime(1931, 12, 5), datetime(2024, 3, 14))


def _bytes(size: str, beside: str = "") -> int:
    try:
        return bytes_of(size)
    except InputError:
        raise ValueError(f"must be a size, such as 16GB{beside}") from None


def _encoding(name: str) -> str:
    if codec_of(name) is None:
        raise ValueError(f"is not an encoding that Python knows; say one such as {SOME_ENCODINGS}")
    return name


def _delimiter(text: str) -> str:
    text = "\t" if text in (r"\t", "tab") else text
    if not is_delimiter(text):
        raise ValueError("must be one ASCII character, such as ';' or '\\t'")
    return text


def _thousands(mark: str) -> str:
    if mark not in THOUSANDS:
        raise ValueError("must be one of . , ' or a blank, in quotes")
    return mark


def _dates(form: str) -> str:
    try:
        days = [datetime.strptime(day.strftime(form), form).date() for day in _PROBES]
    except ValueError:
        days = []
    if days != [day.date() for day in _PROBES]:
        raise ValueError(
            "must be a strptime form with day, month and a year of four digits, such as %d.%m.%Y"
        )
    return form


def _unpacked(size: str) -> str | None:
    return size if _bytes(size) else None


def _roll(size: str) -> str:
    if size != "day":
        _bytes(size, ", or 'day'")
    return size


def _newline(text: str) -> str:
    if text.lower() not in NEWLINES:
        raise ValueError("must be \\n or \\r\\n; lf and crlf will do")
    return NEWLINES[text.lower()]


class _Options(_Strict):
    encoding: Annotated[str, AfterValidator(_encoding)] | None = setting(
        "Python's name of the encoding; UTF-8, or UTF-16 by its mark, if absent."
    )
    delimiter: Annotated[str, AfterValidator(_delimiter)] | None = setting(
        "What parts the cells; found if absent."
    )


Line = Annotated[int, Field(ge=1, le=10_000)]


class ReadOptions(_Options):
    """How the files that are read are written; what is absent is found in them."""

    decimal: Literal[".", ","] = setting("The decimal mark of declared numbers.", ".")
    thousands: Annotated[str, AfterValidator(_thousands)] | None = setting(
        "What groups their digits by threes: one of . , ' or a blank."
    )
    dates: Annotated[str, AfterValidator(_dates)] | None = setting(
        "strptime form of the dates that the maker 'dates' reads; ISO if absent."
    )
    sheet: str | None = setting("The sheet of a workbook that has several.")
    header: Line | dict[str, Line] = setting(
        "The line, or row of a sheet, that names the columns; of linked tables, also by table;"
        " 1 if absent.",
        1,
    )
    unpacked: Annotated[str, AfterValidator(_unpacked)] | None = setting(
        "What a compressed file may unpack to, such as 16GB."
    )
    record_lines: int = setting(
        "Lines of a stream's CSV record at most; beyond, a quote was left open.", RECORD_LINES, ge=1
    )
    partitioner: Literal["murmur2", "crc32"] = setting(
        "How producers map keys to a topic's partitions; Java's if absent.", "murmur2"
    )

    @model_validator(mode="after")
    def _marks_differ(self) -> "ReadOptions":
        if self.thousands == self.decimal:
            raise ValueError("'decimal' and 'thousands' are the same mark; correct one of them")
        return self

    def line_of(self, table: str = PEOPLE) -> int:
        """Which line names the columns of a table."""
        return self.header if isinstance(self.header, int) else self.header.get(table, 1)

    def of_table(self, name: str) -> "ReadOptions":
        """What is said of one of several tables."""
        return self.model_copy(update={"header": self.line_of(name)})

    @property
    def notation(self) -> Notation:
        """How numbers and dates are written."""
        return Notation(self.decimal, self.thousands, self.dates)


def header_of(lines: Mapping[str, int], people: str) -> Json:
    """What `read` says of the lines that name the columns of linked tables: nothing where all are
    first. people: what the table of people is called where it lies.
    """
    by_table = {PEOPLE if name == people else name: line for name, line in lines.items()}
    first, *others = {*lines.values()}
    return {"header": by_table} if others else {"header": first} if first > 1 else {}


class WriteOptions(_Options):
    """How the release is written; what is absent is as in the input."""

    newline: Annotated[str, AfterValidator(_newline)] | None = setting(
        "How lines end: \\n or \\r\\n."
    )
    formulas: Literal["keep", "escape", "refuse"] = setting(
        "What becomes of cells that a spreadsheet would take for formulas.", "keep"
    )
    numbers: list[Literal["lo", "hi", "mid", "mean"]] = setting(
        "Columns to add behind each number: its ends, their middle, its mean.", []
    )
    types: Literal["typed", "text"] | None = setting(
        "Declared numbers and dates as such, or as text; typed in Parquet, Arrow, SQL."
    )
    roll: Annotated[str, AfterValidator(_roll)] = setting(
        "Of a stream's folder: when its next file begins, a size or 'day'.", "100MB"
    )


# What each column is for, and all else that a policy says.


class PersonQuestion(_Strict):
    """The open question who is one person."""

    question: Literal["person"]
    candidates: list[str | list[str]] = setting(
        "Columns that may number people, the likeliest first; several that do together as a list.",
        ...,
        min_length=1,
    )
    text: str | None = setting("The question in words.")


class MissingQuestion(_Strict):
    """The open question whether texts among numbers or dates, or far numbers, mean no value."""

    question: Literal["missing"]
    values: dict[str, int] = setting("By text, the cells that hold it.", ..., min_length=1)
    text: str | None = setting("The question in words.")


Question = Annotated[PersonQuestion | MissingQuestion, Field(discriminator="question")]


KnownRows = Literal["all", "count", "none"] | Annotated[int, Field(ge=1, le=3, strict=True)]
"""Which rows an attacker may know: all, their number, nothing, or any m of them."""


class AttributePolicy(_Strict):
    """What one column is for."""

    role: Literal[
        "identifier",
        "subject",
        "quasi",
        "sensitive",
        "plain",
        "time",
        "operation",
        "drop",
        "weight",
        "household",
    ]
    type: Literal["number", "ordinal", "category", "date", "set"] | None = setting(
        "How values relate; by default number where a domain, ordinal where an order is given."
        " Dates and sets are of linked tables."
    )
    distance: Literal["equal", "ordered"] | None = setting(
        "Of sensitive numbers: equal if they are codes, by default ordered."
    )
    domain: tuple[float, float] | None = setting("Least and greatest value of a number.")
    order: list[str] | str | None = setting(
        "Labels of an ordinal, least first; or 'frequency' (most frequent first) or 'alphabetical'."
    )
    hierarchy: str | Json | None = setting(
        "An ARX hierarchy table, or one maker: prefix, bins, dates, order, tree."
    )
    weight: float = setting(
        "How much the loss of this attribute matters to the method.", 1.0, gt=0, le=FARTHEST
    )
    render: Literal["range", "mean", "both", "median", "mode"] = setting(
        "What a class publishes: of a number its range, its mean, both, or its median; of a"
        " number or category its mode.",
        "range",
    )
    round: float | None = setting(
        "A number's intervals end at multiples of this.", gt=0, le=FARTHEST
    )
    pseudonym: Literal["keyed"] | None = setting(
        "Replace an identifier or a household by a keyed pseudonym."
    )
    publish: Literal["rounded"] | None = setting(
        "Of a weight: published in intervals that end at multiples of 'round', which makes it a"
        " quasi-identifier."
    )
    over_time: Literal["any", "fresh", "steady"] | None = setting(
        "Of people who are published again: whether one release says nothing about the value in"
        " the next (fresh), the value never changes (steady), or either (any, the default)."
    )
    separator: Annotated[str, Field(min_length=1)] | None = setting(
        "What separates the elements of a set in a cell."
    )
    known: KnownRows | None = setting(
        "Which elements of a set an attacker may know; all if absent."
    )
    ask: Annotated[str, Field(min_length=1)] | Question | None = setting(
        "An open question; nothing is published while it is there."
    )

    @model_serializer(mode="wrap")
    def _as_written(self, content_of: SerializerFunctionWrapHandler) -> Any:
        """Its content; of keys that earlier hashes lack, those that somebody wrote."""
        content = content_of(self)
        later = ("separator", "known", "distance", "publish")
        return {
            key: value for key, value in content.items() if value is not None or key not in later
        }

    @field_validator("ask")
    @classmethod
    def _asks_something(cls, ask: str | Question | None) -> str | Question:
        if ask is None:
            raise ValueError("is empty; write the question, or delete the key")
        return ask

    @field_validator("order", mode="before")
    @classmethod
    def _labels_are_text(cls, order: Any) -> Any:
        if isinstance(order, list):
            if any(isinstance(label, bool) for label in order):
                raise ValueError(
                    "a label was read as true or false; put yes, no, on and off in quotes"
                )
            return [str(label) if isinstance(label, (int, float)) else label for label in order]
        return order

    @model_validator(mode="before")
    @classmethod
    def _published_weights_are_quasi(cls, content: Any) -> Any:
        """A weight that is published tells strata to whoever reads it."""
        is_weight = isinstance(content, dict) and content.get("role") == "weight"
        if not is_weight or content.get("publish") is None:
            return content
        return content | {"role": "quasi", "type": content.get("type", "number")}

    @model_validator(mode="after")
    def _check_consistency(self) -> "AttributePolicy":
        problems = []
        if isinstance(self.order, str) and self.order not in ORDERS:
            problems.append(f"order must be a list of labels or one of {', '.join(ORDERS)}")
        if isinstance(self.order, list) and len(set(self.order)) < len(self.order):
            problems.append("order names a label twice")
        if self.type == "ordinal" and self.order is None and self.hierarchy is None:
            problems.append("an ordinal needs 'order'")
        if self.order is not None and self.type not in (None, "ordinal"):
            problems.append(f"'order' belongs to an ordinal, not to a {self.type}")
        if self.domain is not None and self.type not in (None, "number"):
            problems.append(f"'domain' belongs to a number, not to a {self.type}")
        if self.type == "date" and self.hierarchy is not None:
            problems.append("a date becomes a span of days; leave out 'hierarchy' or 'type'")
        if self.type == "date" and self.role == "sensitive":
            problems.append("a sensitive date is a category; leave out 'type'")
        if self.type == "set" and (self.role != "quasi" or self.separator is None):
            problems.append("a set has the role 'quasi' and a 'separator'")
        if self.type != "set" and (self.separator, self.known) != (None, None):
            problems.append("'separator' and 'known' belong to a set")
        if self.domain is not None and not self.domain[0] < self.domain[1]:
            problems.append("domain must be [least, greatest] with least below greatest")
        if self.domain is not None and max(map(abs, self.domain)) > FARTHEST:
            problems.append(f"domain must lie within {FARTHEST:g} of 0")
        if isinstance(self.hierarchy, dict) and len(self.hierarchy) != 1:
            problems.append(
                f"a made hierarchy names exactly one maker of {', '.join(registry.makers())}"
            )
        elif isinstance(self.hierarchy, dict) and not registry.makers().keys() >= {*self.hierarchy}:
            known = ", ".join(registry.makers())
            problems.append(f"unknown hierarchy maker; choose one of {known}")
        is_range = self.role == "quasi" and self.kind is Kind.NUMBER and not self.hierarchy
        belongs = "belongs to a quasi-identifier of type number without a hierarchy"
        if self.render == "mode" and self.role != "quasi":
            problems.append("'render: mode' belongs to a quasi-identifier")
        if self.render not in ("range", "mode") and not is_range:
            problems.append(f"'render: {self.render}' {belongs}")
        if self.round is not None and (not is_range or Shown(self.render).hides_span):
            problems.append(f"'round' {belongs} that publishes ranges")
        if self.distance is not None and (self.role, self.type) != ("sensitive", "number"):
            problems.append("'distance' belongs to a sensitive attribute of type number")
        if self.over_time is not None and self.role != "sensitive":
            problems.append("'over_time' belongs to a sensitive attribute")
        if self.pseudonym is not None and self.role not in ("identifier", "household"):
            problems.append("only an identifier or a household gets a pseudonym")
        if self.publish is not None and not (is_range and self.round):
            problems.append("'publish: rounded' belongs to a weight, and needs 'round'")
        if problems:
            raise ValueError("; ".join(problems))
        return self

    @property
    def is_weight(self) -> bool:
        """Whether it tells how many people of the population a record stands for."""
        return self.role == "weight" or self.publish is not None

    @property
    def maker(self) -> str | None:
        """What makes its hierarchy; None where that is a table, or there is none."""
        return next(iter(self.hierarchy)) if isinstance(self.hierarchy, dict) else None

    @property
    def follows_the_data(self) -> bool:
        """Whether its hierarchy or order is only known with the original data at hand."""
        return self.maker not in (None, "tree", "order") or isinstance(self.order, str)

    @property
    def is_code(self) -> bool:
        """Whether its numbers are names of things, of which none lies between two others."""
        return self.distance == "equal"

    @property
    def kind(self) -> Kind:
        if self.type in ("date", "set"):  # dates are numbers of days, elements are categories
            return Kind.NUMBER if self.type == "date" else Kind.CATEGORY
        if self.type is not None:
            return Kind(self.type)
        if self.order is not None:
            return Kind.ORDINAL
        is_number = self.domain is not None or self.role == "weight"
        return Kind.NUMBER if is_number else Kind.CATEGORY


# Several tables about the same people.


class RowsPolicy(_Strict):
    """The rows of a table below the people."""

    known: KnownRows = setting(
        "What an attacker may know of a person's rows: all of them, any m of them (a number),"
        " their count, or none of this.",
        "all",
    )
    count_known: bool = setting(
        "With a number: whether how many rows there are is known beside them.", False
    )
    weight: float = setting("How much a withheld cell counts as loss.", 1.0, gt=0, le=FARTHEST)
    ordered: bool = setting("Whether rows are aligned in the order of their dates.", False)
    counts: Literal["range", "both"] = setting(
        "How a class shows counts of rows: as a span, or with their mean.", "range"
    )


class TablePolicy(_Strict):
    """A table whose rows belong to people, or to rows of another such table."""

    parent: dict[str, str] | None = setting(
        "The table that its rows belong to, and the column that says to which row.",
        min_length=1,
        max_length=1,
    )
    key: str | None = setting("Its column that rows of other tables point to.")
    rows: RowsPolicy = Field(default_factory=lambda: RowsPolicy.model_validate({}))
    attributes: dict[str, AttributePolicy] = {}
    ask: Annotated[str, Field(min_length=1)] | None = setting(
        "An open question; nothing is published while it is there."
    )

    @property
    def parent_table(self) -> str | None:
        return next(iter(self.parent or ()), None)

    @property
    def link(self) -> str | None:
        """Its column that holds the key of the parent's row."""
        return next(iter((self.parent or {}).values()), None)

    @property
    def links(self) -> list[str]:
        """Its columns that only say what belongs to what."""
        return [name for name in dict.fromkeys((self.link, self.key)) if name is not None]


class AnchorPolicy(_Strict):
    """From which day a person's dates count, and how they are moved."""

    first: str = setting("TABLE.COLUMN: a person's first day in it is the anchor.", ...)
    render: Literal["shifted"] = setting(
        "Dates of a person are moved together, by chance.", "shifted"
    )
    gaps: Literal["covered", "exact"] = setting(
        "Whether days between dates are published as spans, or as they are.", "covered"
    )
    keep: Literal["weekday"] | None = setting(
        "What a moved date keeps; the day of the week is then a quasi-identifier."
    )


def _intervals(text: str) -> str:
    if re.findall("{lo}|{hi}", text) != ["{lo}", "{hi}"]:
        raise ValueError("must hold {lo} and then {hi}, once each")
    if "{lo}{hi}" in text:
        raise ValueError("must part {lo} from {hi} by some text")
    return text


class RenderPolicy(_Strict):
    """How published cells are written."""

    intervals: Annotated[str, AfterValidator(_intervals)] = "[{lo}, {hi}]"
    suppressed: str = Field("*", min_length=1)
    order: Literal["content", "input", "shuffled"] = "content"


class PopulationPolicy(_Strict):
    """The people whom the table was drawn from: a table of them, frequencies, or a fraction."""

    table: str | None = setting("A table of the population, a row a person.")
    frequencies: str | None = setting(
        "A table of quasi-identifiers and how frequent each combination is."
    )
    column: str | None = setting("Its column of relative frequencies.")
    people: int | None = setting("People of the population, for frequencies.", gt=0)
    fraction: float | None = setting("The table's share of the population.", gt=0, le=1)
    estimator: Literal["pitman", "zayatz", "snb"] | None = setting(
        "How unique people of the population are estimated, for a fraction."
    )

    @model_validator(mode="after")
    def _is_one_kind(self) -> "PopulationPolicy":
        kinds = {"table": self.table, "frequencies": self.frequencies, "fraction": self.fraction}
        given = [name for name, value in kinds.items() if value is not None]
        if len(given) != 1:
            raise ValueError("give exactly one of 'table', 'frequencies' and 'fraction'")
        described = [value for value in (self.column, self.people) if value is not None]
        if len(described) != (0 if self.frequencies is None else 2):
            raise ValueError("'frequencies' needs 'column' and 'people', which belong to it alone")
        if self.estimator is not None and self.fraction is None:
            raise ValueError("'estimator' belongs to 'fraction'")
        return self


def _named(method: Json) -> Json:
    if not isinstance(method.get("name"), str):
        raise ValueError("needs a 'name'")
    return method


MethodPolicy = Annotated[Json, AfterValidator(_named)]


class PolicyModel(_Strict):
    """A policy file."""

    version: Literal[1]
    attributes: dict[str, AttributePolicy]
    subject: list[str] | None = setting(
        "Identifiers that name the person together, where no column does alone: k counts their"
        " distinct combinations."
    )
    tables: dict[str, TablePolicy] = setting("Further tables about the same people, by name.", {})
    anchor: AnchorPolicy | None = setting(
        "Of linked tables: from which day each person's dates count."
    )
    keys: Literal["release", "keyed", "none"] = setting(
        "How rows of linked tables point at each other in a release: by random numbers, by"
        " keyed pseudonyms, or not at all.",
        "release",
    )
    assume: list[Literal["counts-unknown", "one-date-known"]] = setting(
        "What is taken for granted of attackers, and stated on the certificate.", []
    )
    promises: list[Json] = Field(min_length=1)
    method: MethodPolicy | None = setting("The method's name and its parameters.")
    missing: Literal["value", "suppress", "reject"] = "value"
    missing_values: list[str] = setting("Texts that stand for no value.", [""])
    other: Literal["plain", "drop"] | None = setting("Role of columns that are not named here.")
    label: str | None = setting(
        "What `classification` predicts, by default the only sensitive category."
    )
    reference: str | None = setting(
        "Of a stream: a table that shows open domains and values, and what t-closeness compares"
        " with."
    )
    accept: dict[str, float | dict[str, float]] = setting(
        "What attacks on a release may find at most, by measure, or by measure and attribute.", {}
    )
    population: PopulationPolicy | None = setting(
        "The people whom the table was drawn from, for attacks on it."
    )
    require_together: bool = setting(
        "Whether a release is withheld where the largest k does not hold over all"
        " quasi-identifiers together.",
        False,
    )
    render: RenderPolicy = Field(default_factory=lambda: RenderPolicy.model_validate({}))
    read: ReadOptions = Field(default_factory=lambda: ReadOptions.model_validate({}))
    write: WriteOptions = Field(default_factory=lambda: WriteOptions.model_validate({}))
    seed: int = Field(0, ge=0, lt=2**63)

    @field_validator("promises")
    @classmethod
    def _promises_are_named(cls, promises: list[Json]) -> list[Json]:
        if any(not isinstance(promise.get("model"), str) for promise in promises):
            raise ValueError(f"each promise needs a 'model'; one of {', '.join(registry.models())}")
        each = [one for promise in promises for one in _of_each_attribute(promise)]
        if len(each) > MOST_PROMISES:
            raise ValueError(f"are {len(each)}, {MOST_PROMISES} at most; leave out what others say")
        return each

    @model_serializer(mode="wrap")
    def _as_written(self, content_of: SerializerFunctionWrapHandler) -> Any:
        """Its content without what nobody wrote: `person`, no subject of several columns, and
        keys of linked tables.
        """
        content = content_of(self)
        for key in ("tables", "anchor", "keys", "assume"):
            if key not in self.model_fields_set:
                content.pop(key, None)
        if content.get("subject") is None:
            content.pop("subject", None)
        elif self.person is not None:
            content["attributes"].pop(self.person, None)
        return content

    @property
    def person(self) -> str | None:
        """The column that is made of those which name the person together; None without such."""
        return " + ".join(self.subject) if self.subject and self.subject[1:] else None

    @property
    def together(self) -> tuple[str, ...]:
        """The columns that name the person together, in the order that counts; else none."""
        return () if self.person is None else tuple(sorted(self.subject or ()))

    @property
    def attributes_of_all(self) -> dict[str, AttributePolicy]:
        """The attributes of all tables; those of tables below people as `TABLE.COLUMN`."""
        below = {
            f"{table}.{name}": attribute
            for table, declared in self.tables.items()
            for name, attribute in declared.attributes.items()
        }
        return {**self.attributes, **below}

    @property
    def is_linked(self) -> bool:
        """Whether it is about several tables, of which a column of sets is one."""
        return bool(self.tables) or any(a.type == "set" for a in self.attributes.values())

    @property
    def subject_columns(self) -> list[str]:
        """The columns of the data that name the person."""
        return self.subject or [name for name, a in self.attributes.items() if a.role == "subject"]

    @property
    def quasi(self) -> list[str]:
        return [name for name, a in self.attributes.items() if a.role == "quasi"]

    @property
    def sensitive(self) -> list[str]:
        return [name for name, a in self.attributes.items() if a.role == "sensitive"]

    @property
    def audited_columns(self) -> list[str]:
        """The columns that classes and promises are made of."""
        return [name for name, a in self.attributes.items() if a.role in ("quasi", "sensitive")]

    @property
    def population_names(self) -> list[str]:
        """The population tables that promises compare with, as the policy names them."""
        named = [promise.get("population") for promise in self.promises]
        return sorted({name for name in named if isinstance(name, str) and name})

    def silent_of(self, names: Iterable[str], other: str | None) -> list[str]:
        """Those of these columns that are removed and don't name the person, unless all are, which
        is an error elsewhere: a row with values in them alone shows nobody.

        other: the role of columns that are not named.
        """
        names = list(names)
        roles = {name: one.role for name, one in self.attributes.items()}
        shown = {name for name, one in self.attributes.items() if one.pseudonym}
        shown |= {*self.subject_columns}
        silent = [n for n in names if n not in shown and roles.get(n, other) in REMOVED_ROLES]
        return silent if len(silent) < len(names) else []

    @property
    def no_names(self) -> list[str]:
        """The texts that name no person: those for no value, and the suppression mark."""
        return [*self.missing_texts, self.render.suppressed]

    @cached_property
    def missing_texts(self) -> list[str]:
        """The texts for no value: those listed, and other ways to write their whole numbers."""
        return with_decimals(self.missing_values)

    @property
    def missing_numbers(self) -> tuple[str, ...]:
        """The texts for no value that readers of a release would take for numbers."""
        plain = self.read.notation.plain
        return tuple(
            text
            for text in self.missing_texts
            if not np.isnan(parse_numbers([text, plain(text)])).all()
        )

    def is_value(self, cell: str) -> bool:
        """Whether a cell holds a value: not a text for a missing one, nor the suppression mark."""
        return cell not in self.missing_texts and cell != self.render.suppressed

    def add_person(self) -> None:
        """Declares `person` beside the columns of the data."""
        if self.person is not None:
            self.attributes[self.person] = AttributePolicy.model_validate({"role": "subject"})


def subject_findings(model: PolicyModel) -> Iterator[str]:
    """What keeps several columns from naming the person together."""
    names = model.subject
    if names is None:
        return
    if len({*names}) < 2:
        yield (
            "policy, subject: names fewer than two columns; delete it, and give the one that names"
            " the person the role 'subject'"
        )
    elif len({*names}) < len(names):
        yield "policy, subject: names a column twice; name each once"
    for name in dict.fromkeys(names):
        role = model.attributes[name].role if name in model.attributes else None
        if role is None:
            hint = suggestion(name, model.attributes)
            yield f"policy, subject: '{name}' is not in the policy; {hint}name attributes of it"
        elif role not in ("identifier", "subject"):
            yield (
                f"policy, subject: attribute '{name}' has the role '{role}'; give it the role"
                " 'identifier'"
            )
    people = [name for name, a in model.attributes.items() if a.role == "subject"]
    if people:
        yield (
            f"policy, subject: attribute '{people[0]}' has the role 'subject'; give it the role"
            " 'identifier', or delete the key"
        )
    if model.person in model.attributes:
        yield (
            f"attribute '{model.person}': is what 'subject' names its combinations of columns;"
            " rename it"
        )


def _of_each_attribute(promise: Json) -> list[Json]:
    """l-diversity of several attributes as one promise each, which is all that it says."""
    names = promise.get("attributes")
    if promise["model"] != "l-diversity" or not isinstance(names, list) or "attribute" in promise:
        return [promise]
    rest = {key: value for key, value in promise.items() if key != "attributes"}
    return [{**rest, "attribute": name} for name in names]
