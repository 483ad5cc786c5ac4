"""The stream as a process: a source, a sink, and a checkpoint that all three commit in one rename.

One step: read a piece > publish what is due > write it to a hidden segment, read that back and
measure it > commit the position in the source, the publisher and the length of every output in one
snapshot > append the segment to the outputs. Killed before the commit, the step is
as if it never was and is done again, with the same result; killed after it, the segment is put once
more, to the same position.
"""

from __future__ import annotations

import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from shoal.connectors import engines, files
from shoal.connectors.feeds import feed_of
from shoal.connectors.outputs import (
    remove_stale_signature,
    remove_uncommitted_certificate,
    sole_writer,
)
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress
from shoal.errors import CheckpointError, os_errors_as_input_errors
from shoal.policy.policy import Policy
from shoal.protocols import Source
from shoal.streams import kafka
from shoal.streams.certify import (
    output_of,
    release_by_release,
    require_whole_kept,
    whole_stream,
)
from shoal.streams.checkpoint import UNFIT, Checkpoint
from shoal.streams.kafka_group import partitions_of_topic
from shoal.streams.options import StreamOptions
from shoal.streams.publishing import Publishing
from shoal.streams.status import is_stop

TELL_EVERY = 2.0  # seconds between two lines of progress
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
    engine = engines.asked()
    if engine is not None:
        from shoal.streams.sharded import stream_sharded

        with os_errors_as_input_errors("stream", _remedy(options)):
            return stream_sharded(options, policy, engine, progress=progress)
    options.check()
    policy.require_answers()
    policy.check_files("stream")
    with ExitStack() as stack:
        stack.enter_context(os_errors_as_input_errors("stream", _remedy(options)))
        stack.enter_context(sole_writer(options.outputs))
        if kafka.is_topic(options.source) and partitions_of_topic(options.source) > 1:
            from shoal.streams.partitions import stream_partitions

            return stream_partitions(options, policy, progress=progress, clock=clock)
        feed: Source
        if kafka.is_topic(options.source):
            feed = kafka.TopicFeed(options.source, options.follow, policy.fields)
        else:
            feed = feed_of(options.source, options.follow, options.record_lines, policy.fields)
        stack.callback(feed.close)
        run = stack.enter_context(_run(options, policy, feed, clock))
        stack.callback(run.outputs.close)
        run.run_to_end(progress)
        return run.close(progress), run.history


def _remedy(options: StreamOptions) -> str:
    """What to do where the disk refuses."""
    resumes = "; the same command resumes, and nothing is published twice"
    again = "free some space or check the permissions, then run it again"
    return again + (resumes if options.checkpoint is not None else "")


@contextmanager
def _run(
    options: StreamOptions, policy: Policy, feed: Source, clock: Callable[[], float]
) -> Iterator[Run]:
    """The run at its beginning or where the checkpoint stopped."""
    if options.checkpoint is not None:
        with _resumable_run(options, options.checkpoint, policy, feed, clock) as run:
            yield run
        return
    with _one_time_run(options, policy, feed, clock) as run:
        yield run


@contextmanager
def _resumable_run(
    options: StreamOptions,
    folder: Path,
    policy: Policy,
    feed: Source,
    clock: Callable[[], float],
) -> Iterator[Run]:
    """A run with a checkpoint; when interrupted, it certifies what is committed."""
    checkpoint = Checkpoint(folder, options.durable)
    with checkpoint.held():
        _require_columns(options, checkpoint, feed.names)
        run = Run(options, policy, feed, checkpoint, clock)
        run.resume()
        try:
            with run.status.reporting():
                yield run
        except (KeyboardInterrupt, SystemError) as stop:
            if not is_stop(stop):
                raise
            run.interrupt()
            raise KeyboardInterrupt from None


@contextmanager
def _one_time_run(
    options: StreamOptions, policy: Policy, feed: Source, clock: Callable[[], float]
) -> Iterator[Run]:
    """A run without a checkpoint: outputs appear at the end, whole or not at all."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="shoal-stream-")))
        stack.enter_context(remove_uncommitted_certificate(options.sink))
        run = Run(options, policy, feed, Checkpoint(folder, durable=False), clock)
        for name in ("sink", "trace"):
            output = run.outputs.by_name.get(name)
            if output is None or output.path.parent == folder or options.to_standard_output:
                continue
            draft = files.atomic_write(str(output.path), output.is_private)
            output.path = stack.enter_context(draft)
        yield run


def _require_columns(options: StreamOptions, checkpoint: Checkpoint, names: list[str]) -> None:
    """Raises CheckpointError where the source has other columns than the checkpoint's."""
    state = checkpoint.load()
    if state is None or state.get("columns") in (None, names):
        return
    from_pipe = options.source == files.STANDARD
    again = "feed it again from its beginning" if from_pipe else "give the same source"
    raise CheckpointError(
        f"source '{options.source}': does not begin with the columns that the checkpoint was made"
        f" with; {again}, or begin a new checkpoint"
    )


