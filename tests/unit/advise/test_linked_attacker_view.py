"""What an attacker sees of one person of linked tables, against a count in plain Python."""

import csv
import json
from collections import Counter
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import linked_cases
import shoal
from shoal.cli.main import status_of
from shoal.errors import InputError
from shoal.reports.advice_in_words import attacker_lines

Row = tuple[str, ...]
PRIVATE = {"blood": "people", "visits.disease": "visits", "drugs.drug": "drugs"}


class Files:
    """A release as anybody reads it: what each person shows, has, and whose it is by the trace."""

    def __init__(self, folder: Path, trace: Path) -> None:
        read = {
            name: list(csv.DictReader((folder / f"{name}.csv").open(encoding="utf-8")))
            for name in ("people", "visits", "drugs")
        }
        self.cells = [(one["age"], one["visits.rows"]) for one in read["people"]]
        place = {one["patient"]: at for at, one in enumerate(read["people"])}
        drugs = Counter(one["visit"] for one in read["drugs"])
        self.visits: list[list[Row]] = [[] for _ in place]
        self.has = {name: [set() for _ in place] for name in PRIVATE}
        whose = {one["visit"]: place[one["patient"]] for one in read["visits"]}
        for one in read["visits"]:
            row: Row = (one["cost"],)
            if "drugs.rows" in one:  # else nobody knows how many there are
                row += (one["drugs.rows"], str(drugs[one["visit"]]))
            self.visits[whose[one["visit"]]].append(row)
            self.has["visits.disease"][whose[one["visit"]]].add(one["disease"])
        for one in read["drugs"]:
            self.has["drugs.drug"][whose[one["visit"]]].add(one["drug"])
        for at, one in enumerate(read["people"]):
            self.has["blood"][at].add(one["blood"])
        lines = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
        self.place = {ln["seq"]: ln["row"] for ln in lines if ln["table"] == "people"}

    def found(self, at: int, known: int | None) -> list[list[int]]:
        """Everybody who shows what may be known of a published person, for each way to know it."""
        ways = []
        for size in range((known or 0) + 1):
            for rows in {*combinations(sorted(self.visits[at]), size)}:
                asked = Counter(rows)
                ways.append([p for p in range(len(self.cells)) if self.shows(p, at, asked, known)])
        return ways

    def shows(self, person: int, at: int, asked: Counter[Row], known: int | None) -> bool:
        if self.cells[person] != self.cells[at]:
            return False
        if known is None:
            return sorted(self.visits[person]) == sorted(self.visits[at])
        return asked <= Counter(self.visits[person])


@pytest.fixture(scope="module", params=[None, 1, 2])
def case(request, tmp_path_factory):
    """Frames, policy, release and trace, for whole rows or any number of rows that are known."""
    folder, known = tmp_path_factory.mktemp("view"), request.param
    content = linked_cases.policy(3)
    if known is not None:
        content["tables"]["visits"]["rows"] = {"known": known}
        content["tables"]["drugs"]["rows"] = {"known": "none"}
        content["assume"] = ["counts-unknown"]
    frames, policy = linked_cases.world(40), shoal.Policy.from_dict(content)
    out, trace = folder / "out", folder / "trace"
    shoal.publish(frames, policy, output=out, trace=trace)
    return frames, policy, out, trace, known


def test_whom_an_attacker_finds_and_what_they_could_have_is_counted_in_the_files(case):
    frames, policy, out, trace, known = case
    views, files = shoal.attacker_views(out, policy, frames, trace=trace), Files(out, trace)
    for row in range(40):
        view = views.of_row(row + 1)
        at = files.place[row]
        ways = files.found(at, known)
        assert view.people == min(map(len, ways)) >= 3
        assert [one.attribute for one in view.learnt] == [*PRIVATE]
        possible = [
            [Counter(value for p in way for value in files.has[name][p]) for name in PRIVATE]
            for way in ways
            if len(way) == view.people
        ]
        seen = [{one.value: one.people for one in learnt.values} for learnt in view.learnt]
        assert seen in possible
        assert view.shown["age"] == files.cells[at][0]


def most_exposed(files, found) -> int:
    """The row of the person with the likeliest value, by whom each row is found among."""

    def exposed(row: int) -> tuple[float, int, int]:
        own = files.place[row]
        likely = max(
            sum(value in files.has[name][p] for p in way) / len(way)
            for way in found[row]
            for name in PRIVATE
            for value in files.has[name][own]
        )
        return -likely, min(map(len, found[row])), row

    return min(range(40), key=exposed) + 1


def test_the_most_exposed_person_has_a_value_that_is_as_likely_as_any(case):
    frames, policy, out, trace, known = case
    views, files = shoal.attacker_views(out, policy, frames, trace=trace), Files(out, trace)
    found = [files.found(files.place[row], known) for row in range(40)]
    assert views.most_exposed() == most_exposed(files, found)


