"""As many classes as l-diversity allows: what a cut may not lose.

Ours; the paper of the rounded partition (Wu, Tang, Ni, Sun 2012) proves it for k alone and leaves
l-diversity open. n records, one a person, in any classes of k or more; f(v) records have value v.
k: floor(n / k). Distinct l: the most classes are max{a <= n / max(k, l) : sum of min(f(v), a) >=
l * a}. A class has l pairs (value, class), and a value is in min(f(v), a) of them at most.
Conversely deal at most a records of each value in turn to a classes: none gets a value twice; fill
up with the rest.
Shares of 1/l at most, with k' = l * ceil(k / l): floor(n / k') classes are always possible, and no
more than floor(n / max(k, l)), if no value has more than n / l records (Gale's condition for sizes
that are multiples of l but for what is left over); the truth lies between, at either end or inside.
Cuts along attributes need not reach it: a a b b along one attribute with k = l = 2 could make two
classes, and every cut leaves one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np

from shoal.data.classes import Classes
from shoal.data.partition import Matrix, Partition
from shoal.protocols import PrivacyModel, Promises
from shoal.search.kernels.count_cuts import cut_by_count
from shoal.search.segments import costs_of, loss_of

SMALL_SHARE = 4
MOST_RECORDS = 200_000


@dataclass(frozen=True)
class Diversity:
    """What is asked of one sensitive attribute besides k.

    codes: (n,) int32. l: least different values, or with is_share the greatest share is 1 / l.
    """

    codes: np.ndarray
    l: int
    is_share: bool


def diversity_of(matrix: Matrix, promises: Promises) -> Diversity | None:
    """The one promise besides k whose classes can be counted; None where there is none, or more."""
    if matrix.subjects is not None:
        return None
    terms = [term for term in promises.terms if term.model != "k-anonymity"]
    if len(terms) != 1:
        return None
    (term,) = terms
    if (found := _diverse(term.model, term.parameters)) is None:
        return None
    l, is_share = found
    codes = promises.sensitive[term.sensitive[0]].codes
    if is_share and int(np.bincount(codes).max(initial=0)) * l > len(codes):
        return None  # then shares of alpha hold, and of 1 / l do not
    return Diversity(codes, l, is_share)


def _diverse(model: str, asked: Mapping[str, Any]) -> tuple[int, bool] | None:
    """`l` and `is_share` of a promise, as in `Diversity`; None where it asks something else."""
    if model == "l-diversity" and asked["kind"] == "distinct":
        return int(asked["l"]), False
    if model == "alpha-k-anonymity" and not asked["values"]:
        return ceil(1 / Fraction(str(asked["alpha"]))), True
    return None


def with_less_loss(matrix: Matrix, promises: Promises, partition: Partition) -> Partition:
    """These classes, or as many as can be cut where that loses less.

    Tried only where each class is to have `SMALL_SHARE` values or more: near the limit of a share,
    cuts that lose least leave few valid cuts below them, and so a few large classes.
    """
    asked = diversity_of(matrix, promises) if matrix.records <= MOST_RECORDS else None
    if asked is None or not asked.is_share or asked.l < SMALL_SHARE:
        return partition
    counted = cut_for_most(matrix, promises.k, asked)
    return min(partition, counted, key=lambda classes: loss_of(matrix, classes))


def cut_for_most(matrix: Matrix, k: int, asked: Diversity) -> Partition:
    """Classes that keep k and the promise, cut so that as many as possible are left.

    Of cuts that leave the most, the one that loses least. O(m d (log m + v)) for a node of m
    records with v different values.
    """
    codes = np.ascontiguousarray(matrix.codes)
    values = asked.codes.astype(np.int32)
    labels = cut_by_count(codes, values, k, asked.l, asked.is_share, costs_of(matrix))
    return Partition.of(labels)


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
        diverse = _diverse(model.model, parameters)
        if model.model == "k-anonymity" and not model.attributes:
            bounds.append(int(kept.sum()) // k)
        elif diverse is None:
            return None
        elif diverse[1]:
            bounds.append(int(kept.sum()) // max(k, diverse[0]))
        else:
            column = table.sensitive[model.attributes[0]].with_missing_as_one()
            bounds.append(most_distinct(np.bincount(column.codes[kept]), k, diverse[0]))
    return min(bounds, default=None)


def most_distinct(counts: np.ndarray, k: int, l: int) -> int:
    """The most classes of k people with l different values each. counts: (values,) of each."""
    low, high = 0, int(counts.sum()) // max(k, l)
    while low < high:  # the sum less l * a is concave in a and 0 at 0
        a = (low + high + 1) // 2
        if int(np.minimum(counts, a).sum()) >= l * a:
            low = a
        else:
            high = a - 1
    return low
