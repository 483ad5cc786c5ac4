"""Candidate clusters of CASTLE: where each arriving record goes, until one has waited for its whole
delay.

What Python passes, a few arrays of one type each, and how the functions below name their parts:

slot_codes: (slots, d) int32, and slot_ids: (2, slots) int64, and slot_links: (2, slots) int32: the
    records that are held, in slot `seq % slots`; see `Slots`.
names: (2**m,) int64, latest: (2**m,) int32: a hash table of people; see `People`.
boxes: (3, g, d) int32, and counts: (3, g) int64: the candidate clusters; see `Clusters`.
trees: (nodes + d, 4) int32. A row for each node: parent, first and last leaf, price. Then one for
    each attribute: the row of its first node, or -1 for linear ones, and nothing else.
"""

from typing import NamedTuple

import numpy as np

from shoal.data.numba_kernels import inner, outer

NONE = -1
FAR = np.int64(2**62)

PARENT, FIRST, LAST, PRICE = range(4)  # columns of `trees`
SUBJECT, SEQ, LACKING = range(3)  # rows of `arrivals`
BEGUN, BETA, FULL, LIMIT = range(4)  # places of `rules`


class Slots(NamedTuple):
    """The records that are held."""

    codes: np.ndarray  # (slots, d): positions of linear attributes in units of loss, tree leaves
    subject_ids: np.ndarray  # (slots,) the person of each
    seq: np.ndarray  # (slots,) its number
    member: np.ndarray  # (slots,) its cluster, -1 where the slot is free
    before: np.ndarray  # (slots,) the slot of an earlier record of the same person


class People(NamedTuple):
    """A hash table from a person to the slot of the latest record; `Slots.before` leads on."""

    names: np.ndarray  # (places,) the person; last: how many places were ever taken
    latest: np.ndarray  # (places,) the slot, -1 for free places


class Clusters(NamedTuple):
    """The candidates."""

    lo: np.ndarray  # (g, d) bounds of the members
    hi: np.ndarray
    node: np.ndarray  # (g, d) on trees the lowest node over them
    cost: np.ndarray  # (g,) loss of the box
    people: np.ndarray  # (g,) distinct people
    born: np.ndarray  # (g,) the number under which it was begun, -1 where there is none


@outer
def arrive(
    at,
    rules,
    codes,
    arrivals,
    names,
    latest,
    slot_codes,
    slot_ids,
    slot_links,
    boxes,
    counts,
    trees,
):
    """Puts records `at`, `at + 1`, ... into clusters while none of them is lacking a value.

    codes: (n, d) int32, arrivals: (3, n) int64, person, number, whether a value is lacking: the
    records. It stops after the first record whose slot is followed by a held one: the delay of
    that is over.
    rules: (4,) int64: number of the next cluster; most clusters at once; people from which on a
    cluster takes no more, 0 for no end; greatest cost of a cluster that takes a record when there
    is room for a new one.
    Returns the next record, and the number of the next cluster.
    """
    slots = Slots(slot_codes, slot_ids[0], slot_ids[1], slot_links[0], slot_links[1])
    people = People(names, latest)
    clusters = Clusters(boxes[0], boxes[1], boxes[2], counts[0], counts[1], counts[2])
    begun = rules[BEGUN]
    count = len(slots.member)
    while at < codes.shape[0]:
        if arrivals[LACKING, at] != 0:
            return at, begun
        c = _best(codes[at], rules, clusters, trees)
        if c < 0:
            c = -c - 1
            _begin(c, codes[at], begun, clusters, trees)
            begun += 1
        slot = arrivals[SEQ, at] % count
        known = _enter(slot, c, arrivals[SUBJECT, at], arrivals[SEQ, at], people, slots)
        clusters.people[c] += 0 if known else 1
        clusters.cost[c] += _added(c, codes[at], clusters, trees)
        _widen(c, codes[at], clusters, trees)
        for j in range(codes.shape[1]):
            slots.codes[slot, j] = codes[at, j]
        at += 1
        if slots.member[(slot + 1) % count] != NONE:
            return at, begun
    return at, begun


@inner
def _best(code, rules, clusters, trees):
    """The cluster for a record; -1 - place of a free one where it begins a new one."""
    people = clusters.people
    born = clusters.born
    full = rules[FULL]
    least = FAR
    alive = 0
    free = -1
    added = np.empty(len(born), np.int64)
    for c in range(len(born)):
        if born[c] < 0:
            free = c if free < 0 else free
            continue
        alive += 1
        added[c] = _added(c, code, clusters, trees)
        if full == 0 or people[c] < full:
            least = min(least, added[c])
    if least == FAR:  # no cluster yet, or all full
        if alive < rules[BETA]:
            return -1 - free
        full = 0
        for c in range(len(born)):
            if born[c] >= 0:
                least = min(least, added[c])
    fits = _smallest(added, least, full, rules[LIMIT], clusters)
    if fits >= 0:
        return fits
    if alive < rules[BETA]:
        return -1 - free
    return _smallest(added, least, full, FAR, clusters)


