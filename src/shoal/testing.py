"""The contract battery: what every method must keep, for those who write one.

    from shoal.testing import check_partitioner, small_matrices
    for matrix in small_matrices():
        check_partitioner(MyMethod(), matrix, k=3)

A check raises AssertionError that names what was broken.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from shoal.data.classes import Population
from shoal.data.closeness import Closeness
from shoal.data.cut import Cut
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.errors import InfeasibleError
from shoal.protocols import AnonymityRequirement, Partitioner, Recoder


class OnlyK:
    """The simplest promises: k distinct subjects in every class, over each of some sets of
    attributes.
    """

    closeness: tuple[Closeness, ...] = ()
    relative = about_release = False
    release_checks_are_monotone = True

    def __init__(
        self, matrix: Matrix, k: int, qids: tuple[AnonymityRequirement, ...] | None = None
    ) -> None:
        self.qids = (AnonymityRequirement((), k),) if qids is None else qids
        self.k = max(qid.k for qid in self.qids)
        self._subjects = np.arange(matrix.records) if matrix.subjects is None else matrix.subjects
        self.needs_more_than_k = matrix.subjects is not None

    def release_holds(self, labels: np.ndarray, count: int) -> bool:
        return True

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        enough = [
            all(self._enough(labels == c, labels, q, quasi) for q in self.qids)
            for c in range(count)
        ]
        return np.array(enough, dtype=bool)

    def restricted_to(self, kept: np.ndarray) -> OnlyK:
        return self

    def _enough(
        self,
        members: np.ndarray,
        labels: np.ndarray,
        qid: AnonymityRequirement,
        quasi: Mapping[str, np.ndarray] | None,
    ) -> bool:
        """Whether enough people share the members' cells of the attributes that the count is about."""
        if qid.attributes and quasi is not None and members.any():
            one = np.flatnonzero(members)[0]
            alike = [quasi[name] == quasi[name][one] for name in qid.attributes]
            members = np.logical_and.reduce([labels >= 0, *alike])
        return len(set(self._subjects[members].tolist())) >= qid.k


def check_partitioner(
    method: Partitioner, matrix: Matrix, k: int, seed: int = 0
) -> Partition | None:
    """Every record in one class of at least k people, the same again with the same seed, the matrix
    untouched.

    Classes may still fail where subjects have several records: the shared repair follows a method,
    and so it does here. Returns the partition, None where k people can't be found and the method
    says so.
    """
    from shoal.algorithms.steps.repair import repair

    promises = OnlyK(matrix, k)
    before = matrix.codes.copy()
    if matrix.people < k:
        try:
            method.partition(matrix, promises, np.random.default_rng(seed))
        except InfeasibleError:
            return None
        raise AssertionError(
            f"{method.name}: {matrix.people} people and k = {k} must raise InfeasibleError"
        )
    first = method.partition(matrix, promises, np.random.default_rng(seed))
    again = method.partition(matrix, promises, np.random.default_rng(seed))
    assert np.array_equal(matrix.codes, before), f"{method.name}: changed the matrix it was given"
    assert np.array_equal(first.labels, again.labels), (
        f"{method.name}: the same seed gave another partition"
    )
    check_partition(first, matrix.records)
    repaired = repair(matrix, first, promises)
    check_partition(repaired, matrix.records)
    assert promises.holds(repaired.labels, repaired.count).all(), (
        f"{method.name}: a class has fewer than {k} people"
    )
    return repaired


def check_partition(partition: Partition, records: int) -> None:
    """Labels 0..count-1 without gaps, one for every record."""
    assert partition.labels.shape == (records,)
    assert partition.labels.dtype == np.int32
    assert np.array_equal(np.unique(partition.labels), np.arange(partition.count))


def check_recoder(method: Recoder, matrix: Matrix, promises: OnlyK, seed: int = 0) -> Cut | None:
    """Every promise kept by the cells that the cut shows, the same again with the same seed, the
    matrix untouched.

    Returns the cut, None where there are too few people and the method says so.
    """
    before = matrix.codes.copy()
    build: Callable[[], Cut] = lambda: method.cut(matrix, promises, np.random.default_rng(seed))  # noqa: E731
    if matrix.people < promises.k:
        try:
            build()
        except InfeasibleError:
            return None
        raise AssertionError(
            f"{method.name}: {matrix.people} people and k = {promises.k} must raise InfeasibleError"
        )
    first, again = build(), build()
    assert np.array_equal(matrix.codes, before), f"{method.name}: changed the matrix it was given"
    assert np.array_equal(first.round_of_record(), again.round_of_record()), (
        f"{method.name}: the same seed suppressed other records"
    )
    labels, count, cells = cells_of(first, matrix)
    for one, other in zip(first.rounds, again.rounds, strict=True):
        assert len(one.starts) == matrix.attributes
        for j, (starts, same) in enumerate(zip(one.starts, other.starts, strict=True)):
            assert np.array_equal(starts, same), f"{method.name}: the same seed gave another cut"
            ascends = starts[0] == 0 and (np.diff(starts) > 0).all()
            assert ascends, f"{method.name}: spans of attribute {j} don't ascend from 0"
    assert promises.holds(labels, count, cells).all(), f"{method.name}: a class breaks a promise"
    return first


def cells_of(cut: Cut, matrix: Matrix) -> tuple[np.ndarray, int, dict[str, np.ndarray]]:
    """Class of each record by equal cells (-1 suppressed), how many there are, and the cells by
    attribute.
    """
    turn = cut.round_of_record()
    columns = np.zeros((matrix.records, matrix.attributes), dtype=np.int64)
    for number, one in enumerate(cut.rounds):
        rows = turn == number
        for j in range(matrix.attributes):
            columns[rows, j] = one.spans(j, matrix.codes[rows, j]) + (number << 32)
    names = matrix.names or tuple(f"a{j}" for j in range(matrix.attributes))
    labels = np.full(matrix.records, -1, dtype=np.int32)
    distinct, labels[turn >= 0] = np.unique(columns[turn >= 0], axis=0, return_inverse=True)
    return labels, len(distinct), {name: columns[:, j] for j, name in enumerate(names)}


def small_matrices(seed: int = 0) -> Iterator[Matrix]:
    """Matrices that methods stumble over: ties everywhere, constants, one attribute, trees,
    repeated people.
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
