"""Invented wearers of a tracker: bodies, what they do, and summaries of a three-axis accelerometer.

Weight follows height and age, height follows sex, as in people, so that few combinations are common
and many are rare. Sensors follow the activity, and each body moves a little in its own way. Other
seeds are other people, so that two seeds are two increments of one growing table.
"""

from importlib.resources import files

import numpy as np
import polars as pl

ACTIVITIES = ("lying", "sitting", "standing", "walking", "stairs", "running")
SHARES = (0.12, 0.3, 0.16, 0.26, 0.07, 0.09)
GRAVITY = np.array(
    [
        (0.1, 9.4, 1.2),
        (2.5, 9.0, 2.2),
        (9.7, 0.6, 0.9),
        (9.4, 1.2, 1.4),
        (9.1, 1.6, 1.9),
        (8.8, 2.1, 2.4),
    ]
)
EFFORT = np.array([0.05, 0.12, 0.25, 2.1, 2.9, 6.2])

POLICY = (files(__package__) / "wearables.policy.yaml").read_text("utf-8")


def generate(n: int, seed: int, in_steps: bool = True) -> pl.DataFrame:
    """n wearers with one minute each; the same table for a seed, other people for another.

    in_steps: bodies in whole steps, of which several people have each; else as they are measured.
    """
    rng = np.random.default_rng(seed)
    age, height, weight = _bodies(n, rng, in_steps)
    activity = rng.choice(len(ACTIVITIES), n, p=SHARES)
    gait = rng.normal(1.0, 0.12, n)
    axes = GRAVITY[activity] + rng.normal(0.0, 0.35, (n, 3))
    effort = EFFORT[activity] * gait * (1 + 0.004 * (80 - weight)) * rng.lognormal(0.0, 0.15, n)
    width = len(str(n))
    return pl.DataFrame(
        {
            "wearer": [f"W{seed}-{i:0{width}d}" for i in range(n)],
            "age": age,
            "height": height,
            "weight": weight,
            "activity": pl.Series(ACTIVITIES).gather(activity),
            **{f"acc_{axis}": np.round(axes[:, j], 2) for j, axis in enumerate("xyz")},
            "effort": np.round(effort, 2),
        }
    )


def _bodies(
    n: int, rng: np.random.Generator, in_steps: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Age in years, height in cm, weight in kg; in steps of 5, 5 and 10 the end of a published
    interval is seldom one person's own.
    """
    age = np.clip(16 + rng.gamma(3.2, 7.5, n), 16, 95)
    is_man = rng.random(n) < 0.5
    shrunk = 0.06 * np.maximum(age - 45, 0)  # people lose height with age
    height = np.where(is_man, rng.normal(177.5, 7.1, n), rng.normal(164.5, 6.5, n)) - shrunk
    index = np.exp(rng.normal(np.log(22.6 + 0.07 * np.minimum(age - 16, 45)), 0.155, n))
    weight = index * (height / 100) ** 2
    if not in_steps:
        return (
            age.astype(np.int64),
            np.clip(np.rint(height), 130, 220).astype(np.int64),
            np.clip(np.rint(weight), 30, 220).astype(np.int64),
        )
    return (
        _in_steps(age, 5),
        _in_steps(np.clip(height, 130, 220), 5),
        _in_steps(np.clip(weight, 30, 220), 10),
    )


def _in_steps(numbers: np.ndarray, step: int) -> np.ndarray:
    return step * np.rint(numbers / step).astype(np.int64)