class Run(Publishing):
    """One run of a stream that its checkpoint commits."""

    def __init__(
        self,
        options: StreamOptions,
        policy: Policy,
        feed: Source,
        checkpoint: Checkpoint,
        clock: Callable[[], float],
    ) -> None:
        super().__init__(options, policy, feed, checkpoint, clock)
        self._identity = secrets.token_hex(8)
        self._input: str | None = None
        self._joined: Path | None = None  # one table of all parts, at the end
        self._since = clock()
        self._last_line = 0.0

    # resuming

    def resume(self) -> None:
        """Resumes from the checkpoint; raises CheckpointError where it is another stream's."""
        state = self._checkpoint.load()
        if state is None:
            self.outputs.connect(self._identity, self._step)
            self.outputs.require_untouched()
            self._begin_status()
            return
        self._require_same_stream(state)
        try:
            self._take_up(state)
        except UNFIT:
            raise self._checkpoint.damaged from None
        self._begin_status()

    def _take_up(self, state: dict[str, Any]) -> None:
        self._feed.go_to(state["place"])
        self._identity = str(state["identity"])
        self.outputs.connect(self._identity, int(state["step"]))
        self._restore(state)
        self.outputs.put_segment(self._step, state)
        self._restore_arrivals(state)

    # working

    def run_to_end(self, progress: Progress) -> None:
        """Steps until the source ends."""
        if self._counters.closed:
            self._require_no_more()
            return
        at_end = False
        while not at_end:
            piece = self._feed.read()
            at_end = piece.at_end
            batches = self._batches_of(piece)
            if len(piece.position) or piece.bad or batches or at_end:
                self._do(batches)
                self._tell(progress)
            else:
                time.sleep(IDLE)

    def _require_no_more(self) -> None:
        """Raises CheckpointError where a source that had ended has records again."""
        if isinstance(self._feed, kafka.TopicFeed):
            return
        more = self._feed.read()
        if len(more.position) or more.bad:
            raise CheckpointError(
                f"checkpoint '{self._checkpoint.folder}': its stream has ended, and the source has"
                " grown since; begin a new one for the new records, and use --follow for a source"
                " that grows"
            )

    # committing

    def _commit(self) -> None:
        self._step += 1
        if self._options.checkpoint is None:
            self.outputs.put(self._step)
            return
        state = {
            **self._snapshot(),
            "identity": self._identity,
            **self.outputs.write_segment(self._step),
        }
        self._checkpoint.commit(state)
        self.outputs.put(self._step)
        self.outputs.remove_segment(self._step - 1)
        self.status.commit(self._step, self._counters, self._gate, self.core.waiting)

    # closing

    def close(self, progress: Progress) -> Certificate:
        """The certificate of the whole stream, beside the sink; private files take their place."""
        with ExitStack() as stack:
            if self.outputs.format.in_parts:
                stack.enter_context(remove_uncommitted_certificate(self._options.sink))
                self._joined = stack.enter_context(files.atomic_write(self._options.sink))
                self.outputs.format.join_parts(
                    self.outputs["sink"].path, self.core.nothing, self._joined
                )
            is_whole = self._options.whole and self._is_readable and self._counters.published
            certificate = self._measured(progress) if is_whole else self.so_far()
            if self._options.checkpoint is None:
                require_whole_kept(certificate)
            if self._options.checkpoint is None and self._counters.bad:
                with files.atomic_write(str(self._options.bad_records)) as draft:
                    shutil.copyfile(self.outputs["dead_letters"].path, draft)
            self._certify(certificate)
        return certificate

    def interrupt(self) -> None:
        """Writes the certificate of what is committed, if anything is."""
        state = self._checkpoint.load()
        if state is None or self.outputs.format.in_parts:
            return
        self._restore(state)
        self._input = state["place"].get("sha256")
        if not self._options.to_topic:
            self.outputs.put_segment(self._step, state)
            if self._options.to_file and not self._published.exists():
                return
        self._certify(self.so_far())

    def _certify(self, certificate: Certificate) -> None:
        """Writes the certificate beside the sink."""
        if self._options.to_table:
            self.outputs.certify(certificate.to_json())
        elif not self._options.to_standard_output:
            with files.atomic_write(self._certificate_path) as draft:
                draft.write_text(certificate.to_json())
            remove_stale_signature(self._certificate_path)

    @property
    def _certificate_path(self) -> str:
        return self._options.certificate_path

    @property
    def _published(self) -> Path:
        return self._joined or self.outputs["sink"].path

    def _measured(self, progress: Progress) -> Certificate:
        """What an audit of the whole published file finds, people counted."""
        people = self.outputs["people"].path if "people" in self.outputs else None
        form = self._options.format
        published = self._options.sink if self._options.to_table else self._published
        measured, digest = whole_stream(self.core, published, form, people, progress)
        return self._certificate(measured, self._read_and_written(digest))

    def so_far(self) -> Certificate:
        """What was measured release by release."""
        is_file = not self._options.to_standard_output and self._published.is_file()
        digest = files.file_sha256(self._published) if is_file else None
        if self._options.to_table:
            digest = files.read(self._options.sink).sha256
        measured = release_by_release(self.core, self._gate)
        return self._certificate(measured, self._read_and_written(digest))

    @property
    def _is_readable(self) -> bool:
        """Whether what was published can be read again, as a whole."""
        return self._options.to_file or self._options.to_table

    def _read_and_written(self, digest: str | None) -> dict[str, Any]:
        render = self.core.schema.render
        return {
            "input": {"sha256": self._input or self._feed.sha256},
            "output": output_of(self._options, self._published, digest, render),
        }

    @property
    def history(self) -> np.ndarray:
        """As `StreamCounters.history_array`."""
        return self._counters.history_array()

    def _tell(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._last_line < TELL_EVERY:
            return
        self._last_line = now
        read = self._counters.read - self._read_before
        rate = read / max(now - self._since, 1e-9)
        loss = self._gate.loss / max(self._gate.rows, 1)
        # only the end can settle it, but until then the order can still be changed
        stars = ", nothing but stars so far" if self._gate.shows_nothing else ""
        progress(self._counters.line(rate, self.core.waiting, loss) + stars)
