"""Tables: published, judged, audited with and without the original, verified, and spoilt."""

from pathlib import Path
from random import Random
from typing import Any

from fuzz import draw, spoil
from fuzz.cells import Policy, Table
from fuzz.draw import Case
from fuzz.judge import as_one_class, judge
from fuzz.outcome import Outcome, compare, write_inputs
from shoal.policy import registry
from shoal.tables.publish import publish_file

SPOILT = 1  # spoilt copies of each release
WITHOUT_MEANS = [kind for kind in draw.KINDS if kind not in ("mean", "both")]


def methods(verb: str) -> list[str]:
    known = [m for m in registry.methods().values() if m.verb == verb]
    return [m.name for m in known if not m.renders_two_tables]


def some_method(name: str, random: Random) -> dict[str, Any]:
    """A method by default, or with other choices of its parameters."""
    asked: dict[str, Any] = {"name": name}
    for parameter in registry.methods()[name].parameters:
        if parameter.choices and random.random() < 0.3:
            asked[parameter.name] = random.choice(parameter.choices)
        elif parameter.kind is bool and random.random() < 0.2:
            asked[parameter.name] = random.random() < 0.5
    if "suppression" in {p.name for p in registry.methods()[name].parameters}:
        asked["suppression"] = random.choice([0.0, 0.1, 0.3, 1.0])
    return asked


def draw_case(random: Random, method: str | None = None) -> Case:
    """A table and its policy, for any method."""
    method = method or random.choice(methods("publish"))
    kinds = WITHOUT_MEANS if registry.methods()[method].recodes_globally else draw.KINDS
    records = random.choice([2, 5, 9, 16, 25, 40, 60])
    columns, sensitive = draw.draw_columns(random, records, kinds)
    asked = draw.promises(sensitive, random)
    if sensitive and method.startswith("tcloseness") and random.random() < 0.7:
        closeness = {"model": "t-closeness", "attributes": [*sensitive], "t": 0.4}
        asked = [p for p in asked if p["model"] != "t-closeness"] + [closeness]
    policy = columns.policy(asked, some_method(method, random))
    policy["render"] = {
        "order": random.choice(["input", "input", "content"]),
        "suppressed": random.choice(draw.MARKS),
        "intervals": random.choice(draw.INTERVALS),
    }
    return Case("table", policy, columns.table(), {"h.csv": draw.HIERARCHY})


def run(case: Case, folder: Path, random: Random) -> Outcome:
    """Everything that has to be true of one table."""
    outcome = Outcome()
    source, out = str(folder / "table.csv"), str(folder / "out.csv")
    policy = Policy.of(case.policy, case.files)
    with outcome.of("publish"):
        asked = write_inputs(case, folder)
        published = publish_file(source, asked, out)
    if outcome.status == "infeasible":
        whole = as_one_class(policy, case.table)
        would_do = whole.holds and not policy.suppresses
        outcome.require(not would_do, "infeasible: but one class would do", str(whole))
    if outcome.status != "published":
        return outcome
    released = Table.read(Path(out).read_text(encoding="utf-8"))
    verdict = judge(policy, released, case.table, match_of(released, case.table))
    outcome.require(verdict.holds, "checker: release breaks a promise", str(verdict))
    compare(outcome, "publish", published.certificate, verdict)
    by_rows = judge(policy, released)
    with_original = by_rows if policy.shuffled else verdict
    outcome.audit("audit with original", asked, out, with_original, source)
    outcome.audit("audit alone", asked, out, by_rows)
    if _counts_the_same(policy, case.table):
        outcome.require(by_rows.holds, "audit alone: own release fails", str(by_rows))
    given = ({}, {"policy": asked}, {"policy": asked, "original": source})
    outcome.verify(out, *(given[:2] if policy.shuffled else given))
    for _ in range(SPOILT):
        spoil.check(outcome, asked, policy, case.table, released, folder, random)
    return outcome


def match_of(released: Table, original: Table) -> list[int]:
    """The record behind each row, by the column that numbers records."""
    index = {cell: i for i, cell in enumerate(original.column("row id"))}
    return [index[cell] for cell in released.column("row id")]


def _counts_the_same(policy: Policy, original: Table) -> bool:
    """Whether rows are people."""
    if policy.subject is None:
        return True
    people = [cell.strip() for cell in original.column(policy.subject)]
    return len(set(people)) == len(people)
