"""Batches of `party-tds` on the wire: steps, and for each row under them the deepest new node."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from shoal.errors import PartyError
from shoal.fusion.ground import pack, packed_size
from shoal.search.kernels import specialize
from shoal.search.specialization import MOST_CHILDREN, Step, child_of_cell, spans_of

MOST_AHEAD = 64
_NUMBER = struct.Struct("<I")
NOTHING = _NUMBER.pack(0)  # the batch of a winner whose first step is refused
_STEP = struct.Struct("<4I")  # attribute, lo, hi, children

# A batch on the wire: whole numbers of 4 bytes (steps; for each attribute, lo, hi, children and
# their first cells), then codes


def encoded(
    steps: Sequence[Step], rows: Mapping[Step, np.ndarray], codes: Sequence[np.ndarray]
) -> bytes:
    numbers = [len(steps)]
    for step in steps:
        numbers += [step.attribute, step.lo, step.hi, len(step.starts), *step.starts]
    packed = []
    for root in batch_roots(steps):
        first_cells = final_nodes(root, steps)
        whole = Step(root.attribute, root.lo, root.hi, tuple(first_cells.tolist()))
        child_codes = specialize.children_of(
            rows[root], codes[root.attribute], root.lo, child_of_cell(whole)
        )
        packed.append(pack(child_codes, len(first_cells)))
    return np.array(numbers, dtype="<u4").tobytes() + b"".join(packed)


def decode_steps(
    batch: bytes | bytearray, most: int = MOST_AHEAD, fewest: int = 1
) -> tuple[list[Step], bytes | bytearray]:
    """The steps of a batch, and the packed codes after them.

    Raises PartyError where it has fewer than `fewest` or more than `most`, or where one is not a
    step at all.
    """
    steps = []
    at = 4
    try:
        (count,) = _NUMBER.unpack_from(batch)
        if not fewest <= count <= most:
            raise ValueError
        for _ in range(count):
            attribute, lo, hi, children = _STEP.unpack_from(batch, at)
            if not 1 <= children <= MOST_CHILDREN:
                raise ValueError
            starts = struct.unpack_from(f"<{children}I", batch, at + _STEP.size)
            if starts[0] != lo or any(a >= b for a, b in pairwise((*starts, hi + 1))):
                raise ValueError
            steps.append(Step(attribute, lo, hi, starts))
            at += _STEP.size + 4 * children
    except (ValueError, struct.error):
        raise PartyError(
            "another party: sent a batch that can't be read; run the same version everywhere"
        ) from None
    return steps, batch[at:]


def check_batch(batch: bytes, most: int, cells: Mapping[int, int], fewest: int = 1) -> None:
    """Raises PartyError where a batch has other numbers of steps, or one on another attribute."""
    for step in decode_steps(batch, most, fewest)[0]:
        if step.hi >= cells.get(step.attribute, 0):
            raise not_own()


def most_batch(records: int, ahead: int, cells: Mapping[int, int]) -> int:
    """Bytes of a batch of so many steps at most, on these attributes of at most so many rows."""
    starts = min(MOST_CHILDREN, max(cells.values(), default=0))
    codes = min(ahead, len(cells)) * packed_size(records, MOST_CHILDREN)
    return _NUMBER.size + ahead * (_STEP.size + 4 * starts) + codes


def not_own() -> PartyError:
    """What is raised for a step on an attribute or node that the sender has not."""
    return PartyError(
        "another party: sent a step on what is not its own; run the same version everywhere"
    )


def batch_roots(steps: Sequence[Step]) -> list[Step]:
    """The steps on nodes that existed before the batch."""
    made = {(step.attribute, *span) for step in steps for span in spans_of(step)}
    return [step for step in steps if (step.attribute, step.lo, step.hi) not in made]


def final_nodes(root: Step, steps: Sequence[Step]) -> np.ndarray:
    """First cells of the nodes that the batch leaves under one of its roots, ascending."""
    inside = [
        s for s in steps if s.attribute == root.attribute and root.lo <= s.lo and s.hi <= root.hi
    ]
    return np.array(sorted({start for step in inside for start in step.starts}))
