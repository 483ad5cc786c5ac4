"""Classes of a sample that trade loss for risk: their unions, by a heap, and records that change
places, while loss + price * risk falls.

Throughout: people as in `SurveyedPeople`, classes as in `RiskClasses`, costs as in `spans`. A class
of f people who stand for F of the population has risk r(f, F) for each; a household of n people of
whom nobody is named with chance N adds n (1 - N) to the total risk, N the product of 1 - r over its
members. If r becomes r', what members of different households add changes by n N (r' - r) / (1 - r)
each: the sum of n N over a class is its `stake`.
"""

from math import log
from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.spans import box_loss, widen

SURE = 1 - 1e-9  # nobody is named with more than this chance, so that no product is 0
SMALL = 1e-9  # less is rounding
URGENT = 1e12  # by which a union comes first that a class needs to be allowed at all
MOST_ASKED = 64  # members of a class whose near records are looked at

TOTAL, TARGET, LEAST, HIGHEST = range(4)
"""The entries of `terms`: the total risk, what it may be, the least people and the greatest risk of
a class."""


class SurveyedPeople(NamedTuple):
    """Who is in the sample.

    codes: (n, d) int32. weight: (n,) float64. home: (n,) int32, the household of each.
    size, unnamed: (homes,) float64, n and N of each household.
    point: (n,) int32, which of the distinct rows each record is.
    first: (points + 1,) int64, where the records of each point begin in `order`, (n,) int32.
    near: (points, q) int32, the nearest points of each.
    """

    codes: np.ndarray
    weight: np.ndarray
    home: np.ndarray
    size: np.ndarray
    unnamed: np.ndarray
    point: np.ndarray
    first: np.ndarray
    order: np.ndarray
    near: np.ndarray


class RiskClasses(NamedTuple):
    """The classes as they are now, numbers from 0 to n - 1; those without people are free.

    label: (n,) int32. head: (n,) int32, a member of each class, -1 for none; after, before: (n,)
    int32, the members next to each. people: (n,) int64. weight, risk, stake, loss: (n,) float64,
    the last of one record. lo, hi: (n, d) int32.
    """

    label: np.ndarray
    head: np.ndarray
    after: np.ndarray
    before: np.ndarray
    people: np.ndarray
    weight: np.ndarray
    risk: np.ndarray
    stake: np.ndarray
    loss: np.ndarray
    lo: np.ndarray
    hi: np.ndarray


def classes_of(labels: np.ndarray, d: int) -> RiskClasses:
    """Room for the classes of these labels, (n,) int32 below n; `measure` fills it in."""
    n = len(labels)
    links = np.full((3, n), -1, dtype=np.int32)
    numbers = np.zeros((4, n))
    boxes = np.zeros((2, n, d), dtype=np.int32)
    return RiskClasses(labels, *links, np.zeros(n, dtype=np.int64), *numbers, *boxes)


@inner
def risk_of(people, weight):
    """The chance that one of these people is named, see the module `reidentification`."""
    p = min(people / weight, 1.0)
    q = 1 - p
    if people < 20 and p < 0.5:
        integral = -log(p) / q
        for number in range(1, people):
            integral = (1 / number - p * integral) / q
        return min(p * integral, SURE)
    term = 1.0
    total = 1.0
    number = 1
    while term > 1e-14 * total and number < 64:
        term *= number * q / (people + number)
        total += term
        number += 1
    return min(p / people * total, SURE)


@outer
def measure(people, classes, terms, costs):
    """Fills in everything that follows from the labels, and the total risk."""
    n = classes.label.shape[0]
    classes.head[:] = -1
    classes.people[:] = 0
    for i in range(n):
        _link(i, classes.label[i], classes)
    for h in range(people.size.shape[0]):
        people.unnamed[h] = 1.0
    for c in range(n):
        if classes.people[c] > 0:
            _refresh(c, people, classes, costs)
    for i in range(n):
        people.unnamed[people.home[i]] *= 1 - classes.risk[classes.label[i]]
    total = 0.0
    for h in range(people.size.shape[0]):
        total += people.size[h] * (1 - people.unnamed[h])
    terms[TOTAL] = total
    for c in range(n):
        restake(c, people, classes)


