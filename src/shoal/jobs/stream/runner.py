"""The stream as a process: a source, a sink, and a checkpoint that all three commit in one rename.

One step: read a piece > publish what is due > write it to a hidden segment, read that back and
measure it > commit source place, publisher and the length of every output in one snapshot > put the
segment behind what stands in the outputs. Killed before the commit, the step is as if it never was
and is done again, with the same result; killed behind it, the segment is put once more, to the same
place.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import math
import os
import secrets
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pydantic import TypeAdapter

from shoal.connectors import files, kafka
from shoal.connectors.feeds import RECORD_LINES, Feed, Piece, feed_of
from shoal.connectors.outputs import remove_uncommitted_certificate
from shoal.data.certificate import Certificate
from shoal.data.schema import Role
from shoal.data.stream import KINDS, NEW
from shoal.data.table import Table
from shoal.errors import CheckpointError, InputError, PromiseError
from shoal.jobs.audit.audit import measure
from shoal.jobs.stream.core import Batch, StreamCore
from shoal.jobs.stream.gate import Gate
from shoal.policy.policy import Policy
from shoal.state.checkpoint import UNFIT, Checkpoint
from shoal.version import VERSION

Progress = Callable[[str], None]
ON_BAD = ("dead-letter", "stop")
PRIVATE = ("people", "trace")  # outputs that tell more than the release: their owner's alone
MOST_HISTORY = 400
STRETCHES = 20
TELL_EVERY = 2.0  # seconds between two lines of progress
MOST_TIMES = 100  # times of arrival that are told apart within a deadline
IDLE = 0.2  # seconds between two looks at a source that has nothing


@dataclass(frozen=True)
class Order:
    """What a run was asked for, as the command line takes it."""

    source: str
    sink: str
    checkpoint: Path | None = None
    trace: str | None = None
    dead_letters: str | None = None
    reference: str | None = None
    on_bad: str = "dead-letter"
    follow: bool = False
    deadline: float | None = None
    durable: bool = True
    whole: bool = True
    record_lines: int = RECORD_LINES

    @property
    def bad_records(self) -> Path:
        """The file that lists records which were set aside."""
        if self.dead_letters is None and self.checkpoint is not None and kafka.is_topic(self.sink):
            return self.checkpoint / "dead-letters.jsonl"
        beside = "stream" if self.sink == files.STANDARD else self.sink
        return Path(self.dead_letters or f"{beside}.dead-letters.jsonl")


@dataclass
class StreamCounters:
    """Counts since the beginning of the stream, over all runs."""

    read: int = 0
    bad: int = 0
    published: int = 0
    kinds: dict[str, int] = field(default_factory=lambda: dict.fromkeys(KINDS, 0))
    releases: int = 0
    clusters: int = 0
    longest: int = 0
    waited: int = 0
    closed: bool = False
    history: list[list[float]] = field(default_factory=list)


def stream_file(
    order: Order, policy: Policy, *, progress: Progress, clock: Callable[[], float] = time.monotonic
) -> tuple[Certificate, np.ndarray]:
    """Publishes a source into a sink, to its end; goes on where the checkpoint stopped.

    Returns the certificate, and the history as `Run.history`. Every release is measured from its
    bytes before it leaves. Raises InputError, CheckpointError or PromiseError.
    """
    _check(order)
    with ExitStack() as stack:
        stack.enter_context(_told(order))
        feed: Feed | kafka.TopicFeed
        if kafka.is_topic(order.source):
            feed = kafka.TopicFeed(order.source, order.follow)
        else:
            feed = feed_of(order.source, order.follow, order.record_lines)
        stack.callback(feed.close)
        run = stack.enter_context(_run(order, policy, feed, clock))
        run.run_to_end(progress)
        return run.close(progress), run.history


@contextmanager
def _told(order: Order) -> Iterator[None]:
    """What the disk refuses is an InputError in one line; a reader of standard output that went
    away is left alone.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as failed:
        goes_on = "; the same command goes on, and nothing is published twice"
        raise InputError(
            f"stream: reading or writing failed ({failed.strerror or 'no room or no right'}); make"
            " room or mend the rights, then run it"
            f" again{goes_on if order.checkpoint is not None else ''}"
        ) from None


