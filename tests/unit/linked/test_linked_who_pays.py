"""Who pays for a release of linked tables, counted in plain Python from its files and its trace."""

import csv
import json

import pytest

import linked_cases
import shoal

DOMAINS = {"people": {"age": 100}, "visits": {"cost": 1000}, "drugs": {}}
PARENTS = {"visits": ("people", "patient"), "drugs": ("visits", "visit")}


def width(cell: str) -> float:
    ends = [1 if end == "*" else float(end) for end in cell.strip("[]").split(", ")]
    return ends[-1] - ends[0]


def rows_by_person(tables: dict[str, list[dict]]) -> dict[str, list[int]]:
    """By table, the row of people to which each row belongs."""
    found = {"people": list(range(len(tables["people"])))}
    for name, (parent, key) in PARENTS.items():
        place = {row[key]: at for at, row in enumerate(tables[parent])}
        found[name] = [found[parent][place[row[key]]] for row in tables[name]]
    return found


@pytest.mark.parametrize("seed", range(4))
def test_what_people_lose_is_counted_over_all_of_their_rows(tmp_path, seed):
    frames = linked_cases.world(37, seed)
    policy = shoal.Policy.from_dict(linked_cases.policy(4, seed=seed))
    out, trace = tmp_path / "out", tmp_path / "trace"
    done = shoal.publish(frames, policy, output=out, trace=trace)
    before = {name: frame.to_dicts() for name, frame in frames.items()}
    after = {
        name: list(csv.DictReader((out / f"{name}.csv").open(encoding="utf-8"))) for name in before
    }
    lines = [json.loads(line) for line in trace.read_text(encoding="utf-8").splitlines()]
    person_of = {line["row"]: line["seq"] for line in lines if line["table"] == "people"}
    had, left = rows_by_person(before), rows_by_person(after)
    lost, cells = [0.0] * 37, [0] * 37
    people = {}
    for name, domains in DOMAINS.items():
        withheld = [had[name].count(person) for person in range(37)]
        for row, at in zip(after[name], left[name], strict=True):
            withheld[person_of[at]] -= 1
            lost[person_of[at]] += sum(width(row[one]) / whole for one, whole in domains.items())
        for person, count in enumerate(withheld):
            lost[person] += count * len(domains)
            cells[person] += had[name].count(person) * len(domains)
        if name != "people":
            losing = [person for person, count in enumerate(withheld) if count]
            none = [person for person in losing if withheld[person] == had[name].count(person)]
            people[name] = {"losing": len(losing), "without": len(none)}
    losses = sorted(a / b for a, b in zip(lost, cells, strict=True))
    paid = done.certificate["linked"]["paid"]
    assert paid["people"] == people
    assert people["visits"]["losing"]
    assert paid["tenth"] == pytest.approx(sum(losses[-3:]) / 3)
    assert paid["half"] == pytest.approx(sum(losses[:18]) / 18)


def test_who_has_no_row_left_is_counted_among_those_who_had_some(tmp_path):
    """Nine people have a visit and one has none: the class of all shows none."""
    frames = linked_cases.world(10)
    visits = frames["visits"].unique("patient", keep="first", maintain_order=True)
    frames["visits"] = visits.filter(visits["patient"] != "p3")
    frames["drugs"] = frames["drugs"].join(frames["visits"].select("visit"), on="visit")
    policy = shoal.Policy.from_dict(linked_cases.policy(10))
    done = shoal.publish(frames, policy, output=tmp_path / "out")
    paid = done.certificate["linked"]["paid"]
    assert paid["people"] == {name: {"losing": 9, "without": 9} for name in ("visits", "drugs")}


def test_where_rows_are_nobodys_nothing_is_said_of_who_pays(tmp_path):
    policy = shoal.Policy.from_dict(linked_cases.policy(3, keys="none"))
    done = shoal.publish(linked_cases.world(30), policy, output=tmp_path / "out")
    assert done.certificate["linked"]["paid"] is None
