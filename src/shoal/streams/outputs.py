"""What a run of a stream writes: rows for everybody, and private files for their owner.

Every output only ever grows. A step collects what it adds in memory; once the checkpoint has
committed the step, each addition is appended to its output, at a known length, so
that putting it twice changes nothing.
"""

import gzip
import io
import os
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl

from shoal.connectors.dialect import default_dialect
from shoal.connectors.location import Location
from shoal.data.schema import Role, Schema
from shoal.errors import RESTORE, TWICE, CheckpointError, PromiseError
from shoal.protocols import Sink
from shoal.streams import kafka
from shoal.streams.checkpoint import Checkpoint, SharedCheckpoint, moved
from shoal.streams.options import StreamOptions
from shoal.streams.stream_tables import TableSink

PRIVATE = ("people", "trace")  # outputs that show more than the release: their owner's alone
PIECE = 1 << 20  # bytes of a file that are read at once
TAIL = 4096  # bytes at the end of an output, by which a file in its place is known


class RowFormat:
    """Rows as bytes that can follow one another, and back."""

    def __init__(self, options: StreamOptions, schema: Schema) -> None:
        self._kind = options.format
        self._compresses = options.place.is_packed
        self._separator = default_dialect(self._kind).delimiter
        self._schema = schema
        self.names = [attribute.name for attribute in schema.published]
        self._nothing = pl.DataFrame(schema=dict.fromkeys(self.names, pl.String))
        self.in_parts = self._kind.is_columnar
        """Whether rows are collected in files of their own and joined at the end."""

    @property
    def has_header(self) -> bool:
        return not self._kind.is_typed

    def header(self) -> bytes:
        return self.pack(self._nothing, header=True)

    def pack(self, frame: pl.DataFrame, header: bool = False) -> bytes:
        """The rows, with the names of their columns only where asked."""
        buffer = io.BytesIO()
        if self.in_parts:
            frame.write_parquet(buffer)
        elif self._kind.is_json:
            frame.write_ndjson(buffer)
        else:
            frame.write_csv(buffer, include_header=header, separator=self._separator)
        if self._compresses:  # members follow one another
            return gzip.compress(buffer.getvalue(), compresslevel=6, mtime=0)
        return buffer.getvalue()

    def read_back(self, content: bytes) -> pl.DataFrame:
        """The rows as their readers will see them."""
        if self._compresses:
            content = gzip.decompress(content)
        if self.in_parts:
            return pl.read_parquet(io.BytesIO(content))
        if self._kind.is_json:
            return pl.read_ndjson(io.BytesIO(content))
        # few distinct cells: text is held once per value, and counted by it
        schema = {
            a.name: pl.Categorical if a.role is Role.QUASI else pl.String
            for a in self._schema.published
        }
        return pl.read_csv(
            io.BytesIO(content),
            has_header=False,
            infer_schema=False,
            separator=self._separator,
            schema=schema,
        )

    def joined(self, first: bytes, more: bytes) -> bytes:
        """Packed rows behind others: of a form that can't grow, all of them packed again."""
        if not self.in_parts or not first or not more:
            return first + more
        rows = pl.concat([self.read_back(first), self.read_back(more)])
        content = self.pack(rows)
        if not self.read_back(content).equals(rows):
            raise PromiseError("the rows of a step are not read as they were measured; withheld")
        return content

    def join_parts(self, parts: Sequence[Path], draft: Path, more: bytes = b"") -> None:
        """Writes one table of all parts and of the packed rows `more`, piece by piece."""
        tables = [pl.scan_parquet(part) for part in parts]
        tables += [self.read_back(more).lazy()] if more else []
        rows = pl.concat(tables) if tables else self._nothing.lazy()
        try:
            if self._kind.is_parquet:
                rows.sink_parquet(draft)
            else:
                rows.sink_ipc(draft)
        except pl.exceptions.ComputeError:  # a full disk, in Polars' words
            raise OSError from None


