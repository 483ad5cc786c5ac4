"""A folder of files as a stream in shards, whose batches an engine's workers publish.

Every person is in one shard (`streams/shard_files.py`), and each shard is a stream of its own:
its rows are those of one process that publishes its records alone. So every promise holds in each
shard, and in all of them together (`union_certificate`).

One batch: list the new files > a task a file sorts its records by shard > a task a shard takes them
in, measures what leaves and writes it down (`shard.py`) > one rename commits the files that were
read, the snapshot of every shard and the rows > the rows are put into the output, then its
manifest. Killed before the commit, the batch is as if it never was; killed after it, the rows are
put again.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np

from shoal.connectors import files
from shoal.connectors.engines import Engine
from shoal.connectors.location import PARQUET
from shoal.connectors.outputs import sole_writer
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress
from shoal.data.room import SharedRoom
from shoal.errors import ANOTHER_STREAM, CheckpointError, InputError
from shoal.streams import certify, shard, shard_files
from shoal.streams.checkpoint import Checkpoint
from shoal.streams.options import refuse_table, unfit_for_engine
from shoal.streams.publishing import StreamRequest, check_terms, settled
from shoal.streams.shard import Advance, Committed, Rows, ShardTask, Step
from shoal.streams.stream_status import StatusWriter

BATCH_BYTES = 256 << 20
"""Of the files that one batch reads, unless the first alone is larger."""

IDLE = 1.0  # seconds between two looks at a folder that has nothing new


def stream_sharded(
    request: StreamRequest, engine: Engine, *, progress: Progress
) -> tuple[Certificate, np.ndarray]:
    """Publishes the files of a folder into another one, to the last file; resumes where the
    checkpoint stopped.

    Returns the certificate of all shards, and their histories one after another. Raises
    InputError, CheckpointError or PromiseError.
    """
    options, policy = request.options, request.policy
    refuse_table(options.source)
    request.require_answers()
    policy.build_method("stream")
    InputError.raise_for(
        unfit_for_engine(options) + request.unsafe_parts("shards", "leave out --engine")
    )
    # workers may be in other folders
    options = replace(options, checkpoint=options.folder.absolute())
    request = StreamRequest(options, replace(policy, base=policy.base.absolute()))
    checkpoint = Checkpoint(options.folder, options.is_durable)
    sink = options.sink
    with ExitStack() as stack:
        stack.enter_context(sole_writer([Path(sink)]))
        stack.enter_context(checkpoint.held())
        stack.callback(shard.forget_unbegun, checkpoint.folder)
        output = stack.enter_context(shard_files.batch_folder(sink))
        run = ShardedRun(request, engine, checkpoint, output)
        run.run_to_end(progress)
        return run.certified(), run.history


class ShardedRun:
    """The driver: it sees names of files, counts and states; records pass by it in tasks."""

    def __init__(
        self,
        request: StreamRequest,
        engine: Engine,
        checkpoint: Checkpoint,
        output: shard_files.BatchFolder,
    ) -> None:
        self._request, self._options = request, request.options
        self._engine, self._checkpoint, self._output = engine, checkpoint, output
        found = Committed.load(checkpoint)
        if found is None:
            self._state = self._begun()
        else:
            self._state = found
            self._take_up()
        self._status = StatusWriter(self._options, self._core)

    @cached_property
    def _room(self) -> SharedRoom:
        """Starts the workers, whose files lie beside the output."""
        return self._engine.room(self._options.sink)

    # beginning and resuming

    def _take_up(self) -> None:
        """Resumes from the checkpoint; raises CheckpointError where it is another stream's."""
        found = self._state
        found.require_same(self._checkpoint.folder, self._options, self._engine.shards)
        self._core, terms = self._request.opened(found.names)
        check_terms(self._checkpoint.folder, found.fixed, terms)
        self._output.require_no_later(found.files)
        self._put()
        self._output.require_as_left(found.files)

    def _begun(self) -> Committed:
        """A new stream's state, once there is a file; raises InputError where terms don't fit."""
        self._output.require_untouched()
        options = self._options
        while not (batch := shard_files.new_files(options.source, {}, BATCH_BYTES)[0]):
            if not options.follow:
                raise InputError(
                    f"source '{options.source}': holds no file; name a folder of files, or say"
                    " --follow to wait for some"
                )
            time.sleep(IDLE)
        shards = self._engine.shards
        if shards is None:
            name = self._engine.name
            raise InputError(
                f"engine '{name}': say in how many shards a new stream is published, such as"
                f" --engine {name}:4"
            )
        names = shard_files.column_names(batch[0].path, self._request.policy.fields)
        self._core, terms = self._request.opened(names)
        for place in range(shards):  # tasks make none: not all may see this place
            shard.shard_folder(self._checkpoint.folder, place).mkdir(mode=0o700, exist_ok=True)
        return Committed(
            source=str(Path(options.source).resolve()),
            sink=str(Path(options.sink).resolve()),
            fixed=settled(terms),
            shards=shards,
            names=names,
        )

    # working

    def run_to_end(self, progress: Progress) -> None:
        """Batch after batch; raises CheckpointError where files came after the stream's end."""
        if self._state.closed and self._new_files()[0]:  # refused, the stream stays ended
            raise CheckpointError(
                f"checkpoint '{self._checkpoint.folder}': its stream has ended, and the source has"
                f" new files since; for these {ANOTHER_STREAM}. A folder that grows is given with"
                " --follow when it begins"
            )
        with self._told():
            if self._options.follow:
                progress("waiting for files")
            while not self._state.closed:
                batch, has_more = self._new_files()
                if not batch and self._options.follow:
                    self._status.waits()
                    time.sleep(IDLE)
                    continue
                at_end = not has_more and not self._options.follow
                progress(f"publishing batch {self._state.batch + 1}, of {len(batch)} files")
                self._do(batch, at_end)
                counters = self._counters
                progress(
                    f"batch {self._state.batch}: {counters.read} records in {self._state.shards}"
                    f" shards, {counters.published} published, {counters.waiting} waiting,"
                    f" {counters.bad} set aside"
                )

    def _new_files(self) -> tuple[list[shard_files.NewFile], bool]:
        """The next batch of files, and whether there are more."""
        sizes = {name: size for name, size, _ in self._state.taken}
        return shard_files.new_files(self._options.source, sizes, BATCH_BYTES)

    def _do(self, batch: list[shard_files.NewFile], at_end: bool) -> None:
        state, request, folder = self._state, self._request, self._room.folder
        sharding = shard_files.Sharding(
            request.policy.subject, state.shards, request.policy.model.seed
        )
        assert folder is not None
        splitter = shard_files.Splitter(sharding, tuple(state.names), folder, request)
        splits = self._room.each(splitter, batch)
        try:
            state.require_new(splits, self._options.source)
            types = _one_kind(splits, state.types)
            work = Advance(request, tuple(state.names))
            steps = self._room.each(work, self._tasks(splits, at_end))
        finally:
            for split in splits:
                Path(split.path).unlink(missing_ok=True)
        self._commit(splits, types, steps, at_end)

    def _tasks(self, splits: list[shard_files.Split], at_end: bool) -> list[ShardTask]:
        """One for each shard that has records, or that ends."""
        state = self._state
        shares = shard_files.shares_of(splits, state.records) if splits else [()] * state.shards
        number = state.batch + 1
        return [
            ShardTask(place, number, before.step, before.digest, own, at_end)
            for place, (before, own) in enumerate(zip(state.states, shares, strict=True))
            if own or at_end
        ]

    # committing

    def _commit(
        self,
        splits: list[shard_files.Split],
        types: dict[str, str],
        steps: list[Step],
        at_end: bool,
    ) -> None:
        for step in steps:
            shard.require_seen(self._checkpoint.folder, step)
        if at_end and not self._state.files and not any(step.rows for step in steps):
            steps = [replace(steps[0], rows=self._no_rows()), *steps[1:]]
        self._state = self._state.after(splits, types, steps, at_end)
        self._checkpoint.commit(self._state.packed_values())
        self._put()
        self._status.waited(max((step.longest for step in steps), default=0))
        self._status.commit(self._state.batch, self._counters)

    def _no_rows(self) -> Rows:
        """A file in shard 0: a release of no row still names its columns."""
        folder = self._checkpoint.folder
        path = shard.shard_folder(folder, 0) / f"rows-{self._state.batch + 1}{PARQUET}"
        files.write(self._core.nothing, path)
        below = str(path.relative_to(folder))
        return Rows(below, 0, path.stat().st_size, files.file_sha256(path))

    def _put(self) -> None:
        """Puts what is committed where it belongs, whether it stands there or not."""
        state, folder = self._state, self._checkpoint.folder
        by_name = {entry["name"]: entry for entry in state.files}
        for name, below in state.pending.items():
            if (folder / below).is_file():  # else it was put by an earlier run
                self._output.put(folder / below, by_name[name])
        self._output.require_as_left([by_name[name] for name in state.pending])
        letters = state.letters.tobytes()
        if letters or self._options.bad_records.exists():
            path, at = self._options.bad_records, state.letters_at
            self._checkpoint.put(path, at, letters, is_private=True)
        if state.files:
            self._output.certify(self._certificate().to_json())
        for place, known in enumerate(state.states):
            shard.forget_steps(folder, place, known)

    # reporting

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Writes how the stream does, and what each shard did when it is stopped."""
        self._status.begin(self._state.batch, self._counters)
        with self._status.reporting():
            try:
                yield
            except KeyboardInterrupt:
                self._certify_shards()
                raise

    @property
    def _counters(self) -> certify.StreamCounters:
        return certify.all_counted([one.counters for one in self._state.states])

    @property
    def history(self) -> np.ndarray:
        """The histories of all shards, as `StreamCounters.history_array`."""
        return np.concatenate([one.counters.history_array() for one in self._state.states])

    def certified(self) -> Certificate:
        """Writes the certificate of each shard into the checkpoint; returns that of all."""
        self._certify_shards()
        return self._certificate()

    def _certificate(self) -> Certificate:
        """What was measured in all shards, and which files of the output they are in."""
        state = self._state
        entries = sorted(state.files, key=lambda entry: str(entry["name"]))
        read = [{"name": name, "sha256": sha} for name, _, sha in state.taken]
        read_and_written = {
            "input": {"sha256": shard_files.digest(read) if state.closed else None},
            "output": self._output.described(entries, self._core.schema.render),
        }
        parts = {place: one.counters for place, one in enumerate(state.states)}
        return certify.union_certificate(parts, self._core, "shard", {}, read_and_written)

    def _certify_shards(self) -> None:
        for place, state in enumerate(self._state.states):
            certificate = certify.stream_certificate(
                self._core,
                state.counters,
                certify.NOTHING,
                time.process_time(),
                seed=shard.shard_seed(self._core.problem.seed, place),
            )
            folder = shard.shard_folder(self._checkpoint.folder, place)
            files.write_text(folder / "certificate.json", certificate.to_json())


def _one_kind(splits: list[shard_files.Split], known: dict[str, str]) -> dict[str, str]:
    """The types of all columns; raises InputError with every file that has others than `known`."""
    wanted = known or (splits[0].types if splits else {})
    other = [split.name for split in splits if split.types != wanted]
    InputError.raise_for(
        f"file '{name}': has columns of other types than the files before it; write all files alike"
        for name in other
    )
    return wanted
