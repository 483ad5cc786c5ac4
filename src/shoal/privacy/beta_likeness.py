"""beta-likeness: no sensitive value is much more likely in a class than in the whole table.

Cao, Karras. Publishing microdata with a robust privacy guarantee. PVLDB 5(11):1388-1399, 2012.
Definitions 2 (basic) and 3 (enhanced), from descriptions and re-implementations; not checked
against the text.
Paper: p_i, q_i                    Here: share of a value in the whole table, and in the class
Reading: shares weigh (subject, value) pairs; the whole table is every record that is in a class, or
with `reference: input` every record.
Reading: every text that stands for no value is a value of its own.
"""

from dataclasses import dataclass
from decimal import Decimal, localcontext
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.privacy.promise import INPUT, NEARLY, as_written, sign
from shoal.privacy.value_counts import UNSURE, Shares, SharesPromise, precise_logarithm

KINDS = ("basic", "enhanced")
RELEASE = "release"
REFERENCES = (RELEASE, INPUT)


@dataclass(frozen=True)
class BetaLikeness(SharesPromise):
    """(q - p) / p is at most beta for every value (basic), and at most -ln p as well (enhanced).

    A value that is rarer in the class than in the table brings no gain. What is measured is the
    greatest gain; of the kind `enhanced`, gains on values with -ln p below beta are stretched by
    beta / -ln p, so that the promise holds where the measured value is at most beta. In a union of
    classes no share is greater than in the class where it is greatest, so merging keeps it.
    """

    model: ClassVar[str] = "beta-likeness"
    letter: ClassVar[str] = "beta"
    source: ClassVar[str] = "Cao, Karras 2012"
    definition: ClassVar[str] = (
        "In every class and for every value of each listed attribute, the share q in the class"
        " exceeds the share p in the whole table by at most beta * p (basic), or by at most"
        " min(beta, -ln p) * p (enhanced)."
    )
    monotone: ClassVar[bool] = True
    states: ClassVar[tuple[str, ...]] = ("kind",)
    states_if_chosen: ClassVar[tuple[str, ...]] = ("reference",)

    attributes: tuple[str, ...] = parameter("sensitive attributes; the worst counts")
    beta: float = parameter("greatest relative gain of a value", low=0.0, above=True)
    kind: str = parameter(
        "whether frequent values may gain less", default="enhanced", choices=KINDS
    )
    reference: str = parameter(
        "what a class is compared with: the release, which is the records that are kept, or"
        " input, which is all records, the suppressed ones, too",
        default=RELEASE,
        choices=REFERENCES,
    )

    def judge_shares(self, shares: Shares) -> tuple[np.ndarray, np.ndarray]:
        gain = np.maximum(shares.ratio - 1.0, 0.0)
        allowed = sign(shares.inside, shares.outside, 1 + as_written(self.beta)) <= 0
        if self.kind == "enhanced":
            room = np.log(shares.pairs / shares.often)
            stretch = np.ones(len(gain))
            np.divide(self.beta, room, out=stretch, where=(gain > 0) & (room < self.beta))
            allowed &= _within_logarithm(shares, gain, room)
            gain = gain * stretch
        counts = shares.counts
        return counts.largest(gain), counts.sums((~allowed).astype(np.int64)) == 0


def _within_logarithm(shares: Shares, gain: np.ndarray, room: np.ndarray) -> np.ndarray:
    """Whether each gain is at most -ln p; where floats are unsure, by logarithms of 60 digits."""
    within = gain <= room
    for i in np.flatnonzero((np.abs(gain - room) <= NEARLY) & (gain > 0)):
        inside, outside = int(shares.inside[i]), int(shares.outside[i])
        with localcontext(prec=60):
            exact = Decimal(inside - outside) / outside
            within[i] = precise_logarithm(shares.pairs, int(shares.often[i])) - exact >= -UNSURE
    return within
