"""Records that agree, found by hash tables of 64-bit keys with open addressing: one row for all of
them, and classes under full-domain generalization, made from those of any finer node.

A class is known by one of its records and its size. codes: (n, d) int32. The group of a code at
the level in question is table[place[j] + code] for attribute j; the key of a class is the sum of
group * stride over the attributes.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer


@outer
def number_rows(columns, stride, exact, begin, count, slot, keys, first, size, some, row_of):
    """Numbers the rows of the records from `begin` on, up to one that finds no room; returns that
    record and how many distinct rows there are. Whoever calls makes room, and goes on from there.

    columns: (d, n) int32. A row's key is the sum of code * stride; exact: whether no two rows can
    share one. slot: (a power of 2,) int32, all -1. Of each row keys: (room,) uint64, first: its
    first record, and size: how many there are, (room,) int32; of the first `count` they are known.
    some: (any,) uint64, work space. row_of: (n,) int32, filled in with the row of each record.
    """
    # a kernel that allocates nothing is loaded in a tenth of the time
    shift = np.uint64(64)
    while 1 << (64 - np.int64(shift)) < slot.shape[0]:
        shift -= np.uint64(1)
    mask = np.int64(slot.shape[0] - 1)
    for row in range(count):
        at = place_of(keys[row], shift)
        while slot[at] >= 0:
            at = (at + 1) & mask
        slot[at] = row
    for i in range(begin, columns.shape[1]):
        here = (i - begin) % some.shape[0]
        if here == 0:  # attribute by attribute, as the codes lie
            some[:] = 0
            for j in range(columns.shape[0]):
                run = columns[j, i : i + some.shape[0]]
                for r in range(run.shape[0]):
                    some[r] += np.uint64(run[r]) * stride[j]
        key = some[here] ^ (some[here] >> np.uint64(32))
        at = place_of(key, shift)
        while True:
            row = slot[at]
            if row < 0 or (keys[row] == key and (exact or _agree(columns, i, first[row]))):
                break
            at = (at + 1) & mask
        if row < 0:
            if count == keys.shape[0]:
                return i, count
            row = count
            slot[at] = row
            keys[row] = key
            first[row] = i
            size[row] = 0
            count += 1
        row_of[i] = row
        size[row] += 1
    return columns.shape[1], count


@inner
def _agree(columns, one, other):
    same = True
    for j in range(columns.shape[0]):
        same &= columns[j, one] == columns[j, other]
    return same


def lay_out(columns, numbers, codes, row_of, parts):
    """Fills in records in the order of the parts of their rows, and within one of their numbers.

    columns: (d + 1, n) int32. numbers, row_of: (n,) int32, of each record. codes: (d, rows) int32.
    parts: (2, p) int32, the row of each, and how many of its records.
    """
    begin = np.empty(parts.shape[1], dtype=np.int64)
    after = np.empty((2, max(parts.shape[1], codes.shape[1])), dtype=np.int32)
    _lay_out(columns, numbers, codes, row_of, parts.copy(), begin, after)


@outer
def _lay_out(columns, numbers, codes, row_of, left, begin, after):
    """left: the parts; begin: (p,), after: (2, at least p and rows): where the next record of each
    part goes, the row's next part behind each, and its part that is next.
    """
    d = codes.shape[0]
    after[1] = -1
    end = row_of.shape[0]
    for part in range(left.shape[1] - 1, -1, -1):
        row = left[0, part]
        after[0, part] = after[1, row]
        after[1, row] = part
        begin[part] = end - left[1, part]
        for j in range(d):
            columns[j, begin[part] : end] = codes[j, row]
        end = begin[part]
    for i in range(row_of.shape[0]):
        part = after[1, row_of[i]]
        columns[d, begin[part]] = numbers[i]
        begin[part] += 1
        left[1, part] -= 1
        if left[1, part] == 0:
            after[1, row_of[i]] = after[0, part]


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
