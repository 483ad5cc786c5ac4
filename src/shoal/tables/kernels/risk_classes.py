"""Classes of a sample that trade loss for risk, and their unions, by a heap.

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
