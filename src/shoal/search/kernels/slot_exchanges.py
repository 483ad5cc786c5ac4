"""Exchanges between two classes of the local searches: what they cost, and who may make them.

Priced from the boxes of both classes, with and without their outermost members, so that a try costs
as much as a record has columns.
"""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inlined
from shoal.search.kernels.slots import (
    CAPACITY,
    GREATEST,
    LEAST,
    LINEAR,
    SECOND_GREATEST,
    SECOND_LEAST,
    tree_loss,
)


@inlined
def leaves_too_little(s, a, b, limit, classes, bounds, shape, table):
    """Whether no member of b can be exchanged for slot s of class a within the limit; puts the box
    of class a without it into `bounds`.
    """
    rows = classes.rows
    boxes = classes.boxes
    without = np.int64(0)
    joined = np.int64(0)
    for j in range(shape[LINEAR]):
        v = rows[s, j]
        lo = boxes[a, SECOND_LEAST, j] if v == boxes[a, LEAST, j] else boxes[a, LEAST, j]
        hi = boxes[a, SECOND_GREATEST, j] if v == boxes[a, GREATEST, j] else boxes[a, GREATEST, j]
        bounds[0, j] = lo
        bounds[1, j] = hi
        without += hi - lo
        joined += max(boxes[b, SECOND_GREATEST, j], v) - min(boxes[b, SECOND_LEAST, j], v)
    for j in range(shape[LINEAR], rows.shape[1]):
        v = rows[s, j]
        lo = boxes[a, SECOND_LEAST, j] if v == boxes[a, LEAST, j] else boxes[a, LEAST, j]
        hi = boxes[a, SECOND_GREATEST, j] if v == boxes[a, GREATEST, j] else boxes[a, GREATEST, j]
        bounds[0, j] = lo
        bounds[1, j] = hi
        without += tree_loss(lo, hi, j - shape[LINEAR], shape, table)
        lo = min(boxes[b, SECOND_LEAST, j], v)
        hi = max(boxes[b, SECOND_GREATEST, j], v)
        joined += tree_loss(lo, hi, j - shape[LINEAR], shape, table)
    return classes.size[a] * without + classes.size[b] * joined > limit


@inlined
def first_fit(s, a, b, start, limit, classes, bound, bounds, shape, table, tried=0):
    """The first slot of class b, from slot `start` on and round, whose exchange with slot s of
    class a stays within the limit, and what both classes lose then; -1 and 0 where none does. The
    first `tried` of them are left out.
    """
    rows = classes.rows
    boxes = classes.boxes
    record = classes.record
    size_a = classes.size[a]
    size_b = classes.size[b]
    linear = shape[LINEAR]
    for t in range(tried, size_b):
        p = start + t
        if p >= size_b:
            p -= size_b
        p += b * shape[CAPACITY]
        if bound.shape[1] > 0 and bound[0, record[p]] != bound[0, record[s]]:
            continue
        loss_a = np.int64(0)
        loss_b = np.int64(0)
        for j in range(linear):
            v = rows[s, j]
            w = rows[p, j]
            loss_a += max(bounds[1, j], w) - min(bounds[0, j], w)
            lo = boxes[b, SECOND_LEAST, j] if w == boxes[b, LEAST, j] else boxes[b, LEAST, j]
            hi = (
                boxes[b, SECOND_GREATEST, j]
                if w == boxes[b, GREATEST, j]
                else boxes[b, GREATEST, j]
            )
            loss_b += max(hi, v) - min(lo, v)
        change = size_a * loss_a + size_b * loss_b
        j = linear
        while change <= limit and j < rows.shape[1]:
            v = rows[s, j]
            w = rows[p, j]
            loss_a = tree_loss(min(bounds[0, j], w), max(bounds[1, j], w), j - linear, shape, table)
            lo = boxes[b, SECOND_LEAST, j] if w == boxes[b, LEAST, j] else boxes[b, LEAST, j]
            hi = (
                boxes[b, SECOND_GREATEST, j]
                if w == boxes[b, GREATEST, j]
                else boxes[b, GREATEST, j]
            )
            loss_b = tree_loss(min(lo, v), max(hi, v), j - linear, shape, table)
            change += size_a * loss_a + size_b * loss_b
            j += 1
        if change <= limit and alone(s, a, p, b, classes, bound, shape):
            return p, change
    return np.int64(-1), np.int64(0)


@inlined
def alone(s, a, p, b, classes, bound, shape):
    """Whether the subjects of slots s and p have no other record in class a or b."""
    if bound.shape[1] == 0 or bound[1, classes.record[s]] < 0:
        return True
    one = bound[1, classes.record[s]]
    other = bound[1, classes.record[p]]
    met = np.int64(0)
    for c in (a, b):
        for t in range(c * shape[CAPACITY], c * shape[CAPACITY] + classes.size[c]):
            subject = bound[1, classes.record[t]]
            met += (subject == one) | (subject == other)
    return met == 2


@inlined
def change_places(s, a, p, b, classes):
    """Slots s and p change places; both classes are to be measured."""
    rows = classes.rows
    record = classes.record
    class_of = classes.class_of
    for j in range(rows.shape[1]):
        rows[s, j], rows[p, j] = rows[p, j], rows[s, j]
    record[s], record[p] = record[p], record[s]
    class_of[record[s]] = a
    class_of[record[p]] = b
