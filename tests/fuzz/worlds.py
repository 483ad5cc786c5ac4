"""Worlds: a few people with visits, drugs and tags, published as linked tables, and found again."""

import csv
import io
import json
import os
from datetime import date, timedelta
from itertools import chain
from pathlib import Path
from random import Random

import shoal
from fuzz.cells import Table
from fuzz.draw import Case
from fuzz.linked_judge import Judged, day, read, shared_keys
from fuzz.outcome import Outcome

KINDS = {"urgent": ["er", "car"], "planned": ["by", "with"]}
TAGS = {"a": ["a1", "a2"], "b": ["b1", "b2", "b3"]}
DRUGS = {"u": ["x", "y"], "w": ["z"]}
METHODS = ("bundles", "items")


def draw_case(random: Random, method: str | None = None) -> Case:
    """A policy and tables; visits and drugs are files of the case."""
    k = random.choice([2, 2, 3])
    people = random.randint(2 * k, 16)
    m = random.choice([1, 2, 2, 3])
    visits = random.choice(["all", m]) if method != "items" else m
    tags = random.choice(["all", m])
    drugs = random.choice(["count", m]) if visits == "all" else "none"
    has_number = m in (visits, tags, drugs)
    gaps = random.choice([None, None, "covered", "exact"])
    if gaps == "exact" and visits != "all":
        gaps = "covered"
    policy = _policy(k, {"visits": visits, "tags": tags, "drugs": drugs}, gaps, random)
    name = method or random.choice(METHODS if has_number else METHODS[:1])
    policy["method"] = {"name": name}
    names = [str(i) for i in range(people)]  # as visits are named, which are something else
    rows = [
        [
            name,
            str(random.randint(0, 9)),
            ";".join(sorted(random.sample([*chain(*TAGS.values())], random.randint(0, 3)))),
            random.choice("AB0"),
        ]
        for name in names
    ]
    table = Table(["patient", "age", "tags", "blood"], rows)
    return Case("world", policy, table, _files(names, gaps, random), ())


def _policy(k: int, known: dict[str, str | int], gaps: str | None, random: Random) -> dict:
    visits = known["visits"]
    attributes = {
        "kind": {"role": "quasi", "hierarchy": {"tree": KINDS}},
        "cost": {"role": "quasi", "type": "number", "domain": [0, 20]},
        "disease": {"role": "sensitive"},
    }
    promises: list[dict] = [{"model": "k-anonymity", "k": k}]
    policy = {
        "version": 1,
        "attributes": {
            "patient": {"role": "subject"},
            "age": {"role": "quasi", "type": "number", "domain": [0, 9]},
            "tags": {
                "role": "quasi",
                "type": "set",
                "separator": ";",
                "known": known["tags"],
                "hierarchy": {"tree": TAGS},
            },
            "blood": {"role": "sensitive"},
        },
        "tables": {
            "visits": {
                "parent": {"people": "patient"},
                "key": "visit",
                "rows": {"known": visits},
                "attributes": attributes,
            },
            "drugs": {
                "parent": {"visits": "visit"},
                "rows": {"known": known["drugs"]},
                "attributes": {"drug": _drug(known["drugs"])},
            },
        },
        "promises": promises,
        "keys": random.choice(["release", "release", "keyed"]),
        "seed": random.randint(0, 99),
    }
    if visits != "all":
        policy["assume"] = ["counts-unknown"]
    if visits != "all" and random.random() < 0.4:
        policy["tables"]["visits"]["rows"]["count_known"] = True
    if gaps is not None:
        attributes["day"] = {"role": "quasi", "type": "date"}
        policy["anchor"] = {"first": "visits.day", "gaps": gaps}
        if gaps == "exact":
            policy["assume"] = ["one-date-known"]
    if gaps != "exact":
        promises += [
            one
            for one in (
                {"model": "l-diversity", "attribute": "visits.disease", "l": 2},
                {"model": "l-diversity", "attribute": "blood", "l": 2},
                {"model": "holder-share", "attribute": "visits.disease", "share": 0.8},
            )
            if random.random() < 0.25
        ]
    return policy


def _drug(known: str | int) -> dict:
    """Where somebody knows drugs, their column is a quasi-identifier."""
    if known in ("count", "none"):
        return {"role": "sensitive"}
    return {"role": "quasi", "hierarchy": {"tree": DRUGS}}


