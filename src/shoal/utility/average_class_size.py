"""Average class size, in units of what was asked for.

LeFevre, DeWitt, Ramakrishnan. ICDE 2006 (C_avg = records / (classes * k)).
Reading: k is the k that the policy asks, not the smallest class found; sizes are counted in
subjects like k itself, so that 1 means that every class has exactly k. Suppressed records are in no
class and don't count.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from shoal.data.classes import Sizes
from shoal.data.release import Release
from shoal.utility.in_parts import InParts


@dataclass(frozen=True)
class AverageClassSize(InParts):
    """Mean number of subjects in a class, divided by the k asked for; None without k or classes."""

    name: ClassVar[str] = "average_class_size"

    def part(self, release: Release) -> tuple[Sizes, int | None]:
        """The sizes, and the k that is asked for."""
        return Sizes.of(release.shown.people()), release.required_k

    def total(self, parts: Sequence[tuple[Sizes, int | None]]) -> float | None:
        required_k, mean = parts[0][1], Sizes.joined(sizes for sizes, _ in parts).mean
        return None if required_k is None or mean is None else mean / required_k
