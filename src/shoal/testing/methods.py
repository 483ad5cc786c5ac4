"""What every method that publishes tables must keep."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from shoal.data.classes import Population
from shoal.data.cut import Cut
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.errors import InfeasibleError
from shoal.privacy.feasibility import nearest_feasible
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.promise import Promise
from shoal.privacy.t_closeness import TCloseness
from shoal.protocols import AnonymityRequirement, Partitioner, Promises, Recoder
from shoal.search.repair import repair
from shoal.testing.matrices import promises_on, table_of


class OnlyK(Promises):
    """The simplest promises: k distinct subjects in every class, over some sets of attributes.

    A plain loop over the classes that shares no code with the promises of the library.
    """

    def __init__(
        self, matrix: Matrix, k: int, qids: tuple[AnonymityRequirement, ...] | None = None
    ) -> None:
        self._qids = (AnonymityRequirement((), k),) if qids is None else qids
        self.k = max(qid.k for qid in self._qids)
        self._subjects = np.arange(matrix.records) if matrix.subjects is None else matrix.subjects
        self.needs_more_than_k = matrix.subjects is not None

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        return self._qids

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        enough = [
            all(self._enough(labels == c, labels, q, quasi) for q in self._qids)
            for c in range(count)
        ]
        return np.array(enough, dtype=bool)

    def _enough(
        self,
        members: np.ndarray,
        labels: np.ndarray,
        qid: AnonymityRequirement,
        quasi: Mapping[str, np.ndarray] | None,
    ) -> bool:
        """Whether enough people share the members' cells of the attributes of the requirement."""
        if qid.attributes and quasi is not None and members.any():
            one = np.flatnonzero(members)[0]
            alike = [quasi[name] == quasi[name][one] for name in qid.attributes]
            members = np.logical_and.reduce([labels >= 0, *alike])
        return len(set(self._subjects[members].tolist())) >= qid.k


def check_partitioner(
    method: Partitioner, matrix: Matrix, k: int, seed: int = 0
) -> Partition | None:
    """Every record in one class of at least k people; the same seed, the same partition.

    The matrix stays untouched. Classes may still fail where subjects have several records: the
    shared repair follows a method, and so it does here. Then the same with l-diversity or
    t-closeness beside k, on the matrix's `sensitive_columns`. Returns the partition, None where k
    people can't be found and the method says so.
    """
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
    check_with_sensitive_values(method, matrix, k, seed)
    return repaired


def check_with_sensitive_values(method: Partitioner, matrix: Matrix, k: int, seed: int = 0) -> None:
    """Every class keeps l-diversity (for odd k) or t-closeness (for even k) beside k-anonymity."""
    more: Promise = LDiversity("ill", 2) if k % 2 else TCloseness(("income",), 0.4)
    models = (KAnonymity(max(k, 2)), more)
    if nearest_feasible(models, table_of(matrix)):
        return
    promises = promises_on(matrix, *models)
    found = method.partition(matrix, promises, np.random.default_rng(seed))
    check_partition(found, matrix.records)
    repaired = repair(matrix, found, promises)
    assert promises.holds(repaired.labels, repaired.count).all(), (
        f"{method.name}: a class breaks {more.model}"
    )


def check_partition(partition: Partition, records: int) -> None:
    """Labels 0..count-1 without gaps, one for every record."""
    assert partition.labels.shape == (records,)
    assert partition.labels.dtype == np.int32
    assert np.array_equal(np.unique(partition.labels), np.arange(partition.count))


def check_recoder(method: Recoder, matrix: Matrix, promises: Promises, seed: int = 0) -> Cut | None:
    """Every promise kept by the cells that the cut shows; the same seed, the same cut.

    The matrix stays untouched. promises: `OnlyK`, or `promises_on` the matrix and its sensitive
    values. Returns the cut, None where there are too few people and the method says so.
    """
    before = matrix.codes.copy()

    def build() -> Cut:
        return method.cut(matrix, promises, np.random.default_rng(seed))

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
    remaining = promises.restricted_to(labels >= 0)
    assert remaining.holds(labels, count, cells).all(), f"{method.name}: a class breaks a promise"
    assert remaining.release_holds(labels, count), f"{method.name}: the release breaks a promise"
    return first


def cells_of(cut: Cut, matrix: Matrix) -> tuple[np.ndarray, int, dict[str, np.ndarray]]:
    """Class of each record by equal cells, -1 suppressed; their number; the cells by attribute."""
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
