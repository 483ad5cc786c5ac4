"""Invented hospital visits: about one patient in twelve comes twice.

Age shifts what people suffer from, the district shifts their education, and charges follow the
disease, so that hiding people costs something and sensitive values are worth hiding.
"""

from importlib.resources import files
from typing import Any

import numpy as np
import polars as pl

FIRST = "Ada Ben Cleo Dara Emil Fay Gil Hana Ivo June Kai Lea Milo Nia Otis".split()
LAST = "Arden Birk Calder Doyle Egan Frost Garner Hale Ives Jarrow Keel Lund Moss".split()
EDUCATION = ("none", "primary", "secondary", "vocational", "bachelor", "master", "doctorate")
DISEASES = (
    "influenza pneumonia asthma bronchitis gastritis ulcer colitis hypertension angina "
    "arrhythmia fracture sprain"
).split()
RETURN_SHARE = 1 / 12

POLICY = (files(__package__) / "patients.policy.yaml").read_text("utf-8")


def generate(n: int, seed: int) -> pl.DataFrame:
    """n visits; the same seed gives the same table."""
    rng = np.random.default_rng(seed)
    people = max(1, n - int(n * RETURN_SHARE))
    who = np.concatenate([np.arange(people), rng.integers(0, people, n - people)])
    who = who[rng.permutation(n)]
    person = _people(people, rng)
    age = person["age"][who]
    disease = _diseases(age, rng)
    charge = np.round(np.exp(rng.normal(5.5, 0.5, n)) * (1 + disease % 5), -1).astype(np.int64)
    return pl.DataFrame(
        {
            "name": person["name"].gather(who),
            "patient": pl.Series(who).cast(pl.String).str.zfill(len(str(n))).str.replace("^", "P"),
            "age": age,
            "sex": pl.Series(["female", "male"]).gather(person["sex"][who]),
            "zip": pl.Series(person["zip"][who]).cast(pl.String).str.zfill(5),
            "education": pl.Series(EDUCATION).gather(person["education"][who]),
            "disease": pl.Series(DISEASES).gather(disease),
            "charge": charge,
            "ward": pl.Series(["north", "south", "east"]).gather(rng.integers(0, 3, n)),
        }
    )


def _people(count: int, rng: np.random.Generator) -> dict[str, Any]:
    age = np.clip(rng.gamma(5.0, 9.5, count), 0, 99).astype(np.int64)
    district = rng.integers(0, 12, count)
    schooling = np.clip(rng.normal(2.2 + district / 6, 1.3, count), 0, 6).round().astype(np.int64)
    earliest = np.clip((age - 4) // 4, 0, 6)
    schooling = np.minimum(schooling, earliest)  # nobody graduates before their time
    names = pl.Series(FIRST).gather(rng.integers(0, len(FIRST), count)) + " "
    return {
        "age": age,
        "sex": rng.integers(0, 2, count),
        "zip": 13000 + district * 10 + np.minimum(rng.geometric(0.35, count) - 1, 9),
        "education": schooling,
        "name": names + pl.Series(LAST).gather(rng.integers(0, len(LAST), count)),
    }


def _diseases(age: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The young break bones and catch colds, the old have hearts."""
    young, old = np.clip(1 - age / 60, 0, 1), np.clip(age / 60 - 0.3, 0, 1)
    weight = np.ones((len(age), len(DISEASES)))
    weight[:, :4] += young[:, None]
    weight[:, 7:10] += 2 * old[:, None]
    weight[:, 10:] += 1.5 * young[:, None]
    chance = np.cumsum(weight, axis=1) / weight.sum(axis=1, keepdims=True)
    return (rng.random(len(age))[:, None] > chance[:, :-1]).sum(axis=1)
