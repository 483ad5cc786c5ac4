"""Linked tables, published: read back by plain Python from the files alone."""

import csv
import errno
import json
import sqlite3
from collections import Counter
from contextlib import closing
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import polars as pl
import pytest
from python_calamine import CalamineWorkbook

import naive_items
import shoal
from sample_policies import content_of
from shoal.connectors import linked_tables
from shoal.data.warnings import ReleaseWarning
from shoal.errors import InputError, PromiseError
from shoal.linked import publish as job
from shoal.linked.recode import DraftTable
from shoal.linked.templates import LinkedPromises, bundles_of
from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.problem import LinkedProblem
from shoal.reports import linked, pages
from shoal.reports.distributions import Distribution
from shoal.reports.in_short import in_short

DATE = {"role": "quasi", "type": "date"}
POLICY = content_of(
    {
        "patient": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "wards": {"role": "quasi", "type": "set", "separator": ";"},
        "region": "plain",
    },
    4,
    tables={
        "visits": {
            "parent": {"people": "person"},
            "key": "visit",
            "rows": {"counts": "both"},
            "attributes": {
                "day": DATE,
                "kind": {
                    "role": "quasi",
                    "hierarchy": {"tree": {"urgent": ["er", "car"], "planned": ["by"]}},
                },
                "disease": {"role": "sensitive"},
            },
        },
        "drugs": {
            "parent": {"visits": "visit"},
            "rows": {"known": "count"},
            "attributes": {"drug": {"role": "sensitive"}},
        },
    },
    anchor={"first": "visits.day"},
    seed=3,
)
FIRST = date(2020, 1, 1)


def policy(**changes):
    return shoal.Policy.from_dict(POLICY | changes)


def world(people=60):
    """Frames by table name."""
    rng = np.random.default_rng(1)
    visits = np.repeat(np.arange(people), rng.integers(0, 4, people))
    days = rng.integers(0, 300, people)[visits] + rng.integers(0, 200, len(visits))
    drugs = np.repeat(np.arange(len(visits)), rng.integers(0, 3, len(visits)))
    columns = {
        "people": {
            "patient": [f"p{i}" for i in range(people)],
            "age": rng.integers(0, 100, people),
            "wards": [";".join(sorted({*rng.choice(list("ab"), i % 3)})) for i in range(people)],
            "region": rng.choice(["north", "south"], people),
        },
        "visits": {
            "visit": [f"v{i}" for i in range(len(visits))],
            "person": [f"p{i}" for i in visits],
            "day": [str(FIRST + timedelta(int(day))) for day in days],
            "kind": rng.choice(["er", "car", "by"], len(visits)),
            "disease": rng.choice(["flu", "cold", "asthma", "gout"], len(visits)),
        },
        "drugs": {
            "visit": [f"v{i}" for i in drugs],
            "drug": rng.choice(["x", "y", "z"], len(drugs)),
        },
    }
    return {name: pl.DataFrame(own) for name, own in columns.items()}


def test_what_is_said_of_a_column_names_its_table(tmp_path):
    frames = world()
    age = frames["people"]["age"].cast(float).to_list()
    frames["people"] = frames["people"].with_columns(age=pl.Series([float("nan"), *age[1:]]))
    done = shoal.publish(frames, policy(), output=tmp_path / "out")
    said = [one.text for one in done.certificate.warnings]
    assert "table 'people': column 'age': 1 NaN counts as missing" in said


