"""The common ground of a fusion: what all owners know of the joint rows when the rounds begin."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.data.schema import IndexedRequirement, Taxonomy
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
