"""Folders of files as source and sink of a stream in shards: which shard a person is in, the
records of each shard in the order of files and records, and the batches in the output.

A person's shard follows from a keyed hash of their name and from nothing else, so everybody is in
one shard only, in whatever file their records are.
"""

import hashlib
import hmac
import os
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors.feeds import feed_of
from shoal.connectors.files import file_sha256, umask
from shoal.connectors.location import MANIFEST, PARQUET, Location
from shoal.connectors.outputs import describe_file, draft_beside, remove_stale_signature
from shoal.data.person_names import names_of
from shoal.data.regular_files import sync
from shoal.data.room import new_file
from shoal.data.schema import Fields, Render
from shoal.data.stream import Piece
from shoal.data.table import Table, as_text
from shoal.errors import ANOTHER_STREAM, RESTORE, TWICE, CheckpointError, InputError
from shoal.protocols import Source
from shoal.streams.publishing import StreamRequest

PLACE = "\0place"
"""The column of a split file that no source can name: where a record stood in its file."""


@dataclass(frozen=True)
class NewFile:
    """A file of the folder that was not read yet."""

    path: str
    size: int

    @property
    def name(self) -> str:
        return Path(self.path).name


@dataclass(frozen=True)
class Sharding:
    """How people are assigned to shards. subject: their column, None if each record is a person."""

    subject: str | None
    shards: int
    seed: int

    def of(self, frame: pl.DataFrame) -> np.ndarray:
        """(n,) int64 shards: HMAC-SHA-256 of the person's name, or of all cells, modulo shards."""
        if self.subject is not None:
            names = names_of(frame[self.subject]).fill_null("")
        else:
            cells = [as_text(frame[name]).fill_null("\0") for name in sorted(frame.columns)]
            names = pl.select(pl.concat_str(cells, separator="\x1f")).to_series()
        if not len(names):
            return np.zeros(0, dtype=np.int64)
        people, key = names.unique(), f"shoal.shard/1:{self.seed}".encode()
        hashed = [hmac.digest(key, name.encode(), "sha256") for name in people.to_list()]
        shard = [int.from_bytes(one[:8]) % self.shards for one in hashed]
        found = names.replace_strict(people, pl.Series(shard, dtype=pl.Int64))
        return found.cast(pl.Int64).to_numpy()


@dataclass(frozen=True)
class Split:
    """A file whose records were sorted by shard, in their order within each.

    path: of the sorted records. counts: records of each shard. records: how many the file has,
    with those that can't be read. bad: their places and reasons. types: of the columns, by name.
    """

    name: str
    size: int
    sha256: str
    records: int
    path: str
    counts: tuple[int, ...]
    bad: tuple[tuple[int, str], ...]
    types: dict[str, str]


@dataclass(frozen=True)
class Share:
    """The records of one shard in a split file. before: records of the stream before this file."""

    path: str
    first: int
    count: int
    before: int
    bad: tuple[tuple[int, str], ...] = ()


def new_files(folder: str, taken: Mapping[str, int], most: int) -> tuple[list[NewFile], bool]:
    """The next files by name, up to a number of bytes but one at least; and whether more follow.

    taken: the sizes of those that were read already, by name. Names that begin with `.` or `_` are
    skipped. Raises InputError, and CheckpointError where a file that was read has another size.
    """
    try:
        with os.scandir(folder) as entries:
            found = [entry for entry in entries if entry.name[0] not in "._"]
            folders = [entry for entry in found if not entry.is_file()]
            files = [NewFile(os.path.abspath(entry.path), entry.stat().st_size) for entry in found]
    except OSError as failed:
        raise InputError(
            f"source '{folder}': can't be read ({failed.strerror}); with an engine, name a folder"
            " of files that all workers see"
        ) from None
    if folders:
        raise InputError(
            f"source '{folder}': holds other folders; an engine reads a stream from the files of"
            " one folder"
        )
    changed = sum(taken.get(one.name, one.size) != one.size for one in files)
    if changed:
        raise CheckpointError(
            f"source '{folder}': {changed} of its files changed after the stream had read them; put"
            " them back, and give new records in new files"
        )
    fresh = sorted((one for one in files if one.name not in taken), key=lambda one: one.name)
    kinds = {Location(one.path).kind for one in fresh}
    if len(kinds) > 1:
        raise InputError(
            f"source '{folder}': holds files of {len(kinds)} formats ({', '.join(sorted(kinds))});"
            " give files of one"
        )
    size = 0
    batch: list[NewFile] = []
    for one in fresh:
        size += one.size
        if batch and size > most:
            break
        batch.append(one)
    return batch, len(batch) < len(fresh)


