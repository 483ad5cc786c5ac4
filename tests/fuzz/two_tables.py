"""Releases of two tables: published, judged with the standard library alone, audited and spoilt."""

from collections import Counter, defaultdict
from fractions import Fraction
from pathlib import Path
from random import Random

from fuzz import draw
from fuzz.cells import Table, number
from fuzz.draw import Case
from fuzz.outcome import Outcome, write_inputs
from fuzz.rules import folded
from shoal.auditor.audit import audit_file
from shoal.auditor.verify import verify
from shoal.data.recoding import OWN_METHODS
from shoal.tables.publish import publish_file

QUASI_KINDS = [kind for kind in draw.KINDS if kind not in ("mean", "both")]
HIDDEN = "hidden; value"


def draw_case(random: Random, method: str | None = None) -> Case:
    """A table, its policy of two tables, and a column of numbers that tells rows apart, or not."""
    records = random.choice([2, 5, 9, 16, 25, 40, 60])
    columns = draw.Columns(random, records, ["", "?"])
    for name in random.sample(draw.NAMES, random.choice([1, 2, 3])):
        columns.add(name, "quasi", random.choice(QUASI_KINDS))
    kind = random.choice(draw.SENSITIVE_KINDS)
    columns.add(HIDDEN, "sensitive", kind)
    if random.random() < 0.8:  # else one value is often too frequent
        columns.cells[HIDDEN] = [draw.value(kind, random) for _ in range(records)]
    columns.attributes["row id"] = {"role": "quasi"}
    columns.cells["row id"] = [f"r{i}" for i in range(records)]
    if random.random() < 0.5:
        columns.add_people(random.choice([1, 1, 1, 0.5]))
    l = random.choice([2, 2, 3, 4])
    alpha = -(-100 // l) / 100
    promises = [
        {"model": "alpha-k-anonymity", "attribute": HIDDEN, "alpha": alpha, "k": l},
        {"model": "l-diversity", "attribute": HIDDEN, "l": l},
    ]
    asked = random.sample(promises, random.choice([1, 2]))
    name = method or random.choice(sorted(OWN_METHODS))
    policy = columns.policy(asked, {"name": name, "l": l, "near": random.random() < 0.3})
    policy["missing"] = "value"
    return Case("pair", policy, columns.table(), {"h.csv": draw.HIERARCHY})


def run(case: Case, folder: Path, random: Random) -> Outcome:
    """Everything that has to be true of two tables."""
    outcome = Outcome()
    source, out = str(folder / "table.csv"), str(folder / "out.csv")
    values = [_value(case, cell) for cell in case.table.column(HIDDEN)]
    with outcome.of("publish"):
        asked = write_inputs(case, folder)
        publish_file(source, asked, out)
    if outcome.status == "infeasible":
        l = case.policy["method"]["l"]
        fits = max(Counter(values).values()) * l <= len(values) >= l
        outcome.require(not fits, "infeasible: but no value is too frequent", f"l = {l}")
    if outcome.status != "published":
        return outcome
    quasi, sensitive = (_read(folder / name) for name in ("out.csv", "out.sensitive.csv"))
    for problem in _judged(case, quasi, sensitive):
        outcome.add(f"checker: {problem}", "")
    for original in (None, source):
        certificate = audit_file(out, asked, original).certificate
        outcome.require(certificate.holds, "audit: own release fails", f"{original}")
    outcome.verify(out, {}, {"policy": asked}, {"policy": asked, "original": source})
    _spoil(outcome, case, asked, sensitive, folder, random)
    return outcome


def _spoil(
    outcome: Outcome, case: Case, asked, sensitive: Table, folder: Path, random: Random
) -> None:
    """A value of one group goes to another, in exchange for one that this lacks."""
    one, other = random.choice(sensitive.rows), random.choice(sensitive.rows)
    shown = {(row[0], _value(case, row[1])) for row in sensitive.rows}
    mine, theirs = (_value(case, row[1]) for row in (one, other))
    if (one[0], theirs) in shown or (other[0], mine) in shown:
        return
    one[0], other[0] = other[0], one[0]
    path, out = folder / "out.sensitive.csv", str(folder / "out.csv")
    path.write_text(sensitive.text(), encoding="utf-8", newline="")
    failing = [check.name for check in verify(out) if check.ok is False]
    outcome.require(failing == ["file"], "spoilt: verify finds something else", str(failing))
    found = audit_file(out, asked, str(folder / "table.csv")).certificate
    outcome.require(found["faults"]["changed"] >= 2, "spoilt: the original finds nothing", "")


def _judged(case: Case, quasi: Table, sensitive: Table) -> list[str]:
    """What is wrong with two tables."""
    names = [n for n in case.table.names if case.policy["attributes"][n]["role"] == "quasi"]
    if quasi.names != [*names, "group"] or sensitive.names != ["group", HIDDEN, "count"]:
        return ["other columns"]
    problems = []
    if Counter(_cells(quasi, names)) != Counter(_cells(case.table, names)):
        problems.append("rows changed")
    listed: dict[str, Counter[str]] = defaultdict(Counter)
    for group, value, count in sensitive.rows:
        listed[group][value] += int(count)
    own = dict(zip(case.table.column("row id"), case.table.column(HIDDEN), strict=True))
    true: dict[str, Counter[str]] = defaultdict(Counter)
    for row, group in zip(quasi.column("row id"), quasi.column("group"), strict=True):
        true[group][own[row]] += 1
    if listed != true:
        problems.append("a group lists other values than its people have")
    l = case.policy["method"]["l"]
    if len(listed) != len(quasi.rows) // l:
        problems.append("fewer groups than can be")
    for counts in listed.values():
        merged = Counter()
        for value, count in counts.items():
            merged[_value(case, value)] += count
        if Fraction(max(merged.values()), sum(merged.values())) > Fraction(1, l) or len(merged) < l:
            problems.append("a value is too frequent in its group")
            break
    return problems


def _value(case: Case, cell: str) -> object:
    """What counts as one value: all texts for none, equal numbers, texts written alike."""
    if folded(cell) in {folded(one) for one in (*case.policy["missing_values"], "*")}:
        return ""
    hidden = case.policy["attributes"][HIDDEN]
    if hidden.get("type") == "number":
        return number(cell)
    return cell if "hierarchy" in hidden else folded(cell)


def _cells(table: Table, names: list[str]) -> list[tuple[str, ...]]:
    return [*zip(*(table.column(name) for name in names), strict=True)]


def _read(path: Path) -> Table:
    return Table.read(path.read_text(encoding="utf-8"))