def rows_of(folder: Path, name: str) -> list[dict[str, str]]:
    with open(folder / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def moved_back(cell: str, day: str) -> str:
    """A date or a span of dates as days from a day."""
    ends = cell.strip("[]").split(", ")
    if not day or not all(end[:1].isdigit() for end in ends):
        return cell
    return " ".join(str((date.fromisoformat(e) - date.fromisoformat(day)).days) for e in ends)


def read_bundles(folder: Path, hides=("patient", "visit", "person", "anchor.day")):
    """Everybody's cells with all rows below, dates counted from their day; but for `hides`."""

    def cells(row, day):
        return tuple(
            moved_back(cell, day) if name == "day" else cell
            for name, cell in row.items()
            if name not in hides
        )

    found = []
    for person in rows_of(folder, "people"):
        day = person.get("anchor.day", "")
        visits = []
        for visit in rows_of(folder, "visits"):
            if visit["person"] == person["patient"]:
                own = [one for one in rows_of(folder, "drugs") if one["visit"] == visit["visit"]]
                below = tuple(sorted(cells(drug, day) for drug in own))
                visits.append((cells(visit, day), below))
        found.append((cells(person, day), tuple(sorted(visits))))
    return found


SENSITIVE = ("patient", "visit", "person", "anchor.day", "region", "disease", "drug")


def test_everybody_has_k_equal_bundles_in_the_files(tmp_path):
    done = shoal.publish(world(), policy(), output=tmp_path / "out")
    alike = Counter(read_bundles(tmp_path / "out", SENSITIVE))
    assert sum(alike.values()) == 60
    assert min(alike.values()) >= 4
    (promise,) = done.certificate["promises"]
    assert promise["measured"] == min(alike.values())
    assert not any(done.certificate["faults"].values())
    assert json.loads((tmp_path / "out" / "certificate.json").read_text()) == dict(done.certificate)


def test_the_same_data_and_seed_give_the_same_bytes_and_another_seed_other_keys(tmp_path):
    files = []
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        shoal.publish(world(), policy(), output=tmp_path / name, seed=seed)
        files.append({p.name: p.read_bytes() for p in (tmp_path / name).glob("*.csv")})
    assert files[0] == files[1]
    assert files[0]["people.csv"] != files[2]["people.csv"]


def sources(frames, asked, folder):
    """By table, the row of the input behind each published row, in their order."""
    shoal.publish(frames, asked, output=folder, trace=f"{folder}.trace")
    lines = map(json.loads, Path(f"{folder}.trace").read_text().splitlines())
    found = {name: [] for name in frames}
    for line in lines:
        found[line["table"]].append(line["seq"])
    return found


KNOWN = {**POLICY["tables"], "drugs": {**POLICY["tables"]["drugs"], "rows": {"known": "all"}}}
OTHERWISE = {
    "a dropped column": {"attributes": {**POLICY["attributes"], "region": {"role": "drop"}}},
    "k": {"promises": [{"model": "k-anonymity", "k": 5}]},
    "known": {"tables": KNOWN},
    "the method": {"method": {"name": "bundles", "band": 20}},
}


@pytest.mark.parametrize("keys", ["release", "none"])
@pytest.mark.parametrize("changed", OTHERWISE)
def test_neither_keys_nor_places_join_releases_under_two_policies(tmp_path, keys, changed):
    """Rows stand by their keys, so the n-th rows of two releases have one key."""
    frames = world(people=120)
    same = {"keys": keys, "anchor": None if keys == "none" else POLICY["anchor"]}
    one = sources(frames, policy(**same), tmp_path / "one")
    other = sources(frames, policy(**same, **OTHERWISE[changed]), tmp_path / "other")
    for name in frames:
        pairs = list(zip(one[name], other[name], strict=False))
        assert len(pairs) > 60
        assert sum(a == b for a, b in pairs) < 8, f"{name}: by chance it is about one row"


def test_keys_join_no_releases_under_policies_of_one_hash(tmp_path):
    """The order of a tree's nodes is no part of the hash, and decides where classes are cut."""
    rng = np.random.default_rng(2)
    jobs = rng.choice(list("abcdefghi"), 120)
    people = pl.DataFrame({"patient": range(120), "age": rng.integers(0, 100, 120), "job": jobs})
    frames = {"people": people, "calls": pl.DataFrame({"patient": range(120), "topic": "a"})}
    calls = {"parent": {"people": "patient"}, "rows": {"known": "count"}}
    found = []
    nodes = {"x": list("abc"), "y": list("def"), "z": list("ghi")}
    for order in ("xyz", "yxz"):
        tree = {name: nodes[name] for name in order}
        job = {"role": "quasi", "hierarchy": {"tree": tree}}
        asked = policy(
            attributes={n: POLICY["attributes"][n] for n in ("patient", "age")} | {"job": job},
            tables={"calls": {**calls, "attributes": {"topic": {"role": "sensitive"}}}},
            anchor=None,
            promises=[{"model": "k-anonymity", "k": 12}],
        )
        seq = sources(frames, asked, tmp_path / order)["people"]
        stated = json.loads((tmp_path / order / "certificate.json").read_text())
        found.append((stated["policy"], stated["classes"], seq))
    assert found[0][0] == found[1][0]
    assert found[0][1] != found[1][1]
    assert sum(a == b for a, b in zip(found[0][2], found[1][2], strict=True)) < 8


def test_a_new_secret_of_pseudonyms_draws_anew_what_could_join_them(tmp_path, monkeypatch):
    found = []
    for secret in ("a secret of the owner's", "another secret of theirs"):
        monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", secret)
        attributes = {**POLICY["attributes"], "region": {"role": "identifier"}}
        attributes["region"]["pseudonym"] = "keyed"
        folder = tmp_path / secret
        found.append(sources(world(), policy(attributes=attributes), folder)["people"])
    assert sum(a == b for a, b in zip(*found, strict=True)) < 8


@pytest.mark.parametrize("changed", ["age", "k"])
def test_drawn_days_join_no_releases_under_two_policies(tmp_path, changed):
    """The place of a person's day in its hull is as near to that of others as to its own."""
    frames = world(people=200)
    attributes = {**POLICY["attributes"], "age": {"role": "drop"}}
    other = {"age": {"attributes": attributes}, "k": OTHERWISE["k"]}[changed]
    parts = []
    for name, asked in (("one", policy()), ("other", policy(**other))):
        seq = sources(frames, asked, tmp_path / name)["people"]
        parts.append({})
        for row, person in zip(seq, rows_of(tmp_path / name, "people"), strict=True):
            if person["anchor.day"] not in ("", "*"):
                lo, *hi = map(date.fromisoformat, person["anchor.hull"].strip("[]").split(", "))
                days = ((hi or [lo])[0] - lo).days + 1
                drawn = (date.fromisoformat(person["anchor.day"]) - lo).days
                parts[-1][row] = drawn / days, (drawn + 1) / days
    both = parts[0].keys() & parts[1].keys()
    own, others = ([one[row] for row in both] for one in parts)
    agree = np.array([[max(a[0], b[0]) < min(a[1], b[1]) for b in others] for a in own])
    chance, number = agree.mean(), len(own)
    assert number > 100
    assert np.diagonal(agree).sum() < chance * number + 5 * np.sqrt(number * chance)


def test_contents_that_change_owners_within_a_class_change_nothing_but_keys(tmp_path):
    """Theorem 1: what members of a class have in their slots may be anybody's of them."""
    frames = world()
    asked = policy()
    problem = LinkedProblem(asked)
    tables = bound_linked(read_linked(frames, problem).tables, problem)
    method = asked.or_method("bundles").build_method(job.VERB)
    rng = np.random.default_rng(asked.model.seed)
    templates = method.bundle(bundles_of(tables), LinkedPromises(tables, problem), rng)
    changed = dict(frames)
    for number, (name, column) in enumerate(
        (("people", "region"), ("visits", "disease"), ("drugs", "drug"))
    ):
        slots = templates.slots[[t.name for t in tables.tree.tables].index(name)]
        person = tables.person_of(name)
        values = frames[name][column].to_list()
        source = tables.rows[name].source
        for slot in range(slots.max() + 1):
            members = np.flatnonzero(slots == slot)
            members = members[np.argsort(person[members])]
            for here, there in zip(members, np.roll(members, 1), strict=True):
                values[source[here]] = frames[name][column][int(source[there])]
        changed[name] = frames[name].with_columns(pl.Series(column, values))
        assert number == 0 or not changed[name].equals(frames[name])
    shoal.publish(frames, asked, output=tmp_path / "before")
    shoal.publish(changed, asked, output=tmp_path / "after")
    before, after = (Counter(read_bundles(tmp_path / n)) for n in ("before", "after"))
    assert before == after


def test_sensitive_values_change_no_quasi_cell_where_k_alone_is_asked(tmp_path):
    frames = world()
    other = frames["visits"].with_columns(disease=pl.lit("flu"))
    shoal.publish(frames, policy(), output=tmp_path / "one")
    shoal.publish(frames | {"visits": other}, policy(), output=tmp_path / "two")
    one, two = (Counter(read_bundles(tmp_path / name, SENSITIVE)) for name in ("one", "two"))
    assert one == two


def test_every_slot_of_a_class_keeps_a_promise_about_values(tmp_path):
    promises = [
        *POLICY["promises"],
        {"model": "l-diversity", "attribute": "visits.disease", "l": 3},
        {"model": "holder-share", "attribute": "visits.disease", "share": 0.8},
    ]
    done = shoal.publish(world(), policy(promises=promises), output=tmp_path / "out")
    assert all(promise["holds"] for promise in done.certificate["promises"])
    measured = {p["model"]: p["measured"] for p in done.certificate["promises"]}
    assert measured["l-diversity"] >= 3
    assert measured["holder-share"] <= 0.8
    assert Counter(read_bundles(tmp_path / "out", SENSITIVE)).most_common()[-1][1] >= 4


def test_drawn_days_lie_in_the_hull_of_the_class_and_are_not_the_anchors(tmp_path):
    frames = world()
    seq = sources(frames, policy(), tmp_path / "out")["people"]
    first = dict(frames["visits"].group_by("person").agg(pl.min("day")).iter_rows())
    own, drawn, by_hull = [], [], {}
    for row, person in enumerate(rows_of(tmp_path / "out", "people")):
        anchor = first.get(frames["people"]["patient"][seq[row]])
        assert (anchor is None) == (person["anchor.day"] == "")
        if anchor is not None:
            lo, *hi = person["anchor.hull"].strip("[]").split(", ")
            assert lo <= person["anchor.day"] <= (hi or [lo])[0]
            assert lo <= anchor <= (hi or [lo])[0]
            own.append(anchor)
            drawn.append(person["anchor.day"])
            by_hull.setdefault(person["anchor.hull"], set()).add(person["anchor.day"])
    assert sum(a == b for a, b in zip(own, drawn, strict=True)) < len(own) / 4
    assert any(len(days) > 3 for days in by_hull.values()), "each person's day is drawn apart"


def test_the_day_of_the_week_is_kept_where_it_is_asked(tmp_path):
    frames = world(people=400)
    asked = policy(anchor={"first": "visits.day", "keep": "weekday"})
    seq = sources(frames, asked, tmp_path / "out")["people"]
    first = dict(frames["visits"].group_by("person").agg(pl.min("day")).iter_rows())
    days = [
        (person["anchor.day"], first.get(frames["people"]["patient"][seq[row]]))
        for row, person in enumerate(rows_of(tmp_path / "out", "people"))
    ]
    moved = [tuple(map(date.fromisoformat, pair)) for pair in days if pair[0] and pair[1]]
    assert all(drawn.weekday() == own.weekday() for drawn, own in moved)
    assert sum(drawn == own for drawn, own in moved) < len(moved) / 2


def test_the_day_of_the_week_is_kept_in_a_short_study_of_many(tmp_path):
    """Few days have it, so that drawn days take both ends of most spans by chance."""
    rng = np.random.default_rng(0)
    people = pl.DataFrame({"patient": range(600), "age": rng.integers(20, 80, 600)})
    days = [FIRST + timedelta(int(day)) for day in rng.integers(0, 28, 600)]
    visits = pl.DataFrame({"person": range(600), "day": map(str, days)})
    asked = policy(
        attributes={name: POLICY["attributes"][name] for name in ("patient", "age")},
        tables={"visits": {"parent": {"people": "person"}, "attributes": {"day": DATE}}},
        anchor={"first": "visits.day", "keep": "weekday"},
    )
    frames = {"people": people, "visits": visits}
    done = shoal.publish(frames, asked, output=tmp_path / "out")
    assert done.certificate["faults"]["odd_days"] == 0
    assert done.certificate["linked"]["anchor"]["least_hull_days"] <= 4


def test_whoever_has_no_visit_hides_among_others_without_one(tmp_path):
    frames = world() | {name: frame.clear() for name, frame in world().items() if name != "people"}
    shoal.publish(frames, policy(), output=tmp_path / "out")
    alike = Counter(read_bundles(tmp_path / "out", SENSITIVE))
    assert min(alike.values()) >= 4
    assert {p["visits.rows"] for p in rows_of(tmp_path / "out", "people")} == {"0"}


def test_rows_of_which_nobody_knows_anything_are_all_published(tmp_path):
    frames = world()
    tables = json.loads(json.dumps(POLICY["tables"]))
    tables["drugs"]["rows"]["known"] = "none"
    promises = [*POLICY["promises"], {"model": "l-diversity", "attribute": "drugs.drug", "l": 2}]
    asked = policy(tables=tables, assume=["counts-unknown"], promises=promises)
    seq = sources(frames, asked, tmp_path / "out")
    visits = {frames["visits"]["visit"][row] for row in seq["visits"]}
    drugs = seq["drugs"]
    assert len(drugs) == len({*drugs}) == frames["drugs"]["visit"].is_in(visits).sum()
    without = [
        (person, [v for v, _ in rows]) for person, rows in read_bundles(tmp_path / "out", SENSITIVE)
    ]
    assert min(Counter(map(repr, without)).values()) >= 4
    assert "drugs.rows" not in rows_of(tmp_path / "out", "visits")[0]


def test_a_class_in_which_nobody_has_any_of_the_rows_that_nobody_knows_is_published(tmp_path):
    ages = [1, 1, 1, 1, 90, 90, 90, 90]
    people = {"patient": range(8), "age": ages, "wards": [""] * 4 + ["a;b"] * 4}
    wards = {**POLICY["attributes"]["wards"], "known": "none"}
    own = {"patient": {"role": "subject"}, "age": POLICY["attributes"]["age"], "wards": wards}
    tables = {"bills": {"parent": {"people": "patient"}, "rows": {"known": "count"}}}
    frames = {"people": pl.DataFrame(people), "bills": pl.DataFrame({"patient": range(8)})}
    asked = policy(attributes=own, tables=tables, anchor=None, assume=["counts-unknown"])
    shoal.publish(frames, asked, output=tmp_path / "out")
    shown = {(one["age"], one["wards"].count(";")) for one in rows_of(tmp_path / "out", "people")}
    assert shown == {("1", 0), ("90", 1)}


def test_nobody_is_withheld_who_is_like_somebody_with_rows_that_nobody_knows(tmp_path):
    people = pl.DataFrame({"patient": range(10), "job": [f"j{i}" for i in range(10)]})
    frames = {"people": people, "calls": pl.DataFrame({"patient": [1, 2], "disease": ["a", "b"]})}
    calls = {
        "parent": {"people": "patient"},
        "rows": {"known": "none"},
        "attributes": {"disease": {"role": "sensitive"}},
    }
    asked = policy(
        attributes={"patient": {"role": "subject"}, "job": {"role": "quasi"}},
        tables={"calls": calls},
        anchor=None,
        assume=["counts-unknown"],
    )
    done = shoal.publish(frames, asked, output=tmp_path / "out")
    assert {person["job"] for person in rows_of(tmp_path / "out", "people")} == {"*"}
    assert done.certificate["promises"][0]["measured"] == 10
    assert done.certificate["records"]["withheld"] == 0


def test_people_who_show_nothing_but_counts_are_published(tmp_path):
    own = {"patient": {"role": "subject"}}
    tables = {"visits": POLICY["tables"]["visits"]}
    frames = world()
    given = {"people": frames["people"].select("patient"), "visits": frames["visits"]}
    asked = shoal.Policy.from_dict({**POLICY, "attributes": own, "tables": tables, "anchor": None})
    shoal.publish(given, asked, output=tmp_path / "out")
    assert rows_of(tmp_path / "out", "people")[0].keys() == {"patient", "visits.rows"}


def test_findings_in_a_table_name_its_own_rows_in_their_order(tmp_path):
    frames = world()
    visits = frames["visits"].reverse().with_columns(pl.col("day").cast(pl.String))
    kinds = visits["kind"].to_list()
    for row in (0, 3):
        kinds[row] = "plane"
    given = frames | {"visits": visits.with_columns(kind=pl.Series(kinds))}
    with pytest.raises(InputError, match=r"table 'visits': .*rows 1, 4\)"):
        shoal.publish(given, policy(), output=tmp_path / "out")


@pytest.mark.parametrize("day", ["9999-12-31", "0001-01-01"])
def test_days_that_moving_would_take_out_of_the_calendar_are_refused(tmp_path, day):
    frames = world()
    attributes = {**POLICY["attributes"], "born": DATE}
    people = frames["people"].with_columns(born=pl.lit("1980-05-05"))
    people[6, "born"] = day
    with pytest.raises(InputError, match=r"row 7 can't be moved within the years 1 to 9999"):
        shoal.publish(
            frames | {"people": people}, policy(attributes=attributes), output=tmp_path / "out"
        )


def test_a_set_may_have_any_name(tmp_path):
    own = {**POLICY["attributes"], "row": POLICY["attributes"]["wards"]}
    people = world()["people"].with_columns(row=pl.col("wards"))
    shoal.publish(world() | {"people": people}, policy(attributes=own), output=tmp_path / "out")
    assert "row" in rows_of(tmp_path / "out", "people")[0]


@pytest.mark.parametrize("separator", [",", " ", "||", "*"])
def test_a_separator_that_stands_in_what_an_element_may_become_is_refused(separator):
    tree = {"lo, w": ["1", "2"], "h||": ["3", "4"]}
    given = {"role": "quasi", "type": "set", "separator": separator, "hierarchy": {"tree": tree}}
    asked = policy(attributes={**POLICY["attributes"], "wards": given}, anchor=None)
    people = world()["people"].with_columns(wards=pl.lit(f"1{separator}3"))
    with pytest.raises(InputError, match="attribute 'wards': its separator stands in 1 of"):
        bound_linked(
            read_linked(world() | {"people": people}, LinkedProblem(asked)).tables,
            LinkedProblem(asked),
        )


def test_keyed_keys_join_and_are_the_same_again(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "a secret of the owner's")
    for name in ("one", "two"):
        shoal.publish(world(), policy(keys="keyed"), output=tmp_path / name)
    keys = [{p["patient"] for p in rows_of(tmp_path / n, "people")} for n in ("one", "two")]
    assert keys[0] == keys[1]
    assert {v["person"] for v in rows_of(tmp_path / "one", "visits")} <= keys[0]
    assert min(Counter(read_bundles(tmp_path / "one", SENSITIVE)).values()) >= 4


def test_equal_keys_of_two_tables_have_pseudonyms_that_nobody_can_join(tmp_path, monkeypatch):
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "a secret of the owner's")
    named = {"role": "identifier", "pseudonym": "keyed"}
    content = json.loads(json.dumps(POLICY))
    content["attributes"]["name"] = content["tables"]["visits"]["attributes"]["name"] = named
    frames = {
        name: frame.with_columns(pl.col("^patient|person|visit$").str.slice(1))
        for name, frame in world().items()
    }
    frames["people"] = frames["people"].with_columns(name="patient")
    frames["visits"] = frames["visits"].with_columns(name="person")
    asked = shoal.Policy.from_dict({**content, "keys": "keyed"})
    shoal.publish(frames, asked, output=tmp_path / "out")
    people, visits = (rows_of(tmp_path / "out", name) for name in ("people", "visits"))
    keys = [{p["patient"] for p in people}, {v["visit"] for v in visits}]
    names = {p["patient"]: p["name"] for p in people}
    assert not keys[0] & keys[1]
    assert not {*names.values()} & (keys[0] | keys[1])
    assert all(names[visit["person"]] == visit["name"] for visit in visits)


