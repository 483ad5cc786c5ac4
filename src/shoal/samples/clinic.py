"""An invented clinic: people, their visits and what was prescribed there, in three tables.

Most people come once or twice, some often. What they suffer from follows their age and comes back,
visits of one person lie weeks apart, and drugs follow the disease, so that a person's rows together
say much more than each of them.
"""

from datetime import date
from importlib.resources import files

import numpy as np
import polars as pl

from shoal.data.linked import PEOPLE
from shoal.samples.patients import DISEASES

KINDS = ("appointment", "referral", "walk-in", "ambulance")
DRUGS = (
    "paracetamol amoxicillin salbutamol ibuprofen omeprazole sucralfate mesalazine ramipril "
    "bisoprolol amiodarone codeine diclofenac"
).split()
FIRST_DAY, DAYS = date(2023, 1, 1), 730
MOST_VISITS = 12

POLICY = (files(__package__) / "clinic.policy.yaml").read_text("utf-8")


def generate_tables(n: int, seed: int) -> dict[str, pl.DataFrame]:
    """n people with all of their visits and drugs; the same seed gives the same tables."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(5.0, 9.5, n), 0, 99).astype(np.int64)
    visits = np.minimum(1 + rng.geometric(1 / (1.3 + age / 80), n) - 1, MOST_VISITS)
    who = np.repeat(np.arange(n), visits)
    number = np.arange(len(who)) - np.repeat(np.cumsum(visits) - visits, visits)
    disease = _diseases(age, who, number, rng)
    gaps = np.where(number == 0, 0, 1 + rng.geometric(1 / 45, len(who)))
    since = np.cumsum(gaps) - np.repeat(np.cumsum(gaps)[np.cumsum(visits) - visits], visits)
    day = np.minimum(rng.integers(0, DAYS // 2, n)[who] + since, DAYS)
    kind = np.minimum(rng.poisson(0.4 + (age[who] > 70), len(who)), len(KINDS) - 1)
    patient = _names("P", np.arange(n), n)
    visit = _names("V", rng.permutation(len(who)), len(who))
    drugs = rng.binomial(3, 0.35, len(who))
    of_visit = np.repeat(np.arange(len(who)), drugs)
    drug = (disease[of_visit] + rng.binomial(2, 0.2, len(of_visit))) % len(DRUGS)
    order = rng.permutation(len(who))
    return {
        PEOPLE: pl.DataFrame(
            {
                "patient": patient,
                "age": age,
                "sex": pl.Series(["female", "male"]).gather(rng.integers(0, 2, n)),
                "district": pl.Series(
                    "13" + pl.Series(rng.integers(0, 12, n) + 100).cast(pl.String)
                ),
            }
        ),
        "visits": pl.DataFrame(
            {
                "visit": visit,
                "patient": patient.gather(who),
                "day": pl.select(pl.lit(FIRST_DAY) + pl.duration(days=pl.lit(pl.Series(day))))
                .to_series()
                .cast(pl.Date)
                .cast(pl.String),
                "kind": pl.Series(KINDS).gather(kind),
                "disease": pl.Series(DISEASES).gather(disease),
            }
        )[order],
        "drugs": pl.DataFrame(
            {
                "visit": visit.gather(of_visit),
                "drug": pl.Series(DRUGS).gather(drug),
                "packs": 1 + rng.poisson(0.5, len(of_visit)),
            }
        ),
    }


def _diseases(
    age: np.ndarray, who: np.ndarray, number: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """What each visit is about: in half of all later ones, what the first one was about."""
    first = (age // 9 + rng.binomial(6, 0.3, len(age))) % len(DISEASES)
    other = rng.integers(0, len(DISEASES), len(who))
    returns = (number == 0) | (rng.random(len(who)) < 0.5)
    return np.where(returns, first[who], other)


def _names(letter: str, numbers: np.ndarray, count: int) -> pl.Series:
    return letter + pl.Series(numbers).cast(pl.String).str.zfill(len(str(count)))
