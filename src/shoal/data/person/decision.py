"""Who is one person in a table: the column that numbers the people, a question, or every row.

candidates > what the cells say of them > pairs > the same under other names > what is decided
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.data.person.answer import Answer, PersonCandidate, Verdict
from shoal.data.person.candidates import FEWEST, Candidate, single_candidates
from shoal.data.person.columns import PersonColumn
from shoal.data.person.evidence import MOST_ROWS, distinct, evidence_for, profiles, sampled_rows
from shoal.data.person.pairs import by_name, joint_people, within_groups
from shoal.data.table import Table

EXCEPTIONS = 1.02  # pairs of values by values, up to which one lies within the other
ALIKE = 0.9  # by how much the counts of two names of the same may differ
ENOUGH = 30  # people whom a name alone makes sure
MOST_INNER = 2  # events and cards that a question lists
PERSON_BY_NAME = ("civil", "person")


def who_is_a_person(table: Table) -> Answer:
    """Which column numbers the people of a table, by names and cells; reads no roles.

    Of more than 20,000 rows those of whole values are looked at. Whether an answer is sure hangs on
    shares, which the order of rows moves by chance where it moves them at all.
    """
    rows = _some_rows(table.records)
    columns = [PersonColumn(table, name, rows) for name in table.names]
    telling = [c for c in columns if c.look.kind != "fraction" or _is_of_one(c)]
    kept, rejected = _judged(single_candidates(columns), telling)
    kept = _with_pairs(kept, rejected, telling)
    if any(one.kind != "evidence" for one in kept):
        kept = [one for one in kept if one.kind != "evidence"]
    left = _without_twins(kept)
    inner = _inside(left)
    left = [one for one in left if one not in inner]
    if not left:
        return _by_profile(columns, rows)
    is_sure = len(left) == 1 and _is_sure(left[0])
    listed = left if is_sure else [*left, *inner[:MOST_INNER]]
    removed = [*(one for one in kept if one.kind != "evidence"), *_named(rejected)]
    names = dict.fromkeys(name for one in removed for name in one.columns)
    names.pop(left[0].title, None)
    return Answer(
        Verdict.SURE if is_sure else Verdict.ASK,
        tuple(_stated(one, columns) for one in listed),
        tuple(names),
    )


def _some_rows(records: int) -> np.ndarray:
    """At most 20,000 rows, in their order."""
    if records <= MOST_ROWS:
        return np.arange(records)
    return np.sort(np.random.default_rng(3).choice(records, MOST_ROWS, replace=False))


def _is_of_one(column: PersonColumn) -> bool:
    """Whether fractions of it say who a person is: ages, heights and weights."""
    return column.name.kind in ("age", "keep") or column.name.is_of_body


def _named(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [one for one in candidates if one.kind in (*PERSON_BY_NAME, "contact")]


def _judged(
    candidates: Sequence[Candidate], telling: Sequence[PersonColumn]
) -> tuple[list[Candidate], list[Candidate]]:
    """Those that stay and those that the cells reject; others are in neither."""
    kept, rejected = [], []
    for one in candidates:
        goes_on = one.kind in ("civil", "contact")
        one.evidence = evidence_for(one.people, telling, one.columns, goes_on)
        if one.kind == "evidence":
            if _speaks_for_itself(one):
                kept.append(one)
        elif _is_rejected(one):
            rejected.append(one)
        elif one.kind != "token" or one.is_strong_token or one.evidence.steady:
            kept.append(one)
    return kept, rejected


def _speaks_for_itself(one: Candidate) -> bool:
    """Whether the cells alone say that a column numbers people."""
    found = one.evidence
    if not found.crossing or found.is_dominated:
        return False
    if found.is_confirmed:
        return any(name in found.personal for name in found.crossing)
    return not found.personal and one.distinct >= 20


def _is_rejected(one: Candidate) -> bool:
    """Whether the cells say that a named column does not number people."""
    found = one.evidence
    if found.is_contradicted:
        is_person = one.kind == "person" and not one.is_weak and one.distinct > ENOUGH
        return not (is_person or one.kind in ("civil", "contact"))
    if one.kind != "name" or found.personal or found.steady:
        return False
    return one.distinct >= 0.7 * one.records


def _with_pairs(
    kept: list[Candidate],
    rejected: list[Candidate],
    telling: Sequence[PersonColumn],
) -> list[Candidate]:
    """Those that stay, once columns are looked at that number people only together."""
    kept = list(kept)
    if not any(one.kind in PERSON_BY_NAME for one in kept):
        named = by_name(telling)
        kept += [] if named is None else [named]
    pairs: list[Candidate] = []
    for number, pair in within_groups(telling, kept, rejected):
        if pair is None:
            kept = [c for c in kept if c.columns != (number.title,) or c.evidence.is_confirmed]
        else:
            pairs.append(pair)
    parts = {(name,) for pair in [*kept, *pairs] for name in pair.columns if len(pair.columns) > 1}
    is_part = [
        one
        for one in kept
        if one.columns in parts and (one.evidence.is_contradicted or not one.evidence.personal)
    ]
    rejected += is_part
    return [*(one for one in kept if one not in is_part), *pairs]


def _without_twins(kept: Sequence[Candidate]) -> list[Candidate]:
    """The likeliest first, each once under its best name."""
    left: list[Candidate] = []
    for one in sorted(kept, key=lambda c: (c.rank, c.is_weak, len(c.columns), -c.distinct)):
        twin = next((other for other in left if _are_twins(one, other)), None)
        if twin is None:
            left.append(one)
        else:
            twin.twins += one.columns
    return left


def _are_twins(one: Candidate, other: Candidate) -> bool:
    fewer, more = sorted((one.distinct, other.distinct))
    return fewer >= ALIKE * more and _lies_in(one, other) and _lies_in(other, one)


def _lies_in(one: Candidate, other: Candidate) -> bool:
    """Whether every value of one is of one value of the other, but for a few exceptions."""
    rows = sampled_rows(one.people, 4 * MOST_ROWS)
    others = other.people
    rows = rows[others.is_value[others.codes[rows]]]
    if not len(rows):
        return False
    codes = one.people.codes[rows]
    return distinct(codes, others.codes[rows]) <= EXCEPTIONS * distinct(codes)


def _inside(left: Sequence[Candidate]) -> list[Candidate]:
    """Events, cards and sessions of people who are numbered otherwise."""
    sound = [one for one in left if not one.evidence.is_contradicted]
    solid = [one for one in sound if one.kind in PERSON_BY_NAME]
    solid = solid or [one for one in sound if one.kind in ("pair", "contact")]
    return [
        one
        for one in left
        if one.rank >= 3
        and any(whole.distinct < one.distinct and _lies_in(one, whole) for whole in solid)
    ]


def _is_sure(one: Candidate) -> bool:
    """Whether the only candidate left needs no question."""
    found = one.evidence
    if one.kind not in PERSON_BY_NAME or found.is_contradicted or found.is_dominated:
        return False
    if found.is_confirmed:
        return one.distinct >= FEWEST
    speaks = found.crossing or found.steady or one.token
    is_named = one.is_number and not one.is_weak and not found.personal
    return bool(is_named and one.distinct >= ENOUGH and speaks)


def _stated(one: Candidate, columns: Sequence[PersonColumn]) -> PersonCandidate:
    """A candidate in counts; a pair of which some rows were looked at is counted in full."""
    people = one.people
    if len(one.columns) > 1:
        people = joint_people([c for c in columns if c.title in one.columns])
    return PersonCandidate(
        one.columns,
        people.distinct,
        people.records,
        people.most,
        one.evidence.agreeing,
        one.kind not in ("token", "evidence"),
        twins=tuple(one.twins),
    )


def _by_profile(columns: Sequence[PersonColumn], rows: np.ndarray) -> Answer:
    """A question where few profiles of people stand in many records; else every row is a person."""
    profile = [column for column in columns if _describes(column)]
    has_number = any(c.seen >= FEWEST and c.look.kind != "text" for c in profile)
    if len(profile) < 3 or not has_number:
        return Answer(Verdict.NONE)
    seen, by_chance = profiles([column.among(rows)[0] for column in profile], 3)
    if not 3 <= seen <= min(by_chance, len(rows)) / 5:
        return Answer(Verdict.NONE)
    people = joint_people(profile)
    names = tuple(column.title for column in profile)
    found = PersonCandidate(names, people.distinct, people.records, people.most, is_profile=True)
    return Answer(Verdict.ASK, (found,))


def _describes(column: PersonColumn) -> bool:
    """Whether it says what a person is like whom the table is about."""
    if not column.varies or column.look.kind == "span" or column.name.is_of_other:
        return False
    return column.name.is_personal or column.name.is_of_body
