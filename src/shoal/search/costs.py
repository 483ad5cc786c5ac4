"""What spans of codes cost, in the form that kernels take."""

from __future__ import annotations

import numpy as np

from shoal.data.matrix import Matrix


def costs_of(matrix: Matrix, further: float | None = None) -> np.ndarray:
    """What a span of codes costs, as the one table that kernels take: (d + nodes, 3) float64.

    A row for each attribute: loss per unit of code, row of its first node or -1, 0. Then one for
    each node: row of its parent or -1, last leaf covered, loss. Row numbers and leaves are int64,
    kept as the bits of a float64.

    further: loss per unit of one more linear attribute, put after the matrix's own.
    """
    scale = matrix.scale if further is None else np.append(matrix.scale, further)
    base = matrix.base if further is None else np.append(matrix.base, -1)
    d = len(scale)
    costs = np.zeros((d + len(matrix.parent), 3))
    numbers = costs.view(np.int64)
    costs[:d, 0] = scale
    numbers[:d, 1] = np.where(base < 0, -1, base + d)
    numbers[d:, 0] = np.where(matrix.parent < 0, -1, matrix.parent + d)
    numbers[d:, 1] = matrix.last
    costs[d:, 2] = matrix.width
    return costs
