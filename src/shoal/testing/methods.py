"""What every method must keep, whether it publishes tables or streams."""

from collections.abc import Iterator, Mapping
from functools import cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.data.classes import Classes, Population, SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.partition import Cut, Matrix, Partition
from shoal.data.schema import Attribute, Kind, Role, Schema
from shoal.data.stream import DROP, HOLD, KINDS, NEW, REUSE, Arrivals, Emissions, Space
from shoal.errors import InfeasibleError
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.promise import Promise
from shoal.privacy.promises import BoundPromises, infeasible_promises
from shoal.privacy.t_closeness import TCloseness
from shoal.protocols import (
    AnonymityRequirement,
    Partitioner,
    PrivacyModel,
    Promises,
    PromiseTerms,
    Recoder,
    StreamMethod,
    StreamPromises,
    StreamPublisher,
)
from shoal.search.segments import repair

FIELDS = ("seq", "people", "values", "kind", "release", "cluster", "emitted", "made", "lo", "hi")
RECORDS = 90


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


class OnlyPeople(StreamPromises):
    """k distinct subjects in every cluster, and nothing else."""

    needs_more_than_k = False

    def __init__(self, k: int) -> None:
        self.k = k

    def holds(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        return np.ones(count, dtype=bool)

    def may_join(self, records: Arrivals, clusters: np.ndarray) -> np.ndarray:
        return np.ones(len(records), dtype=bool)


class HiddenValues(StreamPromises):
    """Two different sensitive values in every cluster; some records may join no published one.

    The method sees none of the values: every third record has a rare one.
    """

    needs_more_than_k = True

    def __init__(self, k: int) -> None:
        self.k = k

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        parameters = {"attribute": "ill", "l": 2, "kind": "distinct", "c": None}
        return (PromiseTerms("l-diversity", ("ill",), parameters),)

    def holds(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        rare = self.rare(records.seq)
        return np.array([len(set(rare[labels == c].tolist())) == 2 for c in range(count)], bool)

    def may_join(self, records: Arrivals, clusters: np.ndarray) -> np.ndarray:
        allowed: np.ndarray = records.seq % 5 > 0
        return allowed

    @staticmethod
    def rare(seq: np.ndarray) -> np.ndarray:
        """Whether each record has the rare value."""
        is_rare: np.ndarray = seq % 3 == 0
        return is_rare


def check_stream_method(method: StreamMethod, k: int = 3, seed: int = 0) -> None:
    """Each record decided once, in clusters of k people that cover it, whatever the chunks.

    Streams of at most 90 records are pushed whole, and one by one or in sevens with a restart from
    a snapshot after every chunk, which takes turns; then with delays that run out. Give the method
    parameters for so few records. With `HiddenValues` every new cluster keeps a promise besides k,
    too.
    """
    space = Space.of(_schema(), method.snap)
    for turn, arrivals in enumerate(_streams(space, seed)):
        for promises in (OnlyPeople(k), HiddenValues(k)):
            whole = _run(method, space, promises, arrivals, seed, len(arrivals) or 1)
            _check_rules(method.name, promises, arrivals, whole)
            # each kind of stream, and each kind of promise, is divided in both ways
            restarts = (turn % 2 == 0) == promises.needs_more_than_k
            chunk = 7 if restarts else 1
            again = _run(method, space, promises, arrivals, seed, chunk, restarts)
            _check_same(method.name, whole, again, chunk, restarts)
            early = _run(method, space, promises, arrivals, seed, 7, expires=True)
            _check_rules(method.name, promises, arrivals, early)


def _schema() -> Schema:
    tree = Hierarchy.from_paths([[f"town-{i}", f"region-{i // 3}", "*"] for i in range(6)])
    return Schema(
        (
            Attribute("age", Role.QUASI, Kind.NUMBER, domain=(0.0, 100.0)),
            Attribute("grade", Role.QUASI, Kind.ORDINAL, order=("low", "mid", "high")),
            Attribute("town", Role.QUASI, hierarchy=tree, weight=2.0),
        )
    )


def _streams(space: Space, seed: int) -> Iterator[Arrivals]:
    """Ordinary and adversarial streams: few people, nobody, equal records, missing values."""
    rng = np.random.default_rng(seed)
    for records, people in ((0, 1), (2, 2), (RECORDS, RECORDS), (RECORDS, 20), (RECORDS, 2)):
        columns = [rng.integers(0, end, records) for end in (101, 3, 6)]
        values = np.column_stack(columns).astype(np.float64)
        who = rng.integers(0, people, records)
        if people == records:
            who = np.arange(records)
        arrivals = Arrivals(np.arange(records), values, who.astype(np.int64))
        yield arrivals
        if records < RECORDS:
            continue
        lacking = values.copy()
        lacking[rng.random(values.shape) < 0.1] = np.nan  # these have to be suppressed
        yield Arrivals(arrivals.seq, lacking, arrivals.people)
        lacking = np.where(np.isnan(lacking), space.beyond, lacking)  # a category of its own
        yield Arrivals(arrivals.seq, lacking, arrivals.people)
        yield Arrivals(arrivals.seq, np.broadcast_to(values[:1], values.shape), arrivals.people)


def _run(
    method: StreamMethod,
    space: Space,
    promises: StreamPromises,
    arrivals: Arrivals,
    seed: int,
    chunk: int,
    restarts: bool = False,
    expires: bool = False,
) -> list[Emissions]:
    publisher = method.start(space, promises, seed)
    emitted: list[Emissions] = []
    for at in range(0, len(arrivals), chunk):
        emitted += publisher.push(arrivals.part(slice(at, at + chunk)))
        if expires:
            emitted += publisher.expire(max(0, at - 5))
        if restarts:
            publisher = _restarted(method, space, promises, seed, publisher)
    emitted += publisher.flush()
    return emitted


def _restarted(
    method: StreamMethod,
    space: Space,
    promises: StreamPromises,
    seed: int,
    publisher: StreamPublisher,
) -> StreamPublisher:
    """A new publisher that continues where the old one's snapshot was taken."""
    state = publisher.snapshot()
    for name, array in state.items():
        assert isinstance(array, np.ndarray), (
            f"{method.name}: '{name}' of its state is not an array"
        )
    fresh = method.start(space, promises, seed)
    fresh.restore({name: array.copy() for name, array in state.items()})
    return fresh


class Cluster(NamedTuple):
    """A published cluster: its bounds, fixed for good, and the release that made it."""

    lo: np.ndarray
    hi: np.ndarray
    release: int


def _check_rules(
    name: str, promises: StreamPromises, arrivals: Arrivals, emitted: list[Emissions]
) -> None:
    decided = np.concatenate([np.zeros(0, np.int64), *(e.seq for e in emitted)])
    assert np.array_equal(np.sort(decided), arrivals.seq), (
        f"{name}: not every record was decided exactly once"
    )
    releases = [int(e.release.max()) for e in emitted if len(e)]
    assert all(a <= b for a, b in pairwise(releases)), f"{name}: releases don't ascend"
    if emitted:
        _check_records(name, arrivals, Emissions.joined(emitted))
    clusters: dict[int, Cluster] = {}
    for emissions in emitted:
        for number, lo, hi in zip(emissions.made.tolist(), emissions.lo, emissions.hi, strict=True):
            assert number not in clusters, f"{name}: makes cluster {number} twice"
            new = (emissions.cluster == number) & (emissions.kind == NEW)
            in_releases = set(emissions.release[new].tolist())
            assert len(in_releases) == 1, f"{name}: cluster {number} is not new in one release"
            clusters[number] = Cluster(lo, hi, in_releases.pop())
        _check_clusters(name, promises, emissions, clusters)


def _check_records(name: str, arrivals: Arrivals, emissions: Emissions) -> None:
    """Records come out as they went in, and those without a value under no cluster."""
    rows = emissions.seq
    same = np.array_equal(emissions.values, arrivals.values[rows], equal_nan=True)
    assert same, f"{name}: changed values"
    assert np.array_equal(emissions.people, arrivals.people[rows]), f"{name}: changed people"
    assert np.isin(emissions.kind, range(len(KINDS))).all(), f"{name}: a kind that there is not"
    assert (emissions.emitted >= rows).all(), f"{name}: a record left before it had arrived"
    published = np.isin(emissions.kind, (NEW, REUSE))
    lacking = np.isnan(emissions.values).any(axis=1)
    assert not (published & lacking).any(), f"{name}: published a record that must be suppressed"
    assert not (~published & (emissions.cluster >= 0)).any(), f"{name}: a cluster for nobody"
    unpublished = np.isin(emissions.kind, (HOLD, DROP))
    assert not (unpublished & (emissions.cluster >= 0)).any()


def _check_clusters(
    name: str, promises: StreamPromises, emissions: Emissions, clusters: Mapping[int, Cluster]
) -> None:
    """New clusters keep every promise, reused ones exist, and all of them cover their records."""
    for i in np.flatnonzero((emissions.kind == NEW) | (emissions.kind == REUSE)):
        number = int(emissions.cluster[i])
        assert number in clusters, f"{name}: a record in cluster {number}, which was never made"
        cluster, values = clusters[number], emissions.values[i]
        inside = (cluster.lo <= values) & (values <= cluster.hi)
        assert inside.all(), f"{name}: cluster {number} does not cover its record"
        if emissions.kind[i] == REUSE:
            later = cluster.release < emissions.release[i]
            assert later, f"{name}: cluster {number} is used again before it was published"
    reused = emissions.kind == REUSE
    joined = Arrivals(emissions.seq[reused], emissions.values[reused], emissions.people[reused])
    assert promises.may_join(joined, emissions.cluster[reused]).all(), (
        f"{name}: a record joined a cluster that may_join refused"
    )
    for number in emissions.made.tolist():
        rows = (emissions.cluster == number) & (emissions.kind == NEW)
        members = Arrivals(emissions.seq[rows], emissions.values[rows], emissions.people[rows])
        people = len(set(members.people.tolist()))
        assert people >= promises.k, f"{name}: a new cluster of {people} people, k = {promises.k}"
        labels = np.zeros(len(members), np.int32)
        assert promises.holds(members, labels, 1).all(), f"{name}: a new cluster breaks a promise"


def _check_same(
    name: str, one: list[Emissions], other: list[Emissions], chunk: int, restarts: bool
) -> None:
    """Decisions are equal, however they were divided into emissions."""
    how = f"chunks of {chunk}" + (" and restarts" if restarts else "")
    assert bool(one) == bool(other), f"{name}: {how} change what is published"
    for field in FIELDS if one else ():
        a, b = (np.concatenate([getattr(e, field) for e in part]) for part in (one, other))
        assert np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), (
            f"{name}: {how} change '{field}'"
        )
