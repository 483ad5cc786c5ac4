"""Fusions: real processes of one owner or three; their release judged, audited and verified."""

import json
from pathlib import Path
from random import Random

from fuzz import draw
from fuzz.cells import Policy, Table
from fuzz.draw import Case
from fuzz.judge import judge
from fuzz.outcome import Outcome, compare
from fuzz.tables import methods
from shoal.fusion.fuse import fuse_file
from shoal.policy.agreement import Agreement

KINDS = ["number", "tree", "wide", "order"]
OWNERS = ("bank", "clinic", "office")


def draw_case(random: Random, method: str | None = None) -> Case:
    """A joint table, and who owns which column of it."""
    records = random.choice([8, 30, 80])
    columns = draw.Columns(random, records, [""])
    names = random.sample(draw.NAMES, random.choice([1, 2, 3, 4]))
    for name in names:
        kind = random.choice(KINDS)
        columns.attributes[name] = {"role": "quasi", **draw.declared(kind)}
        columns.cells[name] = [c.lstrip("+") for c in draw.column(kind, records, random)]
    columns.cells["id"] = [f"c{i}" for i in range(records)]
    columns.cells["loan"] = random.choices(["yes", "no"], k=records)
    columns.attributes |= {"id": {"role": "identifier"}, "loan": {"role": "plain"}}
    qids = [random.sample(names, random.randint(1, len(names))) for _ in range(2)]
    promises = [
        {"model": "k-anonymity", "attributes": qid, "k": random.choice([2, 3, 5])}
        for qid in [names, *qids][: random.choice([1, 2, 3])]
    ]
    policy = {
        "version": 1,
        "attributes": columns.attributes,
        "promises": promises,
        "method": {"name": method or random.choice(methods("fuse"))},
        "seed": random.randrange(4),
        "owners": random.choice([1, 1, 3]),
    }
    return Case("fusion", policy, columns.table())


def run(case: Case, folder: Path, random: Random) -> Outcome:
    """Everything that has to be true of one fusion."""
    outcome, out = Outcome(), folder / "out.csv"
    with outcome.of("fuse"):
        agreement = Agreement.load(_write(case, folder))
        certificate = fuse_file(agreement, str(out))
    if outcome.status != "published":
        return outcome
    verdict = judge(Policy.of(case.policy), Table.read(out.read_text(encoding="utf-8")))
    outcome.require(verdict.holds, "fuse: release breaks a promise", str(verdict))
    compare(outcome, "fuse", certificate, verdict)
    outcome.audit("audit of a fusion", agreement.policy, out, verdict)
    outcome.verify(out, {}, {"policy": agreement.policy})
    return outcome


def _write(case: Case, folder: Path) -> Path:
    """The agreement and each owner's table."""
    quasi = [n for n, a in case.policy["attributes"].items() if a["role"] == "quasi"]
    owners = OWNERS[: case.policy["owners"]]
    parties = []
    for number, owner in enumerate(owners):
        own = quasi[number :: len(owners)]
        names = ["id", *own, *(["loan"] if number == 0 else [])]
        rows = [list(row) for row in zip(*map(case.table.column, names), strict=True)]
        (folder / f"{owner}.csv").write_text(Table(names, rows).text(), encoding="utf-8")
        attributes = {name: case.policy["attributes"][name] for name in own}
        parties.append({"name": owner, "table": f"{owner}.csv", "attributes": attributes})
    content = {
        "version": 1,
        "join": "id",
        "label": {"attribute": "loan", "shared": True},
        "parties": parties,
        "promises": case.policy["promises"],
        "method": case.policy["method"],
        "seed": case.policy["seed"],
    }
    if len(owners) > 1:
        content["maximum"] = {"name": "clear"}
    path = folder / "parties.json"
    path.write_text(json.dumps(content))
    return path
