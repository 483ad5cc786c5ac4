"""Candidate clusters of CASTLE: where each arriving record goes, until one has waited for its whole delay.

Slots hold the records, `seq % slots`. slot_codes (slots, d) int32: positions of linear attributes in units
of loss, leaves of trees. slot_who, slot_seq (slots,) int64: person and number. member (slots,) int32, the
cluster of each, -1 where the slot is free. lo, hi (g, d) int32: bounds of the members; node (g, d) int32, on
trees the lowest node over them. cost, people, born (g,) int64: loss of the box, distinct people, and the
number under which the cluster was begun, -1 where there is none.
names (2**m,) int64, latest (2**m,) int32: a hash table from a person to the slot of the latest record, -1 for
free places; before (slots,) int32 leads from there to earlier ones of the same person.
base (d,) int32, -1 for linear attributes; parent, first, last, price (nodes,) int32 are the trees.
"""

from __future__ import annotations

import numpy as np
from numba import njit

inner = njit(nogil=True, cache=True, no_cpython_wrapper=True, no_cfunc_wrapper=True)  # type: ignore[call-overload]

NONE = -1
FAR = np.int64(2**62)


@njit(nogil=True, cache=True)
def arrive(
    at, begun, beta, full, limit, codes, who, lacking, seq, names, latest, before, slot_codes, slot_who, slot_seq,
    member, lo, hi, node, cost, people, born, base, parent, first, last, price,
):  # fmt: skip
    """Puts records `at`, `at + 1`, ... into clusters while none of them is lacking a value.

    codes (n, d), who, seq (n,) int64, lacking (n,) bool: the records. It stops behind the first record whose
    slot is followed by a held one: the delay of that is over.
    begun: number of the next cluster. limit: greatest cost of a cluster that takes a record when there
    is room for a new one. full: people from which on a cluster takes no more, 0 for no end.
    Returns the next record, and the number of the next cluster.
    """
    slots = len(member)
    while at < len(who):
        if lacking[at]:
            return at, begun
        c = _best(codes[at], beta, full, limit, lo, hi, node, cost, people, born, base, parent, first, last, price)
        if c < 0:
            c = -c - 1
            for j in range(len(base)):
                lo[c, j], hi[c, j], node[c, j] = codes[at, j], codes[at, j], max(base[j], 0) + codes[at, j]
            cost[c], people[c], born[c] = 0, 0, begun
            begun += 1
        slot = seq[at] % slots
        known = _enter(slot, c, who[at], seq[at], names, latest, before, slot_who, slot_seq, member)
        people[c] += 0 if known else 1
        cost[c] += _added(c, codes[at], lo, hi, node, base, parent, first, last, price)
        for j in range(len(base)):
            x = codes[at, j]
            slot_codes[slot, j] = x
            lo[c, j], hi[c, j] = min(lo[c, j], x), max(hi[c, j], x)
            while base[j] >= 0 and (last[node[c, j]] < x or first[node[c, j]] > x):
                node[c, j] = parent[node[c, j]]
        at += 1
        if member[(slot + 1) % slots] != NONE:
            return at, begun
    return at, begun


@inner
def _best(code, beta, full, limit, lo, hi, node, cost, people, born, base, parent, first, last, price):
    """The cluster for a record; -1 - place of a free one where it begins a new one."""
    least, count, free = FAR, 0, -1
    added = np.empty(len(born), np.int64)
    for c in range(len(born)):
        if born[c] < 0:
            free = c if free < 0 else free
            continue
        count += 1
        added[c] = _added(c, code, lo, hi, node, base, parent, first, last, price)
        if full == 0 or people[c] < full:
            least = min(least, added[c])
    if least == FAR:  # no cluster yet, or all full
        if count < beta:
            return -1 - free
        full = 0
        for c in range(len(born)):
            if born[c] >= 0:
                least = min(least, added[c])
    fits = _smallest(added, least, full, limit, cost, people, born)
    if fits >= 0:
        return fits
    if count < beta:
        return -1 - free
    return _smallest(added, least, full, FAR, cost, people, born)


@inner
def _smallest(added, least, full, limit, cost, people, born):
    """Of the clusters to which the record adds `least` and that then cost no more than `limit`, the smallest."""
    best = -1
    for c in range(len(born)):
        if born[c] < 0 or added[c] != least or (full > 0 and people[c] >= full) or cost[c] + added[c] > limit:
            continue
        if best < 0 or people[c] < people[best] or (people[c] == people[best] and born[c] < born[best]):
            best = c
    return best


@inner
def _added(c, code, lo, hi, node, base, parent, first, last, price):
    total = np.int64(0)
    for j in range(len(base)):
        x = code[j]
        if base[j] < 0:
            if x < lo[c, j]:
                total += np.int64(lo[c, j]) - x
            elif x > hi[c, j]:
                total += np.int64(x) - hi[c, j]
        else:
            up = node[c, j]
            while last[up] < x or first[up] > x:
                up = parent[up]
            total += np.int64(price[up]) - price[node[c, j]]
    return total


@inner
def _enter(slot, c, person, number, names, latest, before, slot_who, slot_seq, member):
    """Puts a record into a slot; whether an earlier record of the same person is in the same cluster."""
    slot_who[slot], slot_seq[slot], member[slot] = person, number, c
    place = _place_of(person, names, latest)
    if latest[place] == NONE and _too_full(names, latest):
        _rebuild(names, latest, before, slot_who, slot_seq, member, slot)
        place = _place_of(person, names, latest)
    before[slot] = latest[place]
    names[place], latest[place] = person, slot
    known, at, since = False, before[slot], number
    # what is older than the whole delay has been overwritten, by a later number
    while at != NONE and slot_who[at] == person and slot_seq[at] < since and not known:
        known = member[at] == c
        since = slot_seq[at]
        at = before[at]
    return known


@inner
def _place_of(person, names, latest):
    """Where the person stands in the table, or could."""
    mask = len(names) - 2  # the last place counts those that are taken
    place = (person ^ (person >> 29)) * -7046029254386353131
    place = (place ^ (place >> 32)) & (mask >> 1)
    while latest[place] != NONE and names[place] != person:
        place = place + 1 if place + 1 < mask else 0
    return place


@inner
def _too_full(names, latest):
    """Counts a new name; whether the table has to be made anew."""
    names[-1] += 1
    return names[-1] > len(names) // 4


@inner
def _rebuild(names, latest, before, slot_who, slot_seq, member, beginning):
    """The table of those who are held alone, in order of arrival; the slot after `beginning` is the oldest."""
    latest[:] = NONE
    names[-1] = 0
    slots = len(member)
    for step in range(1, slots):
        slot = (beginning + step) % slots
        if member[slot] != NONE:
            place = _place_of(slot_who[slot], names, latest)
            names[-1] += latest[place] == NONE
            before[slot] = latest[place]
            names[place], latest[place] = slot_who[slot], slot
    names[-1] += 1
