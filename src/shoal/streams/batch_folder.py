"""A released folder that grows by batches: files of Parquet, and a manifest that names them.

A batch is put once it is committed elsewhere: each file takes its name by one rename, then the new
manifest does. Until then readers refuse the folder, as it holds files that were not named. Whoever
is killed in between puts the same again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.connectors.folder_manifest import MANIFEST
from shoal.connectors.outputs import remove_stale_signature
from shoal.connectors.sweeping import draft_beside
from shoal.data.regular_files import sync
from shoal.errors import CheckpointError

NAMED = "batch-{batch:06d}-shard-{shard:04d}.parquet"
NAME = re.compile(r"batch-\d{6,}-shard-\d{4,}\.parquet")


class BatchFolder:
    """The folder. Entries: what the manifest says of each file that was committed."""

    def __init__(self, output: str, draft: Path) -> None:
        """draft: a private folder beside it, in which files are made."""
        self.path, self._draft = Path(output), draft

    def require_untouched(self) -> None:
        """Raises CheckpointError where a new stream would go into a folder that holds something."""
        if self.path.exists() and not (self.path.is_dir() and not any(self.path.iterdir())):
            raise CheckpointError(
                f"output '{self.path}': exists, but the checkpoint is new; name a new folder, or"
                " the checkpoint that it belongs to"
            )

    def require_as_left(self, entries: list[dict[str, Any]]) -> None:
        """Raises CheckpointError where a file that was put is not there, or has another size."""
        sizes = {one.name: one.stat().st_size for one in self._content()}
        changed = sum(sizes.get(entry["name"]) != entry["bytes"] for entry in entries)
        if changed:
            raise CheckpointError(
                f"output '{self.path}': {changed} of its files changed or went since the stream"
                " wrote them; put them back, or begin a new checkpoint and a new folder"
            )

    def require_no_later(self, entries: list[dict[str, Any]]) -> None:
        """Raises CheckpointError where batches were put that the checkpoint does not know: it is an
        older copy, and would publish their people a second time.
        """
        known = {entry["name"] for entry in entries}
        later = sum(one.name not in known for one in self._content() if NAME.fullmatch(one.name))
        if later:
            raise CheckpointError(
                f"output '{self.path}': holds {later} files of batches that the checkpoint does not"
                " know, so that is an older copy; restore the newest one, or begin a new checkpoint"
                " and a new folder"
            )

    def _content(self) -> list[Path]:
        return [one for one in self.path.iterdir() if one.is_file()] if self.path.is_dir() else []

    def put(self, source: Path, entry: dict[str, Any]) -> None:
        """Puts a committed file in its place; raises CheckpointError where it is not as it was
        committed.
        """
        copy = self._draft / str(entry["name"])
        shutil.copyfile(source, copy)
        with open(copy, "rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != entry["sha256"]:
                raise CheckpointError(
                    f"checkpoint: its file '{source.name}' is damaged; begin a new one in another"
                    " folder"
                )
        self._take_place(copy)

    def certify(self, certificate: str) -> None:
        """The manifest, which lets readers see what was put."""
        copy = self._draft / MANIFEST
        copy.write_text(certificate, encoding="utf-8")
        self._take_place(copy)
        remove_stale_signature(self.path / MANIFEST)

    def _take_place(self, copy: Path) -> None:
        self.path.mkdir(exist_ok=True)
        copy.chmod(0o666 & ~files.umask())
        sync(copy)
        os.replace(copy, self.path / copy.name)
        sync(self.path)


@contextmanager
def batch_folder(output: str) -> Iterator[BatchFolder]:
    """The folder for its one writer. What a dead one left beside it is deleted."""
    with draft_beside(Path(output), output, is_folder=True) as draft:
        yield BatchFolder(output, draft)


def digest(entries: list[dict[str, Any]]) -> str:
    """One SHA-256 of all files: that of the lines that sha256sum prints about them."""
    by_name = sorted(entries, key=lambda entry: str(entry["name"]))
    lines = "".join(f"{entry['sha256']}  {entry['name']}\n" for entry in by_name)
    return hashlib.sha256(lines.encode()).hexdigest()
