"""Codes on the wire: small whole numbers, row by row, in as few bits as they need.

Promise: how long packed codes are follows from how many rows and nodes there are, nothing else.
"""

from __future__ import annotations

import numpy as np

from shoal.errors import PartyError

_BLOCK = 1 << 18  # rows; a multiple of 8


def bits_of(nodes: int) -> int:
    """Bits of a code below `nodes`."""
    return max(nodes - 1, 0).bit_length()


def packed_size(rows: int, nodes: int) -> int:
    """Bytes of the packed codes of so many rows."""
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
    """The codes that `pack` packed, (rows,) uint16; raises PartyError where there are fewer.

    uint32 where there are more than 65,536 nodes.
    """
    bits = bits_of(nodes)
    kind: type[np.uint16 | np.uint32] = np.uint16 if bits <= 16 else np.uint32
    if len(packed) < packed_size(rows, nodes):
        raise PartyError("another party: sent too few codes; run the same version everywhere")
    codes: np.ndarray = np.zeros(rows, dtype=kind)
    for start in range(0, rows * bool(bits), _BLOCK):
        count = min(_BLOCK, rows - start)
        block = np.frombuffer(
            packed, dtype=np.uint8, offset=start * bits // 8, count=packed_size(count, nodes)
        )
        planes = np.unpackbits(block, count=count * bits).reshape(count, bits)
        for bit in range(bits):
            codes[start : start + count] |= np.left_shift(planes[:, bit].astype(kind), bit)
    return codes
