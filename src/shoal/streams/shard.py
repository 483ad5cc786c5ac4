"""One shard of a stream being published: a stream of its own, a step of it a task of an engine.

A task resumes from the snapshot that the driver's checkpoint names, takes in the records of one
batch, measures what leaves, and writes the rows and the next snapshot under names that hold their
digests. Nothing of that counts until the driver commits the batch (`sharded.py`). So a task may run
twice or be lost: nobody reads what the driver does not name.
"""

import hashlib
import os
import secrets
import shutil
import time
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.connectors.location import PARQUET
from shoal.errors import CheckpointError
from shoal.streams.certify import StreamCounters
from shoal.streams.checkpoint import CURRENT, SHOWN, UNFIT, Checkpoint, SharedCheckpoint
from shoal.streams.options import StreamOptions
from shoal.streams.publishing import Publishing, StreamRequest
from shoal.streams.shard_files import NAMED, ShardFeed, Share, Split

PURPOSE = 4
"""Distinguishes the seeds of shards from what else is drawn from a policy's seed."""


@dataclass(frozen=True)
class Rows:
    """A file of published rows. path: below the checkpoint, until it is put in its place."""

    path: str
    records: int
    size: int
    sha256: str

    def entry(self, name: str) -> dict[str, Any]:
        return {"name": name, "records": self.records, "bytes": self.size, "sha256": self.sha256}


@dataclass(frozen=True)
class ShardState:
    """What the driver keeps of a shard since the beginning of the stream.

    step: the batch that brought its last records, 0 before the first. digest: of the snapshot
    behind that.
    """

    step: int = 0
    digest: str = ""
    counters: StreamCounters = field(default_factory=StreamCounters)

    @classmethod
    def of_values(cls, values: dict[str, Any] | None) -> "ShardState":
        """As a checkpoint keeps it; those of format 1 have none before a shard's first record, and
        what the gate counted beside the counters.
        """
        if values is None:
            return cls()
        counted = values["counters"]
        if "suppressed" in values:
            gate = {"starred": values["suppressed"], "least": values["least"]}
            counted = {**counted, **gate, "loss": values["loss"]}
        return cls(values["step"], values["digest"], StreamCounters(**counted))


@dataclass(frozen=True)
class Step:
    """What a task found: the shard's new state, its rows and its bad records.

    longest: of the records that left, the longest wait.
    """

    shard: int
    state: ShardState
    rows: Rows | None
    letters: bytes
    longest: float


@dataclass(frozen=True)
class ShardTask:
    """Batch `number` of one shard. step, digest: the snapshot to resume from, as `ShardState`."""

    shard: int
    number: int
    step: int
    digest: str
    shares: tuple[Share, ...]
    at_end: bool


def shard_seed(seed: int, shard: int) -> int:
    return int(np.random.default_rng([seed, PURPOSE, shard]).integers(2**63))


def shard_folder(checkpoint: Path, shard: int) -> Path:
    return checkpoint / f"shard-{shard:04d}"


@dataclass(frozen=True)
class Advance:
    """What all tasks of a stream share: called with a task, it does that task.

    request: its checkpoint is seen by all workers.
    """

    request: StreamRequest
    names: tuple[str, ...]

    def __call__(self, task: ShardTask) -> Step:
        feed = ShardFeed(self.names, task.shares, task.at_end)
        return ShardRun(self.request, feed, task).step()


class ShardRun(Publishing):
    """Publishes one batch of one shard."""

    def __init__(self, request: StreamRequest, feed: ShardFeed, task: ShardTask) -> None:
        options, policy = request.options, request.policy
        self._task = task
        folder = shard_folder(options.folder, task.shard)
        if not folder.is_dir():
            raise _unseen(options.folder)
        self._shared = SharedCheckpoint(folder, options.is_durable)
        letters = "stop" if options.stops_at_bad else None
        own = replace(options, sink=f"rows{PARQUET}", checkpoint=folder, dead_letters=letters)
        # a shard's own stream differs in the seed alone
        seeded = policy.with_seed(shard_seed(policy.model.seed, task.shard))
        super().__init__(StreamRequest(own, seeded), feed, self._shared, time.monotonic)
        self._found: Step | None = None

    def _outputs_that_stay(self) -> dict[str, str]:
        # no folder: other workers may use other names for it
        return {"shard": str(self._task.shard)}

    def step(self) -> Step:
        """Takes in the batch, from the snapshot that the driver names on; what it releases was
        measured from the bytes that are kept. Raises CheckpointError if it can't be resumed.
        """
        if self._task.step:
            self._resume_from(self._shared.load_step(self._task.step, self._task.digest))
        self._advance(self._feed.read())
        assert self._found is not None
        return self._found

    def _commit(self) -> None:
        """Writes what the driver commits: a file of rows, and the snapshot to resume from."""
        self._step = self._task.number
        letters = self.outputs["dead_letters"]
        bad, letters.pending = letters.pending, b""
        rows = self._kept_rows()
        digest = self._shared.save(self._step, self._snapshot())
        state = ShardState(self._step, digest, self.counters)
        self._found = Step(self._task.shard, state, rows, bad, self.status.longest)

    def _kept_rows(self) -> Rows | None:
        """The rows of the step in one file, whose bytes show what was measured."""
        content = self.outputs.taken_rows()
        records = self.outputs.format.read_back(content).height if content else 0
        if not records:
            return None
        digest = hashlib.sha256(content).hexdigest()
        path = self._shared.folder / f"rows-{self._step}-{digest[:SHOWN]}{PARQUET}"
        draft = path.with_suffix(f".{secrets.token_hex(8)}.tmp")
        self._shared.write(draft, content)
        os.replace(draft, path)
        below = path.relative_to(self._options.folder.parent)
        return Rows(str(below), records, len(content), digest)


