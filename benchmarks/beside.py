"""Two releases of Adult made apart, judged together, and the second aligned with the first.

python benchmarks/beside.py all      # 20,000 people in both
python benchmarks/beside.py half     # half of those of the first
python benchmarks/beside.py wide     # about half, the first with k = 30

The quasi-identifiers were chosen after trying 13 sets of them.
"""

from __future__ import annotations

import sys
import time
import warnings
from typing import Any

import numpy as np
import polars as pl

import shoal
from shoal.reproduce.data_sets import adult as adult_records

PEOPLE, K, WIDE = 20_000, 10, 30
FIRST = "age workclass education-num marital-status race native-country".split()
SECOND = "age education relationship hours-per-week sex".split()
SENSITIVE = "occupation"
DOMAINS = {"age": [17, 90], "education-num": [1, 16], "hours-per-week": [1, 99]}


def policy(quasi: list[str], k: int) -> dict[str, Any]:
    """k-anonymity over these; categories by frequency, as orders."""
    attributes: dict[str, Any] = {"person": {"role": "subject"}, SENSITIVE: {"role": "sensitive"}}
    for name in quasi:
        how = (
            {"domain": DOMAINS[name]}
            if name in DOMAINS
            else {"type": "ordinal", "order": "frequency"}
        )
        attributes[name] = {
            "role": "quasi",
            **({"type": "number"} if name in DOMAINS else {}),
            **how,
        }
    return {
        "version": 1,
        "other": "drop",
        "attributes": attributes,
        "promises": [{"model": "k-anonymity", "k": k}],
        "method": {"name": "rounded-partition", "refine": "none"},
    }


def people(which: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The people of both releases."""
    frame = adult_records(None)[0].with_row_index("person")
    rows = np.random.default_rng(0).permutation(frame.height)
    first = frame[rows[:PEOPLE]]
    if which == "all":
        return first, first
    shared = np.random.default_rng(1).random(PEOPLE) < 0.5
    return first, pl.concat([first.filter(pl.Series(shared)), frame[rows[PEOPLE:]]])


def line(found: dict[str, Any], known: dict[str, Any]) -> str:
    """A row of the table."""
    (values,) = known["attributes"]
    return (
        f"{known['people']} people in both; |C| < k {known['below_k']}, alone {known['alone']};"
        f" |C'| < k {found['below_k'] / found['people']:.0%}, alone"
        f" {found['alone'] / found['people']:.0%}; {SENSITIVE} certain {values['certain']}, < 3"
        f" {values['below']}"
    )


def main(which: str) -> None:
    warnings.simplefilter("ignore")
    one, other = people(which)
    k = WIDE if which == "wide" else K
    asked, second = policy(FIRST, k), policy(SECOND, K)
    first = shoal.publish(one, asked)
    apart = shoal.publish(other, second)
    out, rows = (first.data, asked, one), {}
    for attacker in ("presence", "own"):
        started = time.process_time()
        found = shoal.audit_beside(out, (apart.data, second, other), l=3, attacker=attacker).found
        seconds = time.process_time() - started
        print(f"{attacker}: {seconds:.1f} CPU s", file=sys.stderr)
        rows[attacker] = found
    print(line(rows["own"], rows["presence"]))
    try:
        aligned = shoal.publish(other, second, beside=[out])
    except shoal.InfeasibleError as failed:
        print(f"not aligned: {failed}")
        return
    stated = aligned.certificate["beside"]
    before, after = (one.certificate["utility"]["gcp"] for one in (apart, aligned))
    print(f"withheld {stated['withheld']}; gcp {before:.3f} -> {after:.3f}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "all")
