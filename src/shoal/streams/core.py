"""One stream inside this process: records in, published rows out; no files, no clock.

encode > publish (a method decides when and under which cluster) > render > measure > release
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.reading import Measures
from shoal.data.classes import encode_sensitive
from shoal.data.person_names import is_nobody, names_of, rows_of_nobody, without_nobody
from shoal.data.row_order import published_order
from shoal.data.schema import Kind, Role
from shoal.data.stream import NEW, REUSE, SUPPRESS, Arrivals, Emissions, Space
from shoal.data.table import Table, as_text, encode_text
from shoal.errors import InputError
from shoal.policy.binding.columns import input_warnings
from shoal.policy.binding.table import bind_original, bind_stream
from shoal.policy.policy import Policy
from shoal.recoding.recode import pseudonyms
from shoal.streams.clusters import BoundToStream, ClusterTexts
from shoal.streams.gate import Gate, Passed

POSITION, PERSON = "\0position", "\0person"
"""Columns of what is held that no source can name: where a record stood, and whose it is."""

FIRST = 2_000
"""Records that are looked at for what a reader must know, such as columns that may name people."""

_VERB = "stream"


@dataclass(frozen=True)
class Batch:
    """What one push released, in the order in which it is published.

    frame: the published rows. decided: all m decisions, with or without a row. row: (m,) place in
    `frame`, -1 where none. position: (m,) int64, where each record stood in the source. person:
    (m,) text, None without a subject. live: cells of every cluster that may be used again after it.
    """

    frame: pl.DataFrame
    decided: Emissions
    row: np.ndarray
    position: np.ndarray
    person: pl.Series | None
    live: list[tuple[str | None, ...]]

    @cached_property
    def shown(self) -> np.ndarray:
        """(rows,) the place among the decisions of each published row."""
        published = np.flatnonzero(self.row >= 0)
        shown = np.empty(len(published), dtype=np.int64)
        shown[self.row[published]] = published
        return shown

    @property
    def people(self) -> np.ndarray:
        """(rows,) int64, who is behind each published row."""
        return self.decided.people[self.shown]


class StreamCore:
    """A method at work on one stream, under one policy."""

    def __init__(self, policy: Policy, names: list[str], reference: Table | None = None) -> None:
        """Raises InputError with every finding where policy, columns and method don't fit."""
        method = policy.build_method(_VERB)
        bound = names if policy.model.person is None else [*names, policy.model.person]
        if reference is not None:
            frame = reference.frame
            people, _ = without_nobody(frame, *policy.tables.nobody(frame.columns))
            if not people.height:
                raise InputError("reference: holds no records, only empty rows; give it some")
            if sorted(people.columns) != sorted(names):
                raise InputError(_other_columns(people.columns, names))
            reference = policy.tables.with_person(Table(people))
        found = (
            bind_stream(bound, policy) if reference is None else bind_original(reference, policy)
        )
        self.names, self.parameters = names, policy.parameters_for(_VERB)
        ordered = tuple(found.schema[name] for name in bound)
        self.schema = replace(found.schema, attributes=ordered)
        self.problem = replace(found, schema=self.schema)
        self.space = Space.of(self.schema, method.snap)
        self.measures = Measures(self.problem.promises, self.schema, reference)
        self._gate = Gate(self.schema, self.measures)
        self._promises = BoundToStream(self.measures, self._sensitive, self.space)
        self._publisher = method.start(self.space, self._promises, self.problem.seed)
        self._tick = int(method.tick)
        self._due: list[Emissions] = []
        self._releases = 0
        self._pending = PendingRecords()
        self._texts = ClusterTexts(self.schema, self.space, self._promises.by_cells)
        self.arrived = 0
        self._first: pl.DataFrame | None = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
        self.found: list[dict[str, str]] = []

    def push(
        self, frame: pl.DataFrame, position: np.ndarray
    ) -> tuple[Batch | None, dict[int, str]]:
        """Takes records in; what that releases, and why some rows were refused: row of the frame
        and reason.

        frame: the columns that were named, in any order. position: (n,) int64, where each row stood
        in the source. Raises InputError, and takes none, where a column has another type than
        before and loses something in it.
        """
        frame = self._typed_as_before(frame)
        values, wrong = self._read(frame)
        if wrong:
            good = np.ones(frame.height, dtype=bool)
            good[list(wrong)] = False
            frame, values, position = frame.filter(pl.Series(good)), values[good], position[good]
        seq = np.arange(self.arrived, self.arrived + frame.height, dtype=np.int64)
        self.arrived += frame.height
        self._look_at(frame)
        people, person = self._people(frame, seq)
        self._pending.add(seq, self._kept(frame, position, person))
        return self._released(self._publisher.push(Arrivals(seq, values, people))), wrong

    def expire(self, seq: int) -> Batch | None:
        """Releases the records up to this number of arrival."""
        return self._released(self._publisher.expire(seq), early=True)

    def flush(self) -> Batch | None:
        """The end of the stream; what was held goes out by the method's rules, or never."""
        self.judged()
        return self._released(self._publisher.flush(), early=True)

    @property
    def waiting(self) -> int:
        return self._pending.count

    def measure(self, batch: Batch, rows: pl.DataFrame) -> Passed:
        """What was measured of a batch before it leaves; raises PromiseError where a promise fails.

        rows: as readers will see them.
        """
        decided, shown = batch.decided, batch.shown
        new = np.where(decided.kind[shown] == NEW, decided.cluster[shown], -1)
        truth = decided.values[shown]  # number, place or leaf behind every cell
        truth[truth >= self.space.beyond] = np.nan
        return self._gate.measure(
            rows, batch.people, truth, decided.release[shown], new, batch.live
        )

    @property
    def nothing(self) -> pl.DataFrame:
        """No row, with the columns that are published."""
        return pl.DataFrame(schema={a.name: pl.String for a in self.schema.published})

    def judged(self) -> list[dict[str, str]]:
        """Findings about the first records, as a certificate states them; later ones add none."""
        if self._first is not None:
            warnings = input_warnings(Table(self._first), self.problem.tables.model)
            if self._first.height == FIRST:  # the counts are of these alone
                warnings = [warning.at(f"first {FIRST:,} records") for warning in warnings]
            self.found, self._first = [warning.report() for warning in warnings], None
        return self.found

    # taking in

    def _look_at(self, frame: pl.DataFrame) -> None:
        """Keeps the first records until there are enough of them to be judged."""
        if self._first is None:
            return
        first, person = frame.head(FIRST), self.problem.tables.model.person
        texts = pl.DataFrame([as_text(column) for column in first if column.name != person])
        self._first = pl.concat([self._first, texts], how="diagonal").head(FIRST)
        if self._first.height == FIRST:
            self.judged()

    def unfit_records(self, frame: pl.DataFrame) -> dict[int, str]:
        """Why rows would not be taken; raises InputError like `push`."""
        return self._read(self._typed_as_before(frame))[1]

    def _typed_as_before(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Columns published as they are, and that of people, in the types that came first."""
        frame = self.problem.tables.with_person(Table(frame)).frame
        if not frame.height:
            return frame
        first, findings, columns = self._pending.schema, [], []
        for attribute in self.schema.published:
            if attribute.role is Role.QUASI or attribute.pseudonym is not None:
                continue
            column = frame[attribute.name]
            if column.dtype in (pl.Categorical, pl.Enum):
                column = column.cast(pl.String)
            before = first.get(attribute.name, column.dtype)
            same = column if before == pl.Null else _in_type(column, before)
            if same is None:
                findings.append(
                    f"attribute '{attribute.name}': this batch holds {column.dtype}, the stream"
                    f" began with {before}; convert the column to {before}"
                )
            else:
                columns.append(same)
        InputError.raise_for(findings)
        return frame.with_columns(columns)

    def _read(self, frame: pl.DataFrame) -> tuple[np.ndarray, dict[int, str]]:
        values, wrong = self.space.encode(frame)
        for rows, reason in self._unfit(frame):
            wrong |= {row: reason for row in np.flatnonzero(rows).tolist() if row not in wrong}
        return values, wrong

    def _unfit(self, frame: pl.DataFrame) -> Iterator[tuple[np.ndarray, str]]:
        """Rows, (n,) bool, that are nobody, unwritable or of unknown sensitive values; and why."""
        no_names, silent = self.problem.tables.nobody(self.names)
        nobody = rows_of_nobody(frame.select(self.names).drop(silent), no_names)
        yield np.isin(np.arange(frame.height), nobody), "has no value and is nobody"
        if self.schema.subject is not None:
            people = frame[self.schema.subject.name]
            yield is_nobody(people, self.schema.no_names), "has no subject"
        for attribute in self.schema.published:
            # what a quasi-identifier may hold is known: no domain, hierarchy or order has such a
            # character
            if attribute.role is not Role.QUASI and frame[attribute.name].dtype == pl.String:
                unwritable = frame[attribute.name].str.contains("\0", literal=True)
                yield (
                    unwritable.fill_null(False).to_numpy(),
                    f"attribute '{attribute.name}': holds a null character, which no table can",
                )
        for names, unseen in self.measures.unknown_together(frame):
            quoted = ", ".join(f"'{name}'" for name in names)
            yield unseen, f"attributes {quoted}: values that the reference does not show together"
        for attribute in self.schema.sensitive:
            unknown = self.measures.unknown(attribute.name, frame[attribute.name])
            yield unknown, f"attribute '{attribute.name}': a value that the reference does not show"
            if attribute.hierarchy is None and attribute.kind is Kind.CATEGORY:
                continue
            column = encode_text(frame[attribute.name])
            if encode_sensitive(attribute, column, self.schema)[0] is not None:
                continue
            alone = [encode_text(pl.Series(attribute.name, [cell])) for cell in column.cells]
            unread = [encode_sensitive(attribute, one, self.schema)[0] is None for one in alone]
            yield (
                np.array(unread)[column.codes],
                f"attribute '{attribute.name}': a value that the policy does not know",
            )

    def _people(self, frame: pl.DataFrame, seq: np.ndarray) -> tuple[np.ndarray, pl.Series | None]:
        """A number for everybody; two people may share one, and then count once: never too many."""
        if self.schema.subject is None:
            return seq, None
        person = names_of(frame[self.schema.subject.name])
        return person.hash(seed=self.problem.seed).to_numpy().view(np.int64), person

    def _kept(
        self, frame: pl.DataFrame, position: np.ndarray, person: pl.Series | None
    ) -> pl.DataFrame:
        columns = [
            pseudonyms(frame[a.name]) if a.pseudonym is not None else frame[a.name]
            for a in self.schema.published
            if a.role is not Role.QUASI
        ]
        columns += [as_text(frame[name]) for name in self._texts.needed()]
        columns.append(pl.Series(POSITION, position))
        if person is not None:
            columns.append(person.alias(PERSON))
        return pl.DataFrame(columns)

    def _sensitive(self, seq: np.ndarray) -> pl.DataFrame:
        return self._pending.rows(seq, [attribute.name for attribute in self.schema.sensitive])

    # releasing

    def _released(self, releases: Iterator[Emissions], early: bool = False) -> Batch | None:
        """What is due of these and earlier releases; all of it, where it leaves before its tick."""
        for one in releases:
            self._promises.settle(one)  # before the next release asks who may join
            self._due.append(one)
        if not self._due:
            return None
        decided = Emissions.joined(self._due)
        self._due = []
        if self._tick > 1:
            decided = self._ticked(decided, early)
        if not len(decided):  # before a tick, or all of them wait on
            return None
        rows = self._pending.rows(decided.seq)
        self._texts.write(decided, rows)
        frame = self._texts.frame(decided, rows)
        order, published = self._order(decided, frame)
        row = np.full(len(decided), -1, dtype=np.int64)
        row[order[:published]] = np.arange(published)
        self._pending.drop(decided.seq)
        self._texts.forget(set(decided.live.tolist()), self._promises.remembers)
        person = rows[PERSON] if PERSON in rows.columns else None
        return Batch(
            frame[order[:published]],
            decided,
            row,
            rows[POSITION].to_numpy(),
            person,
            self._texts.shown,
        )

    def _ticked(self, decided: Emissions, early: bool) -> Emissions:
        """What leaves at ticks that have passed, everything between two of them as one release; the
        rest is due later.

        So nobody's delay tells when they came, but for the tick.
        """
        behind = (decided.emitted // self._tick + 1) * self._tick - 1
        leaves = (behind < self.arrived) | early
        numbers, place = np.unique(
            np.minimum(behind, self.arrived - 1)[leaves], return_inverse=True
        )
        now = decided.part(leaves)
        now = replace(
            now, release=self._releases + place.reshape(-1), emitted=numbers[place.reshape(-1)]
        )
        self._releases += len(numbers)
        if leaves.all():
            return now
        later = decided.part(~leaves)
        self._due = [later]
        return replace(now, live=np.union1d(now.live, later.cluster))  # as it is still needed

    def _order(self, decided: Emissions, frame: pl.DataFrame) -> tuple[np.ndarray, int]:
        """Places of the published rows, release by release, and how many; the unpublished follow.

        Within a release the order follows from what the rows show, so it tells nothing of arrival.
        """
        hidden = ~np.isin(decided.kind, (NEW, REUSE, SUPPRESS))
        within = decided.seq
        if self.schema.render.order != "input":
            within = np.argsort(published_order(frame, self.problem.quasi, self.schema.render))
        return np.lexsort((within, decided.release, hidden)), int((~hidden).sum())

    # stopping and going on

    def snapshot(self) -> dict[str, Any]:
        """Everything that is needed to go on: arrays, frames and plain values."""
        due = vars(Emissions.joined(self._due)) if self._due else {}
        return {
            "arrived": self.arrived,
            "first": self._first,
            "found": self.found,
            "held": self._pending.frame,
            "held_seq": self._pending.seq,
            "releases": self._releases,
            **{f"due/{name}": array.copy() for name, array in due.items()},
            **self._texts.snapshot(),
            "known": self._gate.snapshot(),
            **{f"publisher/{name}": array for name, array in self._publisher.snapshot().items()},
            **{f"promises/{name}": frame for name, frame in self._promises.snapshot().items()},
        }

    def restore(self, state: dict[str, Any]) -> None:
        self.arrived = int(state["arrived"])
        self._first, self.found = state.get("first"), state.get("found", [])
        self._pending.set(state["held_seq"], state["held"])
        self._releases = int(state["releases"])
        due = state_below("due/", state)
        self._due = [Emissions(**due)] if due else []
        self._texts.restore(state)
        self._gate.restore(state["known"])
        self._publisher.restore(state_below("publisher/", state))
        self._promises.restore(state_below("promises/", state))


def _other_columns(reference: list[str], names: list[str]) -> str:
    """How the columns of a reference differ from a stream's."""
    lacking = [f"'{name}'" for name in names if name not in reference]
    more = [f"'{name}'" for name in reference if name not in names]
    parts = [("it lacks", lacking), ("it also has", more)]
    differing = " and ".join(f"{what} {', '.join(found)}" for what, found in parts if found)
    return (
        f"reference: has other columns than the stream: {differing}; give a table of the same kind"
    )


def _in_type(column: pl.Series, dtype: pl.DataType) -> pl.Series | None:
    """The column in another type; None where a number or a text would change."""
    if column.dtype == dtype:
        return column
    try:
        cast = column.cast(dtype, strict=False)
        if column.dtype.is_numeric() and dtype.is_numeric():
            is_same = cast.cast(column.dtype, strict=False).equals(column)
        else:
            is_same = as_text(cast).equals(as_text(column))
    except pl.exceptions.PolarsError:
        return None
    return cast if is_same else None


def state_below(prefix: str, state: dict[str, Any]) -> dict[str, Any]:
    """The entries of a state whose names begin with a prefix, without it."""
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }


# Records that wait until a method decides about them.


class PendingRecords:
    """The columns of waiting records that are published or needed for it, by number of arrival."""

    def __init__(self) -> None:
        self._frames: list[pl.DataFrame] = []
        self._seqs: list[np.ndarray] = []

    def add(self, seq: np.ndarray, frame: pl.DataFrame) -> None:
        """The frame has the types of `schema`, or another one where nothing is known but nulls."""
        if len(seq):
            if self._frames and self.schema != frame.schema:
                # what was restored with nobody waiting has no columns
                self._frames = [self.frame.cast(frame.schema)] if self.count else []
            self._seqs.append(seq)
            self._frames.append(frame)

    def set(self, seq: np.ndarray, frame: pl.DataFrame) -> None:
        self._seqs = [seq]
        self._frames = [frame]

    @property
    def count(self) -> int:
        return sum(len(seq) for seq in self._seqs)

    @property
    def schema(self) -> pl.Schema:
        """The types of the columns; empty before the first record."""
        return self._frames[0].schema if self._frames else pl.Schema()

    @property
    def seq(self) -> np.ndarray:
        """(n,) int64, ascending."""
        if len(self._seqs) > 1:
            self._seqs = [np.concatenate(self._seqs)]
        return self._seqs[0] if self._seqs else np.zeros(0, np.int64)

    @property
    def frame(self) -> pl.DataFrame:
        if len(self._frames) > 1:
            self._frames = [pl.concat(self._frames)]
        return self._frames[0] if self._frames else pl.DataFrame()

    def rows(self, seq: np.ndarray, names: Sequence[str] | None = None) -> pl.DataFrame:
        """These records, in this order. names: the columns asked for, if not all of them."""
        rows = np.searchsorted(self.seq, seq)
        columns = self.frame.columns if names is None else names
        if len(rows) and (np.diff(rows) == 1).all():  # neighbours need no copy
            return self.frame[int(rows[0]) : int(rows[0]) + len(rows), columns]
        return self.frame[rows, columns]

    def drop(self, seq: np.ndarray) -> None:
        stays = np.ones(len(self.seq), dtype=bool)
        stays[np.searchsorted(self.seq, seq)] = False
        self._frames = [self.frame.filter(pl.Series(stays))]
        self._seqs = [self.seq[stays]]
