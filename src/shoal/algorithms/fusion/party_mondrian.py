"""Party Mondrian: several owners cut one group after the other; each group has spans of its own.

LeFevre, DeWitt, Ramakrishnan. Mondrian multidimensional k-anonymity. ICDE 2006: cuts of single
groups, a hierarchy into its children. Yang, Wang. Computer Technology and Development
27(5):102-107, 2017: owners who cut in rounds, and say no more than what is published.
Reconstruction: no paper has this method. One vocabulary for all people is what costs `party-tds`
most; and after a fusion nobody holds the raw values of two owners, so groups can only be coarsened.
Promise: every party ends with the same groups, those of one owner of all columns, however columns
are spread; each has k people over all quasi-identifiers, the strictest k of the agreement.
Paper: partition, dimension     Here: group, attribute
Reading: a group is cut on the attribute of the largest score, people x published width x weight,
that has a valid cut; the first in name among equals. All know the scores; whether there is a valid
cut only the owner knows. Groups are independent of each other, so the order among them is free.
Reading: so no score is to be hidden, and nothing is computed in secret. Owners take turns. Whose
attribute comes next in most groups says for all of them, and for what it makes of them, how each is
cut, or that it can't be, until another owner's attribute comes next everywhere. That an attribute
could not be cut shows in the table: the next one was cut, or none.
Reading: the cut is the valid one nearest to halves. A number is cut in the middle between two
values that occur. A hierarchy is cut into those children of the lowest node over the group that are
in use; a cut between two leaves would say more than the node that is published over them.
Reading: `hulls`, a last message, narrows every group to its lowest and highest cell, or its lowest
node. An end of a hull is a value that occurs, as in any release of one owner.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import ClassVar

import numpy as np

from shoal.algorithms.fusion.codes import pack, packed_size, unpack
from shoal.algorithms.fusion.ground import Ground
from shoal.algorithms.fusion.local_groups import (
    LocalCut,
    LocalGroups,
    best_cut,
    fits,
    hull,
    is_node,
    parts_hold,
    parts_of,
)
from shoal.algorithms.steps.specialization import Span
from shoal.errors import PartyError
from shoal.protocols import FusionMethod

_NUMBER = struct.Struct("<I")
_SPAN = struct.Struct("<2I")
_UNIT = 1 << 24  # the width of a whole domain of the largest weight
_CAN_NOT = 0  # on the wire: no valid cut


@dataclass(frozen=True)
class PartyMondrian(FusionMethod):
    """Local recoding among owners: every group has spans of its own."""

    name: ClassVar[str] = "party-mondrian"
    paper: ClassVar[str] = (
        "LeFevre, DeWitt, Ramakrishnan. Mondrian multidimensional k-anonymity. ICDE 2006; among"
        " owners as Yang, Wang. Computer Technology and Development 27(5), 2017. A reconstruction"
        " of ours: no paper has it."
    )
    takes_turns: ClassVar[bool] = True
    over_all: ClassVar[bool] = True
    ahead: ClassVar[int] = 1

    hulls: bool = field(
        default=False,
        metadata={
            "help": "at the end, narrow every group to the values that occur in it, which loses"
            " less; the ends of a range are then values of people"
        },
    )

    def party(self, ground: Ground, own: Mapping[int, np.ndarray]) -> MondrianParty:
        """An owner who takes turns, with the cells of its own attributes."""
        return MondrianParty(self, ground, own)

    def worth_bits(self, attributes: int) -> int:
        """Nothing is bid."""
        return 1

    def most_batch(self, records: int, cells: Mapping[int, int]) -> int:
        """Bytes of a batch: fewer than two groups a record, each of which says where it is cut."""
        said = _NUMBER.size * len(cells) + _SPAN.size
        return _NUMBER.size + 2 * records * said + packed_size(records, max(records, 2)) + records

    def most_batches(self, records: int, nodes: int) -> int:
        """How many batches one owner can send: each makes a group, or says that there is none."""
        return 2 * records * max(nodes, 1)

    def check_batch(self, batch: bytes, cells: Mapping[int, int]) -> None:
        """What a batch means depends on the groups, so it is checked where it is applied."""


class MondrianParty:
    """One owner: says how groups are cut when it is its turn, or does what another one says.

    own: the cells of this party's attributes, (n,) integers, by number. steps: all cuts.
    """

    def __init__(self, rule: PartyMondrian, ground: Ground, own: Mapping[int, np.ndarray]) -> None:
        self._rule = rule
        self._ground = ground
        self._own = own
        heaviest = max(ground.weights)
        self._units = [max(1, round(w / heaviest * _UNIT)) for w in ground.weights]
        self.state = LocalGroups(ground)
        self._refused: dict[int, frozenset[int]] = {0: frozenset()}
        self._waiting: dict[int, list[int]] = {owner: [] for owner in sorted(set(ground.owners))}
        self._turns = 0
        self._hulls: dict[int, dict[int, Span]] = {}
        self.steps: list[LocalCut] = []
        self._fresh: deque[int] = deque()
        self._put(0, None)

    @property
    def touched(self) -> int:
        """How many rows all cuts and trials have read."""
        return self.state.touched

    def warm_up(self) -> None:
        """Nothing here is compiled."""

    # Turns

    def turn(self) -> int | None:
        """The number of the owner whose turn it is; None where no group can be cut any more."""
        most = max(len(groups) for groups in self._waiting.values())
        return next((p for p, groups in self._waiting.items() if len(groups) == most > 0), None)

    def decide(self) -> bytes:
        """Cuts all groups where an own attribute comes next; says so to the others in a batch."""
        said = [_NUMBER.pack(self._turns)]
        first, before = self.state.following, dict(self.state.rows)
        cuts = []
        for group, j in self._coming(self._ground.owners[min(self._own)]):
            rows = self.state.rows[group]
            codes = self._own[j][rows]
            self.state.touched += len(rows)
            cut = best_cut(self._ground, group, j, self.state.spans[group][j], rows, codes)
            if cut is None:
                said.append(_NUMBER.pack(_CAN_NOT))
                self._refuse(group, j)
            else:
                said.append(_NUMBER.pack(len(cut.spans)))
                said += [_SPAN.pack(*span) for span in cut.spans]
                parts = self._divide(cut)
                self.state.part(group, parts, parts_of(cut, codes))
                cuts.append((cut, parts))
        self._turns += 1
        return b"".join([*said, _Tree(cuts, first).packed(before, self.state.rows)])

    def apply(self, batch: bytes | bytearray) -> None:
        """Does what another owner decided; raises PartyError where that can't be right."""
        first = self.state.following
        cuts, packed = self._read(batch)
        tree = _Tree(cuts, first)
        leaf_of_row = tree.unpacked(packed, self.state.rows)
        for cut, parts in cuts:
            leaves = leaf_of_row.pop(cut.group)
            part_of_row = tree.part_of_leaf(parts)[leaves - first]
            rows = self.state.rows[cut.group]
            if not parts_hold(self._ground, rows, part_of_row, len(parts)):
                raise PartyError(
                    "another party: sent a cut that breaks a promise; the run ends, nothing is"
                    " published"
                )
            self.state.part(cut.group, parts, part_of_row)
            for part, group in enumerate(parts):
                leaf_of_row[group] = leaves[part_of_row == part]
        self._turns += 1

    def _coming(self, owner: int) -> Iterator[tuple[int, int]]:
        """The groups where an attribute of this owner comes next, and which; as long as any is."""
        groups = deque(sorted(self._waiting[owner]))
        self._waiting[owner] = []
        self._fresh = groups
        while groups:
            group = groups.popleft()
            j = self._next_of(group)
            assert j is not None
            yield group, j

    def _next_of(self, group: int) -> int | None:
        """The attribute of the largest score that may still have a cut."""
        best: tuple[int, int] | None = None
        for j, (lo, hi) in enumerate(self.state.spans[group]):
            if hi > lo and j not in self._refused[group]:
                width = self._units[j] * (hi - lo) // (self._ground.taxonomies[j].cells - 1)
                if best is None or width > best[0]:
                    best = width, j
        return None if best is None else best[1]

    def _put(self, group: int, owner: int | None) -> None:
        """Puts a group where its next attribute's owner finds it: in this turn, or another one."""
        j = self._next_of(group)
        if j is None:
            return
        following = self._ground.owners[j]
        (self._fresh if following == owner else self._waiting[following]).append(group)

    def _refuse(self, group: int, attribute: int) -> None:
        """No valid cut: the next attribute's turn."""
        self._refused[group] |= {attribute}
        self._put(group, self._ground.owners[attribute])

    def _divide(self, cut: LocalCut) -> range:
        """Gives numbers and spans to the parts of a group, and looks what comes next in them."""
        parts = self.state.divide(cut)
        self._refused.pop(cut.group)
        for group in parts:
            self._refused[group] = frozenset()
            self._put(group, self._ground.owners[cut.attribute])
        self.steps.append(cut)
        return parts

    def _read(self, batch: bytes | bytearray) -> tuple[list[tuple[LocalCut, range]], bytes]:
        """The cuts of a batch with the numbers of their parts, and the packed codes after them."""
        owner, cuts = self.turn(), []
        try:
            (number,) = _NUMBER.unpack_from(batch)
            at = _NUMBER.size
            if number != self._turns or owner is None:
                raise ValueError
            for group, j in self._coming(owner):
                (parts,) = _NUMBER.unpack_from(batch, at)
                at += _NUMBER.size
                if parts == _CAN_NOT:
                    self._refuse(group, j)
                    continue
                if parts > self._ground.people:
                    raise ValueError
                ends = struct.unpack_from(f"<{2 * parts}I", batch, at)
                at += _SPAN.size * parts
                cut = LocalCut(group, j, tuple(zip(ends[::2], ends[1::2], strict=True)))
                if not fits(self._ground.taxonomies[j], self.state.spans[group][j], cut.spans):
                    raise PartyError(
                        "another party: sent a cut that is not in its taxonomy; use the same"
                        " agreement everywhere"
                    )
                cuts.append((cut, self._divide(cut)))
                if self.state.following > 2 * self._ground.people:
                    raise ValueError
        except (ValueError, struct.error):
            raise _unreadable() from None
        return cuts, bytes(batch[at:])

    # What is published

    def hulls(self) -> bytes | None:
        """What narrows every group, as sent to the others; None where nothing does."""
        if not self._rule.hulls:
            return None
        spans = []
        for j in sorted(self._own):
            taxonomy = self._ground.taxonomies[j]
            self._hulls[j] = {
                group: hull(taxonomy, self.state.spans[group][j], self._own[j][rows])
                for group, rows in sorted(self.state.rows.items())
            }
            spans += list(self._hulls[j].values())
        return np.array(spans, dtype="<u4").tobytes()

    def narrow(self, hulls: bytes | bytearray, attributes: Sequence[int]) -> None:
        """Takes another owner's hulls of its attributes; PartyError where they can't be right."""
        groups = sorted(self.state.rows)
        if len(hulls) != _SPAN.size * len(groups) * len(attributes):
            raise _unreadable()
        spans = np.frombuffer(hulls, dtype="<u4").astype(np.int64).reshape(-1, len(groups), 2)
        for j, by_group in zip(sorted(attributes), spans.tolist(), strict=True):
            self._hulls[j] = {g: (lo, hi) for g, (lo, hi) in zip(groups, by_group, strict=True)}
            for group, span in self._hulls[j].items():
                if not is_node(self._ground.taxonomies[j], span, self.state.spans[group][j]):
                    raise PartyError(
                        "another party: sent a range outside of its group; the run ends, nothing is"
                        " published"
                    )

    def published(self, attribute: int) -> tuple[list[Span], np.ndarray]:
        """The different spans of an attribute, and which of them each row has; (n,) int64."""
        hulls = self._hulls.get(attribute)
        span_of = {
            group: self.state.spans[group][attribute] if hulls is None else hulls[group]
            for group in self.state.rows
        }
        different = sorted(set(span_of.values()))
        number = {span: i for i, span in enumerate(different)}
        codes = np.empty(self._ground.people, dtype=np.int64)
        for group, rows in self.state.rows.items():
            codes[rows] = number[span_of[group]]
        return different, codes


def _unreadable() -> PartyError:
    return PartyError(
        "another party: sent a batch that can't be read; run the same version everywhere"
    )


# A batch on the wire: the number of the turn; for each group that comes, in an order that all know,
# its number of parts and their spans, or 0 where there is no valid cut (all of them 4 bytes); then
# for every group that was there before, in which group that is left of it each of its rows ends


class _Tree:
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
                raise _unreadable()
            leaf_of_row[root] = np.array(leaves)[codes]
        if at != len(packed):
            raise _unreadable()
        return leaf_of_row

    def _leaves(self, group: int) -> list[int]:
        return self._below.get(group, [group])
