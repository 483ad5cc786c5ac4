"""What a release whose promises hold still gives reason to ask: findings and their neighbours."""

import contextlib
import io
import json
import warnings
from collections import Counter, defaultdict
from pathlib import Path

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import shoal
from certified_cases import run
from sample_policies import content_of
from shoal.auditor.verdict import of_cells, remedy
from shoal.data.certificate import Certificate
from shoal.data.table import Table
from shoal.policy.policy import Policy
from shoal.reports.limits import linked_rows
from shoal.samples import survey

ROWS = 60


def policy(columns: dict, **more) -> dict:
    attributes = {"age": {"role": "quasi", "type": "number", "domain": [0, 100], "round": 10}}
    return content_of(attributes | columns, 5, method={"name": "mondrian"}) | more


def people(**columns) -> pl.DataFrame:
    return pl.DataFrame({"age": [20 + i % 40 for i in range(ROWS)], **columns})


def codes(role: str, cells: list, name: str = "x", **more) -> dict[str, str]:
    """The findings of one column by code, with their severities."""
    asked = Policy.from_dict(policy({name: {"role": role}}, **more))
    table = Table(pl.DataFrame({name: cells}))
    return {one.code: one.severity for one in of_cells(table, asked)}


NAMES = [f"N{i % 12}" for i in range(ROWS)]
MAILS = [f"a{i}@b.org" for i in range(ROWS)]
POSTCODES = [str(8000 + i % 20) for i in range(ROWS)]
DAYS = ["2020-01-01", "2020-01-02"] * 30
COSTS = [str(i % 20) for i in range(ROWS)]
EXACT_COSTS = [f"{i}.{i % 7}5" for i in range(ROWS)]


@pytest.mark.parametrize(
    ("role", "cells", "name", "found"),
    [
        ("plain", NAMES, "surname", {"plain-names-people": "grave"}),
        ("plain", NAMES, "Nachname", {"plain-names-people": "grave"}),
        ("plain", MAILS, "x", {"plain-names-people": "grave"}),
        ("plain", POSTCODES, "plz", {"plain-names-people": "grave"}),
        ("plain", ["A", "B", "C"] * 20, "ward", {"quasi-left-out": "open"}),
        ("plain", DAYS, "admitted", {"quasi-left-out": "open"}),
        ("sensitive", ["A", "B", "C"] * 20, "x", {}),
        ("sensitive", DAYS, "died", {"quasi-left-out": "open"}),
        ("sensitive", EXACT_COSTS, "cost", {"values-unique": "open"}),
        ("sensitive", [*COSTS[1:], "9999"], "cost", {"outlier-published": "open"}),
        ("sensitive", COSTS, "cost", {}),
        ("sensitive", [*COSTS[5:], *map(str, range(40, 190, 30))], "cost", {}),  # a long tail
        ("drop", MAILS, "email", {}),
        ("identifier", MAILS, "email", {}),
    ],
)
def test_a_column_is_found_by_its_name_and_its_cells(role, cells, name, found):
    unpromised = {"sensitive-unpromised": "open"} if role == "sensitive" else {}
    assert codes(role, cells, name) == unpromised | found


def test_a_promise_about_another_column_does_not_cover_this_one():
    columns = {"ill": {"role": "sensitive"}, "cost": {"role": "sensitive"}}
    promises = [{"model": "k-anonymity", "k": 5}]
    promises += [{"model": "l-diversity", "attribute": "ill", "kind": "distinct", "l": 2}]
    asked = Policy.from_dict(policy(columns, promises=promises))
    table = Table(pl.DataFrame({"ill": ["a", "b"] * 30, "cost": ["1", "2"] * 30}))
    found = [(one.code, one.column) for one in of_cells(table, asked)]
    assert found == [("sensitive-unpromised", "cost")]


def alone(released: pl.DataFrame, names: list[str], persons: list) -> int:
    """People who are the only ones of their class with what these columns show, one by one."""
    who = defaultdict(set)
    for row, person in zip(released.iter_rows(named=True), persons, strict=True):
        who[(row["age"], *(row[name] for name in names))].add(person)
    return len(set().union(*(found for found in who.values() if len(found) == 1)))


