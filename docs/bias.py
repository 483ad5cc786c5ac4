"""How far off counts and a regression are on releases of Adult, at three values of k."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

NUMBERS = ["age", "education-num", "hours-per-week"]
original = pd.read_csv("adult.csv")
rng = np.random.default_rng(7)


def queries(count):
    """Ranges between values of two random people, on one to three columns."""
    for _ in range(count):
        columns = rng.permutation(NUMBERS)[: rng.integers(1, 4)]
        people = original.iloc[rng.integers(0, len(original), 2)]
        yield {name: (people[name].min(), people[name].max()) for name in columns}


def estimate(table, query, share):
    return np.prod([share(table, name, *ends) for name, ends in query.items()], axis=0).sum()


def by_share(table, name, least, greatest):
    lo, hi = table[f"{name}_lo"], table[f"{name}_hi"]
    common = (hi.clip(upper=greatest) - lo.clip(lower=least) + 1).clip(lower=0)
    return common / (hi - lo + 1)


def by_middle(table, name, least, greatest):
    return table[f"{name}_mid"].between(least, greatest)


def by_touch(table, name, least, greatest):
    return (table[f"{name}_hi"] >= least) & (table[f"{name}_lo"] <= greatest)


def coefficients(columns, table):
    """Log odds of a high income for a year more, a degree more, an hour more, and for men."""
    male = table["sex"].map({"Male": 1.0, "Female": 0.0})
    male = male.fillna(male.mean())
    model = LogisticRegression(C=1e9, max_iter=10_000)  # as good as unregularised
    centred = columns - columns.mean(axis=0)
    model.fit(np.column_stack([centred, male]), table["income"] == ">50K")
    return "  ".join(f"{value:.4f}" for value in model.coef_[0])


asked = list(queries(300))
truth = [
    np.prod([original[name].between(*ends) for name, ends in query.items()], axis=0).sum()
    for query in asked
]
print("original:", coefficients(original[NUMBERS].to_numpy(), original))
for k in (5, 10, 50):
    table = pd.read_csv(f"k{k}.csv")
    for share in (by_share, by_middle, by_touch):
        errors = [
            abs(estimate(table, query, share) - count) / max(count, len(original) / 1000)
            for query, count in zip(asked, truth, strict=True)
        ]
        print(f"k={k} counts {share.__name__}: {100 * np.median(errors):.2f} % off")
    for part in ("mean", "mid"):
        columns = table[[f"{name}_{part}" for name in NUMBERS]].to_numpy()
        print(f"k={k} regression by {part}:", coefficients(columns, table))
    ranges = [(table[f"{name}_lo"], table[f"{name}_hi"]) for name in NUMBERS]
    drawn = np.column_stack([rng.integers(lo, hi + 1) for lo, hi in ranges])
    print(f"k={k} regression by draws:", coefficients(drawn, table))
