"""Propose: a first policy for a table, every role with its reason, to be read before it is used.

Guesses lean to caution: what an attacker could know is a quasi-identifier, what names a person
goes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import yaml

from shoal.connectors import files
from shoal.connectors.frames import table_of
from shoal.data.notation import Notation, PublishedNumbers, map_cells
from shoal.data.numbers import looks_like_data, parse_numbers
from shoal.data.person_numbers import person_numbers
from shoal.data.table import Column, Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.interchange import reading_of
from shoal.policy.loading import read_options
from shoal.policy.parameters import build

MANY = 50  # distinct texts from which a category can hardly be published without a hierarchy

NAMED_IDENTIFIER = re.compile(
    r"(^|_)(name|surname|e?mail|phone|mobile|ssn|passport|address|street|iban|url|ip)(_|$)"
)
NAMED_SUBJECT = re.compile(
    r"(^|_)(id|nbr|patient|person|user|subject|customer|member|client)(_|$|id$)"
)
NAMED_PERSON = re.compile(r"patient|person|user|subject|customer|member|client|people")
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
NO_VALUE = ("", "?", "NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-")
NAMED_ZIP = re.compile(r"zip|post_?code|postal|plz")
NAMED_SENSITIVE = re.compile(
    r"disease|diagnos|diag_|condition|salary|income|wage|earn|charge|cost|hiv|religion|party|vote|drug|medic|result|"
    r"readmit|debt|score|^class$|sensitive"
)


@dataclass(frozen=True)
class _Proposal:
    settings: dict[str, Any]
    reason: str


def propose_file(data_path: str, k: int, read: Mapping[str, Any] | None = None) -> str:
    """`propose` for a table in a file. read: what the policy's block `read` is to say."""
    options = read_options(read or {})
    frame = files.read(data_path, reading=reading_of(options)).frame
    block = options.model_dump(exclude_unset=True)
    lines = f"read: {_flow(block)}\n" if block else ""
    return propose(Table(_as_read(frame, options.notation)), k) + lines


def _as_read(frame: pl.DataFrame, notation: Notation) -> pl.DataFrame:
    """Columns of numbers and dates in this notation, as Shoal reads them."""
    numbers = PublishedNumbers.of(notation, None)
    readers: list[Callable[[str], str | None]] = []
    if not notation.has_plain_numbers:
        readers.append(lambda cell: numbers.translated(cell, notation.plain))
    if notation.dates is not None:
        readers.append(notation.day)
    for name, dtype in frame.schema.items():
        for reader in readers if dtype == pl.String else ():
            cells, lost = map_cells(frame[name], reader)
            if set(lost) <= set(NO_VALUE) and not cells.equals(frame[name]):
                frame = frame.with_columns(cells.alias(name))
                break
    return frame


def propose(frame: Any, k: int = 10) -> str:
    """A valid policy for this table as YAML, with a reason beside every role. k: at least 2."""
    table = table_of(frame)
    k = build(registry.models()["k-anonymity"], "promise 'k-anonymity'", {"k": k}).k
    odd = looks_like_data(table, table.names)
    if odd:
        raise InputError(
            f"columns: {len(odd)} of {len(table.names)} have names that look like data; "
            "put a line that names the columns on top"
        )
    proposals = {name: _proposal(table.column(name), table.records) for name in table.names}
    _number_people(proposals, table)
    _only_one_subject(proposals, table)
    _at_least_one_quasi(proposals)
    lines = [
        (
            "# A proposal: read every role before you rely on it. Roles: identifier, subject,"
            " quasi, sensitive,"
        ),
        (
            "# plain, drop. A number's domain is best declared by what is possible, not by what was"
            " seen."
        ),
        "version: 1",
        "attributes:",
    ]
    width = max(len(_scalar(name)) for name in proposals) + 1
    for name, proposal in proposals.items():
        lines.append(
            f"  {_scalar(name) + ':':<{width}} {_flow(proposal.settings)}  # {proposal.reason}"
        )
    lines += ["promises:", f"  - {{model: k-anonymity, k: {k}}}"]
    sensitive = [name for name, p in proposals.items() if p.settings["role"] == "sensitive"]
    for name in sensitive:
        lines.append(
            f"  # - {{model: l-diversity, attribute: {_scalar(name)}, l: 2, kind: distinct}}"
        )
    absent = sorted(
        {cell for name in table.names for cell in table.column(name).cells} & set(NO_VALUE[1:])
    )
    if absent:
        lines.append(
            f"missing_values: {_flow(['', *absent])}  # texts that seem to stand for no value"
        )
    return "\n".join([*lines, "seed: 7", ""])