def column_names(path: str, fields: Fields) -> list[str]:
    with closing(feed_of(path, fields=fields)) as feed:
        return feed.names


@dataclass(frozen=True)
class Splitter:
    """A task: sorts the records of one file by shard. names: the columns that it must have."""

    sharding: Sharding
    names: tuple[str, ...]
    folder: Path
    request: StreamRequest

    def __call__(self, file: NewFile) -> Split:
        pieces: list[Piece] = []
        with closing(feed_of(file.path, fields=self.request.policy.fields)) as feed:
            if sorted(feed.names) != sorted(self.names):
                raise InputError(
                    f"file '{file.name}': has other columns than the stream; give every file the"
                    " same"
                )
            while not pieces or not pieces[-1].at_end:
                pieces.append(feed.read())
            records, sha256 = int(feed.place["records"]), str(feed.sha256)
        _require_unchanged(file)
        frame = pl.concat([piece.frame.select(self.names) for piece in pieces])
        place = np.concatenate([piece.position for piece in pieces])
        shard = self.sharding.of(self.request.policy.tables.with_person(Table(frame)).frame)
        order = np.argsort(shard, kind="stable")
        path = new_file(self.folder)
        frame.with_columns(pl.Series(PLACE, place))[order].write_ipc(path)
        counts = np.bincount(shard, minlength=self.sharding.shards).tolist()
        bad = tuple(one for piece in pieces for one in piece.bad)
        types = {name: str(kind) for name, kind in frame.schema.items()}
        return Split(file.name, file.size, sha256, records, str(path), tuple(counts), bad, types)


def _require_unchanged(file: NewFile) -> None:
    """Raises InputError where a file grew since it was listed, or went: it may not be whole."""
    try:
        size = os.stat(file.path).st_size
    except FileNotFoundError:
        size = -1
    if size != file.size:
        raise InputError(
            f"file '{file.name}': changed while it was read, and nothing of it was published; write"
            " files in another folder, and move them into the source once they are whole"
        )


def shares_of(splits: Sequence[Split], before: int) -> list[tuple[Share, ...]]:
    """What each shard gets of these files, in their order. before: records read before them.

    What can't be read as a record is nobody's: shard 0 lists it.
    """
    shards = len(splits[0].counts)
    found: list[list[Share]] = [[] for _ in range(shards)]
    for split in splits:
        firsts = np.cumsum((0, *split.counts[:-1])).tolist()
        for shard, (first, count) in enumerate(zip(firsts, split.counts, strict=True)):
            bad = split.bad if shard == 0 else ()
            if count or bad:
                found[shard].append(Share(split.path, first, count, before, bad))
        before += split.records
    return [tuple(shares) for shares in found]


