"""The joint rows of a fusion: what all owners know of them when the rounds begin, how their codes
travel, and where a group of them may be cut.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from shoal.data.schema import IndexedRequirement, Span, Taxonomy
from shoal.errors import PartyError

VALID, REFUSED = b"\1", b"\0"  # what a judge says of a proposal
NO_BATCH = "sent a batch that can't be read"
BREAKS_OFF = "the run ends, nothing is published"
OTHER_AGREEMENT = "use the same agreement everywhere"


def unfit(what: str, way_out: str = "run the same version everywhere") -> PartyError:
    """What is raised for a message that can't be right; who receives it says whose it is."""
    return PartyError(f"another party: {what}; {way_out}")


@dataclass(frozen=True)
class Ground:
    """n joint rows as everybody sees them, and what must hold for their groups.

    taxonomies, weights: of every attribute, by its number. classes: (n,) integers, the label of
    every row. qids: how many people must share each combination. owners: who owns each attribute,
    by number. diverse: sensitive values that all see, (n,) integers, and how many different ones
    every group has at least. atoms: (n,) integers, people whom no earlier fusion tells apart: of
    each atom a group has nobody or k people. judge: the owner, by number, who refuses what leaves
    too few values of an attribute of its own. judged: that attribute, (n,) integers, and how many
    different values every group has at least; nobody but the judge has it.
    """

    taxonomies: Sequence[Taxonomy]
    classes: np.ndarray
    qids: Sequence[IndexedRequirement]
    weights: Sequence[float]
    owners: Sequence[int]
    diverse: Sequence[tuple[np.ndarray, int]] = ()
    atoms: np.ndarray | None = None
    judge: int | None = None
    judged: tuple[np.ndarray, int] | None = None

    @property
    def people(self) -> int:
        return len(self.classes)

    @property
    def k(self) -> int:
        """The strictest k, which implies all QIDs where it holds over all attributes."""
        return max(qid.k for qid in self.qids)

    @property
    def needs_more_than_k(self) -> bool:
        return bool(self.diverse) or self.atoms is not None or self.judged is not None

    def keeps(self, part_of_row: np.ndarray, rows: np.ndarray) -> bool:
        """Whether parts keep what is asked beyond k. part_of_row: any number for each of the rows.

        Too few values, or people of an atom, stay too few in parts of a part, or nobody is left.
        """
        if self.atoms is not None and _least_alike(part_of_row, self.atoms[rows]) < self.k:
            return False
        return all(_least_different(part_of_row, v[rows]) >= l for v, l in self.diverse)

    def refuses(self, part_of_row: np.ndarray, rows: np.ndarray) -> bool:
        """Whether this owner is the judge, and a part has too few of its values.

        As in `keeps`, parts of a refused part would be refused, too.
        """
        if self.judged is None:
            return False
        values, least = self.judged
        return _least_different(part_of_row, values[rows]) < least


