"""Windows of raw three-axis acceleration as records: from samples to features.

Ugulino and others, Wearable Computing: Classification of Body Postures and Movements (PUC-Rio,
UCI): four accelerometers (waist, thigh, ankle, arm), about eight samples a second, of four people.
It has what the re-publication paper names of its own set: age, height, weight and three axes.

samples: age, height (cm), weight, body, activity and twelve axes, a row an instant, in order of
time. windows: the same with the mean and the standard deviation of each axis over `SAMPLES` rows.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors import files
from shoal.errors import InputError
from shoal.samples.wearables import EFFORT, GRAVITY
from shoal_papers.reproduce.data_sets import data_file

SERIES = "wearables/puc_rio_har.csv.gz"
SHA256 = "c34c4e41635e2d25"
SAMPLES = 24  # of a window, about three seconds
AXES = tuple(f"{axis}{sensor}" for sensor in range(1, 5) for axis in "xyz")
FEATURES = tuple(f"{name}_{axis}" for axis in AXES for name in ("mean", "sd"))


def read(folder: Path | None) -> pl.DataFrame:
    """The real samples; one, whose last axis has a date in it, is left out.

    Raises InputError for any other file, whose damage we do not know.
    """
    source = files.read_as(data_file(folder, SERIES))
    if not source.sha256.startswith(SHA256):
        raise InputError(f"data set '{SERIES}': its SHA-256 is not {SHA256}...; fetch it again")
    raw = source.frame
    height = pl.col("how_tall_in_meters").str.replace(",", ".").cast(pl.Float64)
    samples = raw.select(
        *(pl.col(name).cast(pl.Int64) for name in ("age", "weight")),
        (100 * height).round().cast(pl.Int64).alias("height"),
        pl.col("user").alias("body"),
        pl.col("class").alias("activity"),
        *(pl.col(axis).cast(pl.Int64, strict=False) for axis in AXES),
    )
    return samples.drop_nulls()


def windows(samples: pl.DataFrame) -> pl.DataFrame:
    """Whole windows of one person and one activity, none overlapping, in order of time."""
    run = pl.struct("body", "activity").rle_id()
    parts = samples.with_columns(run.alias("run")).with_columns(
        (pl.int_range(pl.len()).over("run") // SAMPLES).alias("window")
    )
    axes = (
        summary.round(1)
        for axis in AXES
        for summary in (pl.mean(axis).alias(f"mean_{axis}"), pl.std(axis).alias(f"sd_{axis}"))
    )
    who = (pl.first(name) for name in ("age", "height", "weight", "activity", "body"))
    found = parts.group_by("run", "window", maintain_order=True).agg(*who, *axes, rows=pl.len())
    return found.filter(pl.col("rows") == SAMPLES).drop("run", "window", "rows")


def made_up(bodies: pl.DataFrame, activities: pl.Series, seed: int) -> pl.DataFrame:
    """Invented samples in place of the real ones: a window of each activity, dealt to the bodies.

    bodies: age, height, weight, body.
    """
    rng = np.random.default_rng(seed)
    rows = len(activities) * SAMPLES
    kind = np.repeat(activities.to_physical().to_numpy(), SAMPLES)
    owner = np.repeat(np.arange(len(activities)) * bodies.height // len(activities), SAMPLES)
    gait = rng.normal(1.0, 0.2, (bodies.height, len(AXES)))[owner]
    still = np.tile(GRAVITY[kind], 4) * gait
    axes = still + rng.normal(0, 1, (rows, len(AXES))) * EFFORT[kind][:, None]
    return pl.concat(
        [
            bodies[owner],
            pl.DataFrame({"activity": np.repeat(activities.to_numpy(), SAMPLES)}),
            pl.DataFrame(np.rint(10 * axes), schema=list(AXES)),
        ],
        how="horizontal",
    )


def named(known: pl.DataFrame, later: pl.DataFrame) -> dict[str, float]:
    """How far published features alone name people.

    named: the share of the later windows whose nearest known window is of the same person, each
    feature having variance 1 among the known. chance: the same by guessing whoever is most often
    known.
    """
    before, after = (frame.select(FEATURES).to_numpy() for frame in (known, later))
    spread = np.maximum(before.std(axis=0), 1e-9)
    nearest = [(((before - one) / spread) ** 2).sum(axis=1).argmin() for one in after]
    people = known["body"].to_numpy()
    usual = known["body"].value_counts().sort("count", "body", descending=True)["body"][0]
    return {
        "named": float((people[nearest] == later["body"].to_numpy()).mean()),
        "chance": float((later["body"] == usual).mean()),
    }
