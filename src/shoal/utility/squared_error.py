"""Squared error: what is lost when every record is replaced by the mean of its class.

Domingo-Ferrer, Mateo-Sanz. IEEE TKDE 14(1):189-201, 2002 (SSE, and IL = 100 SSE / SST of
microaggregation).
Reading: raw is neither scaled nor divided, as the k-means++ t-closeness paper writes it. Normalised
is as the tool of the t-closeness-through-microaggregation group has it: every difference divided by
the attribute's standard deviation, the sum by the number of records. In percent, both sums are of
attributes of variance 1. Deviations divide by n. An attribute that never varies adds nothing. A
suppressed record publishes nothing about itself, so it is replaced by the mean of the whole
attribute. Missing values have no error.
"""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from shoal.data.numbers import exact_sum
from shoal.data.release import Release
from shoal.data.true_values import SquaredSum
from shoal.utility.in_parts import InParts


class _OfSquares(InParts):
    """A measure of the squared errors of every number."""

    def part(self, release: Release) -> Mapping[str, SquaredSum]:
        return release.squared_errors

    def total(self, parts: Sequence[Mapping[str, SquaredSum]]) -> float | None:
        sums = [SquaredSum.total(part[name] for part in parts) for name in parts[0]]
        return self.of_squares(sums) if sums else None

    @abstractmethod
    def of_squares(self, sums: Sequence[SquaredSum]) -> float | None:
        """The measure, with the sum of each number; there is at least one."""


@dataclass(frozen=True)
class SquaredError(_OfSquares):
    """Sum of (value - class mean)**2 over records and numbers; None without originals."""

    name: ClassVar[str] = "squared_error"

    def of_squares(self, sums: Sequence[SquaredSum]) -> float | None:
        return exact_sum(one.error for one in sums)


@dataclass(frozen=True)
class SquaredErrorNormalised(_OfSquares):
    """Mean over records of ((value - class mean) / deviation)**2; None without originals."""

    name: ClassVar[str] = "squared_error_normalised"

    def of_squares(self, sums: Sequence[SquaredSum]) -> float | None:
        return exact_sum(_shares_lost(sums))


@dataclass(frozen=True)
class InformationLossPercent(_OfSquares):
    """100 SSE / SST of numbers of variance 1; None without originals or where none varies."""

    name: ClassVar[str] = "information_loss_percent"

    def of_squares(self, sums: Sequence[SquaredSum]) -> float | None:
        shares = _shares_lost(sums)
        return 100 * exact_sum(shares) / len(shares) if shares else None


def _shares_lost(sums: Sequence[SquaredSum]) -> list[float]:
    """Squared error / total sum of squares of what varies."""
    return [one.error / one.whole for one in sums if one.whole > 0]
