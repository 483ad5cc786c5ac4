"""The checkpoint of a stream that several processes work on, in a folder that all of them read.

    checkpoint
    |- stream.json              what all must agree on
    |- certificate.json         of all partitions, once the last has ended
    `- partition-<p>
       |- snapshot-<step>-<digest>   the last two
       |- dead-letters.jsonl, certificate.json, status.json
       `- ...

The folder does not say which snapshot counts: the broker holds its step and digest. So a process
that has lost the partition, however long ago, can't replace what another has committed: it writes a
file of another name, which nobody reads.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from shoal.errors import CheckpointError
from shoal.streams.checkpoint import UNFIT, Checkpoint, packed, unpacked

FORMAT = "shoal.shared-stream/1"
NAME = "stream.json"
SHOWN = 16  # digits of a digest in the name of a file
_SNAPSHOT = re.compile(r"snapshot-(\d+)-([0-9a-f]+)(\.tmp)?$")


@dataclass(frozen=True)
class SharedStream:
    """What all processes of a stream agree on, whichever of them started it.

    source, sink: names of topics. columns: as the first message has them. partitioner: how keys are
    mapped to partitions, None where records have no subject. policy: the hash of what is promised.
    """

    source: str
    sink: str
    partitions: int
    columns: list[str]
    partitioner: str | None
    policy: str

    @classmethod
    def read(cls, folder: Path) -> SharedStream | None:
        """What was agreed, None in a new folder; raises CheckpointError if it is damaged."""
        try:
            content = json.loads((folder / NAME).read_text(encoding="utf-8"))
            if content.pop("format") != FORMAT:
                raise ValueError("another format")
            return cls(**content)
        except FileNotFoundError:
            return None
        except (OSError, *UNFIT):
            raise CheckpointError(
                f"checkpoint '{folder}': its {NAME} is damaged or of another version;"
                " restore it, or publish into a new topic with a new folder"
            ) from None

    def begin(self, folder: Path) -> SharedStream:
        """Writes it down; returns what another process has written if that was faster."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / f"{NAME}.{secrets.token_hex(8)}.tmp"
        Checkpoint(folder).write(draft, json.dumps({"format": FORMAT, **asdict(self)}).encode())
        try:
            with suppress(FileExistsError):
                os.link(draft, folder / NAME)
        finally:
            draft.unlink()
        found = SharedStream.read(folder)
        assert found is not None
        return found


def partition_folder(folder: Path, partition: int) -> Path:
    """Where the state of a partition is."""
    return folder / f"partition-{partition}"


class SharedCheckpoint(Checkpoint):
    """The snapshots of one partition."""

    def make(self) -> None:
        """Makes the folder if it is missing; raises CheckpointError if that fails."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as failed:
            raise CheckpointError(
                f"checkpoint '{self.folder}': can't be used ({failed.strerror}); name a folder that"
                " is writable"
            ) from None

    def save(self, step: int, state: dict[str, Any]) -> str:
        """Keeps what a step would commit; returns its digest."""
        content = packed(state)
        digest = hashlib.sha256(content).hexdigest()
        draft = self.folder / f"snapshot-{step}-{secrets.token_hex(8)}.tmp"
        self.write(draft, content)
        os.replace(draft, self._path(step, digest))
        self._sync_folder()
        return digest

    def load_step(self, step: int, digest: str) -> dict[str, Any]:
        """The snapshot that the broker names; raises CheckpointError if it is missing or damaged.

        The stream does not start over then: that would publish the same people a second time.
        """
        try:
            content = self._path(step, digest).read_bytes()
        except OSError:
            raise CheckpointError(
                f"checkpoint '{self.folder}': lacks the snapshot of step {step}, from which the"
                " broker says to resume; restore the folder where every process of the stream reads"
                " it, or publish into a new topic"
            ) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise self.damaged
        try:
            return unpacked(content)
        except UNFIT:
            raise self.damaged from None

    @property
    def newest_step(self) -> int:
        """The last step that any process tried to commit, -1 where none did."""
        return max((step for step, _, _ in self._snapshots()), default=-1)

    def forget(self, step: int, digests: set[str]) -> None:
        """Removes the snapshots up to a committed step, except those with these digests."""
        kept = {digest[:SHOWN] for digest in digests}
        for found, digest, path in self._snapshots():
            if found <= step and digest not in kept:
                with suppress(OSError):
                    path.unlink()

    def put(self, path: Path, at: int, content: bytes, is_private: bool = False) -> None:
        """Writes committed bytes at their position and keeps whatever follows them.

        So a process that lost the partition long ago changes nothing: it writes what is there.
        """
        handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        try:
            while content:
                written = os.pwrite(handle, content, at)
                at, content = at + written, content[written:]
            if self._durable:
                os.fsync(handle)
        finally:
            os.close(handle)

    def _path(self, step: int, digest: str) -> Path:
        return self.folder / f"snapshot-{step}-{digest[:SHOWN]}"

    def _snapshots(self) -> list[tuple[int, str, Path]]:
        found = []
        for path in self.folder.iterdir() if self.folder.is_dir() else ():
            named = _SNAPSHOT.match(path.name)
            if named:
                found.append((int(named[1]), named[2], path))
        return found
