"""Columns that may number people, by themselves or together, and what speaks for each in the cells:
records of one person agree on who the person is.

rank        how likely a kind numbers people, the likeliest first
together    first and last names with the birth; numbers that begin anew in every group

pair        two records of one value, neighbours once the records of each value are shuffled
chance      how often two records agree on a column anyway
steadiness  how far pairs agree beyond chance: 1 if always, 0 if no more than chance
crossing    two steady columns of which neither is nested in the other, as sex and birth year are;
            city and state behind a postcode nest, so a postcode numbers nobody
"""

from collections.abc import Container, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations, islice

import numpy as np
import polars as pl

from shoal.data.column_words import NAMES, meanings
from shoal.data.person.columns import (
    EXCEPTIONS,
    FEWEST,
    FULL_NAMES,
    MANY,
    NEVER,
    NO_NUMBERS,
    STRONG,
    PersonColumn,
)
from shoal.data.person.people import MOST_TO_A_NUMBER, People, distinct

MOST_ROWS = 20_000
MOST_PAIRS = 8  # of one value
FEWEST_PAIRS = 5
MOST_CROSSINGS = 200  # pairs of columns that are tried
COMMON = 0.9  # chance above which agreeing says nothing
STEADY = 0.9
CONFIRMED, CONTRADICTED = 0.8, 0.5
CROSSING = 1.2  # times as many pairs of values as the richer of two columns has
ALIKE = 0.9  # by how much the counts of two names of the same may differ
YEARS = 5  # by which ages of one person may differ: people grow older


@dataclass
class Evidence:
    """What other columns say of a candidate.

    personal, steady: by column, how steady each personal and each steady column is, the latter
    steadiest first.
    own: kinds of those personal columns that are of nobody and nothing else, by their names.
    crossing: steady columns that cross. is_dominated: whether a coarser profile is as steady.
    foreign: what is said of animals, or of firms, accounts and machines, where it does not differ.
    """

    personal: dict[str, float] = field(default_factory=dict)
    steady: dict[str, float] = field(default_factory=dict)
    own: set[str] = field(default_factory=set)
    crossing: tuple[str, ...] = ()
    is_dominated: bool = False
    foreign: set[str] = field(default_factory=set)

    @property
    def is_contradicted(self) -> bool:
        """Whether records of one value are of different people."""
        return bool(self.own) and max(self.personal.values()) < CONTRADICTED

    @property
    def is_refuted(self) -> bool:
        """Whether records of one value differ both by sex and by age or birth."""
        return self.is_contradicted and "sex" in self.own and len(self.own) > 1

    @property
    def is_confirmed(self) -> bool:
        """Whether records of one value agree on all that says who a person is."""
        return bool(self.personal) and min(self.personal.values()) >= CONFIRMED

    @property
    def is_of_people(self) -> bool:
        """Whether it is confirmed by more than what groups of people share, too."""
        crosses = any(name in self.personal for name in self.crossing)
        return self.is_confirmed and (crosses or len(self.personal.keys() & self.steady) > 1)


@dataclass(frozen=True)
class _Sample:
    """Some records of a candidate, sorted by value and shuffled within it.

    number: (rows,) the value of each. pairs: the place of each pair's second record. first: of the
    first record of each value.
    """

    rows: np.ndarray
    number: np.ndarray
    pairs: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, people: People) -> "_Sample":
        rows = people.sampled(MOST_ROWS)
        # by their first records, which are the same on all machines, as keys need not be
        _, first, keys = np.unique(people.keys[rows], return_index=True, return_inverse=True)
        number = first[keys]
        drawn = np.random.default_rng(4).random(len(rows))
        order = np.lexsort((drawn, number))
        rows, number = rows[order], number[order]
        first = np.flatnonzero(np.diff(number, prepend=-1))
        place = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows)))
        return cls(rows, number, np.flatnonzero((place > 0) & (place <= MOST_PAIRS)), first)


