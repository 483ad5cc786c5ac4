"""What a publish would cost, for people to read."""

from __future__ import annotations

from shoal.data.run_cost import Estimate

UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


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
        f"past memory: --memory of {amount(found.least_memory)} or more, and up to"
        f" {amount(found.nameless)} of nameless files",
        f"disk {amount(found.bytes_in)} read, {amount(found.bytes_out)} written;"
        f" {amount(found.temporary)} of them as a temporary file beside the output",
    ]
    return [*lines, "where this stops:", *(f"  {stop}" for stop in found.stops)]


def _memory(found: Estimate) -> str:
    if found.memory is None:
        return "not measured: this system does not report it"
    needed = f"at most about {amount(found.memory)}"
    if found.machine_memory is None:
        return needed
    verdict = "" if found.fits else ", which is too little"
    return f"{needed}; this machine has {amount(found.machine_memory)}{verdict}"


def duration(seconds: float) -> str:
    """Seconds as people say them, in two figures or whole units."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def amount(size: float) -> str:
    """Bytes as people say them."""
    for unit, name in UNITS:
        if size >= unit:
            number = size / unit
            return f"{number:.1f} {name}" if number < 10 else f"{number:,.0f} {name}"
    return f"{size:.0f} bytes"
