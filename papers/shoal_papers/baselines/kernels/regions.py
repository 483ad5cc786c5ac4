"""Which leaf of a tree of regions each arriving record falls into."""

from __future__ import annotations

import numpy as np

from shoal.data.numba_kernels import inner, outer

CUT, CHILD, SIBLING, WAITING = range(4)  # rows of `nodes`


@outer
def enter(at, slots, values, lo, hi, nodes, leaf_of, enough):
    """Puts the records in slots[at], slots[at + 1], ... into leaves until one may be published.

    values: (slots, d) float64. lo, hi: (n, d) float64, the region of each node; node 0 is the root,
    and holds all. nodes: (4, n) int32, for each the attribute by which it is cut, -1 for leaves;
    its first child; the next child of the same node, -1 behind the last; and how many records wait
    in it, changed. Of children that share an end the first takes what lies there.
    leaf_of: (slots,) int32, changed. enough: (n,) int64, waiting records for which it stops.
    Returns the number of the record behind the last that was put into a leaf, and that leaf; -1
    where no leaf has enough.
    """
    while at < len(slots):
        slot = slots[at]
        at += 1
        leaf = _leaf(values[slot], lo, hi, nodes)
        leaf_of[slot] = leaf
        nodes[WAITING, leaf] += 1
        if nodes[WAITING, leaf] >= enough[leaf]:
            return at, leaf
    return at, np.int64(-1)


@inner
def _leaf(value, lo, hi, nodes):
    """The leaf whose region holds a record."""
    node = np.int64(0)
    while nodes[CUT, node] >= 0:
        j = nodes[CUT, node]
        node = np.int64(nodes[CHILD, node])
        while value[j] < lo[node, j] or value[j] > hi[node, j]:
            node = np.int64(nodes[SIBLING, node])
    return node