def _least_different(part_of_row: np.ndarray, values: np.ndarray) -> int:
    span = int(values.max()) + 1
    pairs = np.unique(part_of_row.astype(np.int64) * span + values)
    return int(np.unique(pairs // span, return_counts=True)[1].min())


def _least_alike(part_of_row: np.ndarray, values: np.ndarray) -> int:
    """The fewest records of a value in a part that has it."""
    pairs = part_of_row.astype(np.int64) * (int(values.max()) + 1) + values
    return int(np.unique(pairs, return_counts=True)[1].min())


# Codes on the wire: small whole numbers, row by row, in as few bits as they need.
#
# Promise: how long packed codes are follows from how many rows and nodes there are, nothing else.


_BLOCK = 1 << 18  # rows; a multiple of 8


def bits_of(nodes: int) -> int:
    """Bits of a code below `nodes`."""
    return max(nodes - 1, 0).bit_length()


def packed_size(rows: int, nodes: int) -> int:
    """Bytes of the packed codes of this number of rows."""
    return -(-rows * bits_of(nodes) // 8)


def pack(codes: np.ndarray, nodes: int) -> bytes:
    """Codes below `nodes`, one after the other in as few bits as they need."""
    bits = bits_of(nodes)
    shifts = np.arange(bits, dtype=codes.dtype)
    # blocks of whole bytes, so that a table of many rows needs little memory
    return b"".join(
        np.packbits((codes[start : start + _BLOCK, None] >> shifts).astype(np.uint8) & 1).tobytes()
        for start in range(0, len(codes), _BLOCK)
    )


def unpack(packed: bytes | bytearray, rows: int, nodes: int) -> np.ndarray:
    """The codes that `pack` packed, (rows,) uint16; uint32 where there are more than 65,536 nodes.

    Raises PartyError where there are fewer, or where one names no node.
    """
    bits = bits_of(nodes)
    kind: type[np.uint16 | np.uint32] = np.uint16 if bits <= 16 else np.uint32
    if len(packed) < packed_size(rows, nodes):
        raise unfit("sent too few codes")
    codes: np.ndarray = np.zeros(rows, dtype=kind)
    for start in range(0, rows * bool(bits), _BLOCK):
        count = min(_BLOCK, rows - start)
        block = np.frombuffer(
            packed, dtype=np.uint8, offset=start * bits // 8, count=packed_size(count, nodes)
        )
        planes = np.unpackbits(block, count=count * bits).reshape(count, bits)
        for bit in range(bits):
            codes[start : start + count] |= np.left_shift(planes[:, bit].astype(kind), bit)
    if rows and int(codes.max()) >= nodes:
        raise unfit("sent a code that names no node")
    return codes


def unpack_all(packed: bytes | bytearray, sizes: Iterable[tuple[int, int]]) -> Iterator[np.ndarray]:
    """Several lists of codes, one after the other; sizes: rows and nodes of each.

    Raises PartyError where there are fewer codes or more, or where one names no node.
    """
    at = 0
    for rows, nodes in sizes:
        size = packed_size(rows, nodes)
        yield unpack(packed[at : at + size], rows, nodes)
        at += size
    if at != len(packed):
        raise unfit("sent a batch of the wrong length")


# Groups that are cut one by one, in a local recoding among owners: what may be cut.
#
# Promise: every group that a cut makes has at least k people, and the asked sensitive values.
#
# A group is a set of rows with a span of cells on every attribute, a node of the hierarchy where
# there is one. A cut names, for one attribute of one group, the spans of its parts. Groups are
# numbered as they are made, so all owners give them the same numbers.


class LocalCut(NamedTuple):
    """What was, or could be, cut: the group, the attribute, and the parts' spans, ascending."""

    group: int
    attribute: int
    spans: tuple[Span, ...]


def parts_of(cut: LocalCut, codes: np.ndarray) -> np.ndarray:
    """The part that each of these cells goes to; (m,) int."""
    return np.searchsorted([lo for lo, _ in cut.spans[1:]], codes, side="right")


def parts_hold(ground: Ground, rows: np.ndarray, part_of_row: np.ndarray, parts: int) -> bool:
    """Whether each part has k people, and keeps what is asked beyond that."""
    if int(np.bincount(part_of_row, minlength=parts).min()) < ground.k:
        return False
    return ground.keeps(part_of_row, rows)


def best_cut(
    ground: Ground, group: int, attribute: int, span: Span, rows: np.ndarray, codes: np.ndarray
) -> LocalCut | None:
    """The valid cut of a group nearest to halves; None where there is none.

    A number is cut between two neighbours that occur, in the middle, so that no value shows; a
    hierarchy into the children of the lowest node over all rows.
    codes: (m,) cells of the group's rows, in the order of `rows`.
    """
    taxonomy = ground.taxonomies[attribute]
    spans: tuple[Span, ...] | None
    if taxonomy.is_number:
        border = _border(ground, rows, codes)
        spans = None if border is None else ((span[0], border - 1), (border, span[1]))
    else:
        spans = _children_in_use(taxonomy, span, codes)
        if spans is not None:
            part_of_row = parts_of(LocalCut(group, attribute, spans), codes)
            spans = spans if parts_hold(ground, rows, part_of_row, len(spans)) else None
    return None if spans is None else LocalCut(group, attribute, spans)


def _border(ground: Ground, rows: np.ndarray, codes: np.ndarray) -> int | None:
    """The first cell of the upper part."""
    order = np.argsort(codes, kind="stable")
    cells, n = codes[order].astype(np.int64), len(codes)
    left = np.flatnonzero(np.diff(cells)) + 1  # how many people are below each possible border
    left = left[(left >= ground.k) & (left <= n - ground.k)]
    for values, least in ground.diverse:
        ordered = values[rows[order]]
        below = _different_so_far(ordered)[left - 1]
        above = _different_so_far(ordered[::-1])[n - left - 1]
        left = left[(below >= least) & (above >= least)]
    if ground.atoms is not None:
        left = left[~_splits_atoms(ground.atoms[rows[order]], ground.k)[left]]
    if not len(left):
        return None
    at = int(left[np.argmin(np.abs(2 * left - n))])
    return int(cells[at - 1] + cells[at]) // 2 + 1


def _different_so_far(values: np.ndarray) -> np.ndarray:
    """How many different values the first 1, 2, ... of them are; (m,) int."""
    is_first = np.zeros(len(values), dtype=np.int64)
    is_first[np.unique(values, return_index=True)[1]] = 1
    return is_first.cumsum()


def _splits_atoms(atoms: np.ndarray, k: int) -> np.ndarray:
    """Whether a border after the first 0, 1, ... people leaves too few of an atom on a side.

    atoms: (m,) in order. Of an atom with ranks 0 to s - 1, the first rank + 1 are below a border
    right after that person: 1 to k - 1 of them, or of those above, are too few. (m + 1,) bool.
    """
    by_atom = np.argsort(atoms, kind="stable")
    begins = np.flatnonzero(np.diff(atoms[by_atom], prepend=-1))
    sizes = np.diff(np.append(begins, len(atoms)))
    marks = np.zeros(len(atoms) + 2, dtype=np.int64)
    first, last = by_atom[begins], by_atom[begins + sizes - 1]
    kth = by_atom[begins + np.minimum(k, sizes) - 1]
    kth_last = by_atom[begins + np.maximum(sizes - k, 0)]
    np.add.at(marks, first + 1, 1)  # from here on some are below,
    np.add.at(marks, kth + 1, -1)  # from here on k are
    np.add.at(marks, kth_last + 1, 1)  # from here on fewer than k are above,
    np.add.at(marks, last + 1, -1)  # from here on nobody is
    return np.asarray(marks.cumsum()[: len(atoms) + 1] > 0)


def _children_in_use(taxonomy: Taxonomy, span: Span, codes: np.ndarray) -> tuple[Span, ...] | None:
    """The children, in use, of the lowest node over these cells; None where it is a leaf."""
    children = children_of(taxonomy, hull(taxonomy, span, codes))
    if not children:
        return None
    starts = np.array([lo for lo, _ in children])
    used = np.unique(np.searchsorted(starts, codes, side="right") - 1)
    return tuple(children[c] for c in used.tolist())


def children_of(taxonomy: Taxonomy, node: Span) -> list[Span]:
    """The spans of a node's children; a leaf has none."""
    starts = taxonomy.children.get(node)
    if starts is None or node[0] == node[1]:
        return []
    ends = [*starts[1:].tolist(), node[1] + 1]
    return [(lo, end - 1) for lo, end in zip(starts.tolist(), ends, strict=True)]


def nodes_over(taxonomy: Taxonomy, node: Span, cells: Span) -> Iterator[Span]:
    """A node, and below it those that hold all of these cells, down to the lowest."""
    around = [node]
    while around:
        yield around[0]
        children = children_of(taxonomy, around[0])
        around = [c for c in children if c[0] <= cells[0] and cells[1] <= c[1]]


def fits(taxonomy: Taxonomy, span: Span, parts: Sequence[Span]) -> bool:
    """Whether a group with this span can be cut into these parts, as far as anybody knows."""
    if len(parts) < 2:
        return False
    if taxonomy.is_number:
        low, high = parts[0], parts[-1]
        meets = low[0] == span[0] and high[1] == span[1] and low[1] + 1 == high[0]
        return len(parts) == 2 and meets and low[0] <= low[1] and high[0] <= high[1]
    *_, lowest = nodes_over(taxonomy, span, (parts[0][0], parts[-1][1]))
    return set(parts) <= set(children_of(taxonomy, lowest)) and list(parts) == sorted(set(parts))


def hull(taxonomy: Taxonomy, span: Span, codes: np.ndarray) -> Span:
    """The tightest span within this one that holds all cells; of a hierarchy the lowest node."""
    cells = int(codes.min()), int(codes.max())
    if taxonomy.is_number:
        return cells
    *_, lowest = nodes_over(taxonomy, span, cells)
    return lowest


def is_node(taxonomy: Taxonomy, span: Span, within: Span) -> bool:
    """Whether a span lies within another, and is a node where there is a hierarchy."""
    if not within[0] <= span[0] <= span[1] <= within[1]:
        return False
    return taxonomy.is_number or span in nodes_over(taxonomy, within, span)
