"""Records of a sample that change places, while loss + price * risk falls.

people, classes, terms, costs: as in `risk_classes`.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import box_loss, widen
from shoal.tables.kernels.risk_classes import (
    SMALL,
    is_allowed,
    more_risk,
    move_record,
    restake,
    risk_of,
    some_record,
)

MOST_EXCHANGED = 12  # members of a class that exchanges are tried with


def improve(people, classes, terms, costs, visits, price, turn):
    """Every record of `visits` moves, or changes places with one of another class, where that
    lowers loss + price * risk; returns how many did.

    visits: (m,) int32. price: of a unit of the total risk, in loss. turn: which records stand for
    their points.
    """
    room = np.empty((2, 1, classes.lo.shape[1]), dtype=np.int32)
    return _improve(people, classes, terms, costs, visits, float(price), turn, room)


@outer
def _improve(people, classes, terms, costs, visits, price, turn, room):
    """room: (2, 1, d) int32, for the bounds of a class that another record comes to."""
    free = np.empty(classes.label.shape[0] + 1, np.int64)
    count = 0
    for c in range(classes.label.shape[0]):
        if classes.people[c] == 0:
            free[count] = c
            count += 1
        else:
            restake(c, people, classes)
    moved = 0
    for i in visits:
        a = classes.label[i]
        if count == 0 or classes.people[free[count - 1]] > 0:
            empty = -1
        else:
            empty = free[count - 1]
        best, b, other = _best_move(i, empty, people, classes, terms, costs, price, turn, room)
        if best >= -SMALL:
            continue
        moved += 1
        if other >= 0:
            move_record(other, a, people, classes, terms, costs)
        if b == empty:
            count -= 1
        move_record(i, b, people, classes, terms, costs)
        if classes.people[a] == 0:
            free[count] = a
            count += 1
    return moved


@inner
def _loss_without(c, i, j, people, classes, costs, room):
    """The loss of class c without record i but with j, if that is one."""
    lo = room[0]
    hi = room[1]
    for x in range(lo.shape[1]):
        lo[0, x] = 2147483647
        hi[0, x] = -1
    m = classes.head[c]
    while m >= 0:
        if m != i:
            widen(lo, hi, 0, people.codes, people.codes, m)
        m = classes.after[m]
    if j >= 0:
        widen(lo, hi, 0, people.codes, people.codes, j)
    return box_loss(lo, hi, 0, lo, hi, 0, costs)


@inner
def _best_move(i, empty, people, classes, terms, costs, price, turn, room):
    """By how much loss + price * risk changes at best, the class that i goes to, and the record
    that comes for it, -1 for none."""
    a = classes.label[i]
    size = classes.people[a]
    stake = people.size[people.home[i]] * people.unnamed[people.home[i]] / (1 - classes.risk[a])
    now = size * classes.loss[a]
    best = 0.0
    to = np.int64(-1)
    other = np.int64(-1)
    left = 0.0  # of loss + price * risk, what leaving a changes
    can_leave = True
    if size > 1:
        rest = classes.weight[a] - people.weight[i]
        risk = risk_of(size - 1, rest)
        can_leave = is_allowed(size - 1, risk, terms)
        left = (size - 1) * _loss_without(a, i, -1, people, classes, costs, room) - now
        staying = classes.stake[a] / (1 - classes.risk[a]) - stake
        left += price * staying * (risk - classes.risk[a])
        alone = risk_of(1, people.weight[i])
        if can_leave and empty >= 0 and is_allowed(1, alone, terms):
            best = left + price * stake * (alone - classes.risk[a])
            to = np.int64(empty)
    u = people.point[i]
    seen = np.int64(a)
    for q in range(-1, people.near.shape[1]):
        v = u if q < 0 else people.near[u, q]
        b = np.int64(classes.label[some_record(v, turn, people)])
        if b == seen:
            continue
        seen = b
        if b == a:
            continue
        if can_leave:
            both = classes.people[b] + 1
            risk = risk_of(both, classes.weight[b] + people.weight[i])
            loss = box_loss(classes.lo, classes.hi, b, people.codes, people.codes, i, costs)
            change = left + both * loss - classes.people[b] * classes.loss[b]
            change += price * (stake * (risk - classes.risk[a]) + more_risk(b, risk, classes))
            if change < best:
                best = change
                to = b
                other = np.int64(-1)
        if size == 1 or classes.people[b] > MOST_EXCHANGED or size > MOST_EXCHANGED:
            continue
        j = classes.head[b]
        while j >= 0:
            if people.point[j] != u:
                change = _exchange(i, j, people, classes, terms, costs, price, room)
                if change < best:
                    best = change
                    to = b
                    other = np.int64(j)
            j = classes.after[j]
    return best, to, other


@inner
def _exchange(i, j, people, classes, terms, costs, price, room):
    """By how much loss + price * risk changes if i and j change places; 0 where they may not."""
    a = classes.label[i]
    b = classes.label[j]
    loss_a = _loss_without(a, i, j, people, classes, costs, room)
    loss_b = _loss_without(b, j, i, people, classes, costs, room)
    change = classes.people[a] * (loss_a - classes.loss[a])
    change += classes.people[b] * (loss_b - classes.loss[b])
    more = people.weight[j] - people.weight[i]
    of_a = risk_of(classes.people[a], classes.weight[a] + more)
    of_b = risk_of(classes.people[b], classes.weight[b] - more)
    if not (
        is_allowed(classes.people[a], of_a, terms) and is_allowed(classes.people[b], of_b, terms)
    ):
        return 0.0
    return change + price * (more_risk(a, of_a, classes) + more_risk(b, of_b, classes))