@inner
def _smallest(added, least, full, limit, clusters):
    """Of the clusters to which the record adds `least` and that then cost no more than `limit`, the
    one of fewest people, then the oldest; -1 where there is none.
    """
    people = clusters.people
    born = clusters.born
    best = -1
    for c in range(len(born)):
        if born[c] < 0 or added[c] != least:
            continue
        if (full > 0 and people[c] >= full) or clusters.cost[c] + added[c] > limit:
            continue
        if (
            best < 0
            or people[c] < people[best]
            or (people[c] == people[best] and born[c] < born[best])
        ):
            best = c
    return best


@inner
def _begin(c, code, begun, clusters, trees):
    """A new cluster around one record, which is not a member yet."""
    d = len(code)
    for j in range(d):
        clusters.lo[c, j] = code[j]
        clusters.hi[c, j] = code[j]
        clusters.node[c, j] = max(_base(j, d, trees), 0) + code[j]
    clusters.cost[c] = 0
    clusters.people[c] = 0
    clusters.born[c] = begun


@inner
def _base(j, d, trees):
    """The row of attribute j's first node, -1 for a linear attribute."""
    return trees[len(trees) - d + j, PARENT]


@inner
def _added(c, code, clusters, trees):
    """What the loss of cluster c's box grows by when a record joins."""
    lo = clusters.lo
    hi = clusters.hi
    d = len(code)
    total = np.int64(0)
    for j in range(d):
        x = code[j]
        if _base(j, d, trees) < 0:
            if x < lo[c, j]:
                total += np.int64(lo[c, j]) - x
            elif x > hi[c, j]:
                total += np.int64(x) - hi[c, j]
        else:
            node = clusters.node[c, j]
            up = _over(node, x, trees)
            total += np.int64(trees[up, PRICE]) - trees[node, PRICE]
    return total


@inner
def _over(node, leaf, trees):
    """The lowest node over both a node and a leaf of the same tree."""
    while trees[node, LAST] < leaf or trees[node, FIRST] > leaf:
        node = trees[node, PARENT]
    return node


@inner
def _widen(c, code, clusters, trees):
    d = len(code)
    for j in range(d):
        x = code[j]
        clusters.lo[c, j] = min(clusters.lo[c, j], x)
        clusters.hi[c, j] = max(clusters.hi[c, j], x)
        if _base(j, d, trees) >= 0:
            clusters.node[c, j] = _over(clusters.node[c, j], x, trees)


@inner
def _enter(slot, c, person, number, people, slots):
    """Puts a record into a slot; whether the same person is in the same cluster already."""
    slots.subject_ids[slot] = person
    slots.seq[slot] = number
    slots.member[slot] = c
    place = _place_of(person, people)
    if people.latest[place] == NONE and _too_full(people):
        _rebuild(people, slots, slot)
        place = _place_of(person, people)
    slots.before[slot] = people.latest[place]
    people.names[place] = person
    people.latest[place] = slot
    # back through the person's records; what is older than the whole delay has been overwritten,
    # by a later number or another person
    known = False
    at = slots.before[slot]
    since = number
    while at != NONE and slots.subject_ids[at] == person and slots.seq[at] < since and not known:
        known = slots.member[at] == c
        since = slots.seq[at]
        at = slots.before[at]
    return known


@inner
def _place_of(person, people):
    """Where the person stands in the table, or could."""
    names = people.names
    latest = people.latest
    mask = len(names) - 2  # the last place counts those that are taken
    place = (person ^ (person >> 29)) * -7046029254386353131
    place = (place ^ (place >> 32)) & (mask >> 1)
    while latest[place] != NONE and names[place] != person:
        place = place + 1 if place + 1 < mask else 0
    return place


@inner
def _too_full(people):
    """Counts a new name; whether the table has to be made anew."""
    people.names[-1] += 1
    return people.names[-1] > len(people.names) // 4


@inner
def _rebuild(people, slots, beginning):
    """The table of those held alone, by arrival; the slot after `beginning` is the oldest."""
    names = people.names
    latest = people.latest
    latest[:] = NONE
    names[-1] = 0
    count = len(slots.member)
    for step in range(1, count):
        slot = (beginning + step) % count
        if slots.member[slot] != NONE:
            place = _place_of(slots.subject_ids[slot], people)
            names[-1] += latest[place] == NONE
            slots.before[slot] = latest[place]
            names[place] = slots.subject_ids[slot]
            latest[place] = slot
    names[-1] += 1
