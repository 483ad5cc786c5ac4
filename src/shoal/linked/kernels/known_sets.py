"""What somebody knows of people who hold nodes: sets of nodes that too few of them hold."""

import numpy as np

from shoal.data.numba_kernels import inner, outer
from shoal.search.kernels.distinct_rows import bits_for, place_of

NODE_BITS = 21
"""Of a node's number, so that three of them are one key."""


@outer
def renumber(begins, node, times, number):
    """Gives every holding the new number of its node, and makes one of a person's at one node.

    begins: (people + 1,) int64, where each person's holdings begin, and the end. node, times:
    (holdings,) int64, the node and how many rows the person has there, by ascending node; all three
    are changed in place. number: (nodes,) int64, -1 where a node is no more.
    """
    end = 0
    for person in range(len(begins) - 1):
        first, last = begins[person], begins[person + 1]
        start = end
        begins[person] = start
        for i in range(first, last):
            new, rows = number[node[i]], times[i]
            if new < 0:
                continue
            place = end
            while place > start and node[place - 1] > new:
                place -= 1
            if place > start and node[place - 1] == new:
                times[place - 1] += rows
                continue
            for j in range(end, place, -1):
                node[j], times[j] = node[j - 1], times[j - 1]
            node[place], times[place] = new, rows
            end += 1
    begins[len(begins) - 1] = end


@outer
def rare_sets(people, begins, node, times, m, k, is_open, stuck):
    """How many multisets of 2..m nodes that 1..k - 1 people hold each node is in; (nodes,) int64.

    people: (classes + 1,) int64, where the people of each class begin, and the end. begins, node,
    times: as for `renumber`, of times those that may be published. is_open: (classes,) bool, which
    are asked. stuck: (nodes,) bool; such a node counts only where all of a set are.
    """
    found = np.zeros(len(stuck), np.int64)
    for c in range(len(people) - 1):
        if not is_open[c]:
            continue
        bits = bits_for(_most_sets(people[c], people[c + 1], begins, m))
        keys = np.zeros(1 << bits, np.uint64)
        holders = np.zeros(1 << bits, np.int64)
        for person in range(people[c], people[c + 1]):
            last = begins[person + 1]
            for i in range(begins[person], last):
                for j in range(i, last if m > 1 else i):
                    if i < j or times[i] > 1:
                        _count(node[i], node[j], -1, keys, holders, bits)
                        for h in range(j, last if m > 2 else j):
                            if (h > j or times[h] > 1) and (h > i or times[h] > 2):
                                _count(node[i], node[j], node[h], keys, holders, bits)
        for place in range(len(keys)):
            if 0 < holders[place] < k:
                _add(keys[place], stuck, found)
    return found


@inner
def _most_sets(first, last, begins, m):
    """A bound on the multisets that people hold."""
    total = 0
    for person in range(first, last):
        n = begins[person + 1] - begins[person]
        total += n * (n + 1) // 2
        if m > 2:
            total += n * (n + 1) * (n + 2) // 6
    return total


@inner
def _count(first, second, third, keys, holders, bits):
    """One person more holds a set. third: -1 for none."""
    key = np.uint64((first << 2 * NODE_BITS) + (second << NODE_BITS) + third + 1)
    key += np.uint64(1) << np.uint64(63)  # none is zero
    place = place_of(key, np.uint64(64 - bits))
    while keys[place] != key and holders[place] > 0:
        place = (place + 1) & (len(keys) - 1)
    keys[place] = key
    holders[place] += 1


@inner
def _add(key, stuck, found):
    """Counts a set in its nodes."""
    mask = np.uint64((1 << NODE_BITS) - 1)
    third = np.int64(key & mask) - 1
    second = np.int64((key >> np.uint64(NODE_BITS)) & mask)
    first = np.int64((key >> np.uint64(2 * NODE_BITS)) & mask)
    is_stuck = stuck[first] and stuck[second] and (third < 0 or stuck[third])
    if is_stuck or not stuck[first]:
        found[first] += 1
    if second != first and (is_stuck or not stuck[second]):
        found[second] += 1
    if third >= 0 and third != second and (is_stuck or not stuck[third]):
        found[third] += 1
