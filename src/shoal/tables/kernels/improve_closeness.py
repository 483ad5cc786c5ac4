"""A class that is too far from the table replaces members by the nearest records that are left.

Throughout: pool, count and distance as in `kernels.unassigned_pool`, targets and runs as in
`kernels.closeness`. members: (size,) int64, the positions in the pool of the class's members;
records: (size,) int64, their records; e counts members. excess: (size,) float64, the excess of the
class with each member replaced by the candidate. The excess of a class is the greatest distance -
limit over the attributes; the class is close enough when it is at most 0.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner
from shoal.search.kernels.closeness import (
    ENOUGH,
    FIRST,
    TREE,
    change_above,
    change_at_node,
    change_below,
    count_members,
    members_up_to,
    parent_of,
    refresh_class,
    runs_of,
    unit_cost,
)
from shoal.tables.kernels.unassigned_pool import squared_distances

_runs_of = inner(runs_of)

LAZY = 6
"""Candidates that are looked for one by one before the rest is ordered as a heap."""


class Improvement(NamedTuple):
    """What is the same for all classes, and work space.

    subject_ids: (n,) int32, the person of each record; empty where each is its own.
    most: int64, records tried for a class at most.
    follow: bool, whether candidates are nearest to the mean of the class as it changes; else to the
        centre that it was built around.
    counts: (nodes of all trees,) int64, zeros between classes.
    marks, gains: (nodes of all trees,) int64, work space: which candidate a node lies above, and
        what that one adds to the cost of all nodes below.
    """

    subject_ids: np.ndarray
    most: int
    follow: bool
    counts: np.ndarray
    marks: np.ndarray
    gains: np.ndarray


@inner
def improvement(subject_ids, most, follow, nodes):
    """Work space for as many nodes."""
    counts = np.zeros(nodes, np.int64)
    marks = np.zeros(nodes, np.int64)
    gains = np.zeros(nodes, np.int64)
    return Improvement(subject_ids, np.int64(most), follow, counts, marks, gains)


@inner
def improve_closeness(members, pool, count, number, distance_to, plan, targets):
    """Replaces members by the nearest records left, while the class is too far and it helps.

    members: changed in place; they are marked as assigned, and stay so. number: of the class, from
    1. distance_to: measured anew after each replacement where `plan.follow`.
    """
    assigned, tried = pool.assigned, pool.tried
    counts, subject_ids, follow, most = plan.counts, plan.subject_ids, plan.follow, plan.most
    size = len(members)
    several = len(targets.limit)
    if several == 0:
        return
    records = np.empty(size, np.int64)
    for e in range(size):
        records[e] = pool.ids[members[e]]
    start = np.zeros(2, np.int64)
    start[1] = size
    runs = _runs_of(size, 1, several)
    refresh_class(records, start, np.int64(0), runs, counts, targets)
    current, lead = _greatest_excess(size, runs, targets)
    excess = np.empty(size)
    centre = np.empty(pool.points.shape[0])
    waiting = np.empty(count if current > ENOUGH else 0, np.int64)
    lazy = np.int64(LAZY)
    tries = 0
    held = np.int64(0)
    renew = current > ENOUGH  # whether candidates are to be collected anew
    while renew or (current > ENOUGH and held > 0 and tries < most):
        if renew:
            if follow:
                _set_to_mean(centre, members, pool)
                squared_distances(pool, count, centre, distance_to)
            held = _fill_waiting(waiting, pool, count, number)
            lazy = np.int64(LAZY)
            renew = False
            continue
        lazy = _nearest_to_end(waiting, held, lazy, distance_to)
        held -= 1
        candidate = waiting[held]
        record = np.int64(pool.ids[candidate])
        tries += 1
        tried[candidate] = number
        stamp = (np.int64(number) << 32) + tries
        # the excess with each member replaced; the attribute that is farthest now comes first, as
        # no replacement helps that doesn't help there
        excess[:] = -1.0
        least = -np.inf
        turn = 0
        while turn < several and least < current:
            s = (lead + turn) % several
            y = np.int64(targets.codes[record, s])
            if targets.layout[s, TREE] == 1:
                least = _measure_in_tree(y, records, s, stamp, excess, runs, plan, targets)
            else:
                least = _measure_in_order(y, size, s, excess, runs, targets)
            turn += 1
        if not least < current:
            continue
        best = _best_replacement(record, members, records, excess, subject_ids)
        if best < 0 or not excess[best] < current:
            continue
        # the candidate takes the member's place; the member is free, but not for this class
        count_members(np.int64(-1), records, start, np.int64(0), counts, targets)
        assigned[members[best]] = False
        tried[members[best]] = number
        assigned[candidate] = True
        members[best] = candidate
        records[best] = record
        refresh_class(records, start, np.int64(0), runs, counts, targets)
        current, lead = _greatest_excess(size, runs, targets)
        renew = follow and current > ENOUGH
    count_members(np.int64(-1), records, start, np.int64(0), counts, targets)


@inner
def _greatest_excess(size, runs, targets):
    """The excess of the class, and which attribute makes it so; the last one of equals."""
    result = -1.0
    lead = np.int64(0)
    for s in range(len(targets.limit)):
        beyond = runs.cost[s, 0] / unit_cost(size, s, targets) - targets.limit[s]
        if beyond >= result:
            result = beyond
            lead = np.int64(s)
    return result, lead


@inner
def _set_to_mean(centre, members, pool):
    points = pool.points
    for j in range(len(centre)):
        total = 0.0
        for e in range(len(members)):
            total += points[j, members[e]]
        centre[j] = total / len(members)


# Candidates, nearest first


@inner
def _fill_waiting(waiting, pool, count, number):
    """The unassigned positions that were not tried for this class, in any order; how many."""
    assigned, tried = pool.assigned, pool.tried
    held = 0
    for i in range(count):
        if not assigned[i] and tried[i] != number:
            waiting[held] = i
            held += 1
    return held


@inner
def _nearest_to_end(waiting, held, lazy, distance_to):
    """Moves the nearest of the first `held` candidates to their end; `lazy` for the next call.

    lazy: how many are still looked for one by one, after which the rest becomes a heap whose
    nearest is on top; -1 from then on.
    """
    nearest = 0
    if lazy > 0:
        for at in range(1, held):
            if is_farther(waiting[nearest], waiting[at], distance_to):
                nearest = at
        lazy -= 1
    held -= 1
    waiting[nearest], waiting[held] = waiting[held], waiting[nearest]
    if lazy == 0:
        for at in range(held // 2 - 1, -1, -1):
            _sink_nearest(waiting, at, held, distance_to)
        lazy = -1
    elif lazy < 0:
        _sink_nearest(waiting, np.int64(0), held, distance_to)
    return lazy


@inner
def is_farther(a, b, distance_to):
    """Whether position a is farther than b; of equals the higher one is."""
    return distance_to[a] > distance_to[b] or (distance_to[a] == distance_to[b] and a > b)


@inner
def _sink_nearest(heap, at, held, distance_to):
    """Moves an entry down a heap whose nearest is on top."""
    while 2 * at + 1 < held:
        child = 2 * at + 1
        if child + 1 < held and is_farther(heap[child], heap[child + 1], distance_to):
            child += 1
        if not is_farther(heap[at], heap[child], distance_to):
            return
        heap[at], heap[child] = heap[child], heap[at]
        at = child


# What a candidate changes


@inner
def _best_replacement(record, members, records, excess, subject_ids):
    """The member whose replacement brings the class closest, the lowest of equals; -1 for none.

    Where the candidate's person is in the class already, only that person's record may be replaced.
    """
    same = 0
    only = -1
    if len(subject_ids) > 0:
        for e in range(len(records)):
            if subject_ids[records[e]] == subject_ids[record]:
                same += 1
                only = e
    if same > 0:
        return only if same == 1 else -1
    best = 0
    for e in range(1, len(members)):
        if excess[e] < excess[best] or (excess[e] == excess[best] and members[e] < members[best]):
            best = e
    return best


@inner
def _measure_in_order(y, size, s, excess, runs, targets):
    """Raises `excess` to what ordered attribute s makes it; returns the least of it.

    y: the candidate's value.
    """
    sums, rank = runs.sums, runs.rank
    p = members_up_to(y, np.int64(0), size, s, runs)
    cost = runs.cost[s, 0]
    below = cost + change_below(y, p, np.int64(0), size, s, runs, targets)
    above = cost + change_above(y, p, np.int64(0), size, s, runs, targets)
    unit = unit_cost(size, s, targets)
    limit = targets.limit[s]
    least = np.inf
    for e in range(size):
        r = rank[s, e]
        if r <= p:
            after = below + sums[s, 1, r] - sums[s, 0, r]
        else:
            after = above + sums[s, 2, r] - sums[s, 1, r]
        excess[e] = max(excess[e], after / unit - limit)
        least = min(least, excess[e])
    return least


@inner
def _measure_in_tree(y, records, s, stamp, excess, runs, plan, targets):
    """Raises `excess` to what tree s makes it; returns the least of it.

    y: the candidate's leaf. Nodes above both the candidate and a member don't change. stamp: int64,
    another one for each candidate.
    """
    counts, marks, gains = plan.counts, plan.marks, plan.gains
    codes = targets.codes
    size = len(records)
    first = targets.layout[s, FIRST]
    # from the candidate's leaf up: what it adds below each node
    added = np.int64(0)
    node = y
    while node >= 0:
        marks[first + node] = stamp
        gains[first + node] = added
        added += change_at_node(np.int64(1), node, size, s, counts, targets)
        node = parent_of(node, s, targets)
    cost = runs.cost[s, 0]
    unit = unit_cost(size, s, targets)
    limit = targets.limit[s]
    least = np.inf
    for e in range(size):
        # from the member's leaf up to the first node that is above the candidate, too
        node = np.int64(codes[records[e], s])
        change = np.int64(0)
        while marks[first + node] != stamp:
            change += change_at_node(np.int64(-1), node, size, s, counts, targets)
            node = parent_of(node, s, targets)
        change += gains[first + node]
        excess[e] = max(excess[e], (cost + change) / unit - limit)
        least = min(least, excess[e])
    return least
