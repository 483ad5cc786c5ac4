"""Classes under full-domain generalization, made from the classes of any finer node of the lattice.

A class is known by one of its records and its size. codes: (n, d) int32. The group of a code at
the level in question is table[place[j] + code] for attribute j; the key of a class is the sum of
group * stride over the attributes.
"""

import numpy as np

from shoal.data.numba_kernels import outer
from shoal.search.kernels.distinct_rows import bits_for, place_of


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
    """Sums over all, and over failing classes, of size * the product of the attributes'
    values[place[j] + code].
    """
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
