"""How much work goes into refining classes: the parameter `refine` and those beside it.

What refines, with its many kernels, is imported where it is about to work: exchanging alone needs
none of it.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.partition import Matrix, Partition
from shoal.data.progress import Progress
from shoal.protocols import Promises

# refine=auto, by number of records:
SMALL_RECORDS = 1_000  # exchange up to here, since compiling more would take longer,
ASKED_RECORDS = 50_000  # full up to here if every move must be checked for more than k,
FULL_RECORDS = 200_000  # full up to here if only k is promised, else exchange,
LIGHT_RECORDS = 1_000_000  # light up to here, none above
REFINE = ("none", "light", "exchange", "full", "thorough", "auto")
EXCHANGING = ("none", "light", "exchange")  # done by the method, or not at all
REFINE_HELP = (
    "exchange records between near classes afterwards (ours); full: also by annealing, and over"
    " hierarchies by rebuilding; thorough: as long as `seconds` says; auto: where each record is"
    " its own person, full from 1,001 to 200,000 records if k alone is promised, to 50,000 if"
    " t-closeness, distinct l-diversity or (alpha, k) is; else exchange up to 200,000, light up to"
    " 1,000,000, none above"
)
SECONDS = {"help": "refine=thorough: about how long on one core; sets `steps`", "low": 1}
STEPS = {"help": "refine=thorough: how many steps, instead of `seconds`; 0 asks those", "low": 0}
STOP = {
    "help": "refine=thorough: the step after which it ends, to repeat an interrupted run; -1: none",
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

    def on(self, records: int, annealed: int) -> str:
        """What is done on a table of this size. annealed: the largest table that is annealed
        under these promises; `FULL_RECORDS`, `ASKED_RECORDS` or 0.
        """
        if self.refine != "auto":
            return self.refine
        if SMALL_RECORDS < records <= annealed:
            return "full"
        if records <= FULL_RECORDS:
            return "exchange"
        return "light" if records <= LIGHT_RECORDS else "none"

    def for_k_alone(self, records: int) -> str:
        """What is done if only k is promised, of people with a record each."""
        return self.on(records, FULL_RECORDS)

    def anneals(self, matrix: Matrix, promises: Promises) -> bool:
        """Whether classes are annealed, each move asked for more than k."""
        from shoal.search.refinement import is_asked_of_moves

        asks = is_asked_of_moves(matrix, promises)
        return asks and self.on(matrix.records, ASKED_RECORDS) == "full"

    def refined(
        self,
        matrix: Matrix,
        partition: Partition,
        promises: Promises,
        rng: np.random.Generator,
        progress: Progress,
    ) -> Partition:
        """The classes refined, where that is asked and is not done by exchanging alone."""
        if self.for_k_alone(matrix.records) in EXCHANGING:  # where most is done
            return partition
        from shoal.search.refinement import (
            is_asked_of_moves,
            is_k_alone,
            promised_search,
            quick_search,
            refine,
            refine_quickly,
            steps_within,
            thorough_search,
        )

        k_alone, asks = is_k_alone(matrix, promises), is_asked_of_moves(matrix, promises)
        annealed = FULL_RECORDS if k_alone else ASKED_RECORDS if asks else 0
        chosen, k = self.on(matrix.records, annealed), promises.k
        if chosen == "full" and k_alone:
            return refine_quickly(matrix, partition, promises, self.resizes, rng)
        if chosen == "thorough":
            steps = self.steps or steps_within(matrix, self.seconds)
            search = thorough_search(matrix, k, self.resizes, steps, self.stop)
            return refine(matrix, partition, promises, search, rng, progress)
        if chosen != "full":
            return partition
        if asks:
            sensitive = {name for term in promises.terms for name in term.sensitive}
            search = promised_search(k, self.resizes, len(sensitive))
            return refine(matrix, partition, promises, search, rng, tell=progress)
        return refine(matrix, partition, promises, quick_search(matrix, k, self.resizes), rng)