@pytest.mark.parametrize("known", ["all", "count"])
def test_a_table_without_a_column_is_published_as_the_rows_of_people(tmp_path, known):
    bare = {"parent": {"people": "person"}, "rows": {"known": known}, "attributes": {}}
    tables = {"visits": {**bare, "attributes": {"day": {"role": "drop"}}}}
    visits = world()["visits"].select("person", "day")
    given = {"people": world()["people"], "visits": visits}
    asked = policy(tables=tables, anchor=None)
    shoal.publish(given, asked, output=tmp_path / "out")
    (found,) = {tuple(row) for row in rows_of(tmp_path / "out", "visits")}
    assert found == ("person",)
    tables["visits"]["attributes"] = {}
    given["visits"] = visits.select("person")
    assert shoal.publish(given, policy(tables=tables, anchor=None), output=tmp_path / "b")


def test_without_keys_no_table_says_whose_its_rows_are(tmp_path):
    shoal.publish(world(), policy(keys="none", anchor=None), output=tmp_path / "out")
    assert not {"patient", "visit", "person"} & {
        column
        for name in ("people", "visits", "drugs")
        for column in rows_of(tmp_path / "out", name)[0]
    }


NO_ROOM = OSError(errno.ENOSPC, "no room")


def _spoilt(change):
    """`recode` with one table changed afterwards."""

    def recode(*given):
        drafts = dict(job_recode(*given))
        change(drafts)
        return drafts

    job_recode = job.recode
    return recode


