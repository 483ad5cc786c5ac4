"""FADS, FADS by single records and FAANST in plain Python, records as lists of numbers; promises k
alone.

What merges clusters that are too small is the repair of all methods, which has its own twin.
"""

from math import ceil

import numpy as np

from naive_streams import Costs, condensed, joined, nearest_people
from shoal.data.partition import Partition
from shoal.data.stream import Arrivals
from shoal.errors import InfeasibleError
from shoal.search.segments import merge_failing
from shoal.streams.methods.emission import matrix_of


def box(own, values, members):
    """What a cluster publishes, and what that loses."""
    lo, hi, loss = own.published_bounds(
        values[members].min(axis=0)[None], values[members].max(axis=0)[None]
    )
    return lo[0], hi[0], float(loss[0])


def least_covering(clusters, row, draw):
    """The cluster of least loss that covers a record, of equals one by draw; or None."""
    fits = [
        c
        for c in clusters
        if all(a <= x <= b for a, x, b in zip(c["lo"], row, c["hi"], strict=True))
    ]
    least = [c for c in fits if c["loss"] == min(f["loss"] for f in fits)]
    return least[int(draw * len(least))] if least else None


def fads(own, values, people, k, delta, tau, c0, strict_release, leftovers, seed):
    """(record, kind, members of its cluster) of each record, in order of leaving; knn."""
    held, clusters, out, release = [], [], [], 0
    most = ceil(c0 * delta / k)

    def publish(at_end):
        nonlocal held, clusters, release
        rng = np.random.default_rng([seed, 2, release])
        draws = rng.random(len(held))
        used = {
            i: least_covering(clusters, values[i], draw)
            for i, draw in zip(held, draws, strict=True)
        }
        if strict_release:
            for c in clusters:
                asks = [i for i in held if used[i] is c]
                if len({people[i] for i in asks}) < k:
                    used |= dict.fromkeys(asks)
        decided = {i: ("reuse", c["members"]) for i, c in used.items() if c}
        rest = [i for i in held if i not in decided]
        if rest:
            costs = Costs(own.scaled_positions(values[rest]), own.leaf(values[rest]), *own.costs)
            picks = rng.permutation(len(rest)).tolist()
            labels, made = condensed(costs, [people[i] for i in rest], picks, k)
            if made:
                labels = joined(costs, labels, made)
            for c in range(made):
                members = tuple(i for i, label in zip(rest, labels, strict=True) if label == c)
                decided |= dict.fromkeys(members, ("new", members))
                lo, hi, loss = box(own, values, list(members))
                if loss < tau:
                    clusters.append({"lo": lo, "hi": hi, "loss": loss, "members": members})
        clusters = clusters[-most:]
        left = [i for i in rest if i not in decided]
        if leftovers == "hold" and not at_end:
            crowd = left[: max(0, len(left) - delta // 2)]  # so that the buffer keeps room
            decided |= dict.fromkeys(crowd, ("drop", None))
        else:
            decided |= {i: ({"star": "suppress"}.get(leftovers, leftovers), None) for i in left}
        out.extend((i, *decided[i]) for i in held if i in decided)
        held = [i for i in held if i not in decided]
        release += 1

    for i in range(len(values)):
        held.append(i)
        if len(held) == delta:
            publish(at_end=False)
    if held:
        publish(at_end=True)
    return out


def fads_tuple(own, values, people, k, delta, lifetime, seed):
    """(record, kind, members of its cluster or None) of each record, in order of leaving."""
    costs = Costs(own.scaled_positions(values), own.leaf(values), *own.costs)
    held, clusters, out = [], [], []

    def publish(now):
        nonlocal held, clusters
        oldest = held[0]
        clusters = [c for c in clusters if now - c["since"] <= lifetime]
        draw = np.random.default_rng([seed, 6, oldest]).random()
        used = least_covering(clusters, values[oldest], draw)
        near = nearest_people(oldest, held, people.__getitem__, costs)
        members = [oldest, *near[: k - 1]]
        if len(members) < k:
            out.append((oldest, "reuse" if used else "suppress", used["members"] if used else None))
            held = held[1:]
            return
        lo, hi, loss = box(own, values, members)
        if used and used["loss"] < loss:
            out.append((oldest, "reuse", used["members"]))
            held = held[1:]
            return
        members = tuple(sorted(members))
        clusters.append({"lo": lo, "hi": hi, "loss": loss, "since": now, "members": members})
        out.extend((i, "new", members) for i in members)
        held = [i for i in held if i not in members]

    for now in range(len(values)):
        held.append(now)
        if now - held[0] >= delta - 1:
            publish(now)
    while held:
        publish(len(values) - 1)
    return out


def faanst(own, values, people, k, delta, tau, delay, rounds, keep, seed):
    """(record, kind, members of its cluster or None) of each record, in order of leaving."""
    near, leaf = own.scaled_positions(values), own.leaf(values)
    costs = Costs(near, leaf, *own.costs)
    held, clusters, out, release = [], [], [], 0

    def one_round(now, at_end):
        nonlocal held, clusters, release
        rng = np.random.default_rng([seed, 5, release])
        draws = rng.random(len(held))
        decided = {}
        for i, draw in zip(held, draws, strict=True):
            used = least_covering(clusters, values[i], draw)
            if used:
                decided[i] = ("reuse", used["members"])
        rest = [i for i in held if i not in decided]
        ahead = {"none": None, "passive": 1, "proactive": ceil(delta / 2)}[delay]
        last = now if at_end else (-1 if ahead is None else now - delta + ahead)
        forced = {i for i in rest if i <= last}
        for members in cluster(rest, forced, rng):
            lo, hi, loss = box(own, values, members)
            decided |= {i: ("new", tuple(members)) for i in members}
            if loss < tau:
                clusters.append({"lo": lo, "hi": hi, "loss": loss, "members": tuple(members)})
        clusters = clusters[-keep:]
        decided |= {i: ("suppress", None) for i in forced if i not in decided}
        waiting = [i for i in held if i not in decided]
        crowd = waiting[: max(0, len(waiting) - delta // 2)]  # a window always makes room
        decided |= dict.fromkeys(crowd, ("suppress", None))
        out.extend((i, *decided[i]) for i in held if i in decided)
        held = [i for i in held if i not in decided]
        release += 1

    def cluster(rest, forced, rng):
        """The clusters that leave, each its members in order."""
        if len({people[i] for i in rest}) < k:
            return []
        starts = sorted(rng.permutation(len(rest))[: len(rest) // k].tolist())
        found = means(rest, starts)
        good = [c for c in found if enough(c)]
        waiting = [i for c in found if not enough(c) for i in c]
        if len(waiting) > delta // 2 or not good:
            return merged(found)
        # who must leave joins the cluster whose loss grows least, in order of arrival, clusters as
        # they stand in time
        good.sort(key=min)
        grown = [list(c) for c in good]
        for i in sorted(i for i in waiting if i in forced):
            added = [costs.of([*c, i]) - costs.of(c) for c in grown]
            grown[added.index(min(added))].append(i)
        return [sorted(c) for c in grown]

    def enough(members):
        return len({people[i] for i in members}) >= k

    def means(rest, starts):
        """Lloyd's steps: clusters by centre, those without records left out."""
        linear, trees = near.shape[0], leaf.shape[0]
        centres = [
            (
                [float(near[j][rest[s]]) for j in range(linear)],
                [int(leaf[j][rest[s]]) for j in range(trees)],
            )
            for s in starts
        ]
        labels = None
        for _ in range(rounds):
            fresh = []
            for i in rest:
                far = []
                for middle, mode in centres:
                    total = 0.0
                    for j in range(linear):
                        total += (near[j][i] - middle[j]) ** 2
                    for j in range(trees):
                        node = int(own.base[j]) + mode[j]
                        while own.last[node] < leaf[j][i] or own.first[node] > leaf[j][i]:
                            node = int(own.parent[node])
                        total += 0.0 if leaf[j][i] == mode[j] else float(own.cost[node]) ** 2
                    far.append(total)
                fresh.append(far.index(min(far)))
            if fresh == labels:
                break
            labels = fresh
            for c in range(len(centres)):
                there = [i for i, label in zip(rest, labels, strict=True) if label == c]
                if there:
                    seen = [[int(leaf[j][i]) for i in there] for j in range(trees)]
                    centres[c] = (
                        [sum(float(near[j][i]) for i in there) / len(there) for j in range(linear)],
                        [min(set(row), key=lambda x, row=row: (-row.count(x), x)) for row in seen],
                    )
        groups = [
            [i for i, label in zip(rest, labels, strict=True) if label == c]
            for c in range(len(centres))
        ]
        return sorted((g for g in groups if g), key=min)

    def merged(groups):
        """Groups too small merged with their nearest, by the repair that all methods share."""
        rest = sorted(i for g in groups for i in g)
        label = {i: c for c, g in enumerate(groups) for i in g}
        part = Arrivals(np.array(rest), values[rest], np.array([people[i] for i in rest]))

        def holds(labels, count):
            there = [[i for i, c in zip(rest, labels, strict=True) if c == n] for n in range(count)]
            return np.array([enough(g) for g in there])

        start = Partition(np.array([label[i] for i in rest], np.int32), len(groups))
        try:
            found = merge_failing(matrix_of(own, part), start, holds)
        except InfeasibleError:
            return []
        return [
            [i for i, c in zip(rest, found.labels, strict=True) if c == n]
            for n in range(found.count)
        ]

    for now in range(len(values)):
        held.append(now)
        late = delay != "none" and now - held[0] >= delta - 1
        if len(held) == delta or late:
            one_round(now, at_end=False)
    if held:
        one_round(len(values) - 1, at_end=True)
    return out