class ShardFeed(Source):
    """The new records of one shard, all at once. at_end: nothing will follow them."""

    def __init__(self, names: Sequence[str], shares: Sequence[Share], at_end: bool) -> None:
        self.names = list(names)
        self._shares, self._at_end = shares, at_end

    def read(self) -> Piece:
        frames = [
            pl.scan_ipc(share.path).slice(share.first, share.count).collect()
            for share in self._shares
            if share.count
        ]
        before = [share.before for share in self._shares if share.count]
        bad = [(share.before + at, why) for share in self._shares for at, why in share.bad]
        if not frames:
            nothing = pl.DataFrame(schema=dict.fromkeys(self.names, pl.String))
            return Piece(nothing, np.zeros(0, np.int64), bad, self._at_end)
        position = [
            frame[PLACE].to_numpy() + first for frame, first in zip(frames, before, strict=True)
        ]
        frame = pl.concat(frames).drop(PLACE)
        return Piece(frame, np.concatenate(position), bad, self._at_end)

    @property
    def place(self) -> dict[str, int]:
        """The driver's checkpoint knows which files were read."""
        return {}

    def go_to(self, place: dict[str, int]) -> None:
        """The driver says which records come next."""


# The released folder, which grows by batches: files of Parquet, and a manifest that names them.
#
# A batch is put once it is committed elsewhere: each file takes its name by one rename, then the
# new manifest does. Until then readers refuse the folder, as it holds files that were not named.
# Whoever is killed in between puts the same again.


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
                f"output '{self.path}': exists, but the checkpoint is new; name the checkpoint that"
                f" it belongs to. A new folder is published from the beginning: {TWICE}"
            )

    def require_as_left(self, entries: list[dict[str, Any]]) -> None:
        """Raises CheckpointError where a file that was put is not there, or has another size."""
        sizes = {one.name: one.stat().st_size for one in self._content()}
        changed = sum(sizes.get(entry["name"]) != entry["bytes"] for entry in entries)
        if changed:
            raise CheckpointError(
                f"output '{self.path}': {changed} of its files changed or went since the stream"
                f" wrote them; put them back, and copy files to other places rather than move them;"
                f" or {ANOTHER_STREAM}"
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
                " know, so that is an older copy; restore the newest one, or"
                f" {ANOTHER_STREAM}"
            )

    def _content(self) -> list[Path]:
        return [one for one in self.path.iterdir() if one.is_file()] if self.path.is_dir() else []

    def put(self, source: Path, entry: dict[str, Any]) -> None:
        """Puts a committed file in its place; raises CheckpointError where it was changed."""
        copy = self._draft / str(entry["name"])
        shutil.copyfile(source, copy)
        if file_sha256(copy) != entry["sha256"]:
            raise CheckpointError(f"checkpoint: its file '{source.name}' is damaged; {RESTORE}")
        self._take_place(copy)

    def certify(self, certificate: str) -> None:
        """The manifest, which lets readers see what was put."""
        copy = self._draft / MANIFEST
        copy.write_text(certificate, encoding="utf-8")
        self._take_place(copy)
        remove_stale_signature(self.path / MANIFEST)

    def described(self, entries: Sequence[Mapping[str, Any]], render: Render) -> Mapping[str, Any]:
        """The certificate's `output`: a folder of one format is described as a file of it."""
        whole = describe_file(self.path, f"{self.path}{PARQUET}", digest(entries), render)
        return {**whole, "files": entries}

    def _take_place(self, copy: Path) -> None:
        self.path.mkdir(exist_ok=True)
        copy.chmod(0o666 & ~umask())
        sync(copy)
        os.replace(copy, self.path / copy.name)
        sync(self.path)


@contextmanager
def batch_folder(output: str) -> Iterator[BatchFolder]:
    """The folder for its one writer. What a dead one left beside it is deleted."""
    with draft_beside(Path(output), f"output '{output}'", is_folder=True) as draft:
        yield BatchFolder(output, draft)


def digest(entries: Sequence[Mapping[str, Any]]) -> str:
    """One SHA-256 of all files: that of the lines that sha256sum prints about them."""
    by_name = sorted(entries, key=lambda entry: str(entry["name"]))
    lines = "".join(f"{entry['sha256']}  {entry['name']}\n" for entry in by_name)
    return hashlib.sha256(lines.encode()).hexdigest()
