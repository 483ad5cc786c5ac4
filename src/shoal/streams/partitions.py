"""A topic of several partitions as a stream: each partition is published on its own, by the process
of the group that it is assigned to.

Promise: every promise of the policy holds in each partition's output. A person is in one partition
(`streams/kafka_partition.py` refuses anything else), so the promises also hold for all
partitions together: classes of different partitions that show the same cells share nobody.
A partition's rows do not depend on how many processes share the work, nor on which of them died.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np

from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress
from shoal.errors import CheckpointError, InputError
from shoal.policy.policy import Policy
from shoal.streams import kafka
from shoal.streams.checkpoint import CURRENT, SharedStream
from shoal.streams.kafka_group import (
    Arrived,
    Group,
    Member,
    TransactionLost,
    gone,
    partitions_of_topic,
)
from shoal.streams.kafka_partition import Keyed, PartitionFeed
from shoal.streams.options import StreamOptions
from shoal.streams.partition import PartitionRun
from shoal.streams.publishing import fixed_by, hash_of
from shoal.streams.sharding_options import findings_of_parts, union_certificate
from shoal.streams.status import is_stop

TELL_EVERY = 2.0  # seconds between two lines of progress
ASK_EVERY = 1.0  # seconds between two looks at whether all partitions have ended
MOST_LOST = 120.0  # seconds without one successful transaction, after which we give up


def stream_partitions(
    options: StreamOptions, policy: Policy, *, progress: Progress, clock: Callable[[], float]
) -> tuple[Certificate, np.ndarray]:
    """Publishes a topic of several partitions into another one, as one process of a group.

    Ends when every partition has ended, whoever published it. Returns the certificate of all
    partitions, and their histories one after another. Raises as `stream_file` does.
    """
    partitions = partitions_of_topic(options.source)
    _require_fit(options, policy, partitions)
    assert options.checkpoint is not None
    group = Group(options.source, options.sink)
    try:
        shared = _shared_stream(options, policy, group, partitions)
        share = Share(options, policy, group, shared, clock)
        with share.joined():
            share.work(progress)
        return share.certified()
    finally:
        group.close()


def _require_fit(options: StreamOptions, policy: Policy, partitions: int) -> None:
    """Raises InputError with everything that a source of several partitions can't have."""
    findings = []
    if not options.to_topic:
        findings.append(
            f"source '{options.source}': has {partitions} partitions, each a stream of its own;"
            " publish into a topic with as many partitions (-o kafka://...), with --checkpoint"
        )
    elif (found := partitions_of_topic(options.sink)) != partitions:
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
            ("--dead-letters", options.dead_letters, "the checkpoint has a list for each"),
        )
        if given is not None
    ]
    if policy.model.person is not None:
        findings.append(
            f"policy, subject: a message has one key, and '{policy.model.person}' is of several"
            " columns; join them in one with the role 'subject', and key messages by it"
        )
    findings += findings_of_parts(policy, "partitions", "stream one partition")
    if findings:
        raise InputError.from_findings(findings)


def _shared_stream(
    options: StreamOptions, policy: Policy, group: Group, partitions: int
) -> SharedStream:
    """What all processes agree on; raises CheckpointError if the folder is another stream's."""
    folder = options.checkpoint
    assert folder is not None
    partitioner = None if policy.subject is None else options.partitioner
    if (folder / CURRENT).exists():
        raise CheckpointError(
            f"checkpoint '{folder}': belongs to a stream of one partition; name another folder"
        )
    found = SharedStream.read(folder)
    if found is None:
        found = _wanted(options, policy, group, partitions).begin(folder)
    if found.partitions != partitions:
        raise CheckpointError(
            f"source '{options.source}': has {partitions} partitions, and {found.partitions} when"
            " the stream began, so people have moved between them; begin a new stream, into a new"
            " topic"
        )
    mine = (group.source.name, group.sink.name, partitioner)
    if (found.source, found.sink, found.partitioner) != mine:
        raise CheckpointError(
            f"checkpoint '{folder}': was started with another source, sink or --partitioner; use"
            " the same ones, or name another folder"
        )
    if found.policy != hash_of(fixed_by(policy)):
        raise CheckpointError(
            f"checkpoint '{folder}': was made under another policy; give every process the one that"
            " the stream started with, or begin a new stream, into a new topic"
        )
    return found


