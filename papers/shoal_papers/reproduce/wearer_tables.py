"""The growing tables that the re-publication paper is measured on: invented wearers and real ones.

The real ones are 6,264 minutes of 49 people who wore watches (Fuller and others), and windows of
the acceleration of four (`axial_windows`). The paper's own set is not named, and no public one has
many people: to have as many people as it, every minute must be taken for a person of its own, or
the same people return with every increment.
"""

from __future__ import annotations

import gzip
import hashlib
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl
import yaml

from shoal.policy.policy import Policy
from shoal.samples import wearables
from shoal_papers.reproduce import axial_windows
from shoal_papers.reproduce.axial_windows import FEATURES
from shoal_papers.reproduce.data_sets import data_file
from shoal_papers.reproduce.paper import DataSet

INVENTED, SHUFFLED, IN_FILE_ORDER = "invented", "watch, shuffled", "watch, in file order"
WINDOWS = "windows, shuffled"
QUASI = ("age", "height", "weight")
WATCH = "wearables/watch_fitbit.csv.gz"
BODIES, MINUTES = 49, 1200  # of the small made-up table that stands in for the watches
SHUFFLE = 1
NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class WearerTables:
    """Tables of wearers in increments of any size.

    watch: age, height, weight, activity, body; a row is a minute of one of few people.
    windows: the same with features of the acceleration; a row is three seconds of one of four.
    """

    watch: pl.DataFrame
    windows: pl.DataFrame
    data: DataSet

    def increments(self, source: str, size: int, most: int, domain: int = 1) -> list[pl.DataFrame]:
        """The first table and its increments, at most so many, as far as the rows reach."""
        if source == INVENTED:
            frames = [wearables.generate(size, seed, in_steps=False) for seed in range(1, most + 1)]
        else:
            frames = _cut(self._rows(source), size, most)
        return [stretched(frame, domain) for frame in frames]

    def _rows(self, source: str) -> pl.DataFrame:
        if source == IN_FILE_ORDER:
            return self.watch
        rows = self.windows if source == WINDOWS else self.watch
        return rows.sample(fraction=1.0, shuffle=True, seed=SHUFFLE)

    def months(self, count: int, attendance: float) -> list[pl.DataFrame]:
        """Increments to which so many of the watch's people return, with one minute each."""
        people = self.watch["body"].unique(maintain_order=True)
        many = round(attendance * len(people))
        return [
            self.watch.sample(fraction=1.0, shuffle=True, seed=month)
            .unique("body", keep="first", maintain_order=True)
            .head(many)
            .with_columns(wearer=pl.col("body"))
            for month in range(count)
        ]


def _cut(rows: pl.DataFrame, size: int, most: int) -> list[pl.DataFrame]:
    """Increments of this size; every row is taken for a person of its own."""
    rows = rows.with_row_index("wearer")
    return [rows.slice(i * size, size) for i in range(min(most, rows.height // size))]


def stretched(frame: pl.DataFrame, domain: int) -> pl.DataFrame:
    """The same bodies on a scale so many times as wide, measured as many times more finely.

    Every value becomes one of `domain` neighbours; minutes of one body stay alike.
    """
    if domain == 1:
        return frame
    who = frame["body" if "body" in frame.columns else "wearer"]
    finer = {name: [crc32(f"{name}/{one}".encode()) % domain for one in who] for name in QUASI}
    return frame.with_columns(
        (frame[name] * domain + pl.Series(name, steps)).alias(name) for name, steps in finer.items()
    )


def policy_of(
    columns: list[str],
    k: int,
    domain: int = 1,
    weights: Mapping[str, float] = NO_WEIGHTS,
    **over_time: str,
) -> Policy:
    """What is asked of a table with these columns: k, and nothing else, as in the paper.

    `body` is shown, so that we can count people. weights: impact factors other than 1.
    """
    asked: dict[str, Any] = yaml.safe_load(wearables.POLICY)
    attributes = {
        name: asked["attributes"][name] for name in asked["attributes"] if name in columns
    }
    for name in QUASI:
        low, high = attributes[name]["domain"]
        attributes[name]["domain"] = [low * domain, (high + 1) * domain - 1 if domain > 1 else high]
    for name, weight in weights.items():
        attributes[name]["weight"] = weight
    attributes["activity"] |= over_time
    if "body" in columns:
        attributes["body"] = {"role": "sensitive"} | over_time
    attributes |= {
        name: {"role": "sensitive", "type": "number"} for name in columns if name in FEATURES
    }
    promises = [{"model": "k-anonymity", "k": k}]
    return Policy.from_dict(
        asked | {"attributes": attributes, "promises": promises, "other": "drop"}
    )


def read(folder: Path | None, quick: bool, records: int, increments: int) -> WearerTables:
    """The bundled generator and the watches; quick, a made-up table in place of these."""
    invented = io.BytesIO()
    for seed in range(1, increments + 2):
        wearables.generate(records, seed, in_steps=False).write_csv(invented)
    digest = hashlib.sha256(invented.getvalue())
    words = f"invented wearers (shoal sample wearables), {records} and {increments} times {records}"
    rows = (increments + 1) * records
    if quick:
        return WearerTables(
            _made_up(), _made_up_windows(), DataSet(words, rows, digest.hexdigest())
        )
    content = data_file(folder, WATCH).read_bytes()
    digest.update(content)
    watch = _watch(content)
    words += f"; beside them {watch.height:,} minutes of {watch['body'].n_unique()} real wearers"
    windows = axial_windows.windows(axial_windows.read(folder))
    return WearerTables(watch, windows, DataSet(words, rows, digest.hexdigest()))


def _watch(content: bytes) -> pl.DataFrame:
    rows = pl.read_csv(gzip.decompress(content), infer_schema_length=None)
    body = pl.concat_str("age", "gender", "height", "weight", separator="/").alias("body")
    return rows.select(*QUASI, "activity", body)


def _made_up() -> pl.DataFrame:
    """Minutes of a few invented people, person by person."""
    bodies = wearables.generate(BODIES, 1, in_steps=False)
    minutes = wearables.generate(MINUTES, 2, in_steps=False).select("activity")
    owner = np.arange(MINUTES) * BODIES // MINUTES
    return pl.concat(
        [bodies.select(*QUASI, body="wearer")[owner], minutes], how="horizontal"
    ).select(*QUASI, "activity", "body")


def _made_up_windows() -> pl.DataFrame:
    """Windows of invented samples of four people."""
    bodies = wearables.generate(4, 1, in_steps=False).select(*QUASI, body="wearer")
    activities = wearables.generate(MINUTES, 2, in_steps=False)["activity"]
    kinds = activities.cast(pl.Enum(wearables.ACTIVITIES))
    return axial_windows.windows(axial_windows.made_up(bodies, kinds, SHUFFLE))
