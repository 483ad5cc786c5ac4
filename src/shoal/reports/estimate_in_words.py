"""What a publish would cost, for people to read."""

from __future__ import annotations

from shoal.data.room import size_text
from shoal.data.run_cost import Estimate


def estimate_lines(found: Estimate) -> list[str]:
    """CPU and wall seconds, memory, disk, and where the model stops."""
    lines = [
        f"{found.records:,} records, {found.quasi} quasi-identifiers, k = {found.k}, by the rounded"
        " partition, not refined",
        f"CPU {duration(found.cpu_seconds)}: "
        + ", ".join(f"{name} {duration(seconds)}" for name, seconds in found.seconds.items()),
        "wall, on idle cores: "
        + ", ".join(
            f"{duration(seconds)} on {cores}" for cores, seconds in sorted(found.wall.items())
        ),
        f"memory {_memory(found)}",
        f"past memory: --memory of {size_text(found.least_memory)} or more, and up to"
        f" {size_text(found.nameless)} of nameless files",
        f"disk {size_text(found.bytes_in)} read, {size_text(found.bytes_out)} written;"
        f" {size_text(found.temporary)} of them as a temporary file beside the output",
    ]
    return [*lines, "where this stops:", *(f"  {stop}" for stop in found.stops)]


def _memory(found: Estimate) -> str:
    if found.memory is None:
        return "not measured: this system does not report it"
    needed = f"at most about {size_text(found.memory)}"
    if found.machine_memory is None:
        return needed
    verdict = "" if found.fits else ", which is too little"
    return f"{needed}; this machine has {size_text(found.machine_memory)}{verdict}"


def duration(seconds: float) -> str:
    """Seconds as people say them, in two figures or whole units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