def test_what_is_known_are_the_persons_own_rows_as_the_policy_says(case):
    frames, policy, out, trace, known = case
    view = shoal.attacker_view(out, policy, frames, 7, trace=trace)
    person = frames["people"].row(6, named=True)
    assert view.known == {"age": str(person["age"])}
    visits, *counted = view.tables
    own = frames["visits"].filter(frames["visits"]["patient"] == person["patient"])
    assert (visits.known, visits.rows) == (str(known or "all"), own.height)
    assert visits.columns == ("cost",)
    assert visits.cells == tuple((str(cost),) for cost in own["cost"])
    drugs = [("count", own.height, ())] if known is None else []
    assert [(one.known, one.rows, one.cells) for one in counted] == drugs
    learnt = {one.attribute: one for one in view.learnt}
    assert learnt["blood"].truth == person["blood"]
    assert learnt["visits.disease"].truth == ", ".join(dict.fromkeys(own["disease"]))


def test_the_most_distorted_person_loses_most_over_all_rows(tmp_path):
    frames, policy = linked_cases.world(40), shoal.Policy.from_dict(linked_cases.policy(3))
    out, trace = tmp_path / "out", tmp_path / "trace"
    done = shoal.publish(frames, policy, output=out, trace=trace)
    row = shoal.attacker_views(out, policy, frames, trace=trace).most_distorted() - 1
    files, name = Files(out, trace), frames["people"]["patient"][row]
    at = files.place[row]
    had = (frames["visits"]["patient"] == name).sum()

    def width(cell: str) -> int:
        ends = [int(end) for end in cell.strip("[]").split(", ")]
        return ends[-1] - ends[0]

    lost = width(files.cells[at][0]) / 100 + had - len(files.visits[at])
    lost += sum(width(cost) / 1000 for cost, *_ in files.visits[at])
    assert lost / (1 + had) >= done.certificate["linked"]["paid"]["tenth"]


def trace_of_rows_left(trace: Path, out: Path, released: dict[str, pl.DataFrame]) -> str:
    """The trace of a release of which rows were taken out, which stand in their old order."""
    lines = []
    old = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    for name, frame in released.items():
        link = "patient" if name == "people" else "visit"
        kept = {*frame[link]}
        all_of_it = pl.read_csv(out / f"{name}.csv", infer_schema=False)[link].to_list()
        seqs = [one["seq"] for one in old if one["table"] == name]
        some = [seq for seq, key in zip(seqs, all_of_it, strict=True) if key in kept]
        lines += [{"table": name, "row": row, "seq": seq} for row, seq in enumerate(some)]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def test_who_shows_nothing_is_found_by_nobody_and_is_in_nobodys_class(case, tmp_path):
    frames, policy, out, trace, known = case
    released = {name: pl.read_csv(out / f"{name}.csv", infer_schema=False) for name in frames}
    people, visits = released["people"], released["visits"]
    gone = people["patient"] == people["patient"][0]
    hidden = [pl.when(gone).then(pl.lit("*")).otherwise(column).alias(column.name)
              for column in people.get_columns()[1:]]  # fmt: skip
    visits = visits.filter(visits["patient"] != people["patient"][0])
    released |= {"people": people.with_columns(hidden), "visits": visits}
    released["drugs"] = released["drugs"].join(visits, on="visit", how="semi")
    before = shoal.attacker_views(out, policy, frames, trace=trace)
    left = tmp_path / "trace"
    left.write_text(trace_of_rows_left(trace, out, released), "utf-8")
    after = shoal.attacker_views(released, policy, frames, trace=left)
    owners = before.owners.tolist()
    view = after.of_row(owners[0] + 1)
    assert (view.people, view.fitting_classes, view.shown) == (0, 0, None)
    assert not any(one.values for one in view.learnt)
    label = before.release.view.labels
    other = int(np.flatnonzero(label == label[0])[1])
    lost = before.of_row(owners[other] + 1).people - after.of_row(owners[other] + 1).people
    assert lost == 1 if known is None else lost >= 0
    assert owners[0] + 1 not in (after.most_exposed(), after.most_distorted())


def test_without_the_trace_of_the_release_nobody_is_looked_for(case, tmp_path):
    frames, policy, out, trace, _ = case
    with pytest.raises(InputError, match="only the trace tells"):
        shoal.attacker_view(out, policy, frames)
    other = tmp_path / "trace"
    other.write_text("".join(trace.read_text("utf-8").splitlines(keepends=True)[1:]), "utf-8")
    with pytest.raises(InputError, match="is not of this release"):
        shoal.attacker_view(out, policy, frames, trace=other)
    with pytest.raises(InputError, match="from 1 to 40"):
        shoal.attacker_view(out, policy, frames, 41, trace=trace)


