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
Reading: where a judge refuses what leaves too few values of an attribute that the others don't see,
its owner asks it for one level of cuts, and a turn ends there. Only the cut nearest to halves is
asked, whoever owns it: each further one would say more about who is where. A group whose cut is
refused has no valid cut on that attribute; nobody but the judge sees why.
"""

import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import ClassVar

import numpy as np

from shoal.data.option import parameter
from shoal.data.schema import Span
from shoal.fusion.ground import (
    BREAKS_OFF,
    NO_BATCH,
    OTHER_AGREEMENT,
    REFUSED,
    VALID,
    Ground,
    LocalCut,
    best_cut,
    fits,
    hull,
    is_node,
    pack,
    packed_size,
    parts_hold,
    parts_of,
    unfit,
    unpack_all,
)
from shoal.protocols import FusionMethod

_NUMBER = struct.Struct("<I")
_SPAN = struct.Struct("<2I")
_CAN_NOT = 0  # on the wire: no valid cut
_UNIT = 1 << 24  # the width of a whole domain of the largest weight


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
    most_ahead: ClassVar[int] = 1

    hulls: bool = parameter(
        "at the end, narrow every group to the values that occur in it, which loses"
        " less; the ends of a range are then values of people",
        default=False,
    )

    def party(self, ground: Ground, own: Mapping[int, np.ndarray]) -> "MondrianParty":
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

    own: the cells of this party's attributes, (n,) integers, by number. rows: of every group, (m,)
    int32. spans: of every group, its span on every attribute. steps: all cuts. touched: how many
    rows all cuts and trials have read.
    """

    def __init__(self, rule: PartyMondrian, ground: Ground, own: Mapping[int, np.ndarray]) -> None:
        self._rule = rule
        self._ground = ground
        self._own = own
        heaviest = max(ground.weights)
        self._units = [max(1, round(w / heaviest * _UNIT)) for w in ground.weights]
        self.rows = {0: np.arange(ground.people, dtype=np.int32)}
        self.spans = {0: tuple(taxonomy.root for taxonomy in ground.taxonomies)}
        self.touched = 0
        self._following = 1  # the number of the next group
        self._refused: dict[int, frozenset[int]] = {0: frozenset()}
        self._waiting: dict[int, list[int]] = {owner: [] for owner in sorted(set(ground.owners))}
        self._turns = 0
        self._offers: list[LocalCut | None] = []  # what was proposed for the groups of this turn
        self._hulls: dict[int, dict[int, Span]] = {}
        self.steps: list[LocalCut] = []
        self._fresh: deque[int] = deque()
        self._put(0, None)

    def warm_up(self) -> None:
        """Nothing here is compiled."""

    # Turns

    def turn(self) -> int | None:
        """The number of the owner whose turn it is; None where no group can be cut any more."""
        most = max(len(groups) for groups in self._waiting.values())
        return next((p for p, groups in self._waiting.items() if len(groups) == most > 0), None)

    def propose(self) -> bytes:
        """The cuts that `decide` would make, as the judge is asked; a batch of one level."""
        self._offers = [self._best(group, j) for group, j in self._first_level()]
        said = [_NUMBER.pack(self._turns), *map(said_of, self._offers)]
        for cut in self._offers:
            if cut is not None:
                codes = self._own[cut.attribute][self.rows[cut.group]]
                said.append(pack(parts_of(cut, codes).astype(np.uint32), len(cut.spans)))
        return b"".join(said)

    def judge(self, proposal: bytes | bytearray) -> bytes:
        """Which of the cuts that another party proposes are valid: a byte for each."""
        at, cuts = self._begin(proposal), []
        for group, j in self._first_level():
            cut, at = self._read_cut(proposal, at, group, j)
            cuts += [] if cut is None else [cut]
        rows = [self.rows[cut.group] for cut in cuts]
        sizes = [(len(own), len(cut.spans)) for own, cut in zip(rows, cuts, strict=True)]
        return b"".join(
            REFUSED if self._ground.refuses(part_of_row, own) else VALID
            for own, part_of_row in zip(rows, unpack_all(proposal[at:], sizes), strict=True)
        )

    def decide(self, verdict: bytes | bytearray | None = None) -> bytes:
        """Cuts all groups where an own attribute comes next; says so to the others in a batch.

        verdict: what the judge said of the proposal, if it was asked. Raises PartyError where that
        is not about the proposed cuts.
        """
        offers = None if verdict is None else iter(allowed(self._offers, verdict))
        said = [_NUMBER.pack(self._turns)]
        first, before = self._following, dict(self.rows)
        cuts = []
        for group, j in self._coming(self._ground.owners[min(self._own)]):
            cut = self._best(group, j) if offers is None else next(offers)
            said.append(said_of(cut))
            if cut is None:
                self._refuse(group, j)
            else:
                codes = self._own[j][self.rows[group]]
                parts = self._divide(cut)
                self._part(group, parts, parts_of(cut, codes))
                cuts.append((cut, parts))
        self._turns += 1
        return b"".join([*said, Tree(cuts, first).packed(before, self.rows)])

    def _first_level(self) -> list[tuple[int, int]]:
        """The groups of this turn and their next attributes, while nothing is done yet."""
        owner = self.turn()
        groups = [] if owner is None else sorted(self._waiting[owner])
        return [(group, j) for group in groups if (j := self._next_of(group)) is not None]

    def _best(self, group: int, j: int) -> LocalCut | None:
        """The cut of a group on an own attribute; None where it has none, or the judge refuses."""
        rows = self.rows[group]
        codes = self._own[j][rows]
        self.touched += len(rows)
        cut = best_cut(self._ground, group, j, self.spans[group][j], rows, codes)
        if cut is not None and self._ground.refuses(parts_of(cut, codes), rows):
            return None
        return cut

    def apply(self, batch: bytes | bytearray) -> None:
        """Does what another owner decided; raises PartyError where that can't be right."""
        first = self._following
        cuts, packed = self._read(batch)
        tree = Tree(cuts, first)
        leaf_of_row = tree.unpacked(packed, self.rows)
        for cut, parts in cuts:
            leaves = leaf_of_row.pop(cut.group)
            part_of_row = tree.part_of_leaf(parts)[leaves - first]
            rows = self.rows[cut.group]
            is_refused = self._ground.refuses(part_of_row, rows)
            if is_refused or not parts_hold(self._ground, rows, part_of_row, len(parts)):
                raise unfit("sent a cut that breaks a promise", BREAKS_OFF)
            self._part(cut.group, parts, part_of_row)
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
        for j, (lo, hi) in enumerate(self.spans[group]):
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
        goes_on = following == owner and self._ground.judge is None
        (self._fresh if goes_on else self._waiting[following]).append(group)

    def _refuse(self, group: int, attribute: int) -> None:
        """No valid cut: the next attribute's turn."""
        self._refused[group] |= {attribute}
        self._put(group, self._ground.owners[attribute])

    def _divide(self, cut: LocalCut) -> range:
        """Gives numbers and spans to the parts of a group, and looks what comes next in them."""
        spans, j = self.spans.pop(cut.group), cut.attribute
        parts = range(self._following, self._following + len(cut.spans))
        self._following = parts.stop
        self._refused.pop(cut.group)
        for group, span in zip(parts, cut.spans, strict=True):
            self.spans[group] = (*spans[:j], span, *spans[j + 1 :])
            self._refused[group] = frozenset()
            self._put(group, self._ground.owners[j])
        self.steps.append(cut)
        return parts

    def _part(self, group: int, parts: range, part_of_row: np.ndarray) -> None:
        """Gives the parts of a group their rows. part_of_row: where each row of the group goes."""
        rows = self.rows.pop(group)
        self.touched += len(rows)
        for part, fresh in enumerate(parts):
            self.rows[fresh] = rows[part_of_row == part]

    def _read(self, batch: bytes | bytearray) -> tuple[list[tuple[LocalCut, range]], bytes]:
        """The cuts of a batch with the numbers of their parts, and the packed codes after them."""
        cuts = []
        at, owner = self._begin(batch), self.turn()
        assert owner is not None
        for group, j in self._coming(owner):
            cut, at = self._read_cut(batch, at, group, j)
            if cut is None:
                self._refuse(group, j)
                continue
            cuts.append((cut, self._divide(cut)))
            if self._following > 2 * self._ground.people:
                raise unfit(NO_BATCH)
        return cuts, bytes(batch[at:])

    def _begin(self, batch: bytes | bytearray) -> int:
        """Where the first group of a batch is said; PartyError where it is not of this turn."""
        if self.turn() is None or batch[: _NUMBER.size] != _NUMBER.pack(self._turns):
            raise unfit(NO_BATCH)
        return _NUMBER.size

    def _read_cut(
        self, batch: bytes | bytearray, at: int, group: int, j: int
    ) -> tuple[LocalCut | None, int]:
        """How a group is cut, None where it is not, and where the next one is said."""
        try:
            (parts,) = _NUMBER.unpack_from(batch, at)
            at += _NUMBER.size
            if parts == _CAN_NOT:
                return None, at
            if parts > self._ground.people:
                raise ValueError
            ends = struct.unpack_from(f"<{2 * parts}I", batch, at)
        except (ValueError, struct.error):
            raise unfit(NO_BATCH) from None
        cut = LocalCut(group, j, tuple(zip(ends[::2], ends[1::2], strict=True)))
        if not fits(self._ground.taxonomies[j], self.spans[group][j], cut.spans):
            raise unfit("sent a cut that is not in its taxonomy", OTHER_AGREEMENT)
        return cut, at + _SPAN.size * parts

    # What is published

    def hulls(self) -> bytes | None:
        """What narrows every group, as sent to the others; None where nothing does."""
        if not self._rule.hulls:
            return None
        spans = []
        for j in sorted(self._own):
            taxonomy = self._ground.taxonomies[j]
            self._hulls[j] = {
                group: hull(taxonomy, self.spans[group][j], self._own[j][rows])
                for group, rows in sorted(self.rows.items())
            }
            spans += list(self._hulls[j].values())
        return np.array(spans, dtype="<u4").tobytes()

    def narrow(self, hulls: bytes | bytearray, attributes: Sequence[int]) -> None:
        """Takes another owner's hulls of its attributes; PartyError where they can't be right."""
        groups = sorted(self.rows)
        if len(hulls) != _SPAN.size * len(groups) * len(attributes):
            raise unfit(NO_BATCH)
        spans = np.frombuffer(hulls, dtype="<u4").astype(np.int64).reshape(-1, len(groups), 2)
        for j, by_group in zip(sorted(attributes), spans.tolist(), strict=True):
            self._hulls[j] = {g: (lo, hi) for g, (lo, hi) in zip(groups, by_group, strict=True)}
            for group, span in self._hulls[j].items():
                if not is_node(self._ground.taxonomies[j], span, self.spans[group][j]):
                    raise unfit("sent a range outside of its group", BREAKS_OFF)

    def published(self, attribute: int) -> tuple[list[Span], np.ndarray]:
        """The different spans of an attribute, and which of them each row has; (n,) int64."""
        own = {group: self.spans[group][attribute] for group in self.rows}
        span_of = self._hulls.get(attribute, own)
        different = sorted(set(span_of.values()))
        number = {span: i for i, span in enumerate(different)}
        codes = np.empty(self._ground.people, dtype=np.int64)
        for group, rows in self.rows.items():
            codes[rows] = number[span_of[group]]
        return different, codes


