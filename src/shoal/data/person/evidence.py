"""What speaks for a candidate in the cells: records of one person agree on who the person is.

pair        two records of one value, neighbours once the records of each value are shuffled
chance      how often two records agree on a column anyway
steadiness  how far pairs agree beyond chance: 1 if always, 0 if no more than chance
crossing    two steady columns of which neither is nested in the other, as sex and birth year are;
            city and state behind a postcode nest, so a postcode numbers nobody
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

import numpy as np

from shoal.data.person.columns import People, PersonColumn

MOST_ROWS = 20_000
FEW_VALUES = 200  # of fewer values, single rows are drawn: a hash would take one of four people
MOST_PAIRS = 8  # of one value
FEWEST_PAIRS = 5
MOST_CROSSINGS = 200  # pairs of columns that are tried
COMMON = 0.9  # chance above which agreeing says nothing
STEADY = 0.9
CONFIRMED, CONTRADICTED = 0.8, 0.5
CROSSING = 1.2  # times as many pairs of values as the richer of two columns has
YEARS = 5  # by which ages of one person may differ: people grow older


@dataclass
class Evidence:
    """What other columns say of a candidate.

    personal, steady: by column, how steady each personal and each steady column is.
    crossing: steady columns that cross. profiles: how many profiles of steady columns there are
    where far fewer than values; 0 where they are as many as chance makes.
    """

    personal: dict[str, float] = field(default_factory=dict)
    steady: dict[str, float] = field(default_factory=dict)
    crossing: tuple[str, ...] = ()
    profiles: int = 0

    @property
    def is_contradicted(self) -> bool:
        """Whether records of one value are of different people."""
        return bool(self.personal) and max(self.personal.values()) < CONTRADICTED

    @property
    def is_confirmed(self) -> bool:
        """Whether records of one value agree on all that says who a person is."""
        return bool(self.personal) and min(self.personal.values()) >= CONFIRMED

    @property
    def is_dominated(self) -> bool:
        """Whether a coarser profile is as steady."""
        return self.profiles > 0

    @property
    def agreeing(self) -> tuple[str, ...]:
        """The columns on which records of one value agree, steadiest first."""
        return tuple(sorted(self.steady, key=lambda name: -self.steady[name]))


@dataclass(frozen=True)
class _Sample:
    """Some records of a candidate, sorted by value and shuffled within it.

    pairs: the place of each pair's second record. first: of the first record of each value.
    """

    rows: np.ndarray
    number: np.ndarray
    pairs: np.ndarray
    first: np.ndarray

    @classmethod
    def of(cls, people: People) -> _Sample:
        rows = sampled_rows(people)
        number = people.codes[rows].astype(np.int64)
        drawn = np.random.default_rng(4).random(len(rows))
        order = np.lexsort((drawn, number))
        rows, number = rows[order], number[order]
        first = np.flatnonzero(np.diff(number, prepend=-1))
        place = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows)))
        return cls(rows, number, np.flatnonzero((place > 0) & (place <= MOST_PAIRS)), first)


def sampled_rows(people: People, most: int = MOST_ROWS) -> np.ndarray:
    """Rows of whole values, about `most`; single rows at random where there are few values."""
    if people.records <= most:
        return people.rows(most)
    if people.distinct >= FEW_VALUES:
        rows = people.rows(most)
        if len(rows) >= most // 20:
            return rows
    rows = np.flatnonzero(people.is_value[people.codes])
    drawn = np.random.default_rng(5).choice(len(rows), most, replace=False)
    return rows[np.sort(drawn)]


def evidence_for(
    people: People,
    columns: Sequence[PersonColumn],
    own: Collection[str],
    goes_on: bool = False,
) -> Evidence:
    """What the columns say of a candidate whose columns are `own`.

    Personal columns come first; where they contradict, the others are not asked, unless it goes on.
    """
    evidence, sample = Evidence(), _Sample.of(people)
    if len(sample.pairs) < FEWEST_PAIRS:
        return evidence
    steady: dict[str, np.ndarray] = {}
    for column in sorted(columns, key=lambda column: not column.name.is_personal):
        if column.title in own or not column.varies:
            continue
        if not column.name.is_personal and evidence.is_contradicted and not goes_on:
            break
        codes, has_value = column.among(sample.rows)
        steadiness = _steadiness(column, codes, has_value, sample)
        if steadiness is None:
            continue
        if column.name.is_personal:
            evidence.personal[column.title] = steadiness
        if steadiness < STEADY:
            continue
        if column.name.is_personal or _tells_more(sample.number[has_value], codes[has_value]):
            evidence.steady[column.title] = round(steadiness, 3)
            steady[column.title] = codes
    evidence.crossing = _crossing(steady)
    if evidence.crossing:
        evidence.profiles = _fewer_profiles(evidence, columns, steady, sample)
    return evidence


def _tells_more(number: np.ndarray, codes: np.ndarray) -> bool:
    """Whether a column does not determine the number: else it is another name of the same."""
    return distinct(number, codes) > distinct(codes)


def _steadiness(
    column: PersonColumn, codes: np.ndarray, has_value: np.ndarray, sample: _Sample
) -> float | None:
    """How far pairs agree beyond chance; None where the column can't tell."""
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
        chance = _chance(codes[shown])
    if chance > COMMON or _chance(codes[has_value]) > COMMON:
        return None
    return (agree - chance) / (1 - chance)


def _chance(codes: np.ndarray) -> float:
    """How often two of these records agree."""
    return float(((np.bincount(codes) / len(codes)) ** 2).sum())


def distinct(codes: np.ndarray, *others: np.ndarray) -> int:
    """Distinct values, or combinations of values."""
    key = codes
    for other in others:
        key = joined(key, other)
    return len(np.unique(key))


def joined(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """(n,) int64, dense codes of pairs of codes."""
    width = int(other.max(initial=0)) + 1
    key = one.astype(np.int64) * width + other
    if int(key.max(initial=0)) < 4 * len(key):
        return (np.cumsum(np.bincount(key) > 0) - 1)[key]
    return np.unique(key, return_inverse=True)[1]


def _crossing(steady: dict[str, np.ndarray]) -> tuple[str, ...]:
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


def _fewer_profiles(
    evidence: Evidence,
    columns: Iterable[PersonColumn],
    steady: dict[str, np.ndarray],
    sample: _Sample,
) -> int:
    """How many profiles there are where they are far fewer than values, and than profiles that drew
    each column by itself; 0 else.
    """
    about_person = [
        column.title
        for column in columns
        if column.title in steady and (column.name.is_personal or column.name.is_of_body)
    ]
    is_personal = sum(name in evidence.personal for name in steady) >= 2
    names = about_person if is_personal else evidence.crossing
    seen, by_chance = profiles([steady[name][sample.first] for name in names], 2)
    values = len(sample.first)
    return seen if 3 <= seen <= min(by_chance, values) / 3 else 0


def profiles(columns: Sequence[np.ndarray], seed: int) -> tuple[int, int]:
    """Distinct combinations, and those where each column is shuffled by itself.

    columns: (n,) codes of each.
    """
    rng = np.random.default_rng(seed)
    return distinct(*columns), distinct(*map(rng.permutation, columns))
