"""Plain-Python truth for the kernels of stream methods."""


class Costs:
    """What a span costs in whole units: positions for linear attributes, climbing for trees."""

    def __init__(self, near, leaf, base, parent, first, last, cost):
        self.near, self.leaf = near.tolist(), leaf.tolist()
        self.base, self.parent = base.tolist(), parent.tolist()
        self.first, self.last, self.cost = first.tolist(), last.tolist(), cost.tolist()

    def of(self, members) -> int:
        """Loss of the smallest box over some records."""
        total = sum(
            max(row[i] for i in members) - min(row[i] for i in members) for row in self.near
        )
        for j, row in enumerate(self.leaf):
            lo, hi = min(row[i] for i in members), max(row[i] for i in members)
            node = self.base[j] + lo
            while self.last[node] < hi:
                node = self.parent[node]
            total += self.cost[node]
        return total


def condensed(costs, people, picks, k, neighbour="knn", own_only=False, reach=0, order=None):
    """FADS function 1: the cluster of each record, None where left over; ties by `order`."""
    left, labels, made = list(order or sorted(picks)), {}, 0
    who = lambda i: people[i] if len(people) else i  # noqa: E731
    for pick in picks:
        enough = len(left) if own_only else len({who(i) for i in left})
        if enough < k:
            break
        if pick not in left:
            continue
        members = [pick]
        if neighbour != "knn":
            near = (
                [] if neighbour == "grow" else nearest_people(pick, left, who, costs)[: reach * k]
            )
            among = left if neighbour == "grow" else [i for i in left if i in near]
            while len(members) < k:
                others = [i for i in among if who(i) not in {who(m) for m in members}]
                members.append(min(others, key=lambda i: costs.of([*members, i])))
        else:
            near = (nearest_records if own_only else nearest_people)(pick, left, who, costs)
            members += near[: k - 1]
            if len(members) < k:
                break
        for i in members:
            labels[i] = made
            left.remove(i)
        made += 1
    return [labels.get(i) for i in range(len(picks))], made


def nearest_records(pick, left, who, costs):
    """The records of other people, the nearest first."""
    return sorted((i for i in left if who(i) != who(pick)), key=lambda i: costs.of([pick, i]))


def nearest_people(pick, left, who, costs):
    """The nearest record of every other person, the nearest first."""
    ranked = nearest_records(pick, left, who, costs)
    return [i for at, i in enumerate(ranked) if who(i) not in {who(r) for r in ranked[:at]}]


def rarest_first(costs, probes, n):
    """The records by how far they are from the probes, the farthest first; ties by arrival."""
    return sorted(range(n), key=lambda i: -sum(costs.of([i, probe]) for probe in probes))


def regrouped(costs, people, labels, count, k, tries, rounds, order=None):
    """Pairs of near clusters divided anew where that loses less; ties by `order`."""
    order = order or list(range(len(labels)))
    clusters = [[i for i in order if labels[i] == c] for c in range(count)]
    clock, changed, visited = 1, [1] * count, [0] * count
    for _ in range(rounds):
        before = clock
        for a in range(count):
            loss = [costs.of(c) for c in clusters]
            far = {
                b: 2 * costs.of(clusters[a] + clusters[b]) - loss[a] - loss[b]
                for b in range(count)
                if b != a
            }
            since, visited[a] = visited[a], clock
            for b in sorted(far, key=lambda b: (far[b], b))[:tries]:
                who = lambda i: people[i] if len(people) else i  # noqa: E731
                both = {who(i) for i in clusters[a]} & {who(i) for i in clusters[b]}
                pool = [i for i in order if i in clusters[a] + clusters[b] and who(i) not in both]
                if max(changed[a], changed[b]) <= since or not pool:
                    continue
                grown = [max(pool, key=lambda i: costs.of([*clusters[a], i]))]
                while len(grown) < len(pool) // 2:
                    grown.append(
                        min(
                            (i for i in pool if i not in grown), key=lambda i: costs.of([*grown, i])
                        )
                    )
                rest = [i for i in pool if i not in grown] + [
                    i for i in clusters[a] if who(i) in both
                ]
                grown += [i for i in clusters[b] if who(i) in both]
                if costs.of(grown) + costs.of(rest) < costs.of(clusters[a]) + costs.of(clusters[b]):
                    clock += 1
                    clusters[a], clusters[b], changed[a], changed[b] = rest, grown, clock, clock
        if clock == before:
            break
    return [next((c for c in range(count) if i in clusters[c]), None) for i in range(len(labels))]


def joined(costs, labels, count):
    """Every record that is left over in the cluster whose loss grows least, in order of arrival."""
    clusters = [[i for i, label in enumerate(labels) if label == c] for c in range(count)]
    labels = list(labels)
    for i, label in enumerate(labels):
        if label is None:
            labels[i] = min(
                range(count), key=lambda c: (costs.of([*clusters[c], i]) - costs.of(clusters[c]), c)
            )
            clusters[labels[i]].append(i)
    return labels
