"""Classes exchange records: less squared error, and no farther from the whole table than allowed.

Throughout: rows (n, d) float64, the records as points; subject_ids (n,) int32, the person of each
record, or empty where each is its own; codes, layout, prefix_sums, lookup, limit as in
`search.clustering.Targets`; runs as in `kernels.closeness`; counts (2, nodes of all trees)
int64, records of two classes below each node, zeros between calls. The excess of a class is the sum
over the sensitive attributes of max(0, distance - limit), and 1 for every
person that it lacks of k.

Exchanging r of class a and s of class b, with means A and B, changes the squared error by
2 (s - r) . (B - A) - |s - r|^2 (1 / size a + 1 / size b). The change of a distance takes O(1), see
`kernels.closeness`.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inlined, inner, outer
from shoal.search.kernels.closeness import (
    ENOUGH,
    TREE,
    TargetArrays,
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

MANY = 48
"""Members of a class that are tried at a time."""

GAIN = 1e-9
"""Less is rounding."""

MARGIN = 1e-9
"""By which part of its terms a bound of a sum is raised, since sums are rounded."""


class Aim(NamedTuple):
    """What is asked of the exchanges: people in each class, and what an excess of 1 weighs."""

    rows: np.ndarray
    subject_ids: np.ndarray
    k: int
    weight: float


class Membership(NamedTuple):
    """Who is in which class.

    members: (n,) int64, records, those of class c at start[c]..start[c + 1] - 1. A position is a
        place in it.
    start: (classes + 1,) int64. means: (classes, d) float64. excess: (classes,) float64.
    around: (2, n) float64, room for what `_placed` finds, by position.
    """

    members: np.ndarray
    start: np.ndarray
    means: np.ndarray
    excess: np.ndarray
    around: np.ndarray


def exchange(rows, subject_ids, k, labels, near, weight, rounds, *targets):
    """Exchanges records between near classes while squared error + weight * excess falls.

    labels: (n,) int32, changed in place; sizes stay. near: (classes, q) int32, the classes that
    each one exchanges with, -1 for none. Pairs of large classes try a part of their exchanges at a
    time. Returns the excess of every class, (classes,) float64, and how many records changed
    places.
    """
    table = TargetArrays(*targets)
    aim = Aim(rows, subject_ids, k, float(weight))
    classes = len(near)
    own = membership(labels, classes, rows.shape[1])
    runs = runs_of(len(labels), classes, len(table.limit))
    counts = np.zeros((2, len(table.prefix_sums)), np.int64)
    visited = np.zeros(near.shape, np.int64)
    changed = np.ones(classes, np.int64)
    exchanges = _exchange(aim, labels, near, own, runs, counts, visited, changed, rounds, table)
    return own.excess, 2 * exchanges


@outer
def _exchange(aim, labels, near, own, runs, counts, visited, changed, rounds, targets):
    """Returns how many exchanges were made.

    visited: (classes, q) int64 and changed: (classes,) int64, at which exchange each pair was tried
    and each class changed last.
    """
    members = own.members
    classes = near.shape[0]
    for c in range(classes):
        _refresh(c, aim, own, runs, counts, targets)
    # the clock ticks with every exchange: a pair is tried again once either class has changed
    clock = np.int64(1)
    for _ in range(rounds):
        moved = False
        for a in range(classes):
            for q in range(near.shape[1]):
                b = np.int64(near[a, q])
                if b < 0 or max(changed[a], changed[b]) <= visited[a, q]:
                    continue
                visited[a, q] = clock
                while True:
                    r_at, s_at = _best_exchange(a, b, clock, aim, own, runs, counts, targets)
                    if r_at < 0:
                        break
                    moved = True
                    r = members[r_at]
                    s = members[s_at]
                    members[r_at] = s
                    members[s_at] = r
                    labels[r] = b
                    labels[s] = a
                    _refresh(a, aim, own, runs, counts, targets)
                    _refresh(b, aim, own, runs, counts, targets)
                    clock += 1
                    changed[a] = clock
                    changed[b] = clock
                    visited[a, q] = clock
        if not moved:
            break
    return clock - 1


def near_classes(rows, labels, classes, q):
    """The q classes whose means are nearest to that of each, (classes, q) int32; every pair once.

    -1 where a pair is listed with the other class, or there are fewer classes.
    """
    sums = [np.bincount(labels, weights=column, minlength=classes) for column in rows.T]
    sizes = np.maximum(np.bincount(labels, minlength=classes), 1)
    near = np.full((classes, q), -1, np.int32)
    _near_classes(np.stack(sums, axis=1) / sizes[:, None], near, np.empty(q))
    return near


@outer
def _near_classes(means, near, apart):
    classes, d = means.shape
    q = near.shape[1]
    for a in range(classes):
        # the q nearest so far, nearest first; a nearer one is inserted
        for at in range(q):
            apart[at] = np.inf
        for b in range(classes):
            between = 0.0
            for j in range(d):
                between += (means[a, j] - means[b, j]) * (means[a, j] - means[b, j])
            if b == a or not between < apart[q - 1]:
                continue
            at = q - 1
            while at > 0 and apart[at - 1] > between:
                apart[at] = apart[at - 1]
                near[a, at] = near[a, at - 1]
                at -= 1
            apart[at] = between
            near[a, at] = b
    for a in range(classes):
        for at in range(q):
            b = near[a, at]
            for other in range(q):
                if b >= 0 and near[b, other] == a:
                    near[b, other] = -1


def membership(labels, classes, d):
    """The members of each class, in rising order; means and excess are yet to be filled in."""
    start = np.append(0, np.cumsum(np.bincount(labels, minlength=classes)))
    members = np.argsort(labels, kind="stable")
    means, excess = np.empty((classes, d)), np.empty(classes)
    return Membership(members, start, means, excess, np.empty((2, len(labels))))


@inner
def _refresh(c, aim, own, runs, counts, targets):
    """Computes the mean, the runs and the excess of class c after its members changed."""
    members, start = own.members, own.start
    size = start[c + 1] - start[c]
    for j in range(aim.rows.shape[1]):
        total = 0.0
        for e in range(start[c], start[c + 1]):
            total += aim.rows[members[e], j]
        own.means[c, j] = total / size
    refresh_class(members, start, c, runs, counts[0], targets)
    count_members(np.int64(-1), members, start, c, counts[0], targets)
    beyond = 0.0
    for s in range(len(targets.limit)):
        apart = runs.cost[s, c] / unit_cost(size, s, targets)
        beyond += max(0.0, apart - targets.limit[s] - ENOUGH)
    own.excess[c] = (
        _lacking(c, np.int64(-1), np.int64(-1), aim.subject_ids, aim.k, members, start) + beyond
    )


@inner
def _best_exchange(a, b, clock, aim, own, runs, counts, targets):
    """The exchange between classes a and b that gains most: both positions, -1 where none gains.

    Of large classes, every so-many-th member is tried, another part each time as the clock ticks.
    """
    members, start, means = own.members, own.start, own.means
    rows, weight = aim.rows, aim.weight
    size_a = start[a + 1] - start[a]
    size_b = start[b + 1] - start[b]
    step_a = max(1, size_a // MANY)
    step_b = max(1, size_b // MANY)
    shrink = 1.0 / size_a + 1.0 / size_b
    now = own.excess[a] + own.excess[b]
    best = GAIN
    best_r = np.int64(-1)
    best_s = np.int64(-1)
    counted = False
    _placed(a, a, b, aim, own)
    farthest, nearest = _placed(b, a, b, aim, own)
    for r_at in range(start[a] + clock % step_a, start[a + 1], step_a):
        if _gains_at_most(r_at, farthest, nearest, shrink, own) + weight * now <= best:
            continue
        r = members[r_at]
        for s_at in range(start[b] + clock % step_b, start[b + 1], step_b):
            far, along = own.around[0, s_at], own.around[1, s_at]
            if _gains_at_most(r_at, far, along, shrink, own) + weight * now <= best:
                continue
            s = members[s_at]
            # what the squared error loses; cheapest to compute, and mostly enough to give up
            gain = 0.0
            for j in range(rows.shape[1]):
                between = rows[s, j] - rows[r, j]
                gain += between * (between * shrink - 2.0 * (means[b, j] - means[a, j]))
            if gain + weight * now <= best:
                continue
            if not counted:
                count_members(np.int64(1), members, start, a, counts[0], targets)
                count_members(np.int64(1), members, start, b, counts[1], targets)
                counted = True
            after = _excess_if(a, r_at, s, own, runs, counts[0], targets)
            if gain + weight * (now - after) <= best:
                continue
            after += _excess_if(b, s_at, r, own, runs, counts[1], targets)
            lacking = _lacking(a, r, s, aim.subject_ids, aim.k, members, start)
            lacking += _lacking(b, s, r, aim.subject_ids, aim.k, members, start)
            after += lacking
            gain += weight * (now - after)
            if gain > best:
                best = gain
                best_r = r_at
                best_s = s_at
    if counted:
        count_members(np.int64(-1), members, start, a, counts[0], targets)
        count_members(np.int64(-1), members, start, b, counts[1], targets)
    return best_r, best_s


@inlined
def _placed(c, a, b, aim, own):
    """Puts into `around` how far each member of class c is from the middle of the means of a and b,
    and how far it is along from a to b, times their distance; returns the greatest and the least.
    """
    rows, means, members = aim.rows, own.means, own.members
    farthest = 0.0
    nearest = np.inf
    for at in range(own.start[c], own.start[c + 1]):
        i = members[at]
        far = 0.0
        along = 0.0
        for j in range(rows.shape[1]):
            from_middle = rows[i, j] - 0.5 * (means[a, j] + means[b, j])
            far += from_middle * from_middle
            along += from_middle * (means[b, j] - means[a, j])
        far = np.sqrt(far)
        own.around[0, at] = far
        own.around[1, at] = along
        farthest = max(farthest, far)
        nearest = min(nearest, along)
    return farthest, nearest


@inlined
def _gains_at_most(r_at, far, along, shrink, own):
    """More than this the squared error does not fall if a record so far from the middle comes for
    the member at `r_at`: they are at most as far apart as both are from the middle.
    """
    apart = own.around[0, r_at] + far
    square = shrink * apart * apart
    shift = 2.0 * (along - own.around[1, r_at])
    return square - shift + MARGIN * (square + abs(along) + abs(own.around[1, r_at]))


@inner
def _lacking(c, out, new, subject_ids, k, members, start):
    """How many people class c lacks of k with record `new` for its member `out`, -1 for neither."""
    if len(subject_ids) == 0:
        return 0.0
    people = 0
    for e in range(start[c], start[c + 1]):
        i = new if members[e] == out else members[e]
        first = True
        for f in range(start[c], e):
            other = new if members[f] == out else members[f]
            if subject_ids[other] == subject_ids[i]:
                first = False
                break
        if first:
            people += 1
            if people == k:
                return 0.0
    return np.float64(k - people)


@inlined
def _excess_if(c, at, new, own, runs, counts, targets):
    """What class c exceeds the limits by with record `new` instead of its member at position `at`.

    counts: (nodes of all trees,) int64, in which the members of class c are counted.
    """
    codes = targets.codes
    size = own.start[c + 1] - own.start[c]
    base = own.start[c] + 2 * c
    out = own.members[at]
    result = 0.0
    for s in range(len(targets.limit)):
        if targets.layout[s, TREE] == 1:
            change = _change_in_tree(codes[out, s], codes[new, s], size, s, counts, targets)
        else:
            change = _change_in_order(runs.rank[s, at], codes[new, s], base, size, s, runs, targets)
        apart = np.divide(runs.cost[s, c] + change, unit_cost(size, s, targets))
        result += max(0.0, apart - targets.limit[s] - ENOUGH)
    return result


@inlined
def _change_in_order(r, new, base, size, s, runs, targets):
    """How the cost changes when the member of rank r is replaced by a record of value `new`."""
    sums = runs.sums
    y = np.int64(new)
    p = members_up_to(y, base, size, s, runs)
    if r <= p:
        change = change_below(y, p, base, size, s, runs, targets)
        return change + sums[s, 1, base + r] - sums[s, 0, base + r]
    change = change_above(y, p, base, size, s, runs, targets)
    return change + sums[s, 2, base + r] - sums[s, 1, base + r]


@inlined
def _change_in_tree(out, new, size, s, counts, targets):
    """How the cost changes when a member at leaf `out` is replaced by a record at leaf `new`.

    Only nodes over one of the two change: both climb, the deeper one first, until they meet.
    """
    leaving = np.int64(out)
    coming = np.int64(new)
    deeper = _depth(leaving, s, targets) - _depth(coming, s, targets)
    change = np.int64(0)
    while leaving != coming:
        if deeper >= 0:
            change += change_at_node(np.int64(-1), leaving, size, s, counts, targets)
            leaving = parent_of(leaving, s, targets)
            deeper -= 1
        else:
            change += change_at_node(np.int64(1), coming, size, s, counts, targets)
            coming = parent_of(coming, s, targets)
            deeper += 1
    return change


@inlined
def _depth(node, s, targets):
    """Nodes from here to the root."""
    nodes = 0
    while node >= 0:
        node = parent_of(node, s, targets)
        nodes += 1
    return nodes
