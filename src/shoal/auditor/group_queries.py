"""Counts asked of two tables: how many people in two ranges have one of three sensitive values.

Xiao, Tao. VLDB 2006 (the estimate: in each group, the rows in the ranges times the share of the
group that has the values). Which queries are asked is ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

QUERIES = 500
ATTRIBUTES, VALUES = 2, 3  # of a query, if there are as many
SANITY = 0.001  # share of the records, or 1, below which no error is taken relative to the count
MOST_READ = 200_000_000  # rows that all queries read; large tables are asked fewer of them
FEWEST = 20


@dataclass(frozen=True)
class People:
    """Rows of a table, in any order.

    quasi: by attribute, (n,) float64, number, place or leaf, NaN for no value. sensitive: (n,)
    places of the values, 0..values-1, numbered alike in every table that is compared.
    """

    quasi: Sequence[np.ndarray]
    sensitive: np.ndarray


def group_query_error(
    published: People, labels: np.ndarray, original: People, seed: int
) -> float | None:
    """Mean of |estimate - truth| / max(truth, a thousandth of the records, 1) over random queries.

    published: each row with any value of its group; labels: (n,) its group. A range lies between
    two random records' values. Neither order of rows changes the queries. None without records.
    """
    records = len(labels)
    if not records:
        return None
    rng = np.random.default_rng([seed, 5])
    ranked = [np.sort(values[~np.isnan(values)]) for values in original.quasi]
    sizes = np.maximum(np.bincount(labels), 1)
    known = int(original.sensitive.max()) + 1
    errors = []
    for _ in range(max(FEWEST, min(QUERIES, MOST_READ // records))):
        inside, truth = np.ones(records, dtype=bool), np.ones(len(original.sensitive), dtype=bool)
        for j in rng.permutation(len(ranked))[:ATTRIBUTES]:
            low, high = _range(ranked[j], rng)
            inside &= (low <= published.quasi[j]) & (published.quasi[j] <= high)
            truth &= (low <= original.quasi[j]) & (original.quasi[j] <= high)
        asked = np.zeros(max(known, int(published.sensitive.max()) + 1), dtype=bool)
        asked[rng.permutation(known)[:VALUES]] = True
        truth &= asked[original.sensitive]
        having = np.bincount(labels, weights=asked[published.sensitive], minlength=len(sizes))
        rows = np.bincount(labels, weights=inside, minlength=len(sizes))
        counted = int(truth.sum())
        estimate = float((rows * having / sizes).sum())
        errors.append(abs(estimate - counted) / max(counted, SANITY * records, 1))
    return float(np.mean(errors))


def _range(ranked: np.ndarray, rng: np.random.Generator) -> tuple[float, float]:
    """Between two random records' values, of which the sorted ones are given."""
    if not len(ranked):
        return 0.0, 0.0
    low, high = np.sort(ranked[rng.integers(0, len(ranked), 2)])
    return float(low), float(high)
