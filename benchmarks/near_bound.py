"""A lower bound on what classes of k lose, from the k nearest records of each.

The class of record i holds k - 1 others, and its span covers i and each of them. So a record loses
at least what the span over it and its (k - 1)-th nearest record costs, and the mean of this over
all records is less than any k-anonymous classes lose. It is far from tight: k records that are near
i on different attributes need more room together than any one of them does.
"""

from __future__ import annotations

import numpy as np

from shoal.data.partition import Matrix
from shoal.search.segments import lowest_nodes

SAMPLE = 500  # records whose nearest are found among all


def least_losses(matrix: Matrix, ks: tuple[int, ...]) -> dict[int, tuple[float, float]]:
    """For each k the estimated bound and its standard error, both in % of the cells."""
    drawn = np.random.default_rng(0).permutation(matrix.records)[:SAMPLE]
    least = np.array([_nearest(matrix, i, ks) for i in drawn.tolist()]) * 100 / matrix.attributes
    errors = least.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    return {
        k: (float(mean), float(error))
        for k, mean, error in zip(ks, least.mean(axis=0), errors, strict=True)
    }


def _nearest(matrix: Matrix, i: int, ks: tuple[int, ...]) -> np.ndarray:
    """What the span over record i and its (k - 1)-th nearest costs, for each k."""
    codes = matrix.codes
    loss = (np.abs(codes - codes[i].astype(np.int64)) * matrix.scale).sum(axis=1)
    for j in np.flatnonzero(matrix.base >= 0).tolist():
        lo, hi = np.minimum(codes[:, j], codes[i, j]), np.maximum(codes[:, j], codes[i, j])
        loss += matrix.width[lowest_nodes(matrix, j, lo, hi)]
    places = [k - 1 for k in ks]  # the nearest is the record itself
    return np.partition(loss, places)[places]