def test_a_trace_of_another_release_is_refused_by_the_rows_that_do_not_fit(case, tmp_path):
    frames, policy, out, *_ = case
    other = tmp_path / "trace"
    shoal.publish(frames, policy, output=tmp_path / "out", trace=other, k=4, seed=9)
    with pytest.raises(InputError, match=r"^trace: "):
        shoal.attacker_views(out, policy, frames, trace=other)


@pytest.mark.parametrize("table", ["people", "visits", "drugs"])
def test_a_trace_that_swaps_two_rows_of_any_table_is_refused(case, tmp_path, table):
    frames, policy, out, trace, _ = case
    lines = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    of_table = [one for one in lines if one["table"] == table]
    private = {"people": "blood", "visits": "disease", "drugs": "drug"}[table]
    first, *rest = of_table
    second = next(
        one for one in rest if frames[table][private][one["seq"]]
        != frames[table][private][first["seq"]]
    )  # fmt: skip
    first["seq"], second["seq"] = second["seq"], first["seq"]
    swapped = tmp_path / "trace"
    swapped.write_text("".join(f"{json.dumps(one)}\n" for one in lines), "utf-8")
    with pytest.raises(InputError, match=r"^trace: [0-9]+ rows? do") as refused:
        shoal.attacker_views(out, policy, frames, trace=swapped)
    assert f"in table '{table}'" in str(refused.value)


def said_of(folder: Path, frames, content: dict, row: int) -> dict[str, str]:
    """By private column, the last sentence on it."""
    policy, out, trace = shoal.Policy.from_dict(content), folder / "out", folder / "trace"
    shoal.publish(frames, policy, output=out, trace=trace)
    view = shoal.attacker_view(out, policy, frames, row, trace=trace)
    blocks = "\n".join(attacker_lines(view)).split("\n\n")[1:]
    return {
        one.attribute: block.splitlines()[-1]
        for one, block in zip(view.learnt, blocks, strict=True)
    }


def of_visits(diseases: list[list[str]]):
    """People who are alike, with a visit for each of their diseases."""
    names = [f"p{i}" for i in range(len(diseases))]
    pairs = [(name, one) for name, own in zip(names, diseases, strict=True) for one in own]
    return {
        "people": pl.DataFrame({"patient": names, "age": [40] * len(names), "blood": "A"}),
        "visits": pl.DataFrame(
            {
                "visit": [f"v{i}" for i in range(len(pairs))],
                "patient": [name for name, _ in pairs],
                "cost": [900 if one == "gout" else 10 for _, one in pairs],
                "disease": [one for _, one in pairs],
            }
        ),
        "drugs": pl.DataFrame({"visit": ["v0"], "drug": ["iron"]}),
    }


def test_of_several_true_values_it_says_that_not_all_are_published(tmp_path):
    frames = of_visits([["flu", "gout"], ["flu"], ["flu"]])  # one visit each is published
    said = said_of(tmp_path, frames, linked_cases.policy(3), 1)["visits.disease"]
    assert said.endswith("not all of which are published of those who look the same")


def test_of_who_has_no_row_it_says_so(tmp_path):
    frames = of_visits([["flu"], ["gout"], ["flu"]])
    content = linked_cases.policy(3)
    content["tables"]["drugs"]["rows"] = {"known": "none"}
    content["assume"] = ["counts-unknown"]
    said = said_of(tmp_path, frames, content, 2)
    assert said["drugs.drug"].endswith("the truth is that they have no such row")


def test_without_keys_it_says_that_no_value_is_known_to_be_theirs(tmp_path):
    content = linked_cases.policy(3, keys="none")
    said = said_of(tmp_path, linked_cases.world(40), content, 7)
    of_nobody = "no published value is known to be of anybody who looks the same"
    assert said["visits.disease"] == f"visits.disease: {of_nobody}"
    assert "blood" in said


def test_no_value_is_in_what_a_view_shows_of_itself(case):
    frames, policy, out, trace, _ = case
    view = shoal.attacker_view(out, policy, frames, 7, trace=trace)
    shown = f"{view!r}{view._repr_html_()}{view.tables[0]!r}"
    assert not any(text in shown for text in view.tables[0].cells[0])


