"""Special uniques: the smallest sets of columns that single somebody out, and scores by them.

Elliot, Manning, Ford. A computational algorithm for handling the special uniques problem. IJUFKS
10(5), 2002 (SUDA); Manning, Haglin, Keane. A recursive search algorithm for statistical disclosure
assessment. DMKD 16(2), 2008 (SUDA2).

A set is minimal for a person if its values are that person's alone, and those of no smaller part
of it are. With d columns and sets of at most M, a set of s scores the product of d - i over i from
s to M: few columns that suffice score high. A person's score is the sum over the minimal sets of
the record that scores most.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from math import comb, prod

import numpy as np

from shoal.data.progress import Progress, no_progress, tell
from shoal.data.regular_files import Json

LARGEST = 4
MOST_ORDERED = 100_000_000  # records in all sets; with more, only smaller sets are looked at
WORST = 10


@dataclass(frozen=True)
class SpecialUniques:
    """Who is special, and by which columns.

    largest: columns of the sets that were looked at, at most. sizes: by number of columns, how many
    minimal sets people have. scores: (people,) float64. columns: the worst ones, with the share of
    all scores that stands for sets with them.
    """

    largest: int
    sizes: Mapping[int, int]
    scores: np.ndarray
    columns: Mapping[str, float]

    @property
    def people(self) -> int:
        """People whom some set singles out."""
        return int((self.scores > 0).sum())

    def to_dict(self) -> Json:
        """All figures but whose they are, as JSON can hold them."""
        scores = self.scores[self.scores > 0]
        return {
            "largest": self.largest,
            "people": self.people,
            "sizes": {str(size): count for size, count in self.sizes.items()},
            "score": {
                "max": float(scores.max(initial=0)),
                "median": float(np.median(scores)) if len(scores) else 0.0,
            },
            "columns": dict(self.columns),
        }


def special_uniques(
    keys: Mapping[str, np.ndarray], people: np.ndarray | None, progress: Progress = no_progress
) -> SpecialUniques:
    """The minimal sets of everybody. keys: by column, as of `row_keys`; people: as for
    `singled_out`.
    """
    names = list(keys)
    records = len(next(iter(keys.values()), ()))
    largest = _largest(len(names), records)
    row_scores, sizes = np.zeros(records), dict.fromkeys(range(1, largest + 1), 0)
    of_column = dict.fromkeys(names, 0.0)
    smaller: dict[tuple[str, ...], np.ndarray] = {}
    sets = sum(comb(len(names), size) for size in sizes)
    done = 0
    for size in sizes:
        score = prod(max(len(names) - i, 1) for i in range(size, largest + 1))
        unique: dict[tuple[str, ...], np.ndarray] = {}
        for chosen in combinations(names, size):
            tell(progress, "looking for sets of columns that single out", done, sets)
            done += 1
            alone = alone_in(np.bitwise_xor.reduce([keys[name] for name in chosen]), people)
            unique[chosen] = np.packbits(alone)
            for part in combinations(chosen, size - 1):
                if part:
                    alone &= ~np.unpackbits(smaller[part], count=records).astype(bool)
            found = int(alone.sum())
            sizes[size] += found
            row_scores += score * alone
            for name in chosen:
                of_column[name] += score * found
        smaller = unique
    total = float(row_scores.sum())
    worst = sorted(names, key=lambda name: -of_column[name])[:WORST]
    shares = {name: of_column[name] / total for name in worst if total}
    return SpecialUniques(largest, sizes, _of_people(row_scores, people), shares)


def _largest(columns: int, records: int) -> int:
    """How large sets may be to be looked at all."""
    largest = 1
    while largest < min(LARGEST, columns):
        sets = sum(comb(columns, size) for size in range(1, largest + 2))
        if sets * records > MOST_ORDERED:
            break
        largest += 1
    return largest


def alone_in(keys: np.ndarray, people: np.ndarray | None) -> np.ndarray:
    """(n,) bool, the records whose key no record of anybody else has."""
    order = np.argsort(keys)
    ordered = keys[order]
    starts = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])[: len(keys)])
    if people is None:
        is_one = np.diff(np.append(starts, len(keys))) == 1
    elif len(keys):
        whose = people[order]
        is_one = np.minimum.reduceat(whose, starts) == np.maximum.reduceat(whose, starts)
    else:
        is_one = np.zeros(0, dtype=bool)
    alone = np.empty(len(keys), dtype=bool)
    alone[order] = np.repeat(is_one, np.diff(np.append(starts, len(keys))))
    return alone


def _of_people(scores: np.ndarray, people: np.ndarray | None) -> np.ndarray:
    """The greatest score of each person's records."""
    if people is None:
        return scores
    found = np.zeros(int(people.max(initial=-1)) + 1)
    np.maximum.at(found, people, scores)
    return found
