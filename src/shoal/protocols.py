"""Every extension point, on one page.

An algorithm, promise, metric or hierarchy maker is one class in one file that keeps one of these
protocols. Parameters are the fields of a frozen dataclass; each field's `metadata` may carry
`help`, `choices`, `low` and `high`, from which the command line, the docs and the error messages
are made.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np

from shoal.data.classes import Classes, Population
from shoal.data.closeness import Closeness
from shoal.data.cut import Cut
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.release import Release
from shoal.data.space import Space
from shoal.data.stream import Arrivals, Emissions, State


class AnonymityRequirement(NamedTuple):
    """A count of people that is asked. attributes: quasi-identifiers whose combinations count; none
    means all.
    """

    attributes: tuple[str, ...]
    k: int


class Promises(Protocol):
    """All promises of a policy, bound to the people and sensitive values of one table."""

    k: int
    """Least number of distinct subjects in a class; at least 1."""

    needs_more_than_k: bool
    """Whether anything has to be asked besides k."""

    @property
    def closeness(self) -> tuple[Closeness, ...]:
        """What every t-closeness promise asks of each of its attributes; empty without one.

        For methods that build classes towards it; only `hold` decides whether a class is close
        enough.
        """

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        """Every count of people that is asked, for methods that know the cells while they work.

        Unless `needs_more_than_k`, counting the records of each is all there is to ask.
        """

    @property
    def relative(self) -> bool:
        """Whether some promise compares a class with all records that are in a class."""

    @property
    def about_release(self) -> bool:
        """Whether `release_holds` asks anything."""

    @property
    def release_checks_are_monotone(self) -> bool:
        """Whether merging classes of a release for which `release_holds` gives one for which it
        does.
        """

    def release_holds(self, labels: np.ndarray, count: int) -> bool:
        """Whether the promises hold that no class keeps or breaks alone; labels as for `hold`."""

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        """For each class 0..count-1, whether every monotone promise holds; (count,) bool.

        labels: (n,) int32, class of each record of the matrix, -1 for records to leave out.
        quasi: (n,) codes of the cells of each quasi-identifier, where they are known: a promise
        over some of them is then judged on these alone. Without, it is judged on the classes, which
        is stricter.
        population: by table of `Matrix.populations`, who fits each class; without, nothing is asked
        about them. Counts distinct subjects, so it is the last word on k as well.
        """

    def restricted_to(self, kept: np.ndarray) -> Promises:
        """The same promises with these records for the whole table; kept: (n,) bool."""


class Partitioner(Protocol):
    """Local recoding: puts every record of a matrix into a class."""

    name: ClassVar[str]
    paper: ClassVar[str]

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` records; raises InfeasibleError when n < k.

        Where `promises.needs_more_than_k`, classes that still fail are merged by the shared repair.
        """


