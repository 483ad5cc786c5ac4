"""What every method that publishes tables must keep."""

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np

from shoal.data.classes import Classes, Population, SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.matrix import Matrix
from shoal.data.partition import Cut, Partition
from shoal.errors import InfeasibleError
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.promise import Promise
from shoal.privacy.promises import BoundPromises, infeasible_promises
from shoal.privacy.t_closeness import TCloseness
from shoal.protocols import AnonymityRequirement, Partitioner, PrivacyModel, Promises, Recoder
from shoal.search.repair import repair


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
    people can't be found and the method says so. Raises AssertionError where the method breaks one
    of these rules.
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
    if infeasible_promises(models, table_of(matrix)):
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


# Small tables that methods stumble over, with sensitive values and repeated people.


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
