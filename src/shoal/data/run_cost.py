"""What a publish costs: measured on some records, extrapolated to more of them.

Source: Shoal's own cost model, a reconstruction. Every stage but the cut grows with the records; a
cut of n records into classes of k grows with n * log2(n / k), its levels.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log2
from typing import Any

from shoal.data.numbers import exact_sum

CUT = "finding classes"
"""The stage that does not grow with the records alone."""

CUT_SPEED_UP = ((1, 1.0), (2, 1.9), (4, 3.4), (8, 5.3), (16, 6.3))
"""Cores, and how many times faster they cut few-valued attributes: by the schedule of the tasks,
each with the CPU time that it took (benchmarks/threads.py). Many-valued ones gain more."""

CUT_WHOLE = 300_000
"""Records up to which one task cuts alone."""

CORES = (1, 2, 4, 8, 16)


@dataclass(frozen=True)
class StageCost:
    """CPU seconds of one stage; `alone`: those in which only one thread works."""

    name: str
    seconds: float
    alone: float


@dataclass(frozen=True)
class MeasuredRun:
    """What one publish of a table of this size used.

    bytes_in, bytes_out: of the two files. memory: the most that the process held resident; less:
    the same of `less_records` records. Both None where the system doesn't tell.
    """

    records: int
    stages: tuple[StageCost, ...]
    bytes_in: int
    bytes_out: int
    memory: int | None
    less_records: int
    less_memory: int | None


@dataclass(frozen=True)
class Estimate:
    """What publishing a table costs on this machine, from a run that was measured on it.

    seconds: CPU seconds of each stage. wall: seconds by number of cores, if they are idle and the
    disk keeps up. memory: the most bytes held, None where the system doesn't tell. machine_memory:
    what this machine, or its container, has. least_memory: the least limit that `--memory` takes,
    and nameless: the most bytes of files without a name that it then makes; by rule, not measured.
    temporary: bytes of unfinished files beside the output. measured: the records of the run that
    all is estimated from. stops: where the model stops.
    """

    records: int
    quasi: int
    k: int
    seconds: dict[str, float]
    wall: dict[int, float]
    memory: int | None
    machine_memory: int | None
    least_memory: int
    nameless: int
    bytes_in: int
    bytes_out: int
    temporary: int
    measured: int
    stops: tuple[str, ...]

    @property
    def cpu_seconds(self) -> float:
        """Of all stages."""
        return exact_sum(self.seconds.values())

    @property
    def fits(self) -> bool | None:
        """Whether this machine's memory holds it; None where either is unknown."""
        if self.memory is None or self.machine_memory is None:
            return None
        return self.memory <= self.machine_memory

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON has it."""
        wall = {str(cores): seconds for cores, seconds in self.wall.items()}
        stated = {"cpu_seconds": self.cpu_seconds, "fits": self.fits, "wall": wall}
        return asdict(self) | stated | {"stops": list(self.stops)}


def stages_of(run: MeasuredRun, records: int, k: int) -> tuple[StageCost, ...]:
    """The stages of a publish of a table of this size."""
    return tuple(
        StageCost(stage.name, times * stage.seconds, times * stage.alone)
        for stage in run.stages
        for times in [growth(stage.name, run.records, records, k)]
    )


def growth(stage: str, measured: int, records: int, k: int) -> float:
    """How many times longer a stage takes on `records` than on `measured` records."""
    times = records / measured
    if stage == CUT:
        times *= max(log2(records / k), 1) / max(log2(measured / k), 1)
    return times


def wall_seconds(stages: tuple[StageCost, ...], records: int, cores: int) -> float:
    """Seconds until idle cores are done: what one thread does alone, and shares of the rest."""
    seconds = []
    for stage in stages:
        if stage.name == CUT:
            seconds.append(stage.seconds / (cut_speed_up(cores) if records > CUT_WHOLE else 1))
        else:
            shared = stage.seconds - stage.alone
            seconds.append(stage.seconds - shared * (1 - 1 / cores))
    return exact_sum(seconds)


def cut_speed_up(cores: int) -> float:
    """How many times faster these cores cut; between two that were measured on a line, and no
    more than those of the last.
    """
    for (low, slower), (high, faster) in pairwise(CUT_SPEED_UP):
        if cores <= high:
            return slower + (faster - slower) * (cores - low) / (high - low)
    return CUT_SPEED_UP[-1][1]


def memory_of(run: MeasuredRun, records: int) -> int | None:
    """The most memory that a publish of that size holds: a line through two measured sizes.

    None where the system didn't tell.
    """
    if run.memory is None or run.less_memory is None:
        return None
    each = max(run.memory - run.less_memory, 0) / (run.records - run.less_records)
    return int(run.memory + each * (records - run.records))
