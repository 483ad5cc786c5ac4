"""Simulated annealing as in `annealing`, over classes that promise more than a number of records.

What classes exceed their promises by never grows: a class that keeps them keeps them, and one that
does not comes nearer. What a move costs is asked first, since it is cheap and mostly enough to give
up.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.class_promises import NOBODY, excess
from shoal.kernels.compile import inner, outer
from shoal.kernels.slot_exchanges import change_places, first_fit, leaves_too_little
from shoal.kernels.slots import (
    CAPACITY,
    NOISE_BITS,
    K,
    loss_with,
    loss_without,
    measure,
    move,
    next_random,
    random_below,
)

EXCESS, MOST = 1e15, 1e18
"""What an excess of 1 costs, in units of loss: more than all that a move can gain; and no more."""

LARGEST = 256
"""Members of a class that is asked: of more, asking takes longer than it brings."""

ASKED = 3
"""Exchanges of a record with a class that are put to the promises at most."""


@outer
def anneal_promised(classes, promises, near, bound, shape, table, temperatures, block):
    """As `annealing.anneal`; returns the moves made. promises: `ClassPromises`."""
    random = block[:1]
    first = np.int64(block[1])
    end = np.int64(block[2])
    size, loss = classes.size, classes.loss
    beyond = np.zeros(len(size))
    nobody = np.int64(NOBODY)
    for c in range(first, end):
        if size[c] > 0:
            measure(c, classes, shape, table)
            beyond[c] = excess(c, nobody, nobody, classes, promises, shape)
    bounds = np.empty((2, classes.rows.shape[1]), np.int32)
    noise = temperatures.shape[0] - (1 << NOISE_BITS)
    moves = np.int64(0)
    for sweep in range(noise):
        for a in range(first, end):
            for s in range(a * shape[CAPACITY], a * shape[CAPACITY] + size[a]):
                if s >= a * shape[CAPACITY] + size[a]:
                    break  # one has left
                z = next_random(random)
                other = near[classes.record[s], random_below(z, near.shape[1])]
                b = np.int64(classes.class_of[other])
                if b == a or b < first or b >= end or size[a] < 2 or size[b] < 2:
                    continue
                if size[a] > LARGEST or size[b] > LARGEST:
                    continue
                draw = temperatures[noise + np.int64(z & np.uint64((1 << NOISE_BITS) - 1))]
                limit = size[a] * loss[a] + size[b] * loss[b]
                limit += (temperatures[sweep] * draw) >> 16
                limit += np.int64(min(EXCESS * (beyond[a] + beyond[b]), MOST))
                if (
                    size[a] > shape[K]
                    and size[b] < shape[CAPACITY]
                    and (z >> np.uint64(20)) & np.uint64(1) == np.uint64(0)
                ):
                    moved = _relocated(s, a, b, limit, classes, promises, shape, table)
                elif leaves_too_little(s, a, b, limit, classes, bounds, shape, table):
                    moved = False
                else:
                    start = random_below(next_random(random), size[b])
                    moved = _exchanged(
                        s, a, b, start, limit, classes, promises, bound, bounds, shape, table
                    )
                if moved:
                    moves += 1
                    for c in (a, b):  # one call to compile
                        measure(c, classes, shape, table)
                        beyond[c] = excess(c, nobody, nobody, classes, promises, shape)
    return moves


@inner
def _relocated(s, a, b, limit, classes, promises, shape, table):
    """Moves slot s of class a to class b if that stays within the limit."""
    after = (classes.size[a] - 1) * loss_without(s, a, classes, shape, table)
    after += (classes.size[b] + 1) * loss_with(s, b, classes, shape, table)
    if after > limit:
        return False
    nobody = np.int64(NOBODY)
    now = excess(a, s, nobody, classes, promises, shape)
    if after + EXCESS * now > limit:
        return False
    now += excess(b, nobody, np.int64(classes.record[s]), classes, promises, shape)
    if after + EXCESS * now > limit:
        return False
    move(s, a, b, classes, shape)
    return True


@inner
def _exchanged(s, a, b, start, limit, classes, promises, bound, bounds, shape, table):
    """Exchanges slot s of class a for the first of class b that stays within the limit."""
    tried = np.int64(0)
    for _ in range(ASKED):
        p, after = first_fit(s, a, b, start, limit, classes, bound, bounds, shape, table, tried)
        if p < 0:
            return False
        one, other = np.int64(classes.record[s]), np.int64(classes.record[p])
        now = excess(a, s, other, classes, promises, shape)
        if after + EXCESS * now <= limit:
            now += excess(b, p, one, classes, promises, shape)
            if after + EXCESS * now <= limit:
                change_places(s, a, p, b, classes)
                return True
        place = p - b * shape[CAPACITY] - start
        tried = place + 1 if place >= 0 else place + classes.size[b] + 1
    return False
