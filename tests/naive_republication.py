"""Plain twins of re-publication: slow, from the papers' words, sharing no code with the source."""

import numpy as np


def crp_classes(points: np.ndarray, who: list[int], k: int, first: int) -> list[int]:
    """CRP's steps 3 to 7: the class of each record, -1 for those left. points: (n, d)."""
    left, labels, centre, number = set(range(len(points))), [-1] * len(points), first, 0
    while len({who[i] for i in left}) >= k:
        distance = {
            i: sum((a - b) ** 2 for a, b in zip(points[i], points[centre], strict=True))
            for i in left
        }
        nearest = sorted(left - {centre}, key=lambda i: (distance[i], i))
        group, people = [centre], {who[centre]}
        for i in nearest:
            if len(people) == k:
                break
            group.append(i)
            people.add(who[i])
        for i in group:
            labels[i] = number
        number += 1
        left -= set(group)
        if left:
            centre = min(left, key=lambda i: (-distance[i], i))
    return labels


def with_leftovers(who: list[int], labels: list[int], k: int, cost) -> list[int]:
    """Step 8: whoever is left joins the class that costs least while fewer than 2k - 1 people are
    in, or the same one. cost: of a record and a class, with its members as they are.
    """
    labels = list(labels)
    for i in [i for i, label in enumerate(labels) if label < 0]:
        classes = [[j for j, at in enumerate(labels) if at == c] for c in range(max(labels) + 1)]
        inside = [{who[j] for j in members} for members in classes]
        room = [c for c, people in enumerate(inside) if len(people) < 2 * k - 1 or who[i] in people]
        labels[i] = min(room, key=lambda c: (cost(i, c, classes[c]), c))
    return labels


def to_nearest_mean(points: np.ndarray, labels: list[int]):
    """What step 8 asks for: how far a class is, by its mean before anybody joins."""
    means = [
        np.mean([points[i] for i, at in enumerate(labels) if at == c], axis=0)
        for c in range(max(labels) + 1)
    ]
    return lambda i, c, _: float(((means[c] - points[i]) ** 2).sum())


def of_added_loss(columns, costs):
    """The variant: what a class loses more as a whole. columns: (n, d) codes; costs: of a code."""

    def loss(members: list[int]) -> float:
        spans = ([columns[i][j] for i in members] for j in range(len(costs)))
        return len(members) * sum(
            (max(s) - min(s)) * cost for s, cost in zip(spans, costs, strict=True)
        )

    return lambda i, _, members: loss([*members, i]) - loss(members)


def cells(histories: list[dict[int, int]]) -> dict[tuple, set[int]]:
    """Records by all classes that they were ever in; a history is record -> class."""
    whole_table = set().union(*histories)
    found: dict[tuple, set[int]] = {}
    for record in whole_table:
        found.setdefault(tuple(history.get(record) for history in histories), set()).add(record)
    return found


def mappings(first: list[tuple], second: list[tuple]):
    """Every way in which the rows of the first release can be rows of the second: equal values,
    boxes that meet.

    A row is (class, box, value); a box is a tuple of (lo, hi).
    """

    def fits(a: tuple, b: tuple) -> bool:
        return a[2] == b[2] and all(
            l1 <= h2 and l2 <= h1 for (l1, h1), (l2, h2) in zip(a[1], b[1], strict=True)
        )

    def extend(i: int, used: tuple[int, ...]):
        if i == len(first):
            yield used
            return
        for j in range(len(second)):
            if j not in used and fits(first[i], second[j]):
                yield from extend(i + 1, (*used, j))

    yield from extend(0, ())


def forward_and_cross(first: list[tuple], second: list[tuple], g1: int, g2: int) -> int:
    """The most records that two classes share in any mapping: |g1| - F or |g2| - C at best."""
    return max(
        sum(row[0] == g1 and second[j][0] == g2 for row, j in zip(first, mapping, strict=True))
        for mapping in mappings(first, second)
    )


def backward(first: list[tuple], second: list[tuple], g2: int) -> int:
    """The fewest records of a later class that are old in any mapping; B counts no more."""
    return min(sum(second[j][0] == g2 for j in mapping) for mapping in mappings(first, second))


def in_company(rounds: list[set[int]], k: int) -> set[int]:
    """The union of all sets of people of whom each has k there who were in all its rounds."""
    best: set[int] = set()
    for bits in range(1 << len(rounds)):
        chosen = {i for i in range(len(rounds)) if bits >> i & 1}
        if all(sum(rounds[i] <= rounds[j] for j in chosen) >= k for i in chosen):
            best |= chosen
    return best


def least_atom(releases: list[dict[int, int]]) -> int:
    """How many people share the rarest history of classes and absences."""
    return min(map(len, cells(releases).values()), default=0)


def least_company(releases: list[dict[int, int]]) -> int:
    """How few people, the person included, were in all classes that somebody was in."""
    people = set().union(*releases) if releases else set()
    company = [
        sum(all(r.get(q) == r[p] for r in releases if p in r) for q in people) for p in people
    ]
    return min(company, default=0)
