"""One shard of a stream being published: a stream of its own, a step of it a task of an engine.

A task resumes from the snapshot that the driver's checkpoint names, takes in the records of one
batch, measures what leaves, and writes the rows and the next snapshot under names that hold their
digests. Nothing of that counts until the driver commits the batch (`sharded.py`). So a task may run
twice or be lost: nobody reads what the driver does not name.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import CheckpointError
from shoal.policy.policy import Policy
from shoal.streams.checkpoint import CURRENT, UNFIT
from shoal.streams.core import Batch
from shoal.streams.gate import Gate
from shoal.streams.options import StreamOptions
from shoal.streams.progress import StreamCounters
from shoal.streams.publishing import Publishing
from shoal.streams.shard_files import ShardFeed, Share
from shoal.streams.shared_checkpoint import SHOWN, SharedCheckpoint

PURPOSE = 4
"""Distinguishes the seeds of shards from what else is drawn from a policy's seed."""

FORM = ".parquet"


@dataclass(frozen=True)
class Rows:
    """A file of published rows. path: below the checkpoint, until it is put in its place."""

    path: str
    records: int
    size: int
    sha256: str


@dataclass(frozen=True)
class ShardState:
    """What the driver keeps of a shard since the beginning of the stream.

    step: the batch that brought its last records. digest: of the snapshot behind that. least, rows,
    suppressed, loss: as the gate's.
    """

    step: int
    digest: str
    counters: StreamCounters
    waiting: int
    least: int | None
    rows: int
    suppressed: int
    loss: float

    def gate(self, like: Gate) -> Gate:
        """What was measured. like: a gate of the same schema and promises."""
        return Gate(
            like.schema,
            like.measures,
            least=self.least,
            rows=self.rows,
            suppressed=self.suppressed,
            loss=self.loss,
        )

    def as_values(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        return asdict(self)

    @classmethod
    def of_values(cls, values: dict[str, Any]) -> ShardState:
        counters = StreamCounters(**values["counters"])
        return cls(**{**values, "counters": counters})


@dataclass(frozen=True)
class Step:
    """What a task found: the shard's new state, its rows and its bad records.

    longest: of the records that left, the longest wait.
    """

    shard: int
    state: ShardState
    rows: Rows | None
    letters: bytes
    longest: int


@dataclass(frozen=True)
class ShardTask:
    """One batch of one shard. number: of the batch. before: the snapshot to resume from, by its
    step and digest; None at the beginning.
    """

    shard: int
    number: int
    before: tuple[int, str] | None
    shares: tuple[Share, ...]
    at_end: bool


def shard_seed(seed: int, shard: int) -> int:
    """The seed that a shard's own stream is run with."""
    return int(np.random.default_rng([seed, PURPOSE, shard]).integers(2**63))


def shard_policy(policy: Policy, shard: int) -> Policy:
    """The policy of a shard's own stream, which differs in the seed alone."""
    return policy.with_seed(shard_seed(policy.model.seed, shard))


def shard_folder(checkpoint: Path, shard: int) -> Path:
    """Where the state of a shard is."""
    return checkpoint / f"shard-{shard:04d}"


@dataclass(frozen=True)
class Advance:
    """What all tasks of a stream share: called with a task, it does that task.

    options: what was asked for; its checkpoint is seen by all workers.
    """

    options: StreamOptions
    policy: Policy
    names: tuple[str, ...]

    def __call__(self, task: ShardTask) -> Step:
        feed = ShardFeed(self.names, task.shares, task.at_end)
        run = ShardRun(self.options, self.policy, feed, task)
        run.resume()
        return run.step()


class ShardRun(Publishing):
    """Publishes one batch of one shard."""

    def __init__(
        self, options: StreamOptions, policy: Policy, feed: ShardFeed, task: ShardTask
    ) -> None:
        assert options.checkpoint is not None
        self._task = task
        folder = shard_folder(options.checkpoint, task.shard)
        if not folder.is_dir():
            raise _unseen(options.checkpoint)
        self._shared = SharedCheckpoint(folder, options.durable)
        own = replace(
            options, sink=f"rows{FORM}", checkpoint=folder, dead_letters=None, shards=None
        )
        own_policy = shard_policy(policy, task.shard)
        super().__init__(own, own_policy, feed, self._shared, time.monotonic)
        self._longest = 0
        self._found: Step | None = None

    def _outputs_that_stay(self) -> dict[str, str]:
        # no folder: other workers may use other names for it
        return {"shard": str(self._task.shard)}

    def resume(self) -> None:
        """Resumes from the snapshot that the driver names; raises CheckpointError if it is missing
        or does not fit.
        """
        if self._task.before is None:
            return
        state = self._shared.load_step(*self._task.before)
        self._require_same_stream(state)
        try:
            self._restore(state)
        except UNFIT:
            raise self._shared.damaged from None

    def step(self) -> Step:
        """Takes in the batch; what it releases was measured from the bytes that are kept."""
        self._do(self._batches_of(self._feed.read()))
        assert self._found is not None
        return self._found

    def _write(self, batch: Batch) -> None:
        super()._write(batch)
        waited = batch.decided.emitted - batch.decided.seq
        self._longest = max(self._longest, int(waited.max(initial=0)))

    def _commit(self) -> None:
        """Writes what the driver commits: a file of rows, and the snapshot to resume from."""
        self._step = self._task.number
        letters = self.outputs["dead_letters"]
        bad, letters.pending = letters.pending, b""
        rows = self._kept_rows()
        digest = self._shared.save(self._step, {**self._snapshot(), "lengths": {}, "crcs": {}})
        gate = self._gate
        state = ShardState(
            self._step,
            digest,
            self._counters,
            self.core.waiting,
            gate.least,
            gate.rows,
            gate.suppressed,
            gate.loss,
        )
        self._found = Step(self._task.shard, state, rows, bad, self._longest)

    def _kept_rows(self) -> Rows | None:
        """The rows of the step in one file, whose bytes show what was measured."""
        content = self.outputs.taken_rows()
        records = self.outputs.format.read_back(content).height if content else 0
        if not records:
            return None
        digest = hashlib.sha256(content).hexdigest()
        path = self._shared.folder / f"rows-{self._step}-{digest[:SHOWN]}{FORM}"
        draft = path.with_suffix(f".{secrets.token_hex(8)}.tmp")
        self._shared.write(draft, content)
        os.replace(draft, path)
        assert self._options.checkpoint is not None
        below = path.relative_to(self._options.checkpoint.parent)
        return Rows(str(below), records, len(content), digest)


def require_seen(checkpoint: Path, step: Step) -> None:
    """Raises CheckpointError where the driver does not see what a task wrote."""
    state, rows = step.state, step.rows
    snapshot = shard_folder(checkpoint, step.shard) / _snapshot_name(state)
    if not snapshot.is_file() or (rows is not None and not (checkpoint / rows.path).is_file()):
        raise _unseen(checkpoint)


def _unseen(checkpoint: Path) -> CheckpointError:
    return CheckpointError(
        f"checkpoint '{checkpoint}': is not the same folder for the driver and all workers; name"
        " one that all of them see under this name"
    )


def _snapshot_name(state: ShardState) -> str:
    return f"snapshot-{state.step}-{state.digest[:SHOWN]}"


def forget_steps(checkpoint: Path, shard: int, state: ShardState | None) -> None:
    """Removes what no commit names of a shard: the state of earlier steps, and of lost ones."""
    folder = shard_folder(checkpoint, shard)
    kept = None if state is None else _snapshot_name(state)
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name.startswith(("snapshot-", "rows-")) and path.name != kept:
            path.unlink(missing_ok=True)


def forget_unbegun(checkpoint: Path) -> None:
    """Removes what tasks wrote for a stream of which nothing was committed."""
    if not (checkpoint / CURRENT).exists():
        for folder in checkpoint.glob("shard-*"):
            shutil.rmtree(folder, ignore_errors=True)
