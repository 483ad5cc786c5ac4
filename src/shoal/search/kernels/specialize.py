"""One step of top-down specialization: which child each record under a node goes to, and what that
does to the groups.

All loops run over the records under the specialized node alone: rows, (m,) int32, their numbers.
child: (m,) uint16, the child that each of them goes to. weights: (n,) int32, how many people each
record stands for; empty where it is one. labels: (n,) int32, the group of each
record. place: (groups,) int32, -1 everywhere, before and after each function. seen: room for the
groups that occur, in that order; counts: (room, children) int32, by that order.
"""

import numpy as np

from shoal.data.numba_kernels import outer, uncompiled_up_to


@uncompiled_up_to(lambda codes, *_: len(codes))
@outer
def class_counts(codes, classes, weights, cells, labels):
    """Records by cell and class; (cells, labels) int64."""
    counts = np.zeros((cells, labels), dtype=np.int64)
    weighted = weights.shape[0] > 0
    for i in range(codes.shape[0]):
        counts[codes[i], classes[i]] += weights[i] if weighted else 1
    return counts


@uncompiled_up_to(lambda rows, *_: len(rows))
@outer
def children_of(rows, codes, lo, child_of_cell):
    """The child of every row, by its cell. child_of_cell: uint16, from cell `lo` on."""
    child = np.empty(rows.shape[0], dtype=np.uint16)
    for i in range(rows.shape[0]):
        child[i] = child_of_cell[codes[rows[i]] - lo]
    return child


@uncompiled_up_to(lambda rows, child, weights, children, *_: len(rows) * (1 + children))
@outer
def tally(rows, child, weights, children, labels, place, seen, counts):
    """Counts rows by group and child, into `seen` and `counts`; returns how many groups occur."""
    found = 0
    weighted = weights.shape[0] > 0
    for i in range(rows.shape[0]):
        group = labels[rows[i]]
        at = place[group]
        if at < 0:
            at = found
            place[group] = at
            seen[at] = group
            for c in range(children):
                counts[at, c] = 0
            found += 1
        counts[at, child[i]] += weights[rows[i]] if weighted else 1
    for g in range(found):
        place[seen[g]] = -1
    return found


@uncompiled_up_to(
    lambda rows, child, labels, place, seen, found, counts, *_: len(rows) + found * counts.shape[1]
)
@outer
def relabel(rows, child, labels, place, seen, found, counts, sizes, fresh):
    """Every part of a group becomes a group: its first part keeps the number, others get `fresh`
    and on.

    Writes `labels` and `sizes`; leaves in `counts` the number of each part; returns the next fresh
    number.
    """
    for g in range(found):
        group = seen[g]
        place[group] = g
        kept = False
        for c in range(counts.shape[1]):
            if counts[g, c] > 0:
                number = group if not kept else fresh
                if kept:
                    fresh += 1
                kept = True
                sizes[number] = counts[g, c]
                counts[g, c] = number
    for i in range(rows.shape[0]):
        row = rows[i]
        labels[row] = counts[place[labels[row]], child[i]]
    for g in range(found):
        place[seen[g]] = -1
    return fresh


@uncompiled_up_to(lambda rows, *_: 2 * len(rows))
@outer
def part(rows, child, children):
    """Rows by child, (m,) int32, and where each child's begin, (children + 1,) int64."""
    starts = np.zeros(children + 1, dtype=np.int64)
    for i in range(rows.shape[0]):
        starts[child[i] + 1] += 1
    for c in range(children):
        starts[c + 1] += starts[c]
    at = starts[:-1].copy()
    parted = np.empty_like(rows)
    for i in range(rows.shape[0]):
        parted[at[child[i]]] = rows[i]
        at[child[i]] += 1
    return parted, starts
