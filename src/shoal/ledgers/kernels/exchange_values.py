"""Records change places between classes while less is lost, and every class goes on showing as many
sensitive values, each as often.

Exchanging r of class a and s of class b, whose sums are A and B, saves (2 A . u + |u|^2) / size a -
(2 B . u - |u|^2) / size b of the squared error, with u = s - r, since sizes stay.

People who stay may later share a class only with those of their signature. So crowded signatures
are worth something: `CROWDING` of the mean squared error of a class, at first, times the sum of log
n over all classes, of which the class is the n-th of its signature, with log ALONE for the first.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inlined, inner, outer

PARTNERS = 2048  # records before and behind one, in the order given, that it is tried with
SWEEPS = 100  # at most; no table needed more than 40
GAIN = 1e-9  # of the squared error of all; less is rounding
CROWDING = 0.1  # of .05 to .8, .1 to .2 lose least over five releases of three tables
ALONE = 0.37  # what the first class of a signature counts for, as who stays may be left alone in it
SLOT_BITS = np.uint64(16)  # signatures in one slot are counted as one; no promise depends on it
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # its powers, one a value, add up to a signature's mark


class Places(NamedTuple):
    """Who is where, and what may change.

    values: (n,) int32, the sensitive value of each record. labels: (n,) int32, its class.
    stays: (n,) bool, whether its class must go on showing the values that it shows.
    signatures: (classes, most) int32, the values of each class, -1 behind the last.
    may_regroup: (classes,) bool, whether it may show others while nobody in it stays: it holds one
    record of each value. stayers: (classes,) int64, records that stay.
    """

    values: np.ndarray
    labels: np.ndarray
    stays: np.ndarray
    signatures: np.ndarray
    may_regroup: np.ndarray
    stayers: np.ndarray


class Crowds(NamedTuple):
    """How many classes have each signature.

    power_of: (values,) uint64, what a value adds to a mark. marks: (classes,) uint64, of the
    signature of each class; that of another differs, but for one pair in 2^64. classes: (slots,)
    float64. price: what the sum of log n is multiplied by.
    """

    power_of: np.ndarray
    marks: np.ndarray
    classes: np.ndarray
    price: float


@outer
def exchange(points, values, labels, stays, signatures, may_regroup):
    """Exchanges records, in `labels` and `signatures`, until none that is tried saves anything.

    points: (n, d) float64, near records in near rows. The rest as in `Places`; each class holds a
    record or more.
    """
    stayers = np.zeros(len(signatures), dtype=np.int64)
    sums = np.zeros((len(signatures), points.shape[1]))
    sizes = np.zeros(len(signatures))
    for i in range(len(labels)):
        sizes[labels[i]] += 1
        stayers[labels[i]] += stays[i]
        for c in range(points.shape[1]):
            sums[labels[i], c] += points[i, c]
    error = 0.0
    for i in range(len(labels)):
        for c in range(points.shape[1]):
            error += (points[i, c] - sums[labels[i], c] / sizes[labels[i]]) ** 2
    places = Places(values, labels, stays, signatures, may_regroup, stayers)
    crowds = _crowds(signatures, values.max() + 1, CROWDING * error / len(sizes))
    least = GAIN * _squared_error(points)
    for _ in range(SWEEPS):
        moves = 0
        for i in range(len(labels)):
            j = _best_partner(i, points, places, crowds, sums, sizes, least)
            if j >= 0:
                _change_places(i, j, points, places, crowds, sums)
                moves += 1
        if moves == 0:
            break


@inner
def _crowds(signatures, values, price):
    power_of = np.full(values, SPREAD)
    for v in range(1, values):
        power_of[v] = power_of[v - 1] * SPREAD
    marks = np.zeros(len(signatures), dtype=np.uint64)
    classes = np.zeros(1 << SLOT_BITS)
    for a in range(len(signatures)):
        for value in signatures[a]:
            if value >= 0:
                marks[a] += power_of[value]
        classes[_slot(marks[a])] += 1
    return Crowds(power_of, marks, classes, price)


@inlined
def _slot(mark):
    """The high bits, which every value changes."""
    return mark >> (np.uint64(64) - SLOT_BITS)


@inlined
def _best_partner(i, points, places, crowds, sums, sizes, least):
    """Whose exchange with i saves most, more than `least`; the first of several, else -1."""
    best = least
    found = -1
    a = places.labels[i]
    for j in range(max(0, i - PARTNERS), min(len(points), i + PARTNERS + 1)):
        b = places.labels[j]
        if a == b or not _may_change(i, j, places, crowds):
            continue
        square = 0.0
        along_a = 0.0
        along_b = 0.0
        for c in range(points.shape[1]):
            apart = points[j, c] - points[i, c]
            square += apart * apart
            along_a += sums[a, c] * apart
            along_b += sums[b, c] * apart
        saved = (2 * along_a + square) / sizes[a] - (2 * along_b - square) / sizes[b]
        if places.values[i] != places.values[j]:
            saved += crowds.price * _crowding(i, j, places, crowds)
        if saved > best:
            best = saved
            found = j
    return found


@inlined
def _crowding(i, j, places, crowds):
    """How much the sum of log n rises if records of two values take each other's place."""
    a = crowds.marks[places.labels[i]]
    b = crowds.marks[places.labels[j]]
    change = crowds.power_of[places.values[j]] - crowds.power_of[places.values[i]]
    if a + change == b:  # the classes exchange their signatures
        return 0.0
    joined = _place(a + change, 1, crowds) * _place(b - change, 1, crowds)
    return np.log(joined / (_place(a, 0, crowds) * _place(b, 0, crowds)))


