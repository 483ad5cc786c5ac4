"""Records by whom they are of, whose numbers begin anew, stand for several people or for nobody."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lgamma, prod

import numpy as np
import polars as pl

from shoal.data.column_words import NAMES, fold, meanings, name_of, words_of
from shoal.data.person_names import names_of, names_of_nobody
from shoal.data.room import blocks
from shoal.data.table import Table, Texts
from shoal.errors import InputError

FEW_VALUES = 200  # of fewer values, single rows are drawn: a hash would take one of four people
MOST_KEYS = 1 << 22  # that are counted in a table of them all
MOST_TO_A_NUMBER = 20  # records, on average, of what a number of somebody or something stands for
SAME_PERSON = 1.1  # times as many, where a few errors differ
FEWEST_AGAIN = 10  # records of people who recur
UNLIKELY = -9  # logarithm of a chance of one in 10,000
ANEW = 0.7  # share of the numbers up to the greatest of each group that occur
NEARLY_CONSTANT = 0.8  # chance above which a few typing errors look like other people
MOST_NUMBERS, MOST_OF_A_NUMBER = 500, 100  # and of their records, that are looked at
MOST_SHARED = 5  # numbers that stand for several people each, and as many times more others
HARDLY_MORE = 0.75  # power of a chance, up to which shares of few records may be by chance
FEW_ALIKE = 2  # pairs of records, besides
MAY_CHANGE = 0.25  # chance above which who changes a few times looks like several people
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class People:
    """Records by whom they are of.

    keys: (n,) whole numbers, equal where records are of one; of texts they are hashes of 64 bits,
    which a million texts share with a chance of 1 in 30 million. is_value: (n,) bool, which records
    are of somebody. room: above all keys, where they are small; else 0.
    """

    keys: np.ndarray
    is_value: np.ndarray
    room: int = 0

    @classmethod
    def together(cls, parts: "Sequence[People]") -> "People":
        """Records by several columns; those that lack a part are nobody's."""
        if len(parts) == 1:
            return parts[0]
        is_value = np.logical_and.reduce([part.is_value for part in parts])
        room = prod(part.room for part in parts)
        if not 0 < room <= MOST_KEYS:
            return cls(mixed(*(part.keys for part in parts)), is_value)
        keys = parts[0].keys.astype(np.int32)
        for part in parts[1:]:
            keys *= part.room
            keys += part.keys
        return cls(keys, is_value, room)

    def among(self, rows: np.ndarray) -> "People":
        """Some records."""
        return People(self.keys[rows], self.is_value[rows], self.room)

    def and_below(self) -> "People":
        """Records of nobody taken to be of whom the last one above them is, who is another person
        in every record that names one: namesakes are others.
        """
        rows = np.where(self.is_value, np.arange(len(self.keys)), 0)
        above = np.maximum.accumulate(rows)
        return People(above, self.is_value[above])

    @cached_property
    def first(self) -> np.ndarray:
        """The first record of everybody, in their order."""
        records = len(self.keys)
        if self.room:
            rows = np.full(self.room, records)
            rows[self.keys[::-1]] = np.arange(records - 1, -1, -1)
        else:
            rows = pl.Series(self.keys).arg_unique().to_numpy()
        is_first = np.zeros(records + 1, dtype=bool)
        is_first[rows] = True
        return np.flatnonzero(is_first[:records] & self.is_value)

    @cached_property
    def records(self) -> int:
        """Records of somebody."""
        return int(self.is_value.sum())

    @cached_property
    def distinct(self) -> int:
        """How many people there are."""
        return len(self.counts() if self.room else self.first)

    @property
    def repeated(self) -> int:
        """Records beyond the first of everybody."""
        return self.records - self.distinct

    def repeat_seldom(self, least: int) -> bool:
        """Whether at least this number of records are repeated, but few of each."""
        return least <= self.repeated < MOST_TO_A_NUMBER * self.distinct

    @property
    def most(self) -> int:
        """Records of the one who has most."""
        if self.room:
            return int(self.counts().max(initial=0))
        is_again = self.is_value.copy()
        is_again[self.first] = False
        return min(self.distinct, 1) + int(People(self.keys, is_again).counts().max(initial=0))

    def counts(self) -> np.ndarray:
        """Records of everybody, in any order."""
        if self.room:
            counted = np.zeros(self.room, dtype=np.int64)
            for rows in blocks(len(self.keys)):  # else a wider copy of all keys is made
                keys = self.keys[rows]
                some = keys if self.is_value[rows].all() else keys[self.is_value[rows]]
                counted += np.bincount(some, minlength=self.room)
            return counted[counted > 0]
        return pl.Series(self.keys[self.is_value]).unique_counts().to_numpy().astype(np.int64)

    def some(self, share: int) -> np.ndarray:
        """(n,) bool, the records of about one of `share` people; of everybody who is for 1."""
        if share == 1:
            return self.is_value
        hashed = self.first.astype(np.uint64) * _GOLDEN >> np.uint64(33)
        chosen = pl.Series(self.keys[self.first[hashed % np.uint64(share) == 0]])
        return pl.Series(self.keys).is_in(chosen.implode()).to_numpy()

    def sampled(self, most: int) -> np.ndarray:
        """Rows of whole people, about `most`; single rows at random where people are few, or some
        have far more records than others.
        """
        if self.records <= most:
            return np.flatnonzero(self.is_value)
        if self.distinct >= FEW_VALUES:
            rows = np.flatnonzero(self.some(-(-self.records // most)))
            if most // 20 <= len(rows) <= 4 * most:
                return rows
        drawn = np.sort(np.random.default_rng(5).choice(self.records, most, replace=False))
        return drawn if self.records == len(self.keys) else np.flatnonzero(self.is_value)[drawn]


def mixed(*keys: np.ndarray) -> np.ndarray:
    """(n,) uint64, equal where all keys are."""
    key = keys[0].astype(np.uint64)
    for other in keys[1:]:
        key = key * _GOLDEN + other.astype(np.uint64)
    return key


def distinct(*keys: np.ndarray) -> int:
    """Distinct values, or combinations of values."""
    return pl.Series(mixed(*keys)).n_unique()


Telling = Callable[[np.ndarray], Iterable[tuple[np.ndarray, bool]]]
"""Codes of what some rows say of a person, and whether it is for life, unlike a home."""


def shared_by_several(numbers: np.ndarray, told: Telling) -> np.ndarray:
    """The few numbers whose many records agree on something hardly more often than different people
    do, while those of any other number agree: they stand for several people, or for none.

    numbers: (n,) codes of people, of which those of most records are looked at.
    """
    counts = np.bincount(numbers)
    if counts.max(initial=0) < FEWEST_AGAIN:
        return np.zeros(0, dtype=np.int64)
    largest = np.argpartition(counts, -min(MOST_NUMBERS, len(counts)))[-MOST_NUMBERS:]
    places = np.full(len(counts), -1)
    places[largest] = np.arange(len(largest))
    rows = np.flatnonzero((places >= 0)[numbers])
    drawn = np.random.default_rng(5).random(len(rows)) * counts[numbers[rows]]
    rows = rows[drawn < MOST_OF_A_NUMBER]
    found = np.zeros(len(largest), dtype=bool)
    people = places[numbers[rows]]
    for values, is_for_life in told(rows):
        width = int(values.max()) + 1
        pairs, held = np.unique(people * width + values, return_counts=True)
        sizes = np.bincount(pairs // width, held, len(largest))
        agree = np.bincount(pairs // width, held * (held - 1), len(largest))  # twice their pairs
        beside = np.maximum(sizes - 1, 1)
        holding = np.bincount(pairs % width)  # how many numbers hold each value
        chance = max((holding * (holding - 1)).sum() / len(pairs) ** 2, 1 / len(pairs))
        hardly = chance**HARDLY_MORE * sizes * beside + 2 * FEW_ALIKE * is_for_life
        is_mixed = (sizes >= FEWEST_AGAIN) & (agree <= hardly)
        others = (sizes > 1) & ~is_mixed
        are_steady = (agree / beside)[others].sum() * SAME_PERSON >= sizes[others].sum()
        is_few = is_mixed.sum() <= min(MOST_SHARED, len(largest) / MOST_SHARED)
        if is_few and are_steady and chance <= (NEARLY_CONSTANT if is_for_life else MAY_CHANGE):
            found |= is_mixed
    return largest[found]


def count_up(groups: np.ndarray | pl.Series, numbers: pl.Series) -> bool:
    """Whether different numbers in groups are nearly 1, 2, 3 and so on in most of these."""
    greatest = pl.DataFrame({"of": groups, "number": numbers}).group_by("of").max()["number"]
    return len(numbers) >= ANEW * float(greatest.sum())


def end_sooner(groups: np.ndarray, numbers: np.ndarray) -> bool:
    """Whether the greatest numbers in some groups are smaller than chance would let them be, if any
    person may be in any group.
    """
    counted = pl.DataFrame({"of": groups, "number": numbers}).group_by("of")
    found = counted.agg(pl.max("number"), pl.n_unique("number").alias("count"))
    counts = found["count"].to_list()
    ends = list(map(max, found["number"].to_list(), counts))

    def ln_choose(n: float, k: int) -> float:
        return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

    pairs = zip(ends, counts, strict=True)
    chance = sum(ln_choose(end, count) - ln_choose(max(ends), count) for end, count in pairs)
    return chance < UNLIKELY - 2 * len(found)  # by chance, about -1 each


def checked_ids(column: pl.Series, party: str, no_names: Iterable[str]) -> pl.Series:
    """The ids as they are compared. no_names: texts that name nobody, as `PolicyModel.no_names`.

    Raises InputError where a record has no id, or two records have the same.
    """
    ids = names_of(column)
    empty = int(ids.is_in(names_of_nobody(no_names)).sum())
    repeated = ids.len() - ids.n_unique()
    findings = []
    if empty:
        findings.append(
            f"party '{party}': column '{column.name}' names nobody in {empty} records; every record"
            " needs its id"
        )
    if repeated:
        findings.append(
            f"party '{party}': column '{column.name}' repeats {repeated} ids; a fused table has one"
            " record to a person"
        )
    InputError.raise_for(findings)
    return ids


# Whose names are of nobody: of tests, vacancies and guests.


MOST_WORDS = 3  # of such a call
ANY_TEST = "(?i)" + "|".join(  # with `\W`, of any script, it would take ten times as long to build
    # two letters are no word in a longer text: `NN` and `N. N.`, but not `Anna`
    f"^{word[0]}[^a-z]*{word[1]}[^a-z]*$"
    if len(word) == 2 and word.isascii()
    else word.replace("-", "[^a-z]+")
    for word in sorted(meanings()["test"] | meanings()["nobody"])
)
_PARTS = {part for test in meanings()["test"] if "-" in test for part in test.split("-")}
_PART = rf"(?i)^\W*((?:{'|'.join(sorted(_PARTS))})[\W\d]*)+$"


def is_test(text: str) -> bool:
    """Whether a text, of few words, has one for tests, or only words for nobody and for anybody:
    `TEST001`, `ZZTEST`, `Test Patient`, `VACANT`, `Guest 12`.
    """
    known = meanings()
    tests, people, nobody = known["test"], known["person"], known["nobody"]
    words = [fold(word) for word in words_of(text) if not word.isdigit()]
    is_nobody = nobody & {*words} and {*words} <= nobody | people | known["number"] | {"n", "a"}
    rests = ([word.removeprefix(test) for test in tests if word.startswith(test)] for word in words)
    is_called = "-".join(words) in tests or any({"", *people} & {*rest} for rest in rests)
    return len(words) <= MOST_WORDS and bool(is_called or is_nobody or "".join(words) in nobody)


def by_names(table: Table, no_name: str) -> tuple[np.ndarray, str, np.ndarray]:
    """Of several columns for parts of names: (n,) bool, which rows hold a usual name in one; the
    column of first names; and (n,) bool, whose first and last name are a test together, as `John`
    and `Doe` are. no_name: the pattern of texts that are not usual names.
    """
    titles = [title for title in table.names if name_of(title).kind in NAMES]
    columns = [Texts.of(table, title) for title in titles if titles[1:]]
    named = np.zeros(table.records, dtype=bool)
    for column in columns:
        texts = column.without_marks
        named |= column.rows_called(texts.str.contains(r"\p{L}") & ~texts.str.contains(no_name))
    of = {name_of(column.title).kind: column for column in reversed(columns)}
    first, last = of.get("first"), of.get("last") or of.get("name")
    if first is None or last is None:
        return named, "", named & False
    tests = first.rows_called(first.without_marks.str.contains(_PART))
    tests &= last.rows_called(last.without_marks.str.contains(_PART))
    for row in np.flatnonzero(tests):
        words = [part.texts[int(part.codes[row])] for part in (first, last)]
        tests[row] = is_test(" ".join(words)) or is_test(" ".join(reversed(words)))
    return named, first.title, tests