def _files(names: list[str], gaps: str | None, random: Random) -> dict[str, str]:
    visits, drugs = [], []
    first = {name: random.randint(0, 40) for name in names}
    for name in names:
        for _ in range(random.choice([int(gaps == "exact"), 1, 1, 2, 2, 3])):
            visit = str(len(visits))
            at = date(2020, 1, 1) + timedelta(first[name] + random.randint(0, 30))
            kind = random.choice([*chain(*KINDS.values())])
            row = [visit, name, kind, str(random.randint(0, 20)), random.choice(["flu", "gout"])]
            visits.append(row if gaps is None else [*row, str(at)])
            drugs += [[visit, random.choice("xyz")] for _ in range(random.choice([0, 1, 1, 2]))]
    head = ["visit", "patient", "kind", "cost", "disease", *([] if gaps is None else ["day"])]
    drugs_of_visits = Table(["visit", "drug"], drugs)
    return {"visits.csv": Table(head, visits).text(), "drugs.csv": drugs_of_visits.text()}


def run(case: Case, folder: Path, random: Random) -> Outcome:
    """Everything that has to be true of one release of linked tables."""
    outcome = Outcome()
    given, out, trace = folder / "in", folder / "out", folder / "trace.jsonl"
    given.mkdir()
    (given / "people.csv").write_text(case.table.text(), encoding="utf-8", newline="")
    visits = _kept(case.files["visits.csv"], "patient", {row[0] for row in case.table.rows})
    drugs = _kept(case.files["drugs.csv"], "visit", {row[0] for row in visits[1:]})
    for name, rows in (("visits", visits), ("drugs", drugs)):
        text = Table(rows[0], rows[1:]).text()
        (given / f"{name}.csv").write_text(text, encoding="utf-8", newline="")
    policy = shoal.Policy.from_dict(case.policy)
    os.environ.setdefault("SHOAL_PSEUDONYM_KEY", "a secret of the owner's")
    with outcome.of("publish"):
        certificate = shoal.publish(given, policy, output=out, trace=trace).certificate
    if outcome.status != "published":
        outcome.require(outcome.status != "refused", "publish: refused", str(outcome.counts))
        return outcome
    _judge(case, out, certificate, outcome, _dates(trace, case, visits))
    beside = shoal.audit(out, policy, original=given)
    outcome.require(not any(beside["faults"].values()), "audit: faults", str(beside["faults"]))
    outcome.counts[case.policy["method"]["name"]] += 1
    return outcome


def _kept(text: str, column: str, names: set[str]) -> list[list[str]]:
    """The rows of a file whose parents are still there, behind its head."""
    head, *rows = csv.reader(io.StringIO(text))
    return [head, *(row for row in rows if row[head.index(column)] in names)]


def _dates(trace: Path, case: Case, visits: list[list[str]]) -> list[list[int]]:
    """All dates of each published person."""
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    people = sorted((ln["row"], ln["seq"]) for ln in lines if ln["table"] == "people")
    if "day" not in visits[0]:
        return [[] for _ in people]
    names = [case.table.rows[seq][0] for _, seq in people]
    return [[day(row[-1]) for row in visits[1:] if row[1] == name] for name in names]


def _judge(case: Case, out: Path, certificate, outcome: Outcome, dates: list[list[int]]) -> None:
    """Whether the certificate says what trying everything finds in the files."""
    rows = case.policy["tables"]["visits"]["rows"]
    known = {"visits": rows["known"], "tags": case.policy["attributes"]["tags"]["known"]}
    known["drugs"] = case.policy["tables"]["drugs"]["rows"]["known"]
    is_exact = case.policy.get("anchor", {}).get("gaps") == "exact"
    if case.policy["keys"] == "keyed":
        shared = len(shared_keys(out))
        outcome.require(not shared, "keys: of a person and of a visit", f"{shared} keys")
    people = read(out, is_exact, known["drugs"] == "count")
    found = Judged(people, known, rows.get("count_known", False))
    fewest = found.fewest()
    if is_exact:
        fewest = min(fewest, found.least_by_dates(dates) or fewest)
    for promise in certificate["promises"]:
        table = "visits" if promise["attributes"] == ["visits.disease"] else "people"
        measured = {
            "k-anonymity": lambda: fewest,
            "l-diversity": lambda: found.least_distinct(table),  # noqa: B023
            "holder-share": lambda: found.greatest_share(table),  # noqa: B023
        }[promise["model"]]()
        same = measured is None or abs((promise["measured"] or 0) - measured) < 1e-9
        text = f"{promise['measured']} stated, {measured} found"
        outcome.require(same, f"{promise['model']} differs", text)
        outcome.require(promise["holds"], f"{promise['model']} does not hold", text)
