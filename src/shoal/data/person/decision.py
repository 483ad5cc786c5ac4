"""Who is one person in a table: the column that numbers the people, a question, or every row.

candidates > what the cells say of them > pairs > the same under other names > what is decided

The answer is in counts and in words; never with a value of the table.
"""

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from shoal.data.column_words import NAMES, name_of
from shoal.data.findings import some_named
from shoal.data.person import recurrence
from shoal.data.person.candidates import (
    MOST_ROWS,
    RANK,
    Candidate,
    few_by_name,
    other_candidates,
    people_of,
    single_candidates,
)
from shoal.data.person.columns import FEWEST, FULL_NAMES, MANY, NO_NUMBERS, STRONG, PersonColumn
from shoal.data.person.within_groups import (
    PERSON_BY_NAME,
    begun_anew,
    beside_own,
    fewer_first,
    followed,
    in_keys,
    issued,
    last_resorts,
    of_every_record,
    parts_of_keys,
    shared_by_families,
    shown_by_codes,
    within_groups,
)
from shoal.data.table import Table

MOST_COLUMNS = 200  # that are looked at
ENOUGH = 30  # people whom a name alone makes sure
MOST_ALIKE = 10  # records of each profile, beyond which nobody is seen to recur
MOST_ISSUED = 30  # records of each number that a group may have given to people, on average
MOST_INNER = 2  # events and cards that a question lists


class Verdict(Enum):
    """Whether one column numbers the people, somebody has to say, or every record is a person."""

    SURE = "sure"
    ASK = "ask"
    NONE = "none"


@dataclass(frozen=True)
class PersonCandidate:
    """One column, or several together, that may number people.

    people: as many would there be. records: those that have a value; most: of one person. agreeing:
    columns on which records of one agree, steadiest first. is_named: whether its name says so.
    is_profile: whether it only describes people, as age and height together do, or a part of its
    cells numbers them. below: of the records, those without a value below one that has. part: the
    pattern whose first group is that part.
    """

    columns: tuple[str, ...]
    people: int
    records: int
    most: int
    agreeing: tuple[str, ...] = ()
    is_named: bool = False
    is_profile: bool = False
    below: int = 0
    part: str = ""

    @property
    def key(self) -> str | list[str]:
        """As a policy names it: a column, or the several that number people together."""
        return self.columns[0] if len(self.columns) == 1 else list(self.columns)

    @property
    def meaning(self) -> str:
        """What would follow if it numbers people."""
        below = ", who have the records below, too" if self.below else ""
        part = "a beginning or end of " if self.part else ""
        return (
            f"by {part}{' + '.join(self.columns)}{below}: {self.people} people,"
            f" {self.records / self.people:.1f} rows each on average, {self.most} at most of one"
        )

    @property
    def doubt(self) -> str:
        """What speaks against counting records, in counts."""
        named = some_named(self.columns)
        column = f"columns {named}" if self.columns[1:] else f"column '{named}'"
        if self.part:
            return (
                f"{column}: its {self.records} cells share {self.people} beginnings or ends, fewer"
                " than it has values"
            )
        if self.is_profile:
            return (
                f"no column numbers people, but only {self.people} profiles of {named} stand in"
                f" {self.records} records"
            )
        agreed = some_named(self.agreeing)
        agreement = f", and records that share one agree on {agreed}" if self.agreeing else ""
        if self.below:
            return (
                f"{column}: {self.below} records below one with a value have none, as where cells"
                f" were merged{agreement}"
            )
        what = "combinations" if self.columns[1:] else "values"
        carry = f"{self.records} records carry {self.people} different {what}"
        return f"{column}: {carry}, up to {self.most} each{agreement}"

    def __str__(self) -> str:
        if self.is_profile:
            way_out = (
                "if people have several, give everyone a number in a column with the role 'subject'"
            )
        elif len(self.columns) > 1:
            way_out = (
                f"if they number people together, say 'subject: [{', '.join(self.columns)}]', and"
                " give each the role 'identifier'"
            )
        elif self.below:
            way_out = "if they are of that person, write it in each, and give it the role 'subject'"
        else:
            way_out = "if it numbers people, give it the role 'subject'"
        return f"{self.doubt}; {way_out}"


