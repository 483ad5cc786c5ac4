"""Plain-Python truth for the table methods that rounded-partition is compared with.

Lists of record numbers, no kernels, no cleverness: every function restates one step of a paper as
slowly as it likes. Tests compare the compiled methods with these, record by record.
"""

from collections.abc import Callable, Iterable

import numpy as np

from naive_partition import box_loss, cover, width
from shoal.data.partition import Matrix
from shoal.protocols import Promises

Records = list[int]
Holds = Callable[[list[Records]], list[bool]]


class JustK(Promises):
    """k people in every class; `needs_more_than_k` has a method ask for each cut."""

    about_release = False

    def __init__(self, matrix: Matrix, k: int, needs_more_than_k: bool = False) -> None:
        self.matrix, self.k, self.needs_more_than_k = matrix, k, needs_more_than_k

    def holds(self, labels: np.ndarray, count: int) -> np.ndarray:
        return np.array(
            [self.keeps(np.flatnonzero(labels == c).tolist()) for c in range(count)], dtype=bool
        )

    def keeps(self, members: Records) -> bool:
        return people(self.matrix, members) >= self.k


class DistinctValues(JustK):
    """k people and `least` sensitive values in every class: monotone, beyond k."""

    def __init__(self, matrix: Matrix, k: int, values: np.ndarray, least: int) -> None:
        super().__init__(matrix, k, needs_more_than_k=True)
        self.values, self.least = values, least

    def keeps(self, members: Records) -> bool:
        return super().keeps(members) and len({int(self.values[r]) for r in members}) >= self.least


def people(matrix: Matrix, members: Iterable[int]) -> int:
    members = list(members)
    return len(members if matrix.subjects is None else {int(matrix.subjects[r]) for r in members})


def span(matrix: Matrix, j: int, members: Records) -> tuple[int, int]:
    codes = [int(matrix.codes[r, j]) for r in members]
    return min(codes), max(codes)


def classes_of(labels: np.ndarray) -> list[Records]:
    return [np.flatnonzero(labels == c).tolist() for c in range(labels.max() + 1)]


def labels_of(classes: list[Records], n: int) -> np.ndarray:
    """Classes numbered in order of their first record."""
    labels = np.full(n, -1, dtype=np.int32)
    for number, members in enumerate(sorted(classes, key=min)):
        labels[members] = number
    return labels


def widest_first(matrix: Matrix, members: Records) -> list[int]:
    return sorted(
        range(matrix.attributes),
        key=lambda j: (-width(matrix, j, matrix.codes[members, j].tolist()), j),
    )


# --- Mondrian, strict ---------------------------------------------------------------------------


def strict_mondrian(matrix: Matrix, promise: JustK, cut: str, trees: str) -> np.ndarray:
    def classes(members: Records) -> list[Records]:
        for parts in strict_cuts(matrix, members, cut, trees):
            if all(promise.keeps(part) for part in parts):
                return [found for part in parts for found in classes(part)]
        return [members]

    return labels_of(classes(list(range(matrix.records))), matrix.records)