def _move_a_row(drafts):
    person = drafts["visits"].frame["person"].to_list()
    other = next(i for i, name in enumerate(person) if name != person[0])
    person[0], person[other] = person[other], person[0]
    _overwrite(drafts, "visits", person=pl.Series(person))


def _add_a_row(drafts):
    visits, rows = drafts["visits"].frame, drafts["visits"].rows
    filler = visits[:1].with_columns(visit=pl.lit(str(visits.height + 1)))
    drafts["visits"] = DraftTable(pl.concat([visits, filler]), np.append(rows, rows[0]))


def _overwrite(drafts, name, **cells):
    drafts[name] = DraftTable(drafts[name].frame.with_columns(**cells), drafts[name].rows)


SPOILT = {
    "a row moved": _move_a_row,
    "a row added": _add_a_row,
    "a cell sharpened": lambda drafts: _overwrite(drafts, "people", age=pl.lit("0")),
    "a value changed": lambda drafts: _overwrite(drafts, "drugs", drug=pl.lit("x")),
}


@pytest.mark.parametrize("change", SPOILT.values(), ids=SPOILT)
def test_a_release_that_a_bug_has_spoilt_is_withheld_whole(tmp_path, monkeypatch, change):
    monkeypatch.setattr(job, "recode", _spoilt(change))
    with pytest.raises(PromiseError, match="nothing was written"):
        shoal.publish(world(), policy(), output=tmp_path / "out", trace=tmp_path / "trace")
    assert not list(tmp_path.iterdir())


