"""Plain-Python truth for the table methods that rounded-partition is compared with.

Lists of record numbers, no kernels, no cleverness: every function restates one step of a paper as
slowly as it likes. Tests compare the compiled methods with these, record by record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from shoal.data.matrix import Matrix

Records = list[int]
Holds = Callable[[list[Records]], list[bool]]


class JustK:
    """k people in every class; `beyond_k` sends a method down the path that asks for each cut."""

    def __init__(self, matrix: Matrix, k: int, beyond_k: bool = False) -> None:
        self.matrix, self.k, self.beyond_k = matrix, k, beyond_k

    def hold(self, labels: np.ndarray, count: int) -> np.ndarray:
        return np.array([self.holds(np.flatnonzero(labels == c).tolist()) for c in range(count)], dtype=bool)

    def holds(self, members: Records) -> bool:
        return people(self.matrix, members) >= self.k


class DistinctValues(JustK):
    """k people and `least` distinct sensitive values in every class: a monotone promise beyond k."""

    def __init__(self, matrix: Matrix, k: int, values: np.ndarray, least: int) -> None:
        super().__init__(matrix, k, beyond_k=True)
        self.values, self.least = values, least

    def holds(self, members: Records) -> bool:
        return super().holds(members) and len({int(self.values[r]) for r in members}) >= self.least


def people(matrix: Matrix, members: Iterable[int]) -> int:
    members = list(members)
    return len(members if matrix.subjects is None else {int(matrix.subjects[r]) for r in members})


def cover(matrix: Matrix, j: int, lo: int, hi: int) -> int:
    """The lowest node of tree attribute j over leaves lo..hi."""
    node = int(matrix.base[j]) + lo
    while matrix.last[node] < hi:
        node = int(matrix.parent[node])
    return node


def span_cost(matrix: Matrix, j: int, lo: int, hi: int) -> float:
    if matrix.base[j] < 0:
        return (hi - lo) * float(matrix.scale[j])
    return float(matrix.width[cover(matrix, j, lo, hi)])


def span(matrix: Matrix, j: int, members: Records) -> tuple[int, int]:
    codes = [int(matrix.codes[r, j]) for r in members]
    return min(codes), max(codes)


def box_cost(matrix: Matrix, members: Records) -> float:
    return sum(span_cost(matrix, j, *span(matrix, j, members)) for j in range(matrix.attributes))


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
        range(matrix.attributes), key=lambda j: (-span_cost(matrix, j, *span(matrix, j, members)), j)
    )


# --- Mondrian, strict ---------------------------------------------------------------------------


def strict_mondrian(matrix: Matrix, promise: JustK, cut: str, trees: str) -> np.ndarray:
    def classes(members: Records) -> list[Records]:
        for parts in strict_cuts(matrix, members, cut, trees):
            if all(promise.holds(part) for part in parts):
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
            [upto] if cut == "median" else sorted([upto, below], key=lambda lr: abs(len(lr[0]) - len(lr[1])))
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
                members = sorted(members, key=lambda r: matrix.codes[r, j])  # stable: equals stay in order
            else:
                members = in_order_of(matrix, members, j)
            left, right = members[: len(members) // 2], members[len(members) // 2 :]
            if promise.holds(left) and promise.holds(right):
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
    while not all(promise.holds(c) for c in classes):
        if len(classes) == 1:
            return None
        classes = merge_round(matrix, classes, promise)
    return labels_of(classes, matrix.records)


def merge_round(matrix: Matrix, classes: list[Records], promise: JustK) -> list[Records]:
    failing = [not promise.holds(c) for c in classes]
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
    both = box_cost(matrix, a + b)
    return len(a) * (both - box_cost(matrix, a)) + len(b) * (both - box_cost(matrix, b))
