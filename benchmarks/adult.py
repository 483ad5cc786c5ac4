"""Adult for the benchmarks: the complete records, and as many more as wanted by resampling with jitter."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import polars as pl

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
ORDINALS = ("workclass", "marital-status", "occupation", "race", "sex", "native-country")
EIGHT = ("age", "workclass", "education-num", "marital-status", "occupation", "race", "sex", "native-country")
SIX = ("age", "education-num", "hours-per-week", "marital-status", "occupation", "native-country")
JITTER = {"age": 3, "hours-per-week": 4, "education-num": 1}


def complete() -> pl.DataFrame:
    """The 30,162 complete training records, in file order."""
    lines = (DATA / "adult" / "adult.data").read_text().splitlines()
    rows = [line.split(", ") for line in lines if line and "?" not in line]
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    return frame.with_columns(pl.col(name).cast(pl.Int64) for name in ("age", "education-num", "hours-per-week"))


def resampled(n: int, seed: int = 1) -> pl.DataFrame:
    """n records drawn with replacement; the numbers shaken a little, inside their range."""
    rng = np.random.default_rng(seed)
    frame = complete()
    drawn = frame[rng.integers(0, frame.height, n)]
    shaken = []
    for name, width in JITTER.items():
        least, most = int(frame[name].min()), int(frame[name].max())
        values = drawn[name].to_numpy() + rng.integers(-width, width + 1, n)
        shaken.append(pl.Series(name, np.clip(values, least, most)))
    return drawn.with_columns(shaken)


def policy(quasi: tuple[str, ...], k: int, **more: object) -> dict:
    """Ordinals by descending frequency, numbers over the range of the data; income is sensitive."""
    attributes: dict = {}
    for name in quasi:
        attributes[name] = {"role": "quasi", **({"order": "frequency"} if name in ORDINALS else {"type": "number"})}
    attributes["income"] = {"role": "sensitive"}
    promises = [{"model": "k-anonymity", "k": k}]
    return {"version": 1, "attributes": attributes, "promises": promises, "other": "drop", **more}
