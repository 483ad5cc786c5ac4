"""Recursive cutting of records in place, for the rounded partition function: what Python calls.

Large nodes are cut where they lie (`inplace_cut`), smaller ones by sorted lists (`sorted_cut`),
which price every cut on every attribute exactly (`most_listed`).

columns: (d + 1, n) int32, the codes of one record per column and, in the last row, the record's
number. costs: as in `spans`.
"""

import numpy as np

from shoal.search.kernels.cut_sizes import CROSS, PROPORTIONAL, SAME
from shoal.search.kernels.inplace_cut import cut_large
from shoal.search.kernels.inplace_cut import cut_once as propose_cuts
from shoal.search.kernels.sorted_cut import DEEPEST, TIES_BY_ROW, TIES_LEXICOGRAPHIC, cut_listed

__all__ = [
    "CROSS",
    "PROPORTIONAL",
    "SAME",
    "TIES_BY_ROW",
    "TIES_LEXICOGRAPHIC",
    "cut",
    "cut_once",
    "halve",
    "is_listed",
    "most_listed",
]

# nodes up to here keep sorted lists if that is all there is to cut: one kernel less to compile
LISTED = 50_000
FEW = 12  # classes in a node of a larger table that is left to sorted lists,
FEWEST = 128  # and records, if that is more


def most_listed(k, sample):
    """The size of a node up to which it is not cut where it lies; 0 where all are."""
    # the last few cuts are priced exactly: more of them take longer and, on most tables, lose more
    return max(min(sample, max(FEW * k, FEWEST)), 2 * k - 1) if sample else 0


def is_listed(records, k, sample):
    """Whether a table of this size is cut by sorted lists alone."""
    return sample > 0 and records <= max(most_listed(k, sample), LISTED)


def cut(columns, nodes, k, rules, sample, costs, listed=None):
    """Cuts nodes into classes, in place; returns where each class starts, and the end.

    nodes: (nodes + 1,) int64, where each starts, and where the last one ends.
    rules: (sizes, admissible, best, ties): SAME, CROSS or PROPORTIONAL; whether any admissible cut
    may be chosen, the cheapest, or only the one of `sizes`; whether every attribute is tried, or
    only the widest; TIES_BY_ROW or TIES_LEXICOGRAPHIC.
    sample: the most rows that a node is priced on; 0: all. Nodes left to sorted lists: on all
    priced, widest and `sizes` decide.
    listed: whether no node is cut where it lies; by default as the largest of them asks. Other
    classes come out, so who cuts a part of a table says what the whole one asks (`is_listed`).
    """
    d = len(columns) - 1
    starts = np.empty(int(nodes[-1] - nodes[0]) // k + len(nodes), dtype=np.int64)
    largest = int(np.diff(nodes).max())
    limit = most_listed(k, sample)
    asked = np.array([k, *rules, sample, limit], dtype=np.int64)
    if not (is_listed(largest, k, sample) if listed is None else listed):
        space = _work_space(d, sample)
        count = cut_large(columns, nodes, asked, costs, starts, *_room(largest), *space)
        nodes = starts[: count + 1].copy()
        largest = limit
    if limit == 0:
        return nodes
    is_high = np.empty(largest, dtype=np.bool_)
    space = _work_space(d, largest)
    stack = np.empty((DEEPEST, 2), dtype=np.int64)
    count = cut_listed(columns, nodes, asked, costs, starts, stack, is_high, *space)
    return starts[: count + 1]


def halve(columns, begin, end, k, rules, sample, costs, room=None):
    """Cuts the node of the records begin..end once, where it lies; returns where its high side
    begins.

    room: what `_room` gives for a node of that size, where it lies elsewhere.
    """
    size = end - begin
    starts = np.empty(3, dtype=np.int64)
    asked = np.array([k, *rules, sample, size - 1], dtype=np.int64)
    space = _work_space(len(columns) - 1, sample)
    cut_large(columns, np.array([begin, end]), asked, costs, starts, *(room or _room(size)), *space)
    return int(starts[1])


def cut_once(columns, begin, end, attempt, k, quota, rules, sample, costs):
    """Proposes one cut for each of these nodes, in place: rows on the low side, 0 where none is
    left to try.

    begin, end: (nodes,) int64. attempt: (nodes,) int32, how many cuts of the node were refused
    before: the attributes are tried from the cheapest cut to the dearest, or from the widest to the
    narrowest (`rules` as for `cut`). k: least rows on a side. quota: rows to count as one class
    while two of them fit. Nodes above `sample` rows are priced on a strided sample of that size.
    """
    low_rows = np.zeros(len(begin), dtype=np.int64)
    nodes = np.column_stack([begin, end, attempt]).astype(np.int64)
    asked = np.array([k, *rules, sample, quota], dtype=np.int64)
    room = _room(int((end - begin).max(initial=0)))
    space = _work_space(len(columns) - 1, sample)
    propose_cuts(columns, nodes, asked, costs, low_rows, *room, *space)
    return low_rows


def _room(size):
    """What parting nodes of up to `size` records needs: the side of each record, and a column's
    values on the high.
    """
    return np.empty(size, dtype=np.int8), np.empty(size, dtype=np.int32)


def _work_space(d, size):
    """What nodes of up to `size` rows of d attributes need; see `sorted_cut.CutSpace`."""
    return (
        # codes, lists, one more list, bounds
        np.empty((4, d + 1, max(size, d)), dtype=np.int32),
        np.empty(257, dtype=np.int64),  # counts
        np.empty(size + 1),  # prices
        np.empty((d, 3)),  # attributes
        np.empty((2, d + 1), dtype=np.int64),  # order
    )
