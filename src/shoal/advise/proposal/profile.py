"""What a table is made of: how each column is read, and who may be one person; counts only."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from shoal.advise.proposal.cells import ColumnCells, in_order
from shoal.advise.proposal.roles import MANY, Guess
from shoal.data.column_words import IDENTIFIER, NUMBER, PERSON, names_place
from shoal.data.person_numbers import Evidence, evidence_of, may_number
from shoal.data.table import Column, Table
from shoal.privacy.table_risk import row_keys, together

SCHEMA = "shoal.profile/1"
BARS = 20


@dataclass(frozen=True)
class ColumnProfile:
    """A column by its cells.

    kind: `number`, `whole number`, `date`, `code` (digits that nobody computes with), `spans` (of a
    number), `text` or `empty`. values: distinct ones. missing: rows without one. bars: rows by
    equal spans of a number from the least on, or by value from the commonest on; without labels.
    question: what is open about how it is read.
    """

    name: str
    kind: str
    values: int
    missing: int
    bars: tuple[int, ...]
    question: str | None = None


@dataclass(frozen=True)
class TakenForPeople:
    """What comes of taking every row for a person, on this table: a release of such a policy.

    classes: of k rows or more each. fewer: by candidate, how many of them hide fewer than k of its
    people. smallest: by candidate, people in the smallest class. Candidates are numbered as in the
    profile.
    """

    k: int
    method: str
    classes: int
    fewer: tuple[int, ...]
    smallest: tuple[int, ...]


@dataclass(frozen=True)
class Profile:
    """A table as it is read.

    read: how numbers and dates are written, as in a policy's block of this name. dialect: of a
    delimited file, else None. missing_values: texts that seem to stand for no value. candidates:
    who may be one person, the likeliest first, every row last. tried: None where it was not asked
    or not possible; why_not: the reason.
    """

    rows: int
    columns: tuple[ColumnProfile, ...]
    read: Mapping[str, Any]
    dialect: Mapping[str, Any] | None
    missing_values: tuple[str, ...]
    candidates: tuple[Candidate, ...]
    tried: TakenForPeople | None = None
    why_not: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {"schema": SCHEMA, **asdict(self)}


def column_profile(cells: ColumnCells, column: Column, question: str | None) -> ColumnProfile:
    """One column. cells: of the same column."""
    return ColumnProfile(
        cells.name,
        _kind(cells),
        cells.distinct,
        cells.records - cells.filled,
        _bars(cells, column),
        question,
    )


def _kind(cells: ColumnCells) -> str:
    if not cells.distinct:
        return "empty"
    if cells.are_iso_days:
        return "date"
    if cells.code_length is not None or (cells.numbers is not None and names_place(cells.words)):
        return "code"
    if cells.numbers is not None:
        return "whole number" if cells.are_whole else "number"
    if cells.distinct <= MANY and in_order(cells.cells.to_list()) is not None:
        return "spans"
    return "text"


def _bars(cells: ColumnCells, column: Column) -> tuple[int, ...]:
    counts = column.counts()[cells.is_value(column)]
    if cells.numbers is not None and cells.code_length is None and len(counts) > BARS:
        drawn = np.histogram(cells.numbers, bins=BARS, weights=counts)[0]
        return tuple(int(rows) for rows in drawn)
    return tuple(sorted(counts.tolist(), reverse=True)[:BARS])


# Who may be one person in a table: columns and small combinations of them, counted.
#
# A column that nearly always differs and sometimes repeats is a candidate, whatever its name. So
# is one that the cells or the name call a number of people. Two and three columns are also tried
# together: those that name people or number something, such as a name and a day of birth; and,
# where no single column has evidence in the cells, any others, if rows that agree in these agree
# elsewhere.


NEARLY_ALWAYS = 0.8  # distinct values by records that have one
MOST_COMBINED = 3
MOST_TRIED = 5  # columns that are tried together
MOST_SHOWN = 8
BIRTH = frozenset("birth birthday birthdate born dob first last given family".split())


@dataclass(frozen=True)
class Candidate:
    """An answer to who is one person. columns: one, or several together; none for every row.

    rows: those that have a value; without: the others. repeated: people with more than one row.
    agreeing: columns on which rows of one person agree, steadiest first. is_named: whether its name
    says so.
    """

    columns: tuple[str, ...]
    people: int
    rows: int
    without: int
    repeated: int
    most_rows: int
    agreeing: tuple[str, ...] = ()
    is_named: bool = False


@dataclass(frozen=True)
class CountedCandidate:
    """With (n,) whose row it is, numbered densely; rows without a value are people of their own."""

    candidate: Candidate
    people: np.ndarray


def person_candidates(
    table: Table,
    columns: Mapping[str, ColumnCells],
    guesses: Mapping[str, Guess],
    evidence: Sequence[Evidence],
) -> list[CountedCandidate]:
    """The likeliest first, every row last.

    guesses: as `with_one_subject` leaves them. evidence: of columns that seem to number people.
    """
    agreeing = {one.column: one.agreeing for one in evidence}
    proposed = [name for name, guess in guesses.items() if guess.role == "subject"]
    singles = dict.fromkeys([*proposed, *agreeing, *_nearly_different(table, columns)])
    found = [
        _counted(table, (name,), columns, agreeing.get(name, ()), name in proposed)
        for name in singles
    ]
    named = _naming(table, columns, guesses, singles)
    others = [] if evidence else _others(table, columns, {*singles, *named})
    found += _combined(table, columns, named, others)
    return [*found[:MOST_SHOWN], _every_row(table)]


def _nearly_different(table: Table, columns: Mapping[str, ColumnCells]) -> list[str]:
    """Columns that nearly always differ and sometimes repeat, most different first."""
    share = {
        name: column.distinct / column.filled
        for name, column in columns.items()
        if column.repeats
        and column.distinct >= NEARLY_ALWAYS * column.filled
        and may_number(table, name, fewest_repeats=1)
    }
    return sorted(share, key=lambda name: -share[name])


def _counted(
    table: Table,
    names: tuple[str, ...],
    columns: Mapping[str, ColumnCells],
    agreeing: Sequence[str] = (),
    is_named: bool = False,
) -> CountedCandidate:
    has_value = np.ones(table.records, dtype=bool)
    codes = {}
    for name in names:
        column = table.column(name)
        has_value &= columns[name].is_value(column)[column.codes]
        codes[name] = column.codes
    keys = together(row_keys(codes, table.records), table.records)
    _, own = np.unique(keys[has_value], return_inverse=True)
    rows = np.bincount(own)
    people = np.empty(table.records, dtype=np.int32)
    people[has_value] = own
    lacking = int((~has_value).sum())
    people[~has_value] = len(rows) + np.arange(lacking)
    candidate = Candidate(
        names,
        len(rows),
        int(has_value.sum()),
        lacking,
        int((rows > 1).sum()),
        int(rows.max(initial=0)),
        tuple(agreeing),
        is_named,
    )
    return CountedCandidate(candidate, people)


def _every_row(table: Table) -> CountedCandidate:
    rows = table.records
    return CountedCandidate(
        Candidate((), rows, rows, 0, 0, min(rows, 1)), np.arange(rows, dtype=np.int32)
    )


def _naming(
    table: Table,
    columns: Mapping[str, ColumnCells],
    guesses: Mapping[str, Guess],
    singles: Mapping[str, object],
) -> list[str]:
    """Columns that name people or number something, and do not differ enough alone."""
    words = PERSON | NUMBER | IDENTIFIER | BIRTH
    return [
        name
        for name in _others(table, columns, singles)
        if words & set(columns[name].words) or guesses[name].role in ("identifier", "subject")
    ]


def _others(table: Table, columns: Mapping[str, ColumnCells], but: Container[str]) -> list[str]:
    """Columns that repeat, those of most values first."""
    repeating = [
        name
        for name, column in columns.items()
        if column.repeats
        and column.distinct > 1
        and name not in but
        and not table.frame.schema[name].is_float()
    ]
    return sorted(repeating, key=lambda name: -columns[name].distinct)


def _combined(
    table: Table,
    columns: Mapping[str, ColumnCells],
    named: Sequence[str],
    others: Sequence[str],
) -> Iterator[CountedCandidate]:
    """Combinations that nearly always differ and sometimes repeat, without what adds nothing.

    others: such columns count only in combinations that rows agree in elsewhere, too.
    """
    accepted: list[set[str]] = []
    tried = [*named, *others][:MOST_TRIED]
    for size in range(2, MOST_COMBINED + 1):
        for chosen in combinations(tried, size):
            if any(known <= set(chosen) for known in accepted):
                continue
            counted = _counted(table, chosen, columns)
            found = counted.candidate
            is_one = NEARLY_ALWAYS * found.rows <= found.people < found.rows
            if not is_one or found.people <= max(columns[name].distinct for name in chosen):
                continue
            counted = _with_evidence(table, counted)
            if set(chosen) <= set(named) or counted.candidate.agreeing:
                accepted.append(set(chosen))
                yield counted


def _with_evidence(table: Table, counted: CountedCandidate) -> CountedCandidate:
    """On which other columns rows agree that agree in these."""
    found = counted.candidate
    name = " + ".join(found.columns)
    cells = ("x",) * (int(counted.people.max(initial=-1)) + 1)
    evidence = evidence_of(Column(name, counted.people, cells), table.without(found.columns))
    agreeing = () if evidence is None else evidence.agreeing
    return CountedCandidate(replace(found, agreeing=agreeing), counted.people)