def test_a_publication_without_room_leaves_the_release_and_the_trace_before(tmp_path, monkeypatch):
    fail = Mock(side_effect=NO_ROOM)
    given = {"output": tmp_path / "out", "trace": tmp_path / "trace"}
    monkeypatch.setattr(linked_tables, "_certify_in", fail)
    with pytest.raises(OSError, match="no room"):
        shoal.publish(world(), policy(), **given)
    assert not list(tmp_path.iterdir())
    monkeypatch.undo()
    shoal.publish(world(), policy(), **given)
    files = {path: path.read_bytes() for path in tmp_path.glob("**/*") if path.is_file()}
    monkeypatch.setattr(linked_tables, "_certify_in", fail)
    with pytest.raises(OSError, match="no room"):
        shoal.publish(world(), policy(), seed=5, replace=True, **given)
    assert {p: p.read_bytes() for p in tmp_path.glob("**/*") if p.is_file()} == files


def as_read(place, names=("people", "visits", "drugs")):
    """The cells of every table at a place, by plain readers."""
    if place.suffix == ".sqlite":
        with closing(sqlite3.connect(place)) as file:
            sql = "SELECT * FROM {} ORDER BY shoal_row"
            found = {name: file.execute(sql.format(name)) for name in names}
            heads = {name: [column[0] for column in found[name].description] for name in names}
            rows = {name: [row[1:] for row in found[name]] for name in names}
        return {n: [heads[n][1:], *(_texts(row) for row in rows[n])] for n in names}
    if place.suffix == ".xlsx":
        book = CalamineWorkbook.from_path(place)
        return {n: [_texts(row) for row in book.get_sheet_by_name(n).to_python()] for n in names}
    if (place / "people.parquet").exists():
        frames = {name: pl.read_parquet(place / f"{name}.parquet") for name in names}
        return {n: [f.columns, *(_texts(row) for row in f.rows())] for n, f in frames.items()}
    return {name: list(csv.reader((place / f"{name}.csv").open())) for name in names}


def _texts(cells):
    return ["" if cell is None else str(cell) for cell in cells]


@pytest.mark.parametrize(
    ("name", "own", "says"),
    [("out.xlsx", "out.xlsx", "replace"), ("out", "out/own.txt", "something other than a release")],
)
def test_what_somebody_wrote_meanwhile_stays(tmp_path, name, own, says):
    def appear(stage: str) -> None:
        if any(tmp_path.iterdir()):  # a draft was begun
            (tmp_path / own).parent.mkdir(exist_ok=True)
            (tmp_path / own).write_text("years of work")

    with pytest.raises(InputError, match=says):
        job.publish_linked(world(), policy(), str(tmp_path / name), progress=appear)
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert (tmp_path / own).read_text() == "years of work"


OUTPUTS = {"folder": {}, "parquet": {"types": "typed"}, "out.xlsx": {}, "out.sqlite": {}}


@pytest.mark.parametrize("name", OUTPUTS)
def test_every_kind_of_output_holds_the_same_cells_and_is_audited_alike(tmp_path, name):
    shoal.publish(world(), policy(), output=tmp_path / "csv")
    asked = policy(write=OUTPUTS[name])
    done = shoal.publish(world(), asked, output=tmp_path / name)
    assert as_read(tmp_path / name) == as_read(tmp_path / "csv")
    audited = shoal.audit(str(tmp_path / name), asked, world())
    assert audited.holds
    hashes = [[table["sha256"] for table in one["tables"]] for one in (audited, done.certificate)]
    assert hashes[0] == hashes[1]


def certificate_of(place):
    if place.suffix == ".sqlite":
        with closing(sqlite3.connect(place)) as file:
            found = file.execute("SELECT DISTINCT certificate FROM shoal_certificates").fetchall()
        ((text,),) = found
        return json.loads(text)
    beside = Path(f"{place}.certificate.json")
    return json.loads((beside if beside.exists() else place / "certificate.json").read_text())


@pytest.mark.parametrize("name", OUTPUTS)
def test_an_earlier_release_gives_way_where_it_is_said_and_nothing_else_does(tmp_path, name):
    asked, out = policy(write=OUTPUTS[name]), tmp_path / name
    first = shoal.publish(world(), asked, output=out)
    with pytest.raises(InputError, match="is there already"):
        shoal.publish(world(), asked, output=out, seed=4)
    assert certificate_of(out) == dict(first.certificate)
    text = first.certificate.to_json().encode()
    assert shoal.Certificate.parsed(text, "certificate.json") == first.certificate
    second = shoal.publish(world(), asked, output=out, seed=4, replace=True)
    assert certificate_of(out) == dict(second.certificate)
    assert shoal.audit(str(out), asked).holds
    _add_something(out)
    if name == "out.xlsx":  # a file gives way, as one of a single table does
        return
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(InputError, match=r"something other|other tables"):
        shoal.publish(world(), asked, output=out, replace=True)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def _add_something(out):
    if out.suffix == ".sqlite":
        with closing(sqlite3.connect(out)) as file, file:
            file.execute("CREATE TABLE notes (note TEXT)")
    elif out.is_dir():
        (out / "notes.txt").write_text("mine")


def test_a_release_in_a_database_is_not_replaced_after_somebody_changed_it(tmp_path):
    out = tmp_path / "out.sqlite"
    shoal.publish(world(), policy(), output=out)
    with closing(sqlite3.connect(out)) as file, file:
        file.execute("UPDATE visits SET disease = 'x' WHERE shoal_row = 1")
    with pytest.raises(InputError, match="something other than the release"):
        shoal.publish(world(), policy(), output=out, replace=True)


@pytest.mark.parametrize("name", ["out.csv", "out.parquet", "-", "sqlite:///out.db?table=people"])
def test_a_place_for_one_table_is_refused_for_several(folder, name):
    with pytest.raises(InputError, match="go to a new folder, a workbook"):
        shoal.publish(world(), policy(), output=name)
    assert not list(folder.iterdir())


def test_a_database_without_its_scheme_is_no_new_folder(folder):
    for source, asked in ((world(), policy()), (world()["people"], policy(tables={}, anchor=None))):
        with pytest.raises(InputError, match="name the table as 'sqlite:///out"):
            shoal.publish(source, asked, output="out.db?table=people")
    assert not list(folder.iterdir())


def test_a_table_that_no_sheet_can_be_named_after_is_refused(tmp_path):
    long = "visits-of-the-first-and-second-year"
    tables = {long: POLICY["tables"]["visits"]}
    asked = policy(tables=tables, anchor={"first": f"{long}.day"})
    given = {"people": world()["people"], long: world()["visits"]}
    with pytest.raises(InputError, match="a sheet can't have this name"):
        shoal.publish(given, asked, output=tmp_path / "out.xlsx")
    assert not list(tmp_path.iterdir())


def test_numbers_of_every_table_are_typed(tmp_path):
    cost = typed_costs(tmp_path, "sensitive", pl.int_range(pl.len()))
    assert cost.dtype == pl.Int64


@pytest.mark.parametrize("role", ["sensitive", "plain"])
def test_numbers_that_are_written_in_several_ways_are_typed_as_one(tmp_path, role):
    ways = pl.Series(["35", "035", "35.0"]).gather(np.arange(world()["visits"].height) % 3)
    cost = typed_costs(tmp_path, role, ways)
    assert cost.dtype == pl.Int64
    assert cost.unique().to_list() == [35]


