"""A sample with weights: what the method risk loses under a bound of the global risk, beside k and
global recoding under the same bound.
"""

from __future__ import annotations

import hashlib
import time
import warnings
from collections.abc import Iterator
from typing import Any

import polars as pl
import yaml
from measure import Asked, Figure, Result, settings

import shoal
from shoal.data.warnings import ReleaseWarning
from shoal.samples import survey

TITLE = "A sample with weights"
CLAIM = (
    "Loss (gcp) of `shoal sample survey`, and its global risk with households, which may be 3 %."
    " Methods of k take the least k from the one named on at which it is no more."
)
ROWS = 30_000
BOUND = 0.03
SECONDS = 20.0
LESS = 0.85  # of the loss of whichever comes next
SEED = 7
GLOBAL = {"model": "global-risk", "at_most": BOUND, "households": True}
OF_K = ("lattice-peeling", "rounded-partition")
UNDER_BOUND = ("full-domain", "suppress-cells")
STARTS = (3, 5)


def measure(asked: Asked) -> Result:
    frame = survey.generate(asked.rows or ROWS, SEED)
    _published(frame.head(2000), {"name": "risk"}, [GLOBAL])  # compiles
    figures, runs = [], []
    for turn in range(asked.repeats):
        asked.say(f"survey: turn {turn + 1} of {asked.repeats}")
        started = time.process_time()
        own = _published(frame, {"name": "risk"}, [GLOBAL])
        runs.append(time.process_time() - started)
    loss = own["utility"]["gcp"]
    figures += [
        Figure("risk: whole publication", "CPU s", tuple(runs), SECONDS),
        Figure("risk: loss", "gcp", (loss,)),
        Figure("risk: global risk", "share", (_risk(own),), BOUND),
    ]
    losses = []
    for name, certificate in _others(frame, asked):
        figures.append(Figure(f"{name}: loss", "gcp", (certificate["utility"]["gcp"],)))
        figures.append(Figure(f"{name}: global risk", "share", (_risk(certificate),)))
        if _risk(certificate) <= BOUND:
            losses.append(certificate["utility"]["gcp"])
    least = min(losses)
    figures.append(
        Figure("risk: loss, by the least of the others", "times", (loss / least,), LESS, "at most")
    )
    digest = hashlib.sha256(frame.write_csv().encode()).hexdigest()[:16]
    data = {"data": "shoal sample survey", "data_sha256": digest, "seed": SEED}
    return Result(
        "survey", TITLE, CLAIM, settings(asked, rows=frame.height, bound=BOUND, **data), figures
    )


def _others(frame: pl.DataFrame, asked: Asked) -> Iterator[tuple[str, Any]]:
    """Every other method: k as it is named, then raised until the bound holds; or its own search
    under the bound.
    """
    for method in OF_K:
        held: dict[int, Any] = {}
        for start in STARTS:
            k = start
            while True:
                asked.say(f"survey: {method}, k = {k}")
                if k not in held:
                    held[k] = _published(
                        frame, {"name": method}, [_k(k), GLOBAL | {"at_most": 1.0}]
                    )
                certificate = held[k]
                if k == start:
                    yield f"{method}, k = {k}", certificate
                if _risk(certificate) <= BOUND:
                    break
                k += 1
            if k > start:
                yield f"{method}, from k = {start} to {k}, where the bound holds", certificate
    for method in UNDER_BOUND:
        asked.say(f"survey: {method}")
        yield f"{method} under the bound", _published(frame, {"name": method}, [GLOBAL])


def _k(k: int) -> dict[str, Any]:
    return {"model": "k-anonymity", "k": k}


def _risk(certificate: Any) -> float:
    return next(p["measured"] for p in certificate["promises"] if p["model"] == "global-risk")


def _published(frame: pl.DataFrame, method: dict[str, Any], promises: list[Any]) -> Any:
    content = yaml.safe_load(survey.POLICY) | {"method": method, "promises": promises}
    del content["attributes"]["age"]["round"]  # methods are compared, not roundings
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReleaseWarning)
        return shoal.publish(frame, content).certificate
