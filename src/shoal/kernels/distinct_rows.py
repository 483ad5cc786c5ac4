"""One row for all records that agree: a hash table that grows with the rows, not with the records.

codes: (n, d) int32. label: (n,) int32 that has to agree, too; empty where nothing else has to.
"""

from __future__ import annotations

import numpy as np

from shoal.kernels.compile import inner, outer
from shoal.kernels.key_table import SPREAD, place_of

FIRST_BITS = 12


@outer
def distinct_rows(codes, label, most, row_of):
    """Numbers the distinct rows in the order of their first records; returns these records, and how
    many there are of each row: (rows,) int32 both. Nothing of either where there are more than
    `most` rows.

    row_of: (n,) int32, filled in with the row of each record.
    """
    bits = FIRST_BITS
    slot = np.full(1 << bits, -1, dtype=np.int32)
    keys = np.empty(1 << (bits - 1), dtype=np.uint64)
    first = np.empty(1 << (bits - 1), dtype=np.int32)
    size = np.empty(1 << (bits - 1), dtype=np.int32)
    count = 0
    for i in range(codes.shape[0]):
        key = _key(codes, label, i)
        mask = np.int64((1 << bits) - 1)
        at = place_of(key, np.uint64(64 - bits))
        while slot[at] >= 0:
            row = slot[at]
            if keys[row] == key and _agree(codes, label, i, first[row]):
                break
            at = (at + 1) & mask
        if slot[at] >= 0:
            row_of[i] = slot[at]
            size[slot[at]] += 1
            continue
        if count == most:
            return first[:0].copy(), size[:0].copy()
        slot[at] = count
        keys[count] = key
        first[count] = i
        size[count] = 1
        row_of[i] = count
        count += 1
        if 2 * count == 1 << bits:  # half full
            bits += 1
            keys = np.append(keys, np.empty(count, dtype=np.uint64))
            first = np.append(first, np.empty(count, dtype=np.int32))
            size = np.append(size, np.empty(count, dtype=np.int32))
            slot = _slots(keys, count, bits)
    return first[:count].copy(), size[:count].copy()


@inner
def _slots(keys, count, bits):
    """The places of the rows in a table of 2**bits."""
    slot = np.full(1 << bits, -1, dtype=np.int32)
    mask = np.int64((1 << bits) - 1)
    for row in range(count):
        at = place_of(keys[row], np.uint64(64 - bits))
        while slot[at] >= 0:
            at = (at + 1) & mask
        slot[at] = row
    return slot


@inner
def _key(codes, label, i):
    """A number that records share which agree, and few others."""
    key = np.uint64(0) if label.shape[0] == 0 else np.uint64(label[i])
    for j in range(codes.shape[1]):
        key = (key + np.uint64(codes[i, j])) * SPREAD
        key ^= key >> np.uint64(29)
    return key


@inner
def _agree(codes, label, a, b):
    for j in range(codes.shape[1]):
        if codes[a, j] != codes[b, j]:
            return False
    return label.shape[0] == 0 or label[a] == label[b]
