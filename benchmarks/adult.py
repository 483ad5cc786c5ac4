"""Adult for the benchmarks: the complete records, and as many more as wanted by resampling with
jitter.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

DATA = Path(os.environ.get("SHOAL_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
COLUMNS = (
    "age workclass fnlwgt education education-num marital-status occupation relationship race sex "
    "capital-gain capital-loss hours-per-week native-country income"
).split()
ORDINALS = ("workclass", "marital-status", "occupation", "race", "sex", "native-country")
EIGHT = (
    "age",
    "workclass",
    "education-num",
    "marital-status",
    "occupation",
    "race",
    "sex",
    "native-country",
)
SIX = ("age", "education-num", "hours-per-week", "marital-status", "occupation", "native-country")
JITTER = {"age": 3, "hours-per-week": 4, "education-num": 1}


def complete() -> pl.DataFrame:
    """The 30,162 complete training records, in file order."""
    lines = (DATA / "adult" / "adult.data").read_text().splitlines()
    rows = [line.split(", ") for line in lines if line and "?" not in line]
    frame = pl.DataFrame(rows, schema=COLUMNS, orient="row")
    return frame.with_columns(
        pl.col(name).cast(pl.Int64) for name in ("age", "education-num", "hours-per-week")
    )


def resampled(n: int, seed: int = 1, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
    """n records drawn with replacement; the numbers shaken a little, inside their range.

    A seed gives the same records whatever columns are asked for.
    """
    rng = np.random.default_rng(seed)
    frame = complete()
    drawn = frame.select(columns)[rng.integers(0, frame.height, n)]
    shaken = []
    for name, width in JITTER.items():
        steps = rng.integers(-width, width + 1, n)
        if name in columns:
            least, most = extent(frame[name])
            shaken.append(pl.Series(name, np.clip(drawn[name].to_numpy() + steps, least, most)))
    return drawn.with_columns(shaken)


def records(n: int | None, columns: Sequence[str] = COLUMNS) -> pl.DataFrame:
    """Adult itself, or n records resampled from it."""
    return complete().select(columns) if n is None else resampled(n, columns=columns)


def extent(column: pl.Series) -> tuple[int, int]:
    """The least and the greatest of a column of integers, or of their text."""
    numbers = column.cast(pl.Int64).to_numpy()
    return int(numbers.min()), int(numbers.max())


def policy(quasi: tuple[str, ...], k: int, **more: object) -> dict[str, Any]:
    """Ordinals by descending frequency, numbers over the range of the data; income is sensitive."""
    attributes: dict[str, Any] = {}
    for name in quasi:
        attributes[name] = {
            "role": "quasi",
            **({"order": "frequency"} if name in ORDINALS else {"type": "number"}),
        }
    attributes["income"] = {"role": "sensitive"}
    promises = [{"model": "k-anonymity", "k": k}]
    return {"version": 1, "attributes": attributes, "promises": promises, "other": "drop", **more}


def declared(policy: dict[str, Any], frame: pl.DataFrame) -> dict[str, Any]:
    """The same policy with every order and domain spelled out, so that a release can be read
    without the original.
    """
    attributes = {name: dict(attribute) for name, attribute in policy["attributes"].items()}
    for name, attribute in attributes.items():
        if attribute.get("order") == "frequency":
            counts = frame[name].value_counts().sort(["count", name], descending=[True, False])
            attribute["order"] = counts[name].to_list()
        elif attribute.get("type") == "number":
            attribute["domain"] = list(extent(frame[name]))
    return {**policy, "attributes": attributes}


def over_hierarchies(k: int) -> dict[str, Any]:
    """All eight over the hierarchies that ARX ships, `education` for its number; paths are relative
    to `DATA`.
    """
    names = [name.removesuffix("-num") for name in EIGHT]
    attributes: dict[str, Any] = {
        n: {"role": "quasi", "hierarchy": f"adult/hierarchies_arx/{n}.csv"} for n in names
    }
    attributes["income"] = {"role": "sensitive"}
    return {
        "version": 1,
        "attributes": attributes,
        "promises": [{"model": "k-anonymity", "k": k}],
        "other": "drop",
    }
