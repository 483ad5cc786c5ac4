"""Snapshots of a stream: one file that is replaced as a whole, holding JSON, arrays and frames; no
pickle.

    checkpoint
    |- CURRENT          the snapshot; its rename is the one moment at which work counts as done
    |- segment-<n>      output that CURRENT has committed and that may not stand in its file yet;
    |                   segment-<n>.put once it does
    |- status.json      counts and times for those who watch; no part of the commit
    `- lock

The file: a line of JSON - values, and for every array or frame its kind, size and checksum -
followed by their bytes.
"""

import hashlib
import io
import json
import os
import re
import secrets
import zlib
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.data.regular_files import absent_folders, sync
from shoal.errors import RESTORE, TWICE, UNREADABLE, CheckpointError

try:
    import fcntl
except ImportError:  # not on Windows, where nothing keeps two processes apart
    fcntl = None  # type: ignore[assignment]

FORMAT, EARLIER = "shoal.checkpoint/2", "shoal.checkpoint/1"
CURRENT = "CURRENT"


UNFIT = (*UNREADABLE, pl.exceptions.PolarsError)
"""What a snapshot raises that is not as it was written, though its checksums may be right."""


class Checkpoint:
    """One folder, held by one process at a time. durable: commits survive the loss of power."""

    def __init__(self, folder: Path, durable: bool = True) -> None:
        self.folder, self._durable = folder, durable

    @contextmanager
    def held(self) -> Iterator[None]:
        """The folder, as it was if nothing begins; CheckpointError while another process has it."""
        made = absent_folders(self.folder)
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            there = {*os.listdir(self.folder)}
            handle = os.open(self.folder / "lock", os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as failed:
            raise self._unusable(failed) from None
        try:
            if fcntl is not None:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    # whoever held it last may have removed it meanwhile
                    if not os.path.samestat(os.fstat(handle), os.stat(self.folder / "lock")):
                        raise OSError
                except OSError:
                    raise CheckpointError(
                        f"checkpoint '{self.folder}': another process works on it; wait for it or"
                        " stop it"
                    ) from None
            try:
                yield
            finally:
                if not (self.folder / CURRENT).exists():
                    self._remove_unbegun(there, made)
        finally:
            os.close(handle)

    def _unusable(self, failed: OSError) -> CheckpointError:
        return CheckpointError(
            f"checkpoint '{self.folder}': can't be used ({failed.strerror}); run as the owner of"
            " one that has begun, or name a new folder where you may write"
        )

    def _remove_unbegun(self, there: Collection[str], made: Sequence[Path]) -> None:
        """Removes what a first step had begun, and the folders made for it that hold nothing else.

        there: what the folder held before.
        """
        for name in {*os.listdir(self.folder)} - {*there}:
            if name in ("lock", f"{CURRENT}.tmp") or name.startswith("segment-"):
                (self.folder / name).unlink()
        with suppress(OSError):
            for folder in made:
                folder.rmdir()

    def load(self) -> dict[str, Any] | None:
        """The last committed snapshot, if any; raises CheckpointError where it is damaged."""
        try:
            content = (self.folder / CURRENT).read_bytes()
        except FileNotFoundError:
            return None
        except OSError:
            raise self.damaged from None
        return self._unpacked(content)

    def _unpacked(self, content: bytes) -> dict[str, Any]:
        try:
            return unpacked(content)
        except UNFIT:
            raise self.damaged from None

    @property
    def damaged(self) -> CheckpointError:
        """What is raised where the snapshot can't be understood."""
        return CheckpointError(
            f"checkpoint '{self.folder}': is damaged or of another version; {RESTORE}"
        )

    def commit(self, state: dict[str, Any]) -> None:
        """Replaces the snapshot, whole or not at all."""
        draft = self.folder / f"{CURRENT}.tmp"
        self.write(draft, packed(state))
        os.replace(draft, self.folder / CURRENT)
        self._sync_folder()

    def write(self, path: Path, content: bytes) -> None:
        """A file of the folder, on the disk when this returns."""
        with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_TRUNC, 0o600), "wb") as file:
            file.write(content)
            file.flush()
            if self._durable:
                os.fsync(file.fileno())

    def put(self, path: Path, at: int, content: bytes, is_private: bool = False) -> None:
        """Makes a file end with this content, beginning at byte `at`; the same again changes
        nothing. Raises CheckpointError, and leaves the file, if it is shorter.
        """
        try:
            made = os.O_RDWR if at else os.O_RDWR | os.O_CREAT
            handle = os.open(path, made, 0o600 if is_private else 0o666)
        except FileNotFoundError:
            raise moved(path) from None
        with open(handle, "r+b") as file:
            if os.fstat(handle).st_size < at:
                raise moved(path)
            if is_private and not at:
                path.chmod(0o600)  # somebody else may have made it, so as to read it
            file.seek(at)
            file.write(content)
            file.truncate()  # only now: a run that is killed must not leave less
            file.flush()
            if self._durable:
                os.fsync(file.fileno())

    def _sync_folder(self) -> None:
        if self._durable:
            sync(self.folder)


