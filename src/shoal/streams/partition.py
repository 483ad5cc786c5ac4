"""One partition of a topic being published: a stream of its own, committed by transactions.

One step: take the new messages > publish what is due > measure it > save a snapshot > commit the
rows, the offset and the snapshot's digest in one transaction of the broker. Before that commit
nothing counts: a snapshot that the broker does not name is never read.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.policy.policy import Policy
from shoal.streams.certify import release_by_release
from shoal.streams.checkpoint import UNFIT, SharedCheckpoint, partition_folder
from shoal.streams.kafka_group import Arrived, Mark, Writer
from shoal.streams.kafka_partition import PartitionFeed
from shoal.streams.options import StreamOptions
from shoal.streams.progress import StreamCounters
from shoal.streams.publishing import Publishing
from shoal.streams.sharding_options import NOTHING, Part


class PartitionRun(Publishing):
    """Publishes one partition for as long as it is assigned to this process."""

    def __init__(
        self,
        options: StreamOptions,
        policy: Policy,
        feed: PartitionFeed,
        partition: int,
        clock: Callable[[], float],
    ) -> None:
        assert options.checkpoint is not None
        self.partition = partition
        self._topic_feed = feed
        folder = partition_folder(options.checkpoint, partition)
        self._shared = SharedCheckpoint(folder, options.durable)
        self._shared.make()
        own = replace(options, checkpoint=folder)
        super().__init__(own, policy, feed, self._shared, clock)
        self._writer: Writer | None = None
        self._digest: str | None = None  # of the last snapshot that was committed
        self._is_begun = False

    def _outputs_that_stay(self) -> dict[str, str]:
        # neither folder nor broker: other machines may use other names for them
        return {"sink": self._options.sink.rsplit("/", 1)[-1], "partition": str(self.partition)}

    # opening

    @property
    def tried_before(self) -> bool:
        """Whether a snapshot holds more than the beginning."""
        return self._shared.newest_step > 0

    def begin(self, first: int) -> None:
        """Starts at an offset, where no step was ever committed."""
        self._topic_feed.go_to({"offset": first, "records": 0})
        self._begin_status()

    def go_on(self, mark: Mark) -> None:
        """Resumes from the snapshot that the broker names, and puts what it committed in place."""
        state = self.look_at(mark)
        self.outputs.put_private_segment(self._step, state)
        self._digest, self._is_begun = mark.digest, True
        self._begin_status()

    def look_at(self, mark: Mark) -> dict[str, Any]:
        """Restores a snapshot; raises CheckpointError where it is missing or does not fit."""
        state = self._shared.load_step(mark.step, mark.digest)
        self._require_same_stream(state)
        try:
            self._topic_feed.go_to(state["place"])
            self._restore(state)
            self._restore_arrivals(state)
        except UNFIT:
            raise self._shared.damaged from None
        return state

    def write_with(self, writer: Writer) -> None:
        """Commits by these transactions."""
        self._writer = writer

    # working

    @property
    def offset(self) -> int:
        """The offset after the last message that was taken in."""
        return int(self._topic_feed.place["offset"])

    @property
    def has_ended(self) -> bool:
        """Whether everything is published, and nothing follows."""
        return self.counters.closed

    @property
    def counters(self) -> StreamCounters:
        """What was done since the beginning."""
        return self._counters

    @property
    def part(self) -> Part:
        """What was done and measured since the beginning, for the certificate of all."""
        return Part(self.partition, self._counters, self._gate, self.core.waiting)

    def advance(self, arrived: Arrived | None, may_end: bool) -> None:
        """Takes in new messages and commits what follows from them, if anything does; raises
        TransactionLost where that was not committed.
        """
        if not self._is_begun:  # from here on the broker knows that the stream exists
            self._commit()
            self._is_begun = True
        if arrived is not None:
            self._topic_feed.add(arrived)
        piece = self._topic_feed.read()
        if not may_end:
            piece = replace(piece, at_end=False)
        batches = self._batches_of(piece)
        if len(piece.position) or piece.bad or batches or piece.at_end:
            self._do(batches)

    def _commit(self) -> None:
        assert self._writer is not None
        self._step += self._is_begun
        rows = self.outputs.taken_rows()
        state = {**self._snapshot(), **self.outputs.private_segment()}
        digest = self._shared.save(self._step, state)
        mark = Mark(self._step, digest, self._counters.closed)
        self._writer.commit(rows, self.offset, mark)
        self.outputs.put(self._step)
        self._shared.forget(self._step, {digest, self._digest or digest})
        self._digest = digest
        self.status.commit(self._step, self._counters, self._gate, self.core.waiting)

    # reporting

    def certificate(self) -> Certificate:
        """The certificate of this partition alone, as far as it was published."""
        return self._certificate(release_by_release(self.core, self._gate), NOTHING)

    def certify(self) -> None:
        """Writes the certificate into the partition's folder."""
        path = Path(self._options.certificate_path)
        with files.atomic_write(str(path)) as draft:
            draft.write_text(self.certificate().to_json())
