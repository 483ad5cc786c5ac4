"""What a table is made of: how each column is read, and who may be one person; counts only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.advise.proposal.cells import ColumnCells, in_order
from shoal.advise.proposal.roles import MANY, Guess
from shoal.data.column_words import names_place
from shoal.data.person.decision import Answer, PersonCandidate
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


# Who may be one person in a table, counted.


@dataclass(frozen=True)
class Candidate:
    """An answer to who is one person. columns: one, or several together; none for every row.

    rows: those that have a value; without: the others. repeated: people with more than one row.
    agreeing: columns on which rows of one person agree, steadiest first. is_named: whether its name
    says so. is_profile: whether its columns only describe people.
    """

    columns: tuple[str, ...]
    people: int
    rows: int
    without: int
    repeated: int
    most_rows: int
    agreeing: tuple[str, ...] = ()
    is_named: bool = False
    is_profile: bool = False


@dataclass(frozen=True)
class CountedCandidate:
    """With (n,) whose row it is, numbered densely; rows without a value are people of their own."""

    candidate: Candidate
    people: np.ndarray


def person_candidates(
    table: Table,
    columns: Mapping[str, ColumnCells],
    guesses: Mapping[str, Guess],
    answer: Answer,
) -> list[CountedCandidate]:
    """The likeliest first, every row last. guesses: as `with_one_subject` leaves them."""
    said = {one.columns: one for one in answer.candidates}
    proposed = [(name,) for name, guess in guesses.items() if guess.role == "subject"]
    found = [
        _counted(table, names, columns, said.get(names))
        for names in dict.fromkeys([*proposed, *said])
    ]
    return [*found, _every_row(table)]


def _counted(
    table: Table,
    names: tuple[str, ...],
    columns: Mapping[str, ColumnCells],
    said: PersonCandidate | None,
) -> CountedCandidate:
    """A candidate in counts. said: what the answer says of it; None where its name alone does."""
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
        () if said is None else said.agreeing,
        said is None or said.is_named,
        said is not None and said.is_profile,
    )
    return CountedCandidate(candidate, people)


def _every_row(table: Table) -> CountedCandidate:
    rows = table.records
    return CountedCandidate(
        Candidate((), rows, rows, 0, 0, min(rows, 1)), np.arange(rows, dtype=np.int32)
    )
