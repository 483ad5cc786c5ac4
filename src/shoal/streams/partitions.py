"""A topic of several partitions as a stream: each partition is published on its own, by the process
of the group that it is assigned to.

Promise: every promise of the policy holds in each partition's output. A person is in one partition
(`streams/kafka_group.py` refuses anything else), so the promises also hold for all
partitions together: classes of different partitions that show the same cells share nobody.
A partition's rows do not depend on how many processes share the work, nor on which of them died.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.connectors import files, metrics
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress
from shoal.errors import CheckpointError, InputError, is_stop
from shoal.streams import kafka
from shoal.streams.certify import NOTHING, union_certificate
from shoal.streams.checkpoint import CURRENT, SharedCheckpoint, SharedStream
from shoal.streams.kafka import Arrived, TransactionLost
from shoal.streams.kafka_group import LOOKED, Group, Keyed, Mark, PartitionFeed, Writer, gone
from shoal.streams.publishing import Publishing, StreamRequest, check_terms, settled

TELL_EVERY = 2.0  # seconds between two lines of progress
ASK_EVERY = 1.0  # seconds between two looks at whether all partitions have ended
MOST_LOST = 120.0  # seconds without one successful transaction, after which we give up


def stream_partitions(
    request: StreamRequest, *, progress: Progress, clock: Callable[[], float]
) -> tuple[Certificate, np.ndarray]:
    """Publishes a topic of several partitions into another one, as one process of a group.

    Ends when every partition has ended, whoever published it. Returns the certificate of all
    partitions, and their histories one after another. Raises as `stream_file` does.
    """
    options = request.options
    partitions = kafka.partitions_of_topic(options.source)
    _require_fit(request, partitions)
    with closing(Group(options.source, options.sink)) as group:
        share = Share(request, group, _shared_stream(request, group, partitions), clock)
        with share.leaving():
            share.work(progress)
        return share.certified()


def _require_fit(request: StreamRequest, partitions: int) -> None:
    """Raises InputError with everything that a source of several partitions can't have."""
    findings, options, person = [], request.options, request.policy.model.person
    if not options.place.is_topic:
        findings.append(
            f"source '{options.source}': has {partitions} partitions, each a stream of its own;"
            " publish into a topic with as many partitions (-o kafka://...), with --checkpoint"
        )
    elif (found := kafka.partitions_of_topic(options.sink)) != partitions:
        has = f"has {found} partition{'s' if found > 1 else ''}" if found else "is not there"
        findings.append(
            f"output '{options.sink}': {has}, the source has {partitions}; name a topic with as"
            " many, since each goes into its own"
        )
    findings += [
        f"{name}: works with one partition only, and the source has {partitions}; leave it out:"
        f" {instead}"
        for name, given, instead in (
            ("--trace", options.trace, "no trace is written"),
            ("--dead-letters", options.named_letters, "the checkpoint has a list for each"),
            ("--metrics", metrics.are_asked() or None, "'shoal stream-status' shows each"),
        )
        if given is not None
    ]
    if person is not None:
        findings.append(
            f"policy, subject: a message has one key, and '{person}' is of several"
            " columns; join them in one with the role 'subject', and key messages by it"
        )
    findings += request.unsafe_parts("partitions", "stream one partition")
    InputError.raise_for(findings)


def _shared_stream(request: StreamRequest, group: Group, partitions: int) -> SharedStream:
    """What all processes agree on; raises CheckpointError if the folder is another stream's."""
    options, folder = request.options, request.options.folder
    partitioner = None if request.policy.subject is None else request.policy.model.read.partitioner
    if (folder / CURRENT).exists():
        raise CheckpointError(
            f"checkpoint '{folder}': belongs to a stream of one partition; name another folder"
        )
    found = SharedStream.read(folder)
    if found is None:
        found = _wanted(request, group, partitions).begin(folder)
    if found.partitions != partitions:
        raise CheckpointError(
            f"source '{options.source}': has {partitions} partitions, and {found.partitions} when"
            " the stream began, so people have moved between them; begin a new stream, into a new"
            " topic"
        )
    mine = (group.source.name, group.sink.name, partitioner)
    if (found.source, found.sink, found.partitioner) != mine:
        raise CheckpointError(
            f"checkpoint '{folder}': was started with another source, sink or partitioner; use"
            " the same ones, or name another folder"
        )
    check_terms(folder, found.policy, request.fixed)
    return found


