"""Counts asked of a release of Adult: two tables, and classes that publish ranges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import adult
import numpy as np
import polars as pl

from shoal.auditor.measure import ATTRIBUTES, QUERIES, SANITY, VALUES, People, group_query_error
from shoal.data.partition import Partition
from shoal.data.table import Table
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises

SENSITIVE = "occupation"
SEVEN = tuple(name for name in adult.EIGHT if name != SENSITIVE)
DRAWS = 3
ALPHA = {2: 0.5, 4: 0.25, 7: 0.1429}  # not below 1 / l
# l -> the prototype's errors: anatomy, near, rounded-partition, mondrian
PROTOTYPE = {
    2: (0.115, None, 0.039, 0.025),
    4: (0.154, 0.137, 0.397, 0.282),
    7: (0.184, 0.181, 0.832, 0.832),
}
METHODS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("anatomy", {}),
    ("anatomy", {"near": True}),
    ("rounded-partition", {"refine": "none"}),
    ("mondrian", {"cut": "nearest"}),
)


def rows() -> Iterator[tuple[str, float, tuple[float, ...]]]:
    """What, the prototype's figure, and the errors of some draws of queries."""
    frame = adult.complete().with_columns(pl.all().cast(pl.String))
    for l, prototypes in PROTOTYPE.items():
        for (method, more), prototype in zip(METHODS, prototypes, strict=True):
            if prototype is not None:
                near = ", near" if "near" in more else ""
                told = f"error of counts, l = {l}, {method}{near}"
                yield told, prototype, _errors(frame, method, more, l)


def _errors(frame: pl.DataFrame, method: str, more: dict[str, Any], l: int) -> tuple[float, ...]:
    policy = adult.policy(SEVEN, l)
    promise = {"model": "alpha-k-anonymity", "attribute": SENSITIVE, "alpha": ALPHA[l], "k": l}
    policy["attributes"][SENSITIVE] = {"role": "sensitive"}
    del policy["attributes"]["income"]
    asked = {"name": method, **more} | ({"l": l} if method == "anatomy" else {})
    whole = Policy.from_dict({**policy, "promises": [promise], "method": asked})
    matrix, everybody = bound_table(Table(frame), whole).method_input()
    promises = BoundPromises(whole.build_promises(), everybody)
    codes = everybody.sensitive[SENSITIVE].codes
    people = People([matrix.codes[:, j].astype(float) for j in range(matrix.attributes)], codes)
    made = whole.build_method("publish")
    if method == "anatomy":
        partition = made.bucketize(
            matrix, everybody.sensitive[SENSITIVE], promises, np.random.default_rng(1)
        )
        return tuple(
            group_query_error(people, partition.labels, people, seed) or 0.0
            for seed in range(DRAWS)
        )
    partition = made.partition(matrix, promises, np.random.default_rng(1))
    return tuple(box_query_error(people, partition, seed) for seed in range(DRAWS))


def box_query_error(people: People, partition: Partition, seed: int) -> float:
    """As `group_query_error`, of classes: their rows lie anywhere in their spans, all alike."""
    labels, records = partition.labels, len(partition.labels)
    low = [np.full(partition.count, np.inf) for _ in people.quasi]
    high = [np.full(partition.count, -np.inf) for _ in people.quasi]
    for values, least, most in zip(people.quasi, low, high, strict=True):
        np.minimum.at(least, labels, values)
        np.maximum.at(most, labels, values)
    rng = np.random.default_rng([seed, 5])
    ranked = [np.sort(values) for values in people.quasi]
    known = int(people.sensitive.max()) + 1
    errors = []
    for _ in range(QUERIES):
        share, truth = np.ones(partition.count), np.ones(records, dtype=bool)
        for j in rng.permutation(len(ranked))[:ATTRIBUTES]:
            start, end = np.sort(ranked[j][rng.integers(0, len(ranked[j]), 2)])
            within = np.minimum(high[j], end) - np.maximum(low[j], start) + 1
            share *= np.maximum(within, 0) / (high[j] - low[j] + 1)
            truth &= (start <= people.quasi[j]) & (people.quasi[j] <= end)
        asked = np.zeros(known, dtype=bool)
        asked[rng.permutation(known)[:VALUES]] = True
        truth &= asked[people.sensitive]
        having = np.bincount(labels, weights=asked[people.sensitive], minlength=partition.count)
        counted = int(truth.sum())
        errors.append(
            abs(float((share * having).sum()) - counted) / max(counted, SANITY * records, 1)
        )
    return float(np.mean(errors))
