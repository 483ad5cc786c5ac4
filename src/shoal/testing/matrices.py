"""Small tables that methods stumble over, with sensitive values and repeated people."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

import numpy as np

from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.matrix import Matrix
from shoal.privacy.promises import BoundPromises
from shoal.protocols import PrivacyModel, Promises

SECRET = "secret"
"""Every sensitive label contains it, so that a message that shows one is found out."""


def small_matrices(seed: int = 0) -> Iterator[Matrix]:
    """Matrices with ties everywhere, constants, one attribute, trees, repeated people.

    `sensitive_columns` gives each of them its sensitive values.
    """
    rng = np.random.default_rng(seed)
    tree = Hierarchy.from_paths(
        [
            [f"v{i}", f"g{i // 2}", f"h{i // 6}", "*"] if i < 9 else [f"v{i}", "rest", "*"]
            for i in range(12)
        ]
    )
    for records in (1, 2, 3, 7, 20, 61):
        for attributes in (1, 2, 5):
            yield Matrix.from_columns(
                rng.integers(0, 50, (records, attributes)), [49.0] * attributes
            )
            yield Matrix.from_columns(rng.integers(0, 2, (records, attributes)), [1.0] * attributes)
        yield Matrix.from_columns(np.zeros((records, 2)), [0.0, 5.0])
        mixed = np.column_stack([rng.integers(0, 12, records), rng.integers(0, 9, records)])
        yield Matrix.from_columns(mixed, [tree, 8.0], weights=[2.0, 0.5])
        people = np.unique(rng.integers(0, max(1, records // 2), records), return_inverse=True)[1]
        yield Matrix.from_columns(mixed, [tree, 8.0], subjects=people)


def sensitive_columns(matrix: Matrix, seed: int = 0) -> dict[str, SensitiveColumn]:
    """Sensitive values for the records of a matrix; the same for the same matrix and seed.

    ill: a few values, some of them rare. income: numbers. region: leaves of a hierarchy.
    """
    rng = np.random.default_rng([matrix.records, matrix.attributes, seed])
    return {
        name: sensitive_column(name, distance, matrix.records, rng)
        for name, distance in (("ill", "equal"), ("income", "ordered"), ("region", "hierarchical"))
    }


def sensitive_column(
    name: str, distance: str, records: int, rng: np.random.Generator
) -> SensitiveColumn:
    """A sensitive column of the given distance: `equal`, `ordered` or `hierarchical`."""
    if distance == "ordered":
        numbers, codes = np.unique(rng.integers(0, 9, records) * 1000.0, return_inverse=True)
        return SensitiveColumn(
            name, codes.astype(np.int32), len(numbers), distance, numbers=numbers
        )
    labels = tuple(f"{SECRET}-{number}" for number in range(6))
    if distance == "hierarchical":
        codes = rng.integers(0, 6, records)
        return SensitiveColumn(name, codes.astype(np.int32), 6, distance, hierarchy=_halves(labels))
    codes = rng.choice(6, records, p=[0.4, 0.25, 0.2, 0.1, 0.03, 0.02])
    return SensitiveColumn(name, codes.astype(np.int32), 6, distance, labels=labels)


@cache
def _halves(labels: tuple[str, ...]) -> Hierarchy:
    """A tree of two groups."""
    half = len(labels) // 2
    return Hierarchy.from_paths(
        [label, f"{SECRET}s-{number // half}", "*"] for number, label in enumerate(labels)
    )


def promises_on(matrix: Matrix, *models: PrivacyModel, seed: int = 0) -> Promises:
    """These promises, bound to a matrix and its `sensitive_columns`."""
    return BoundPromises(models, table_of(matrix, seed))


def table_of(matrix: Matrix, seed: int = 0) -> Classes:
    """All records of a matrix in one class, with their sensitive columns."""
    everyone = np.zeros(matrix.records, dtype=np.int32)
    return Classes(everyone, 1, matrix.subjects, sensitive_columns(matrix, seed))