def _scalar(text: str) -> str:
    return _flow(text).removesuffix("\n...").strip()


def _flow(content: object) -> str:
    """On one line, as YAML."""
    return yaml.safe_dump(
        content, default_flow_style=True, sort_keys=False, width=float("inf"), allow_unicode=True
    ).strip()


def _proposal(column: Column, records: int) -> _Proposal:
    name = re.sub(r"[^a-z0-9]+", "_", column.name.lower())
    cells = [cell for cell in column.cells if cell not in NO_VALUE]
    distinct = len(cells)
    numbers = parse_numbers(tuple(cells))
    is_number = len(numbers) > 0 and bool(np.isfinite(numbers).all())
    if NAMED_ZIP.search(name):
        longest = max(len(cell) for cell in cells or [""])
        return _Proposal(
            {"role": "quasi", "hierarchy": {"prefix": longest}},
            "a place; digits are hidden from the right",
        )
    if cells and all(ISO_DATE.fullmatch(cell) for cell in cells):
        decade = ["decade"] if len({cell[:3] for cell in cells}) > 1 else []
        steps = ["day", "month", "quarter", "year", *decade]
        return _Proposal({"role": "quasi", "hierarchy": {"dates": steps}}, "a date")
    if NAMED_IDENTIFIER.search(name):
        return _Proposal({"role": "identifier"}, "by its name it names a person: removed")
    if NAMED_SUBJECT.search(name) and distinct > records / 20:
        return _Proposal(
            {"role": "subject"}, "by its name it numbers the people that k counts: removed"
        )
    if NAMED_SENSITIVE.search(name):
        kind = {"type": "number"} if is_number and distinct > 10 else {}
        return _Proposal(
            {"role": "sensitive", **kind},
            "by its name what an attacker wants to learn: published as it is",
        )
    if is_number and distinct > 2:
        domain = [_short(numbers.min()), _short(numbers.max())]
        if domain[0] < domain[1]:
            return _Proposal(
                {"role": "quasi", "type": "number", "domain": domain},
                "a number that others may know; domain as seen",
            )
    if distinct > records / 2 and distinct > MANY:
        return _Proposal(
            {"role": "drop"}, "text that differs for most records: dropped, it may name people"
        )
    if distinct > MANY:
        return _Proposal(
            {"role": "quasi"},
            f"{distinct} values; give it a hierarchy, or it is published whole or not at all",
        )
    return _Proposal({"role": "quasi"}, "others may know it; a hierarchy would lose less")


def _short(value: float) -> int | float:
    return int(value) if float(value).is_integer() else float(value)


def _number_people(proposals: dict[str, _Proposal], table: Table) -> None:
    """Where no column is by its name a number of people that repeats, the one whose cells are."""
    if any(
        proposal.settings["role"] == "subject" and _repeats(table.column(name))
        for name, proposal in proposals.items()
    ):
        return
    for evidence in person_numbers(table)[:1]:
        agreed = ", ".join(evidence.agreeing[:3])
        sure = "" if evidence.is_named else "; does it number people?"
        proposals[evidence.column] = _Proposal(
            {"role": "subject"},
            f"records that share one agree on {agreed}: the people that k counts, removed{sure}",
        )


def _only_one_subject(proposals: dict[str, _Proposal], table: Table) -> None:
    """Of several columns of numbers, one whose values repeat and whose name means a person."""
    numbering = [name for name, p in proposals.items() if p.settings["role"] == "subject"]
    if len(numbering) < 2:
        return
    likeliest = max(
        numbering,
        key=lambda name: (_repeats(table.column(name)), bool(NAMED_PERSON.search(name.lower()))),
    )
    for name in numbering:
        proposals[name] = _Proposal(
            {"role": "identifier"}, "another number of people or things: removed; is it the person?"
        )
    others = ", ".join(name for name in numbering if name != likeliest)
    proposals[likeliest] = _Proposal(
        {"role": "subject"}, f"the people that k counts, or is that {others}? Removed"
    )


def _repeats(column: Column) -> bool:
    return bool((column.counts() > 1).any())


def _at_least_one_quasi(proposals: dict[str, _Proposal]) -> None:
    """Without a quasi-identifier nothing is protected: the first sensitive column becomes one."""
    if any(p.settings["role"] == "quasi" for p in proposals.values()):
        return
    for wanted in ("sensitive", "drop", "identifier", "subject"):
        for name, proposal in proposals.items():
            if proposal.settings["role"] == wanted:
                proposals[name] = _Proposal(
                    {"role": "quasi"}, "nothing else looks like what others may know: check this"
                )
                return