def typed_costs(folder, role, cost):
    """As visits are published with a cost of each; the audit finds it, too."""
    tables = json.loads(json.dumps(POLICY["tables"]))
    tables["visits"]["attributes"]["cost"] = {"role": role, "type": "number"}
    frames = world() | {"visits": world()["visits"].with_columns(cost=cost)}
    asked = policy(tables=tables, write={"types": "typed"})
    shoal.publish(frames, asked, output=folder / "out")
    assert shoal.audit(str(folder / "out"), asked).holds
    assert shoal.audit(folder / "out", asked, original=frames).holds
    return pl.read_parquet(folder / "out" / "visits.parquet")["cost"]


def test_nothing_that_is_read_is_overwritten(folder):
    shoal.publish(world(), policy(), output="clinic.sqlite")
    Path("clinic").mkdir()
    written(Path("clinic"))
    for source, output in (
        ("clinic", "clinic"),
        ("clinic", "clinic/out.xlsx"),
        ("clinic.sqlite", "sqlite:///clinic.sqlite"),
    ):
        with pytest.raises(InputError, match=r"nothing that is read is overwritten|is the input"):
            shoal.publish(source, policy(), output=output, replace=True)
    shoal.publish("clinic", policy(), output="clinic/released")


# Any m known rows: the files read by plain Python.


def known(**rows):
    tables = json.loads(json.dumps(POLICY["tables"]))
    tables["visits"]["rows"] = {"known": 2, **rows}
    tables["drugs"]["rows"] = {"known": "none"}
    own = {**POLICY["attributes"], "wards": {**POLICY["attributes"]["wards"], "known": 2}}
    return {"tables": tables, "attributes": own, "assume": ["counts-unknown"]}


def known_rows(folder):
    """By person: what tells it apart beside rows that may be known, these, and its values."""
    wards = {person["patient"]: person.pop("wards") for person in rows_of(folder, "people")}
    found = []
    bundles = read_bundles(folder, hides=("visit", "person", "anchor.day", "region", "wards"))
    for cells, visits in bundles:
        values = [(repr(shown[:2] + shown[3:]), shown[2]) for shown, _ in visits]
        rows = [("visits", shown) for shown, _ in values]
        rows += [("wards", ward) for ward in wards[cells[0]].split(";") if ward]
        found.append((cells[1:], sorted(rows), values))
    return found


def test_any_two_known_rows_of_all_tables_fit_k_people_in_the_files(tmp_path):
    done = shoal.publish(world(), policy(**known()), output=tmp_path / "out")
    assert done.certificate["method"]["name"] == "items"
    assert done.certificate["linked"]["known_rows"] == 2
    people = known_rows(tmp_path / "out")
    found = min(
        naive_items.fewest([rows for kind, rows, _ in people if kind == one], 2)
        for one in {kind for kind, _, _ in people}
    )
    (promise,) = done.certificate["promises"]
    kinds = Counter(kind for kind, _, _ in people)
    assert promise["measured"] == min(found, *kinds.values()) >= 4
    assert not any(done.certificate["faults"].values())
    beside = shoal.audit(tmp_path / "out", policy(**known()), original=world())
    assert beside["linked"]["matching"] == {"people": 60, "tried": 60, "least": 4, "below": 0}


AGES = [1, 5, 6, 7, 2, 3, 8, 4]


def visited(visits, age=None, **method):
    """A policy of visits of which two may be known, and its tables. visits: kind and cost of each,
    person by person; age: what the policy says of people's.
    """
    rows = [(f"p{i}", *visit) for i, own in enumerate(visits) for visit in own]
    people = {"patient": [f"p{i}" for i in range(len(visits))], "age": AGES[: len(visits)]}
    frames = {
        "people": pl.DataFrame(people),
        "visits": pl.DataFrame(rows, ["person", "kind", "cost"], orient="row"),
    }
    kinds = {"urgent": ["er", "car"], "planned": ["by", "with"]}
    table = {
        "parent": {"people": "person"},
        "rows": {"known": 2},
        "attributes": {
            "kind": {"role": "quasi", "hierarchy": {"tree": kinds}},
            "cost": {"role": "quasi", "type": "number", "domain": [0, 20]},
        },
    }
    own, method = {"patient": "subject", "age": age or "drop"}, {"name": "items"} | method
    return content_of(own, 2, tables={"visits": table}, method=method, seed=1), frames


def test_cells_cover_what_is_withheld_because_few_have_more_rows_in_them(tmp_path):
    """One visit to `er` is published of everybody who has any: of who has two, either may be."""
    asked, frames = visited(
        [[("er", 19), ("er", 2)], [("with", 17)], [("er", 10)], [("with", 20), ("car", 19)]]
    )
    done = shoal.publish(frames, asked, output=tmp_path / "out")
    assert Counter(done.data["visits"]["kind"]) == {"er": 2, "*": 2}
    assert {*done.data["visits"].filter(pl.col("kind") == "er")["cost"]} == {"[2, 19]"}
    frames["visits"] = pl.concat([frames["visits"].clear(1), frames["visits"]])
    with pytest.warns(shoal.ReleaseWarning, match="'visits': 1 row has no value and is left out"):
        beside = shoal.audit(tmp_path / "out", asked, original=frames)
    assert beside["linked"]["matching"]["below"] == 0


@pytest.mark.parametrize(
    "age",
    [None, {"role": "quasi", "type": "number", "domain": [0, 100], "round": 50}],
    ids=["nothing", "rounded"],
)
def test_rows_of_people_who_look_alike_are_published_alike(tmp_path, age):
    """Two classes of four would publish `with` as it is in one, and as `planned` in the other.

    Rounded ages look alike: 1 to 4 and 5 to 8 are shown as [0, 50].
    """
    one = [[("with", 0)], [("with", 0)], [("er", 1), ("by", 4), ("er", 2)]]
    other = [[("by", 2), ("by", 3), ("car", 0)], [("car", 2), ("with", 2), ("with", 0)]]
    rest = [[("by", 0), ("by", 3), ("car", 1)], [("car", 2), ("car", 4), ("with", 4)]]
    everybody = [one[0], *other, [("with", 4)], *one[1:], *rest]
    asked, frames = visited(everybody, age, size=4)
    shoal.publish(frames, asked, output=tmp_path / "out")
    beside = shoal.audit(tmp_path / "out", asked, original=frames)
    assert beside["linked"]["matching"]["below"] == 0


def test_a_known_count_is_shared_by_all_whom_known_rows_fit(tmp_path):
    asked = policy(**known(count_known=True))
    shoal.publish(world(), asked, output=tmp_path / "out")
    people = known_rows(tmp_path / "out")
    counts = [sum(table == "visits" for table, _ in rows) for _, rows, _ in people]
    kinds = Counter((kind, count) for (kind, _, _), count in zip(people, counts, strict=True))
    assert min(kinds.values()) >= 4
    for one in kinds:
        members = [p[1] for p, c in zip(people, counts, strict=True) if (p[0], c) == one]
        assert naive_items.fewest(members, 2) >= 4


