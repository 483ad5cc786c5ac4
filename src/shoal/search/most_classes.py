"""As many classes as l-diversity allows: what a cut may not lose.

Ours; the paper of the rounded partition leaves l-diversity open. n records, one a person, in any
classes of k or more; f(v) records have value v.
Distinct l: the most classes are max{a <= n / max(k, l) : sum of min(f(v), a) >= l * a}. A class has
l pairs (value, class), and a value is in min(f(v), a) of them at most. Conversely deal at most a
records of each value in turn to a classes: none gets a value twice; fill up with the rest.
Shares of 1/l at most, with k' = l * ceil(k / l): floor(n / k') classes are always possible, and no
more than floor(n / max(k, l)), if no value has more than n / l records (Gale's condition for sizes
that are multiples of l but for what is left over).
Cuts along attributes need not reach it: a a b b along one attribute with k = l = 2 could make two
classes, and every cut leaves one.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import ceil

import numpy as np

from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.protocols import Promises
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
    asked = term.parameters
    if term.model == "l-diversity" and asked["kind"] == "distinct":
        l, is_share = int(asked["l"]), False
    elif term.model == "alpha-k-anonymity" and not asked["values"]:
        l, is_share = ceil(1 / Fraction(str(asked["alpha"]))), True
    else:
        return None
    codes = promises.sensitive[term.sensitive[0]].codes
    if is_share and int(np.bincount(codes).max(initial=0)) * l > len(codes):
        return None  # then shares of alpha hold, and of 1 / l do not
    return Diversity(codes, l, is_share)


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
