"""Records change places between classes while the squared error falls, and every class goes on
showing each of its sensitive values as often.

Exchanging r of class a and s of class b, whose sums are A and B, saves (2 A . u + |u|^2) / size a -
(2 B . u - |u|^2) / size b of the squared error, with u = s - r, since sizes stay.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer

PARTNERS = 2048  # records before and behind one, in the order given, that it is tried with
SWEEPS = 100  # at most; no table needed more than 40
GAIN = 1e-9  # of the squared error of all; less is rounding


class Places(NamedTuple):
    """Who is where, and what may change.

    values: (n,) int32, the sensitive value of each record. labels: (n,) int32, its class.
    home: (n,) int32, the bucket that it must stay in, -1 where it may be in any.
    bucket_of: (classes,) int32. signatures: (classes, most) int32, the values of each class, -1
    behind the last. is_open: (classes,) bool, whether it may show others: it holds one record of
    each value, and none that must stay.
    """

    values: np.ndarray
    labels: np.ndarray
    home: np.ndarray
    bucket_of: np.ndarray
    signatures: np.ndarray
    is_open: np.ndarray


@outer
def exchange(points, values, labels, home, bucket_of, signatures, is_open):
    """Exchanges records, in `labels` and `signatures`, until none that is tried saves anything.

    points: (n, d) float64, near records in near rows. The rest as in `Places`; each class holds a
    record or more.
    """
    places = Places(values, labels, home, bucket_of, signatures, is_open)
    sums = np.zeros((len(bucket_of), points.shape[1]))
    sizes = np.zeros(len(bucket_of))
    for i in range(len(labels)):
        sizes[labels[i]] += 1
        for c in range(points.shape[1]):
            sums[labels[i], c] += points[i, c]
    least = GAIN * _squared_error(points)
    for _ in range(SWEEPS):
        moves = 0
        for i in range(len(labels)):
            j = _best_partner(i, points, places, sums, sizes, least)
            if j >= 0:
                _change_places(i, j, points, places, sums)
                moves += 1
        if moves == 0:
            break


@inner
def _best_partner(i, points, places, sums, sizes, least):
    """Whose exchange with i saves most, more than `least`; the first of several, else -1."""
    best = least
    found = -1
    a = places.labels[i]
    for j in range(max(0, i - PARTNERS), min(len(points), i + PARTNERS + 1)):
        b = places.labels[j]
        if a == b or not _may_change(i, j, places):
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
        if saved > best:
            best = saved
            found = j
    return found


@inner
def _may_change(i, j, places):
    """Whether records i and j of two classes may take each other's place."""
    a = places.labels[i]
    b = places.labels[j]
    if places.values[i] == places.values[j]:
        is_in_place = places.home[i] < 0 or places.home[i] == places.bucket_of[b]
        return is_in_place and (places.home[j] < 0 or places.home[j] == places.bucket_of[a])
    if not (places.is_open[a] and places.is_open[b]):
        return False
    for s in range(places.signatures.shape[1]):
        if places.signatures[a, s] == places.values[j]:
            return False
        if places.signatures[b, s] == places.values[i]:
            return False
    return True


@inner
def _change_places(i, j, points, places, sums):
    a = places.labels[i]
    b = places.labels[j]
    for c in range(points.shape[1]):
        apart = points[j, c] - points[i, c]
        sums[a, c] += apart
        sums[b, c] -= apart
    if places.values[i] != places.values[j]:
        for s in range(places.signatures.shape[1]):
            if places.signatures[a, s] == places.values[i]:
                places.signatures[a, s] = places.values[j]
            if places.signatures[b, s] == places.values[j]:
                places.signatures[b, s] = places.values[i]
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