def moved(output: Path, begun: str = "") -> CheckpointError:
    """What is raised where a file is not as the last step left it. begun: where that was."""
    where = f" as '{begun}'" if begun not in ("", str(output.resolve())) else ""
    return CheckpointError(
        f"output '{output}': was moved, shortened or changed since the stream wrote it{where}, or"
        " the checkpoint is an older copy; put the right one back, and the same command resumes. A"
        f" new checkpoint publishes from the beginning: {TWICE}. To rotate a release, begin a"
        " stream with -o FOLDER/ --write roll=day"
    )


def packed(state: dict[str, Any]) -> bytes:
    """Values, arrays and frames as bytes."""
    parts: list[bytes] = []
    entries: dict[str, Any] = {}
    for name, value in state.items():
        if isinstance(value, np.ndarray):
            content = np.ascontiguousarray(value).tobytes()
            entry = {"array": value.dtype.str, "shape": list(value.shape)}
        elif isinstance(value, pl.DataFrame):
            stream = io.BytesIO()
            value.write_ipc(stream)
            content, entry = stream.getvalue(), {"frame": True}
        else:
            entries[name] = {"value": value}
            continue
        entries[name] = {**entry, "size": len(content), "crc": zlib.crc32(content)}
        parts.append(content)
    head = json.dumps({"format": FORMAT, "entries": entries}).encode()
    return b"".join([str(zlib.crc32(head)).encode(), b"\n", head, b"\n", *parts])


def unpacked(content: bytes) -> dict[str, Any]:
    """What `packed` was given; raises ValueError where a byte is not as it was written."""
    checksum, head, rest = content.split(b"\n", 2)
    if checksum != str(zlib.crc32(head)).encode():
        raise ValueError("the head is damaged")
    described = json.loads(head)
    if described["format"] not in (FORMAT, EARLIER):
        raise CheckpointError(
            "checkpoint: was written by another version of Shoal; resume with that version, or end"
            " the stream by it and begin a new checkpoint"
        )
    state: dict[str, Any] = {}
    at = 0
    for name, entry in described["entries"].items():
        if "value" in entry:
            state[name] = entry["value"]
            continue
        part = rest[at : at + entry["size"]]
        at += entry["size"]
        if len(part) != entry["size"] or zlib.crc32(part) != entry["crc"]:
            raise ValueError("an entry is damaged")
        if "frame" in entry:
            state[name] = pl.read_ipc(io.BytesIO(part))
        else:
            state[name] = np.frombuffer(part, dtype=entry["array"]).reshape(entry["shape"]).copy()
    if len(rest) != at:
        raise ValueError("something follows the last entry")
    if described["format"] == EARLIER and "gate/known" in state:
        # its gate stood apart and counted for itself
        state["core/known"] = state.pop("gate/known")
        counted = {"least": "least", "loss": "loss", "starred": "suppressed"}
        state["tally"] |= {name: state.pop(f"gate/{old}") for name, old in counted.items()}
    return state


