"""Plain-Python truth for the clustering methods: lists of records, fractions, one step at a time.

points: one list of coordinates for each record. Sensitive attributes are given as `Asked`.
"""

from dataclasses import dataclass
from fractions import Fraction

Records = list[int]


@dataclass(frozen=True)
class Asked:
    """One sensitive attribute: the records' values, their number, the limit; parents in trees."""

    values: list[int]
    count: int
    t: float
    distance: str = "ordered"
    parent: tuple[int, ...] = ()
    height: tuple[int, ...] = ()


def distance_to_table(asked: Asked, members: Records) -> Fraction:
    """Earth mover's distance of the members from all records, by each ground's definition."""
    shares = [
        Fraction(sum(asked.values[r] == v for r in members), len(members))
        - Fraction(asked.values.count(v), len(asked.values))
        for v in range(asked.count)
    ]
    if asked.distance == "equal":
        return sum((abs(share) for share in shares), Fraction(0)) / 2
    if asked.distance == "ordered":
        if asked.count < 2:
            return Fraction(0)
        running, total = Fraction(0), Fraction(0)
        for share in shares:
            running += share
            total += abs(running)
        return total / (asked.count - 1)
    surplus = [Fraction(0)] * len(asked.parent)
    for value, share in enumerate(shares):
        node = value
        while node >= 0:
            surplus[node] += share
            node = asked.parent[node]
    edges = [asked.height[p] - asked.height[i] if p >= 0 else 0 for i, p in enumerate(asked.parent)]
    return (
        sum((abs(s) * e for s, e in zip(surplus, edges, strict=True)), Fraction(0))
        / 2
        / max(asked.height)
    )


def excess(asked: list[Asked], members: Records) -> float:
    """The greatest distance beyond a limit, -1 where nothing is asked."""
    return max([-1.0, *(float(distance_to_table(a, members)) - a.t for a in asked)])


def squared_distance(a: list[float], b: list[float]) -> float:
    total = 0.0
    for x, y in zip(a, b, strict=True):
        total += (x - y) * (x - y)
    return total


def mean_of(points: list[list[float]], members: Records) -> list[float]:
    return [sum(points[r][j] for r in members) / len(members) for j in range(len(points[0]))]


def nearest(points: list[list[float]], among: Records, centre: list[float]) -> int:
    return min(among, key=lambda r: (squared_distance(points[r], centre), r))


def farthest(points: list[list[float]], among: Records, centre: list[float]) -> int:
    return min(among, key=lambda r: (-squared_distance(points[r], centre), r))


def around_extremes(
    points: list[list[float]], people: list[int], k: int, asked: list[Asked]
) -> list[Records]:
    """MDAV; with something asked, k-anonymity first: each class swaps until it is close enough."""
    left, classes = list(range(len(points))), []
    seed = None
    while len({people[r] for r in left}) >= 2 * k:
        start = seed if seed is not None else farthest(points, left, mean_of(points, left))
        members = nearest_people(points, people, left, points[start], k)
        left = [r for r in left if r not in members]
        for _ in swapped(points, people, members, left, asked, points[start]):
            pass
        classes.append(members)
        seed = farthest(points, left, points[start]) if seed is None and left else None
    return [*classes, left] if left else classes


def nearest_people(points, people, left: Records, centre: list[float], k: int) -> Records:
    members: Records = []
    for r in sorted(left, key=lambda r: (squared_distance(points[r], centre), r)):
        members.append(r)
        if len({people[m] for m in members}) == k:
            break
    return members


def swapped(
    points, people, members: Records, left: Records, asked: list[Asked], centre: list[float] | None
):
    """Lines 11 to 21 of the paper: swaps members in place, yields the excess after each candidate.

    centre: where candidates are near to; None for the mean of the members, which moves.
    """
    waiting = list(left)
    now = excess(asked, members)
    while now > 1e-12 and waiting:
        candidate = nearest(points, waiting, mean_of(points, members) if centre is None else centre)
        waiting.remove(candidate)
        choices = [
            (excess(asked, [candidate if m == r else m for m in members]), r)
            for r in members
            if all(people[candidate] != people[m] for m in members if m != r)
        ]
        if choices:
            after, replaced = min(choices)
            if after < now:
                members[members.index(replaced)] = candidate
                left.remove(candidate)
                left.append(replaced)
                left.sort()
                now = after
        yield now


