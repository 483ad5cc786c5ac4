"""Every extension point, on one page.

A method, promise, metric or hierarchy maker is one class in one file that keeps one of these
protocols. Parameters are the fields of a frozen dataclass; each field's `metadata` may carry
`help`, `choices`, `low` and `high`, from which the command line, the docs and the error messages
are made. Plug-ins import all of this from `shoal.extend`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
import polars as pl

from shoal.data.progress import no_progress

# a process needs those of one verb; annotations alone name them here
if TYPE_CHECKING:
    from shoal.data.attack_scene import AttackScene, Findings
    from shoal.data.certificate_shape import PromiseReport
    from shoal.data.classes import Classes, Closeness, Population, Sample, SensitiveColumn
    from shoal.data.encoding import EncodedTable
    from shoal.data.hierarchies.hierarchy import Hierarchy
    from shoal.data.ledger_view import LedgerView, Placement
    from shoal.data.linked import Bundles, Templates
    from shoal.data.partition import Cut, Matrix, Partition
    from shoal.data.release import Release
    from shoal.data.room import Room
    from shoal.data.schema import Schema
    from shoal.data.stream import Arrivals, Emissions, Piece, Space, State
    from shoal.data.table import Table

NO_COLUMNS: Mapping[str, SensitiveColumn] = MappingProxyType({})


# What methods are given


class AnonymityRequirement(NamedTuple):
    """At least k people share every combination of these quasi-identifiers; none means all."""

    attributes: tuple[str, ...]
    k: int


class PromiseTerms(NamedTuple):
    """What one promise asks, for methods that build classes towards it.

    model: its name in policies, such as `l-diversity`. sensitive: the attributes whose values it
    needs. parameters: its parameters by name, such as `l` and `kind`, defaults included.
    """

    model: str
    sensitive: tuple[str, ...]
    parameters: Mapping[str, Any]


class Promises(ABC):
    """All promises of a policy, bound to the people and sensitive values of one matrix.

    `holds` always has the last word. Everything else lets a method head for classes that hold.

    k: least number of distinct subjects in a class; at least 1.
    needs_more_than_k: whether anything has to be asked besides k.
    """

    k: int
    needs_more_than_k: bool

    @abstractmethod
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

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        """What each promise asks, in the order of the policy."""
        return ()

    @property
    def sensitive(self) -> Mapping[str, SensitiveColumn]:
        """The sensitive columns by name; their `codes` are aligned with the matrix's records."""
        return NO_COLUMNS

    @property
    def sample(self) -> Sample | None:
        """Whom the matrix's records stand for; None where nothing tells."""
        return None

    @property
    def closeness(self) -> tuple[Closeness, ...]:
        """What every t-closeness promise asks of each of its attributes; empty without one."""
        return ()

    @property
    def qids(self) -> tuple[AnonymityRequirement, ...]:
        """Every count of people that is asked, for methods that know the cells while they work.

        Unless `needs_more_than_k`, counting the records of each is all there is to ask.
        """
        return (AnonymityRequirement((), self.k),)

    @property
    def relative(self) -> bool:
        """Whether some promise compares a class with all records that are in a class."""
        return False

    @property
    def about_release(self) -> bool:
        """Whether `release_holds` asks anything."""
        return False

    @property
    def release_checks_are_monotone(self) -> bool:
        """Whether `release_holds` stays true when classes are merged."""
        return True

    def release_holds(self, labels: np.ndarray, count: int) -> bool:
        """Whether the promises about the release as a whole hold; labels as for `holds`."""
        return True

    @property
    def about_lone_records(self) -> bool:
        """Whether `release_holds` asks nothing but how many records are alone in their class."""
        return False

    def restricted_to(self, kept: np.ndarray) -> Promises:
        """The promises with these records for the whole table; kept: (n,) bool."""
        return self

    def of_classes(self, k: int) -> Promises:
        """What is asked of each class, with at least k people, and nothing about the release."""
        raise NotImplementedError


