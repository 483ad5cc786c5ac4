"""One stream being published, in memory: what its pieces release, how that is measured, and what a
snapshot holds. Subclasses commit the steps: `run.Run` by one rename, `partitions.PartitionRun` by a
transaction of the broker, `shard.ShardRun` by what its driver commits for all shards.
"""

import hashlib
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

from shoal.connectors import engines, files
from shoal.data.certificate import Certificate
from shoal.data.findings import RowsFinding
from shoal.data.language import printable
from shoal.data.stream import KINDS, Piece
from shoal.data.table import MOST_KEPT, Table
from shoal.data.warnings import warn
from shoal.errors import ANOTHER_STREAM, TWICE, CheckpointError, InputError
from shoal.policy.consistency import NOT_HASHED
from shoal.policy.policy import Policy
from shoal.protocols import Source
from shoal.recoding.recode import require_key
from shoal.streams.certify import StreamCounters, stream_certificate
from shoal.streams.checkpoint import UNFIT, Checkpoint
from shoal.streams.core import Batch, StreamCore, state_below
from shoal.streams.gate import Passed
from shoal.streams.options import StreamOptions
from shoal.streams.outputs import Outputs
from shoal.streams.stream_status import StatusWriter
from shoal.version import VERSION

MOST_TIMES = 100  # times of arrival that are distinguished within a deadline
MOST_BAD = 20  # bad records that one message names


@dataclass(frozen=True)
class StreamRequest:
    """What is asked of a stream, and the policy that it is published under."""

    options: StreamOptions
    policy: Policy

    def require_answers(self) -> None:
        """Raises InputError, before data is read, for what the policy leaves open or asks."""
        self.policy.require_answers()
        require_key(self.policy.model)
        self.policy.check_files("stream")
        rolls = "roll" in self.policy.model.write.model_fields_set
        if rolls and (engines.asked() is not None or not self.options.is_rolling):
            raise InputError(
                "--write roll: is for files of a folder, without --engine; end the name of the"
                " output with '/', or leave it out"
            )

    def unsafe_parts(self, parts: str, instead: str) -> list[str]:
        """Promises that hold in each of some `parts` and may fail in all. instead: what to do."""
        return [
            f"promise '{promise.model}': may fail where classes of different {parts} show the same"
            f" cells; leave it out, or {instead}"
            for promise in self.policy.build_promises()
            if not promise.monotone
        ]

    @property
    def fixed(self) -> Mapping[str, Any]:
        """What its policy settles for as long as the stream goes on."""
        model = self.policy.model
        settled = model.model_dump(mode="json", exclude=NOT_HASHED)
        del settled["require_together"]  # k over all columns is asked of no stream
        if "order" not in model.render.model_fields_set:
            settled["render"]["order"] = "input"  # as the default was named once
        return {
            "policy": settled,
            "shuffled": sorted(model.render.model_fields_set),
            "hierarchies": [files.file_sha256(name) for name in self.policy.named_tables],
        }

    def opened(self, names: list[str]) -> tuple[StreamCore, Mapping[str, Any]]:
        """A stream of these columns, and what may not change between two runs of it.

        Raises InputError where policy or method don't fit the columns.
        """
        named = self.policy.reference
        shown = None if named is None else files.read(named)
        core = StreamCore(self.policy, names, None if shown is None else Table(shown.frame))
        return core, {
            **self.fixed,
            "reference": None if shown is None else shown.sha256,
            "columns": names,
            "record_lines": self.policy.fields.record_lines,
        }


