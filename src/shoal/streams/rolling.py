"""A released folder to which one stream adds a file whenever enough has come, or a day is over.

Rows wait as parts in the checkpoint. Where a file is due, or the stream is stopped, a step joins
them with its own rows, and its commit names the file; then the file is put, the manifest that names
it, and the parts go. What is killed in between is put again.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl

from shoal.connectors.files import file_sha256
from shoal.connectors.location import PARQUET
from shoal.connectors.outputs import describe_file
from shoal.data.certificate import Certificate
from shoal.data.room import bytes_of
from shoal.data.schema import Render
from shoal.streams.outputs import Output, RowFormat
from shoal.streams.shard import Rows
from shoal.streams.shard_files import NAMED, BatchFolder, digest

Certify = Callable[[], Certificate]


class RollingFolder:
    """The files of a folder that are committed, and the parts of the next one."""

    def __init__(self, folder: BatchFolder, roll: str, checkpoint: Path) -> None:
        self._folder, self._checkpoint = folder, checkpoint
        self._most = None if roll == "day" else bytes_of(roll)
        self._entries: list[dict[str, Any]] = []
        self._until = 0  # the last step whose rows are in them

    def require_untouched(self) -> None:
        """Raises CheckpointError where a new stream would go into a folder that holds something."""
        self._folder.require_untouched()

    def add_due(
        self, step: int, sink: Output, rows: RowFormat, nothing: pl.DataFrame, at_end: bool
    ) -> None:
        """Names a file of all parts and of what the sink gets in this step, if one is due."""
        parts = sink.files
        size = sum(part.stat().st_size for part in parts) + len(sink.pending)
        if self._most is None:
            is_due = bool(parts) and _day(parts[0].stat().st_mtime) < _day()
        else:
            is_due = size >= self._most
        # a stream without any row still names its columns
        if not (is_due or (at_end and (size or not self._entries))):
            return
        name = NAMED.format(batch=len(self._entries) + 1, shard=0)
        draft = self._checkpoint / name
        rows.join_parts(sink.path, nothing, draft, sink.pending)
        records = pl.scan_parquet(draft).select(pl.len()).collect().item()
        found = Rows(name, records, draft.stat().st_size, file_sha256(draft))
        self._entries, self._until = [*self._entries, found.entry(name)], step

    def put(self, sink: Output, certify: Certify) -> None:
        """Puts the file that was committed last, if it waits, with its manifest; its parts go."""
        draft = self._checkpoint / self._entries[-1]["name"] if self._entries else None
        if draft is not None and draft.exists():
            self._folder.put(draft, self._entries[-1])
            self.certify(certify())
        for part in sink.files:
            if int(part.stem) <= self._until:
                part.unlink()
        if draft is not None:
            draft.unlink(missing_ok=True)

    def certify(self, certificate: Certificate) -> None:
        """Writes the manifest, which is the certificate."""
        self._folder.certify(certificate.to_json())

    def take_up(self, state: Mapping[str, Any]) -> None:
        """Goes back to what a snapshot has committed; raises CheckpointError where that is older
        than the folder.
        """
        self._entries, self._until = state["rolled"], int(state["rolled_until"])
        self._folder.require_no_later(self._entries)

    def require_as_left(self) -> None:
        """Raises CheckpointError where a file that was put is not there, or has another size."""
        self._folder.require_as_left(self._entries)

    @property
    def records(self) -> int:
        """Rows in the files that are committed."""
        return sum(int(entry["records"]) for entry in self._entries)

    @property
    def snapshot(self) -> Mapping[str, Any]:
        """The part of a snapshot that `take_up` wants."""
        return {"rolled": self._entries, "rolled_until": self._until}

    def described(self, render: Render) -> Mapping[str, Any]:
        """What a certificate says of the folder."""
        path, whole = self._folder.path, digest(self._entries)
        # a folder of one format is described as a file of it
        return {
            **describe_file(path, f"{path}{PARQUET}", whole, render),
            "files": self._entries,
        }


def _day(seconds: float | None = None) -> int:
    """The day, in UTC, of a time or of now."""
    when = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return when.toordinal()