@given(st.data())
def test_people_alone_with_what_they_show_are_counted_as_by_hand(data):
    rows = data.draw(st.integers(10, 40))
    cells = st.lists(st.sampled_from("abc"), min_size=rows, max_size=rows)
    persons = data.draw(st.lists(st.integers(0, 30), min_size=rows, max_size=rows))
    frame = pl.DataFrame(
        {
            "age": data.draw(st.lists(st.integers(0, 99), min_size=rows, max_size=rows)),
            "one": data.draw(cells),
            "two": data.draw(cells),
            "who": [f"p{person}" for person in persons],
        }
    )
    columns = {"one": {"role": "plain"}, "two": {"role": "sensitive"}}
    asked = policy(columns | {"who": {"role": "subject"}}, render={"order": "input"})
    asked["promises"] = [{"model": "k-anonymity", "k": 2}]
    if len(set(persons)) < 2:
        return
    done = shoal.publish(frame, asked)
    stated = {c["name"]: c["alone_if_known"] for c in done.certificate["columns"]}
    kept = (done.classes >= 0).tolist()
    released = done.data.filter(pl.Series(kept))
    persons = [person for person, is_kept in zip(persons, kept, strict=True) if is_kept]
    assert stated["one"] == alone(released, ["one"], persons)
    assert stated["two"] == alone(released, ["two"], persons)
    together = done.certificate["together"]["alone_if_known"]
    assert together == alone(released, ["one", "two"], persons)
    assert stated["age"] is None


@pytest.mark.parametrize(("share", "severity"), [(0.0, None), (0.1, "open"), (0.3, "grave")])
def test_how_many_are_alone_says_how_grave_it_is(share, severity):
    own = [f"w{i}" if i < share * ROWS else "w" for i in range(ROWS)]
    frame = people(ward=own).with_columns(age=pl.lit(30))
    done = shoal.publish(frame, policy({"ward": {"role": "plain"}}))
    found = [w for w in done.certificate.warnings if w.code == "plain-singles-out"]
    assert [one.severity for one in found] == ([] if severity is None else [severity])
    for one in found:
        assert one.column == "ward"
        assert f"{int(share * ROWS)} of {ROWS} records are alone" in one.text


def test_t_closeness_says_that_a_missing_value_is_one_of_its_values_and_verify_finds_it(tmp_path):
    frame = people(ill=["I10", "M54", ""] * 20)
    close = {"model": "t-closeness", "attributes": ["ill"], "t": 0.9}
    promises = [{"model": "k-anonymity", "k": 5}, close]
    asked = policy({"ill": {"role": "sensitive"}}, promises=promises)
    frame.write_csv(tmp_path / "in.csv")
    done = shoal.publish(frame, asked)
    found = [one for one in done.warnings if one.code == "missing-counted"]
    assert [(one.column, one.severity) for one in found] == [("ill", "note")]
    done.save(tmp_path / "out.csv")
    checks = shoal.verify(tmp_path / "out.csv", policy=asked)
    assert {check.name: check.ok for check in checks}["measured again"]
    stated = Certificate.load(tmp_path / "out.csv.certificate.json")
    silent = stated.extended(
        warnings=[one for one in stated["warnings"] if one["code"] != "missing-counted"]
    )
    (tmp_path / "silent.json").write_text(silent.to_json())
    checks = shoal.verify(tmp_path / "out.csv", tmp_path / "silent.json", policy=asked)
    assert {check.name: check.ok for check in checks}["measured again"] is False


def test_a_finding_that_earlier_builds_judged_differently_says_so_where_it_differs(tmp_path):
    frame = people(kg=[f"{40 + i},5" for i in range(ROWS)], ill=["I10", "M54", ""] * 20)
    close = {"model": "t-closeness", "attributes": ["ill"], "t": 0.9}
    columns = {"kg": {"role": "quasi"}, "ill": {"role": "sensitive"}}
    asked = policy(columns, promises=[{"model": "k-anonymity", "k": 5}, close])
    frame.write_csv(tmp_path / "in.csv")
    shoal.publish_file(tmp_path / "in.csv", asked, tmp_path / "out.csv")
    made = Certificate.load(tmp_path / "out.csv.certificate.json")
    for code in ("missing-counted", "read-as-text"):
        kept = [one for one in made["warnings"] if one["code"] != code]
        (tmp_path / "earlier.json").write_text(made.extended(warnings=kept).to_json())
        known = {"policy": asked, "original": tmp_path / "in.csv"}
        checks = shoal.verify(tmp_path / "out.csv", tmp_path / "earlier.json", **known)
        (measured,) = (check for check in checks if check.name == "measured again")
        said = f"findings '{code}', which earlier builds of Shoal judged differently: 0 stated, 1"
        assert measured.ok is False
        assert said in measured.text


