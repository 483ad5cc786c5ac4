"""Releases of invented people whom several of them hold, for tests of joint audits."""

import numpy as np
import polars as pl

import naive_beside as naive
import shoal
from sample_policies import content_of

HOSPITAL = content_of(
    {
        "person": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "town": "quasi",
        "disease": "sensitive",
    },
    3,
    render={"order": "input"},
)
SALES = content_of(
    {
        "customer": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "income": {"role": "quasi", "type": "number", "domain": [0, 90]},
        "diagnosis": "sensitive",
    },
    3,
    render={"order": "input"},
)


def people(n: int, seed: int, ids: range) -> tuple[pl.DataFrame, pl.DataFrame]:
    """What a hospital and a shop hold of n people each, drawn from the same ones.

    Everybody has one age, and one disease, in both.
    """
    rng = np.random.default_rng(seed)
    ages = rng.integers(18, 80, len(ids))
    ills = rng.choice(["flu", "gout", "asthma", "ulcer"], len(ids))
    here, there = (np.sort(rng.permutation(len(ids))[:n]) for _ in range(2))
    hospital = pl.DataFrame(
        {
            "person": [f"p{ids[i]}" for i in here],
            "age": ages[here],
            "town": rng.choice(list("abc"), n),
            "disease": ills[here],
        }
    )
    shop = pl.DataFrame(
        {
            "customer": [f"p{ids[i]}" for i in there],
            "age": ages[there],
            "income": rng.integers(0, 90, n),
            "diagnosis": ills[there],
        }
    )
    return hospital, shop


def out_of(original: pl.DataFrame, asked: dict = HOSPITAL, k: int | None = None) -> tuple:
    """A release that is out, with its policy and what is behind it. k: another one."""
    asked = asked if k is None else with_k(asked, k)
    return shoal.publish(original, asked).data, asked, original


def with_k(asked: dict, k: int) -> dict:
    return asked | {"promises": [{"model": "k-anonymity", "k": k}]}


def classes(released: pl.DataFrame, names, quasi) -> dict:
    """Person -> the set of their classes, by nothing of Shoal's audit."""
    found: dict = {}
    for name, cells in zip(names, released.select(quasi).rows(), strict=True):
        found.setdefault(name, set()).add(cells)
    return found


def values(released: pl.DataFrame, quasi, name) -> dict:
    """Class -> the values that it shows."""
    shown: dict = {}
    for cells, value in zip(released.select(quasi).rows(), released[name].to_list(), strict=True):
        shown.setdefault(cells, set()).add(value)
    return shown


def expected(releases, k):
    """People in several releases, how many of them remain among fewer than k, alone, the least."""
    held = naive.members(releases)
    sizes = [len(naive.candidates(releases, p, held)) for p in naive.several(releases)]
    below, alone = sum(size < k for size in sizes), sum(size < 2 for size in sizes)
    return {
        "people": len(sizes),
        "below_k": below,
        "alone": alone,
        "least": min(sizes, default=None),
    }


def others_of(*releases, **asked):
    """Other releases as Python names them: tuples of a release, its policy, its original and its
    trace, or folders of ledgers. asked: what else a file of them may say.
    """
    names = ("release", "policy", "original", "trace")
    parts = [one if isinstance(one, tuple) else (one,) for one in releases]
    return {"releases": [dict(zip(names, part, strict=False)) for part in parts], **asked}


def together(first, *releases, **asked):
    """What an audit of the first release finds of all of them."""
    trace = first[3] if len(first) > 3 else None
    return shoal.audit(*first[:3], trace=trace, others=others_of(*releases, **asked))["beside"]