# The checkpoint of a stream that several processes work on, in a folder that all of them read.
#
#     checkpoint
#     |- stream.json              what all must agree on
#     |- certificate.json         of all partitions, once the last has ended
#     `- partition-<p>
#        |- snapshot-<step>-<digest>   the last two
#        |- dead-letters.jsonl, certificate.json, status.json
#        `- ...
#
# The folder does not say which snapshot counts: the broker holds its step and digest. So a
# process that has lost the partition, however long ago, can't replace what another has committed:
# it writes a file of another name, which nobody reads.


SHARED_FORMAT = "shoal.shared-stream/1"
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
    def read(cls, folder: Path) -> "SharedStream | None":
        """What was agreed, None in a new folder; raises CheckpointError if it is damaged."""
        try:
            content = json.loads((folder / NAME).read_text(encoding="utf-8"))
            if content.pop("format") != SHARED_FORMAT:
                raise ValueError("another format")
            return cls(**content)
        except FileNotFoundError:
            return None
        except (OSError, *UNFIT):
            raise CheckpointError(
                f"checkpoint '{folder}': its {NAME} is damaged or of another version;"
                " restore it, or publish into a new topic with a new folder"
            ) from None

    def begin(self, folder: Path) -> "SharedStream":
        """Writes it down; returns what another process has written if that was faster."""
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        draft = folder / f"{NAME}.{secrets.token_hex(8)}.tmp"
        Checkpoint(folder).write(
            draft, json.dumps({"format": SHARED_FORMAT, **asdict(self)}).encode()
        )
        try:
            with suppress(FileExistsError):
                os.link(draft, folder / NAME)
        finally:
            draft.unlink()
        return SharedStream.read(folder) or self


class SharedCheckpoint(Checkpoint):
    """The snapshots of one partition."""

    def make(self) -> None:
        """Makes the folder if it is missing; raises CheckpointError if that fails."""
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as failed:
            raise self._unusable(failed) from None

    def save(self, step: int, state: dict[str, Any]) -> str:
        """Keeps what a step would commit; returns its digest."""
        content = packed(state)
        digest = hashlib.sha256(content).hexdigest()
        draft = self.folder / f"snapshot-{step}-{secrets.token_hex(8)}.tmp"
        self.write(draft, content)
        os.replace(draft, self.folder / self.named(step, digest))
        self._sync_folder()
        return digest

    def load_step(self, step: int, digest: str) -> dict[str, Any]:
        """The snapshot that the broker names; raises CheckpointError if it is missing or damaged.

        The stream does not start over then: that would publish the same people a second time.
        """
        try:
            content = (self.folder / self.named(step, digest)).read_bytes()
        except OSError:
            raise CheckpointError(
                f"checkpoint '{self.folder}': lacks the snapshot of step {step}, from which the"
                " broker says to resume; restore the folder where every process of the stream reads"
                " it, or publish into a new topic"
            ) from None
        if hashlib.sha256(content).hexdigest() != digest:
            raise self.damaged
        return self._unpacked(content)

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
            if os.fstat(handle).st_size < at:
                raise moved(path)
            while content:
                written = os.pwrite(handle, content, at)
                at, content = at + written, content[written:]
            if self._durable:
                os.fsync(handle)
        finally:
            os.close(handle)

    @staticmethod
    def named(step: int, digest: str) -> str:
        return f"snapshot-{step}-{digest[:SHOWN]}"

    def _snapshots(self) -> list[tuple[int, str, Path]]:
        paths = self.folder.iterdir() if self.folder.is_dir() else ()
        found = ((_SNAPSHOT.match(path.name), path) for path in paths)
        return [(int(named[1]), named[2], path) for named, path in found if named]
