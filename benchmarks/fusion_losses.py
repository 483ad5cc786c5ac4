"""What 777 invented people lose when three owners fuse them, and when one owner could."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Any

import polars as pl
import yaml

import shoal
from shoal.samples import bank

PEOPLE, SEED, K = 900, 3, 10
# (method, settings, l) -> gcp with five and six quasi-identifiers
PROTOTYPE: tuple[tuple[str, dict[str, Any], int, float | None, float | None], ...] = (
    ("tds", {"score": "gain-ratio"}, 1, 0.67, 0.72),
    ("tds", {"score": "gain"}, 1, 0.69, 0.74),
    ("tds", {"score": "gain-per-loss"}, 1, 0.71, 0.75),
    ("mondrian", {}, 1, 0.30, 0.30),
    ("rounded-partition", {}, 1, 0.23, 0.23),
    ("party-mondrian", {}, 1, None, 0.49),
    ("party-mondrian", {"hulls": True}, 1, None, 0.36),
)
GROUPS = {1: 61, 2: 60}


def rows() -> Iterator[tuple[str, float, tuple[float, ...]]]:
    """What, the prototype's figure, and ours."""
    for method, more, _, *prototypes in PROTOTYPE:
        for many, prototype in zip((5, 6), prototypes, strict=True):
            if prototype is not None:
                told = " ".join((method, *(f"{n}={v}" for n, v in more.items())))
                found = _released(method, more, many, 1)
                yield (
                    f"gcp of 777 people, {many} attributes, {told}",
                    prototype,
                    (found["utility"]["gcp"],),
                )
    for l, prototype in GROUPS.items():
        groups = float(_released("party-mondrian", {}, 6, l)["classes"]["count"])
        yield f"groups of party-mondrian, l = {l}", prototype, (groups,)


def _released(method: str, more: dict[str, Any], many: int, l: int) -> Any:
    """The certificate of a release. many: without `district` where 5."""
    promises: list[dict[str, Any]] = [{"model": "k-anonymity", "k": K}]
    if l > 1:
        promises.append({"model": "l-diversity", "attribute": "loan", "l": l})
    asked = {"promises": promises, "method": {"name": method, **more}}
    dropped = ["district"] if many == 5 else []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not method.startswith("party"):
            content = yaml.safe_load(bank.POLICY) | asked
            for name in dropped:
                del content["attributes"][name]
            return shoal.publish(bank.generate(PEOPLE, SEED).drop(dropped), content).certificate
        parts: dict[str, pl.DataFrame] = bank.generate_parts(PEOPLE, SEED)
        agreement = yaml.safe_load(bank.parties(dict.fromkeys(parts, "none.csv"))) | asked
        return shoal.fuse(agreement, parts).certificate
