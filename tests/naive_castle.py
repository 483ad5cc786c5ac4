"""CASTLE in plain Python, records and clusters as lists; promises k alone."""

import numpy as np

from naive_streams import Costs
from naive_windows import box


def castle(own, values, people, k, delta, beta, mu, keep, seed, alpha=0):
    """What becomes of each record: (record, kind, members of its cluster), in order of leaving.

    keep: 0, so that no cluster is forgotten; alpha: of b-castle, the most people of a cluster.
    """
    assert keep == 0
    near, leaf = own.scaled_positions(values), own.leaf(values)
    costs = Costs(near, leaf, *own.costs)
    unit = 1 << 24
    groups, good, losses, out, made = [], [], [], [], 0

    def size(group):
        return len({people[i] for i in group})

    def tau():
        return float(np.mean(losses[-mu:])) if losses else 0.0

    def publish(group):
        nonlocal made
        groups.remove(group)
        members = sorted(group)
        parts = [members]
        if size(group) >= 2 * k:
            picks = np.random.default_rng([seed, 4, made]).permutation(len(members)).tolist()
            parts = split(members, picks)
        for part in parts:
            lo, hi, loss = box(own, values, part)
            losses.append(loss)
            if loss < tau():
                good.append((lo, hi, tuple(sorted(part))))
        made += len(parts)
        for i in members:
            out.append((i, "new", tuple(sorted(next(p for p in parts if i in p)))))

    def split(members, picks):
        rank = {members[p]: r for r, p in enumerate(picks)}
        left, parts = list(members), []
        order = [members[p] for p in picks]
        while size(left) >= k:
            pick = next(i for i in order if i in left)
            drawn = {}
            for i in left:
                if people[i] != people[pick] and (
                    people[i] not in drawn or rank[i] < rank[drawn[people[i]]]
                ):
                    drawn[people[i]] = i
            near_ones = sorted(drawn.values(), key=lambda i: (costs.of([pick, i]), i))[: k - 1]
            parts.append([pick, *near_ones])
            left = [i for i in left if i not in parts[-1]]
        while left:
            rows = [i for i in left if people[i] == people[left[0]]]
            added = [costs.of(part + rows) - costs.of(part) for part in parts]
            parts[added.index(min(added))].extend(rows)
            left = [i for i in left if i not in rows]
        return parts

    def delay(i):
        group = next((g for g in groups if i in g), None)
        if group is None:
            return
        if size(group) >= k:
            return publish(group)
        fits = [
            members
            for lo, hi, members in good
            if (lo <= values[i]).all() and (values[i] <= hi).all()
        ]
        if fits:
            drawn = np.random.default_rng([seed, 3, i]).integers(len(fits))
            out.append((i, "reuse", fits[drawn]))
        elif (
            sum(size(g) > size(group) for g in groups) > len(groups) / 2
            or size([j for g in groups for j in g]) < k
        ):
            out.append((i, "suppress", None))
        else:
            while size(group) < k:
                others = [g for g in groups if g is not group]
                # of equals the one begun first
                nearest = min(others, key=lambda g: costs.of(group + g))
                if alpha:
                    for j in sorted(nearest, key=lambda j: (costs.of([*group, j]), j)):
                        nearest.remove(j)
                        group.append(j)
                        if size(group) >= k:
                            break
                    if not nearest:
                        groups.remove(nearest)
                else:
                    group.extend(nearest)
                    groups.remove(nearest)
            return publish(group)
        group.remove(i)
        if not group:
            groups.remove(group)

    for i in range(len(values)):
        open_ones = [g for g in groups if not alpha or size(g) < alpha]
        regardless = not open_ones and len(groups) >= beta
        asked = groups if regardless else open_ones
        added = [costs.of([*g, i]) - costs.of(g) for g in asked]
        least = [g for g, a in zip(asked, added, strict=True) if a == min(added)]
        fit = [g for g in least if costs.of([*g, i]) <= int(tau() * unit)]
        if fit:
            min(fit, key=size).append(i)
        elif len(groups) < beta:
            groups.append([i])
        else:
            min(least, key=size).append(i)
        delay(i - delta)
    for i in range(len(values)):
        delay(i)
    return out