def _check(order: Order) -> None:
    named = _paths_of(order.sink, order.trace, order.dead_letters)
    read = _paths_of(order.source, order.reference)
    findings = []
    if kafka.is_topic(order.sink) and order.checkpoint is None:
        findings.append(
            f"output '{order.sink}': a topic can't be taken back; give --checkpoint, so that rows"
            " go once"
        )
    if len(set(named)) < len(named) or set(named) & set(read):
        findings.append(
            "outputs: one file is named twice, or is also read; give every one a file of its own"
        )
    if order.sink == files.STANDARD and order.checkpoint is not None:
        findings.append(
            "output '-': what went to standard output can't be taken up again; write to a file, "
            "or leave out --checkpoint"
        )
    if order.follow and order.checkpoint is None:
        findings.append(
            "--follow: a stream without end needs --checkpoint, so that it can be stopped and go on"
        )
    if order.deadline is not None and not 0 <= order.deadline < math.inf:
        findings.append(
            "--deadline: is no number of seconds; give one of 0 or more, or leave it out"
        )
    for path in named:
        if path.is_dir() or not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
            findings.append(
                f"output '{path}': can't be written; name a file in a folder that exists and is"
                " writable"
            )
    if findings:
        raise InputError.from_findings(findings)
    _format_of(order.sink)


def _paths_of(*names: str | None) -> list[Path]:
    return [
        Path(n).resolve()
        for n in names
        if n not in (None, files.STANDARD) and not kafka.is_topic(str(n))
    ]


def _format_of(sink: str) -> str:
    return ".jsonl" if kafka.is_topic(sink) else files.format_of(sink)


@dataclass
class Output:
    """A file that only ever grows, how much of it is committed, and what comes next."""

    path: Path
    is_private: bool = False
    length: int = 0
    pending: bytes = b""


@contextmanager
def _run(
    order: Order, policy: Policy, feed: Feed | kafka.TopicFeed, clock: Callable[[], float]
) -> Iterator[Run]:
    """The run at its beginning or where the checkpoint stopped; without a checkpoint, outputs
    appear at the end.
    """
    with ExitStack() as stack:
        if order.checkpoint is not None:
            checkpoint = Checkpoint(order.checkpoint, order.durable)
            stack.enter_context(checkpoint.held())
            _require_columns(order, checkpoint, feed.names)
            run = Run(order, policy, feed, checkpoint, clock)
            run.resume()
            try:
                yield run
            except (KeyboardInterrupt, SystemError) as stop:
                if isinstance(stop, SystemError) and not isinstance(
                    stop.__cause__, KeyboardInterrupt
                ):
                    raise
                run.interrupt()
                raise KeyboardInterrupt from None  # which compiled code gives back in its own words
            return
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-stream-")))
        stack.enter_context(remove_uncommitted_certificate(order.sink))
        run = Run(order, policy, feed, Checkpoint(folder, durable=False), clock)
        for name in ("sink", "trace"):
            output = run.outputs.get(name)
            if output is not None and output.path.parent != folder and order.sink != files.STANDARD:
                output.path = stack.enter_context(
                    files.atomic_write(str(output.path), output.is_private)
                )
        yield run


def _require_columns(order: Order, checkpoint: Checkpoint, names: list[str]) -> None:
    """Raises CheckpointError where the source does not begin as the one that the checkpoint was
    made with.
    """
    state = checkpoint.load()
    if state is not None and state.get("columns") not in (None, names):
        again = (
            "feed it again from its beginning"
            if order.source == files.STANDARD
            else "give the same source"
        )
        raise CheckpointError(
            f"source '{order.source}': does not begin with the columns that the checkpoint was made"
            f" with; {again}, or begin a new checkpoint"
        )


