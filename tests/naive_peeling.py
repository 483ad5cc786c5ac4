"""Plain-Python truth for lattice peeling: dictionaries of cells, one vector after another."""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from itertools import product

from naive_partition import span_loss
from naive_peers import Holds, Records, people
from shoal.data.partition import Matrix

BINS = (32, 24, 16, 12, 8, 6, 4, 3, 2, 1)

Cells = list[list[int]]
"""For each level, the cell of each record: a node of a hierarchy, or the number of a bin."""


def cells(matrix: Matrix, j: int) -> Cells:
    """Every level that tells apart some records that a coarser one doesn't; the coarsest."""
    codes = [int(code) for code in matrix.codes[:, j]]
    if matrix.base[j] >= 0:
        top = max(height(matrix, node) for node in range(len(matrix.parent)))
        levels = [
            [ancestor(matrix, int(matrix.base[j]) + code, level) for code in codes]
            for level in range(top + 1)
        ]
    else:
        reach = max(codes) - min(codes) + 1
        levels = [codes] + [
            [(code - min(codes)) * bins // reach for code in codes] for bins in BINS
        ]
    kept: Cells = []
    for level in levels:
        if not kept or len(set(level)) < len(set(kept[-1])):
            kept.append(level)
    return kept


def height(matrix: Matrix, node: int) -> int:
    below = [child for child in range(len(matrix.parent)) if matrix.parent[child] == node]
    return 1 + max(height(matrix, child) for child in below) if below else 0


def ancestor(matrix: Matrix, node: int, level: int) -> int:
    up = int(matrix.parent[node])
    return node if up < 0 or height(matrix, up) > level else ancestor(matrix, up, level)


def mean_loss(matrix: Matrix, j: int, level: list[int]) -> float:
    """What records lose with these cells: a node's width, or the reach of what is in a bin."""
    if matrix.base[j] >= 0:
        return sum(float(matrix.width[node]) for node in level) / len(level)
    members = defaultdict(list)
    for record, cell in enumerate(level):
        members[cell].append(int(matrix.codes[record, j]))
    return sum(len(codes) * span_loss(matrix, j, codes) for codes in members.values()) / len(level)


def lattice(levels: Sequence[Cells]) -> list[tuple[int, ...]]:
    return list(product(*(range(len(of_attribute)) for of_attribute in levels)))


def peel(
    matrix: Matrix,
    levels: Sequence[Cells],
    vectors: Iterable[Sequence[int]],
    k: int,
    holds: Holds | None = None,
) -> tuple[list[Records], Records]:
    """The groups that leave under one vector after another, and who stays to the end."""
    left = list(range(matrix.records))
    taken: list[Records] = []
    for vector in vectors:
        groups: dict[tuple[int, ...], Records] = defaultdict(list)
        for record in left:
            groups[tuple(levels[j][level][record] for j, level in enumerate(vector))].append(record)
        large = [members for members in groups.values() if people(matrix, members) >= k]
        answers = holds(large) if holds and large else [True] * len(large)
        leaving = [members for members, yes in zip(large, answers, strict=True) if yes]
        taken += leaving
        left = sorted(set(left) - {record for members in leaving for record in members})
    return taken, left