class Publishing(ABC):
    """A stream under one policy, from one source; each step is measured before it is committed."""

    def __init__(
        self,
        request: StreamRequest,
        feed: Source,
        checkpoint: Checkpoint,
        clock: Callable[[], float],
    ) -> None:
        self._options = options = request.options
        self._feed = feed
        self._checkpoint = checkpoint
        self._clock = clock
        self.core, terms = request.opened(feed.names)
        self.outputs = Outputs(options, checkpoint, self.core.schema)
        self.counters = StreamCounters()
        self.status = StatusWriter(options, self.core)
        self._step = 0
        self._arrival_times: list[tuple[float, int]] = []
        self._started = time.process_time()
        self._read_before = 0
        self._terms = {
            **terms,
            "outputs": self._outputs_that_stay(),
            "table": options.place.address.table if options.place.is_table else None,
            "version": VERSION.rpartition(".")[0],
        }

    # stopping and resuming

    def _resume_from(self, state: dict[str, Any]) -> None:
        """Goes on where a snapshot was taken; raises CheckpointError where it does not fit."""
        try:
            now = {*self.outputs.by_name}
            begun = {*state.get("lengths", now)}
            differing = [
                f"{'with' if name in begun else 'without'} {BY_OUTPUT.get(name, name)}"
                for name in sorted(begun ^ now)
            ]
            other = [f"outputs ({', '.join(differing)})"] if differing else []
            check_terms(self._checkpoint.folder, state.get("policy"), self._terms, other)
            self._take_up(state)
        except InputError:
            raise
        except UNFIT:
            raise self._checkpoint.damaged from None

    def _take_up(self, state: dict[str, Any]) -> None:
        self._feed.go_to(state["place"])
        self._restore(state)
        now = self._clock()
        away = max(0.0, time.time() - float(state["at"]))  # a deadline runs on without a process
        self._arrival_times = [(now - away - float(age), int(seq)) for age, seq in state["came"]]
        if self._options.deadline is None:
            self._arrival_times = []
        elif self.core.waiting and not self._arrival_times:  # no deadline was asked before
            self._arrival_times = [(now, self.core.arrived - 1)]

    def _snapshot(self) -> dict[str, Any]:
        """What every subclass commits with a step."""
        now = self._clock()
        return {
            "policy": settled(self._terms),
            "columns": self._feed.names,
            "step": self._step,
            "place": self._feed.place,
            "came": [(now - at, seq) for at, seq in self._arrival_times],
            "at": time.time(),
            "tally": asdict(self.counters),
            "paths": self._outputs_that_stay(),
            **self.outputs.snapshot(),
            **{f"core/{name}": value for name, value in self.core.snapshot().items()},
        }

    def _restore(self, state: dict[str, Any]) -> None:
        self.core.restore(state_below("core/", state))
        TypeAdapter(StreamCounters).validate_json(json.dumps(state["tally"]), strict=True)
        self.counters = StreamCounters(**state["tally"])
        self._step = int(state["step"])
        self._read_before = self.counters.read
        self.outputs.restore(state)

    def _outputs_that_stay(self) -> dict[str, str]:
        return {name: str(output.path.resolve()) for name, output in self.outputs.by_name.items()}

    # working

    def _batches_of(self, piece: Piece) -> list[Batch]:
        """What leaves because of a piece of the source, a deadline, or the end."""
        now = self._clock()
        arrived_before = self.core.arrived
        batches = [self._take_in(piece)]
        if self._options.deadline is not None:
            if self.core.arrived > arrived_before:
                self._note_arrival(now, self._options.deadline)
            batches.append(self._overdue(self._options.deadline))
        if piece.at_end:
            batches.append(self.core.flush())
            self.outputs.add_rows(b"")  # the names of the columns, though no row may follow
            self.counters.closed = True
        self.counters.found = self.core.found
        return [batch for batch in batches if batch is not None]

    def _take_in(self, piece: Piece) -> Batch | None:
        batch, unfit = self.core.push(piece.frame, piece.position)
        bad = piece.bad + [(int(piece.position[row]), reason) for row, reason in unfit.items()]
        bad.sort()
        if bad and self._options.stops_at_bad:
            cure = "; correct it, or set it aside: leave out --dead-letters stop"
            raise refused(bad, cure)
        if bad:
            path, why = self.outputs["dead_letters"].path, printable(bad[-1][1])
            self.status.last_aside = f" and are listed in '{path}', the last with: {why}"
        lines = [json.dumps({"record": at, "reason": why}) + "\n" for at, why in bad]
        self.outputs["dead_letters"].pending += "".join(lines).encode()
        positions = np.append(piece.position, [at for at, _ in piece.bad]).astype(np.int64)
        known, was_aside = self.counters.new_fields, self.counters.mostly_aside
        self.counters.meet(piece.new)
        self.counters.came(positions, np.array([at for at, _ in bad], dtype=np.int64))
        if self._options.follow:  # its end may be far
            if self.counters.new_fields != known:
                warn(self.counters.fields_dropped)
            if self.counters.mostly_aside and not was_aside:
                warn(self.counters.source_changed)
        return batch

    def _note_arrival(self, now: float, deadline: float) -> None:
        """Notes when the last records arrived; rounded up, since checkpoints hold every time."""
        times = self._arrival_times
        if times and now - times[-1][0] < deadline / MOST_TIMES:
            now = times.pop()[0]
        times.append((now, self.core.arrived - 1))

    def _overdue(self, deadline: float) -> Batch | None:
        """What must leave because its time has run out, however few have arrived since."""
        due = -1
        while self._arrival_times and self._clock() - self._arrival_times[0][0] >= deadline:
            due = self._arrival_times.pop(0)[1]
        return self.core.expire(due) if due >= 0 else None

    def _advance(self, piece: Piece) -> bool:
        """One step, if anything follows from a piece: write, measure, commit, put."""
        batches = self._batches_of(piece)
        for batch in batches:
            self._write(batch)
        is_step = bool(len(piece.position) or piece.bad or batches or piece.at_end)
        if is_step:
            self._commit()
        else:
            self.status.waits()
        return is_step

    def _write(self, batch: Batch) -> None:
        """Packs a batch, and measures what its readers will read of it."""
        content = self.outputs.format.pack(batch.frame)
        passed = Passed()
        if batch.frame.height:
            passed = self.core.measure(batch, self.outputs.format.read_back(content))
        self.outputs.add_rows(content)
        if "people" in self.outputs:
            self.outputs["people"].pending += batch.people.tobytes()
        if "trace" in self.outputs:
            self.outputs["trace"].pending += trace_lines(batch, self.counters.published)
        self.counters.add(batch, passed)
        self.status.waited(int((batch.decided.emitted - batch.decided.seq).max(initial=0)))

    @abstractmethod
    def _commit(self) -> None:
        """Makes the step count as done, all at once, and writes its rows exactly once."""

    # reporting

    def _certificate(
        self, read_and_written: dict[str, Any], whole: dict[str, Any] | None = None
    ) -> Certificate:
        self.counters.found = self.core.judged()
        return stream_certificate(self.core, self.counters, read_and_written, self._started, whole)