def test_values_are_diverse_among_all_whom_two_known_rows_fit(tmp_path):
    promises = [
        *POLICY["promises"],
        {"model": "l-diversity", "attribute": "visits.disease", "l": 2},
        {"model": "holder-share", "attribute": "visits.disease", "share": 0.9},
    ]
    asked = policy(**known(), promises=promises)
    done = shoal.publish(world(150), asked, output=tmp_path / "out")
    people = known_rows(tmp_path / "out")
    least, share = 99, 0.0
    for one in {kind for kind, _, _ in people}:
        members = [(rows, values) for kind, rows, values in people if kind == one]
        sets = {c for rows, _ in members for size in (0, 1, 2) for c in combinations(rows, size)}
        for chosen in sets:
            fits = naive_items.holders([rows for rows, _ in members], chosen)
            holders = Counter(v for i in fits for v in {v for _, v in members[i][1]})
            share = max([share, *(count / len(fits) for count in holders.values())])
            for shown in (shown for table, shown in chosen if table == "visits"):
                seen = {value for i in fits for cells, value in members[i][1] if cells == shown}
                least = min(least, len(seen))
    measured = {p["model"]: p["measured"] for p in done.certificate["promises"]}
    assert measured["holder-share"] == pytest.approx(share)
    assert measured["l-diversity"] == least >= 2


def test_bundles_may_publish_what_any_m_known_rows_need(tmp_path):
    asked = policy(**known(), method={"name": "bundles"})
    done = shoal.publish(world(), asked, output=tmp_path / "out")
    assert done.certificate["promises"][0]["measured"] >= 4


def test_one_known_date_fits_k_people_equally_where_gaps_are_exact(tmp_path):
    frames = world(150)
    own = {name: POLICY["attributes"][name] for name in ("patient", "age")}
    tables = {"visits": POLICY["tables"]["visits"]}
    visits = frames["visits"]
    dated = frames["people"].filter(pl.col("patient").is_in(visits["person"].to_list()))
    given = {"people": dated.select("patient", "age"), "visits": visits}
    content = {**POLICY, "attributes": own, "tables": tables, "assume": ["one-date-known"]}
    content["anchor"] = {"first": "visits.day", "gaps": "exact"}
    asked = shoal.Policy.from_dict(content)
    with pytest.warns(ReleaseWarning, match="whoever knows two dates"):
        done = shoal.publish(given, asked, output=tmp_path / "out", trace=tmp_path / "trace")
    assert done.certificate["linked"]["anchor"]["worst_posterior"] <= 1 / 4
    lines = [json.loads(line) for line in (tmp_path / "trace").read_text().splitlines()]
    seq = {(line["table"], line["row"]): line["seq"] for line in lines}
    moved = {p["patient"]: p["anchor.day"] for p in rows_of(tmp_path / "out", "people")}
    true = dict(visits.group_by("person").agg(pl.min("day")).iter_rows())
    for row, visit in enumerate(rows_of(tmp_path / "out", "visits")):
        day, person = visits["day"][seq["visits", row]], visits["person"][seq["visits", row]]
        gap = date.fromisoformat(day) - date.fromisoformat(true[person])
        first = date.fromisoformat(moved[visit["person"]])
        assert date.fromisoformat(visit["day"]) - first == gap
    with pytest.raises(InputError, match="add original="):
        shoal.audit(tmp_path / "out", asked)
    beside = shoal.audit(tmp_path / "out", asked, original=given)
    assert beside["linked"]["matching"]["below"] == 0


def test_exact_gaps_take_no_row_without_a_date_and_nobody_without_an_anchor(tmp_path):
    """Else whoever knows that p0's second visit has no day has one candidate."""
    days = [(f"p{i}", f"2024-01-{day + i:02}") for i in range(6) for day in (1, 10)]
    days[1] = ("p0", "")
    visits = pl.DataFrame(days, schema=["patient", "day"], orient="row")
    given = {"people": pl.DataFrame({"patient": [f"p{i}" for i in range(7)]}), "visits": visits}
    asked = policy(
        attributes={"patient": {"role": "subject"}},
        tables={"visits": {"parent": {"people": "patient"}, "attributes": {"day": DATE}}},
        assume=["one-date-known"],
        anchor={"first": "visits.day", "gaps": "exact"},
    )
    released = {
        "people": given["people"].with_columns(pl.lit("2024-01-01").alias("anchor.day")),
        "visits": visits,
    }
    for act in (
        lambda: shoal.publish(given, asked, output=tmp_path / "out"),
        lambda: shoal.audit(released, asked, original=given),
    ):
        with pytest.raises(InputError) as refusal:
            act()
        rows, people = refusal.value.said
        assert rows.startswith("attribute 'visits.day': has no date in 1 of 12 rows (row 2)")
        assert people.startswith("policy, anchor.first: 1 of 7 people have no such date (row 7")
    assert not (tmp_path / "out").exists()


def test_dates_of_people_without_an_anchor_are_withheld_and_counted_as_lost(tmp_path):
    """There is no day to count them from; they are not published as if there were no date."""
    born = [f"196{i}-03-01" for i in range(8)]
    frames = {
        "people": pl.DataFrame({"patient": [f"p{i}" for i in range(8)], "born": born}),
        "visits": pl.DataFrame({"patient": [f"p{i}" for i in range(4)], "day": "2020-01-10"}),
    }
    asked = policy(
        attributes={"patient": {"role": "subject"}, "born": DATE},
        tables={"visits": {"parent": {"people": "patient"}, "attributes": {"day": DATE}}},
    )
    done = shoal.publish(frames, asked, output=tmp_path / "out")
    people = rows_of(tmp_path / "out", "people")
    assert {one["born"] for one in people if one["visits.rows"] == "0"} == {"*"}
    assert all(one["born"] != "*" for one in people if one["visits.rows"] == "1")
    (loss,) = [one["loss"] for one in done.certificate["columns"] if one["name"] == "born"]
    assert loss > 1 / 2


def keyless(tmp_path):
    """A release without keys of visits with a set: its certificate."""
    frames = {
        "people": pl.DataFrame({"patient": range(12), "age": range(20, 32)}),
        "visits": pl.DataFrame({"visit": range(12), "patient": range(12), "codes": "a;b"}),
    }
    attributes = {"codes": POLICY["attributes"]["wards"] | {"known": "all"}}
    visits = {"parent": {"people": "patient"}, "key": "visit", "attributes": attributes}
    own = {name: POLICY["attributes"][name] for name in ("patient", "age")}
    asked = policy(attributes=own, tables={"visits": visits}, anchor=None, keys="none")
    return shoal.publish(frames, asked, output=tmp_path / "out").certificate