@dataclass(frozen=True)
class Answer:
    """Who is one person in a table.

    candidates: the likeliest first; one where it is sure. removed: other columns that number people
    or what belongs to them. may_recur: whether there is none, but records are of events or amounts,
    of which people may have several without that being seen. doubted: columns that are named for
    people or repeat as their numbers do, where there is none, but are not taken to number them.
    beside_keys: who may have several rows nevertheless where each row has a key, if it was asked.
    """

    verdict: Verdict
    candidates: tuple[PersonCandidate, ...] = ()
    removed: tuple[str, ...] = ()
    may_recur: bool = False
    doubted: tuple[str, ...] = ()
    beside_keys: tuple[PersonCandidate, ...] = ()

    @property
    def question(self) -> str:
        """What somebody has to decide, with what each candidate would mean."""
        first = self.candidates[0]
        if first.is_profile:
            most = f"{first.most} at most of one"
            return f"who is one person? {first.doubt}, {most}; is every record a person?"
        means = "; ".join(one.meaning for one in self.candidates)
        return f"who is one person? {means}; or every record"

    @property
    def asked(self) -> Mapping[str, Any]:
        """The question as a policy holds it."""
        keys = {one.columns: one.key for one in self.candidates}  # a part has no name of its own
        return {"question": "person", "candidates": [*keys.values()], "text": self.question}


def who_is_a_person(table: Table, declared: Container[str] = (), has_key: bool = False) -> Answer:
    """Which column numbers the people of a table, by names and cells.

    declared: columns of role identifier, which may number however few people. has_key: whether each
    row has a key.
    Of more than 20,000 rows those of whole values are looked at. Whether an answer is sure hangs on
    shares, which the order of rows moves by chance where it moves them at all.
    """
    rows = np.arange(table.records)
    if table.records > MOST_ROWS:
        rows = np.sort(np.random.default_rng(3).choice(table.records, MOST_ROWS, replace=False))
    columns = [PersonColumn(table, name, rows) for name in _looked_at(table)]
    answer = _decided(columns, declared)
    if answer.candidates and not any(one.is_named or one.is_profile for one in answer.candidates):
        answer = replace(answer, candidates=_stated(few_by_name(columns)) + answer.candidates)
    return replace(answer, beside_keys=_beside_keys(answer, columns)) if has_key else answer


def _decided(columns: Sequence[PersonColumn], declared: Container[str]) -> Answer:
    """The answer by these columns, whether or not rows have keys."""
    # fractions that say who somebody is are ages and weights; some are codes and keys with a point
    telling = [
        c
        for c in columns
        if c.look.kind != "fraction"
        or c.name.numbers_people
        or c.name.has("age", "keep", "body", "firm", "animal")
    ]
    kept, rejected = _judged(single_candidates(columns, declared), telling)
    kept, members = _with_pairs(kept, rejected, telling)
    left, inner = _sifted(kept)
    left = beside_own(left, columns)
    others = _others(left, columns, telling)
    left = _sifted([*left, *others])[0] if others else left
    left = fewer_first(left) or in_keys(columns, telling)
    left = left or [one for one in followed(columns) if not one.weigh(telling).is_contradicted]
    rest = [c for c in columns if c not in members]
    left = left or [one for one in last_resorts(rest) if one.is_doubtful(telling)]
    if not left:
        return _by_the_rest(rest, [*rejected, *kept], telling)
    shared = [pair for one in left for pair in shared_by_families(one, columns)][:1]
    anew = [] if shared else begun_anew(left, columns)
    whole = [c for one in left for c in one.parts[:1] if len(one.parts) == 1 and not one.part]
    parts = parts_of_keys([c for c in whole if c.repeats(FEWEST)], telling)
    is_sure = len(left) == 1 and not (shared or anew or parts) and _is_sure(left[0], telling)
    listed = left if is_sure else [*shared, *left, *anew, *parts, *inner[:MOST_INNER]]
    removed = kept + [one for one in rejected if one.kind in (*PERSON_BY_NAME, "contact")]
    names = [name for one in removed for name in one.columns if (name,) != left[0].columns]
    verdict = Verdict.SURE if is_sure else Verdict.ASK
    return Answer(verdict, _stated(listed), tuple(dict.fromkeys(names)))