def require_seen(checkpoint: Path, step: Step) -> None:
    """Raises CheckpointError where the driver does not see what a task wrote."""
    state, rows = step.state, step.rows
    snapshot = shard_folder(checkpoint, step.shard) / SharedCheckpoint.named(
        state.step, state.digest
    )
    if not snapshot.is_file() or (rows is not None and not (checkpoint / rows.path).is_file()):
        raise _unseen(checkpoint)


def _unseen(checkpoint: Path) -> CheckpointError:
    return CheckpointError(
        f"checkpoint '{checkpoint}': is not the same folder for the driver and all workers; name"
        " one that all of them see under this name"
    )


def forget_steps(checkpoint: Path, shard: int, state: ShardState) -> None:
    """Removes what no commit names of a shard: the state of earlier steps, and of lost ones."""
    folder = shard_folder(checkpoint, shard)
    kept = SharedCheckpoint.named(state.step, state.digest)
    for path in folder.iterdir() if folder.is_dir() else ():
        if path.name.startswith(("snapshot-", "rows-")) and path.name != kept:
            path.unlink(missing_ok=True)


def forget_unbegun(checkpoint: Path) -> None:
    """Removes what tasks wrote for a stream of which nothing was committed."""
    if not (checkpoint / CURRENT).exists():
        for folder in checkpoint.glob("shard-*"):
            shutil.rmtree(folder, ignore_errors=True)


# What the checkpoint of a stream in shards commits with every batch.


FORMAT, EARLIER = "shoal.sharded-stream/2", "shoal.sharded-stream/1"


@dataclass
class Committed:
    """Everything up to the last batch.

    fixed: the hash of what may not change. types: of the columns, once a file was read. taken:
    name, size and hash of each file that was read, in order. records: how many these have. states:
    of each shard. files: what the manifest says of each. pending:
    rows of the last batch, by their name in the output; where they lie below the checkpoint.
    letters: lines about the bad records of the last batch, which stand at `letters_at`.
    """

    source: str
    sink: str
    fixed: str
    shards: int
    names: list[str]
    types: dict[str, str] = field(default_factory=dict)
    batch: int = 0
    taken: list[tuple[str, int, str]] = field(default_factory=list)
    records: int = 0
    closed: bool = False
    states: list[ShardState] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)
    letters: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    letters_at: int = 0

    def __post_init__(self) -> None:
        if not self.states:
            self.states = [ShardState()] * self.shards

    @classmethod
    def load(cls, checkpoint: Checkpoint) -> "Committed | None":
        """The last commit, if any; raises CheckpointError if it is another stream's, or damaged."""
        content = checkpoint.load()
        if content is None:
            return None
        if content.pop("format", None) not in (FORMAT, EARLIER):
            raise CheckpointError(
                f"checkpoint '{checkpoint.folder}': belongs to a stream without an engine; name"
                " another folder"
            )
        try:
            states = [ShardState.of_values(values) for values in content.pop("states")]
            taken = [(str(name), int(size), str(sha)) for name, size, sha in content.pop("taken")]
            return cls(**content, states=states, taken=taken)
        except UNFIT:
            raise checkpoint.damaged from None

    def packed_values(self) -> dict[str, Any]:
        states = [asdict(one) for one in self.states]
        return {**vars(self), "format": FORMAT, "states": states}

    def require_same(self, folder: Path, options: StreamOptions, shards: int | None) -> None:
        """Raises CheckpointError where the stream was begun with other folders or shards."""
        named = tuple(str(Path(name).resolve()) for name in (options.source, options.sink))
        if (self.source, self.sink) != named:
            raise CheckpointError(
                f"checkpoint '{folder}': was started with another source or output; use the same"
                " ones, or name another folder"
            )
        if shards is not None and shards != self.shards:
            raise CheckpointError(
                f"engine: {shards} shards, but the stream began with {self.shards}, and people"
                " would move between shards; leave the number out, or begin a new stream"
            )

    def require_new(self, splits: list[Split], folder: str) -> None:
        """Raises CheckpointError where a file has the bytes of one that was read and is gone from
        the folder: under its new name, its records would be published again.
        """
        there = set(os.listdir(folder))
        gone = {sha256 for name, _, sha256 in self.taken if name not in there}
        renamed = [split.name for split in splits if split.records and split.sha256 in gone]
        CheckpointError.raise_for(
            f"file '{name}': has the content of a file that was read already and is gone; give it"
            " its former name back, or remove it"
            for name in renamed
        )

    def after(
        self, splits: list[Split], types: dict[str, str], steps: list[Step], at_end: bool
    ) -> "Committed":
        batch = self.batch + 1
        states, entries, pending = list(self.states), list(self.files), {}
        for step in steps:
            states[step.shard] = step.state
            if step.rows is not None:
                name = NAMED.format(batch=batch, shard=step.shard)
                entries.append(step.rows.entry(name))
                pending[name] = step.rows.path
        letters = b"".join(step.letters for step in steps)
        return replace(
            self,
            types=types,
            batch=batch,
            taken=[*self.taken, *((one.name, one.size, one.sha256) for one in splits)],
            records=self.records + sum(one.records for one in splits),
            closed=at_end,
            states=states,
            files=entries,
            pending=pending,
            letters=np.frombuffer(letters, dtype=np.uint8),
            letters_at=self.letters_at + len(self.letters),
        )
