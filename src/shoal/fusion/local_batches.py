"""Batches of `party-mondrian` on the wire: how groups are cut, and where each row of them ends."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import chain

import numpy as np

from shoal.errors import PartyError
from shoal.fusion.codes import pack, packed_size, unpack
from shoal.fusion.ground import REFUSED, VALID
from shoal.fusion.local_groups import LocalCut

NUMBER = struct.Struct("<I")
SPAN = struct.Struct("<2I")
CAN_NOT = 0  # on the wire: no valid cut


def unreadable() -> PartyError:
    """What is raised for a batch that is none."""
    return PartyError(
        "another party: sent a batch that can't be read; run the same version everywhere"
    )


def said_of(cut: LocalCut | None) -> bytes:
    """How a group is cut, as a batch says it."""
    if cut is None:
        return NUMBER.pack(CAN_NOT)
    return NUMBER.pack(len(cut.spans)) + b"".join(SPAN.pack(*span) for span in cut.spans)


def allowed(offers: Sequence[LocalCut | None], verdict: bytes | bytearray) -> list[LocalCut | None]:
    """The offers that the judge has not refused; PartyError for a verdict about other ones."""
    said = iter(verdict)
    cuts = sum(cut is not None for cut in offers)
    if len(verdict) != cuts or not set(verdict) <= set(VALID + REFUSED):
        raise PartyError(
            "another party: judges other cuts than were proposed; run the same version everywhere"
        )
    return [cut if cut is not None and next(said) == VALID[0] else None for cut in offers]


# A batch on the wire: the number of the turn; for each group that comes, in an order that all know,
# its number of parts and their spans, or 0 where there is no valid cut (all of them 4 bytes); then
# for every group that was there before, in which group that is left of it each of its rows ends


class Tree:
    """The groups that a batch makes of those before it: `roots` and what is left of them."""

    def __init__(self, cuts: Sequence[tuple[LocalCut, range]], first: int) -> None:
        self._below: dict[int, list[int]] = {}
        for cut, parts in reversed(cuts):  # later cuts are of groups that earlier ones made
            self._below[cut.group] = list(chain(*(self._leaves(part) for part in parts)))
        self.roots = {
            cut.group: sorted(self._below[cut.group]) for cut, _ in cuts if cut.group < first
        }
        self._first = first
        self._part = np.zeros(sum(len(parts) for _, parts in cuts), dtype=np.int64)

    def part_of_leaf(self, parts: range) -> np.ndarray:
        """The part that each group ends in, by its number from `first` on; until the next call."""
        for part, group in enumerate(parts):
            self._part[np.array(self._leaves(group)) - self._first] = part
        return self._part

    def packed(self, before: Mapping[int, np.ndarray], rows: Mapping[int, np.ndarray]) -> bytes:
        """The group in which each row ends. before, rows: of the groups before and after."""
        pieces = []
        for root, leaves in self.roots.items():
            codes = np.empty(len(before[root]), dtype=np.uint32)
            for code, leaf in enumerate(leaves):
                codes[np.searchsorted(before[root], rows[leaf])] = code  # rows ascend
            pieces.append(pack(codes, len(leaves)))
        return b"".join(pieces)

    def unpacked(self, packed: bytes, rows: Mapping[int, np.ndarray]) -> dict[int, np.ndarray]:
        """The group in which each row ends, by the group before; PartyError for a wrong length."""
        leaf_of_row = {}
        at = 0
        for root, leaves in self.roots.items():
            size = packed_size(len(rows[root]), len(leaves))
            codes = unpack(packed[at : at + size], len(rows[root]), len(leaves))
            at += size
            if int(codes.max()) >= len(leaves):
                raise unreadable()
            leaf_of_row[root] = np.array(leaves)[codes]
        if at != len(packed):
            raise unreadable()
        return leaf_of_row

    def _leaves(self, group: int) -> list[int]:
        return self._below.get(group, [group])