def _steadiness(column: PersonColumn, held: People, sample: _Sample) -> float | None:
    """How far pairs agree beyond chance; None where the column can't tell. held: what a sample
    holds in it.
    """
    codes, has_value = held.keys, held.is_value
    second = sample.pairs[has_value[sample.pairs] & has_value[sample.pairs - 1]]
    if len(second) < FEWEST_PAIRS:
        return None
    shown = sample.first[has_value[sample.first]]
    if len(shown) < 10:
        shown = np.flatnonzero(has_value)
    if column.name.kind == "age" and column.look.kind in ("int", "whole"):
        ages = column.numbers_among(sample.rows)
        agree = float((np.abs(ages[second] - ages[second - 1]) <= YEARS).mean())
        drawn = np.random.default_rng(1).permutation(ages[shown])
        chance = float((np.abs(ages[shown] - drawn) <= YEARS).mean())
    else:
        agree = float((codes[second] == codes[second - 1]).mean())
        if agree < STEADY and not column.name.is_personal:
            return agree  # no steadier than that, by whatever chance
        chance = _chance(codes[shown])
    if chance > COMMON or _chance(codes[has_value]) > COMMON:
        return None
    return (agree - chance) / (1 - chance)


def _across(sample: _Sample, groups: np.ndarray) -> _Sample:
    """A sample whose pairs are of one value and of two groups. groups: (rows,) of its records."""
    order = np.lexsort((groups, sample.number))
    rows, number, group = sample.rows[order], sample.number[order], groups[order]
    is_pair = (number[1:] == number[:-1]) & (group[1:] != group[:-1])
    return _Sample(rows, number, np.flatnonzero(is_pair) + 1, sample.first)


def _chance(codes: np.ndarray) -> float:
    """How often two of these records agree."""
    shares = pl.Series(codes).unique_counts().to_numpy() / len(codes)
    return float((shares**2).sum())


def _crossing(steady: Mapping[str, np.ndarray]) -> tuple[str, ...]:
    """The steady columns that are not nested in another one of them."""
    found: set[str] = set()
    sizes = {name: distinct(codes) for name, codes in steady.items()}
    for one, other in islice(combinations(steady, 2), MOST_CROSSINGS):
        if {one, other} <= found:
            continue
        both = distinct(steady[one], steady[other])
        if both >= CROSSING * max(sizes[one], sizes[other]):
            found |= {one, other}
    return tuple(name for name in steady if name in found)


def _is_dominated(
    evidence: Evidence,
    columns: Iterable[PersonColumn],
    steady: Mapping[str, np.ndarray],
    sample: _Sample,
) -> bool:
    """Whether there are far fewer profiles than values, and than profiles that drew each column by
    itself.
    """
    names: Iterable[str] = evidence.crossing
    if sum(name in evidence.personal for name in steady) >= 2:
        about_person = [c.title for c in columns if c.name.is_personal or c.name.has("body")]
        names = [name for name in about_person if name in steady]
    profiles = [steady[name][sample.first] for name in names]
    drawn = map(np.random.default_rng(2).permutation, profiles)
    return 3 <= distinct(*profiles) <= min(distinct(*drawn), len(sample.first)) / 3


LACKING = 0.05  # share of records without a value, from which they may be of those above them
FEWEST_CODES = 5  # distinct values, and one for 0, from which a word alone is of people

_RANKED = "civil, person, contact pair, name, proxy, number token, event, evidence part".split(", ")
RANK = {kind: rank for rank, kinds in enumerate(_RANKED) for kind in kinds.split()}