# A batch on the wire: the number of the turn; for each group that comes, in an order that all know,
# its number of parts and their spans, or 0 where there is no valid cut (all of them 4 bytes); then
# for every group that was there before, in which group that is left of it each of its rows ends


def said_of(cut: LocalCut | None) -> bytes:
    """How a group is cut, as a batch says it."""
    if cut is None:
        return _NUMBER.pack(_CAN_NOT)
    return _NUMBER.pack(len(cut.spans)) + b"".join(_SPAN.pack(*span) for span in cut.spans)


def allowed(offers: Sequence[LocalCut | None], verdict: bytes | bytearray) -> list[LocalCut | None]:
    """The offers that the judge has not refused; PartyError for a verdict about other ones."""
    said = iter(verdict)
    cuts = sum(cut is not None for cut in offers)
    if len(verdict) != cuts or not set(verdict) <= set(VALID + REFUSED):
        raise unfit("judges other cuts than were proposed")
    return [cut if cut is not None and next(said) == VALID[0] else None for cut in offers]


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
        sizes = [(len(rows[root]), len(leaves)) for root, leaves in self.roots.items()]
        codes = zip(self.roots.items(), unpack_all(packed, sizes), strict=True)
        return {root: np.array(leaves)[own] for (root, leaves), own in codes}

    def _leaves(self, group: int) -> list[int]:
        return self._below.get(group, [group])
