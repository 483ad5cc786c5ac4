"""Top-down greedy: splits a group around two far records until its parts would be too small.

Xu, Wang, Pei, Wang, Shi, Fu. Utility-based anonymization using local recoding. KDD 2006. Section
4.2. A reconstruction from the paper's outline and its re-implementations, not checked against the
text.
Promise: every class holds k people; with one record to a person, none holds more than 2k - 1
records.
Paper: u, v, NCP, G1, G2           Here: the far pair, cost of the box, the two sides
Reading: a group is split while it holds 2k records, not k + 1: below that one side falls short.
Reading: `assignment`: of the rules in circulation `weighted` counts NCP over all records of a side,
`penalty` looks at the box alone, `seeds` at the two seeds alone. They differ widely in quality.
Reading: every group is put into a fresh random order; its first record begins the search for the
pair.
Reading: a side with fewer than k people is repaired at once. (a) It takes the records of least cost
from the other side, which always has them to spare; (b) both sides stay one class. Over boxes (a)
never costs more than (b), so (b) is left for promises beyond k and for repeated persons, after
balanced cuts were tried on every attribute.
Reading: a lopsided split leaves much to do again. From depth `DEPTH` + 2 log2(n / k) on, a split
with less than a sixteenth on one side gives way to a cut into equal halves at the widest attribute.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Partitioner, Promises
from shoal.search.kernels import cuts
from shoal.search.segments import (
    CODES,
    Cutter,
    costs_of,
    flat_ends,
    history_of,
    marks_of,
    require_people,
    rows_of,
    split_by_level,
)
from shoal_papers.baselines.kernels import greedy_split

DEPTH = 16
RULES = {
    "weighted": greedy_split.WEIGHTED,
    "penalty": greedy_split.PENALTY,
    "seeds": greedy_split.SEEDS,
}


@dataclass(frozen=True)
class TopDownGreedy(Partitioner):
    """Top-down greedy search of Xu and others."""

    name: ClassVar[str] = "top-down-greedy"
    paper: ClassVar[str] = (
        "Xu, Wang, Pei, Wang, Shi, Fu. Utility-based anonymization using local recoding. KDD 2006."
    )

    assignment: str = parameter(
        "what a record looks at to choose a side: records times box, box alone, or seeds",
        default="weighted",
        choices=tuple(RULES),
    )
    rounds: int = parameter(
        "searches for the farthest record that make a pair", default=6, low=1, high=100
    )

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` people."""
        require_people(matrix, promises)
        rows = rows_of(matrix)
        return split_by_level(matrix, rows, promises, self._cutter(matrix, rows, promises.k, rng))

    def _cutter(self, matrix: Matrix, rows: np.ndarray, k: int, rng: np.random.Generator) -> Cutter:
        """Attempt 0 splits around a far pair; the others are cuts into halves, widest attribute
        first.
        """
        d, seen, no_history = matrix.attributes, marks_of(matrix), history_of(matrix, k, CODES)
        cut_at = np.empty(len(rows), dtype=np.int64)
        deep = DEPTH + 2 * math.log2(max(len(rows) / k, 1))

        def cutter(
            starts: np.ndarray, ends: np.ndarray, attempts: np.ndarray, depth: int
        ) -> tuple[np.ndarray, np.ndarray]:
            parts = np.zeros(len(starts), dtype=np.int64)
            first = attempts == 0
            parts[first] = greedy_split.propose(
                rows,
                starts[first],
                ends[first],
                d,
                k,
                self.rounds,
                RULES[self.assignment],
                rng.random(int((ends - starts)[first].sum())),
                costs_of(matrix),
                seen,
                cut_at,
            )
            attempts[first] = 1
            if depth > deep:
                parts[_lopsided(starts, ends, parts, cut_at)] = 0
            halved = parts == 0
            attempt = attempts[halved] - 1
            parts[halved] = cuts.propose(
                rows,
                starts[halved],
                ends[halved],
                attempt,
                d,
                cuts.HALVES,
                k,
                k,
                costs_of(matrix),
                seen,
                no_history,
                cut_at,
            )
            attempts[halved] = attempt + 1
            return parts, flat_ends(starts, parts, cut_at)

        return cutter


def _lopsided(
    starts: np.ndarray, ends: np.ndarray, parts: np.ndarray, cut_at: np.ndarray
) -> np.ndarray:
    """Splits that leave less than a sixteenth on one side."""
    left = np.where(parts == 2, cut_at[starts] - starts, 0)
    return np.minimum(left, ends - starts - left) * 16 < ends - starts
