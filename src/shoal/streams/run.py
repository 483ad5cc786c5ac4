"""The stream as a process: a source, a sink, and a checkpoint that all three commit in one rename;
the sink may be a folder that a file is added to whenever enough has come, or a day is over.

One step: read a piece > publish what is due > write it to a hidden segment, read that back and
measure it > commit the position in the source, the publisher and the length of every output in one
snapshot > append the segment to the outputs. Killed before the commit, the step is
as if it never was and is done again, with the same result; killed after it, the segment is put once
more, to the same position.

For a folder, rows wait as parts in the checkpoint. Where a file is due, or the stream is stopped, a
step joins them with its own rows, and its commit names the file; then the file is put, the manifest
that names it, and the parts go. What is killed in between is put again.
"""

import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors import engines, files, outputs
from shoal.connectors.feeds import feed_of
from shoal.connectors.location import Location
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress
from shoal.data.room import bytes_of
from shoal.data.schema import Render
from shoal.errors import ANOTHER_STREAM, TWICE, CheckpointError, is_stop, os_errors_as_input_errors
from shoal.policy.policy import Policy
from shoal.protocols import Source
from shoal.streams import kafka
from shoal.streams.certify import require_whole_kept, whole_stream
from shoal.streams.checkpoint import Checkpoint
from shoal.streams.options import StreamOptions
from shoal.streams.outputs import Outputs
from shoal.streams.partitions import TELL_EVERY, stream_partitions
from shoal.streams.publishing import Publishing, StreamRequest
from shoal.streams.shard import Rows
from shoal.streams.shard_files import NAMED, BatchFolder, batch_folder
from shoal.streams.sharded import stream_sharded
from shoal.streams.stream_status import refusals_noted

Certify = Callable[[], Certificate]


class RollingFolder:
    """The files of a folder that are committed, and the parts of the next one."""

    def __init__(self, folder: BatchFolder, roll: str, checkpoint: Path, written: Outputs) -> None:
        self.folder, self._checkpoint = folder, checkpoint
        self._sink, self._rows = written["sink"], written.format
        self._most = None if roll == "day" else bytes_of(roll)
        self._entries: list[dict[str, Any]] = []
        self._until = 0  # the last step whose rows are in them

    def add_due(self, step: int, at_end: bool) -> None:
        """Names a file of all parts and of what the sink gets in this step, if one is due."""
        parts, pending = self._sink.files, self._sink.pending
        size = sum(part.stat().st_size for part in parts) + len(pending)
        if self._most is None:
            is_due = bool(parts) and _day(parts[0].stat().st_mtime) < _day()
        else:
            is_due = size >= self._most
        # a stream without any row still names its columns
        if not (is_due or (at_end and (size or not self._entries))):
            return
        name = NAMED.format(batch=len(self._entries) + 1, shard=0)
        draft = self._checkpoint / name
        self._rows.join_parts(parts, draft, pending)
        records = pl.scan_parquet(draft).select(pl.len()).collect().item()
        found = Rows(name, records, draft.stat().st_size, files.file_sha256(draft))
        self._entries, self._until = [*self._entries, found.entry(name)], step

    def put(self, certify: Certify) -> None:
        """Puts the file that was committed last, if it waits, with its manifest; its parts go."""
        draft = self._checkpoint / self._entries[-1]["name"] if self._entries else None
        if draft is not None and draft.exists():
            self.folder.put(draft, self._entries[-1])
            self.folder.certify(certify().to_json())
        for part in self._sink.files:
            if int(part.stem) <= self._until:
                part.unlink()
        if draft is not None:
            draft.unlink(missing_ok=True)

    def take_up(self, state: Mapping[str, Any]) -> None:
        """Goes back to what a snapshot committed; raises CheckpointError if the folder is newer."""
        self._entries, self._until = state["rolled"], int(state["rolled_until"])
        self.folder.require_no_later(self._entries)

    def require_as_left(self) -> None:
        """Raises CheckpointError where a file that was put is not there, or has another size."""
        self.folder.require_as_left(self._entries)

    @property
    def records(self) -> int:
        return sum(int(entry["records"]) for entry in self._entries)

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """The part of a snapshot that `take_up` wants."""
        return {"rolled": self._entries, "rolled_until": self._until}

    def described(self, render: Render) -> Mapping[str, Any]:
        return self.folder.described(self._entries, render)


