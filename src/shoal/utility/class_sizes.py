"""How large classes are, and so how likely an attacker names the person behind a record.

El Emam. Guide to the De-Identification of Personal Health Information, 2013 (prosecutor, journalist
and marketer risk).
Reading: a record of a class of f subjects is named with probability 1 / f. Without a table of the
whole population, everybody in it is taken to be in the release: the journalist, who does not know
whether a person is in the release, then knows as much as the prosecutor, who does, and the
marketer, who wants to name as many as possible, expects the prosecutor's mean. Suppressed records
are in no class and say nothing about anybody.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.classes import Sizes
from shoal.data.release import Release
from shoal.utility.in_parts import InParts, OfSizes


@dataclass(frozen=True)
class Discernibility(InParts):
    """Sum of squared class sizes, plus the size of the table for every suppressed record.

    From how many records each can't be told apart (Bayardo, Agrawal. ICDE 2005).
    """

    name: ClassVar[str] = "discernibility"

    def part(self, release: Release) -> tuple[int, int, int]:
        """Squared sizes, suppressed records, records."""
        sizes = release.shown.sizes
        return int(np.dot(sizes, sizes)), release.suppressed, release.records

    def total(self, parts: Sequence[tuple[int, int, int]]) -> float | None:
        squares, suppressed, records = (sum(figures) for figures in zip(*parts, strict=True))
        return squares + suppressed * records


@dataclass(frozen=True)
class AverageClassSize(InParts):
    """Mean number of subjects in a class, divided by the k asked for; None without k or classes.

    LeFevre, DeWitt, Ramakrishnan. ICDE 2006 (C_avg = records / (classes * k)).
    Reading: k is the k that the policy asks, not the smallest class found; sizes are counted in
    subjects like k itself, so that 1 means that every class has exactly k.
    """

    name: ClassVar[str] = "average_class_size"

    def part(self, release: Release) -> tuple[Sizes, int | None]:
        """The sizes, and the k that is asked for."""
        return Sizes.of(release.shown.people()), release.required_k

    def total(self, parts: Sequence[tuple[Sizes, int | None]]) -> float | None:
        required_k, mean = parts[0][1], Sizes.joined(sizes for sizes, _ in parts).mean
        return None if required_k is None or mean is None else mean / required_k


@dataclass(frozen=True)
class ProsecutorMax(OfSizes):
    """1 / subjects of the smallest class; None where there is no class."""

    name: ClassVar[str] = "prosecutor_max"

    def of_sizes(self, sizes: Sizes) -> float | None:
        return 1.0 / float(sizes.least) if sizes.least is not None else None


@dataclass(frozen=True)
class ProsecutorMean(OfSizes):
    """Mean of 1 / subjects of one's class, over everybody who is in a class: classes / subjects.

    A subject who is in several classes counts in each of them.
    """

    name: ClassVar[str] = "prosecutor_mean"

    def of_sizes(self, sizes: Sizes) -> float | None:
        return sizes.count / float(sizes.total) if sizes.count else None


@dataclass(frozen=True)
class JournalistMax(ProsecutorMax):
    """The prosecutor's greatest risk: no table of the population is at hand."""

    name: ClassVar[str] = "journalist_max"


@dataclass(frozen=True)
class Marketer(ProsecutorMean):
    """Expected share of the published subjects that are named; the prosecutor's mean here."""

    name: ClassVar[str] = "marketer"