def from_groups(
    points, group: list[int], k: int, asked: list[Asked], uniform: list[float], follow: bool
):
    """Lines 3 to 23; classes, and what is left below 2k records."""
    left, classes, people = list(range(len(points))), [], list(range(len(points)))
    while len(left) >= 2 * k:
        first = min(group[r] for r in left)
        candidates = [r for r in left if group[r] == first]
        seed = candidates[min(int(uniform[len(classes)] * len(candidates)), len(candidates) - 1)]
        members = [seed]
        left.remove(seed)
        while len(members) < k:
            others = sorted({group[r] for r in left} - {0}) or [0]
            for g in others[: k - len(members)]:
                chosen = nearest(points, [r for r in left if group[r] == g], points[seed])
                members.append(chosen)
                left.remove(chosen)
        if follow:
            for _ in swapped(points, people, members, left, asked, None):
                pass
        classes.append(members)
    return classes, left


def merged(points, classes: list[Records], asked: list[Asked]) -> list[Records]:
    """The farthest class merges with its nearest until all are close enough."""
    classes = [list(members) for members in classes]
    while len(classes) > 1:
        measured = [excess(asked, members) for members in classes]
        worst = measured.index(max(measured))
        if measured[worst] <= 1e-12:
            break
        centre = mean_of(points, classes[worst])
        others = [c for c in range(len(classes)) if c != worst]
        partner = min(
            others, key=lambda c: (squared_distance(mean_of(points, classes[c]), centre), c)
        )
        low, high = sorted((worst, partner))
        classes[low] = classes[low] + classes.pop(high)
    return classes


def in_runs(values: list[int], count: int) -> list[Records]:
    """t-closeness first: equal runs of the records by their values, the middle one longer."""
    order = sorted(range(len(values)), key=lambda r: (values[r], r))
    each, spare = divmod(len(order), count)
    runs, at = [], 0
    for run in range(count):
        size = each + (spare if run == count // 2 else 0)
        runs.append(order[at : at + size])
        at += size
    return runs


def one_from_each(points, runs: list[Records]) -> list[Records]:
    """Classes of one record of each run, one of the longer run more as long as it lasts."""
    runs = [list(run) for run in runs]
    each, classes, seed = min(map(len, runs)), [], None
    for number in range(each):
        left = sorted(r for run in runs for r in run)
        start = seed if seed is not None else farthest(points, left, mean_of(points, left))
        members = [nearest(points, run, points[start]) for run in runs]
        runs = [[r for r in run if r not in members] for run in runs]
        longer = [run for run in runs if len(run) > each - number - 1]
        if longer:
            chosen = nearest(points, longer[0], points[start])
            members.append(chosen)
            longer[0].remove(chosen)
        classes.append(members)
        left = sorted(r for run in runs for r in run)
        seed = farthest(points, left, points[start]) if seed is None and left else None
    return classes


def squared_error(points, classes: list[Records]) -> float:
    return sum(
        squared_distance(points[r], mean_of(points, members))
        for members in classes
        for r in members
    )


def total_excess(asked: list[Asked], members: Records) -> float:
    """The sum over the attributes of what the distance exceeds the limit by."""
    return sum(max(0.0, float(distance_to_table(a, members)) - a.t) for a in asked)


def k_member(loss, records: int, people: list[int], k: int, first: int) -> list[Records]:
    """loss(members): cost of the smallest box over them."""
    left, classes, seed = list(range(records)), [], first
    while left and len({people[r] for r in left}) >= k:
        seed = min(left, key=lambda r: (-loss([seed, r]), r))
        members = [seed]
        left.remove(seed)
        while len({people[r] for r in members}) < k:
            chosen = min(left, key=lambda r: (loss([*members, r]), r))
            members.append(chosen)
            left.remove(chosen)
        classes.append(members)
    for r in left:
        added = [len([*m, r]) * loss([*m, r]) - len(m) * loss(m) for m in classes]
        classes[added.index(min(added))].append(r)
    return classes
