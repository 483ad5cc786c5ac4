"""What speaks for a candidate in the cells: records of one person agree on who the person is.

pair        two records of one value, neighbours once the records of each value are shuffled
chance      how often two records agree on a column anyway
steadiness  how far pairs agree beyond chance: 1 if always, 0 if no more than chance
crossing    two steady columns of which neither is nested in the other, as sex and birth year are;
            city and state behind a postcode nest, so a postcode numbers nobody
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice

import numpy as np

from shoal.data.person.columns import People, PersonColumn, distinct, mixed

MOST_ROWS = 20_000
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
    crossing: steady columns that cross. is_dominated: whether a coarser profile is as steady.
    foreign: what is said of animals, or of firms, accounts and machines, where it does not differ.
    """

    personal: dict[str, float] = field(default_factory=dict)
    steady: dict[str, float] = field(default_factory=dict)
    crossing: tuple[str, ...] = ()
    is_dominated: bool = False
    foreign: set[str] = field(default_factory=set)

    @property
    def is_contradicted(self) -> bool:
        """Whether records of one value are of different people."""
        return bool(self.personal) and max(self.personal.values()) < CONTRADICTED

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
    def of(cls, people: People, parts: Sequence[PersonColumn]) -> "_Sample":
        rows = people.sampled(MOST_ROWS)
        # by codes, which are the same on all machines, as keys need not be; the least of a key's
        codes = np.unique(mixed(*(part.among(rows)[0] for part in parts)), return_inverse=True)[1]
        keys = np.unique(people.keys[rows], return_inverse=True)[1]
        number = np.full(len(rows), len(rows))
        np.minimum.at(number, keys, codes)
        number = number[keys]
        drawn = np.random.default_rng(4).random(len(rows))
        order = np.lexsort((drawn, number))
        rows, number = rows[order], number[order]
        first = np.flatnonzero(np.diff(number, prepend=-1))
        place = np.arange(len(rows)) - np.repeat(first, np.diff(first, append=len(rows)))
        return cls(rows, number, np.flatnonzero((place > 0) & (place <= MOST_PAIRS)), first)


def evidence_for(
    people: People,
    parts: Sequence[PersonColumn],
    columns: Iterable[PersonColumn],
    goes_on: bool = False,
) -> Evidence:
    """What the columns say of people who are numbered by some of them, the parts.

    Personal columns come first; where they contradict, the others are not asked, unless it goes on.
    """
    evidence, sample = Evidence(), _Sample.of(people, parts)
    if len(sample.pairs) < FEWEST_PAIRS:
        return evidence
    steady: dict[str, np.ndarray] = {}
    others = [column for column in columns if column not in parts]
    for column in sorted(others, key=lambda column: not column.name.is_personal):
        is_personal = column.name.is_personal
        if not is_personal and evidence.is_contradicted and not goes_on:
            break
        codes, has_value = column.among(sample.rows)
        steadiness = _steadiness(column, codes, has_value, sample)
        if steadiness is None or steadiness >= STEADY:
            evidence.foreign |= {meant for meant in ("animal", "firm") if column.name.has(meant)}
        if steadiness is None:
            continue
        if is_personal:
            evidence.personal[column.title] = steadiness
        # a column that determines the number is another name of the same
        number, held = sample.number[has_value], codes[has_value]
        if steadiness >= STEADY and (is_personal or distinct(number, held) > distinct(held)):
            evidence.steady[column.title] = round(steadiness, 3)
            steady[column.title] = codes
    evidence.crossing = _crossing(steady)
    if evidence.crossing:
        evidence.is_dominated = _is_dominated(evidence, others, steady, sample)
    return evidence


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
    return are_few_profiles(profiles, len(sample.first), 3, seed=2)


def are_few_profiles(columns: Sequence[np.ndarray], most: int, factor: int, seed: int) -> bool:
    """Whether combinations are 3 at least, and by this factor fewer than `most`, and than those
    where each column is shuffled by itself. columns: (n,) codes of each.
    """
    seen = distinct(*columns)
    drawn = map(np.random.default_rng(seed).permutation, columns)
    return 3 <= seen <= min(distinct(*drawn), most) / factor
