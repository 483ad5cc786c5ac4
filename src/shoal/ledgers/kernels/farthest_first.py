"""Classes around centres that lie far apart: the nearest records to a centre, then the farthest is
the next.

points: (coordinates, n) float64, C-contiguous. Ties go to the lower record.
ids, distance: (n,) int64 and float64, of which the first `left` are the records in no class yet,
and their squared distance to the centre. subject_ids: (n,) int32 people, empty where each record is
its own person.
"""

import numpy as np

from shoal.data.numba_kernels import inner, outer, uncompiled_up_to

TILE = 1024  # records whose distances stay in the nearest cache while they are looked through


@uncompiled_up_to(lambda points, people, k, *_: points.size * (points.shape[1] // k))
@outer
def around_far_centres(points, subject_ids, k, first):
    """The class of each record, (n,) int32, -1 for those left when fewer than k people are.

    A class is a centre and the records nearest to it until it holds k people; the centre of the
    next is the record farthest from this one. first: the first centre. One pass over what is left
    for each class.
    """
    d, n = points.shape
    left_points = points.copy()  # of the records in `ids`
    ids = np.arange(n)
    labels = np.full(n, -1, np.int32)
    distance = np.empty(n)
    records_of = np.zeros(int(subject_ids.max()) + 1 if len(subject_ids) else 0, np.int64)  # left
    for person in subject_ids:
        records_of[person] += 1
    people = len(records_of) if len(subject_ids) else n
    left = n
    classes = 0
    centre = first
    best = np.empty(len(records_of))
    stamp = np.zeros(len(records_of), np.int64)
    origin = np.empty(d)
    held = np.empty(k, np.int64)
    while people >= k and left > 0:
        for j in range(d):
            origin[j] = left_points[j, centre]
        _measure(left_points, origin, left, distance)
        distance[centre] = -1.0  # nearer than any other, equal ones too
        if len(subject_ids):
            _first_of_each_person(distance, ids, subject_ids, left, best, stamp, classes + 1)
        limit, last = _reach_of_k(distance, ids, subject_ids, left, best, k, held)
        i = 0
        # the records within reach leave; the last ones take their places
        while i < left:
            if distance[i] > limit or (distance[i] == limit and ids[i] > last):
                i += 1
                continue
            labels[ids[i]] = classes
            if len(subject_ids) == 0:
                people -= 1
            else:
                records_of[subject_ids[ids[i]]] -= 1
                people -= records_of[subject_ids[ids[i]]] == 0
            left -= 1
            ids[i] = ids[left]
            distance[i] = distance[left]
            for j in range(d):
                left_points[j, i] = left_points[j, left]
        classes += 1
        centre = _farthest(distance, ids, left)
    return labels


@inner
def _measure(points, origin, left, distance):
    """Squared distances of the first `left` points to the origin, tile by tile."""
    for start in range(0, left, TILE):
        end = min(start + TILE, left)
        for i in range(start, end):
            distance[i] = 0.0
        for j in range(points.shape[0]):
            at = origin[j]
            for i in range(start, end):
                apart = points[j, i] - at
                distance[i] += apart * apart


@inner
def _first_of_each_person(distance, ids, subject_ids, left, best, stamp, turn):
    """The distance at which each person is met first, into `best`; stamp: when it was last set."""
    for i in range(left):
        person = subject_ids[ids[i]]
        if stamp[person] != turn or distance[i] < best[person]:
            stamp[person] = turn
            best[person] = distance[i]


@inner
def _reach_of_k(distance, ids, subject_ids, left, best, k, held):
    """How far the k-th person is: the distance, and the highest record id of those at that distance
    that are in.

    held: room for the k nearest so far, as a heap with the farthest on top.
    """
    count = 0
    for i in range(left):
        if count == k and distance[i] > distance[held[0]]:
            continue
        if len(subject_ids) and (
            distance[i] > best[subject_ids[ids[i]]]
            or _is_met(i, distance, ids, subject_ids, held, count)
        ):
            continue  # not the person's nearest record
        if count < k:
            held[count] = i
            count += 1
            _rise(held, count - 1, distance, ids)
        elif _is_nearer(i, held[0], distance, ids):
            held[0] = i
            _fall(held, count, distance, ids)
    return distance[held[0]], ids[held[0]]


@inner
def _is_met(i, distance, ids, subject_ids, held, count):
    """Whether the same person, as near, is held: the lower record stands for the person."""
    for at in range(count):
        other = held[at]
        if subject_ids[ids[other]] == subject_ids[ids[i]]:
            if ids[i] < ids[other]:
                held[at] = i
                for back in range(count):  # the heap's order may have changed: build it again
                    _rise(held, back, distance, ids)
            return True
    return False


@inner
def _is_nearer(a, b, distance, ids):
    return distance[a] < distance[b] or (distance[a] == distance[b] and ids[a] < ids[b])


@inner
def _rise(held, at, distance, ids):
    """The record at this place of the heap goes up to where it belongs."""
    while at > 0 and _is_nearer(held[(at - 1) // 2], held[at], distance, ids):
        held[at], held[(at - 1) // 2] = held[(at - 1) // 2], held[at]
        at = (at - 1) // 2


@inner
def _fall(held, count, distance, ids):
    at = 0
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and _is_nearer(held[child], held[child + 1], distance, ids):
            child += 1
        if not _is_nearer(held[at], held[child], distance, ids):
            break
        held[at], held[child] = held[child], held[at]
        at = child


@inner
def _farthest(distance, ids, left):
    farthest = 0
    for i in range(1, left):
        if distance[i] > distance[farthest] or (
            distance[i] == distance[farthest] and ids[i] < ids[farthest]
        ):
            farthest = i
    return farthest