def _by_the_rest(
    columns: Sequence[PersonColumn], left_out: Sequence[Candidate], telling: Sequence[PersonColumn]
) -> Answer:
    """A question about numbers of a group, with those of every record, or about who recurs."""
    found = _by_profile(columns)
    numbers = [one for one in issued(columns) if one.is_doubtful(telling)]
    few = [one for one in numbers if one.people.repeated < MOST_ISSUED * one.people.distinct]
    if few:
        shown = [one for one in found.candidates if not one.is_profile]
        listed = (*_stated(few), *shown, *_stated(of_every_record(columns)))
        return Answer(Verdict.ASK, tuple({one.columns: one for one in listed}.values()))
    for one in left_out:
        may_be = found.may_recur and not one.evidence.is_contradicted
        numbers += [one] if one.kind == "person" or may_be else []
    return replace(found, doubted=_doubted(columns, numbers, found.may_recur))


def _doubted(
    columns: Sequence[PersonColumn], refused: Sequence[Candidate], may_recur: bool
) -> tuple[str, ...]:
    """The columns that are named for people, as far as they may number them, and those of unknown
    titles that repeat as their numbers do. refused: that are named so.
    """
    kinds = (*NAMES, "staff") if may_recur else ()
    shared = [c.title for c in columns if c.name.kind in kinds and c.repeats(FEWEST)]
    is_open = may_recur or not any(c.name.is_personal for c in columns)
    repeating = [c.title for c in columns if is_open and c.may_be_of_people()]
    named = {*shared, *repeating, *(name for one in refused for name in one.columns)}
    return tuple(c.title for c in columns if c.title in named)


def _looked_at(table: Table) -> list[str]:
    """All columns; of very many those whose names mean something, then those with most values.

    Each may be compared with each, so that their number counts by its square.
    """
    if len(table.names) <= MOST_COLUMNS:
        return list(table.names)

    def rank(name: str) -> tuple[bool, int]:
        return not name_of(name).kind, -table.distinct(name)

    chosen = {*sorted(table.names, key=rank)[:MOST_COLUMNS]}
    return [name for name in table.names if name in chosen]


def _judged(
    candidates: Sequence[Candidate], telling: Sequence[PersonColumn]
) -> tuple[list[Candidate], list[Candidate]]:
    """Those that stay and those that the cells reject; others are in neither."""
    kept, rejected = [], []
    for one in candidates:
        one.weigh(telling)
        if _is_rejected(one):
            rejected.append(one)
        elif one.kind != "token" or one.parts[0].look.token in STRONG or one.tells_who:
            kept.append(one)
    return kept, rejected


def _others(
    left: Sequence[Candidate], columns: Sequence[PersonColumn], telling: Sequence[PersonColumn]
) -> list[Candidate]:
    """Columns whose cells alone say that they number people, where their names do not.

    Beside one that seems sure, only coarser ones: it may number the stays of their people.
    """
    is_sure = len(left) == 1 and _seems_sure(left[0])
    if not is_sure and any(one.kind in PERSON_BY_NAME for one in left):
        return []
    others = other_candidates(columns, {name for one in left for name in one.columns})
    if is_sure:
        others = [one for one in others if left[0].lies_in(one) and not one.lies_in(left[0])]
    sound = [one for one in others if not one.weigh(telling).is_dominated]
    if is_sure:
        return [one for one in sound if one.evidence.is_confirmed]
    return [one for one in sound if one.evidence.is_of_people or _may_be_people(one, bool(left))]