class Recoder(Protocol):
    """Global recoding: generalizes every value of an attribute the same way in all records."""

    name: ClassVar[str]
    paper: ClassVar[str]

    def cut(
        self,
        matrix: Matrix,
        promises: Promises,
        rng: np.random.Generator,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> Cut:
        """Spans and suppressed records under which every promise holds; raises InfeasibleError
        where there are none.

        No repair follows. progress takes the name of each stage.
        """


class Republisher(Protocol):
    """Re-publication: places the records of the next release so that it is safe beside all earlier
    ones.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    covers: ClassVar[str]
    """What a release holds: `increment`, or `table` where everything is published again."""

    needs: ClassVar[str]
    """What it must know of records that are published: `nothing`, the `boxes` of their classes, or
    the `originals`.
    """

    guards: ClassVar[str]
    """What keeps its releases safe together: `cells`, k people who were always in the same classes,
    or `signatures`.
    """

    changes: ClassVar[bool]
    """Whether people may leave, or come with a changed record."""

    remedy: ClassVar[str]
    """The nearest safe way where its release would break the history, in a sentence."""

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """A class that keeps every promise for every record of the matrix, or -1 where it has to
        wait.

        increment: the new records; with `needs = originals`, all records of the table.
        """


class StreamPromises(Protocol):
    """All promises of a policy, bound to a stream. Sensitive values stay with whoever answers."""

    k: int
    """Least number of distinct subjects in a cluster; at least 2."""

    needs_more_than_k: bool
    """Whether anything has to be asked besides distinct subjects."""

    by_cells: bool
    """Whether clusters that show the same cells must be judged as one, as they may share people."""

    def capped(self, records: Arrivals, labels: np.ndarray) -> np.ndarray:
        """The labels with -1 for records that would make somebody's share of a new cluster too
        large.

        Whoever is in a cluster keeps its earliest record there. What is taken out fits no cluster.
        """

    def holds(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        """For each new cluster 0..count-1, `capped`, whether every promise but k holds; (count,)
        bool.

        labels: (n,) int32, cluster of each record, -1 for records to leave out.
        """

    def cells(self, records: Arrivals, labels: np.ndarray, count: int) -> list[str]:
        """For each of these clusters, `capped`, a text that is equal where they show the same
        cells.
        """

    def may_join(self, records: Arrivals, clusters: np.ndarray) -> np.ndarray:
        """Which records may join the published cluster named beside each, (n,) bool.

        Every promise holds in the cluster with all who were let out under it and with all the
        records that are let in here, or with those of them that go to some of the clusters. Nothing
        is remembered of the question.
        """


class StreamMethod(Protocol):
    """A way to publish a stream; its parameters are its fields."""

    name: ClassVar[str]
    paper: ClassVar[str]

    def start(self, space: Space, promises: StreamPromises, seed: int) -> StreamPublisher:
        """A publisher that has seen nothing; raises InputError where parameters and promises don't
        fit.
        """


class StreamPublisher(Protocol):
    """Decides, for every record and within bounded memory, when and under which cluster it is
    published.

    The same records give the same emissions for any chunks they come in, and across snapshot and
    restore. Emissions are to be read one by one, and all of them, before anything else is asked.
    """

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """Takes records in and lets out what is due, release by release."""

    def expire(self, seq: int) -> Iterator[Emissions]:
        """Lets out all records up to this number by the rules of a delay that has run out."""

    def flush(self) -> Iterator[Emissions]:
        """The end of the stream: decides about everything that is held."""

    def snapshot(self) -> State:
        """All state, as arrays; what is pushed later does not change it."""

    def restore(self, state: State) -> None:
        """Goes on where the snapshot was taken, under the same parameters."""


class FusionParty(Protocol):
    """One owner in a fusion; every round all of them bid, one specializes, the others apply what it
    says.
    """

    @property
    def steps(self) -> Sequence[Any]:
        """What was done so far, in order; each has the number of its `attribute`."""

    def bid(self) -> list[int]:
        """What its next steps are worth, never rising, zeros behind; no two parties bid the same
        but 0.
        """

    def lose(self) -> None:
        """Another party won the round: what was planned is taken back."""

    def specialize(self, steps: int) -> bytes:
        """Won the round: does so many of the planned steps, and says them in a batch."""

    def apply(self, batch: bytes) -> None:
        """Does the steps of another party's batch; raises PartyError where they break a promise or
        fit nothing.
        """


class PrivacyModel(Protocol):
    """A promise: what it measures on a class, and when that is good enough."""

    model: ClassVar[str]
    source: ClassVar[str]
    monotone: ClassVar[bool]
    """Whether a union of classes that hold always holds."""

    def measure(self, classes: Classes) -> np.ndarray:
        """The measured value of every class, (count,) float64."""

    def holds(self, classes: Classes) -> np.ndarray:
        """Whether the promise holds in every class, compared exactly; (count,) bool."""


class Metric(Protocol):
    """Utility or risk of a release."""

    name: ClassVar[str]
    lower_is_better: ClassVar[bool]

    def score(self, release: Release) -> float | None:
        """The measure on a published table; None where it does not apply."""


class HierarchyMaker(Protocol):
    """Makes a hierarchy from the values of a column, by a rule."""

    kind: ClassVar[str]

    def make(self, values: np.ndarray) -> Hierarchy:
        """A hierarchy with a leaf for every one of these distinct text values."""
