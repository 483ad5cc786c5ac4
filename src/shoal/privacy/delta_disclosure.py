"""delta-disclosure privacy: no value is much more or less likely in a class than in the table.

Brickell, Shmatikov. The cost of privacy: destruction of data-mining utility in anonymized data
publishing. KDD 2008, pages 70-78; from descriptions and re-implementations, not checked against the
text.
Reading: the definition ranges over every value of the table, so a class that lacks one is
infinitely far and fails. Some tools leave such values out; then merging two classes that pass can
make one that fails.
Reading: the base of the logarithm is a parameter; natural by default.
Reading: shares weigh (subject, value) pairs; the whole table is every record that is in a class.
Reading: every text that stands for no value is a value of its own.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from math import log
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.privacy.promise import NEARLY
from shoal.privacy.value_counts import UNSURE, Shares, SharesPromise, precise_logarithm

LOGARITHMS = {"natural": 1.0, "binary": log(2.0)}


@dataclass(frozen=True)
class DeltaDisclosure(SharesPromise):
    """|log(q / p)| is below delta for every value of the table, in every class.

    In a union of classes each q lies between those of its parts, so merging keeps it.
    """

    model: ClassVar[str] = "delta-disclosure"
    letter: ClassVar[str] = "delta"
    source: ClassVar[str] = "Brickell, Shmatikov 2008"
    definition: ClassVar[str] = (
        "In every class and for every value of each listed attribute that occurs in the table,"
        " |log(q / p)| is less than delta, q being the value's share in the class and p its share"
        " in the whole table."
    )
    monotone: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ("logarithm",)

    attributes: tuple[str, ...] = parameter("sensitive attributes; the worst counts")
    delta: float = parameter("what |log(q / p)| has to stay below", low=0.0, above=True)
    logarithm: str = parameter("its base: e or 2", default="natural", choices=tuple(LOGARITHMS))

    def judge_shares(self, shares: Shares) -> tuple[np.ndarray, np.ndarray]:
        counts = shares.counts
        apart = np.abs(np.log(shares.ratio)) / LOGARITHMS[self.logarithm]
        lacking = shares.occupied & (counts.distinct < shares.occurring)
        below = counts.sums((~self._is_below(shares, apart)).astype(np.int64)) == 0
        return np.where(lacking, np.inf, counts.largest(apart)), below & ~lacking

    def _is_below(self, shares: Shares, apart: np.ndarray) -> np.ndarray:
        """Whether each |log(q / p)| is less than delta; where floats are unsure, by 60 digits."""
        below = apart < self.delta
        for i in np.flatnonzero(np.abs(apart - self.delta) <= NEARLY * max(self.delta, 1.0)):
            with localcontext(prec=60):
                unit = Decimal(2).ln() if self.logarithm == "binary" else Decimal(1)
                exact = abs(precise_logarithm(int(shares.inside[i]), int(shares.outside[i])))
                below[i] = Decimal(str(self.delta)) * unit - exact > UNSURE
        return below