class StreamPromises(ABC):
    """All promises of a policy, bound to a stream. Sensitive values stay with whoever answers.

    k: least number of distinct subjects in a cluster; at least 2.
    needs_more_than_k: whether anything has to be asked besides distinct subjects.
    by_cells: whether clusters that show the same cells must be judged as one, as they may share
    people.
    """

    k: int
    needs_more_than_k: bool
    by_cells: bool = False

    @abstractmethod
    def holds(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        """For each new cluster 0..count-1, `capped`, whether all but k holds; (count,) bool.

        labels: (n,) int32, cluster of each record, -1 for records to leave out.
        """

    @abstractmethod
    def may_join(self, records: Arrivals, clusters: np.ndarray) -> np.ndarray:
        """Which records may join the published cluster named beside each, (n,) bool.

        Every promise holds in the cluster with all who were published under it and with all the
        records that are let in here, or with those of them that go to some of the clusters. Nothing
        is remembered of the question.
        """

    @property
    def terms(self) -> tuple[PromiseTerms, ...]:
        """What each promise asks, in the order of the policy."""
        return ()

    def capped(self, records: Arrivals, labels: np.ndarray) -> np.ndarray:
        """The labels, -1 for records that make somebody's share of a new cluster too large.

        Whoever is in a cluster keeps its earliest record there. What is taken out fits no cluster.
        """
        return labels

    def cells(self, records: Arrivals, labels: np.ndarray, count: int) -> list[str]:
        """For each of these clusters, `capped`, a text; equal where they show the same cells.

        Asked only where `by_cells`.
        """
        return [str(number) for number in range(count)]


# Methods


class NamedMethod(Protocol):
    """What every method says about itself.

    verb: the command that it serves: `publish`, `publish FOLDER`, `stream`, `republish` or `fuse`.
    """

    name: ClassVar[str]
    paper: ClassVar[str]
    verb: ClassVar[str]


class Partitioner(NamedMethod, Protocol):
    """Local recoding: puts every record of a matrix into a class."""

    verb: ClassVar[str] = "publish"

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least `promises.k` records; raises InfeasibleError when n < k.

        Where `promises.needs_more_than_k`, classes that still fail are merged by the shared repair.
        """


@runtime_checkable
class SearchingPartitioner(Partitioner, Protocol):
    """A partitioner that may search for long: it says how far it is."""

    def search(
        self,
        matrix: Matrix,
        promises: Promises,
        rng: np.random.Generator,
        progress: Callable[[str], None],
    ) -> Partition:
        """The classes of the records; progress takes the name of each stage."""

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """The classes that `search` finds."""
        return self.search(matrix, promises, rng, no_progress)


@runtime_checkable
class ColumnPartitioner(Partitioner, Protocol):
    """A partitioner that holds no record in memory: the columns that it cuts may lie in files.

    column_bytes: what it needs in memory beside them, for each record.
    """

    column_bytes: ClassVar[int]

    def spare_columns(self, matrix: Matrix) -> int:
        """How many columns it wants beside those of the attributes. matrix: without any record."""

    def only_in_memory(self, records: int) -> str:
        """What of its parameters needs all records in memory, and does what; empty for nothing."""

    def cut_columns(
        self, columns: np.ndarray, matrix: Matrix, promises: Promises, room: Room
    ) -> np.ndarray:
        """The classes of `partition` where nothing but k is asked: where each starts, and the end.

        columns: (d + spare + 1, n) int32, moved so that classes are runs of them; last the number
        of the record. matrix: without any record.
        """


class Recoder(NamedMethod, Protocol):
    """Global recoding: generalizes every value of an attribute the same way in all records."""

    verb: ClassVar[str] = "publish"

    def cut(
        self,
        matrix: Matrix,
        promises: Promises,
        rng: np.random.Generator,
        progress: Callable[[str], None] = lambda stage: None,
    ) -> Cut:
        """Spans and suppressed records under which every promise holds, or InfeasibleError.

        No repair follows. progress takes the name of each stage.
        """


class Bucketizer(NamedMethod, Protocol):
    """Groups people by their sensitive values alone; quasi-identifiers are shown as they are."""

    verb: ClassVar[str] = "publish"
    renders: ClassVar[str]
    """How its groups are shown: `two-tables`."""

    def bucketize(
        self,
        matrix: Matrix,
        sensitive: SensitiveColumn,
        promises: Promises,
        rng: np.random.Generator,
    ) -> Partition:
        """A group for every record; raises InfeasibleError where a value is too frequent.

        sensitive: the one attribute that the groups hide, aligned with the matrix. The seed is
        published; so the draws must follow from what nobody without the table knows, too.
        """


class BundlePromises(ABC):
    """All promises of a policy, bound to people with rows in several tables.

    k: least number of people in a class. needs_more_than_k: whether anything else is asked.
    """

    k: int
    needs_more_than_k: bool

    @abstractmethod
    def holds(self, templates: Templates, count: int) -> np.ndarray:
        """For each class 0..count-1, whether every promise holds in all of its slots; (count,)
        bool.
        """

    @abstractmethod
    def shown(self, table: int, slots: np.ndarray) -> np.ndarray:
        """(n,) int64, equal where rows of a table show the same cells; -1 where they have no slot.

        slots: of each row, int64 as in `Templates`.
        """


class Bundler(NamedMethod, Protocol):
    """Groups people with their rows in several tables, so that all of a class are alike in all."""

    verb: ClassVar[str] = "publish FOLDER"

    def bundle(
        self, bundles: Bundles, promises: BundlePromises, rng: np.random.Generator
    ) -> Templates:
        """Classes that keep every promise, and their slots; InfeasibleError where none do.

        What it does follows from the bundles and `rng` alone, and from what promises beyond k ask.
        """


class Republisher(NamedMethod, Protocol):
    """Re-publication: makes the next release safe beside all earlier ones."""

    verb: ClassVar[str] = "republish"
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

    returns: ClassVar[bool] = False
    """Whether its increments may hold people of earlier releases. It is given the `panel` of them
    in the view, and answers with what becomes of it.
    """

    changes: ClassVar[bool]
    """Whether people may leave, or come with a changed record."""

    remedy: ClassVar[str]
    """The nearest safe way where its release would break the history, in a sentence."""

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """A class that keeps every promise for each record, or -1 where it has to wait.

        increment: the new records; with `needs = originals`, all records of the table.
        """


class StreamMethod(NamedMethod, Protocol):
    """A way to publish a stream; its parameters are its fields."""

    verb: ClassVar[str] = "stream"

    @property
    def snap(self) -> int:
        """Steps of the public grid in the domain of each number, 0 for none; may be a parameter."""
        return 0

    @property
    def tick(self) -> int:
        """Records between releases; may be a parameter."""
        return 1

    def start(self, space: Space, promises: StreamPromises, seed: int) -> StreamPublisher:
        """A publisher that has seen nothing; InputError where parameters don't fit the promises."""


class StreamPublisher(Protocol):
    """Decides when, and under which cluster, every record is published; in bounded memory.

    The same records give the same emissions for any chunks they come in, and across snapshot and
    restore. Emissions are to be read one by one, and all of them, before anything else is asked.
    """

    def push(self, arrivals: Arrivals) -> Iterator[Emissions]:
        """Takes records in and emits what is due, release by release."""

    def expire(self, seq: int) -> Iterator[Emissions]:
        """Emits all records up to this number by the rules of a delay that has run out."""

    def flush(self) -> Iterator[Emissions]:
        """The end of the stream: decides about everything that is held."""

    def snapshot(self) -> State:
        """All state, as arrays; what is pushed later does not change it."""

    def restore(self, state: State) -> None:
        """Goes on where the snapshot was taken, under the same parameters."""


class FusionParty(Protocol):
    """One owner in a fusion: each round one says what it did, and the others apply it."""

    @property
    def steps(self) -> Sequence[Any]:
        """What was done so far, in order; each has the number of its `attribute`."""

    @property
    def touched(self) -> int:
        """How many rows all steps and trials have read."""

    def warm_up(self) -> None:
        """Loads compiled loops, before anybody waits for them; then the party is spent."""

    def apply(self, batch: bytes | bytearray) -> None:
        """Does the steps of another party's batch; PartyError where they break a promise."""

    def hulls(self) -> bytes | None:
        """A last message, which narrows what is published of own attributes; None for none."""

    def narrow(self, hulls: bytes | bytearray, attributes: Sequence[int]) -> None:
        """Takes another party's last message about its attributes; raises PartyError."""

    def published(self, attribute: int) -> tuple[list[tuple[int, int]], np.ndarray]:
        """The different spans of cells of an attribute, and which of them each row has."""


class BiddingParty(FusionParty, Protocol):
    """One owner who bids in every round; the best one specializes."""

    def bid(self, ahead: int = 0) -> list[int]:
        """What its next steps are worth, never rising; no two parties bid the same but 0."""

    def go_on(self, runner_up: int) -> int:
        """Won, and sees the second best bid, where its method tells it: how many steps it does."""

    def lose(self) -> None:
        """Another party won the round: what was planned is taken back."""

    def propose(self, number: int) -> bytes:
        """One of the planned steps, for the judge, who hears of it before the others do."""

    def judge(self, proposal: bytes | bytearray) -> bytes:
        """As the judge: whether a proposed step is valid, after all it was asked in this round."""

    def specialize(self, steps: int, is_refused: bool = False) -> bytes:
        """Won the round: does this number of the planned steps, and says them in a batch.

        is_refused: whether the judge refused the step after these.
        """


class TurnParty(FusionParty, Protocol):
    """One owner who acts when all know that it is its turn."""

    def turn(self) -> int | None:
        """Whose turn it is, by number; None at the end."""

    def propose(self) -> bytes:
        """What it would do in its turn, for the judge, who hears of it before the others do."""

    def judge(self, proposal: bytes | bytearray) -> bytes:
        """As the judge: what of a proposal is valid, a byte for each cut."""

    def decide(self, verdict: bytes | bytearray | None = None) -> bytes:
        """Does all that is to be done in its turn, and says it in a batch.

        verdict: what the judge said of the proposal.
        """


class FusionMethod(NamedMethod, Protocol):
    """How owners agree on the next specializations of a fused table.

    takes_turns: its parties are `TurnParty`, and nobody bids. over_all: whether its groups are over
    all quasi-identifiers, whatever QIDs are asked. cells: of one owner's attributes, by number.
    """

    verb: ClassVar[str] = "fuse"
    takes_turns: ClassVar[bool] = False
    over_all: ClassVar[bool] = False

    @property
    def most_ahead(self) -> int:
        """How many steps a party plans at most for each secure round."""

    def party(self, ground: Any, own: Mapping[int, np.ndarray]) -> FusionParty:
        """One owner, with the cells of its own attributes, on the ground that all know."""

    def worth_bits(self, attributes: int) -> int:
        """Bits that hold every bid and its sign."""

    def most_batch(self, records: int, cells: Mapping[int, int]) -> int:
        """Bytes of a batch about at most this number of rows."""

    def most_batches(self, records: int, nodes: int) -> int:
        """How many batches one owner can send whose attributes have this number of nodes."""

    def check_batch(self, batch: bytes, cells: Mapping[int, int]) -> None:
        """Raises PartyError or ValueError where a batch can't be right, whatever the rows."""


# Promises


class PrivacyModel(Protocol):
    """A promise with its parameters: what it measures on a class, and when that is good enough.

    `privacy.promise.Promise` implements all of it but `judge` and `asked`; derive from that.
    """

    model: ClassVar[str]
    source: ClassVar[str]
    definition: ClassVar[str]
    monotone: ClassVar[bool]
    """Whether a union of classes that hold always holds, for classes that share no subject."""

    higher_is_better: ClassVar[bool]
    counts_people_only: ClassVar[bool]
    """Whether nothing is asked but `least_subjects` in every class."""

    whole_table: ClassVar[bool]
    """Whether it is about the release as a whole, so that no class keeps or breaks it alone."""

    of_sample: ClassVar[bool]
    """Whether it needs to know whom the records stand for, by the weights of the original."""

    @property
    def asked(self) -> float:
        """The threshold, in the unit of `measure`."""

    @property
    def attributes(self) -> tuple[str, ...]:
        """The attributes that the promise is about, as a certificate lists them."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive attributes whose values it needs."""

    @property
    def designated(self) -> tuple[str, ...]:
        """The sensitive values that it protects; empty where it protects all of them."""

    @property
    def population(self) -> str:
        """The table of the population that classes are compared with; empty without one."""

    @property
    def parameters(self) -> Mapping[str, Any]:
        """Every parameter by name."""

    @property
    def settings(self) -> Mapping[str, Any]:
        """Parameters that a certificate states besides `asked`."""

    @property
    def compares_with_table(self) -> bool:
        """Whether it compares a class with the whole table."""

    @property
    def compares_with_input(self) -> bool:
        """Whether suppressed records count in what a class is compared with."""

    @property
    def survives_additions(self) -> bool:
        """Whether one more member never breaks it in a class."""

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """Measured value and whether it holds, for every class; (count,) float64 and bool."""

    def measure(self, classes: Classes) -> np.ndarray:
        """The measured value of every class, (count,) float64."""

    def holds(self, classes: Classes) -> np.ndarray:
        """Whether the promise holds in every class, compared exactly; (count,) bool."""

    def extended(self, table: Classes) -> Classes:
        """The table with whatever else about its records the promise compares."""

    def against(self, table: Classes) -> Callable[[Classes], np.ndarray]:
        """`holds` for classes of a part of this `extended` table, compared with the whole."""

    def closeness(self, table: Classes) -> tuple[Closeness, ...]:
        """The distances from the table that it asks; empty for all but t-closeness."""

    def least_subjects(self, several_records: bool) -> int:
        """The number of subjects that no class can do without."""

    def enough_subjects(self, several_records: bool) -> int:
        """Subjects in every class that are enough for a promise about the whole."""

    def enough_among(self, table: Classes) -> int:
        """`enough_subjects` for classes of this table."""

    def nearest(self, whole_table: Classes) -> list[str]:
        """Why the promise fails even when the whole table is one class, and what would hold."""

    def nearest_among(self, people: int) -> list[str]:
        """Why it fails in a population of this size; empty where it may hold."""

    def worst(self, measured: np.ndarray) -> float | None:
        """The measured value that decides; None where there is no class."""

    def report(self, classes: Classes) -> PromiseReport:
        """The promise as a certificate states it."""

    @property
    def works_in_parts(self) -> bool:
        """Whether `part` and `total` tell what `report` does where no table is held as a whole."""

    @property
    def groups_by(self) -> tuple[str, ...]:
        """The quasi-identifiers whose equal cells make its classes; none means all."""

    def part(self, classes: Classes, table: Classes) -> Any:
        """What it finds on some of the classes of a table; each class is in one part, whole."""

    def total(self, parts: Sequence[Any]) -> PromiseReport:
        """`report` of the whole, by what was found on all parts, in any order."""


# Measures, hierarchies, and how data comes in and goes out


class Metric(Protocol):
    """Utility or risk of a release, under a name that certificates carry."""

    name: ClassVar[str]

    def score(self, release: Release) -> float | None:
        """The measure on a published table; None where it does not apply."""


@runtime_checkable
class PartedMetric(Metric, Protocol):
    """A measure that adds up over the parts of a release, so that no part has to know the others.

    One without this needs a table that is held in memory as a whole.
    """

    def part(self, release: Release) -> Any:
        """What it finds on some of the classes, each with all of its records."""

    def total(self, parts: Sequence[Any]) -> float | None:
        """The measure by what was found on all parts, in any order; exactly that of the whole."""


class Attack(Protocol):
    """One way to learn about people from a release, tried by its owner, who has the original."""

    name: ClassVar[str]
    number: ClassVar[int]
    """Its own stream of random numbers; plug-ins take one from 100 on."""

    needs: ClassVar[tuple[str, ...]] = ()
    """What it can't be run without: `alignment` of records and people, an `earlier` release, or a
    `population`.
    """

    uses_people: ClassVar[bool] = True
    """Whether it reads people's quasi-identifiers or the boxes of classes. A ledger that keeps no
    originals has neither.
    """

    def run(self, scene: AttackScene) -> Findings:
        """What was measured, as JSON: shares with their intervals, null where it can't be, with
        `why`. Names attributes, never a value, a class or a row.
        """


class HierarchyMaker(Protocol):
    """Makes a hierarchy from the distinct values of a column, missing ones left out.

    A policy names it by its kind, with one argument: `hierarchy: {prefix: 5}`. Messages of its
    errors are worded so as to follow `attribute 'name': `. One with `by_value = True` says that the
    labels above a value follow from it alone, so that audits count populations by them.
    """

    kind: ClassVar[str]
    unmatched_message: ClassVar[str]
    """What is wrong with values that don't fit and a remedy, worded to follow both `1 record has a
    value that ` and `9 records have 2 distinct values that `, such as `[is|are] odd`.
    """

    @classmethod
    def from_spec(cls, argument: Any) -> HierarchyMaker:
        """The maker with the argument that a policy gives it; raises InputError for any other."""

    def values_without_leaf(self, values: np.ndarray) -> np.ndarray:
        """Which values the rule has no leaf for; (n,) bool. `make` refuses them."""

    def make(self, values: np.ndarray) -> Hierarchy:
        """A hierarchy with a leaf for every one of these texts; the same for any order of them."""


class Renderer(Protocol):
    """Says how classes become published tables: boxes of cells, or tables that are joined."""

    name: ClassVar[str]

    def tables(
        self, table: Table, encoded: EncodedTable, classes: Partition | Cut, schema: Schema
    ) -> Mapping[str, pl.DataFrame]:
        """The published tables by name, rows in the order of the input.

        classes: of the records that have all values; the others are suppressed. A release of one
        table names it with the empty text.
        """


Place: TypeAlias = dict[str, Any]
"""Where the next record of a source begins, as a checkpoint stores it."""


class Source(Protocol):
    """Records of a stream in one order, read piece by piece from any place."""

    names: list[str]
    """The columns, known before the first record is read."""

    @property
    def place(self) -> Place:
        """Where the next record begins, as a checkpoint stores it."""

    @property
    def sha256(self) -> str | None:
        """The digest of everything read so far; None where the source has none."""
        return None

    def read(self) -> Piece:
        """The next records; an empty piece where nothing has come yet."""

    def go_to(self, place: Place) -> None:
        """Continues at a place reached before; raises CheckpointError where it no longer can."""

    def close(self) -> None:
        """Releases the source, where it holds anything; nothing is read after it."""
        return


class Sink(Protocol):
    """Takes what a stream publishes, step by step, each step once."""

    def put(self, step: int, rows: bytes) -> None:
        """All rows of a step or none; does nothing for a step that it holds already."""

    def close(self) -> None:
        """Releases the sink, where it holds anything; nothing is put after it, and what was put
        stays.
        """
        return
