"""What every stream method must keep, whatever arrives."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.schema import Attribute, Kind, Role, Schema
from shoal.data.stream import DROP, HOLD, KINDS, NEW, REUSE, Arrivals, Emissions, Space
from shoal.protocols import PromiseTerms, StreamMethod, StreamPromises, StreamPublisher

FIELDS = ("seq", "people", "values", "kind", "release", "cluster", "emitted", "made", "lo", "hi")
RECORDS = 90


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
        values = np.column_stack(
            [
                rng.integers(0, 101, records),
                rng.integers(0, 3, records),
                rng.integers(0, 6, records),
            ]
        ).astype(np.float64)
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