class Run:
    """One run of a stream."""

    def __init__(
        self,
        order: Order,
        policy: Policy,
        feed: Feed | kafka.TopicFeed,
        checkpoint: Checkpoint,
        clock: Callable[[], float],
    ) -> None:
        self._order, self._policy, self._feed, self._checkpoint, self._clock = (
            order,
            policy,
            feed,
            checkpoint,
            clock,
        )
        named = order.reference or policy.reference
        self._reference = None if named is None else files.read(named)
        table = None if self._reference is None else Table(self._reference.frame)
        self.core = StreamCore(policy, feed.names, table)
        self._gate = Gate(self.core.schema, self.core.measures)
        self._tally = StreamCounters()
        self._kind = _format_of(order.sink)
        self._topic: kafka.TopicSink | None = None
        self._identity = secrets.token_hex(8)
        self._in_parts = self._kind in (".parquet", ".arrow")
        self._whole: Path | None = None
        self._step = 0
        self._came: list[tuple[float, int]] = []
        self._started, self._since, self._told = time.process_time(), clock(), 0.0
        self._read_before = 0
        self._input: str | None = None
        self.outputs = {name: Output(path, name in PRIVATE) for name, path in self._paths().items()}
        self._fixed = self._fingerprint()

    def _paths(self) -> dict[str, Path]:
        """The files that grow: what is published, and what is private."""
        order, folder = self._order, self._checkpoint.folder
        inside = self._in_parts or kafka.is_topic(order.sink)
        named = {"sink": folder / "rows" if inside else Path(order.sink)}
        if self.core.schema.subject is not None:
            named["people"] = folder / "people"
        if order.trace is not None:
            named["trace"] = Path(order.trace)
        kept = order.checkpoint is not None
        named["dead_letters"] = self._order.bad_records if kept else folder / "dead-letters"
        return named

    # going on

    def resume(self) -> None:
        """Takes up what the checkpoint holds; raises CheckpointError where it is of another stream.
        """
        state = self._checkpoint.load()
        if state is None:
            self._connect()
            for name in ("sink", "trace"):
                output = self.outputs.get(name)
                if output is not None and output.path.exists() and output.path.stat().st_size:
                    raise CheckpointError(
                        f"output '{output.path}': exists, but the checkpoint is new; name a fresh "
                        "file, or the checkpoint that it belongs to"
                    )
            return
        if state.get("policy") != self._fixed:
            raise CheckpointError(
                f"checkpoint '{self._checkpoint.folder}': was made under another policy, or for"
                " other columns, outputs or versions; run with what it was begun with, or begin a"
                " new one in another folder"
            )
        try:
            self._take_up(state)
        except UNFIT:
            raise self._checkpoint.damaged from None

    def _take_up(self, state: dict[str, Any]) -> None:
        self._feed.go_to(state["place"])
        self._identity = str(state["identity"])
        self._connect()
        self._recall(state)
        self._put_segment(state)
        now, away = self._clock(), max(0.0, time.time() - float(state["at"]))
        self._came = [(now - away - float(age), int(seq)) for age, seq in state["came"]]
        if self._order.deadline is None:
            self._came = []
        elif self.core.waiting and not self._came:  # none was asked before
            self._came = [(now, self.core.arrived - 1)]

    def _recall(self, state: dict[str, Any]) -> None:
        self.core.restore(_below("core/", state))
        self._gate.restore(_below("gate/", state))
        TypeAdapter(StreamCounters).validate_json(json.dumps(state["tally"]), strict=True)
        self._tally = StreamCounters(**state["tally"])
        self._step = int(state["step"])
        self._read_before = self._tally.read
        for name, length in state["lengths"].items():
            self.outputs[name].length = int(length)

    def _connect(self) -> None:
        if kafka.is_topic(self._order.sink):
            self._topic = kafka.TopicSink(self._order.sink, self._identity)

    def _fingerprint(self) -> str:
        """What may not change between two runs of one stream."""
        hierarchies = [files.file_sha256(name) for name in self._policy.files]
        fixed = {
            "policy": self._policy.model.model_dump(mode="json"),
            "shuffled": sorted(self._policy.model.render.model_fields_set),
            "hierarchies": hierarchies,
            "reference": None if self._reference is None else self._reference.sha256,
            "columns": self._feed.names,
            "record_lines": self._order.record_lines,
            "outputs": {name: str(output.path.resolve()) for name, output in self.outputs.items()},
            "shoal": VERSION,
            "polars": pl.__version__,
        }
        return hashlib.sha256(json.dumps(fixed, sort_keys=True).encode()).hexdigest()

    # working

    def run_to_end(self, progress: Progress) -> None:
        """Steps until the source ends."""
        if self._tally.closed:
            self._require_no_more()
            return
        while True:
            piece, now, before = self._feed.read(), self._clock(), self.core.arrived
            batches = [self._took_in(piece)]
            if self._order.deadline is not None:
                if self.core.arrived > before:
                    self._came_at(now, self._order.deadline)
                batches.append(self._overdue(self._order.deadline))
            if piece.at_end:
                batches.append(self.core.flush())
                self._add_sink(b"")  # the names of the columns, though no row may follow
                self._tally.closed = True
            if len(piece.position) or piece.bad or any(batches) or piece.at_end:
                self._do([b for b in batches if b is not None])
                self._tell(progress)
            elif not piece.at_end:
                time.sleep(IDLE)
            if piece.at_end:
                return

    def _require_no_more(self) -> None:
        """Raises CheckpointError where a source that had ended has records again: its stream was
        closed.
        """
        if isinstance(self._feed, kafka.TopicFeed):
            return
        more = self._feed.read()
        if len(more.position) or more.bad:
            raise CheckpointError(
                f"checkpoint '{self._checkpoint.folder}': its stream has ended, and the source has"
                " grown since; begin a new one for what came, and use --follow for a source that"
                " grows"
            )

    def _took_in(self, piece: Piece) -> Batch | None:
        batch, wrong = self.core.push(piece.frame, piece.position)
        bad = piece.bad + [(int(piece.position[row]), reason) for row, reason in wrong.items()]
        if bad and self._order.on_bad == "stop":
            place, reason = min(bad)
            raise InputError(
                f"record {place + 1}: {reason}; mend it, or let --on-bad dead-letter set it aside",
                [f"record {at + 1}: {why}" for at, why in sorted(bad)[1:20]],
            )
        lines = [json.dumps({"record": at, "reason": why}) + "\n" for at, why in sorted(bad)]
        self.outputs["dead_letters"].pending += "".join(lines).encode()
        self._tally.read += len(piece.position) + len(piece.bad)
        self._tally.bad += len(bad)
        return batch

    def _came_at(self, now: float, deadline: float) -> None:
        """When the last records came, at the latest; few times, since a checkpoint holds them all.
        """
        if self._came and now - self._came[-1][0] < deadline / MOST_TIMES:
            now = self._came.pop()[0]
        self._came.append((now, self.core.arrived - 1))

    def _overdue(self, deadline: float) -> Batch | None:
        """What must go because its time has run out, however few have come since."""
        due = -1
        while self._came and self._clock() - self._came[0][0] >= deadline:
            due = self._came.pop(0)[1]
        return self.core.expire(due) if due >= 0 else None

    def _do(self, batches: list[Batch]) -> None:
        """One step: write, measure, commit, put."""
        for batch in batches:
            self._write(batch)
        self._commit()

    def _write(self, batch: Batch) -> None:
        decided, tally = batch.decided, self._tally
        content = self._as_bytes(batch.frame)
        losses = np.zeros(0)
        if batch.frame.height:
            back, true = self._read_back(content), self.core.true_values(batch)
            losses = self._gate.measure(
                back, batch.people, true, batch.release, batch.new, batch.live
            )
        self._add_sink(content)
        if "people" in self.outputs:
            self.outputs["people"].pending += batch.people.tobytes()
        if "trace" in self.outputs:
            self.outputs["trace"].pending += self._traced(batch)
        tally.published += batch.frame.height
        tally.clusters += len(decided.made)
        for number, name in enumerate(KINDS):
            tally.kinds[name] += int((decided.kind == number).sum())
        tally.releases = int(decided.release.max()) + 1
        delay = decided.emitted - decided.seq
        tally.longest = max(tally.longest, int(delay.max()))
        tally.waited += int(delay.sum())
        self._write_private_state(batch, losses)

    def _write_private_state(self, batch: Batch, losses: np.ndarray) -> None:
        """Some stretches of history for each batch; neighbours are joined as they become many."""
        decided, history = batch.decided, self._tally.history
        stretches = min(len(decided), STRETCHES)
        stretch = np.arange(len(decided)) * stretches // len(decided)
        loss = np.append(losses, 0.0)[batch.row]
        delay = decided.emitted - decided.seq
        kinds = [
            np.bincount(stretch, decided.kind == kind, minlength=stretches)
            for kind in range(len(KINDS))
        ]
        first = np.isin(decided.cluster, decided.made) & (decided.kind == NEW)
        made = np.bincount(
            stretch[first][np.unique(decided.cluster[first], return_index=True)[1]],
            minlength=stretches,
        )
        sums = [np.bincount(stretch, weights, minlength=stretches) for weights in (loss, delay)]
        history += np.stack([*kinds, *sums, made], axis=1).tolist()
        while len(history) > MOST_HISTORY:
            paired = [
                [a + b for a, b in zip(*two, strict=True)]
                for two in zip(history[::2], history[1::2], strict=False)
            ]
            history[:] = paired + history[2 * len(paired) :]

    def _add_sink(self, content: bytes) -> None:
        sink = self.outputs["sink"]
        if not sink.length and not sink.pending and not self._in_parts and self._kind != ".jsonl":
            names = [a.name for a in self.core.schema.published]
            content = (
                self._packed(pl.DataFrame(schema=dict.fromkeys(names, pl.String)), header=True)
                + content
            )
        sink.pending += content

    def _as_bytes(self, frame: pl.DataFrame) -> bytes:
        return self._packed(frame, header=False)

    def _packed(self, frame: pl.DataFrame, header: bool) -> bytes:
        buffer = io.BytesIO()
        if self._in_parts:
            frame.write_parquet(buffer)
        elif self._kind == ".jsonl":
            frame.write_ndjson(buffer)
        else:
            frame.write_csv(buffer, include_header=header, separator=self._separator)
        if self._order.sink.endswith(".gz"):
            return gzip.compress(
                buffer.getvalue(), compresslevel=6, mtime=0
            )  # members follow one another
        return buffer.getvalue()

    @property
    def _separator(self) -> str:
        return "\t" if self._kind == ".tsv" else ","

    def _read_back(self, content: bytes) -> pl.DataFrame:
        """The rows as their readers will see them."""
        if self._order.sink.endswith(".gz"):
            content = gzip.decompress(content)
        if self._in_parts:
            return pl.read_parquet(io.BytesIO(content))
        if self._kind == ".jsonl":
            return pl.read_ndjson(io.BytesIO(content))
        # few distinct cells: text is held once per value, and counted by it
        schema = {
            a.name: pl.Categorical if a.role is Role.QUASI else pl.String
            for a in self.core.schema.published
        }
        return pl.read_csv(
            io.BytesIO(content),
            has_header=False,
            infer_schema=False,
            separator=self._separator,
            schema=schema,
        )

    def _traced(self, batch: Batch) -> bytes:
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
        rows = pl.col("row") + self._tally.published
        frame = frame.with_columns(
            pl.when(pl.col("row") >= 0).then(rows).alias("row"),
            pl.when(pl.col("class") >= 0).then(pl.col("class")).alias("class"),
        )
        buffer = io.BytesIO()
        frame.write_ndjson(buffer)
        return buffer.getvalue()

    # committing

    def _commit(self) -> None:
        self._step += 1
        now = self._clock()
        if self._order.checkpoint is None:
            for name in self.outputs:
                self._put(name)
            return
        state = {
            "policy": self._fixed,
            "columns": self._feed.names,
            "step": self._step,
            "identity": self._identity,
            "place": self._feed.place,
            "came": [(now - at, seq) for at, seq in self._came],
            "at": time.time(),
            "lengths": {name: output.length for name, output in self.outputs.items()},
            "sizes": {name: len(output.pending) for name, output in self.outputs.items()},
            "tally": asdict(self._tally),
            **{f"core/{name}": value for name, value in self.core.snapshot().items()},
            **{f"gate/{name}": value for name, value in self._gate.snapshot().items()},
        }
        self._checkpoint.write(
            self._segment(self._step), b"".join(o.pending for o in self.outputs.values())
        )
        self._checkpoint.commit(state)
        for name in self.outputs:
            self._put(name)
        self._segment(self._step - 1).unlink(missing_ok=True)

    def _segment(self, step: int) -> Path:
        return self._checkpoint.folder / f"segment-{step}"

    def _put_segment(self, state: dict[str, Any]) -> None:
        """Puts what the snapshot has committed where it belongs, whether it stood there or not."""
        try:
            content, at = self._segment(self._step).read_bytes(), 0
        except FileNotFoundError:
            raise CheckpointError(
                f"checkpoint '{self._checkpoint.folder}': lacks a file that it had written; begin a"
                " new one"
            ) from None
        for name, size in state["sizes"].items():
            output = self.outputs[name]
            stands = output.path.stat().st_size if output.path.exists() else 0
            elsewhere = name == "sink" and (self._in_parts or self._topic is not None)
            if not elsewhere and not output.length <= stands <= output.length + size:
                raise CheckpointError(
                    f"output '{output.path}': is not as the stream left it; put it back, or begin a"
                    " new checkpoint"
                )
            output.pending = content[at : at + size]
            at += size
            self._put(name)

    def _put(self, name: str) -> None:
        output = self.outputs[name]
        if name == "sink" and self._topic is not None:
            self._topic.put(self._step, output.pending)
        elif name == "sink" and self._order.sink == files.STANDARD:
            sys.stdout.buffer.write(output.pending)
            sys.stdout.buffer.flush()
        elif name == "sink" and self._in_parts:
            if output.pending:
                output.path.mkdir(exist_ok=True)
                self._checkpoint.put(output.path / f"{self._step:09d}.parquet", 0, output.pending)
        elif output.pending or output.path.exists():
            self._checkpoint.put(output.path, output.length, output.pending, output.is_private)
        output.length += len(output.pending)
        output.pending = b""

    # closing

    def close(self, progress: Progress) -> Certificate:
        """The certificate of the whole stream, beside the sink; private leftovers take their place.
        """
        is_file = self._order.sink != files.STANDARD and self._topic is None
        whole = self._order.whole and is_file and self._tally.published
        with ExitStack() as stack:
            if self._in_parts:
                stack.enter_context(remove_uncommitted_certificate(self._order.sink))
                self._whole = stack.enter_context(files.atomic_write(self._order.sink))
                self._assemble(self._whole)
            certificate = self._measured(progress) if whole else self.so_far()
            if self._order.checkpoint is None and not certificate.holds:
                raise PromiseError(
                    "the whole of what was published breaks a promise; it is withheld, nothing was"
                    " written"
                )
            if self._order.checkpoint is None and self._tally.bad:
                with files.atomic_write(str(self._order.bad_records)) as draft:
                    shutil.copyfile(self.outputs["dead_letters"].path, draft)
            self._certify(certificate)
        return certificate

    def interrupt(self) -> None:
        """The certificate of what is committed, none where nothing shows yet; what was begun since
        does not count.
        """
        state = self._checkpoint.load()
        if state is None or self._in_parts:
            return
        self._recall(state)
        self._input = state["place"].get("sha256")
        if self._topic is None:
            self._put_segment(state)
            if not self._published.exists():
                return
        self._certify(self.so_far())

    def _certify(self, certificate: Certificate) -> None:
        """Writes the certificate beside the sink."""
        if self._order.sink != files.STANDARD:
            with files.atomic_write(self.certificate_path) as draft:
                draft.write_text(certificate.to_json())

    @property
    def certificate_path(self) -> str:
        """Beside the sink; in the checkpoint where that is a topic."""
        if kafka.is_topic(self._order.sink):
            return str(self._checkpoint.folder / "certificate.json")
        return f"{self._order.sink}.certificate.json"

    def _assemble(self, draft: Path) -> None:
        """One table of all parts, read and written piece by piece."""
        parts = (
            sorted(self.outputs["sink"].path.glob("*.parquet"))
            if self.outputs["sink"].path.exists()
            else []
        )
        rows = pl.scan_parquet(parts) if parts else self.core.nothing.lazy()
        try:
            rows.sink_parquet(draft) if self._kind == ".parquet" else rows.sink_ipc(draft)
        except pl.exceptions.ComputeError:  # what the disk refuses, in another's words
            raise OSError from None

    @property
    def _published(self) -> Path:
        return self._whole or self.outputs["sink"].path

    def _measured(self, progress: Progress) -> Certificate:
        """What an audit of the whole published file finds, people counted."""
        progress("reading what was published")
        written = files.read_as(self._published, self._kind, self._policy.audited_columns)
        released = written.frame
        if "people" in self.outputs:
            people = np.fromfile(self.outputs["people"].path, dtype=np.int64)
            subject = self.core.schema.subject
            assert subject is not None
            released = released.with_columns(pl.Series(subject.name, people).cast(pl.String))
        certificate, _ = measure(
            Table(released), self.core.schema, self._policy, None, progress, self.core.measures
        )
        return self._complete({**certificate, "measured": "whole"}, written.sha256)

    def so_far(self) -> Certificate:
        """What was measured release by release: the least of every class when it first appeared."""
        gate = self._gate
        promises = []
        for model in self._policy.build_promises():
            counted = gate.least if model.model == "k-anonymity" else None
            promises.append(
                {
                    "model": model.model,
                    "attributes": list(model.attributes),
                    **model.settings,
                    "asked": model.asked,
                    "measured": counted,
                    "holds": True,
                }
            )
        gcp = gate.loss / gate.rows if gate.rows else None
        content = {
            "counted": "subjects",
            "subjects": None,
            "classes": {"count": None, "min": gate.least, "mean": None, "max": None},
            "promises": promises,
            "utility": {"gcp": gcp},
            "risk": {"prosecutor_max": 1 / gate.least if gate.least else None},
            "measured": "release by release",
        }
        sink = self._published
        digest = None
        if self._order.sink != files.STANDARD and sink.is_file():
            digest = files.file_sha256(sink)
        return self._complete(content, digest)

    def _complete(self, content: dict[str, Any], digest: str | None) -> Certificate:
        tally, kinds = self._tally, self._tally.kinds
        decided = sum(kinds.values())
        return Certificate(
            {
                **content,
                "shoal": VERSION,
                "verb": "stream",
                "method": {
                    "name": self._policy.method_name,
                    "parameters": self._policy.parameters_for("stream"),
                },
                "seed": self._policy.model.seed,
                "records": {
                    "in": tally.read,
                    "out": tally.published,
                    "suppressed": kinds["suppress"],
                    "held": kinds["hold"],
                    "dropped": kinds["drop"],
                    "rejected": tally.bad,
                    "waiting": self.core.waiting,
                },
                "stream": {
                    "closed": tally.closed,
                    "releases": tally.releases,
                    "clusters": tally.clusters,
                    "new": kinds["new"],
                    "reused": kinds["reuse"],
                    "delay": {
                        "mean": tally.waited / decided if decided else None,
                        "max": tally.longest,
                    },
                },
                "faults": {"uncovered": 0},  # a release with any was not let out
                "input": {"sha256": self._input or self._feed.sha256},
                "output": {"sha256": digest},
                "seconds": {"total": time.process_time() - self._started, "method": None},
            }
        )

    @property
    def history(self) -> np.ndarray:
        """(stretches, 8) float64: records of each kind, their loss, their delay, clusters made; in
        order of leaving.
        """
        return np.array(self._tally.history, dtype=np.float64).reshape(-1, len(KINDS) + 3)

    def _tell(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._told < TELL_EVERY:
            return
        self._told, tally = now, self._tally
        rate = (tally.read - self._read_before) / max(now - self._since, 1e-9)
        decided = max(sum(tally.kinds.values()), 1)
        loss = self._gate.loss / max(self._gate.rows, 1)
        progress(
            f"{tally.read} records, {rate:.0f} a second, {self.core.waiting} waiting; mean delay"
            f" {tally.waited / decided:.0f} records, {100 * tally.kinds['reuse'] / decided:.0f} %"
            f" by earlier clusters, {tally.kinds['suppress']} suppressed, {tally.bad} set aside,"
            f" loss {loss:.3f}"
        )


def _below(prefix: str, state: dict[str, Any]) -> dict[str, Any]:
    return {
        name.removeprefix(prefix): value for name, value in state.items() if name.startswith(prefix)
    }
