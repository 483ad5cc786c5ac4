"""Invented customers of a bank, an insurer and an employment office, who hold different columns.

Income and schooling decide who gets a loan, so that the fused table is worth classifying; each
owner misses some people, so that the tables have to be joined.
"""

from typing import Any

import numpy as np
import polars as pl
import yaml

JOBS = {
    "manual": ("janitor", "mover", "carpenter", "technician"),
    "office": ("clerk", "secretary", "account"),
    "professional": ("lawyer", "engineer", "doctor", "manager"),
}
DISTRICTS = {"north": ("n1", "n2", "n3"), "south": ("s1", "s2"), "coast": ("c1", "c2", "c3")}
SCHOOLING = ("none", "primary", "secondary", "vocational", "bachelor", "master")
MISSING_SHARE = 0.04
OWNERS = {
    "bank": ("salary",),
    "insurer": ("age", "sex"),
    "office": ("job", "education", "district"),
}

_ATTRIBUTES = {
    "salary": "{role: quasi, type: number, domain: [0, 200]}",
    "age": "{role: quasi, type: number, domain: [18, 95]}",
    "sex": "{role: quasi, hierarchy: {tree: [female, male]}}",
    "job": (
        "{role: quasi, hierarchy: {tree: {"
        + ", ".join(f"{group}: [{', '.join(jobs)}]" for group, jobs in JOBS.items())
        + "}}}"
    ),
    "education": f"{{role: quasi, type: ordinal, order: [{', '.join(SCHOOLING)}]}}",
    "district": (
        "{role: quasi, hierarchy: {tree: {"
        + ", ".join(f"{part}: [{', '.join(names)}]" for part, names in DISTRICTS.items())
        + "}}}"
    ),
}
_PROMISES = """\
promises:
  - {model: k-anonymity, k: 10}                # 'attributes: [...]' would ask it of some columns
"""

_HEAD = """\
# The same people in one table, as only a joiner of all three could see them: what the fusion \
is compared with.
version: 1
attributes:
  customer: {role: identifier}
"""
_FOOT = """\
label: loan
method: {name: tds}
seed: 7
"""

POLICY = (
    _HEAD
    + "".join(f"  {name}: {spec}\n" for name, spec in _ATTRIBUTES.items())
    + "  loan: {role: plain}\n"
    + _PROMISES
    + _FOOT
)


def generate(n: int, seed: int) -> pl.DataFrame:
    """The customers that all three owners know, of n invented ones; the same table for a seed."""
    people, known = _people(n, seed)
    return people.filter(pl.Series(np.logical_and.reduce(known))).select(
        "customer", *_ATTRIBUTES, "loan"
    )


def generate_parts(n: int, seed: int) -> dict[str, pl.DataFrame]:
    """Each owner's table, in an order of its own; the bank's has the label."""
    people, known = _people(n, seed)
    rng = np.random.default_rng([seed, 2])
    parts = {}
    for (owner, columns), knows in zip(OWNERS.items(), known, strict=True):
        kept = people.filter(pl.Series(knows)).select(
            "customer", *columns, *(("loan",) if owner == "bank" else ())
        )
        parts[owner] = kept[rng.permutation(kept.height)]
    return parts


def attributes() -> dict[str, dict[str, Any]]:
    """The quasi-identifiers as an agreement declares them."""
    return {name: yaml.safe_load(spec) for name, spec in _ATTRIBUTES.items()}


def parties(tables: dict[str, str]) -> str:
    """The agreement of the three owners, whose tables are these files."""
    text = """\
version: 1
join: customer                                 # never published
label: {attribute: loan, shared: true}         # all parties come to see it, by this consent
parties:
"""
    for owner, columns in OWNERS.items():
        text += f"  - name: {owner}\n    table: {tables[owner]}\n    attributes:\n"
        text += "".join(f"      {name}: {_ATTRIBUTES[name]}\n" for name in columns)
    return text + _PROMISES + "method: {name: party-tds}\nseed: 7\n"


def _people(n: int, seed: int) -> tuple[pl.DataFrame, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(45, 15, n), 18, 95).astype(np.int64)
    schooling = np.clip(rng.normal(2.8, 1.4, n), 0, 5).round().astype(np.int64)
    rank = np.clip(schooling + rng.normal(0, 1, n), 0, 5.49)
    jobs = [list(names) for names in JOBS.values()]
    job = [
        jobs[int(level // 2)][int(pick * len(jobs[int(level // 2)]))]
        for level, pick in zip(rank, rng.random(n), strict=True)
    ]
    salary = (
        np.clip(np.exp(rng.normal(3.1 + rank / 6, 0.4, n)) + (age - 18) / 6, 0, 200)
        .round()
        .astype(np.int64)
    )
    district = [name for names in DISTRICTS.values() for name in names]
    odds = (salary - 45) / 15 + (schooling - 3) / 2 - np.abs(age - 45) / 30
    loan = rng.random(n) < 1 / (1 + np.exp(-odds))
    frame = pl.DataFrame(
        {
            "customer": (
                pl.Series(rng.permutation(n))
                .cast(pl.String)
                .str.zfill(len(str(n)))
                .str.replace("^", "C")
            ),
            "salary": salary,
            "age": age,
            "sex": pl.Series(["female", "male"]).gather(rng.integers(0, 2, n)),
            "job": job,
            "education": pl.Series(SCHOOLING).gather(schooling),
            "district": pl.Series(district).gather(rng.integers(0, len(district), n)),
            "loan": pl.Series(["no", "yes"]).gather(loan.astype(np.int64)),
        }
    )
    return frame, [rng.random(n) >= MISSING_SHARE for _ in OWNERS]