EVERY = set(
    "sensitive-unpromised plain-names-people quasi-left-out values-unique outlier-published"
    " plain-singles-out single-ends missing-counted sign-of-no-value".split()
)


def test_every_finding_reaches_every_place(tmp_path):
    """Nothing warns in one place alone."""
    frame = people(
        surname=[f"N{i % 12}" for i in range(ROWS)],
        ward=["A", "B", "?"] * 20,
        cost=[*(f"{i}.25" for i in range(ROWS - 1)), "98765"],
        ill=["I10", "M54", ""] * 20,
    ).with_columns(age=pl.Series(range(20, 20 + ROWS)))
    columns = {
        "surname": {"role": "plain"},
        "ward": {"role": "plain"},
        "cost": {"role": "sensitive"},
        "ill": {"role": "sensitive"},
    }
    different = {"model": "l-diversity", "attribute": "ill", "l": 3, "kind": "distinct"}
    asked = policy(columns, promises=[{"model": "k-anonymity", "k": 5}, different])
    del asked["attributes"]["age"]["round"]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        done = shoal.publish(frame, asked)
    said = done.certificate.warnings
    assert {one.code for one in said} == EVERY
    (unique,) = (one.text for one in said if one.code == "values-unique")
    assert "leave the column out, or make it one that others could know" in unique
    assert [str(one.message) for one in caught] == [one.text for one in said]
    frame.write_csv(tmp_path / "in.csv")
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(asked))
    texts = [one.text for one in said]
    _command(tmp_path, texts)
    stated = json.loads((tmp_path / "o.csv.certificate.json").read_text())["warnings"]
    assert [one["text"] for one in stated] == texts
    for name in ("r.html", "d.html"):
        page = (tmp_path / name).read_text()
        lacking = [text for text in texts if _escaped(text)[1:] not in page]  # but its capital
        assert lacking == [], name


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("'", "&#39;")


def _command(folder: Path, texts: list[str]) -> None:
    """Publishes with a report and a dossier; standard error says each of the texts."""
    said = io.StringIO()
    (folder / "c.yaml").write_text("version: 1\n")
    with contextlib.redirect_stderr(said):
        assert run(folder, "publish in.csv -p p.yaml -o o.csv -q --report r.html") == 0
        assert run(folder, "dossier o.csv --context c.yaml -o d.html") == 0
    assert [text for text in texts if f": {text}\n" not in said.getvalue()] == []


def test_households_that_a_published_pseudonym_joins_are_counted_alone_by_what_they_show(
    monkeypatch,
):
    """By hand: the rows of each household in any order, as they are published."""
    monkeypatch.setenv("SHOAL_PSEUDONYM_KEY", "a secret of this test")
    content = yaml.safe_load(survey.POLICY)
    content["attributes"]["household"]["pseudonym"] = "keyed"
    content["attributes"] |= {name: {"role": "drop"} for name in ("age", "education", "district")}
    publication = shoal.publish(survey.generate(400, 7), content)
    homes = defaultdict(list)
    for home, *cells in publication.data.iter_rows():
        homes[home].append(tuple(cells))
    alike = Counter(tuple(sorted(rows)) for rows in homes.values())
    (found,) = [one for one in publication.warnings if one.code == "household-joined"]
    alone = sum(count == 1 for count in alike.values())
    assert (found.severity, found.column) == ("grave", "household")
    assert f": {alone} of {len(homes)} households are alone" in found.text
    assert 0 < alone < len(homes)
    assert linked_rows(publication.certificate) == "yes, by household: pseudonyms of households"


@pytest.mark.parametrize(
    ("measure", "model", "helps"),
    [
        ("homogeneous", "l-diversity", "ask for a larger l"),
        ("certain", "holder-share", "ask for a smaller share"),
        ("certain", "l-diversity", "promise holder-share"),
        ("inference_gain", "t-closeness", "raise k, or ask for a smaller t"),
        ("lifted", "beta-likeness", "ask for a smaller beta"),
        ("certain", "t-closeness", "promise holder-share"),
    ],
)
def test_no_promise_that_stands_is_advised_again(measure, model, helps):
    stated = {"promises": [{"model": model, "attributes": ["disease"]}], "columns": []}
    assert remedy(stated, measure, "disease") == helps
    assert "promise" in remedy(stated, measure, "another")