def _day(seconds: float | None = None) -> int:
    when = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return when.toordinal()


IDLE = 0.2  # seconds between two looks at a source that has nothing


def stream_file(
    options: StreamOptions,
    policy: Policy,
    *,
    progress: Progress,
    clock: Callable[[], float] = time.monotonic,
) -> tuple[Certificate, np.ndarray]:
    """Publishes a source into a sink, to its end; resumes where the checkpoint stopped.

    Returns the certificate, and the history as `StreamCounters.history_array`. Every release is
    measured from its bytes before it leaves. Raises InputError, CheckpointError or PromiseError.
    """
    engine, request = engines.asked(), StreamRequest(options, policy)
    if engine is not None:
        with os_errors_as_input_errors("stream", _remedy(options)):
            return stream_sharded(request, engine, progress=progress)
    options.check()
    request.require_answers()
    with ExitStack() as stack:
        stack.enter_context(os_errors_as_input_errors("stream", _remedy(options)))
        stack.enter_context(outputs.sole_writer(options.outputs))
        is_topic = Location(options.source).is_topic
        if is_topic and kafka.partitions_of_topic(options.source) > 1:
            return stream_partitions(request, progress=progress, clock=clock)
        feed: Source
        if is_topic:
            feed = kafka.TopicFeed(options.source, options.follow, request.policy.fields)
        else:
            feed = feed_of(options.source, options.follow, request.policy.fields)
        stack.callback(feed.close)
        opened = _one_time_run if options.checkpoint is None else _resumable_run
        run = stack.enter_context(opened(request, feed, clock))
        stack.callback(run.outputs.close)
        run.run_to_end(progress)
        return run.close(progress), run.counters.history_array()


def _remedy(options: StreamOptions) -> str:
    """What to do where the disk refuses."""
    resumes = "; the same command resumes, and nothing is published twice"
    again = "free some space or check the permissions, then run it again"
    return again + (resumes if options.checkpoint is not None else "")


@contextmanager
def _resumable_run(
    request: StreamRequest, feed: Source, clock: Callable[[], float]
) -> "Iterator[Run]":
    """A run from where its checkpoint stopped; when interrupted, it certifies what is committed."""
    options = request.options
    checkpoint = Checkpoint(options.folder, options.is_durable)
    with checkpoint.held(), refusals_noted(checkpoint.folder):
        _require_columns(options, checkpoint, feed.names)
        run = Run(request, feed, checkpoint, clock)
        with ExitStack() as stack:
            if options.is_rolling:
                folder = stack.enter_context(batch_folder(options.sink))
                roll = request.policy.model.write.roll
                run.rolling = RollingFolder(folder, roll, checkpoint.folder, run.outputs)
            stack.enter_context(run.status.reporting())
            is_resumed = False
            try:
                run.resume()
                is_resumed = True
                yield run
            except (KeyboardInterrupt, SystemError) as stop:
                if not is_stop(stop):
                    raise
                if is_resumed:  # before, nothing of this run is there to certify
                    run.interrupt()
                raise KeyboardInterrupt from None


@contextmanager
def _one_time_run(
    request: StreamRequest, feed: Source, clock: Callable[[], float]
) -> "Iterator[Run]":
    """A run without a checkpoint: outputs appear at the end, whole or not at all."""
    options = request.options
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-stream-")))
        stack.enter_context(outputs.remove_uncommitted_certificate(options.sink))
        run = Run(request, feed, Checkpoint(folder, durable=False), clock)
        run.outputs.require_untouched()
        for name in ("sink", "trace"):
            output = run.outputs.by_name.get(name)
            if output is None or output.path.parent == folder or options.place.is_standard:
                continue
            draft = files.atomic_write(str(output.path), output.is_private)
            output.path = stack.enter_context(draft)
        stack.enter_context(run.status.reporting())
        yield run


