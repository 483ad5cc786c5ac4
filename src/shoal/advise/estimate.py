"""Estimate: what publishing a large table costs on this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from math import log2
from numbers import Integral
from pathlib import Path
from typing import Any

from shoal.advise.invented import LinkedShape, Shape
from shoal.data import cores
from shoal.data.cores import available
from shoal.data.notebook import Figures
from shoal.data.numbers import exact_sum
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError
from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.binding.past_memory import floor, room_for
from shoal.policy.from_columns import require_no_data
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import LinkedProblem

MOST_RECORDS = 2**31 - 1  # records are numbered in 32 bits
MOST_COLUMNS = 100  # invented ones, so that measuring stays short
NAMELESS = 25  # the most bytes of nameless files for each column of a record
REFINED_UP_TO = 1_000_000


def estimate(
    records: int,
    quasi: int,
    *,
    k: int = 10,
    other: int = 1,
    values: int | None = None,
    cores: int | None = None,
    progress: Progress = no_progress,
) -> Estimate:
    """What publishing a table of this size costs, by an invented table published right now.

    For the rounded partition, not refined, under k-anonymity alone, from CSV to CSV. quasi: the
    quasi-identifiers. other: columns that are published as they are. values: distinct values of
    each quasi-identifier; by default few, as a census has them. cores: how many to tell the
    wall time of, beside 1, 2, 4, 8 and 16; by default this process's. Takes a few seconds. Raises
    InputError for a size that can't be published.
    """
    _check(records, quasi, k, other, values, cores)
    shape = Shape(quasi, k, other, None if values is None else (values,) * quasi)
    return _estimated(records, shape, cores, progress)


def estimate_of(
    table: str,
    policy: PolicyLike,
    output: str,
    *,
    cores: int | None = None,
    further: Mapping[str, str] | None = None,
    progress: Progress = no_progress,
) -> Estimate:
    """What publishing this table costs: as `estimate` of its size, its k, and the distinct values
    of its quasi-identifiers. Of linked tables, whose numbers of rows are looked at, too: what
    `bundles` costs. further: more of these by name. Raises InputError where a table can't be read,
    or published at that size.
    """
    policy = Policy.of(policy)
    if policy.model.is_linked:
        return _estimate_of_linked(LinkedProblem(policy), table, further, cores, progress)
    progress("reading the table")
    read = policy.tables.read_original(table, room_for(table, beside=output)).table
    other = sum(policy.role_of(name) in ("sensitive", "plain") for name in read.names)
    values = tuple(len(read.column(name).cells) for name in policy.quasi)
    shape = Shape(len(values), max(policy.required_k or 2, 2), other, values)
    _check(read.records, shape.quasi, shape.k, shape.other, None, cores)
    return _estimated(read.records, shape, cores, progress)


def _estimate_of_linked(
    problem: LinkedProblem,
    source: str,
    further: Mapping[str, str] | None,
    cores: int | None,
    progress: Progress,
) -> Estimate:
    progress("reading the tables")
    read = bound_linked(read_linked(source, problem, further).tables, problem)
    others = {
        table.name: sum(a.role in ("sensitive", "plain") for a in table.attributes.values())
        for table in problem.given
    }
    shape = LinkedShape.of(read, others, max(problem.policy.required_k or 2, 2))
    _check(read.people.count, shape.quasi, shape.k, shape.other, None, cores)
    return _estimated(read.people.count, shape, cores, progress)


def _estimated(
    records: int, shape: Shape | LinkedShape, cores: int | None, progress: Progress
) -> Estimate:
    """What publishing invented tables of this shape costs. records: or people, of linked tables."""
    progress("publishing an invented table, to measure this machine")
    quasi, k, is_linked = shape.quasi, shape.k, isinstance(shape, LinkedShape)
    most, less = (PEOPLE, LESS_PEOPLE) if is_linked else (RECORDS, LESS_RECORDS)
    run = run_apart(shape, max(min(records, most), 2 * less), less)
    stages = stages_of(run, records, k)
    counted = sorted({*CORES, cores or available()})
    out = round(run.bytes_out * records / run.records)
    return Estimate(
        records,
        quasi,
        k,
        {stage.name: stage.seconds for stage in stages},
        {count: wall_seconds(stages, records, count) for count in counted},
        memory_of(run, records),
        machine_memory(),
        None if is_linked else int(floor(records, quasi, k)),
        None if is_linked else NAMELESS * (quasi + shape.other) * records,
        round(run.bytes_in * records / run.records),
        out,
        out,
        run.records,
        _stops_of_linked(records, run.records) if is_linked else _stops(records, run.records),
        is_linked,
    )


def machine_memory() -> int | None:
    """The bytes of memory of this machine, or of the container it runs in; None if unknown."""
    found = []
    with suppress(AttributeError, ValueError, OSError):  # where a system has no such call
        found.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        try:
            text = Path("/sys/fs/cgroup", name).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            found.append(int(text))
    return min(found, default=None)


def free_memory() -> int | None:
    """Bytes of memory that nobody uses; None where the system does not say."""
    with suppress(OSError, ValueError, IndexError):
        for line in Path("/proc/meminfo").read_text("ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    whole = machine_memory()
    return None if whole is None else whole // 2


def _check(
    records: int, quasi: int, k: int, other: int, values: int | None, cores: int | None
) -> None:
    """Raises InputError with everything that is not a size."""
    for word, number in (("records", records), ("quasi", quasi)):
        require_no_data(word, number)
    asked = {
        "records": (records, 1, MOST_RECORDS),
        "quasi": (quasi, 1, MOST_COLUMNS),
        "k": (k, 2, LESS_RECORDS),
        "other": (other, 0, MOST_COLUMNS),
        "values": (values, 2, RECORDS),
        "cores": (cores, 1, 1024),
    }
    findings = [
        f"estimate: {name} is {number}; give a whole number from {least:,} to {most:,}"
        for name, (number, least, most) in asked.items()
        if number is not None
        and (
            not isinstance(number, Integral)
            or isinstance(number, bool)
            or not least <= number <= most
        )
    ]
    if not findings and records < k:
        findings = [f"estimate: {records:,} records can't hide anybody among k = {k}; lower k"]
    InputError.raise_for(findings)


def _stops(records: int, measured: int) -> tuple[str, ...]:
    """Where the model stops, in sentences."""
    of = f"{measured:,} invented records" if records > measured else "invented records"
    refined = (
        f"up to {REFINED_UP_TO:,} records a method refines unless 'refine: none' is set: longer"
    )
    return (
        f"estimated from {of}; your values, hierarchies and widths differ",
        *([refined] if records <= REFINED_UP_TO else []),
        "other methods, further promises, people with several records, reports, attacks: longer",
        "past memory: columns of many distinct texts need a larger limit, and much is refused",
        "start-up, compiling on first use, and a disk slower than the cores are not counted",
        "one machine: what an engine such as Spark takes is not estimated",
    )


def _stops_of_linked(people: int, measured: int) -> tuple[str, ...]:
    of = f"{measured:,} invented people" if people > measured else "invented people"
    return (
        f"estimated from {of} with as many rows each; your values, hierarchies and widths differ",
        "other methods, promises beyond k, days that are moved: longer",
        "start-up, compiling on first use, and a disk slower than the cores are not counted",
    )


# What a publish costs: measured on some records, extrapolated to more of them.
#
# Source: Shoal's own cost model, a reconstruction. Every stage but the cut grows with the records;
# a cut of n records into classes of k grows with n * log2(n / k), its levels.


CUT = "finding classes"
BUNDLES = "finding bundles"
"""The stages that do not grow with the records alone."""

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


@dataclass(frozen=True, repr=False)
class Estimate(Figures):
    """What publishing a table costs on this machine, from a run that was measured on it.

    seconds: CPU seconds of each stage. wall: seconds by number of cores, if they are idle and the
    disk keeps up. memory: the most bytes held, None where the system doesn't tell. machine_memory:
    what this machine, or its container, has. least_memory: the least limit that `--memory` takes,
    and nameless: the most bytes of files without a name that it then makes; by rule, not measured,
    and None of linked tables, which have to fit into memory.
    temporary: bytes of unfinished files beside the output. measured: the records of the run that
    all is estimated from. stops: where the model stops. is_linked: whether records are people with
    rows in several tables, published by bundles; else one table by the rounded partition.
    """

    records: int
    quasi: int
    k: int
    seconds: dict[str, float]
    wall: dict[int, float]
    memory: int | None
    machine_memory: int | None
    least_memory: int | None
    nameless: int | None
    bytes_in: int
    bytes_out: int
    temporary: int
    measured: int
    stops: tuple[str, ...]
    is_linked: bool = False

    def _figures(self) -> dict[str, object]:
        asked = {"records": self.records, "quasi": self.quasi, "k": self.k}
        return asked | {
            "cpu_seconds": self.cpu_seconds,
            "memory": self.memory,
            "least_memory": self.least_memory,
            "fits": self.fits,
        }

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
    if stage in (CUT, BUNDLES):
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


# A publish of invented records, watched: CPU seconds by stage, memory, sizes of files.
#
# python -m shoal.advise.estimate '[{"quasi": 8, ...}, 300000, 60000]'   prints it as JSON
#
# It runs in a process of its own, so that the memory is the publish's and nobody else's.


RECORDS, LESS_RECORDS = 300_000, 60_000
"""Both above 50,000, since smaller tables are cut by other loops. The smaller run loads them."""
PEOPLE, LESS_PEOPLE = 30_000, 6_000
"""Of linked tables."""
THREADS = 2  # tells what one thread does alone from what several share
STAGES = {
    "reading the table": "reading",
    "reading the tables": "reading",
    "checking the data against the policy": "encoding",
    "finding classes by rounded-partition": CUT,
    "finding classes by bundles": BUNDLES,
    "recoding": "recoding",
    "writing the release": "writing",
    "reading the release back": "reading back",
    "measuring the promises": "auditing",
}
"""A stage that is not named here belongs to the one before it."""


def run_apart(shape: Shape | LinkedShape, records: int, less_records: int) -> MeasuredRun:
    """What a publish of such a table uses, in a process of its own. Raises InputError."""
    asked = json.dumps([asdict(shape), records, less_records])
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
    done = subprocess.run(
        [sys.executable, "-P", "-m", __name__, asked],
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    if done.returncode:
        said = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise InputError(f"estimate: the run that is measured failed: {said}")
    found = json.loads(done.stdout)
    return MeasuredRun(**found | {"stages": tuple(StageCost(**each) for each in found["stages"])})


def measured_run(shape: Shape | LinkedShape, records: int, less_records: int) -> MeasuredRun:
    """What a publish of such a table uses in this process, after one of fewer records."""
    with tempfile.TemporaryDirectory(prefix="shoal-estimate-") as place, cores.using(THREADS):
        memory: list[int | None] = []
        for n in (less_records, records):
            source = shape.invent(n, Path(place))
            watch = _Watch()
            release = shape.publish(source, Path(place), watch)
            memory.append(_most_memory())
        return MeasuredRun(
            records,
            watch.stages(),
            _bytes(source),
            _bytes(release),
            memory[1],
            less_records,
            memory[0],
        )


def _bytes(place: Path) -> int:
    """Of a file, or of all in a folder."""
    return sum(path.stat().st_size for path in (place, *place.rglob("*")) if path.is_file())


class _Watch:
    """Progress that notes when each stage begins, in CPU seconds of all threads and of this one."""

    def __init__(self) -> None:
        self._begun: list[tuple[str, float, float]] = []
        self("reading the table")

    def __call__(self, stage: str) -> None:
        self._begun.append((stage, time.process_time(), time.thread_time()))

    def stages(self) -> tuple[StageCost, ...]:
        """What each stage took until now."""
        self("end")
        costs: dict[str, list[float]] = {}
        name = ""
        for now, then in pairwise(self._begun):
            name = STAGES.get(now[0], name)
            sums = costs.setdefault(name, [0.0, 0.0])
            sums[0] += then[1] - now[1]
            sums[1] += then[2] - now[2]
        return tuple(StageCost(name, *sums) for name, sums in costs.items())


def _most_memory() -> int | None:
    """The most bytes that this process has held resident; None where the system doesn't tell."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return None
    found = [line.split()[1] for line in lines if line.startswith("VmHWM:")]
    return int(found[0]) * 1024 if found else None


def main(text: str) -> None:
    given, *sizes = json.loads(text)
    shape: Shape | LinkedShape
    if "tables" in given:
        shape = LinkedShape(**given | {"tables": [Shape(**table) for table in given["tables"]]})
    else:
        shape = Shape(**given)
    print(json.dumps(asdict(measured_run(shape, *sizes))))


if __name__ == "__main__":
    main(sys.argv[1])
