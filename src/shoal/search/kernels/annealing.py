"""Simulated annealing over finished classes: records of near classes change places.

Classes that lose next to nothing are passed over: their members have little to gain, and members of
other classes find them. For each member of the others, one of the records nearest to it names the
second class; that class's members are tried from a random one on, and the first exchange is made
that raises the total loss by less than a random amount: -ln u times the temperature (Metropolis and
others, 1953, drawn before and not after the price is known, so that most tries end early). Sizes
stay as they are.

Classes of one block are searched by themselves: blocks share the arrays, and none reads what
another one changes but `class_of`, where a record of another block stays in another block.
"""

import numpy as np

from shoal.data.numba_kernels import inlined, outer
from shoal.search.kernels.class_promises import LARGEST, NOBODY, excess, keep, learn
from shoal.search.kernels.slots import (
    CAPACITY,
    NOISE_BITS,
    PER_TREE,
    TREES,
    K,
    SlotClasses,
    change_places,
    first_fit,
    leaves_too_little,
    loss_with,
    loss_without,
    measure,
    move,
    next_random,
    random_below,
)


def anneal(
    rows, record, size, loss, boxes, class_of, near, bound, shape, table, temperatures, block
):
    """Tries members of the block's classes once at each temperature; returns the exchanges made.

    near: (n, q) int32, the records nearest to each. bound: (2, n) int32, a kind and a subject, or
    -1, of each record: equal kinds may change places, if neither subject has another record in
    either class; (2, 0) where all may. temperatures: (sweeps + 1024,) int64: one for each sweep,
    and then what -ln u may be, in 65,536ths. block: (4,) uint64: the state of the random numbers,
    the first class, the one after the last, and the least loss of a class whose members are tried,
    in 1,024ths of the mean.
    """
    slots = rows, record, size, loss, boxes, class_of
    numbers = np.concatenate([shape, temperatures])
    return anneal_within(*slots, near, bound, table, numbers, block)


@outer
def anneal_within(rows, record, size, loss, boxes, class_of, near, bound, table, numbers, block):
    """numbers: int64, `shape` and behind it `temperatures`."""
    temperatures = numbers[PER_TREE + 2 * numbers[TREES] :]
    shape = numbers[: PER_TREE + 2 * numbers[TREES]]
    classes = SlotClasses(rows, record, size, loss, boxes, class_of)
    random = block[:1]
    first = np.int64(block[1])
    end = np.int64(block[2])
    for c in range(first, end):
        if size[c] > 0:
            measure(c, classes, shape, table)
    noise = temperatures.shape[0] - (1 << NOISE_BITS)
    moves = np.int64(0)
    for sweep in range(noise):
        least = _least_loss(first, end, np.int64(block[3]), classes)
        for a in range(first, end):
            if loss[a] < least:
                continue
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
                elif not leaves_too_little(s, a, b, limit, classes, shape, table):
                    start = random_below(next_random(random), size[b])
                    p, _ = first_fit(s, a, b, start, limit, classes, bound, shape, table)
                    moved = p >= 0
                    if moved:
                        change_places(s, a, p, b, classes)
                if moved:
                    moves += 1
                    for c in (a, b):  # one call to compile
                        measure(c, classes, shape, table)
    return moves


@inlined
def _least_loss(first, end, share, classes):
    """So many 1,024ths of the mean loss of these classes."""
    total = np.int64(0)
    filled = np.int64(0)
    for c in range(first, end):
        if classes.size[c] > 0:
            total += classes.loss[c]
            filled += 1
    return total * share // (max(filled, np.int64(1)) << 10)


# Simulated annealing as in `annealing`, over classes that promise more than a number of records.
#
# What classes exceed their promises by never grows: a class that keeps them keeps them, and one
# that does not comes nearer. What a move costs is asked first, since it is cheap and mostly
# enough to give up.


EXCESS, MOST = 1e15, 1e18
"""What an excess of 1 costs, in units of loss: more than all that a move can gain; and no more."""

ASKED = 3
"""Exchanges of a record with a class that are put to the promises at most."""


@outer
def anneal_promised(classes, promises, near, bound, shape, table, temperatures, block):
    """Anneals where every move is asked for promises, `ClassPromises`; returns the moves made."""
    random = block[:1]
    first = np.int64(block[1])
    end = np.int64(block[2])
    size, loss, beyond = classes.size, classes.loss, promises.beyond
    for c in range(first, end):
        if size[c] > 0:
            measure(c, classes, shape, table)
        if 0 < size[c] <= LARGEST:
            learn(c, classes, promises, shape)
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
                limit += np.int64(min(EXCESS * (beyond[a - first] + beyond[b - first]), MOST))
                relocates = (
                    size[a] > shape[K]
                    and size[b] < shape[CAPACITY]
                    and (z >> np.uint64(20)) & np.uint64(1) == np.uint64(0)
                )
                start = np.int64(0)
                if not relocates:
                    if leaves_too_little(s, a, b, limit, classes, shape, table):
                        continue
                    start = random_below(next_random(random), size[b])
                p = _partner(
                    s, a, b, start, relocates, limit, classes, promises, bound, shape, table
                )
                if p == NOBODY - 1:
                    continue
                leaving = np.int64(classes.record[s])
                coming = np.int64(classes.record[p]) if p >= 0 else np.int64(NOBODY)
                moves += 1
                for c in (a, b):  # one call to compile
                    keep(c, leaving, coming, classes, promises, shape)
                    leaving, coming = coming, leaving
                if relocates:
                    move(s, a, b, classes, shape)
                else:
                    change_places(s, a, p, b, classes)
                for c in (a, b):
                    measure(c, classes, shape, table)
    return moves


@inlined
def _partner(s, a, b, start, relocates, limit, classes, promises, bound, shape, table):
    """The first slot of class b that slot s of class a may be exchanged for within the limit, -1
    where it may move over instead, if it relocates; -2 where it may not.
    """
    p, tried = np.int64(NOBODY), np.int64(0)
    leaving, coming = np.int64(classes.record[s]), np.int64(NOBODY)
    for _ in range(1 if relocates else ASKED):
        if relocates:
            after = (classes.size[a] - 1) * loss_without(s, a, classes, shape, table)
            after += (classes.size[b] + 1) * loss_with(s, b, classes, shape, table)
            if after > limit:
                break
        else:
            p, after = first_fit(s, a, b, start, limit, classes, bound, shape, table, tried)
            if p < 0:
                break
            coming = np.int64(classes.record[p])
        now = 0.0
        for c in (a, b):  # one call to compile
            if after + EXCESS * now <= limit:
                now += excess(c, leaving, coming, classes, promises, shape, np.bool_(False))
            leaving, coming = coming, leaving
        if after + EXCESS * now <= limit:
            return p
        place = p - b * shape[CAPACITY] - start
        tried = place + 1 if place >= 0 else place + classes.size[b] + 1
    return np.int64(NOBODY - 1)