@inner
def _link(i, c, classes):
    other = classes.head[c]
    classes.label[i] = c
    classes.after[i] = other
    classes.before[i] = -1
    if other >= 0:
        classes.before[other] = i
    classes.head[c] = i
    classes.people[c] += 1


@inner
def _unlink(i, classes):
    c = classes.label[i]
    after = classes.after[i]
    before = classes.before[i]
    if after >= 0:
        classes.before[after] = before
    if before >= 0:
        classes.after[before] = after
    else:
        classes.head[c] = after
    classes.people[c] -= 1


@inner
def _refresh(c, people, classes, costs):
    """Box, weight, loss and risk of a class, by its members."""
    d = classes.lo.shape[1]
    i = classes.head[c]
    for j in range(d):
        classes.lo[c, j] = people.codes[i, j]
        classes.hi[c, j] = people.codes[i, j]
    weight = 0.0
    while i >= 0:
        weight += people.weight[i]
        widen(classes.lo, classes.hi, c, people.codes, people.codes, i)
        i = classes.after[i]
    classes.weight[c] = weight
    classes.risk[c] = risk_of(classes.people[c], weight)
    classes.loss[c] = box_loss(classes.lo, classes.hi, c, classes.lo, classes.hi, c, costs)


@inner
def restake(c, people, classes):
    stake = 0.0
    i = classes.head[c]
    while i >= 0:
        stake += people.size[people.home[i]] * people.unnamed[people.home[i]]
        i = classes.after[i]
    classes.stake[c] = stake


@inner
def _scale(c, factor, people, classes, terms):
    """The chance that nobody is named, times this factor in the household of every member."""
    i = classes.head[c]
    while i >= 0:
        h = people.home[i]
        now = people.unnamed[h] * factor
        terms[TOTAL] -= people.size[h] * (now - people.unnamed[h])
        people.unnamed[h] = now
        i = classes.after[i]


@inner
def _settle(c, people, classes, terms, costs):
    """A class whose members changed: everything about it; nothing where it is empty."""
    if classes.people[c] > 0:
        _refresh(c, people, classes, costs)
        _scale(c, 1 - classes.risk[c], people, classes, terms)
        restake(c, people, classes)


@inner
def move_record(i, b, people, classes, terms, costs):
    """Record i goes to class b, which may be empty."""
    a = classes.label[i]
    _scale(a, 1 / (1 - classes.risk[a]), people, classes, terms)
    if classes.people[b] > 0:
        _scale(b, 1 / (1 - classes.risk[b]), people, classes, terms)
    _unlink(i, classes)
    _link(i, b, classes)
    _settle(a, people, classes, terms, costs)
    _settle(b, people, classes, terms, costs)


@inner
def _unite(a, b, people, classes, terms, costs):
    """Class b joins class a."""
    for c in (a, b):
        _scale(c, 1 / (1 - classes.risk[c]), people, classes, terms)
    while classes.head[b] >= 0:
        i = classes.head[b]
        _unlink(i, classes)
        _link(i, a, classes)
    _settle(a, people, classes, terms, costs)


@inner
def is_allowed(people, risk, terms):
    return people >= terms[LEAST] and risk <= terms[HIGHEST]


@inner
def more_risk(c, risk, classes):
    """What the members of a class add to the total if their risk becomes this."""
    return classes.stake[c] * (risk - classes.risk[c]) / (1 - classes.risk[c])


@inner
def some_record(point, turn, people):
    """A record of a point, another one in each turn."""
    first = people.first[point]
    return people.order[first + turn % (people.first[point + 1] - first)]


# Unions: most risk removed per loss added first, until the total is low enough.