@dataclass(eq=False)
class Candidate:
    """One column or several that may number the people.

    kind: why it may, a key of RANK, or that it is a profile. part: the pattern of cells of which
    only a part does. anew: of numbers that seem to begin anew in a group, whether that is clear; in
    doubt, the number alone means fewer people.
    """

    parts: tuple[PersonColumn, ...]
    kind: str
    people: People
    evidence: Evidence = field(default_factory=Evidence)
    part: str = ""
    anew: bool | None = None

    @classmethod
    def of(cls, *parts: PersonColumn, kind: str = "pair") -> "Candidate":
        """A column, or several, which only together number people."""
        return cls(parts, kind, people_of(parts))

    def weigh(self, columns: Iterable[PersonColumn], to_confirm: bool = False) -> Evidence:
        """Takes up what the columns say of it.

        Personal columns come first; where they contradict, the others are not asked, but of numbers
        of the state and of contacts. to_confirm: nor where one of them does not confirm it.
        """
        goes_on = self.kind in ("civil", "contact")
        self.evidence = Evidence()
        evidence, sample = self.evidence, self.sample
        if len(sample.pairs) < FEWEST_PAIRS:
            return evidence
        steady: dict[str, np.ndarray] = {}
        names: dict[str, float] = {}
        named = {word for part in self.parts for word in part.name.words}
        others = [column for column in columns if column not in self.parts]
        for column in sorted(others, key=lambda column: not column.name.is_personal):
            is_personal = column.name.is_personal
            if not is_personal and evidence.is_contradicted and not goes_on:
                break
            if to_confirm and evidence.personal and not evidence.is_confirmed:
                break
            held = column.people.among(sample.rows)
            steadiness = _steadiness(column, held, sample)
            if steadiness is None or steadiness >= STEADY:
                evidence.foreign |= {one for one in ("animal", "firm") if column.name.has(one)}
            if steadiness is None:
                continue
            if is_personal:
                evidence.personal[column.title] = steadiness
                if column.name.is_own_of(named):
                    evidence.own.add(column.name.kind)
            elif column.name.kind in NAMES and column.name.says_only_name:
                names[column.title] = steadiness
            # a column that determines the number is another name of the same
            number, of_value = sample.number[held.is_value], held.keys[held.is_value]
            if steadiness >= STEADY and (
                is_personal or distinct(number, of_value) > distinct(of_value)
            ):
                evidence.steady[column.title] = round(steadiness, 3)
                steady[column.title] = held.keys
        if not evidence.personal and max(names.values(), default=1) < CONTRADICTED:
            evidence.personal |= names
            evidence.own.add("name")
        births = [c.title for c in others if c.name.kind == "birth" and c.title in steady]
        # hardly two values share such a birth, which thus nothing can cross
        least = len(sample.first) / CROSSING
        own = [name for name in births if distinct(steady[name][sample.first]) >= least]
        evidence.crossing = _crossing(steady) or tuple(own[:1])
        if evidence.crossing:
            evidence.is_dominated = _is_dominated(evidence, others, steady, sample)
        evidence.steady = dict(sorted(evidence.steady.items(), key=lambda one: -one[1]))
        return evidence

    def is_doubtful(self, columns: Iterable[PersonColumn]) -> bool:
        """Whether none of these says that records of one value are of several people."""
        found = self.weigh(columns)
        return not found.personal or (self.kind in ("name", "number") and found.is_confirmed)

    @cached_property
    def sample(self) -> _Sample:
        """Some records, by whom they are of."""
        return _Sample.of(self.people)

    def is_shown_by_blocks(self, columns: Iterable[PersonColumn]) -> bool:
        """Whether what agrees goes by blocks of its numbers, as the room of candidates may."""
        rows = self.sample.rows[self.sample.first]
        rows = rows[np.argsort(self.parts[0].ends_among(rows), kind="stable")]
        agreeing = self.evidence.steady.keys() | self.evidence.personal
        keys = [column.people.keys[rows] for column in columns if column.title in agreeing]
        # these change far more seldom than in any other order
        return all(3 * np.count_nonzero(np.diff(of)) <= (1 - _chance(of)) * len(of) for of in keys)

    def differs_across(self, group: PersonColumn, columns: Iterable[PersonColumn]) -> bool:
        """Whether records of one value in two groups are of different people, by what says so."""
        sample = _across(self.sample, group.people.keys[self.sample.rows])
        personal = [column for column in columns if column.title in self.evidence.personal]
        found = (_steadiness(one, one.people.among(sample.rows), sample) for one in personal)
        return max((one for one in found if one is not None), default=1) < CONTRADICTED

    def lies_in(self, other: "Candidate") -> bool:
        """Whether every value of it is of one value of the other, but for a few exceptions."""
        rows = self.people.sampled(4 * MOST_ROWS)
        rows = rows[other.people.is_value[rows]]
        keys = self.people.keys[rows]
        both = distinct(keys, other.people.keys[rows])
        return bool(len(rows)) and both <= EXCEPTIONS * distinct(keys)

    def is_twin_of(self, other: "Candidate") -> bool:
        """Whether both are names of the same."""
        fewer, more = sorted((self.people.distinct, other.people.distinct))
        return fewer >= ALIKE * more and self.lies_in(other) and other.lies_in(self)

    @property
    def tells_who(self) -> bool:
        """Whether records of one value agree as those of people do: what is of one kind, such as
        codes of diagnoses, stands in many records and agrees on what is coarser alone.
        """
        found, people = self.evidence, self.people
        is_of_few = people.records <= MOST_TO_A_NUMBER * people.distinct
        return found.is_confirmed or bool(found.crossing) or (bool(found.steady) and is_of_few)

    @property
    def below(self) -> int:
        """Records that are taken to be of whom a record above them names."""
        alone = self.people if len(self.parts) > 1 else self.parts[0].people
        return self.people.records - alone.records

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(part.title for part in self.parts)

    @property
    def rank(self) -> int:
        """How likely its kind numbers people; the likeliest is 0."""
        return RANK["event" if self.parts[0].name.may_number_others else self.kind]

    @property
    def is_weak(self) -> bool:
        """Whether its name may mean somebody else than whom the table is about."""
        name = self.parts[0].name
        return len(self.parts) == 1 and (name.is_weak or name.is_of_other)


