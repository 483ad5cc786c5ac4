"""Records that agree, found by hash tables of 64-bit keys with open addressing: one row for all of
them, and classes under full-domain generalization, made from those of any finer node.

codes: (n, d) int32. label: (n,) int32 that has to agree, too; empty where nothing else has to.

A class is known by one of its records and its size. codes: (n, d) int32. The group of a code at
the level in question is table[place[j] + code] for attribute j; the key of a class is the sum of
group * stride over the attributes.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer

FIRST_BITS = 12


@outer
def distinct_rows(codes, label, most, row_of):
    """Numbers the distinct rows in the order of their first records; returns these records, and how
    many there are of each row: (rows,) int32 both. Nothing of either where there are more than
    `most` rows.

    row_of: (n,) int32, filled in with the row of each record.
    """
    d = codes.shape[1]
    labelled = label.shape[0] > 0
    factors = _factors(d + 1)
    bits = FIRST_BITS
    slot = np.full(1 << bits, -1, dtype=np.int32)
    keys = np.empty(1 << (bits - 1), dtype=np.uint64)
    first = np.empty(1 << (bits - 1), dtype=np.int32)
    size = np.empty(1 << (bits - 1), dtype=np.int32)
    rows = np.empty((1 << (bits - 1), d + 1), dtype=np.int32)  # together, for the processor's cache
    count = 0
    for i in range(codes.shape[0]):
        last = label[i] if labelled else np.int32(0)
        key = np.uint64(last) * factors[d]
        for j in range(d):
            key += np.uint64(codes[i, j]) * factors[j]
        key ^= key >> np.uint64(32)
        mask = np.int64((1 << bits) - 1)
        at = place_of(key, np.uint64(64 - bits))
        while True:
            row = slot[at]
            if row < 0:
                break
            if keys[row] == key and rows[row, d] == last:
                same = True
                for j in range(d):
                    same &= rows[row, j] == codes[i, j]
                if same:
                    break
            at = (at + 1) & mask
        if row >= 0:
            row_of[i] = row
            size[row] += 1
            continue
        if count == most:
            return first[:0].copy(), size[:0].copy()
        slot[at] = count
        keys[count] = key
        first[count] = i
        size[count] = 1
        rows[count, :d] = codes[i]
        rows[count, d] = last
        row_of[i] = count
        count += 1
        if 2 * count == 1 << bits:  # half full
            bits += 1
            keys = np.append(keys, np.empty(count, dtype=np.uint64))
            first = np.append(first, np.empty(count, dtype=np.int32))
            size = np.append(size, np.empty(count, dtype=np.int32))
            wider = np.empty((2 * count, d + 1), dtype=np.int32)
            wider[:count] = rows
            rows = wider
            slot = _slots(keys, count, bits)
    return first[:count].copy(), size[:count].copy()


@inner
def _factors(count):
    """Odd numbers that have little to do with one another: a record's key is a sum of products."""
    factors = np.empty(count, dtype=np.uint64)
    factor = np.uint64(1)
    for j in range(count):
        factor *= SPREAD
        factors[j] = factor
    return factors


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


SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: the high bits of a product vary
FEWEST_BITS = 4


@inner
def bits_for(keys):
    """The table of 2**bits places that this number of keys fills by half at most."""
    bits = FEWEST_BITS
    while (1 << bits) < 2 * keys:
        bits += 1
    return bits


@inner
def place_of(key, shift):
    """The place of a key in a table of 2**(64 - shift) places."""
    return np.int64((key * SPREAD) >> shift)


@outer
def coarsened(codes, first, size, table, place, stride, exact):
    """The classes that finer classes become; returns (first, size, class_of).

    first: (c,) int32 a record of each finer class; size: (c,) int32 its records.
    stride: (d,) uint64, 0 for attributes that are left out. exact: whether no two classes can share
        a key; else records are compared as well.
    class_of: (c,) int32, the class that each finer one is part of; numbered by first appearance.
    """
    d = stride.shape[0]
    c = first.shape[0]
    bits = bits_for(c)
    shift = np.uint64(64 - bits)
    mask = np.int64((1 << bits) - 1)
    slot = np.full(1 << bits, -1, dtype=np.int32)
    keys = np.empty(c, dtype=np.uint64)
    out_first = np.empty(c, dtype=np.int32)
    out_size = np.empty(c, dtype=np.int32)
    class_of = np.empty(c, dtype=np.int32)
    used = np.empty(d, dtype=np.int64)  # the attributes that are not left out
    attributes = 0
    for j in range(d):
        if stride[j] != 0:
            used[attributes] = j
            attributes += 1
    count = 0
    for i in range(c):
        row = first[i]
        key = np.uint64(0)
        for a in range(attributes):
            j = used[a]
            key += np.uint64(table[place[j] + codes[row, j]]) * stride[j]
        at = place_of(key, shift)
        while True:
            other = slot[at]
            if other < 0:  # a free place: a class that is new
                slot[at] = count
                keys[count] = key
                out_first[count] = row
                out_size[count] = size[i]
                class_of[i] = count
                count += 1
                break
            same = keys[other] == key
            if same and not exact:
                example = out_first[other]
                for a in range(attributes):
                    j = used[a]
                    if table[place[j] + codes[row, j]] != table[place[j] + codes[example, j]]:
                        same = False
                        break
            if same:
                out_size[other] += size[i]
                class_of[i] = other
                break
            at = (at + 1) & mask
    return out_first[:count].copy(), out_size[:count].copy(), class_of


@outer
def summed(codes, first, size, failing, values, place):
    """Sum over failing classes of size * the sum of the attributes' values[place[j] + code]."""
    total = 0.0
    for i in range(first.shape[0]):
        if failing[i]:
            each = 0.0
            for j in range(place.shape[0]):
                each += values[place[j] + codes[first[i], j]]
            total += each * size[i]
    return total


@outer
def multiplied(codes, first, size, failing, values, place):
    """Sums, over all and over failing classes, size * product of values[place[j] + code]."""
    total = 0.0
    failed = 0.0
    for i in range(first.shape[0]):
        each = 1.0
        for j in range(place.shape[0]):
            each *= values[place[j] + codes[first[i], j]]
        total += each * size[i]
        if failing[i]:
            failed += each * size[i]
    return total, failed