def test_the_command_shows_a_person_on_standard_output_alone(folder, capsys):
    Path("in").mkdir()
    for name, frame in linked_cases.world(20).items():
        frame.write_csv(f"in/{name}.csv")
    Path("p.json").write_text(json.dumps(linked_cases.policy(3)), "utf-8")
    shoal.publish("in", "p.json", output="out", trace="trace")
    asked = ["attack", "out", "-p", "p.json", "--original", "in", "--person", "most-exposed"]
    before = sorted(folder.rglob("*"))
    assert status_of(asked) == 2
    assert "--trace" in capsys.readouterr().err
    assert status_of([*asked, "--trace", "trace"]) == 0
    shown = capsys.readouterr()
    view = shoal.attacker_view("out", "p.json", "in", trace="trace")
    rows = view.tables[0].rows
    assert f"visits: {rows} row{'s' * (rows > 1)}; known: all rows\n  cost " in shown.out
    assert f"who looks the same: {view.people} people" in shown.out
    assert view.learnt[1].values[0].value in shown.out
    assert view.learnt[1].values[0].value not in shown.err
    assert status_of([*asked, "--trace", "trace", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(json.dumps(view.to_dict()))
    assert sorted(folder.rglob("*")) == before


# Of exact gaps one date is known.


@pytest.fixture(scope="module")
def dated(tmp_path_factory):
    """Frames, policy, release and trace of visits on days that keep their gaps."""
    folder = tmp_path_factory.mktemp("dated")
    content = linked_cases.policy(
        3, anchor={"first": "visits.day", "gaps": "exact"}, assume=["one-date-known"]
    )
    content["tables"]["visits"]["attributes"]["day"] = {"role": "quasi", "type": "date"}
    frames, rng = linked_cases.world(40), np.random.default_rng(0)
    days = [linked_cases.DAY + timedelta(int(day)) for day in rng.integers(0, 90, 200)]
    frames["visits"] = frames["visits"].with_columns(
        day=pl.Series(days[: frames["visits"].height]).cast(pl.String)
    )
    out, trace = folder / "out", folder / "trace"
    policy = shoal.Policy.from_dict(content)
    shoal.publish(frames, policy, output=out, trace=trace)
    return frames, policy, out, trace


def found_by_dates(frames, out: Path, trace: Path) -> dict[int, list[list[int]]]:
    """By row of the original, whom each date of the person fits, in a row that shows the same as
    the one with the date; and first, who is alike but for dates.
    """
    files = Files(out, trace)
    people, visits = (
        list(csv.DictReader((out / f"{name}.csv").open(encoding="utf-8")))
        for name in ("people", "visits")
    )
    place = {one["patient"]: at for at, one in enumerate(people)}
    shown = zip(files.cells, people, files.visits, strict=True)
    alike = [(cells, one["anchor.hull"], sorted(rows)) for cells, one, rows in shown]
    drugs = Counter(one["visit"] for one in csv.DictReader((out / "drugs.csv").open()))
    rows = []
    for one in visits:
        at = place[one["patient"]]
        anchor = date.fromisoformat(people[at]["anchor.day"])
        kind = one["cost"], one["drugs.rows"], drugs[one["visit"]]
        rows.append((at, kind, date.fromisoformat(one["day"]) - anchor))
    lines = [json.loads(line) for line in trace.read_text("utf-8").splitlines()]
    true = {one["row"]: one["seq"] for one in lines if one["table"] == "visits"}
    found = {}
    for seq, at in files.place.items():
        hull = people[at]["anchor.hull"].strip("[]").split(", ")
        first, last = date.fromisoformat(hull[0]), date.fromisoformat(hull[-1])
        ways = [[p for p in range(len(people)) if alike[p] == alike[at]]]
        for number, (owner, kind, _) in enumerate(rows):
            if owner == at:
                known = date.fromisoformat(frames["visits"]["day"][true[number]])
                fits = {p for p, own, gap in rows if own == kind and first <= known - gap <= last}
                ways.append(sorted(fits & {*ways[0]}))
        found[seq] = ways
    return found


def test_of_exact_gaps_one_date_is_known_and_whom_it_fits_is_counted(dated):
    frames, policy, out, trace = dated
    views = shoal.attacker_views(out, policy, frames, trace=trace)
    found = found_by_dates(frames, out, trace)
    narrower = 0
    for row in range(40):
        view = views.of_row(row + 1)
        assert view.people == min(map(len, found[row])) >= 3
        narrower += view.people < len(found[row][0])
        visits = view.tables[0]
        assert visits.columns == ("cost", "day")
        (known,) = {day for _, day in visits.cells} - {"?"}
        assert known in frames["visits"].filter(patient=f"p{row}")["day"]
        assert "anchor.day" not in view.known
    assert narrower > 0


def test_whoever_is_most_exposed_is_so_by_one_known_date(dated):
    frames, policy, out, trace = dated
    views, files = shoal.attacker_views(out, policy, frames, trace=trace), Files(out, trace)
    assert views.most_exposed() == most_exposed(files, found_by_dates(frames, out, trace))
