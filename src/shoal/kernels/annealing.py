"""Simulated annealing over finished classes: records of near classes change places.

For a member of a class, one of the records nearest to it names the other class; that class's
members are tried from a random one on, and the first exchange is made that raises the total loss by
less than a random amount: -ln u times the temperature (Metropolis and others, 1953, drawn before
and not after the price is known, so that most tries end early). Sizes stay as they are.

Classes of one block are searched by themselves: blocks share the arrays, and none reads what
another one changes but `class_of`, where a record of another block stays in another block.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compile import inner, outer
from shoal.kernels.slots import (
    CAPACITY,
    GREATEST,
    LEAST,
    LINEAR,
    NOISE_BITS,
    SECOND_GREATEST,
    SECOND_LEAST,
    K,
    SlotClasses,
    loss_with,
    loss_without,
    measure,
    move,
    next_random,
    random_below,
    tree_loss,
)


@outer
def anneal(
    rows, record, size, loss, boxes, class_of, near, bound, shape, table, temperatures, block
):
    """Tries every member of the block's classes once at each temperature; returns the exchanges
    made.

    near: (n, q) int32, the records nearest to each. bound: (2, n) int32, a kind and a subject, or
    -1, of each record: equal kinds may change places, if neither subject has another record in
    either class; (2, 0) where all may. temperatures: (sweeps + 1024,) int64: one for each sweep,
    and then what -ln u may be, in 65,536ths. block: (3,) uint64: the state of the random numbers,
    the first class, and the one after the last.
    """
    classes = SlotClasses(rows, record, size, loss, boxes, class_of)
    random = block[:1]
    first = np.int64(block[1])
    end = np.int64(block[2])
    for c in range(first, end):
        if size[c] > 0:
            measure(c, classes, shape, table)
    bounds = np.empty((2, rows.shape[1]), np.int32)
    noise = temperatures.shape[0] - (1 << NOISE_BITS)
    moves = np.int64(0)
    for sweep in range(noise):
        for a in range(first, end):
            for s in range(a * shape[CAPACITY], a * shape[CAPACITY] + size[a]):
                if s >= a * shape[CAPACITY] + size[a]:
                    break  # one has left
                z = next_random(random)
                b = np.int64(class_of[near[record[s], random_below(z, near.shape[1])]])
                if b == a or b < first or b >= end or size[a] < 2 or size[b] < 2:
                    continue
                draw = temperatures[noise + np.int64(z & np.uint64((1 << NOISE_BITS) - 1))]
                limit = size[a] * loss[a] + size[b] * loss[b]
                limit += (temperatures[sweep] * draw) >> 16
                moved = False
                if (
                    size[a] > shape[K]
                    and size[b] < shape[CAPACITY]
                    and (z >> np.uint64(20)) & np.uint64(1) == np.uint64(0)
                ):
                    after = (size[a] - 1) * loss_without(s, a, classes, shape, table)
                    after += (size[b] + 1) * loss_with(s, b, classes, shape, table)
                    moved = after <= limit
                    if moved:
                        move(s, a, b, classes, shape)
                elif not _leaves_too_little(s, a, b, limit, classes, bounds, shape, table):
                    start = random_below(next_random(random), size[b])
                    p = _first_fit(s, a, b, start, limit, classes, bound, bounds, shape, table)
                    moved = p >= 0
                    if moved:
                        _exchange(s, a, p, b, classes)
                if moved:
                    moves += 1
                    for c in (a, b):  # one call to compile
                        measure(c, classes, shape, table)
    return moves


@inner
def _leaves_too_little(s, a, b, limit, classes, bounds, shape, table):
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


@inner
def _first_fit(s, a, b, start, limit, classes, bound, bounds, shape, table):
    """The first slot of class b, from slot `start` on and round, whose exchange with slot s of
    class a stays within the limit; -1 where none does.
    """
    rows = classes.rows
    boxes = classes.boxes
    record = classes.record
    size_a = classes.size[a]
    size_b = classes.size[b]
    linear = shape[LINEAR]
    for t in range(size_b):
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
        if change <= limit and _alone(s, a, p, b, classes, bound, shape):
            return p
    return np.int64(-1)


@inner
def _alone(s, a, p, b, classes, bound, shape):
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


@inner
def _exchange(s, a, p, b, classes):
    """Slots s and p change places; both classes are to be measured."""
    rows = classes.rows
    record = classes.record
    class_of = classes.class_of
    for j in range(rows.shape[1]):
        rows[s, j], rows[p, j] = rows[p, j], rows[s, j]
    record[s], record[p] = record[p], record[s]
    class_of[record[s]] = a
    class_of[record[p]] = b