def refused(bad: list[tuple[int, str]], cure: str = "") -> InputError:
    """The first bad records with their reasons, and how many more there are."""
    (first, reason), *others = bad[:MOST_BAD]
    findings = [RowsFinding(f"record {at}: {why}", (at + 1,)) for at, why in others]
    if more := tuple(at + 1 for at, _ in bad[MOST_BAD:]):
        findings.append(RowsFinding(f"{len(more)} more records do not fit", more[:MOST_KEPT]))
    said = f"record {first} (the first is 0): {reason}{cure}"
    return InputError(RowsFinding(said, (first + 1,)), findings)


def hash_of(fixed: object) -> str:
    """One text that two streams share if they agree in everything named here."""
    return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()


# What may not change while a stream goes on.

POLICY_KEY = "policy/"  # and a key of it
OTHER_KEY = f"{POLICY_KEY}other"
DIFFERENT = {
    "policy": "another policy",
    "shuffled": "another policy",
    "hierarchies": "other hierarchies",
    "reference": "another reference",
    "columns": "other columns",
    "record_lines": "another --read record_lines",
    "table": "another output table",
    "version": "another version of Shoal",
}
BY_OUTPUT = {"trace": "--trace", "people": "a subject"}
"""What decides whether there is an output."""


def settled(terms: Mapping[str, Any]) -> str:
    """A text by which `check_terms` knows these terms again, and whatever of them differs."""
    keys = {f"{POLICY_KEY}{key}": value for key, value in terms["policy"].items()}
    parts = {name: hash_of(value) for name, value in {**terms, **keys}.items()}
    return json.dumps(parts, sort_keys=True)


