"""Profile: what a table is made of, and who is one person in it, tried on the table.

cells > how they are written > kinds > who may be one person > rows taken for people, published
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from shoal.advise.propose import LookedAt, check_header
from shoal.advise.risk import row_keys, together
from shoal.data import notebook
from shoal.data.classes import Classes
from shoal.data.column_words import names_place
from shoal.data.option import suggestion
from shoal.data.partition import Partition
from shoal.data.person.decision import Answer, PersonCandidate
from shoal.data.person.within_groups import parts_of
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Column, Table, encode_text
from shoal.errors import InfeasibleError, InputError
from shoal.policy.binding.files import Source, read_undeclared
from shoal.policy.binding.table import bound_table
from shoal.policy.consistency import quoted
from shoal.policy.from_columns import listed, require_text, words_of_table
from shoal.policy.loading import read_options
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.proposal.cells import ColumnCells, in_order
from shoal.policy.proposal.roles import MANY, Guess
from shoal.recoding.recode import find_classes
from shoal.search.segments import as_read


def profile(
    source: Source,
    *,
    read: Mapping[str, Any] | None = None,
    policy: PolicyLike | None = None,
    quasi: str | Sequence[str] = (),
    k: int = 10,
    progress: Progress = no_progress,
) -> "Profile":
    """What every column holds, in counts, and which columns may say who is one person.

    source: a file's path or a frame. read: a dict, as of `propose_policy`. policy that promises
    k-anonymity, or quasi and k: tries on the table what comes of taking every row for a person.
    Raises InputError where the table can't be read, has no header or lacks a column of quasi; what
    else can't be tried is said in the result.
    """
    given = None if policy is None else Policy.of(policy, read)
    if given is not None and quasi:
        raise InputError("profile: takes a policy or 'quasi', not both; leave out one of them")
    quasi = listed(quasi)
    require_text("profile", quasi)
    options = read_options(read) if given is None else given.model.read
    known = None if given is None else given.tables
    written, dialect = read_undeclared(source, options, progress, known)
    check_header(written)
    names = written.names
    findings = [
        f"column '{name}': is not in the table; {suggestion(name, names)}name one of its columns"
        for name in quasi
        if name not in names
    ]
    InputError.raise_for(findings)
    found = LookedAt.of(written, options, progress)
    table, cells = found.table, found.cells
    counted = person_candidates(table, cells, found.guesses, found.answer)
    candidates, people = zip(*counted, strict=True)
    tried: TakenForPeople | None = None
    why_not: list[str] = []
    if quasi or (given is not None and given.required_k is not None):
        progress("trying what happens if every row is taken for a person")
        try:
            tried = _tried(written, table, given, quasi, k, people)
        except (InfeasibleError, InputError) as refused:
            why_not = refused.said
    none = [] if given is None else given.model.missing_texts
    return Profile(
        table.records,
        tuple(
            ColumnProfile(
                name,
                _kind(one),
                *_held(one, table.column(name), none),
                _bars(one, table.column(name)),
                found.questions.get(name),
            )
            for name, one in cells.items()
        ),
        found.read,
        None if dialect is None else asdict(dialect),
        found.missing_values,
        candidates,
        tried,
        tuple(why_not),
    )


def _tried(
    written: Table,
    table: Table,
    policy: Policy | None,
    quasi: Sequence[str],
    k: int,
    people: Sequence[np.ndarray],
) -> "TakenForPeople":
    """The release in which every row is a person; raises InputError and InfeasibleError.

    written: as it was read.
    """
    if policy is None:
        words = words_of_table(table, {}, {"quasi": list(quasi), "k": k, "other": "drop"})
        asked = Policy.of_words(words)
    else:
        asked = policy.without_subject()
        table = asked.tables.original_table(written)
    bound = bound_table(table, asked)
    matrix, whole_table = bound.method_input()
    classes, _ = find_classes(matrix, whole_table, bound.problem)
    kept = np.flatnonzero(~bound.encoded.suppressed)
    made = classes if isinstance(classes, Partition) else classes.partition(matrix)
    made = as_read(matrix, made)
    placed = made.labels >= 0
    hidden = [
        Classes(made.labels[placed], made.count, one[kept][placed]).people() for one in people
    ]
    k = asked.required_k or k
    return TakenForPeople(
        k,
        bound.problem.method_name,
        made.count,
        tuple(int((one < k).sum()) for one in hidden),
        tuple(int(one.min(initial=len(made.labels))) for one in hidden),
    )


# What a table is made of: how each column is read, and who may be one person; counts only.


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

    classes: of k rows or more each, those that show the same as one. fewer: by candidate, how many
    of them hide fewer than k of its people. smallest: by candidate, people in the smallest class.
    Candidates are numbered as in the profile.
    """

    k: int
    method: str
    classes: int
    fewer: tuple[int, ...]
    smallest: tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Profile(notebook.Figures):
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
    candidates: "tuple[Candidate, ...]"
    tried: TakenForPeople | None = None
    why_not: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """All of it, as JSON can hold it."""
        return {"schema": SCHEMA, **asdict(self)}

    def __repr__(self) -> str:
        """How large the table is, and what may number its people."""
        who = next(
            (" and ".join(one.columns) for one in self.candidates if one.columns), "no column"
        )
        return f"<Profile of {self.rows} rows, {len(self.columns)} columns; numbers people: {who}>"

    def _repr_html_(self) -> str:
        """Every column in counts, and who may be one person, for a notebook."""
        columns = [(one.name, one.kind, one.values, one.missing) for one in self.columns]
        signs = quoted(self.missing_values) or "empty cells"
        people = [
            (" and ".join(one.columns) or "every row", one.people, one.repeated, one.most_rows)
            for one in self.candidates
        ]
        return notebook.section(
            notebook.table(("column", "kind", "values", "missing"), columns),
            notebook.sentence(f"taken for no value: {signs}"),
            notebook.table(("one person is", "people", "with several rows", "at most"), people),
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


def _held(cells: ColumnCells, column: Column, none: Sequence[str]) -> tuple[int, int]:
    """How many different values there are, and rows without one. none: texts for no value."""
    is_value = cells.is_value(column) & ~np.isin(column.cells, none)
    return int(is_value.sum()), int(column.counts()[~is_value].sum())


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
    says so. is_profile: whether its columns only describe people. may_recur: of every row, whether
    people may have several without that being seen.
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
    may_recur: bool = False


def person_candidates(
    table: Table, columns: Mapping[str, ColumnCells], guesses: Mapping[str, Guess], answer: Answer
) -> list[tuple[Candidate, np.ndarray]]:
    """The likeliest first, every row last, each with (n,) whose row it is, numbered densely.

    guesses: as `with_one_subject` leaves them. Rows without a value are people of their own.
    """
    said = {one.columns for one in answer.candidates}
    proposed = [(name,) for name, guess in guesses.items() if guess.role == "subject"]
    found = [_counted(table, name, columns, None) for name in proposed if name not in said]
    found += [_counted(table, one.columns, columns, one) for one in answer.candidates]
    rows = table.records
    is_unseen = answer.may_recur and not (found or answer.doubted)
    every = Candidate((), rows, rows, 0, 0, min(rows, 1), may_recur=is_unseen)
    return [*found, (every, np.arange(rows, dtype=np.int32))]


def _counted(
    table: Table,
    names: tuple[str, ...],
    columns: Mapping[str, ColumnCells],
    said: PersonCandidate | None,
) -> tuple[Candidate, np.ndarray]:
    """A candidate in counts. said: what the answer says of it; None where its name alone does."""
    has_value = np.ones(table.records, dtype=bool)
    codes = {}
    for name in names:
        column = table.column(name)
        has_value &= columns[name].is_value(column)[column.codes]
        codes[name] = column.codes
        if said is not None and said.part:
            codes[name] = encode_text(parts_of(column.texts, said.part)).codes[column.codes]
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
    return candidate, people
