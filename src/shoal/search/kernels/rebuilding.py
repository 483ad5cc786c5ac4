"""Moves of the local search over finished classes: records of near classes change places by
simulated annealing; a class gives way to one that is grown anew, or to its neighbours.

Rebuilding: a class and some near it are taken apart in one of two ways. *Grow*: one of its members
starts a new class, which grows to k by the member that costs least among those of the class and
those that its neighbours can spare; what is then left of the class stays if it has k members, else
each goes to the neighbour that it costs least. *Dissolve*: all of them go. Either is kept only if
the total loss rises by less than a random amount, as when annealing, and undone otherwise. So a
class ends with k members or more, or with nobody.

Annealing: classes that lose next to nothing are passed over: their members have little to gain, and
members of other classes find them. For each member of the others, one of the records nearest to it
names the second class; that class's members are tried from a random one on, and the first exchange
is made that raises the total loss by less than a random amount: -ln u times the temperature
(Metropolis and others, 1953, drawn before and not after the price is known, so that most tries end
early). Sizes stay as they are.

Classes of one block are searched by themselves: blocks share the arrays, and none reads what
another one changes but `class_of`, where a record of another block stays in another block. So it is
when rebuilding, too.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inlined, inner, outer
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

NEIGHBOURS = 12
"""Near classes that take part at most."""

NEVER = 1 << 62


class Rebuild(NamedTuple):
    """Room for one attempt."""

    neighbours: np.ndarray  # (NEIGHBOURS + 1,) int64, classes that take part; then the class itself
    log: np.ndarray  # (moves, 2) int64, from which class to which the latter's last record moved
    counts: np.ndarray  # (2,) int64: how many neighbours there are, how many moves were made
    # (NEIGHBOURS + 1, capacity) int64, what each member would cost the new class
    growth: np.ndarray
    relief: np.ndarray  # (NEIGHBOURS + 1, capacity) int64, what its own class would gain


@outer
def rebuild(rows, record, size, loss, boxes, class_of, near, shape, table, temperatures, block):
    """Takes every class of the block apart once; returns how many attempts were kept.

    near: (n, q) int32, near records of other places; temperatures: as in `anneal`, for one
    sweep. block: as in `anneal`, which leaves boxes and losses as they must be. Classes without
    members are free to be filled.
    """
    classes = SlotClasses(rows, record, size, loss, boxes, class_of)
    random = block[:1]
    first = np.int64(block[1])
    end = np.int64(block[2])
    empty = np.int64(-1)
    for c in range(first, end):
        if size[c] == 0:
            empty = c
    made = Rebuild(
        np.empty(NEIGHBOURS + 1, np.int64),
        np.empty((4 * shape[CAPACITY], 2), np.int64),
        np.zeros(2, np.int64),
        np.empty((NEIGHBOURS + 1, shape[CAPACITY]), np.int64),
        np.empty((NEIGHBOURS + 1, shape[CAPACITY]), np.int64),
    )
    kept = np.int64(0)
    for a in range(first, end):
        if size[a] == 0:
            continue
        z = next_random(random)
        draw = temperatures[1 + np.int64(z & np.uint64((1 << NOISE_BITS) - 1))]
        limit = (temperatures[0] * draw) >> 16
        grows = empty >= 0 and (z >> np.uint64(16)) & np.uint64(3) != np.uint64(0)
        s = a * shape[CAPACITY] + random_below(z, size[a])
        _find_neighbours(record[s], a, first, end, near, classes, made)
        limit += size[a] * loss[a]
        for t in range(made.counts[0]):
            c = made.neighbours[t]
            limit += size[c] * loss[c]
        fits = True
        if grows:
            fits = _grow(s, a, empty, classes, made, shape, table)
        if fits and size[a] < shape[K]:
            fits = _dissolve(a, grows, empty, classes, made, shape, table)
        after = np.int64(0)
        if fits:
            after = size[a] * loss[a]
            if grows:
                after += size[empty] * loss[empty]
            for t in range(made.counts[0]):
                c = made.neighbours[t]
                after += size[c] * loss[c]
        if not fits or after > limit:
            _undo(classes, made, shape, table)
            continue
        kept += 1
        if grows:
            empty = np.int64(-1)
            for c in range(first, end):
                if size[c] == 0:
                    empty = c
                    break
        elif size[a] == 0:
            empty = a
    return kept


@inner
def _find_neighbours(i, a, first, end, near, classes, made):
    found = np.int64(0)
    for t in range(near.shape[1]):
        c = np.int64(classes.class_of[near[i, t]])
        if c == a or c < first or c >= end or found == NEIGHBOURS:
            continue
        known = False
        for u in range(found):
            known |= made.neighbours[u] == c
        if not known:
            made.neighbours[found] = c
            found += 1
    made.counts[0] = found
    made.counts[1] = 0


@inner
def _move(s, a, b, classes, made, shape, table):
    """Moves a record, and notes it in the log."""
    made.log[made.counts[1], 0] = a
    made.log[made.counts[1], 1] = b
    made.counts[1] += 1
    move(s, a, b, classes, shape)
    for c in (a, b):  # one call to compile
        if classes.size[c] > 0:
            measure(c, classes, shape, table)


@inner
def _grow(s, a, new, classes, made, shape, table):
    """Slot s of class a starts class `new`, which grows to k members; False if none is left."""
    size = classes.size
    loss = classes.loss
    growth = made.growth
    relief = made.relief
    members = made.counts[0]
    made.neighbours[members] = a
    for t in range(members):
        _price_relief(t, classes, made, shape, table)
    # whoever stays in class a has to leave it in the end, or forms a class as before
    for p in range(size[a]):
        relief[members, p] = loss[a]
    at = s - a * shape[CAPACITY]
    of = members
    grown = np.int64(-1)
    while at >= 0:
        c = made.neighbours[of]
        growth[of, at] = growth[of, size[c] - 1]
        _move(c * shape[CAPACITY] + at, c, new, classes, made, shape, table)
        if of < members:
            _price_relief(of, classes, made, shape, table)
        if size[new] == shape[K]:
            return True
        best = np.int64(NEVER)
        at = np.int64(-1)
        for t in range(members + 1):
            c = made.neighbours[t]
            if t < members and size[c] <= shape[K]:
                continue
            for p in range(size[c]):
                if loss[new] != grown:
                    more = loss_with(c * shape[CAPACITY] + p, new, classes, shape, table)
                    growth[t, p] = shape[K] * (more - loss[new])
                if growth[t, p] - relief[t, p] < best:
                    best = growth[t, p] - relief[t, p]
                    at = np.int64(p)
                    of = t
        grown = loss[new]
    return False


@inner
def _price_relief(t, classes, made, shape, table):
    """What class t of the neighbours gains by each member that leaves it."""
    c = made.neighbours[t]
    size = classes.size[c]
    if size <= shape[K]:
        return
    for p in range(size):
        without = loss_without(c * shape[CAPACITY] + p, c, classes, shape, table)
        made.relief[t, p] = size * classes.loss[c] - (size - 1) * without


@inner
def _dissolve(a, grown, new, classes, made, shape, table):
    """Every member of class a goes where it costs least nearby; False where all are full."""
    size = classes.size
    while size[a] > 0:
        s = a * shape[CAPACITY] + size[a] - 1
        best = np.int64(NEVER)
        of = np.int64(-1)
        for t in range(made.counts[0] + 1):
            if t == made.counts[0] and not grown:
                break
            c = new if t == made.counts[0] else made.neighbours[t]
            if size[c] == 0 or size[c] >= shape[CAPACITY]:
                continue
            cost = (size[c] + 1) * loss_with(s, c, classes, shape, table)
            cost -= size[c] * classes.loss[c]
            if cost < best:
                best = cost
                of = c
        if of < 0:
            return False
        _move(s, a, of, classes, made, shape, table)
    return True


@inner
def _undo(classes, made, shape, table):
    moves = made.counts[1]
    while moves > 0:
        moves -= 1
        made.counts[1] = moves
        a = made.log[moves, 0]
        b = made.log[moves, 1]
        s = b * shape[CAPACITY] + classes.size[b] - 1
        _move(s, b, a, classes, made, shape, table)


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


# Simulated annealing as by `anneal`, over classes that promise more than a number of records.
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
