"""What one party's run took, and what it ended with."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import polars as pl


@dataclass
class RunStatistics:
    """Seconds by phase, of the clock and of this process's processors; rounds, steps, people.

    touched: rows that all steps and trials have read.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    processor: dict[str, float] = field(default_factory=dict)
    rounds: int = 0
    steps: int = 0
    people: int = 0
    touched: int = 0

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time of what is done meanwhile to this phase."""
        started = time.monotonic()
        used = time.process_time()
        yield
        self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started
        self.processor[name] = self.processor.get(name, 0.0) + time.process_time() - used

    def report(
        self, bytes_sent: Mapping[str, int], messages_sent: Mapping[str, int]
    ) -> dict[str, Any]:
        """The run in figures, as the certificate has them; without a value of the data."""
        return {
            "people": self.people,
            "rounds": self.rounds,
            "steps": self.steps,
            "touched": self.touched,
            "bytes": dict(sorted(bytes_sent.items())),
            "messages": dict(sorted(messages_sent.items())),
            "seconds": _rounded(self.seconds),
            "processor": _rounded(self.processor),
        }


def _rounded(seconds: Mapping[str, float]) -> dict[str, float]:
    return {name: round(value, 4) for name, value in seconds.items()}


@dataclass(frozen=True)
class FusionResult:
    """The fused table, its rows in an order that says nothing; and what the run took.

    ledger: of all fusions up to this one, where the agreement has one.
    """

    published: pl.DataFrame
    statistics: dict[str, Any]
    ledger: bytes | None = None
