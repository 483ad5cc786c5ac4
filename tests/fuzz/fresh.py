"""Fresh releases: what `shoal publish` wrote, `shoal audit` and `shoal verify` accept.

With promises about a population and about samples, with and without the original, in memory and
past it; all through the command line.
"""

import contextlib
import io
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from fuzz import tables
from fuzz.cells import Table
from fuzz.draw import Case
from fuzz.outcome import Outcome, write_files
from shoal.cli.main import status_of
from small_memory import make_every_table_too_large

PEOPLE, WEIGHT = "people.csv", "stands for"
ENDS = {1: "withheld", 2: "refused", 3: "infeasible"}
NEEDS = ("give the original (--original)", "not measured: open")
MEMORY = "200KB"


def draw_case(random: Random, method: str | None = None) -> Case:
    """A table as any other of the fuzz, mostly with a population and often with weights.

    parts: not empty where tables don't fit into memory.
    """
    case = tables.draw_case(random, method)
    if random.random() < 0.2:
        k_alone = [{"model": "k-anonymity", "k": random.randint(2, 5)}]
        return replace(case, kind="fresh", policy={**case.policy, "promises": k_alone}, parts=(1,))
    promises, attributes = list(case.policy["promises"]), dict(case.policy["attributes"])
    table, files = case.table, dict(case.files)
    if random.random() < 0.4:
        weight = {"role": "weight"}
        attributes[WEIGHT] = weight | random.choice([{}, {"publish": "rounded", "round": 5}])
        table = _with_weights(table, case.policy["attributes"], random)
        promises += random.sample(_about_samples(random), random.choice([0, 1]))
    if random.random() < 0.6:
        names = [n for n, a in attributes.items() if a["role"] == "quasi" or "publish" in a]
        files[PEOPLE] = _people(table, names, case.policy["missing_values"], random).text()
        promises += random.sample(_about_population(random), random.choice([1, 1, 2]))
    if len(promises) > 1 and random.random() < 0.3:
        promises = promises[1:]
    policy = {**case.policy, "attributes": attributes, "promises": promises}
    return Case("fresh", policy, table, files)


def _about_population(random: Random) -> list[dict]:
    return [
        {"model": "k-map", "k": random.choice([2, 3, 5]), "population": PEOPLE},
        {
            "model": "delta-presence",
            "delta_max": random.choice([0.5, 0.9, 1]),
            "population": PEOPLE,
        },
    ]


def _about_samples(random: Random) -> list[dict]:
    return [
        {"model": "individual-risk", "at_most": random.choice([0.2, 0.5])},
        {"model": "global-risk", "at_most": random.choice([0.2, 0.5])},
        {"model": "population-uniqueness", "threshold": 0.5, "fraction": 0.1},
    ]


def _with_weights(table: Table, attributes: dict, random: Random) -> Table:
    """The table with a weight of every person."""
    subject = next((n for n, a in attributes.items() if a["role"] == "subject"), "row id")
    weights = {person: random.choice(["1", "2.5", "10", "40"]) for person in table.column(subject)}
    own = [weights[person] for person in table.column(subject)]
    rows = [[*row, weight] for row, weight in zip(table.rows, own, strict=True)]
    return Table([*table.names, WEIGHT], rows)


def _people(table: Table, names: list[str], absent: list[str], random: Random) -> Table:
    """The people of the table, and others who mix what these have."""
    columns = [table.column(name) for name in names]
    own = [list(row) for row in zip(*columns, strict=True)]
    others = [
        [
            random.choice([*column, *(absent if name != WEIGHT else [])])
            for name, column in zip(names, columns, strict=True)
        ]
        for _ in range(random.choice([0, 1, 2]) * len(own))
    ]
    return Table([*names, "number"], [[*row, str(i)] for i, row in enumerate(own + others)])


def run(case: Case, folder: Path, random: Random) -> Outcome:
    """Everything that has to be true of one release that was published this moment."""
    write_files(case, folder)
    with pytest.MonkeyPatch.context() as patch, contextlib.chdir(folder):
        memory = []
        if case.parts:
            make_every_table_too_large(patch)
            memory = ["--memory", MEMORY]
        return _published(case, memory)


def _published(case: Case, memory: list[str]) -> Outcome:
    policy = ["-p", "policy.json"]
    ended, said = _end("publish", "table.csv", *policy, "-o", "out.csv", "--trace", "rows", *memory)
    if ended:
        outcome = Outcome(ENDS.get(ended, "failed"))
        outcome.counts[" ".join(said.split("'")[::2]).partition("\n")[0][:70]] += 1
        is_usual = ended in ENDS and (ended != 1 or PEOPLE in case.files)  # few methods look at it
        outcome.require(is_usual, f"publish ends {ended}", said)
        return outcome
    outcome = Outcome()
    original = [*policy, "--original", "table.csv", "--trace", "rows"]
    for verb, more in (
        ("audit", policy),
        ("audit", original),
        ("verify", []),
        ("verify", policy),
        ("verify", original),
    ):
        ended, said = _end(verb, "out.csv", *more, *memory)
        is_open = verb == "audit" and more == policy and _may_differ(case, ended, said)
        outcome.require(not ended or is_open, f"{verb} {len(more)} ends {ended}", said)
    return outcome


def _may_differ(case: Case, ended: int, said: str) -> bool:
    """Whether an audit without the original may not find that every promise holds: it counts rows
    instead of people, and some promises need the original.
    """
    if any(text in said for text in NEEDS):
        return True
    if ended == 2:
        return False
    subject = next((n for n, a in case.policy["attributes"].items() if a["role"] == "subject"), "")
    return bool(subject) and len({*case.table.column(subject)}) < len(case.table.rows)


def _end(*words: str) -> tuple[int, str]:
    """How a command ended, and what it said."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        status = status_of([*words, "-q"] if words[0] == "publish" else [*words])
    return status, said.getvalue()
