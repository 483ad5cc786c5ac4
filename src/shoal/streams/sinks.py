"""Where the bytes of a step go: a file that grows, a folder of parts, or standard output.

Each is a `Sink`, as a topic is: a step that is put twice stands there once. Standard output can't
keep that promise, so a stream that writes to it has no checkpoint to resume from.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from shoal.streams.checkpoint import Checkpoint


@dataclass
class Output:
    """A file that only ever grows, how much of it is committed, and what comes next.

    crc: of what is committed, if the output is private; readers of the others compare the hash in
    the certificate.
    """

    path: Path
    is_private: bool = False
    length: int = 0
    crc: int = 0
    pending: bytes = b""


class FileSink:
    """A file that ends with what was put last, behind what is committed."""

    def __init__(self, output: Output, checkpoint: Checkpoint) -> None:
        self._output = output
        self._checkpoint = checkpoint

    def put(self, step: int, rows: bytes) -> None:
        """Writes behind the committed length, so that the same again changes nothing."""
        output = self._output
        if rows or output.path.exists():
            self._checkpoint.put(output.path, output.length, rows, output.is_private)

    def close(self) -> None:
        """Nothing is left open between two steps."""


class PartsSink:
    """A folder in which each step is a file of its own, for formats that can't grow."""

    def __init__(self, folder: Path, checkpoint: Checkpoint) -> None:
        self._folder = folder
        self._checkpoint = checkpoint

    def put(self, step: int, rows: bytes) -> None:
        """Writes the file of the step, whole, in place of one that is there already."""
        if rows:
            self._folder.mkdir(exist_ok=True)
            self._checkpoint.put(self._folder / f"{step:09d}.parquet", 0, rows)

    def close(self) -> None:
        """Nothing is left open between two steps."""


class StandardOutput:
    """Standard output, which takes every step as it comes."""

    def put(self, step: int, rows: bytes) -> None:
        """Writes the rows, and lets their reader see them at once."""
        sys.stdout.buffer.write(rows)
        sys.stdout.buffer.flush()

    def close(self) -> None:
        """Standard output belongs to the process."""
