"""Largest class: how much of the release is one indistinct crowd."""

from dataclasses import dataclass
from typing import ClassVar

from shoal.extend import Metric, Release


@dataclass(frozen=True)
class LargestClass(Metric):
    """The share of all people who are in the largest class; None where there is no class."""

    name: ClassVar[str] = "largest_class"

    def score(self, release: Release) -> float | None:
        people = release.classes.people()
        return float(people.max() / people.sum()) if len(people) else None
