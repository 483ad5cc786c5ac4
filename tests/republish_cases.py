"""Increments of invented wearers, and ledgers made of them, for tests."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from sample_policies import content_of
from shoal.ledgers.republish import Republication, republish_file
from shoal.policy.policy import Policy

POLICY = content_of(
    {
        "who": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "height": {"role": "quasi", "type": "number", "domain": [120, 220]},
        "sex": "quasi",
        "activity": "sensitive",
        "beat": "plain",
    },
    4,
    seed=3,
)


def wearers(n: int, seed: int, prefix: str | None = None) -> pl.DataFrame:
    """n people, everybody with one record; other seeds are other people."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "who": [f"{prefix or seed}-{i}" for i in range(n)],
            "age": rng.integers(15, 80, n),
            "height": np.clip(rng.normal(172, 11, n), 130, 210).astype(int),
            "sex": rng.choice(["f", "m"], n),
            "activity": rng.choice(["walk", "sit", "stand", "lie"], n),
            "beat": rng.integers(50, 120, n),
        }
    )


def policy(
    method: str = "crp", k: int = 4, roles: dict[str, Any] | None = None, **parameters
) -> Policy:
    """roles: of columns that have another one, or other settings, and of further columns."""
    content = content_of(POLICY["attributes"] | (roles or {}), k, seed=POLICY["seed"])
    return Policy.from_dict(content).with_method(method, parameters)


def append(
    ledger: Path, frame: pl.DataFrame, asked: Policy | None = None, **options
) -> Republication:
    """Republishes a frame by way of a file beside the ledger."""
    path = ledger.parent / "increment.csv"
    frame.write_csv(path)
    return republish_file(str(path), asked or policy(), ledger, **options)


def save(place: Path) -> None:
    """Keeps a copy of the ledger L, with its private part, to go back to."""
    for name in ("L", "L.private"):
        shutil.copytree(place / name, place / "before" / name)


def take_back(place: Path) -> None:
    """Puts the copy that was saved in the ledger's place."""
    for name in ("L", "L.private"):
        shutil.rmtree(place / name)
        shutil.copytree(place / "before" / name, place / name)


def grown(
    ledger: Path, releases: int = 3, n: int = 30, asked: Policy | None = None, **options
) -> Path:
    """A ledger of that many releases of n people each."""
    for seed in range(1, releases + 1):
        append(ledger, wearers(n, seed), asked, **options)
    return ledger
