"""How much work goes into refining classes: the parameter `refine` and those beside it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.algorithms.steps import compile_beside
from shoal.algorithms.steps.refinement import (
    is_asked_of_moves,
    is_k_alone,
    promised_search,
    quick_search,
    refine,
    steps_within,
    thorough_search,
)
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.progress import Progress
from shoal.protocols import Promises

SMALL_RECORDS = 1_000  # refine=auto: exchange up to here, since compiling more would take longer,
FULL_RECORDS = 50_000  # full up to here where every move can be asked for all promises,
EXCHANGE_RECORDS = 200_000  # exchange up to here,
LIGHT_RECORDS = 1_000_000  # light up to here, none above
REFINE = ("none", "light", "exchange", "full", "thorough", "auto")
REFINE_HELP = (
    "exchange records between near classes afterwards (ours); full: also by annealing, and over"
    " hierarchies by rebuilding; thorough: as long as `seconds` says; auto: full from 1,001 to"
    " 50,000 records where each is its own person and k, t-closeness, distinct l-diversity or"
    " (alpha, k) is promised, else exchange up to 200,000, light up to 1,000,000, none above"
)
SECONDS = {"help": "refine=thorough: about how long on one core; sets `steps`", "low": 1}
STEPS = {"help": "refine=thorough: how many steps, instead of `seconds`; 0 asks those", "low": 0}
STOP = {
    "help": "refine=thorough: ends after so many steps, to repeat an interrupted run; -1: all",
    "low": -1,
}


class Effort(NamedTuple):
    """refine: one of `REFINE`. seconds, steps, stop: of a thorough search. resizes: whether the
    sizes of classes and their number may change.
    """

    refine: str
    seconds: int
    steps: int
    stop: int
    resizes: bool

    def on(self, records: int, anneals: bool) -> str:
        """What is done on a table of so many records. anneals: whether every record is its own
        person, and each move can be asked for all that is promised.
        """
        if self.refine != "auto":
            return self.refine
        if SMALL_RECORDS < records <= FULL_RECORDS and anneals:
            return "full"
        if records <= EXCHANGE_RECORDS:
            return "exchange"
        return "light" if records <= LIGHT_RECORDS else "none"

    def anneals(self, matrix: Matrix, promises: Promises) -> bool:
        """Whether classes are annealed, each move asked for more than k."""
        asks = is_asked_of_moves(matrix, promises)
        return asks and self.on(matrix.records, anneals=True) == "full"

    def announce(self, matrix: Matrix, promises: Promises) -> None:
        """On a new machine, has the compiler begin with what `refined` will need."""
        k_alone = is_k_alone(matrix, promises)
        if k_alone and self.on(matrix.records, anneals=True) in ("full", "thorough"):
            compile_beside.begin()

    def refined(
        self,
        matrix: Matrix,
        partition: Partition,
        promises: Promises,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Partition:
        """The classes refined, where that is asked and is not done by exchanging alone."""
        asks, k = is_asked_of_moves(matrix, promises), promises.k
        chosen = self.on(matrix.records, asks or is_k_alone(matrix, promises))
        if chosen == "full" and asks:
            search = promised_search(k, self.resizes)
            return refine(matrix, partition, promises, search, rng, tell=progress)
        if chosen == "full":
            search = quick_search(matrix, k, self.resizes)
            return refine(matrix, partition, promises, search, rng)
        if chosen == "thorough":
            steps = self.steps or steps_within(matrix, k, self.seconds)
            search = thorough_search(matrix, k, self.resizes, steps, self.stop)
            return refine(matrix, partition, promises, search, rng, progress)
        return partition
