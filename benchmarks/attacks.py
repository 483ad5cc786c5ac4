"""Loss beside what attacks gain: methods at one k, printed as `shoal compare` does it.

python benchmarks/attacks.py adult k         # Adult, k = 10
python benchmarks/attacks.py adult l         # and distinct l = 3 of the sensitive attribute
python benchmarks/attacks.py adult t         # and t = 0.3
python benchmarks/attacks.py census k [METHOD ...]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import adult
import polars as pl

import shoal
from shoal.policy.policy import Policy
from shoal.reports.comparison_table import as_text

K = 10
TREES = "sex race marital-status education native-country workclass".split()
GLOBAL = ("full-domain:suppression=0.02", "incognito:suppression=0.02", "datafly", "tds")
LOCAL = (
    "lattice-peeling",
    "rounded-partition",
    "rounded-partition:refine=none",
    "top-down-greedy",
    "mondrian:cut=nearest",
    "mondrian",
    "mondrian-relaxed",
)
CLUSTERING = ("bottom-up", "k-member", "mdav", "oka")
CLOSE = (
    "tcloseness:rounds=3",
    "tcloseness-fcm",
    "tcloseness-k-first",
    "tcloseness-kmeanspp",
    "tcloseness-merge",
    "tcloseness-t-first",
)
METHODS = {
    ("adult", "k"): (*LOCAL, *CLUSTERING, *GLOBAL),
    ("adult", "l"): (*LOCAL, *CLUSTERING, *GLOBAL),
    ("adult", "t"): (*CLOSE, *GLOBAL),
    # its quasi-identifiers have no hierarchies, so nothing is recoded globally
    ("census", "k"): (*LOCAL, *CLUSTERING),
    ("census", "l"): (*LOCAL, *CLUSTERING),
    ("census", "t"): CLOSE,
}


def promises(asked: str, sensitive: str) -> list[dict[str, Any]]:
    """k, and what is asked in addition."""
    more: dict[str, list[dict[str, Any]]] = {
        "k": [],
        "l": [{"model": "l-diversity", "attribute": sensitive, "l": 3, "kind": "distinct"}],
        "t": [{"model": "t-closeness", "attributes": [sensitive], "t": 0.3}],
    }
    return [{"model": "k-anonymity", "k": K}, *more[asked]]


def on_adult(asked: str) -> tuple[pl.DataFrame, Policy]:
    """Eight quasi-identifiers, the age as a number, the occupation sensitive."""
    folder = adult.DATA / "adult" / "hierarchies_arx"

    def quasi(name: str) -> dict[str, Any]:
        return {"role": "quasi", "hierarchy": str(folder / f"{name}.csv")}

    attributes = {
        "age": {"role": "quasi", "domain": [17, 90]},
        **{name: quasi(name) for name in TREES},
        "income": quasi("salary-class"),
        "occupation": {"role": "sensitive"},
        "hours-per-week": {"role": "plain"},
        "relationship": {"role": "plain"},
    }
    return adult.complete(), _policy(attributes, promises(asked, "occupation"))


def on_census(asked: str) -> tuple[pl.DataFrame, Policy]:
    """1,080 records of two numbers, as the papers on t-closeness take them; taxes are sensitive."""
    frame = pl.read_csv(adult.DATA / "casc" / "census.csv", columns=["TAXINC", "POTHVAL", "FEDTAX"])
    attributes: dict[str, Any] = {
        name: {"role": "quasi", "type": "number"} for name in ("TAXINC", "POTHVAL")
    }
    attributes["FEDTAX"] = {"role": "sensitive", "type": "number"}
    return frame, _policy(attributes, promises(asked, "FEDTAX"))


def _policy(attributes: dict[str, Any], asked: list[dict[str, Any]]) -> Policy:
    return Policy.from_dict(
        {"version": 1, "attributes": attributes, "promises": asked, "other": "drop", "seed": 1}
    )


def main(data: str = "adult", asked: str = "k", *methods: str) -> None:
    frame, policy = {"adult": on_adult, "census": on_census}[data](asked)
    chosen: Sequence[str] = methods or METHODS[data, asked]
    print(as_text(shoal.compare(frame, policy, chosen, [K], attack=True)), end="")


if __name__ == "__main__":
    main(*sys.argv[1:])
