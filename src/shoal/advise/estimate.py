"""Estimate: what publishing a large table costs on this machine."""

from __future__ import annotations

import os
from contextlib import suppress
from numbers import Integral
from pathlib import Path

from shoal.advise.measured_run import LESS_RECORDS, RECORDS, Shape, run_apart
from shoal.data.cores import available
from shoal.data.progress import Progress, no_progress
from shoal.data.run_cost import CORES, Estimate, memory_of, stages_of, wall_seconds
from shoal.errors import InputError
from shoal.policy.binding.past_memory import floor

MOST_RECORDS = 2**31 - 1  # records are numbered in 32 bits
MOST_COLUMNS = 100  # invented ones, so that measuring stays short
NAMELESS = 25  # at most so many bytes of nameless files for each column of a record
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
    """What publishing so many records costs, estimated from an invented table published right now.

    For the rounded partition, not refined, under k-anonymity alone, from CSV to CSV. quasi: the
    quasi-identifiers. other: columns that are published as they are. values: distinct values of
    each quasi-identifier; by default few, as a census has them. cores: how many to tell the
    wall time of, beside 1, 2, 4, 8 and 16; by default this process's. Takes a few seconds. Raises
    InputError for a size that can't be published.
    """
    _check(records, quasi, k, other, values, cores)
    progress("publishing an invented table, to measure this machine")
    measured = max(min(records, RECORDS), 2 * LESS_RECORDS)
    run = run_apart(Shape(quasi, k, other, values), measured, LESS_RECORDS)
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
        int(floor(records, quasi, k)),
        NAMELESS * (quasi + other) * records,
        round(run.bytes_in * records / run.records),
        out,
        out,
        run.records,
        _stops(records, run.records),
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


def _check(
    records: int, quasi: int, k: int, other: int, values: int | None, cores: int | None
) -> None:
    """Raises InputError with everything that is not a size."""
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
    if findings:
        raise InputError.from_findings(findings)


def _stops(records: int, measured: int) -> tuple[str, ...]:
    """Where the model stops, in sentences."""
    stops = []
    if records > measured:
        stops.append(
            f"estimated from {measured:,} invented records;"
            " your values, hierarchies and widths differ"
        )
    else:
        stops.append("estimated from invented records; your values, hierarchies and widths differ")
    if records <= REFINED_UP_TO:
        stops.append(
            f"up to {REFINED_UP_TO:,} records a method refines unless 'refine: none' is set: longer"
        )
    stops += [
        "other methods, further promises, people with several records, reports, attacks: longer",
        "past memory: columns of many distinct texts need a larger limit, and much is refused",
        "start-up, compiling on first use, and a disk slower than the cores are not counted",
        "one machine: what an engine such as Spark takes is not estimated",
    ]
    return tuple(stops)
