"""l-diversity: the sensitive values of a class are well represented.

Machanavajjhala, Kifer, Gehrke, Venkitasubramaniam. ACM TKDD 1(1), article 3, 2007.
Paper: r_1 >= r_2 >= ... >= r_m     Here: how often each value of a class occurs, descending
Reading: r_i counts subjects, each once for every different value it has in the class.
Reading: all texts that stand for no value are one value.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from math import floor, gcd, inf, prod
from typing import ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.data.option import parameter
from shoal.errors import InputError
from shoal.privacy.promise import NEARLY, as_written, decimal, sign
from shoal.privacy.value_counts import CountsValues, ValueCounts, value_counts

KINDS = ("distinct", "entropy", "recursive")


@dataclass(frozen=True)
class LDiversity(CountsValues):
    """At least l well represented values of one sensitive attribute in every class.

    What is measured is always a number of values, to be compared with l: the different values
    (distinct), exp of the entropy (entropy), the largest l for which (c, l) holds (recursive).

    Merging keeps it: values only add up; entropy is concave; a union's r_1 is at most the sum of
    both r_1, and its r_l + ... + r_m at least the sum of both.
    """

    model: ClassVar[str] = "l-diversity"
    letter: ClassVar[str] = "l"
    source: ClassVar[str] = "Machanavajjhala et al. 2007"
    definition: ClassVar[str] = (
        "Every class has at least l different values of the sensitive attribute (distinct), or"
        " entropy of at least log l (entropy), or its most frequent value occurs less often than c"
        " times all values from the l-th most frequent on together (recursive)."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ("kind",)
    states_if_chosen: ClassVar[tuple[str, ...]] = ("c",)

    attribute: str = parameter("sensitive attribute")
    l: int = parameter("least number of well represented values in a class", low=1)
    kind: str = parameter("what well represented means", default="distinct", choices=KINDS)
    c: float | None = parameter(
        "recursive only: how dominant one value may be", default=None, low=0.0
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.kind == "recursive") != (self.c is not None):
            raise InputError(
                f"promise '{self.model}': kind 'recursive', and it alone, takes c; add or remove c"
            )
        if self.c is not None:
            object.__setattr__(self, "c", decimal(self.model, "c", self.c, 0.0, inf, above=True))

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    @property
    def survives_additions(self) -> bool:
        return self.kind == "distinct"

    def least_subjects(self, several_records: bool) -> int:
        """At least l values need l subjects, unless one subject may bring several values.

        Recursive: r_1 < c (r_l + ... + r_m) <= c (m - l + 1) r_1, so m > l - 1 + 1/c.
        """
        if several_records:
            return 1
        return self.l + (floor(1 / as_written(self.c)) if self.c is not None else 0)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        counts = value_counts(classes, self.attribute)
        if self.kind == "entropy":
            return _effective_values(counts), _reach_entropy(counts, self.l)
        measured = (
            counts.distinct if self.c is None else _largest_recursive(counts, as_written(self.c))
        )
        return measured.astype(np.float64), measured >= self.l

    def nearest(self, whole_table: Classes) -> list[str]:
        measured, holds = self.judge(whole_table)
        if holds[0]:
            return []
        most = floor(measured[0])
        remedy = (
            f"the nearest that holds is l = {most}"
            if most >= 1
            else "no l holds; choose a larger c"
        )
        promise = f"promise '{self.model}' ({self.kind}) on '{self.attribute}'"
        return [f"{promise}: l = {self.l} asked, more than the whole table has; {remedy}"]


def _effective_values(counts: ValueCounts) -> np.ndarray:
    """exp(entropy) of every class: m where m values are equally frequent; (classes,) float64."""
    total = counts.total()
    shares = counts.count / np.repeat(total, counts.distinct)
    effective = np.exp(-counts.sums(shares * np.log(shares)))
    return np.where(_is_even(counts), counts.distinct, effective) * (total > 0)


def _is_even(counts: ValueCounts) -> np.ndarray:
    """Whether all values of a class are equally frequent; (classes,) bool."""
    return counts.largest(counts.count) * counts.distinct == counts.total()


def _reach_entropy(counts: ValueCounts, least: int) -> np.ndarray:
    """Whether the entropy of every class is at least log(least); (classes,) bool, free of rounding.

    Even classes are compared as whole numbers, classes near the threshold exactly, the rest as
    floats.
    """
    effective = _effective_values(counts)
    result = effective >= least
    near = (np.abs(effective - least) <= NEARLY * least) & ~_is_even(counts)
    for i in np.flatnonzero(near):
        cells = counts.count[counts.starts[i] : counts.starts[i + 1]]
        result[i] = reaches_entropy(tuple(sorted(cells.tolist())), least)
    return result


@lru_cache(maxsize=4096)
def reaches_entropy(counts: tuple[int, ...], least: int) -> bool:
    """Whether the entropy of these counts is at least log(least), without rounding.

    With s their sum: entropy >= log(least) is s**s >= least**s * product of c**c, a comparison of
    whole numbers, and it stays the same when all counts are divided by a common divisor. Above
    20,000 subjects the same in logarithms of 60 digits; what these can't tell apart does not hold.
    """
    divisor = gcd(*counts)
    reduced = [count // divisor for count in counts]
    total = sum(reduced)
    if total <= 20_000:
        return total**total >= least**total * prod(count**count for count in reduced)
    with localcontext(prec=60):
        logarithm = total * (Decimal(total).ln() - Decimal(least).ln()) - _sum_of_logs(reduced)
        return logarithm > total * Decimal("1e-50")


def _sum_of_logs(counts: Iterable[int]) -> Decimal:
    """Sum of c * ln(c), each different count's logarithm taken once."""
    often: dict[int, int] = {}
    for count in counts:
        often[count] = often.get(count, 0) + 1
    return sum((count * times * Decimal(count).ln() for count, times in often.items()), Decimal(0))


def _largest_recursive(counts: ValueCounts, c: Fraction) -> np.ndarray:
    """The largest l with r_1 < c * (r_l + ... + r_m), 0 where there is none; (classes,) int64.

    The sum shrinks as l grows, so it is the number of places from which the sum is large enough.
    """
    ranked = counts.count[np.lexsort((-counts.count, counts.class_of))]
    before = np.cumsum(ranked) - ranked
    first = np.minimum(counts.starts[:-1], max(len(ranked) - 1, 0))
    base = before[first] if len(ranked) else np.zeros(counts.classes, dtype=np.int64)
    rest = np.repeat(counts.total() + base, counts.distinct) - before
    most = np.repeat(counts.largest(ranked), counts.distinct)
    return counts.sums((sign(most, rest, c) < 0).astype(np.int64))