def _wanted(request: StreamRequest, group: Group, partitions: int) -> SharedStream:
    """What a new stream starts with; with --follow, waits for the topic's first message.

    Raises InputError if the keys at the beginning of a partition do not fit, and CheckpointError if
    the sink holds rows already.
    """
    options = request.options
    while True:
        first = [
            kafka.first_messages(group.source, p, LOOKED, group.name) for p in range(partitions)
        ]
        if any(one.lines for one in first):
            break
        if not options.follow:
            raise kafka.no_messages(group.source)
        time.sleep(ASK_EVERY)
    first_message = next((line for one in first for line in one.lines if line), None)
    if first_message is None:
        raise kafka.no_messages(group.source)
    columns = request.policy.fields.names(kafka.names_in(first_message, group.source))
    partitioner = None if request.policy.subject is None else request.policy.model.read.partitioner
    shared = SharedStream(
        group.source.name, group.sink.name, partitions, columns, partitioner, settled(request.fixed)
    )
    for partition, arrived in enumerate(first):
        feed = _feed(shared, request, group, partition)
        feed.add(arrived)
        feed.read()
    holds_rows = any(group.sink_holds_rows(partition) for partition in range(partitions))
    if holds_rows and SharedStream.read(options.folder) is None:  # not begun meanwhile
        raise CheckpointError(
            f"output '{options.sink}': holds rows already, and the checkpoint is new; name a fresh"
            " topic, or restore the checkpoint that it belongs to"
        )
    return shared


def _feed(
    shared: SharedStream, request: StreamRequest, group: Group, partition: int
) -> PartitionFeed:
    keyed = None
    if request.policy.subject is not None and shared.partitioner is not None:
        keyed = Keyed(request.policy.subject, shared.partitioner, shared.partitions)
    return PartitionFeed(group.source, partition, shared.columns, keyed, request.policy.fields)


class Share:
    """The partitions that are assigned to this process; they may change between any two steps."""

    def __init__(
        self, request: StreamRequest, group: Group, shared: SharedStream, clock: Callable[[], float]
    ) -> None:
        self._request, self._options, self._group = request, request.options, group
        self._shared, self._clock = shared, clock
        self._runs: dict[int, PartitionRun] = {}
        self._member = group.joined(self._open, self._drop)
        self._last_line = self._last_asked = clock()
        self._lost_since: float | None = None

    def _run(self, partition: int) -> "PartitionRun":
        feed = _feed(self._shared, self._request, self._group, partition)
        return PartitionRun(self._request, feed, partition, self._clock)

    # joining and leaving

    @contextmanager
    def leaving(self) -> Iterator[None]:
        """Leaves the group at the end; when stopped or failed, at once, and the status says so."""
        try:
            yield
        except BaseException as cause:
            own = sorted(self._runs)
            for run in self._runs.values():
                run.status.stopped(cause)
            self._runs.clear()
            self._member.close()
            if not is_stop(cause):
                raise
            for run in self._committed(own):
                run.certify()
            raise KeyboardInterrupt from None
        self._runs.clear()
        self._member.close()

    def _open(self, partition: int) -> int:
        """Takes over a partition and fences off its previous owner; returns where to read from."""
        if partition >= self._shared.partitions:
            raise CheckpointError(
                f"source '{self._options.source}': has more partitions than when the stream began,"
                " so people have moved between them; begin a new stream, into a new topic"
            )
        self._runs.pop(partition, None)
        writer = Writer(self._group, partition, self._member)
        run = self._run(partition)
        found = self._group.committed(partition)
        first, end = self._group.bounds(partition)
        if found is None:
            # by default, brokers forget the offsets of a group without a member for a week
            if run.shared.newest_step > 0 or self._group.sink_holds_rows(partition):
                raise CheckpointError(
                    f"group '{self._group.name}': the broker has no offset for partition"
                    f" {partition}, but rows were published from it; publish into a new topic, with"
                    " a new checkpoint, and withdraw the old topic from its readers"
                )
            run.begin(first)
        else:
            offset, mark = found
            if not first <= offset <= end:
                raise gone(self._group.source, partition)
            if mark.ended and self._options.follow:
                raise CheckpointError(
                    f"checkpoint '{self._options.checkpoint}': partition {partition} has ended,"
                    " since it was published without --follow; begin a new stream for the new"
                    " records, into a new topic"
                )
            run.go_on(mark)
        run.writer = writer
        self._runs[partition] = run
        return run.offset

    def _drop(self, partition: int) -> None:
        """Gives up a partition; its next owner resumes from what was committed."""
        self._runs.pop(partition, None)

    # working

    def work(self, progress: Progress) -> None:
        while not self._all_ended():
            arrived = self._member.poll()
            for partition in list(self._runs):
                if not self._advanced(partition, arrived.get(partition)):
                    break
            self._tell(progress)

    def _advanced(self, partition: int, arrived: Arrived | None) -> bool:
        """Does one step of a partition; False where this process left the group and rejoined."""
        run, member = self._runs[partition], self._member
        if run.counters.closed:
            if arrived is not None:
                member.pause(partition)
            return True
        try:
            run.advance(arrived, may_end=not self._options.follow)
        except TransactionLost as lost:
            self._note_lost()
            if lost.fenced:  # the group has continued without us
                self._runs.clear()
                member.rejoin()
                return False
            member.seek(partition, self._open(partition))
            return True
        except BaseException as cause:
            run.status.stopped(cause)
            del self._runs[partition]
            raise
        self._lost_since = None
        return True

    def _note_lost(self) -> None:
        """Gives up if no transaction has succeeded for MOST_LOST seconds."""
        now = self._clock()
        self._lost_since = now if self._lost_since is None else self._lost_since
        if now - self._lost_since > MOST_LOST:
            raise kafka.unreachable(self._group.sink)

    def _all_ended(self) -> bool:
        """Whether every partition has ended; asks the broker at most once in ASK_EVERY seconds."""
        if self._options.follow or any(not run.counters.closed for run in self._runs.values()):
            return False
        now = self._clock()
        if now - self._last_asked < ASK_EVERY:
            return False
        self._last_asked = now
        marks = [self._group.committed(one) for one in range(self._shared.partitions)]
        return all(found is not None and found[1].ended for found in marks)

    def _tell(self, progress: Progress) -> None:
        now = self._clock()
        if now - self._last_line < TELL_EVERY:
            return
        self._last_line = now
        counters = [run.counters for run in self._runs.values()]
        own = ", ".join(str(partition) for partition in sorted(self._runs)) or "none"
        progress(
            f"partitions {own}: {sum(c.read for c in counters)} records,"
            f" {sum(c.published for c in counters)} published,"
            f" {sum(c.waiting for c in counters)} waiting,"
            f" {sum(c.bad for c in counters)} set aside"
        )

    # reporting

    def _committed(self, partitions: Iterable[int]) -> "Iterator[PartitionRun]":
        """These partitions as they were last committed, to read only."""
        for partition in partitions:
            found = self._group.committed(partition)
            if found is not None:
                run = self._run(partition)
                run.look_at(found[1])
                yield run

    def certified(self) -> tuple[Certificate, np.ndarray]:
        """Writes all certificates into the checkpoint; returns that of all, and the histories."""
        runs = list(self._committed(range(self._shared.partitions)))
        for run in runs:
            run.certify()
        partitioner = {"partitioner": self._shared.partitioner}
        parts = {run.partition: run.counters for run in runs}
        certificate = union_certificate(parts, runs[0].core, "partition", partitioner)
        files.write_text(self._options.certificate_path, certificate.to_json())
        return certificate, np.concatenate([run.counters.history_array() for run in runs])


