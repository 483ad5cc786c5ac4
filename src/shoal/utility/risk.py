"""Risk: how likely an attacker names the person behind a record.

El Emam. Guide to the De-Identification of Personal Health Information, 2013 (prosecutor, journalist
and marketer risk).
Reading: a record of a class of f subjects is named with probability 1 / f. Without a table of the
whole population, everybody in it is taken to be in the release: the journalist, who does not know
whether a person is in the release, then knows as much as the prosecutor, who does, and the
marketer, who wants to name as many as possible, expects the prosecutor's mean. Suppressed records
are in no class and say nothing about anybody.
"""

from dataclasses import dataclass
from typing import ClassVar

from shoal.data.classes import Sizes
from shoal.utility.in_parts import OfSizes


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
