"""How many classes a table can be divided into at most, whoever divides it and however.

Ours; the paper of the rounded partition (Wu, Tang, Ni, Sun 2012) proves it for k alone and leaves
l-diversity open. n records, one a person, in any classes; f(v) of them have value v.

k: floor(n / k).
Distinct l: max{a <= n / max(k, l) : sum over v of min(f(v), a) >= l * a}. A class has l pairs
(value, class), and a value is in min(f(v), a) of them at most. Conversely deal at most a records of
each value in turn to a classes: none gets a value twice; fill up with the rest. The sum less l * a
is concave in a and 0 at 0, so the largest such a is found by halving.
Shares of 1/l at most: floor(n / max(k, l)). With k' = l * ceil(k / l), floor(n / k') can always be
made where no value has more than n / l records; the truth lies between, at either end or inside.
Classes are what a method makes: cuts along attributes need not reach the bound (a a b b along one
attribute, k = l = 2: the bound is 2, every cut leaves one).
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from math import ceil

import numpy as np

from shoal.data.classes import Classes
from shoal.protocols import PrivacyModel

K, DISTINCT, SHARE = "k-anonymity", "l-diversity", "alpha-k-anonymity"


def most_distinct(counts: np.ndarray, k: int, l: int) -> int:
    """The most classes of k people with l different values each. counts: (values,) of each."""
    low, high = 0, int(counts.sum()) // max(k, l)
    while low < high:
        a = (low + high + 1) // 2
        if int(np.minimum(counts, a).sum()) >= l * a:
            low = a
        else:
            high = a - 1
    return low


def class_bound(models: Sequence[PrivacyModel], table: Classes) -> int | None:
    """The most classes in which these promises can hold, or a little more than these.

    None where people have several records, or something else is promised. table: whatever its
    classes are; those of its records that are in none don't count.
    """
    kept = table.labels >= 0
    if table.subjects is not None and int(np.bincount(table.subjects).max(initial=0)) > 1:
        return None
    asked = [(model, model.parameters) for model in models]
    k = max((int(p["k"]) for _, p in asked if "k" in p), default=1)
    bounds = []
    for model, parameters in asked:
        if model.model == K and not model.attributes:
            bounds.append(int(kept.sum()) // k)
        elif model.model == DISTINCT and parameters["kind"] == "distinct":
            counts = _counts(table, model.attributes[0], kept)
            bounds.append(most_distinct(counts, k, int(parameters["l"])))
        elif model.model == SHARE and not parameters["values"]:
            l = ceil(1 / Fraction(str(parameters["alpha"])))
            bounds.append(int(kept.sum()) // max(k, l))
        else:
            return None
    return min(bounds, default=None)


def _counts(table: Classes, name: str, kept: np.ndarray) -> np.ndarray:
    return np.bincount(table.sensitive[name].with_missing_as_one().codes[kept])