# One partition: a stream of its own, committed by transactions.
#
# One step: take the new messages > publish what is due > measure it > save a snapshot > commit the
# rows, the offset and the snapshot's digest in one transaction of the broker. Before that commit
# nothing counts: a snapshot that the broker does not name is never read.


class PartitionRun(Publishing):
    """Publishes one partition for as long as it is assigned to this process."""

    def __init__(
        self,
        request: StreamRequest,
        feed: PartitionFeed,
        partition: int,
        clock: Callable[[], float],
    ) -> None:
        options = request.options
        self.partition = partition
        self._topic_feed = feed
        folder = options.folder / f"partition-{partition}"
        self.shared = SharedCheckpoint(folder, options.is_durable)
        self.shared.make()
        own = replace(options, checkpoint=folder)
        super().__init__(replace(request, options=own), feed, self.shared, clock)
        self.writer: Writer | None = None
        self._digest: str | None = None  # of the last snapshot that was committed
        self._is_begun = False

    def _outputs_that_stay(self) -> dict[str, str]:
        # neither folder nor broker: other machines may use other names for them
        return {"sink": self._options.sink.rsplit("/", 1)[-1], "partition": str(self.partition)}

    # opening

    def begin(self, first: int) -> None:
        """Starts at an offset, where no step was ever committed."""
        self._topic_feed.go_to({"offset": first, "records": 0})
        self.status.begin(self._step, self.counters)

    def go_on(self, mark: Mark) -> None:
        """Resumes from the snapshot that the broker names, and puts what it committed in place."""
        state = self.look_at(mark)
        self.outputs["dead_letters"].pending = state["dead_letters"].tobytes()
        self.outputs.put(self._step)  # whether it stood there or not
        self._digest, self._is_begun = mark.digest, True
        self.status.begin(self._step, self.counters, float(state["at"]))

    def look_at(self, mark: Mark) -> dict[str, Any]:
        """Restores a snapshot; raises CheckpointError where it is missing or does not fit."""
        state = self.shared.load_step(mark.step, mark.digest)
        self._resume_from(state)
        return state

    # working

    @property
    def offset(self) -> int:
        """The offset after the last message that was taken in."""
        return int(self._topic_feed.place["offset"])

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
        self._advance(replace(piece, at_end=piece.at_end and may_end))

    def _commit(self) -> None:
        assert self.writer is not None
        self._step += self._is_begun
        rows = self.outputs.taken_rows()
        # whatever the transaction does not hold can be put after a crash
        letters = np.frombuffer(self.outputs["dead_letters"].pending, dtype=np.uint8)
        digest = self.shared.save(self._step, {**self._snapshot(), "dead_letters": letters})
        mark = Mark(self._step, digest, self.counters.closed)
        self.writer.commit(rows, self.offset, mark)
        self.outputs.put(self._step)
        self.shared.forget(self._step, {digest, self._digest or digest})
        self._digest = digest
        self.status.commit(self._step, self.counters)

    # reporting

    def certify(self) -> None:
        """Writes the certificate of this partition alone, so far, into the partition's folder."""
        certificate = self._certificate(NOTHING)
        files.write_text(self._options.certificate_path, certificate.to_json())
