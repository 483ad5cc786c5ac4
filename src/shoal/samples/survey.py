"""Invented interviews of households: a sample of a country, with the weight of everybody in it.

Households of one to nine people live in twelve districts of four regions. Small districts are
sampled densely, so that their people stand for few others, and large ones thinly; all of a
household have one weight, which was calibrated, so that it is no whole number. Age goes with
schooling and work, and what a household drinks with where it lives.
"""

from importlib.resources import files

import numpy as np
import polars as pl

REGIONS = ("coast", "delta", "hills", "plain")
DISTRICTS = tuple(f"{region}-{part}" for region in REGIONS for part in ("town", "inner", "outer"))
STANDS_FOR = (12, 90, 25, 60, 400, 150, 6, 18, 40, 250, 110, 700)
"""People of the population for each in the sample, by district."""

SIZES = (0.09, 0.14, 0.17, 0.19, 0.16, 0.11, 0.07, 0.04, 0.03)  # shares of households of 1 to 9
EDUCATION = ("none", "primary", "secondary", "college", "university")
WORK = ("child", "pupil", "farm", "trade", "office", "home", "retired")
WATER = ("piped", "well", "truck", "river")
CALIBRATED = 0.25  # standard deviation of the logarithm of a weight within its district

POLICY = (files(__package__) / "survey.policy.yaml").read_text("utf-8")


def generate(n: int, seed: int) -> pl.DataFrame:
    """n people; the same seed gives the same table."""
    rng = np.random.default_rng(seed)
    sizes = rng.choice(len(SIZES), n, p=SIZES) + 1  # n households are more than enough
    home = np.repeat(np.arange(n), sizes)[:n]
    homes = int(home[-1]) + 1
    district = rng.choice(len(DISTRICTS), homes)
    weight = np.array(STANDS_FOR)[district] * np.exp(rng.normal(0, CALIBRATED, homes))
    place = np.arange(n) - np.searchsorted(home, home)  # in the household, the eldest first
    age = _ages(place, rng)
    schooling = _schooling(age, district[home] % 3 == 0, rng)
    river = np.array([0.7, 0.2, 0.1, 0.0]), np.array([0.15, 0.55, 0.1, 0.2])
    chance = np.where((district % 3 == 0)[:, None], *river)
    water = (rng.random(homes)[:, None] > np.cumsum(chance, axis=1)[:, :-1]).sum(axis=1)
    width = len(str(n))
    return pl.DataFrame(
        {
            "person": [f"P{number:0{width}}" for number in rng.permutation(n).tolist()],
            "household": [
                f"H{number:0{width}}" for number in rng.permutation(homes)[home].tolist()
            ],
            "district": pl.Series(DISTRICTS).gather(district[home]),
            "sex": pl.Series(["female", "male"]).gather(rng.integers(0, 2, n)),
            "age": age,
            "education": pl.Series(EDUCATION).gather(schooling),
            "work": pl.Series(WORK).gather(_work(age, schooling, rng)),
            "water": pl.Series(WATER).gather(water[home]),
            "weight": np.maximum(weight, 1).round(2)[home],
        }
    )


def _ages(place: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Two grown-ups first, then children and, now and then, their grandparents."""
    n = len(place)
    grown, child = 19 + rng.gamma(4, 7, n), 18 * rng.random(n) ** 1.2
    elder = rng.normal(68, 8, n)
    others = np.where(rng.random(n) < 0.15, elder, child)
    return np.clip(np.where(place < 2, grown, others), 0, 99).astype(np.int64)


def _schooling(age: np.ndarray, is_town: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """More in towns and among the young; nobody graduates before their time."""
    wished = rng.normal(1.6 + 0.9 * is_town - age / 80, 1.1)
    earliest = np.select([age < 11, age < 17, age < 20, age < 23], [0, 1, 2, 3], 4)
    return np.clip(wished.round(), 0, earliest).astype(np.int64)


def _work(age: np.ndarray, schooling: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    office = rng.random(len(age)) < schooling / 5
    other = rng.choice([2, 3, 5], len(age), p=[0.45, 0.3, 0.25])
    grown = np.where(office, 4, other)
    return np.select([age < 6, age < 16, age > 64], [0, 1, 6], grown)