def _may_be_people(one: Candidate, is_asked: bool) -> bool:
    """Whether a column may number people in a table that says nothing personal: it agrees with
    others as people do, or is of who acts. is_asked: whether others are asked about, anyway.
    """
    found, (column,) = one.evidence, one.parts
    kind, token = column.name.kind, column.look.token
    if found.personal or one.people.distinct < MANY:
        return False
    if found.steady and column.runs_over_people():
        return True
    if kind not in ("", "staff") or column.counts_only:
        return False
    if kind == "staff" and (token or column.name.is_number):
        return is_asked or bool(found.steady) or column.name.ends("dealer")
    return bool(found.crossing) or (is_asked and token in FULL_NAMES)


def _is_rejected(one: Candidate) -> bool:
    """Whether the cells say that a named column does not number people."""
    found = one.evidence
    if one.kind == "person" and not one.below:
        return one.is_weak and found.is_refuted
    if found.is_contradicted:
        name = one.parts[0].name
        is_of_others = name.may_number_others or name.has("other_end")
        return one.kind not in ("civil", "contact") or is_of_others
    if one.kind != "name" or found.personal or found.steady or one.below:
        return False
    is_seldom = one.people.distinct >= 0.7 * one.people.records
    return is_seldom and not recurrence.full_names_recur(one.parts[0])


def _with_pairs(
    kept: list[Candidate], rejected: list[Candidate], telling: Sequence[PersonColumn]
) -> tuple[list[Candidate], set[PersonColumn]]:
    """Those that stay, once columns are looked at that number people only together; and groups
    whose rows are members, each with a number of its own.
    """
    numbered = [one for one in kept if one.kind in PERSON_BY_NAME]
    named = recurrence.by_name(telling)
    if named is not None and (
        not numbered or any(recurrence.recur(named.parts, one.people.first) for one in numbered)
    ):
        kept = [*kept, named]
    pairs: list[Candidate] = []
    members: set[PersonColumn] = set()
    for pair in within_groups(telling, kept, rejected):
        *groups, number = pair.parts
        if pair.people.repeated:
            pairs.append(pair)
            continue
        members.update(groups)
        kept = [c for c in kept if c.columns != (number.title,) or c.evidence.is_confirmed]
        pairs = [one for one in pairs if one.parts[-1] is not number]
    parts = {(part,) for pair in [*kept, *pairs] for part in pair.parts if len(pair.parts) > 1}
    unsure = [one for one in kept if one.evidence.is_contradicted or not one.evidence.personal]
    parts -= {pair.parts[-1:] for pair in pairs if pair.anew is not None}
    rejected += [one for one in unsure if one.parts in parts]
    return [*(one for one in kept if one not in rejected), *pairs], members