def _require_columns(options: StreamOptions, checkpoint: Checkpoint, names: list[str]) -> None:
    """Raises CheckpointError where the source has other columns than the checkpoint's."""
    state = checkpoint.load()
    if state is None or state.get("columns") in (None, names):
        return
    from_pipe = Location(options.source).is_standard
    again = "feed it again from its beginning" if from_pipe else "give the same source"
    raise CheckpointError(
        f"source '{options.source}': does not begin with the columns that the checkpoint was made"
        f" with; {again}. A new checkpoint publishes from the beginning: {TWICE}"
    )


class Run(Publishing):
    """One run of a stream that its checkpoint commits."""

    _identity = ""  # where rows go to a topic or table: by which these know the stream
    _input: str | None = None
    _joined: Path | None = None  # one table of all parts, at the end
    rolling: RollingFolder | None = None  # or the folder of their tables
    _since = _last_line = 0.0  # of the run, and its last line of progress
    _is_told = True  # whether that line says what was committed last

    # resuming

    def resume(self) -> None:
        """Resumes from the checkpoint; raises CheckpointError where it is another stream's."""
        state = self._checkpoint.load()
        if state is None:
            self.status.begin(self._step, self.counters)  # where the sink refuses, it says so
            self._identity = secrets.token_hex(8)
            self.outputs.connect(self._identity, self._step)
            self.outputs.require_untouched()
            if self.rolling is not None:
                self.rolling.folder.require_untouched()
            return
        self._resume_from(state)
        if self.counters.closed:
            self._require_no_more()  # before the status: a refusal leaves the stream ended
        self.status.begin(self._step, self.counters, float(state["at"]))

    def _take_up(self, state: dict[str, Any]) -> None:
        super()._take_up(state)
        self._identity = str(state["identity"])
        self.outputs.connect(self._identity, self._step)
        self._put_committed(state)

    def _put_committed(self, state: dict[str, Any]) -> None:
        """Puts what a snapshot has committed where it belongs, whether it stood there or not."""
        if self.rolling is not None:
            self.rolling.take_up(state)
        self.outputs.put_segment(self._step, state)
        if self.rolling is not None:
            self._put_rolled(self.rolling)
            self.rolling.require_as_left()

    def _put_rolled(self, rolling: RollingFolder) -> None:
        rolling.put(self.so_far)
        self.status.unfiled = self.counters.published - rolling.records

    # working

    def run_to_end(self, progress: Progress) -> None:
        if self.counters.closed:
            return
        self._since, at_end = self._clock(), False
        while not at_end:
            piece = self._feed.read()
            at_end = piece.at_end
            if self._advance(piece):
                self._is_told = False
            else:
                if not self._last_line:  # else its counts stay
                    progress("waiting for records")
                time.sleep(IDLE)
            self._tell(progress)

    def _require_no_more(self) -> None:
        """Raises CheckpointError where a source that had ended has records again."""
        if isinstance(self._feed, kafka.TopicFeed):
            return
        more = self._feed.read()
        if len(more.position) or more.bad:
            raise CheckpointError(
                f"checkpoint '{self._checkpoint.folder}': its stream has ended, and the source has"
                f" grown since; for the new records alone {ANOTHER_STREAM}. A source that grows is"
                " given with --follow when it begins"
            )

    # committing

    def _commit(self) -> None:
        self._step += 1
        rolled: Mapping[str, Any] = {}
        if self.rolling is not None:
            self.rolling.require_as_left()
            self.rolling.add_due(self._step, self.counters.closed)
            rolled = self.rolling.snapshot
        if self._options.checkpoint is not None:
            state = {
                **self._snapshot(),
                "identity": self._identity,
                **rolled,
                **self.outputs.write_segment(self._step),
            }
            self._checkpoint.commit(state)
        self.outputs.put(self._step)
        if self.rolling is not None:
            self._put_rolled(self.rolling)
        self.outputs.remove_segment(self._step - 1)
        self.status.commit(self._step, self.counters)

    # closing

    def close(self, progress: Progress) -> Certificate:
        """The certificate of the whole stream, beside the sink; private files take their place.

        Raises CheckpointError where an output is not what was put.
        """
        self.outputs.require_as_put()
        with ExitStack() as stack:
            if self.outputs.format.in_parts and self.rolling is None:
                stack.enter_context(outputs.remove_uncommitted_certificate(self._options.sink))
                self._joined = stack.enter_context(files.atomic_write(self._options.sink))
                self.outputs.format.join_parts(self.outputs["sink"].files, self._joined)
            is_file = self._options.place.is_path and self.rolling is None
            can_be_read = is_file or self._options.place.is_table
            is_whole = self._options.measured == "whole" and can_be_read and self.counters.published
            certificate = self._measured(progress) if is_whole else self.so_far()
            if self._options.checkpoint is None:
                require_whole_kept(certificate)
            if self._options.checkpoint is None and self.counters.bad:
                with files.atomic_write(str(self._options.bad_records)) as draft:
                    shutil.copyfile(self.outputs["dead_letters"].path, draft)
            self._certify(certificate)
            self.status.measured(certificate)
        return certificate

    def interrupt(self) -> None:
        """Writes the certificate of what is committed, if any; to a folder waiting rows, too."""
        state = self._checkpoint.load()
        if state is None or (self.outputs.format.in_parts and self.rolling is None):
            return
        self._restore(state)
        self._input = state["place"].get("sha256")
        if self.rolling is not None:
            self._put_committed(state)
            self.rolling.add_due(self._step, bool(self.outputs["sink"].files))
            self._checkpoint.commit({**state, **self.rolling.snapshot})
            self._put_rolled(self.rolling)
            return
        if not self._options.place.is_topic:
            self.outputs.put_segment(self._step, state)
            if self._options.place.is_path and not self._published.exists():
                return
        self._certify(self.so_far())

    def _certify(self, certificate: Certificate) -> None:
        if self._options.place.is_table:
            self.outputs.certify(certificate.to_json())
        elif self.rolling is not None:
            self.rolling.folder.certify(certificate.to_json())
        elif not self._options.place.is_standard:
            path = self._options.certificate_path
            files.write_text(path, certificate.to_json())
            outputs.remove_stale_signature(path)

    @property
    def _published(self) -> Path:
        return self._joined or self.outputs["sink"].path

    def _measured(self, progress: Progress) -> Certificate:
        """What an audit of the whole published file finds, people counted."""
        people = self.outputs["people"].path if "people" in self.outputs else None
        form = self._options.format
        published = self._options.sink if self._options.place.is_table else self._published
        measured, digest = whole_stream(self.core, published, form, people, progress)
        return self._certificate(self._read_and_written(digest), measured)

    def so_far(self) -> Certificate:
        """What was measured release by release."""
        is_file = not self._options.place.is_standard and self._published.is_file()
        digest = files.file_sha256(self._published) if is_file else None
        if self._options.place.is_table:
            digest = files.read(self._options.sink).sha256
        return self._certificate(self._read_and_written(digest))

    def _read_and_written(self, digest: str | None) -> dict[str, Any]:
        render, place = self.core.schema.render, self._options.place
        output: Mapping[str, Any] = {"sha256": digest}  # of a topic or standard output
        if self.rolling is not None:
            output = self.rolling.described(render)
        elif place.is_path or place.is_table:
            output = outputs.describe_file(self._published, self._options.sink, digest, render)
        return {"input": {"sha256": self._input or self._feed.sha256}, "output": output}

    def _tell(self, progress: Progress) -> None:
        now = self._clock()
        if self._is_told or now - self._last_line < TELL_EVERY:
            return
        self._last_line, self._is_told = now, True
        read = self.counters.read - self._read_before
        progress(self.counters.line(read / max(now - self._since, 1e-9)))