def single_candidates(
    columns: Sequence[PersonColumn], declared: Container[str] = ()
) -> list[Candidate]:
    """Every column that may number people by itself. declared: those of role identifier.

    One that names the same person in all records, where no other column names people.
    """
    parts = {column.name.kind for column in columns} & {"first", "last"}
    found = []
    for column in columns:
        is_name = column.is_name or _holds_full_names(column, parts)
        if _names_blocks(column, is_name):
            kind = "name" if is_name else "person"
            found.append(Candidate((column,), kind, column.people.and_below()))
        elif kind := _kind_of(column, is_name, column.title in declared):
            found.append(Candidate.of(column, kind=kind))
    return [one for one in found if one.people.distinct > 1] or found


def each(columns: Iterable[PersonColumn], kind: str) -> list[Candidate]:
    """Each of these columns by itself."""
    return [Candidate.of(column, kind=kind) for column in columns]


def few_by_name(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Columns called by a word for people that hold only 1 to 3 or 4, as codes do, but are likelier
    people than what no name says to be people.
    """
    coded = [c for c in columns if c.name.kind == "person" and c.look.kind == "int"]
    few = [c for c in coded if c.has_values(3) and not c.holds_zero and c.has_few(FEWEST_CODES - 1)]
    return [one for one in each(few, "person") if not one.weigh(columns).is_contradicted]


def other_candidates(columns: Sequence[PersonColumn], taken: Container[str]) -> list[Candidate]:
    """Every other column whose values repeat, whatever its name, but who is described by it."""
    others = (c for c in columns if c.title not in taken and c.may_number and c.may_be_several)
    return each(others, "evidence")


def _holds_full_names(column: PersonColumn, parts: Set[str]) -> bool:
    """Whether its cells are full names of people, by what they and its own name say.

    parts: kinds of columns for parts of names; where there are both, a long name is a part, too.
    """
    name, token = column.name, column.look.token
    if token not in FULL_NAMES:
        return False
    if name.kind in ("first", "last"):
        return not {"first", "last"} <= parts
    return name.has("first", "last") and name.says_only_name


def _names_blocks(column: PersonColumn, is_name: bool) -> bool:
    """Whether it names people once, who may have the records below, too, as where cells are merged.

    is_name: whether its cells are names.
    """
    if column.lacking < LACKING or not (is_name or column.name.kind == "person"):
        return False
    is_seldom = not column.repeats(min(column.seen, column.blank) // 2)
    is_once = column.has_values(FEWEST) and column.blank >= FEWEST and is_seldom
    return is_once and bool(column.people.is_value[0])


def _kind_of(column: PersonColumn, is_name: bool, is_declared: bool) -> str:
    """A key of RANK, or nothing."""
    # who declares names to be identifiers is asked whether they number people
    named = "name" if is_name and not is_declared else column.name.kind
    written, token = column.look
    if token and column.name.ends("ambiguous"):
        named = "person"  # a child's number, not what kind of thing it is
    if token == "digits" and len(column.name.words) == 1 and column.name.has("phone_or_group"):
        named = "contact"
    is_form = written not in NO_NUMBERS or column.name.numbers_people
    # a table may be of staff, and a number may be named as a count is
    is_who = token == "mail" or (token and column.name.has("person"))
    is_other = named in NEVER and not (is_declared and named == "staff") and not is_who
    if not is_form or is_other or (column.counts_only and not is_declared):
        return ""
    kind, fewest, again = _kind_of_many(column), FEWEST, FEWEST
    is_bare = meanings()["bare"].issuperset(column.name.words)  # called an id and no more
    if named in _OF_ONE:
        is_number = column.name.is_number or column.name.is_count
        is_said = named != "person" or is_number or token or column.repeats(MANY)
        kind, again = named if is_said else "", 1
        fewest = 1 if token else _OF_ONE[named]
        if named == "person" and not token:
            # two values without a digit are a flag, such as whether somebody is employed
            fewest = (3 if column.lacks_digits else 1) if is_number else MANY
            fewest = max(fewest, fewest_of_word(column))
    elif column.again >= MOST_TO_A_NUMBER * column.seen and column.seen < MANY and is_bare:
        kind, fewest = named, 2  # few have very many records each
    elif token in STRONG and (named == "proxy" or (named == "number" and token != "digits")):
        fewest, again = 2, 1
    if is_declared:
        kind, fewest, again = kind or "evidence", 1, 1
    return kind if kind and column.has_values(fewest) and column.repeats(again) else ""


_OF_ONE = {"person": 1, "name": 2, "civil": 3, "contact": 3}
"""The fewest values of columns that are named for what is one person's; fewer are a flag."""


def fewest_of_word(column: PersonColumn) -> int:
    """How many values a column called by a word for people must have, so that it can't be a code
    from 0 or 1 on, such as whether somebody is a student, unless its name says number.
    """
    is_code = column.look.kind == "int" and not column.name.says_number
    return FEWEST_CODES + column.holds_zero if is_code and column.varies else 1


def _kind_of_many(column: PersonColumn) -> str:
    """The kind of a column with many values and many repeats, that is not named for people."""
    named, (written, token) = column.name.kind, column.look
    if named in ("proxy", "event"):
        says_number = column.name.is_number or token or named == "proxy"
        return named if says_number or column.has_values(MANY) else ""
    if named == "number":
        return "number" if written != "whole" and (token or column.has_values(MANY)) else ""
    return "token" if token and token not in FULL_NAMES else ""


def people_of(parts: Sequence[PersonColumn]) -> People:
    return People.together([part.people for part in parts])
