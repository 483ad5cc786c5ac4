"""How certain a measured share is.

Wilson. JASA 22, 1927; Newcombe. Statistics in Medicine 17, 1998, method 10; the residual as Giomi
and others, PETS 2023: what an attack gains beyond a control, of all that could be gained. Every
interval is at 95 %.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

Z = 1.959964
CONFIDENCE = 0.95

Share = dict[str, Any]
"""`{share, of, ci, how}`: the number, out of how many, its interval, and how that was found."""


def counted(hits: float, of: int) -> Share:
    """A share of a whole that was counted, not estimated; null where there is no whole."""
    return exact(hits / of if of else None, of)


def exact(share: float | None, of: int | None = None) -> Share:
    """A number that follows from the release, not from a sample."""
    return {"share": share, "of": of, "ci": None, "how": "exact"}


def wilson_ends(hits: float, of: int) -> tuple[float, float]:
    """The interval of a share; hits may be broken where ties were."""
    share = hits / of
    middle = share + Z * Z / (2 * of)
    reach = Z * sqrt(max(share * (1 - share), 0.0) / of + Z * Z / (4 * of * of))
    whole = 1 + Z * Z / of
    return max((middle - reach) / whole, 0.0), min((middle + reach) / whole, 1.0)


def wilson(hits: float, of: int) -> Share:
    """A share of people that were drawn; null where nobody was."""
    if not of:
        return {"share": None, "of": 0, "ci": None, "how": "wilson"}
    return {"share": hits / of, "of": of, "ci": list(wilson_ends(hits, of)), "how": "wilson"}


def newcombe(one: tuple[float, int], other: tuple[float, int]) -> Share:
    """The difference of two samples' shares, (hits, of) each; null where either is empty."""
    if not one[1] or not other[1]:
        return {"share": None, "of": 0, "ci": None, "how": "newcombe"}
    p1, p2 = one[0] / one[1], other[0] / other[1]
    (l1, u1), (l2, u2) = wilson_ends(*one), wilson_ends(*other)
    d = p1 - p2
    ends = [d - sqrt((p1 - l1) ** 2 + (u2 - p2) ** 2), d + sqrt((u1 - p1) ** 2 + (p2 - l2) ** 2)]
    return {"share": d, "of": one[1], "ci": ends, "how": "newcombe"}


def over(one: tuple[float, int], known: float) -> Share:
    """What a sample's share exceeds a known one by."""
    found = wilson(*one)
    return found if found["share"] is None else shifted(found, known)


def shifted(found: Share, known: float) -> Share:
    """A share and its interval, less a known number."""
    ends = None if found["ci"] is None else [end - known for end in found["ci"]]
    return found | {"share": found["share"] - known, "ci": ends}


def scaled(found: Share, room: float) -> Share:
    """A difference as a part of what there was room for; null where there was none."""
    if found["share"] is None or room <= 0:
        return found | {"share": None, "ci": None}
    return found | {"share": found["share"] / room, "ci": [end / room for end in found["ci"]]}


def mean_of(fractions: np.ndarray) -> Share:
    """The mean of what each of a sample's people gives away, by the normal approximation."""
    of = len(fractions)
    if not of:
        return {"share": None, "of": 0, "ci": None, "how": "normal"}
    mean = float(fractions.mean())
    spread = float(fractions.std(ddof=1)) / sqrt(of) if of > 1 else 0.0
    ends = [max(mean - Z * spread, 0.0), min(mean + Z * spread, 1.0)]
    return {"share": mean, "of": of, "ci": ends, "how": "normal"}
