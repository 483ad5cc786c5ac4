"""Plain-Python truth for the kernels of the rounded partition."""

from fractions import Fraction

import numpy as np

from shoal.data.partition import Matrix


def cover(matrix: Matrix, j: int, lo: int, hi: int) -> int:
    """The lowest node of tree attribute j over leaves lo..hi."""
    node = int(matrix.base[j]) + lo
    while matrix.last[node] < hi:
        node = int(matrix.parent[node])
    return node


def span_loss(matrix: Matrix, j: int, values: list[int]) -> float:
    """Loss of publishing these values of attribute j as one span or node."""
    lo, hi = min(values), max(values)
    if matrix.base[j] < 0:
        return (hi - lo) * float(matrix.scale[j])
    return float(matrix.width[cover(matrix, j, lo, hi)])


def width(matrix: Matrix, j: int, values: list[int]) -> Fraction:
    """`span_loss` as a fraction, where every weight is 1."""
    if matrix.base[j] < 0:
        return Fraction(max(values) - min(values), int(matrix.reach[j]) or 1)
    further = matrix.leaves(j) - 1
    return Fraction(round(span_loss(matrix, j, values) * further), further or 1)


def box_loss(matrix: Matrix, members: list[int]) -> float:
    return sum(
        span_loss(matrix, j, matrix.codes[members, j].tolist()) for j in range(matrix.attributes)
    )


def total_loss(matrix: Matrix, labels: np.ndarray) -> float:
    """Sum over records of the loss of their class."""
    classes = [np.flatnonzero(labels == c).tolist() for c in np.unique(labels)]
    return sum(len(members) * box_loss(matrix, members) for members in classes)


def same_sizes(m: int, k: int) -> tuple[int, int]:
    """The two parts of the paper's step 4, the larger first."""
    a, b = divmod(m, k)
    return -(-a // 2) * k + -(-b // 2), (a // 2) * k + b // 2


def paper_classes(
    matrix: Matrix, k: int, in_turn: bool = False, stable: bool = False
) -> list[list[int]]:
    """The paper's recursion with the sizes of step 4.

    in_turn: cuts the attribute of the depth, or the next that is not constant; else the widest.
    stable: tied records stay in the order that earlier cuts left; else they are in row order.
    """
    done: list[list[int]] = []
    waiting = [(list(range(matrix.records)), 0)]
    d = matrix.attributes
    while waiting:
        members, depth = waiting.pop()
        if len(members) < 2 * k:
            done.append(sorted(members))
            continue
        widths = [width(matrix, j, matrix.codes[members, j].tolist()) for j in range(d)]
        cut = widths.index(max(widths))
        if in_turn:
            turns = [(depth + turn) % d for turn in range(d)]
            cut = next((j for j in turns if len(set(matrix.codes[members, j])) > 1), cut)
        if not stable:
            members = sorted(members)
        ordered = sorted(members, key=lambda r: int(matrix.codes[r, cut]))
        low = same_sizes(len(members), k)[0]
        waiting += [(ordered[:low], depth + 1), (ordered[low:], depth + 1)]
    return sorted(done)


def cheapest_cut_in_two(matrix: Matrix, k: int) -> float:
    """Least total loss over all admissible cuts of the whole table on any attribute that costs
    anything.

    Tied records go by the other attributes, the widest first, the earlier where equally wide.
    """
    m = matrix.records
    losses = [span_loss(matrix, j, matrix.codes[:, j].tolist()) for j in range(matrix.attributes)]
    widest_first = sorted(
        range(matrix.attributes), key=lambda j: (losses[j] != max(losses), -losses[j], j)
    )
    found = []
    for j in (j for j in range(matrix.attributes) if losses[j] > 0):
        ordered = sorted(
            range(m),
            key=lambda r: (matrix.codes[r, j], *(matrix.codes[r, t] for t in widest_first)),
        )
        for c in range(max(m // 16, k), m - max(m // 16, k) + 1):
            if c % k <= m % k:
                low, high = ordered[:c], ordered[c:]
                found.append(c * box_loss(matrix, low) + (m - c) * box_loss(matrix, high))
    return min(found)
