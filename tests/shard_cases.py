"""Streams in shards for tests: folders of files, and the local runs that they must equal."""

from pathlib import Path

import polars as pl

import shoal
from shoal.data.table import Table
from shoal.policy.policy import Policy
from shoal.streams.shard import shard_seed
from shoal.streams.shard_files import Sharding


def source(folder: Path, frame: pl.DataFrame, files: int = 8, form: str = ".csv") -> Path:
    """The records in files of different sizes, by name in their order."""
    folder.mkdir()
    ends = [frame.height * (at + 1) ** 2 // files**2 for at in range(files)]
    for number, (first, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        write(frame[first:end], folder / f"{number:03d}{form}")
    return folder


def write(frame: pl.DataFrame, path: Path) -> None:
    if path.suffix == ".csv":
        frame.write_csv(path)
    else:
        frame.write_parquet(path)


def local_runs(policy: Policy, frame: pl.DataFrame, shards: int) -> list[pl.DataFrame]:
    """What each shard publishes, as a stream of its records alone."""
    people = policy.tables.with_person(Table(frame)).frame
    shard = Sharding(policy.subject, shards, policy.model.seed).of(people)
    found = []
    for number in range(shards):
        stream = shoal.stream(policy.with_seed(shard_seed(policy.model.seed, number)))
        part = frame.filter(pl.Series(shard == number))
        found.append(pl.concat([stream.push(part), stream.flush()]))
    return found


def published(folder: Path, shard: int) -> pl.DataFrame:
    """What a shard has published, batch after batch."""
    paths = sorted(folder.glob(f"*-shard-{shard:04d}.parquet"))
    return pl.concat([pl.read_parquet(path) for path in paths])


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a release, without its manifest."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix == ".parquet"}
