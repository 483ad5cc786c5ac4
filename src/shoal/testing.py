"""The contract battery: what every method must keep, for those who write one.

    from shoal.testing import check_partitioner, small_matrices
    for matrix in small_matrices():
        check_partitioner(MyMethod(), matrix, k=3)

A check raises AssertionError that names what was broken.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.data.closeness import Closeness
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.errors import InfeasibleError
from shoal.protocols import Partitioner


class OnlyK:
    """The simplest promises: k distinct subjects in every class."""

    beyond_k = False
    closeness: tuple[Closeness, ...] = ()

    def __init__(self, matrix: Matrix, k: int) -> None:
        self.k = k
        self._subjects = np.arange(matrix.records) if matrix.subjects is None else matrix.subjects
        self.beyond_k = matrix.subjects is not None

    def hold(self, labels: np.ndarray, count: int) -> np.ndarray:
        return np.array([len(set(self._subjects[labels == c].tolist())) >= self.k for c in range(count)], dtype=bool)


def check_partitioner(method: Partitioner, matrix: Matrix, k: int, seed: int = 0) -> Partition | None:
    """Every record in one class of at least k people, the same again with the same seed, the matrix untouched.

    Classes may still fail where subjects have several records: the shared repair follows a method,
    and so it does here. Returns the partition, None where k people can't be found and the method
    says so.
    """
    from shoal.algorithms.table.repair import repair

    promises = OnlyK(matrix, k)
    before = matrix.codes.copy()
    if matrix.people < k:
        try:
            method.partition(matrix, promises, np.random.default_rng(seed))
        except InfeasibleError:
            return None
        raise AssertionError(f"{method.name}: {matrix.people} people and k = {k} must raise InfeasibleError")
    first = method.partition(matrix, promises, np.random.default_rng(seed))
    again = method.partition(matrix, promises, np.random.default_rng(seed))
    assert np.array_equal(matrix.codes, before), f"{method.name}: changed the matrix it was given"
    assert np.array_equal(first.labels, again.labels), f"{method.name}: the same seed gave another partition"
    check_partition(first, matrix.records)
    repaired = repair(matrix, first, promises)
    check_partition(repaired, matrix.records)
    assert promises.hold(repaired.labels, repaired.count).all(), f"{method.name}: a class has fewer than {k} people"
    return repaired


def check_partition(partition: Partition, records: int) -> None:
    """Labels 0..count-1 without gaps, one for every record."""
    assert partition.labels.shape == (records,)
    assert partition.labels.dtype == np.int32
    assert np.array_equal(np.unique(partition.labels), np.arange(partition.count))


def small_matrices(seed: int = 0) -> Iterator[Matrix]:
    """Matrices that methods stumble over: ties everywhere, constants, one attribute, trees, repeated people."""
    rng = np.random.default_rng(seed)
    tree = Hierarchy.from_paths(
        [[f"v{i}", f"g{i // 2}", f"h{i // 6}", "*"] if i < 9 else [f"v{i}", "rest", "*"] for i in range(12)]
    )
    for records in (1, 2, 3, 7, 20, 61):
        for attributes in (1, 2, 5):
            yield Matrix.from_columns(rng.integers(0, 50, (records, attributes)), [49.0] * attributes)
            yield Matrix.from_columns(rng.integers(0, 2, (records, attributes)), [1.0] * attributes)
        yield Matrix.from_columns(np.zeros((records, 2)), [0.0, 5.0])
        mixed = np.column_stack([rng.integers(0, 12, records), rng.integers(0, 9, records)])
        yield Matrix.from_columns(mixed, [tree, 8.0], weights=[2.0, 0.5])
        people = np.unique(rng.integers(0, max(1, records // 2), records), return_inverse=True)[1]
        yield Matrix.from_columns(mixed, [tree, 8.0], subjects=people)