def _sifted(kept: Sequence[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    """Who may be the people, the likeliest first; and their events, cards and sessions."""
    left = _without_twins(kept)
    sound = [one for one in left if not one.evidence.is_contradicted]
    solid = [one for one in sound if one.kind in PERSON_BY_NAME]
    solid = solid or [one for one in sound if one.kind in ("pair", "contact")]
    inner = [one for one in left if one.rank >= RANK["name"] and _is_inside(one, solid)]
    return [one for one in left if one not in inner], inner


def _without_twins(kept: Sequence[Candidate]) -> list[Candidate]:
    """The likeliest first, each once under its best name."""
    left: list[Candidate] = []
    for one in sorted(kept, key=lambda c: (c.rank, c.is_weak, len(c.columns), -c.people.distinct)):
        if not any(map(one.is_twin_of, left)):
            left.append(one)
    return left


def _is_inside(one: Candidate, solid: Sequence[Candidate]) -> bool:
    """Whether it is of events, cards or sessions of people who are numbered otherwise."""
    fewer = [whole for whole in solid if whole.people.distinct < one.people.distinct]
    return any(map(one.lies_in, fewer))


def _is_sure(one: Candidate, telling: Sequence[PersonColumn]) -> bool:
    """Whether the only candidate left needs no question."""
    if not _seems_sure(one) or one.parts[0].is_signed_in_ways:
        return False
    steady = one.evidence.steady
    others = [c for c in telling if c not in one.parts]
    kept = [c for c in others if not steady or c.title in steady or recurrence.says_when(c)]
    return not recurrence.recurring(kept, one.people.first)


def _seems_sure(one: Candidate) -> bool:
    """Whether no question is needed unless other columns, or who recurs, ask for one."""
    found, column = one.evidence, one.parts[0]
    if one.kind not in PERSON_BY_NAME or found.is_contradicted or one.below:
        return False
    # a number of a patient's scan is named for a person, too
    is_of_person = one.kind == "civil" or column.name.ends("person")
    is_count = column.name.is_count and not column.look.token
    is_foreign = "animal" in found.foreign or (found.foreign and not found.is_confirmed)
    is_other = column.name.may_number_others or is_count or is_foreign
    if found.is_dominated or not is_of_person or is_other:
        return False
    if found.is_confirmed:
        return one.people.distinct >= FEWEST
    is_form = column.look.kind not in NO_NUMBERS and not column.name.says_more
    is_named = column.name.is_number and is_form and not one.is_weak and not found.personal
    # a name may be namesakes'
    is_token = bool(column.look.token) and column.look.token not in FULL_NAMES
    speaks = found.crossing or found.steady or is_token
    return bool(is_named and one.people.distinct >= ENOUGH and speaks)


def _stated(candidates: Iterable[Candidate]) -> tuple[PersonCandidate, ...]:
    """Candidates in counts."""
    return tuple(
        PersonCandidate(
            one.columns,
            *(one.people.distinct, one.people.records, one.people.most),
            agreeing=tuple(one.evidence.steady),
            is_named=one.kind not in ("token", "evidence", "part", "profile"),
            is_profile=one.kind in ("part", "profile"),
            below=one.below,
            part=one.part,
        )
        for one in candidates
    )


def _beside_keys(answer: Answer, columns: Sequence[PersonColumn]) -> tuple[PersonCandidate, ...]:
    """Candidates that are named for people, or names by which they recur; else such a profile."""
    names = [c for c in columns if c.is_name or c.name.kind in ("first", "last")]
    recurs = {column.title: recurrence.full_names_recur(column) for column in names}
    named = (one for one in answer.candidates if recurs.get(str(one.key), one.is_named))
    return tuple(named) or _recurring_profile(columns)


def _recurring_profile(columns: Sequence[PersonColumn]) -> tuple[PersonCandidate, ...]:
    """The columns that describe people and by which they recur among all records, if they do."""
    rows = np.arange(len(columns[0].people.keys) if columns else 0)
    telling = [c for c in columns if c.varies and c.look.kind != "span" and not c.name.is_of_other]
    profile = recurrence.recurring(telling, rows) or recurrence.in_turns(telling)
    return _stated([Candidate.of(*profile, kind="profile")] if profile else [])


def _by_profile(columns: Sequence[PersonColumn]) -> Answer:
    """A question where people recur by a profile; else every row is a person."""
    if profile := _recurring_profile(columns):
        return Answer(Verdict.ASK, profile)
    unnamed = [c for c in columns if c.look.kind != "span" and not c.is_name]
    described = map(people_of, recurrence.full_profiles_of(unnamed))
    if any(one.records <= MOST_ALIKE * one.distinct for one in described):
        return Answer(Verdict.NONE)
    others = [c for c in columns if not c.name.is_personal]
    # games that players of a number each had are games of several
    kinds = ("event", "amount") if of_every_record(columns) else ("event", "amount", "occasion")
    happens = any(c.look.kind == "time" or c.name.has(*kinds) for c in others)
    shown = shown_by_codes(columns, happens)
    if shown := [one for one in shown if not one.weigh(columns).is_contradicted]:
        return Answer(Verdict.ASK, _stated(shown))
    in_turn = any(c.look.kind == "text" and recurrence.begins_of_turns(c).any() for c in columns)
    return Answer(Verdict.NONE, may_recur=happens or in_turn)
