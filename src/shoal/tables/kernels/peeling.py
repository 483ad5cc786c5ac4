"""Groups of at least k people under one vector of generalization levels after another.

Records come as *units*: equal records are one unit with an amount or, where people own several
records, every record is a unit and the units stand person by person, so that a group counts a
person once by remembering the last one it met.

The group of a unit is a 64-bit key, the sum over its attributes of the parts of its codes. Whether
two groups can share a key is up to whoever made the parts.
"""

import numpy as np

from shoal.data.numba_kernels import outer, uncompiled_up_to
from shoal.search.kernels.distinct_rows import bits_for, place_of


def _by_arrays(rows, amounts, people, parts, place, vectors, first, k, ask, group, count):
    """What `peel` does, with whole arrays for each vector."""
    left = rows
    for v in range(first, len(vectors)):
        if len(left) == 0:
            break
        start = place[np.arange(place.shape[0]), vectors[v]]
        keys = parts[start + left[:, :-1]].sum(axis=1)
        _, units, of_unit = np.unique(keys, return_index=True, return_inverse=True)
        if len(people):  # where another person's or group's units begin
            order = np.argsort(of_unit, kind="stable")
            pairs = np.stack([of_unit[order], people[left[order, -1]]])
            is_new = np.append(True, (pairs[:, 1:] != pairs[:, :-1]).any(axis=0))
            size = np.bincount(pairs[0], is_new)
        else:
            size = np.bincount(of_unit, amounts[left[:, -1]])
        large = np.flatnonzero(size >= k)
        if len(large) == 0:
            continue
        number = np.full(len(size), -1, dtype=np.int32)
        number[large[np.argsort(units[large])]] = np.arange(count, count + len(large))
        taken = number[of_unit]
        group[left[taken >= 0, -1]] = taken[taken >= 0]
        count += len(large)
        if ask:
            return v + 1, count
        stay = left[taken < 0]
        rows[: len(stay)] = stay
        left = rows[: len(stay)]
    return len(vectors), count


# whole arrays take some microseconds for each vector, and a 16th of a pass for each unit
@uncompiled_up_to(
    lambda rows, amounts, people, parts, place, vectors, first, *_: (
        (len(vectors) - first) * (20 + len(rows) // 16)
    ),
    _by_arrays,
)
@outer
def peel(rows, amounts, people, parts, place, vectors, first, k, ask, group, count):
    """Takes groups of k people away, vector by vector from `first` on; returns (next vector,
    groups).

    rows: (left, d + 1) int32, code of each unit on each attribute, and the unit's number; units
        that stay move to the front, in their order. amounts: (units,) int64 records of each unit.
    people: (units,) int32 person of each unit, those of one person side by side in `rows`; empty
        where every record is its own person.
    parts: uint64, the parts of the key: those of attribute j at a level start at place[j, level].
    vectors: (v, d) integers, a level for each attribute. group: (units,) int32, set for units that
        leave; groups are numbered from `count` on, in order of their first unit.
    ask: return after the first vector with groups and leave all units where they are.
    """
    d = rows.shape[1] - 1
    left = rows.shape[0]
    bits = bits_for(left)
    crowd = np.empty(1 << bits, dtype=np.int64)
    slot = np.empty(1 << bits, dtype=np.int32)
    keys = np.empty(left, dtype=np.uint64)
    group_of = np.empty(left, dtype=np.int32)
    key_of = np.empty(left, dtype=np.uint64)
    size = np.empty(left, dtype=np.int64)
    last = np.empty(left, dtype=np.int32)
    start = np.empty(d, dtype=np.int64)
    for v in range(first, vectors.shape[0]):
        if left == 0:
            break
        bits = bits_for(left)  # fewer places as units leave: they stay in the cache
        shift = np.uint64(64 - bits)
        mask = (1 << bits) - 1
        for j in range(d):
            start[j] = place[j, vectors[v, j]]
        # records by place of the table, a bound for the group of every key that begins there
        crowd[: mask + 1] = 0
        most = 0
        for i in range(left):
            key = np.uint64(0)
            for j in range(d):
                key += parts[start[j] + rows[i, j]]
            keys[i] = key
            at = place_of(key, shift)
            crowd[at] += amounts[rows[i, d]]
            most = max(most, crowd[at])
        if most < k:  # most vectors end here
            continue
        # groups by key, of units whose place holds enough
        slot[: mask + 1] = -1
        groups = 0
        for i in range(left):
            at = place_of(keys[i], shift)
            group_of[i] = -1
            if crowd[at] < k:
                continue
            while slot[at] >= 0 and key_of[slot[at]] != keys[i]:
                at = (at + 1) & mask
            g = slot[at]
            if g < 0:
                g = groups
                slot[at] = g
                key_of[g] = keys[i]
                size[g] = 0
                last[g] = -1
                groups += 1
            group_of[i] = g
            unit = rows[i, d]
            if people.shape[0] == 0:
                size[g] += amounts[unit]
            elif people[unit] != last[g]:
                last[g] = people[unit]
                size[g] += 1
        # those of k people get their numbers; `slot` now goes from a group to its number
        large = 0
        for g in range(groups):
            slot[g] = -1
            if size[g] >= k:
                slot[g] = count + large
                large += 1
        if large == 0:
            continue
        count += large
        # their units leave, the others close up
        stay = 0
        for i in range(left):
            g = group_of[i]
            if g >= 0 and slot[g] >= 0:
                group[rows[i, d]] = slot[g]
                if not ask:
                    continue
            if stay < i:
                for j in range(d + 1):
                    rows[stay, j] = rows[i, j]
            stay += 1
        left = stay
        if ask:
            return v + 1, count
    return vectors.shape[0], count