@inlined
def _place(mark, more, crowds):
    """What the last class of a signature counts for once that number joins it."""
    n = crowds.classes[_slot(mark)] + more
    return n if n > 1 else ALONE


@inlined
def _may_change(i, j, places, crowds):
    """Whether records i and j of two classes may take each other's place."""
    a = places.labels[i]
    b = places.labels[j]
    if places.values[i] == places.values[j]:
        is_free = not (places.stays[i] or places.stays[j])
        return is_free or crowds.marks[a] == crowds.marks[b]
    if places.stayers[a] or places.stayers[b]:
        return False
    if not (places.may_regroup[a] and places.may_regroup[b]):
        return False
    for s in range(places.signatures.shape[1]):
        if places.signatures[a, s] == places.values[j]:
            return False
        if places.signatures[b, s] == places.values[i]:
            return False
    return True


@inner
def _change_places(i, j, points, places, crowds, sums):
    a = places.labels[i]
    b = places.labels[j]
    for c in range(points.shape[1]):
        apart = points[j, c] - points[i, c]
        sums[a, c] += apart
        sums[b, c] -= apart
    if places.values[i] != places.values[j]:
        change = crowds.power_of[places.values[j]] - crowds.power_of[places.values[i]]
        for c, step in ((a, change), (b, -change)):
            crowds.classes[_slot(crowds.marks[c])] -= 1
            crowds.marks[c] += step
            crowds.classes[_slot(crowds.marks[c])] += 1
        for s in range(places.signatures.shape[1]):
            if places.signatures[a, s] == places.values[i]:
                places.signatures[a, s] = places.values[j]
            if places.signatures[b, s] == places.values[j]:
                places.signatures[b, s] = places.values[i]
    if places.stays[i] != places.stays[j]:
        change = 1 if places.stays[j] else -1
        places.stayers[a] += change
        places.stayers[b] -= change
    places.labels[i] = b
    places.labels[j] = a


@inner
def _squared_error(points):
    error = 0.0
    for c in range(points.shape[1]):
        mean = points[:, c].mean()
        for i in range(len(points)):
            error += (points[i, c] - mean) ** 2
    return error