def test_a_release_in_short_says_what_is_published_of_each_table(tmp_path):
    """Keys, counts and moved days are no columns of the original."""
    published, *_ = in_short(keyless(tmp_path))
    assert published.says == (
        "12 records of 12 people, with their rows: 12 in visits and 24 in visits.codes; of the"
        " original's columns, 1 in people and 1 in visits. Removed: patient."
    )
    done = shoal.publish(world(), policy(), output=tmp_path / "keyed")
    assert "columns, 3 in people, 3 in visits and 1 in drugs" in in_short(done.certificate)[0].says


def test_a_report_without_keys_says_what_is_not_known_in_whole_sentences(tmp_path):
    certificate, asked = keyless(tmp_path), shoal.Policy.from_dict(POLICY).model
    age = Distribution("age", ("0-100",), np.array([0.0, 100]), None, np.array([12.0]), 12)
    linked.write_linked_report(certificate, asked, tmp_path / "report.html", drawn=[age])
    words = " ".join((tmp_path / "report.html").read_text("utf-8").split())
    assert "How much of all detail is lost can’t be told from what is published." in words
    assert "Columns of rows that no key joins are not drawn below." in words
    assert "that lost most" not in words


def test_without_keys_the_elements_of_a_set_are_counted_as_they_are_published(tmp_path):
    tables = keyless(tmp_path)["tables"]
    (found,) = [one["rows"] for one in tables if one["name"] == "visits.codes"]
    assert found == {"in": 24, "published": 24, "withheld": 0}


def test_a_folder_with_something_in_it_is_left_alone(tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "mine.txt").write_text("mine")
    with pytest.raises(InputError, match="name a new one"):
        shoal.publish(world(), policy(), output=tmp_path / "out")
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["mine.txt"]


@pytest.mark.parametrize("name", ["people.csv", "trace.jsonl"])
def test_a_trace_goes_to_no_folder_that_is_read(tmp_path, name):
    folder = tmp_path / "clinic"
    folder.mkdir()
    written(folder)
    before = (folder / "people.csv").read_bytes()
    for source in (folder, {n: folder / f"{n}.csv" for n in world()}):
        trace = folder / (name if source == folder else "people.csv")
        with pytest.raises(InputError, match="nothing that is read is overwritten"):
            shoal.publish(source, policy(), output=tmp_path / "out", trace=trace)
    assert (folder / "people.csv").read_bytes() == before
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("output", "trace"), [("out", "out/t.jsonl"), ("out.xlsx", "out.xlsx")])
def test_a_trace_goes_to_no_release(tmp_path, output, trace):
    with pytest.raises(InputError, match="is or lies in the release, which holds nothing else"):
        shoal.publish(world(), policy(), output=tmp_path / output, trace=tmp_path / trace)
    assert not list(tmp_path.iterdir())


def written(folder):
    """The tables as files of a folder."""
    for name, frame in world().items():
        frame.write_csv(folder / f"{name}.csv")


@pytest.fixture
def clinic(folder):
    """The words that name the tables for the command, which stand beside their policy."""
    written(folder)
    Path("p.json").write_text(json.dumps(POLICY))
    return ["people.csv", "--table=visits=visits.csv", "--table=drugs=drugs.csv"]


def test_a_report_goes_beside_a_database_without_a_table(clinic, request):
    run = request.getfixturevalue("shoal")
    done = run("publish", *clinic, *"-p p.json -o sqlite:///out.db --report r.html".split())
    assert (done.status, Path("r.html").is_file()) == (0, True), done.err
    refused = run("audit", "out.db", *"-p p.json -o out.db --replace".split())
    assert (refused.status, "is also another file" in refused.err) == (2, True), refused.err


def test_options_of_one_table_are_refused_for_several(tmp_path):
    with pytest.raises(InputError, match="explain: of one table"):
        shoal.publish(world(), policy(), output=tmp_path / "out", explain=True)
    with pytest.raises(InputError, match="output: linked tables go to a new folder"):
        shoal.publish(world(), policy())
    with pytest.raises(InputError, match="are of linked tables"):
        shoal.publish(world()["people"], quasi=["age"], k=2, output=tmp_path / "out")


def test_a_report_without_room_says_that_the_release_is_out(clinic, monkeypatch, shoal):
    monkeypatch.setattr(pages, "write_page", Mock(side_effect=NO_ROOM))
    done = shoal("publish", *clinic, *"-p p.json -o out --report r.html".split(), status=2)
    assert "'out' is published; what is written beside it failed" in done.err
    assert Path("out/certificate.json").exists()


def test_the_command_publishes_files_and_refuses_what_is_of_one_table(clinic, request):
    run, out = request.getfixturevalue("shoal"), Path("out")
    call = ["publish", "-p", "p.json", *clinic, "-o", "out"]
    refused = run(*call, "--explain", "--attack", "all", status=2)
    assert "--explain, --attack: of one table" in refused.err
    assert "judged together" not in refused.err
    assert not out.exists()
    done = run(*call, status=0)
    assert "k-anonymity: asked 4, measured" in done.err
    assert min(Counter(read_bundles(out, SENSITIVE)).values()) >= 4
    others = {"releases": [{"file": "out", "policy": "p.json"}]}
    Path("others.yaml").write_text(json.dumps(others))
    for verb in (call, "audit out -p p.json --original people.csv".split()):
        refused = run(*verb, "--others", "others.yaml", status=2)
        assert "whose releases are not judged together: publish them once" in refused.err
    for more, way_out in (
        ((), "'shoal audit FOLDER --original FOLDER' tries to find everybody"),
        (("--person", "1"), "name the file that 'publish --trace' wrote"),
    ):
        done = run(*"attack out -p p.json --original out".split(), *more, status=2)
        assert way_out in done.err


@pytest.mark.parametrize(
    ("order", "way_out"),
    [
        ("stream people.csv -p policy.json -o out.csv", "collect what arrives, and publish that"),
        ("republish people.csv -p policy.json --ledger L", "people who are in no other round"),
        ("fuse policy.json -o out.csv", "let each owner join theirs into one table"),
    ],
)
def test_verbs_of_one_table_say_what_to_do_with_several(folder, request, order, way_out):
    world()["people"].write_csv("people.csv")
    Path("policy.json").write_text(json.dumps(POLICY))
    refused = request.getfixturevalue("shoal")(*order.split(), "-q")
    assert refused.status == 2
    assert way_out in refused.err
    assert "shoal publish FOLDER" in refused.err
    assert {path.name for path in folder.iterdir()} == {"people.csv", "policy.json"}


def test_numbers_of_a_table_without_a_type_are_said(tmp_path):
    asked = policy(attributes=POLICY["attributes"] | {"age": {"role": "quasi"}})
    with pytest.warns(ReleaseWarning, match=r"attribute 'age': has no type.*'type: number'"):
        shoal.publish(world(), asked, output=tmp_path / "out")