def unite(people, classes, terms, costs):
    """Unites near classes until all are allowed and the total risk is at most its target.

    Returns the loss added per risk removed by the last union, 0 where there was none.
    """
    n = len(classes.label)
    heap, partner = np.empty((2, n), dtype=np.int64)
    return _unite_all(people, classes, terms, costs, np.empty(n), partner, heap)


@outer
def _unite_all(people, classes, terms, costs, score, partner, heap):
    """score: (n,) float64, of the best union of each class; partner: (n,) int64, with whom. heap:
    classes by the scores that they had when they were put in."""
    n = classes.label.shape[0]
    waiting = 0
    forbidden = 0
    for c in range(n):
        if classes.people[c] > 0:
            forbidden += not is_allowed(classes.people[c], classes.risk[c], terms)
            _find_partner(c, people, classes, terms, costs, score, partner)
            if partner[c] >= 0:
                heap[waiting] = c
                waiting += 1
    for place in range(waiting // 2 - 1, -1, -1):
        _sink(heap, place, waiting, score)
    price = 0.0
    while waiting > 0 and (forbidden > 0 or terms[TOTAL] > terms[TARGET]):
        c = heap[0]
        known = score[c]
        if classes.people[c] > 0:
            _find_partner(c, people, classes, terms, costs, score, partner)
        # a score that fell since waits for its turn
        if classes.people[c] == 0 or partner[c] < 0:
            waiting -= 1
            heap[0] = heap[waiting]
            _sink(heap, 0, waiting, score)
            continue
        if score[c] < known * (1 - 1e-9):
            _sink(heap, 0, waiting, score)
            continue
        b = partner[c]
        for each in (b, c):
            forbidden -= not is_allowed(classes.people[each], classes.risk[each], terms)
        if score[c] < URGENT * 1e-3:
            price = 1 / score[c]
        _unite(c, b, people, classes, terms, costs)
        forbidden += not is_allowed(classes.people[c], classes.risk[c], terms)
        _find_partner(c, people, classes, terms, costs, score, partner)
        if partner[c] < 0:
            score[c] = 0.0
        _sink(heap, 0, waiting, score)
    return price


@inner
def _sink(heap, place, waiting, score):
    while True:
        best = place
        for child in (2 * place + 1, 2 * place + 2):
            if child < waiting and score[heap[child]] > score[heap[best]]:
                best = child
        if best == place:
            return
        heap[place], heap[best] = heap[best], heap[place]
        place = best


@inner
def _find_partner(c, people, classes, terms, costs, score, partner):
    """The near class whose union with c removes most risk per loss added."""
    partner[c] = -1
    score[c] = 0.0
    urgent = not is_allowed(classes.people[c], classes.risk[c], terms)
    i = classes.head[c]
    asked = 0
    last = -1
    seen = -1
    while i >= 0 and asked < MOST_ASKED:
        u = people.point[i]
        i = classes.after[i]
        if u == last:
            continue
        last = u
        asked += 1
        for q in range(people.near.shape[1]):
            b = classes.label[some_record(people.near[u, q], asked, people)]
            if b == seen:
                continue
            seen = b
            if b == c:
                continue
            added, risk = _union(c, b, people, classes, costs)
            removed = -more_risk(c, risk, classes) - more_risk(b, risk, classes)
            worth = removed / (added + SMALL)
            if urgent:
                worth = URGENT / (added + SMALL)
            if worth > score[c]:
                score[c] = worth
                partner[c] = b


@inner
def _union(a, b, people, classes, costs):
    """The loss that a union adds, and the risk of its members."""
    both = classes.people[a] + classes.people[b]
    loss = box_loss(classes.lo, classes.hi, a, classes.lo, classes.hi, b, costs)
    apart = classes.people[a] * classes.loss[a] + classes.people[b] * classes.loss[b]
    return both * loss - apart, risk_of(both, classes.weight[a] + classes.weight[b])


# Records that change places.


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
