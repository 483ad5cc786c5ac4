"""Loss beside what attacks gain: methods at one k on Adult, printed as `shoal compare` does it.

python benchmarks/attacks.py            # k = 10
python benchmarks/attacks.py l          # and distinct l = 3 of the occupation
python benchmarks/attacks.py t          # and t = 0.3
"""

from __future__ import annotations

import sys
from typing import Any

import adult

import shoal
from shoal.policy.policy import Policy
from shoal.reports.comparison_table import as_text

TREES = "sex race marital-status education native-country workclass".split()
METHODS = {
    "k": (
        "rounded-partition",
        "rounded-partition:refine=none",
        "mondrian",
        "mondrian:cut=nearest",
        "mondrian-relaxed",
        "lattice-peeling",
        "top-down-greedy",
        "full-domain:suppression=0.02",
        "tds",
        "datafly",
    ),
    "l": (
        "rounded-partition:refine=none",
        "mondrian:cut=nearest",
        "lattice-peeling",
        "full-domain:suppression=0.02",
    ),
    "t": ("tcloseness:rounds=3",),
}
MORE: dict[str, list[dict[str, Any]]] = {
    "k": [],
    "l": [{"model": "l-diversity", "attribute": "occupation", "l": 3, "kind": "distinct"}],
    "t": [{"model": "t-closeness", "attributes": ["occupation"], "t": 0.3}],
}


def policy_of(promises: list[dict[str, Any]]) -> Policy:
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
    return Policy.from_dict(
        {
            "version": 1,
            "attributes": attributes,
            "promises": [{"model": "k-anonymity", "k": 10}, *promises],
            "other": "drop",
            "seed": 1,
        }
    )


def main(asked: str) -> None:
    compared = shoal.compare(
        adult.complete(), policy_of(MORE[asked]), METHODS[asked], [10], attack=True
    )
    print(as_text(compared), end="")


if __name__ == "__main__":
    main(next(iter(sys.argv[1:]), "k"))