class Outputs:
    """All outputs of a run, by name: `sink`, `dead_letters` and, where asked, `people`, `trace`."""

    def __init__(self, options: StreamOptions, checkpoint: Checkpoint, schema: Schema) -> None:
        self.format = RowFormat(options, schema)
        self._options = options
        self._checkpoint = checkpoint
        is_shared = isinstance(checkpoint, SharedCheckpoint)
        paths = self._paths(lists_people=schema.subject is not None and not is_shared)
        self.by_name = {name: Output(path, name in PRIVATE) for name, path in paths.items()}
        self._sink: Sink | None = None  # where rows go, if not to a file that grows
        if options.place.is_standard:
            self._sink = StandardOutput()
        elif self.format.in_parts:
            self._sink = PartsSink(paths["sink"], checkpoint)

    def _paths(self, lists_people: bool) -> dict[str, Path]:
        """The files that grow: what is published, and what is private."""
        options = self._options
        folder = self._checkpoint.folder
        inside = self.format.in_parts or options.by_transactions
        paths = {"sink": folder / "rows" if inside else Path(options.sink)}
        if lists_people:
            paths["people"] = folder / "people"
        if options.trace is not None:
            paths["trace"] = Path(options.trace)
        kept = options.checkpoint is not None
        paths["dead_letters"] = options.bad_records if kept else folder / "dead-letters"
        return paths

    def __getitem__(self, name: str) -> "Output":
        return self.by_name[name]

    def __contains__(self, name: str) -> bool:
        return name in self.by_name

    def connect(self, identity: str, step: int) -> None:
        """Opens the topic or table that rows go to, if any. step: the last that was committed."""
        if self._options.place.is_topic:
            self._sink = kafka.TopicSink(self._options.sink, identity, step)
        if self._options.place.is_table:
            self._sink = TableSink(self._options.place.address, self.format.names, identity, step)

    def certify(self, certificate: str) -> None:
        assert isinstance(self._sink, TableSink)
        self._sink.certify(certificate)

    def close(self) -> None:
        if self._sink is not None:
            self._sink.close()

    def add_rows(self, content: bytes) -> None:
        """Adds packed rows to the sink, below a header where it has none yet."""
        sink = self["sink"]
        if self.format.has_header and not sink.length and not sink.pending:
            content = self.format.header() + content
        sink.pending = self.format.joined(sink.pending, content)

    def require_untouched(self) -> None:
        """Raises CheckpointError where a new stream would go into a file that has content."""
        what = "is there already; name a new file"
        if self._options.checkpoint is not None:
            what = (
                "exists, but the checkpoint is new; name its own checkpoint. A new file begins"
                f" anew: {TWICE}"
            )
        for name in (self._options.sink, self._options.trace or "-"):
            is_file = Location(name).is_path and Path(name).is_file()
            if is_file and Path(name).stat().st_size:
                raise CheckpointError(f"output '{name}': {what}")

    def taken_rows(self) -> bytes:
        """Takes the rows of the step out of the buffer; the commit itself writes them."""
        sink = self["sink"]
        rows, sink.pending = sink.pending, b""
        return rows

    def snapshot(self) -> dict[str, dict[str, int]]:
        """How much of each output is committed."""
        outputs = self.by_name.items()
        return {
            "lengths": {name: output.length for name, output in outputs},
            "crcs": {name: output.crc for name, output in outputs},
        }

    def write_segment(self, step: int) -> dict[str, dict[str, Any]]:
        """Keeps what the step adds in a hidden file, so that it can be put after a crash.

        Returns what a snapshot has to hold for that. Raises CheckpointError where a file is not as
        the step before left it.
        """
        for name, output in self.by_name.items():
            self._require_as_left(name, output)
            if output.pending and not output.length and self._grows(name):
                # so that it is missed where it is moved away after its first step
                self._checkpoint.put(output.path, 0, b"", output.is_private)
        pending = b"".join(output.pending for output in self.by_name.values())
        self._checkpoint.write(self._segment(step), pending)
        return {
            "sizes": {name: len(output.pending) for name, output in self.by_name.items()},
            "segment": {"size": len(pending), "sha256": sha256(pending).hexdigest()},
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        for name, length in state["lengths"].items():
            output = self[name]
            output.length, output.begun = int(length), str(state.get("paths", {}).get(name, ""))
            # earlier checkpoints hold those of private files alone
            known = state["crcs"].get(name)
            output.crc = output.committed_crc() if known is None else int(known)

    def remove_segment(self, step: int) -> None:
        for is_put in (False, True):
            self._segment(step, is_put).unlink(missing_ok=True)

    def _segment(self, step: int, is_put: bool = False) -> Path:
        return self._checkpoint.folder / f"segment-{step}{'.put' if is_put else ''}"

    def _note_put(self, step: int) -> None:
        """From now on all of a step has to stand in its files: what lacks was taken away."""
        with suppress(FileNotFoundError):  # it was noted, or there is no checkpoint
            self._segment(step).rename(self._segment(step, is_put=True))

    def put_segment(self, step: int, state: Mapping[str, Any]) -> None:
        """Puts what a snapshot has committed where it belongs, whether it stood there or not.

        Raises CheckpointError where the segment or an output is not as it was written.
        """
        is_put = self._segment(step, is_put=True).exists()
        try:
            content = self._segment(step, is_put).read_bytes()
        except FileNotFoundError:
            raise CheckpointError(
                f"checkpoint '{self._checkpoint.folder}': lacks a file that it had written;"
                f" {RESTORE}"
            ) from None
        known, digest = state["segment"], sha256(content).hexdigest()
        if len(content) != known["size"] or digest != known["sha256"]:
            raise self._damaged(self._segment(step, is_put).name)
        start = 0
        for name, size in state["sizes"].items():
            output = self[name]
            self._require_put(name, output, size, is_put)
            output.pending = content[start : start + size]
            start += size
            self._put(name, step)
        self._note_put(step)
        self._remove_other_segments(step)

    def _remove_other_segments(self, step: int) -> None:
        """Removes what a run left that was killed before it removed them: they show people."""
        for path in self._checkpoint.folder.glob("segment-*"):
            if path != self._segment(step, is_put=True):
                path.unlink()

    def _damaged(self, name: str) -> CheckpointError:
        return CheckpointError(
            f"checkpoint '{self._checkpoint.folder}': its file '{name}' is damaged; {RESTORE}"
        )

    def require_as_put(self) -> None:
        """Raises CheckpointError where an output is not what was put, before it is certified."""
        for name, output in self.by_name.items():
            self._require_put(name, output, 0, is_put=True)

    def _require_put(self, name: str, output: "Output", more: int, is_put: bool) -> None:
        """Raises CheckpointError where an output is neither as before a step nor as after it.

        more: bytes of the step. Unless they were put, what stands behind the committed bytes may be
        half of them, and is written again.
        """
        asked = self._options
        if name == "sink" and (
            asked.by_transactions or asked.place.is_standard or asked.is_rolling
        ):
            return
        least = output.length + (more if is_put and self._grows(name) else 0)
        found = sum(path.stat().st_size for path in output.files)
        fits = least <= found <= output.length + more
        if more and self._grows(name):
            fits &= output.path.exists()
        if fits and output.committed_crc() == output.crc:
            output.require_moved()
            return
        if output.path.parent == self._checkpoint.folder:
            raise self._damaged(output.path.name)
        raise moved(output.path, output.begun)

    def _require_as_left(self, name: str, output: "Output") -> None:
        """Raises CheckpointError where a file that this run wrote is not as it left it."""
        if not self._grows(name) or output.stamp is None:
            return
        try:
            with open(output.path, "rb") as file:
                found = os.fstat(file.fileno())
                file.seek(max(output.length - TAIL, 0))
                tail = file.read(TAIL)
        except FileNotFoundError:
            raise moved(output.path) from None
        is_same = output.stamp == (found.st_dev, found.st_ino) and tail.endswith(output.tail)
        if not is_same or found.st_size != output.length:
            raise moved(output.path)

    def _grows(self, name: str) -> bool:
        return name != "sink" or self._sink is None

    def put(self, step: int) -> None:
        """Appends all that is pending to the outputs."""
        for name in self.by_name:
            self._put(name, step)
        self._note_put(step)

    def _put(self, name: str, step: int) -> None:
        output = self[name]
        if self._sink is not None and not self._grows(name):
            self._sink.put(step, output.pending)
        elif output.pending or output.path.exists():
            # behind the committed length, so that the same again changes nothing
            path, rows = output.path, output.pending
            self._checkpoint.put(path, output.length, rows, output.is_private)
            found = path.stat()
            output.stamp, output.tail = (found.st_dev, found.st_ino), (output.tail + rows)[-TAIL:]
        output.length += len(output.pending)
        output.crc = zlib.crc32(output.pending, output.crc)
        output.pending = b""


# Where the bytes of a step go: a file that grows, a folder of parts, or standard output.
#
# A step that is put twice stands there once, as in a topic or table. Standard output can't keep
# that promise, so a stream that writes to it has no checkpoint to resume from.


@dataclass
class Output:
    """A file that only ever grows, or a folder of parts; how much of it is committed, and what
    comes next.

    crc: of what is committed. tail: its last bytes, at most TAIL. stamp: device and inode of the
    file, once this run has written it. begun: the path that the last run wrote.
    """

    path: Path
    is_private: bool = False
    length: int = 0
    crc: int = 0
    pending: bytes = b""
    tail: bytes = b""
    stamp: tuple[int, int] | None = None
    begun: str = ""

    def require_moved(self) -> None:
        """Raises CheckpointError where the file stands where it was begun, too: two copies of a
        stream would publish the same people apart.
        """
        begun = Path(self.begun)
        if self.begun and begun.exists() and begun != self.path.resolve():
            raise CheckpointError(
                f"output '{self.path}': is a copy of '{self.begun}', which is still there; resume"
                f" the stream there, or remove that file. Where two copies go on, {TWICE}"
            )

    @property
    def files(self) -> list[Path]:
        """The file, or the parts of the folder, as far as there are any."""
        parts = sorted(self.path.glob("*.parquet")) if self.path.is_dir() else [self.path]
        return [path for path in parts if path.exists()]

    def committed_crc(self) -> int:
        """Of the bytes that stand where the committed ones should."""
        left, crc = self.length, 0
        for path in self.files:
            with open(path, "rb") as file:
                while piece := file.read(min(PIECE, left)):
                    left -= len(piece)
                    crc = zlib.crc32(piece, crc)
        return crc


class PartsSink(Sink):
    """A folder in which each step is a file of its own, for formats that can't grow."""

    def __init__(self, folder: Path, checkpoint: Checkpoint) -> None:
        self._folder = folder
        self._checkpoint = checkpoint

    def put(self, step: int, rows: bytes) -> None:
        """Writes the file of the step, whole, in place of one that is there already."""
        if rows:
            self._folder.mkdir(exist_ok=True)
            self._checkpoint.put(self._folder / f"{step:09d}.parquet", 0, rows)


class StandardOutput(Sink):
    """Standard output, which takes every step as it comes."""

    def put(self, step: int, rows: bytes) -> None:
        """Writes the rows, and lets their reader see them at once."""
        sys.stdout.buffer.write(rows)
        sys.stdout.buffer.flush()
