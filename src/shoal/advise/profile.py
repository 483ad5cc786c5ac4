"""Profile: what a table is made of, and who is one person in it, tried on the table.

cells > how they are written > kinds > who may be one person > rows taken for people, published
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from shoal.advise.proposal.cells import as_read, notation_in
from shoal.advise.proposal.profile import (
    CountedCandidate,
    Profile,
    TakenForPeople,
    column_profile,
    person_candidates,
)
from shoal.advise.proposal.roles import guess_of, with_one_subject
from shoal.advise.propose import cells_of, check_header
from shoal.connectors import files
from shoal.connectors.frames import table_of
from shoal.data.findings import finding_about
from shoal.data.numbers import parse_numbers
from shoal.data.partition import Partition
from shoal.data.person.decision import who_is_a_person
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError
from shoal.policy.binding.columns import check_columns
from shoal.policy.binding.files import Source, original_table, read_source, table_given
from shoal.policy.binding.table import bind
from shoal.policy.interchange import reading_of
from shoal.policy.loading import read_options
from shoal.policy.parameters import suggestion
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.table_risk import Risk, table_risk
from shoal.recoding.recode import find_classes
from shoal.tables.from_columns import policy_of_frame


def profile(
    source: Source,
    *,
    read: Mapping[str, Any] | None = None,
    policy: PolicyLike | None = None,
    quasi: Sequence[str] = (),
    k: int = 10,
    progress: Progress = no_progress,
) -> Profile:
    """What every column holds, in counts, and which columns may say who is one person.

    source: a file's path or a frame. read: as in a policy's block of this name. policy, or quasi
    and k: tries on the table what comes of taking every row for a person. Raises InputError where
    the table can't be read, has no header or lacks a column of quasi; what else can't be tried is
    said in the result.
    """
    given = None if policy is None else Policy.of(policy)
    if given is not None and quasi:
        raise InputError("profile: takes a policy or 'quasi', not both; leave out one of them")
    options = read_options({**(_read_of(given)), **(read or {})})
    dialect = None
    if isinstance(source, (str, Path)):
        progress("reading the table")
        file = files.read(str(source), reading=reading_of(options))
        written = Table(file.frame)
        dialect = None if file.dialect is None else asdict(file.dialect)
    else:
        written = table_of(source) if given is None else table_given(source, given)
    check_header(written)
    said = options.model_dump(exclude_unset=True)
    found = notation_in(written, said)
    said |= found.read
    frame = as_read(written.frame, read_options(said).notation)
    table = written if frame is written.frame else Table(frame)
    _check_named(quasi, table.names)
    cells = cells_of(table, progress)
    progress("looking for columns that identify a person")
    guesses = {name: guess_of(column) for name, column in cells.items()}
    answer = who_is_a_person(table)
    guesses = with_one_subject(guesses, cells, answer)
    counted = person_candidates(table, cells, guesses, answer)
    tried: TakenForPeople | None = None
    why_not: list[str] = []
    if given is not None or quasi:
        progress("trying what happens if every row is taken for a person")
        tried, why_not = _tried(written, table, given, quasi, k, counted)
    return Profile(
        table.records,
        tuple(
            column_profile(cells[name], table.column(name), found.questions.get(name))
            for name in table.names
        ),
        said,
        dialect,
        tuple(sorted({cell for column in cells.values() for cell in column.absent if cell})),
        tuple(one.candidate for one in counted),
        tried,
        tuple(why_not),
    )


def _check_named(quasi: Sequence[str], names: Sequence[str]) -> None:
    """Raises InputError with every column that others are said to know and the table lacks."""
    findings = [
        f"column '{name}': is not in the table; {suggestion(name, names)}name one of its columns"
        for name in quasi
        if name not in names
    ]
    if findings:
        raise InputError.from_findings(findings)


def _read_of(policy: Policy | None) -> dict[str, Any]:
    return {} if policy is None else policy.model.read.model_dump(exclude_unset=True)


def _tried(
    written: Table,
    table: Table,
    policy: Policy | None,
    quasi: Sequence[str],
    k: int,
    counted: list[CountedCandidate],
) -> tuple[TakenForPeople | None, list[str]]:
    """The release in which every row is a person, or why there is none. written: as it was read."""
    try:
        if policy is None:
            asked, _ = policy_of_frame(table, {}, {"quasi": list(quasi), "k": k, "other": "drop"})
        else:
            asked = _without_subject(policy)
            table = original_table(written, asked)
        bound, findings = bind(table, asked)
        if bound is None:
            raise InputError.from_findings(findings)
        matrix, whole_table = bound.method_input()
        classes, _ = find_classes(matrix, whole_table, bound.policy)
    except (InfeasibleError, InputError) as refused:
        return None, [str(refused.args[0]), *refused.findings]
    kept = np.flatnonzero(~bound.encoded.suppressed)
    made = classes if isinstance(classes, Partition) else classes.partition(matrix)
    labels, count = made.labels, made.count
    hidden = [_people_by_class(labels, one.people[kept], count) for one in counted]
    k = asked.required_k or k
    return (
        TakenForPeople(
            k,
            bound.policy.method_name,
            count,
            tuple(int((people < k).sum()) for people in hidden),
            tuple(int(people.min(initial=len(labels))) for people in hidden),
        ),
        [],
    )


def _without_subject(policy: Policy) -> Policy:
    """The policy in which every row is its own person."""
    if policy.subject is None:
        return policy
    content = policy.model.model_dump(exclude_unset=True)
    attributes = {**content["attributes"], policy.subject: {"role": "identifier"}}
    return Policy.from_dict(content | {"attributes": attributes}, policy.base)


def _people_by_class(labels: np.ndarray, people: np.ndarray, count: int) -> np.ndarray:
    """(count,) distinct people of each class."""
    kept = labels >= 0
    pairs = np.unique(labels[kept].astype(np.int64) << 32 | people[kept])
    return np.bincount(pairs >> 32, minlength=count)


# Risk: how many people of a table are alone, and what each column gives away.


def risk(source: Source, policy: PolicyLike, *, progress: Progress = no_progress) -> Risk:
    """Who hides among how many in a table, by the quasi-identifiers of a policy.

    source: a file's path or a frame. Counted in people where the policy has a subject. Hierarchies
    need not fit yet, and questions may be open. Raises InputError where the columns don't fit.
    """
    policy = Policy.of(policy)
    known = known_values(read_source(source, policy, progress), policy)
    return table_risk(known.quasi, known.plain, known.people, policy.required_k, progress)


# What others could know of the people in a table, as codes: equal where it is the same to them.


@dataclass(frozen=True)
class KnownValues:
    """By column, (n,) codes. people: (n,) whose record it is; None where each is its own person's.

    plain: columns that are harmless by their roles, the policy's `other` ones too.
    """

    quasi: dict[str, np.ndarray]
    plain: dict[str, np.ndarray]
    people: np.ndarray | None


def known_values(table: Table, policy: Policy) -> KnownValues:
    """The table by the policy's roles, whether or not its hierarchies fit; raises InputError.

    Numbers are compared as numbers, and all texts for no value are one.
    """
    findings = check_columns(table.names, policy)
    if not findings and not policy.quasi:
        findings = ["policy: no attribute is a quasi-identifier; say what others could know"]
    if findings:
        raise InputError.from_findings(findings)
    declared = policy.model.attributes
    roles = {
        name: declared[name].role if name in declared else policy.model.other
        for name in table.names
    }
    people = people_of(table, policy)
    table.encode(name for name, role in roles.items() if role in ("quasi", "plain"))
    return KnownValues(
        {name: _compared(table, name, policy) for name, r in roles.items() if r == "quasi"},
        {name: _compared(table, name, policy) for name, r in roles.items() if r == "plain"},
        people,
    )


def people_of(table: Table, policy: Policy) -> np.ndarray | None:
    """(n,) whose record it is, numbered densely; None where the policy names no subject.

    Raises InputError where records lack one.
    """
    if policy.subject is None:
        return None
    column = table.column(policy.subject)
    names = [cell.strip() for cell in column.cells]
    missing = np.array([not name or name in policy.model.missing_values for name in names])
    if missing.any():
        finding = finding_about(
            column, missing, "without a subject", "give every record its person"
        )
        raise InputError(finding.message)
    number = {name: i for i, name in enumerate(dict.fromkeys(names))}
    return np.array([number[name] for name in names], dtype=np.int32)[column.codes]


def _compared(table: Table, name: str, policy: Policy) -> np.ndarray:
    column = table.column(name)
    declared = policy.model.attributes.get(name)
    cells: list[object] = list(column.cells)
    if declared is not None and declared.type == "number":
        numbers = parse_numbers(column.cells)
        cells = [c if np.isnan(x) else x for c, x in zip(cells, numbers.tolist(), strict=True)]
    missing = set(policy.model.missing_values)
    number: dict[object, int] = {}
    codes = [
        number.setdefault(None if text in missing else cell, len(number))
        for cell, text in zip(cells, column.cells, strict=True)
    ]
    return np.array(codes, dtype=np.int32)[column.codes]