def check_terms(
    folder: Path, begun: object, terms: Mapping[str, Any], other: Sequence[str] = ()
) -> None:
    """Raises CheckpointError with everything in which a stream differs from the one that was begun.

    begun: what `settled` gave, or the hash of all that earlier versions wrote. other: what is known
    to differ beside the terms. Where outputs lie is no term: what stands in them proves them.
    """
    earlier = {name: value for name, value in terms.items() if name not in ("table", "version")}
    if "version" in terms:
        earlier |= {"shoal": VERSION, "polars": pl.__version__}
    known, given = (_mapping(text) for text in (begun, settled(terms)))
    differing = _differing(known, given)
    if begun == hash_of(earlier) or (known and not differing and not other):
        return
    if not isinstance(begun, str):
        raise CheckpointError(
            f"checkpoint '{folder}': is of another kind of stream, such as one by shards or"
            " partitions; name another folder"
        )
    if not known:
        differs = (
            "one hash of the policy, the full paths of checkpoint and outputs, and the versions of"
            " Shoal and Polars (the hash cannot say which of these differs)"
        )
        if other:
            differs = " and ".join(f"other {one}" for one in other)
        raise CheckpointError(
            f"checkpoint '{folder}': was made before 0.1.0 was released, under {differs}; put the"
            " folders back and give the policy and versions that began it. Or keep the output,"
            " which gets its certificate from 'shoal audit OUTPUT -p POLICY -o CERTIFICATE', and"
            f" {ANOTHER_STREAM}, only for the records behind those that stream-status counts as"
            " come; those that it counts as waiting stay unpublished"
        )
    keys = [name.removeprefix(POLICY_KEY) for name in differing if name.startswith(POLICY_KEY)]
    named = {*differing, *(["policy"] if keys else [])}
    words = dict.fromkeys(word for name, word in DIFFERENT.items() if name in named)
    what = ", ".join([*words, *(f"other {one}" for one in other)])
    if keys:
        what = what.replace(DIFFERENT["policy"], f"{DIFFERENT['policy']} ({', '.join(keys)})")
    raise CheckpointError(
        f"checkpoint '{folder}': was made under {what}; resume with what it was begun with. To"
        " change that, end the stream first, by its old command without --follow, and begin a new"
        f" checkpoint for the records that follow: {TWICE}"
    )


def _differing(known: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """The terms that differ; earlier checkpoints know fewer."""
    free = {"outputs"}
    if any(name.startswith(POLICY_KEY) for name in known):
        free.add("policy")  # its keys say the same
        known = dict.fromkeys((n for n in given if n.startswith(POLICY_KEY)), None) | {**known}
    # columns being the same, it only decides whether later records with more fields are set aside
    if {one.get(OTHER_KEY) for one in (known, given)} <= {hash_of(None), hash_of("drop")}:
        free.add(OTHER_KEY)
    return [name for name in known if known[name] != given.get(name) and name not in free]


def _mapping(text: object) -> Mapping[str, Any]:
    try:
        found = json.loads(str(text))
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


# The lines of a trace: what became of every record.


def trace_lines(batch: Batch, published: int) -> bytes:
    """The lines of a batch in the trace. published: rows that left before it."""
    decided = batch.decided
    frame = pl.DataFrame(
        {
            "seq": batch.position,
            "subject": batch.person if batch.person is not None else batch.position,
            "release": decided.release,
            "class": decided.cluster,
            "kind": pl.Series(list(KINDS)).gather(decided.kind),
            "arrival": decided.seq,
            "emitted": decided.emitted,
            "row": batch.row,
        }
    )
    row, cluster = pl.col("row"), pl.col("class")
    frame = frame.with_columns(
        pl.when(row >= 0).then(row + published).alias("row"),
        pl.when(cluster >= 0).then(cluster).alias("class"),
    )
    return frame.write_ndjson().encode()
