"""Invented purchases in the order in which they happen: customers return, and tastes drift.

A few customers buy often and most seldom. With time the young grow in number, baskets grow dearer,
and what is bought shifts from the shop to the web, so that clusters made early fit later records
less well.
"""

from importlib.resources import files

import numpy as np
import polars as pl

CITIES = {
    "north": ("Aldmoor", "Birkholm", "Cairnby", "Dunwick"),
    "coast": ("Eastquay", "Fernhaven", "Gullport"),
    "south": ("Hollingford", "Ivesham", "Juniper Hill", "Kestrel Vale", "Larkmead"),
}
CATEGORIES = {
    "daily": ("groceries", "pharmacy", "household"),
    "leisure": ("books", "games", "garden", "sport"),
    "durable": ("electronics", "furniture", "clothing"),
}
CHANNELS = ("shop", "phone", "web", "app")
ALL_CITIES = tuple(city for cities in CITIES.values() for city in cities)
ALL_CATEGORIES = tuple(kind for kinds in CATEGORIES.values() for kind in kinds)
PER_CUSTOMER = 6  # records for each customer, on average

POLICY = (files(__package__) / "purchases.policy.yaml").read_text("utf-8")


def generate(n: int, seed: int) -> pl.DataFrame:
    """n purchases in order of time; the same seed gives the same stream."""
    rng = np.random.default_rng(seed)
    customers = max(1, n // PER_CUSTOMER)
    activity = rng.pareto(1.5, customers) + 0.2
    who = rng.choice(customers, n, p=activity / activity.sum())
    passed = np.arange(n) / max(n - 1, 1)
    age = np.clip(16 + rng.gamma(3.0, 12.0, customers), 16, 95).astype(np.int64)
    home = rng.integers(0, len(ALL_CITIES), customers)
    income = np.round(
        np.clip(rng.lognormal(10.3, 0.5, customers) * (0.7 + age / 90), 0, 200_000), -2
    ).astype(np.int64)
    young = rng.random(n) < 0.4 * passed  # new, young customers take the place of others
    age_now = np.where(young, np.minimum(age[who], 16 + age[who] % 20), age[who])
    who_now = np.where(young, customers + who, who)
    away = rng.random(n) < 0.1
    city = np.where(away, rng.integers(0, len(ALL_CITIES), n), home[who])
    taste = (
        rng.integers(0, len(ALL_CATEGORIES), n) + (age_now // 15) * (rng.random(n) < 0.5)
    ) % len(ALL_CATEGORIES)
    remote = np.clip(0.2 + 0.5 * passed - age_now / 300, 0.05, 0.9)
    channel = np.where(
        rng.random(n) < remote, 2 + (rng.random(n) < passed), (rng.random(n) < 0.1).astype(np.int64)
    )
    spent = rng.lognormal(3.0, 0.8, n) * (1 + passed) * (1 + (taste >= 7) * 4)
    spent = np.minimum(spent, 400)  # nobody is far from all others
    amount = np.ceil(spent / 5).astype(np.int64) * 5  # to the cent, it would be one person's own
    minutes = np.cumsum(rng.exponential(2.0, n)).astype(np.int64)
    start = pl.datetime(2025, 1, 1)
    return pl.DataFrame(
        {
            "customer": (
                pl.Series(who_now)
                .cast(pl.String)
                .str.zfill(len(str(2 * customers)))
                .str.replace("^", "C")
            ),
            "at": (
                pl.select(start + pl.duration(minutes=pl.lit(pl.Series(minutes))))
                .to_series()
                .dt.strftime("%Y-%m-%d %H:%M")
            ),
            "age": age_now,
            "income": income[who],
            "city": pl.Series(ALL_CITIES).gather(city),
            "channel": pl.Series(CHANNELS).gather(channel),
            "category": pl.Series(ALL_CATEGORIES).gather(taste),
            "amount": amount,
        }
    )