def _wanted(options: StreamOptions, policy: Policy, group: Group, partitions: int) -> SharedStream:
    """What a new stream starts with; with --follow, waits for the topic's first message.

    Raises InputError if the keys at the beginning of a partition do not fit, and CheckpointError if
    the sink holds rows already.
    """
    while True:
        first = [group.first_of_source(partition) for partition in range(partitions)]
        if any(one.lines for one in first):
            break
        if not options.follow:
            raise kafka.no_messages(group.source)
        time.sleep(ASK_EVERY)
    first_message = next((line for one in first for line in one.lines if line), None)
    if first_message is None:
        raise kafka.no_messages(group.source)
    columns = policy.fields.names(kafka.names_in(first_message, group.source))
    partitioner = None if policy.subject is None else options.partitioner
    shared = SharedStream(
        group.source.name,
        group.sink.name,
        partitions,
        columns,
        partitioner,
        hash_of(fixed_by(policy)),
    )
    for partition, arrived in enumerate(first):
        feed = _feed(shared, policy, group, partition)
        feed.add(arrived)
        feed.read()
    holds_rows = any(group.sink_holds_rows(partition) for partition in range(partitions))
    assert options.checkpoint is not None
    if holds_rows and SharedStream.read(options.checkpoint) is None:  # not begun meanwhile
        raise CheckpointError(
            f"output '{options.sink}': holds rows already, and the checkpoint is new; name a fresh"
            " topic, or restore the checkpoint that it belongs to"
        )
    return shared


def _feed(shared: SharedStream, policy: Policy, group: Group, partition: int) -> PartitionFeed:
    keyed = None
    if policy.subject is not None and shared.partitioner is not None:
        keyed = Keyed(policy.subject, shared.partitioner, shared.partitions)
    return PartitionFeed(group.source, partition, shared.columns, keyed, policy.fields)


class Share:
    """The partitions that are assigned to this process; they may change between any two steps."""

    def __init__(
        self,
        options: StreamOptions,
        policy: Policy,
        group: Group,
        shared: SharedStream,
        clock: Callable[[], float],
    ) -> None:
        self._options, self._policy, self._group = options, policy, group
        self._shared, self._clock = shared, clock
        self._own = replace(options, trace=None, dead_letters=None)
        self._runs: dict[int, PartitionRun] = {}
        self._member: Member | None = None
        self._last_line = self._last_asked = clock()
        self._lost_since: float | None = None

    def _run(self, partition: int) -> PartitionRun:
        feed = _feed(self._shared, self._policy, self._group, partition)
        return PartitionRun(self._own, self._policy, feed, partition, self._clock)

    @property
    def _joined_member(self) -> Member:
        assert self._member is not None
        return self._member

    # joining and leaving

    @contextmanager
    def joined(self) -> Iterator[None]:
        """Joins the group; when stopped or failed, leaves at once and says so in the status."""
        self._member = self._group.joined(self._open, self._drop)
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
            for partition in own:
                self._certify(partition)
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
        writer = self._group.writer(partition, self._joined_member)
        run = self._run(partition)
        found = self._group.committed(partition)
        first, end = self._group.bounds(partition)
        if found is None:
            self._require_fresh(run)
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
        run.write_with(writer)
        self._runs[partition] = run
        return run.offset

    def _require_fresh(self, run: PartitionRun) -> None:
        """Raises CheckpointError if the broker may have forgotten what was committed.

        By default, brokers forget the offsets of a group that has had no member for a week.
        """
        if run.tried_before or self._group.sink_holds_rows(run.partition):
            raise CheckpointError(
                f"group '{self._group.name}': the broker has no offset for partition"
                f" {run.partition}, but rows were published from it; publish into a new topic, with"
                " a new checkpoint, and withdraw the old topic from its readers"
            )

    def _drop(self, partition: int) -> None:
        """Gives up a partition; its next owner resumes from what was committed."""
        self._runs.pop(partition, None)

    # working

    def work(self, progress: Progress) -> None:
        """Steps until every partition has ended."""
        member = self._joined_member
        while not self._all_ended():
            arrived = member.poll()
            for partition in list(self._runs):
                if not self._advanced(partition, arrived.get(partition)):
                    break
            self._tell(progress)

    def _advanced(self, partition: int, arrived: Arrived | None) -> bool:
        """Does one step of a partition; False where this process left the group and rejoined."""
        run, member = self._runs[partition], self._joined_member
        if run.has_ended:
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
        if self._options.follow or any(not run.has_ended for run in self._runs.values()):
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
            f" {sum(run.core.waiting for run in self._runs.values())} waiting,"
            f" {sum(c.bad for c in counters)} set aside"
        )

    # reporting

    def _committed_run(self, partition: int) -> PartitionRun | None:
        """A partition as it was last committed, to read only."""
        found = self._group.committed(partition)
        if found is None:
            return None
        run = self._run(partition)
        run.look_at(found[1])
        return run

    def _certify(self, partition: int) -> None:
        run = self._committed_run(partition)
        if run is not None:
            run.certify()

    def certified(self) -> tuple[Certificate, np.ndarray]:
        """Writes the certificate of each partition and of all into the checkpoint; returns that of
        all, and the histories.
        """
        found = [self._committed_run(one) for one in range(self._shared.partitions)]
        runs = [run for run in found if run is not None]
        for run in runs:
            run.certify()
        partitioner = {"partitioner": self._shared.partitioner}
        parts = [run.part for run in runs]
        core = runs[0].core
        certificate = union_certificate(parts, core, self._policy, "partition", partitioner)
        path = Path(self._options.certificate_path)
        with files.atomic_write(str(path)) as draft:
            draft.write_text(certificate.to_json())
        return certificate, np.concatenate([run.counters.history_array() for run in runs])
