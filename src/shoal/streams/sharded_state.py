"""What the checkpoint of a stream in shards commits with every batch."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from shoal.errors import CheckpointError
from shoal.streams.batch_folder import NAMED, digest
from shoal.streams.checkpoint import UNFIT, Checkpoint
from shoal.streams.shard import ShardState, Step
from shoal.streams.shard_files import Split

FORMAT = "shoal.sharded-stream/1"


@dataclass
class Committed:
    """Everything up to the last batch.

    fixed: the hash of what may not change. types: of the columns, once a file was read. taken:
    name, size and hash of each file that was read, in order. records: how many these have. states:
    of each shard; None before its first record. files: what the manifest says of each. pending:
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
    states: list[ShardState | None] = field(default_factory=list)
    files: list[dict[str, Any]] = field(default_factory=list)
    pending: dict[str, str] = field(default_factory=dict)
    letters: np.ndarray = field(default_factory=lambda: np.zeros(0, np.uint8))
    letters_at: int = 0

    def __post_init__(self) -> None:
        if not self.states:
            self.states = [None] * self.shards

    @classmethod
    def load(cls, checkpoint: Checkpoint) -> Committed | None:
        """The last commit, None where there is none; raises CheckpointError where the folder is
        another stream's, or damaged.
        """
        content = checkpoint.load()
        if content is None:
            return None
        if content.pop("format", None) != FORMAT:
            raise CheckpointError(
                f"checkpoint '{checkpoint.folder}': belongs to a stream without an engine; name"
                " another folder"
            )
        try:
            states = [
                None if values is None else ShardState.of_values(values)
                for values in content.pop("states")
            ]
            taken = [(str(name), int(size), str(sha)) for name, size, sha in content.pop("taken")]
            return cls(**content, states=states, taken=taken)
        except UNFIT:
            raise checkpoint.damaged from None

    def packed_values(self) -> dict[str, Any]:
        """As a checkpoint keeps it."""
        states = [None if one is None else one.as_values() for one in self.states]
        return {**vars(self), "format": FORMAT, "states": states}

    def require_same(self, folder: Path, source: str, sink: str, shards: int | None) -> None:
        """Raises CheckpointError where the stream was begun with other folders or shards."""
        if (self.source, self.sink) != (source, sink):
            raise CheckpointError(
                f"checkpoint '{folder}': was started with another source or output; use the same"
                " ones, or name another folder"
            )
        if shards is not None and shards != self.shards:
            raise CheckpointError(
                f"--shards {shards}: the stream began with {self.shards}, and people would move"
                " between shards; leave the option out, or begin a new stream"
            )

    @property
    def taken_sizes(self) -> dict[str, int]:
        """The sizes of the files that were read, by name."""
        return {name: size for name, size, _ in self.taken}

    def require_new(self, splits: list[Split], folder: str) -> None:
        """Raises CheckpointError where a file has the bytes of one that was read and is gone from
        the folder: under its new name, its records would be published again.
        """
        there = set(os.listdir(folder))
        gone = {sha256 for name, _, sha256 in self.taken if name not in there}
        renamed = [split.name for split in splits if split.records and split.sha256 in gone]
        if renamed:
            found = [
                f"file '{name}': has the content of a file that was read already and is gone; give"
                " it its former name back, or remove it"
                for name in renamed
            ]
            raise CheckpointError(found[0], found[1:])

    @property
    def source_digest(self) -> str:
        """One SHA-256 of all files that were read, as that of a folder."""
        return digest([{"name": name, "sha256": sha} for name, _, sha in self.taken])

    def after(
        self, splits: list[Split], types: dict[str, str], steps: list[Step], at_end: bool
    ) -> Committed:
        """What is committed behind another batch."""
        batch = self.batch + 1
        states, entries, pending = list(self.states), list(self.files), {}
        for step in steps:
            states[step.shard] = step.state
            if step.rows is not None:
                name = NAMED.format(batch=batch, shard=step.shard)
                rows = step.rows
                entries.append(
                    {
                        "name": name,
                        "records": rows.records,
                        "bytes": rows.size,
                        "sha256": rows.sha256,
                    }
                )
                pending[name] = rows.path
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
