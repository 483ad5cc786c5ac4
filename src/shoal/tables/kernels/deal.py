"""The records of each class of twins, dealt to as many classes as a unit has records.

codes: (d, n) int32. costs: as in `kernels.spans`. A *family* is the records of all units of one
class of representatives: run f of `members`, from starts[f] to starts[f + 1] - 1, in strata of one
sensitive value each; stratum e is the records ends[e - 1]..ends[e] - 1 of the run it lies in.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import span_loss

DEEPEST = 64
"""Halves that wait at most: one for each bit of a number of classes, and more."""


@outer
def deal(codes, costs, members, starts, strata, amounts, shares):
    """Deals each family to `shares` classes, alike in size and in how often each value occurs.

    members: (n,) int64, records, put into the order of their classes: those of family f make
        `shares` runs of equal length. strata: (families + 1,) int64, where each family's amounts
        begin in amounts: int64, how many records of each stratum a class gets.
    Families are halved again and again: of each stratum the lowest go to one side, on the attribute
    that then loses least.
    """
    largest = np.int64(0)
    for f in range(len(starts) - 1):
        largest = max(largest, starts[f + 1] - starts[f])
    keys = np.empty(largest, np.int64)
    best = np.empty(largest, np.int64)
    moved = np.empty(largest, np.int64)
    stack = np.empty((DEEPEST, 2), np.int64)  # where a part begins, and its classes
    for f in range(len(starts) - 1):
        amount = amounts[strata[f] : strata[f + 1]]
        size = np.int64(0)
        for e in range(len(amount)):
            size += amount[e]
        stack[0, 0] = starts[f]
        stack[0, 1] = shares
        top = 1
        while top > 0:
            top -= 1
            begin = stack[top, 0]
            classes = stack[top, 1]
            if classes == 1:
                continue
            low = classes // 2
            part = members[begin : begin + classes * size]
            _halve(codes, costs, part, amount, classes, low, keys, best, moved)
            stack[top, 0] = begin
            stack[top, 1] = low
            stack[top + 1, 0] = begin + low * size
            stack[top + 1, 1] = classes - low
            top += 2


@inner
def _halve(codes, costs, part, amount, classes, low, keys, best, moved):
    """Brings the records of the first `low` of these classes to the front, strata in their order on
    both sides.
    """
    least = np.inf
    for j in range(codes.shape[0]):
        loss = _sorted_by(codes, costs, part, amount, classes, low, j, keys)
        if loss < least:
            least = loss
            for i in range(len(part)):
                best[i] = keys[i]
    front = np.int64(0)
    back = np.int64(0)
    for e in range(len(amount)):
        back += amount[e] * low
    at = np.int64(0)
    for e in range(len(amount)):
        for i in range(amount[e] * classes):
            if i < amount[e] * low:
                moved[front] = part[best[at + i] & 0xFFFFFFFF]
                front += 1
            else:
                moved[back] = part[best[at + i] & 0xFFFFFFFF]
                back += 1
        at += amount[e] * classes
    for i in range(len(part)):
        part[i] = moved[i]


@inner
def _sorted_by(codes, costs, part, amount, classes, low, j, keys):
    """Sorts each stratum by attribute j, into places in the lower half of `keys`; what both sides
    then lose.
    """
    d = codes.shape[0]
    at = np.int64(0)
    for e in range(len(amount)):
        end = at + amount[e] * classes
        for i in range(at, end):
            keys[i] = (np.int64(codes[j, part[i]]) << 32) | i
        keys[at:end].sort()
        at = end
    bounds = np.empty((2, d, 2), np.int64)
    for side in range(2):
        for a in range(d):
            bounds[side, a, 0] = np.iinfo(np.int32).max
            bounds[side, a, 1] = -1
    rows = np.zeros(2, np.int64)
    at = np.int64(0)
    for e in range(len(amount)):
        for i in range(amount[e] * classes):
            side = 0 if i < amount[e] * low else 1
            record = part[keys[at + i] & 0xFFFFFFFF]
            rows[side] += 1
            for a in range(d):
                code = np.int64(codes[a, record])
                bounds[side, a, 0] = min(bounds[side, a, 0], code)
                bounds[side, a, 1] = max(bounds[side, a, 1], code)
        at += amount[e] * classes
    loss = 0.0
    for side in range(2):
        for a in range(d):
            loss += rows[side] * span_loss(bounds[side, a, 0], bounds[side, a, 1], a, costs)
    return loss