def strict_cuts(matrix: Matrix, members: Records, cut: str, trees: str) -> Iterable[list[Records]]:
    for j in widest_first(matrix, members):
        lo, hi = span(matrix, j, members)
        if lo == hi:
            continue
        if trees == "children" and matrix.base[j] >= 0:
            yield children(matrix, members, j)
            continue
        ordered = sorted(int(matrix.codes[r, j]) for r in members)
        median = ordered[(len(ordered) - 1) // 2]
        upto = (
            [r for r in members if matrix.codes[r, j] <= median],
            [r for r in members if matrix.codes[r, j] > median],
        )
        below = (
            [r for r in members if matrix.codes[r, j] < median],
            [r for r in members if matrix.codes[r, j] >= median],
        )
        tries = (
            [upto]
            if cut == "median"
            else sorted([upto, below], key=lambda lr: abs(len(lr[0]) - len(lr[1])))
        )
        for left, right in tries:
            if left and right:
                yield [left, right]


def children(matrix: Matrix, members: Records, j: int) -> list[Records]:
    top = cover(matrix, j, *span(matrix, j, members))
    parts: dict[int, Records] = {}
    for r in members:
        node = int(matrix.base[j] + matrix.codes[r, j])
        while matrix.parent[node] != top:
            node = int(matrix.parent[node])
        parts.setdefault(node, []).append(r)
    return list(parts.values())


# --- Mondrian, relaxed --------------------------------------------------------------------------


def relaxed_mondrian(matrix: Matrix, promise: JustK, ties: str) -> np.ndarray:
    def classes(members: Records) -> list[Records]:
        if len(members) < 2 * promise.k:
            return [members]
        for place, j in enumerate(widest_first(matrix, members)):
            lo, hi = span(matrix, j, members)
            if place > 0 and lo == hi:
                continue
            if ties == "rows":
                # stable: equals stay in order
                members = sorted(members, key=lambda r: matrix.codes[r, j])
            else:
                members = in_order_of(matrix, members, j)
            left, right = members[: len(members) // 2], members[len(members) // 2 :]
            if promise.keeps(left) and promise.keeps(right):
                return classes(left) + classes(right)
        return [members]

    return labels_of(classes(list(range(matrix.records))), matrix.records)


def in_order_of(matrix: Matrix, members: Records, j: int) -> Records:
    """By j, then by the other attributes, the widest first, then by record number."""
    others = [j, *(i for i in widest_first(matrix, members) if i != j)]
    return sorted(members, key=lambda r: ([int(matrix.codes[r, i]) for i in others], r))


# --- Repair -------------------------------------------------------------------------------------


def repaired(matrix: Matrix, labels: np.ndarray, promise: JustK) -> np.ndarray | None:
    """None where one class of all records fails."""
    classes = [c for c in classes_of(labels) if c]
    while not all(promise.keeps(c) for c in classes):
        if len(classes) == 1:
            return None
        classes = merge_round(matrix, classes, promise)
    return labels_of(classes, matrix.records)


def merge_round(matrix: Matrix, classes: list[Records], promise: JustK) -> list[Records]:
    failing = [not promise.keeps(c) for c in classes]
    partner: dict[int, int] = {}
    for f in range(len(classes)):
        if not failing[f] or f in partner:
            continue
        free = [g for g in range(len(classes)) if g != f and not (failing[g] and g in partner)]
        if free:
            partner[f] = min(free, key=lambda g: (added_loss(matrix, classes[f], classes[g]), g))
            if failing[partner[f]]:
                partner[partner[f]] = f
    merged: dict[int, Records] = {g: list(c) for g, c in enumerate(classes) if g not in partner}
    for f, g in partner.items():
        merged.setdefault(min(f, g) if failing[g] else g, []).extend(classes[f])
    return [merged[number] for number in sorted(merged)]


def added_loss(matrix: Matrix, a: Records, b: Records) -> float:
    both = box_loss(matrix, a + b)
    return len(a) * (both - box_loss(matrix, a)) + len(b) * (both - box_loss(matrix, b))


# --- Bottom-up ----------------------------------------------------------------------------------


def bottom_up(matrix: Matrix, promise: JustK, rule: str, block: int) -> np.ndarray:
    everybody = list(range(matrix.records))
    most = max(block, 4 * promise.k)
    blocks = (
        halved(matrix, everybody, (most + 1) // 2)
        if block > 0 and most < matrix.records
        else [everybody]
    )
    groups = [
        group for members in blocks for group in grown(matrix, sorted(members), promise, rule)
    ]
    found = repaired(matrix, labels_of(groups, matrix.records), JustK(matrix, promise.k))
    assert found is not None
    return found


def halved(matrix: Matrix, members: Records, least: int) -> list[Records]:
    if len(members) < 2 * least:
        return [members]
    ordered = in_order_of(matrix, members, widest_first(matrix, members)[0])
    middle = len(members) // 2
    return halved(matrix, ordered[:middle], least) + halved(matrix, ordered[middle:], least)


def grown(matrix: Matrix, members: Records, promise: JustK, rule: str) -> list[Records]:
    groups = [[r] for r in members]
    while len(groups) > 1 and any(people(matrix, g) < promise.k for g in groups):
        merged = agglomerated(matrix, groups, promise.k, rule)
        groups = sorted(
            (part for g in merged for part in rounded_parts(matrix, g, promise)), key=min
        )
    return groups


def agglomerated(matrix: Matrix, groups: list[Records], k: int, rule: str) -> list[Records]:
    here = {number: list(g) for number, g in enumerate(groups)}
    small = [number for number in here if people(matrix, here[number]) < k]
    changed: set[int] = set()
    for g in sorted(small, key=lambda number: (people(matrix, groups[number]), number)):
        if g in changed or g not in here or len(here) == 1:
            continue
        others = [number for number in here if number != g]
        best = min(
            others, key=lambda number: (union_loss(matrix, here[g], here[number], rule), number)
        )
        kept, gone = min(g, best), max(g, best)
        here[kept] = here[kept] + here.pop(gone)
        changed.add(kept)
    return list(here.values())


def union_loss(matrix: Matrix, a: Records, b: Records, rule: str) -> float:
    if rule == "added":
        return added_loss(matrix, a, b)
    return box_loss(matrix, a + b) * (len(a) + len(b) if rule == "union" else 1)


def rounded_parts(matrix: Matrix, members: Records, promise: JustK) -> list[Records]:
    """At most floor(n / k) parts, the sizes as in rounded partition; asked at every cut."""
    k = promise.k
    if len(members) < 2 * k:
        return [members]
    a, b = divmod(len(members), k)
    rank = (a + 1) // 2 * k + (b + 1) // 2
    for place, j in enumerate(widest_first(matrix, members)):
        lo, hi = span(matrix, j, members)
        if place > 0 and lo == hi:
            continue
        ordered = in_order_of(matrix, members, j)
        left, right = ordered[:rank], ordered[rank:]
        if promise.keeps(left) and promise.keeps(right):
            return rounded_parts(matrix, left, promise) + rounded_parts(matrix, right, promise)
    return [members]


# --- Top-down greedy ----------------------------------------------------------------------------


def greedy_sides(
    matrix: Matrix, members: Records, k: int, rounds: int, rule: str
) -> tuple[Records, Records] | None:
    """One split of records in their random order; None where a side can't get its people."""
    u, v = far_pair(matrix, members, rounds)
    sides: tuple[Records, Records] = ([u], [v])
    for r in members:
        if r not in (u, v):
            sides[chosen_side(matrix, sides, (u, v), r, rule)].append(r)
    return with_people(matrix, sides, k)


def far_pair(matrix: Matrix, members: Records, rounds: int) -> tuple[int, int]:
    u = v = members[0]
    apart = -1.0
    for _ in range(rounds):
        others = [r for r in members if r != u]
        far = min(others, key=lambda r: (-box_loss(matrix, [u, r]), r))
        if box_loss(matrix, [u, far]) <= apart:
            break
        apart = box_loss(matrix, [u, far])
        u, v = far, u
    return v, u


def chosen_side(
    matrix: Matrix, sides: tuple[Records, Records], seeds: tuple[int, int], r: int, rule: str
) -> int:
    if rule == "seeds":
        costs = [box_loss(matrix, [r, seed]) for seed in seeds]
    else:
        costs = [box_loss(matrix, [*side, r]) for side in sides]
    if rule == "weighted":
        sizes = [len(side) for side in sides]
        costs = [(sizes[s] + 1) * costs[s] - sizes[s] * box_loss(matrix, sides[s]) for s in (0, 1)]
    return min((0, 1), key=lambda s: (costs[s], len(sides[s]), s))


def with_people(
    matrix: Matrix, sides: tuple[Records, Records], k: int
) -> tuple[Records, Records] | None:
    short = [people(matrix, side) < k for side in sides]
    if not any(short):
        return sides
    if all(short):
        return None
    poor, rich = (sides[0], sides[1]) if short[0] else (sides[1], sides[0])
    before = list(poor)
    for r in sorted(rich, key=lambda r: (box_loss(matrix, [*before, r]), r)):
        if people(matrix, poor) < k and people(matrix, [*poor, r]) > people(matrix, poor):
            poor.append(r)
            rich.remove(r)
    return sides if people(matrix, poor) >= k and people(matrix, rich) >= k else None
