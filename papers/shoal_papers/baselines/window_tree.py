"""A tree of cuts over the records that wait; its leaves can be published at any time.

A cut stays while both sides keep every promise, so the tree moves with the window little by little.
"""

from __future__ import annotations

from math import ceil

import numpy as np

from shoal.data.stream import UNIT, Arrivals, Space, State
from shoal.protocols import StreamPromises
from shoal.streams.methods.emission import tree_table
from shoal_papers.baselines.kernels import window_cuts
from shoal_papers.baselines.waiting import Slots

TREES_KEPT = 4
"""Room for cuts, in windows cut as finely as k allows; a tree that has used it up begins anew."""


class WindowTree:
    """Cuts by `kernels.window_cuts`, which knows k, under the promises that ask for more.

    by_gap: whether cuts are made in the widest gap, or at the median.
    """

    def __init__(self, slots: Slots, space: Space, promises: StreamPromises, by_gap: bool) -> None:
        self._slots, self._promises, self._by_gap = slots, promises, by_gap
        self._trees = tree_table(space)
        self._shares = np.full(space.attributes, -1.0)
        self._shares[space.linear] = space.share[space.linear] * UNIT
        self._depths = ceil(len(slots.seq) / promises.k)
        nodes = 2 * TREES_KEPT * self._depths + 1
        self._cuts = np.full((4, nodes), -1, np.int32)
        self._free = np.zeros(nodes + 1, np.int32)
        self._begin_anew()

    def _begin_anew(self) -> None:
        nodes = len(self._free) - 1
        self._cuts[0] = -1
        self._free[0], self._free[1:nodes] = nodes - 1, np.arange(nodes - 1, 0, -1)

    def leaf(self, slot: int) -> np.ndarray | None:
        """The slots of the records in this record's leaf, as they arrived; None where all that wait
        break a promise.
        """
        slots, promises, d = self._slots, self._promises, len(self._slots.codes)
        if self._free[0] < 2 * self._depths:
            self._begin_anew()
        rows = np.empty(len(slots.seq), np.int32)
        path = np.empty((self._depths + 1, 4), np.int32)
        refused = np.zeros((self._depths + 1, d + 1), bool)
        held, checked = slots.held & ~slots.lacking, 0
        while True:
            begin, end, depth = window_cuts.leaf_of(
                slot,
                promises.k,
                self._by_gap,
                slots.codes,
                slots.people,
                held,
                self._trees,
                self._cuts,
                self._free,
                refused,
                rows,
                path,
            )
            if begin == end:
                return None
            if not promises.needs_more_than_k:
                break
            if not checked and not self._hold(rows, 0, int(held.sum()), int(held.sum())):
                return None
            while checked < depth and self._hold(rows, *path[checked, :3].tolist()):
                checked += 1
            if checked == depth:
                break
            # this cut breaks a promise: another one, or none
            refused[checked, path[checked, 3]] = refused[checked, d] = True
            refused[checked + 1 :] = False
        found = rows[begin:end]
        return found[np.argsort(slots.seq[found])]

    def arrive(
        self, arrivals: Arrivals, codes: np.ndarray, lacking: np.ndarray, most: float
    ) -> tuple[int, np.ndarray]:
        """Puts records into their slots, up to the first whose leaf loses at most so much on the
        linear attributes; how many, and the slots of this leaf as they arrived, empty for none.

        Under k alone, and for cuts at medians.
        """
        slots = self._slots
        # copies: compiled code knows no more than one kind of array
        seq, people = np.array(arrivals.seq), np.array(arrivals.people)
        values, lacks = np.array(arrivals.values, order="C"), np.array(lacking)
        came = window_cuts.Waiting(seq, people, values, np.array(codes, order="C"), lacks, lacks)
        stand = window_cuts.Waiting(
            slots.seq, slots.people, slots.values, slots.codes, slots.held, slots.lacking
        )
        tree = self._trees, self._cuts, self._free, self._depths
        count, leaf = window_cuts.arrive(
            came, stand, self._promises.k, self._shares, most * UNIT, *tree
        )
        return count, leaf[np.argsort(slots.seq[leaf])]

    def _hold(self, rows: np.ndarray, begin: int, middle: int, end: int) -> bool:
        """Whether both sides of a cut keep every promise; with no high side, all records."""
        side = np.zeros(end - begin, np.int32)
        side[middle - begin :] = 1
        here = rows[begin:end]
        order = np.argsort(self._slots.seq[here])
        records, labels = self._slots.records(here[order]), side[order]
        return bool(self._promises.holds(records, labels, int(side.max()) + 1).all())

    def snapshot(self) -> State:
        return {"cuts": self._cuts.copy(), "cuts.free": self._free.copy()}

    def restore(self, state: State) -> None:
        self._cuts, self._free = state["cuts"].copy(), state["cuts.free"].copy()
