"""Invented people with visits and drugs, and a slow, plain publisher of them, for tests alone.

The publisher puts neighbours by number of visits into classes of k, pairs their j-th rows, and
publishes the hull of every pair; what is left over is withheld.
"""

from datetime import date, timedelta

import numpy as np
import polars as pl

from sample_policies import content_of

DAY = date(2020, 1, 1)
Tables = dict[str, pl.DataFrame]


def policy(k: int = 3, **more: object) -> dict:
    """A policy of people, visits and drugs."""
    age = {"role": "quasi", "type": "number", "domain": [0, 100]}
    tables = {
        "visits": {
            "parent": {"people": "patient"},
            "key": "visit",
            "attributes": {
                "cost": {"role": "quasi", "type": "number", "domain": [0, 1000]},
                "disease": {"role": "sensitive"},
            },
        },
        "drugs": {
            "parent": {"visits": "visit"},
            "rows": {"known": "count"},
            "attributes": {"drug": {"role": "sensitive"}},
        },
    }
    attributes = {"patient": "subject", "age": age, "blood": "sensitive"}
    return content_of(attributes, k, **{"tables": tables, **more})


def world(people: int, seed: int = 0) -> Tables:
    """People with 1 to 4 visits, each with a drug."""
    rng = np.random.default_rng(seed)
    counts = 1 + rng.binomial(3, 0.4, people)
    owner = np.repeat(np.arange(people), counts)
    visits = len(owner)
    names = [f"p{i}" for i in range(people)]
    keys = [f"v{i}" for i in rng.permutation(visits)]
    return {
        "people": pl.DataFrame(
            {
                "patient": names,
                "age": rng.integers(0, 101, people),
                "blood": rng.choice(["A", "B", "0"], people),
            }
        ),
        "visits": pl.DataFrame(
            {
                "visit": keys,
                "patient": [names[i] for i in owner],
                "cost": rng.integers(0, 1001, visits),
                "disease": rng.choice(["flu", "cold", "gout", "none"], visits),
            }
        ),
        "drugs": pl.DataFrame(
            {"visit": keys, "drug": rng.choice(["aspirin", "insulin", "iron"], visits)}
        ),
    }


def published(tables: Tables, k: int = 3, seed: int = 0) -> Tables:
    """An honest release: classes of at least k people whose bundles are equal in quasi cells."""
    rng = np.random.default_rng(seed)
    people = tables["people"].to_dicts()
    visits: dict[str, list[dict]] = {one["patient"]: [] for one in people}
    for row in tables["visits"].to_dicts():
        visits[row["patient"]].append(row)
    drug_of = dict(tables["drugs"].select("visit", "drug").iter_rows())
    people.sort(key=lambda one: (len(visits[one["patient"]]), one["age"]))
    ends = [*range(0, len(people) - k + 1, k)][1:]
    classes = [people[a:b] for a, b in zip([0, *ends], [*ends, len(people)], strict=True)]
    shown: dict[str, list[dict]] = {"people": [], "visits": [], "drugs": []}
    person_keys = iter((rng.permutation(len(people)) + 1).tolist())
    kept = sum(min(len(visits[p["patient"]]) for p in c) * len(c) for c in classes)
    visit_keys = iter((rng.permutation(kept) + 1).tolist())
    for members in classes:
        own = [sorted(visits[p["patient"]], key=lambda row: row["cost"]) for p in members]
        counts = [len(rows) for rows in own]
        slots = [_hull([rows[j]["cost"] for rows in own]) for j in range(min(counts))]
        for one, rows in zip(members, own, strict=True):
            key = next(person_keys)
            cells = {"patient": key, "age": _hull([p["age"] for p in members])}
            cells |= {"blood": one["blood"], "visits.rows": _hull(counts)}
            shown["people"].append(cells)
            for row, cost in zip(rows, slots, strict=False):
                visit = next(visit_keys)
                shown["visits"].append(
                    {
                        "visit": visit,
                        "patient": key,
                        "cost": cost,
                        "disease": row["disease"],
                        "drugs.rows": "1",
                    }
                )
                shown["drugs"].append({"visit": visit, "drug": drug_of[row["visit"]]})
    first = {"people": "patient", "visits": "visit", "drugs": "visit"}
    return {name: pl.DataFrame(rows).sort(first[name]) for name, rows in shown.items()}


def _hull(values: list[int]) -> str:
    return str(min(values)) if min(values) == max(values) else f"[{min(values)}, {max(values)}]"


def moved(released: Tables, step: int = 1) -> tuple[Tables, Tables]:
    """The release with a date of every visit, moved by chance and, as a fault, not moved at all.

    Each class's anchors lie within 200 days from its own first one, every `step` days; a person's
    first visit is the anchor, the j-th one 10 j days later.
    """
    rng, last = np.random.default_rng(0), 200 // step
    people = released["people"]
    labels = people["age"] + "/" + people["visits.rows"]
    start = {one: int(rng.integers(0, 500)) for one in labels.unique(maintain_order=True)}
    true = {}
    for label in start:
        keys = people.filter(labels == label)["patient"].to_list()
        days = [0, last, *rng.integers(0, last + 1, len(keys) - 2).tolist()]
        true |= {key: start[label] + step * day for key, day in zip(keys, days, strict=True)}
    chance = {
        key: start[label] + step * int(rng.integers(0, last + 1))
        for key, label in zip(people["patient"], labels, strict=True)
    }
    return tuple(_dated(released, labels, start, step * last, one) for one in (chance, true))


def _dated(released: Tables, labels: pl.Series, start: dict, width: int, anchor: dict) -> Tables:
    people, visits = released["people"], released["visits"]
    hulls = [f"[{_day(start[one])}, {_day(start[one] + width)}]" for one in labels]
    slot = visits.select(pl.col("cost").rank("ordinal").over("patient"))["cost"] - 1
    days = [_day(anchor[key] + 10 * j) for key, j in zip(visits["patient"], slot, strict=True)]
    return {
        **released,
        "people": people.with_columns(
            pl.Series("anchor.day", [_day(anchor[key]) for key in people["patient"]]),
            pl.Series("anchor.hull", hulls),
        ),
        "visits": visits.with_columns(pl.Series("day", days)),
    }


def _day(number: int) -> str:
    return (DAY + timedelta(days=number)).isoformat()
