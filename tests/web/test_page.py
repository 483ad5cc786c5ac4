"""The way through the page without a browser: from a table to a draft."""

import json
import re

import numpy as np
import polars as pl
import pytest
import yaml

import shoal
from sample_policies import content_of
from shoal.connectors.traces import write_trace
from shoal.reports.pages import percent_text
from shoal.samples import survey
from shoal.web.looks import Looks
from shoal.web.sign_off import TRACE
from web.visitor import number_of


def draft(visitor, said="Every promise holds", k="") -> str:
    """Makes a draft, of another k if one is given, and waits for it; its folder's name."""
    if k:
        visitor.edit("k", k=k)
    visitor.get("/promises")
    visitor.send("draft-form")
    visitor.until("/result", said)
    return visitor.server.project.runs[0].name


def test_a_draft_takes_options_of_publish_from_its_form_and_refuses_what_does_not_fit(opened):
    opened.get("/promises")
    assert "the page says where its files go" in opened.send("draft-form", trace="t.jsonl").words
    assert not opened.server.project.runs
    opened.get("/promises")
    opened.send("draft-form", explain="on")
    opened.until("/result", "recodes each class on its own")


def test_a_wrong_edit_is_said_and_nothing_is_saved(opened):
    before = opened.server.project.policy_text
    opened.get("/text")
    answer = opened.send("text-form", text=before.replace("quasi", "quazi"))
    assert answer.status == 422
    assert "role" in answer.words
    assert opened.server.project.policy_text == before


def test_a_kept_column_that_is_named_like_people_is_remarked(opened):
    opened.give("name", "plain")
    opened.until("/columns", "names people or says")
    page = opened.until("/columns", "Columns 1 grave finding")
    assert re.search(r'href="/columns"[^>]*class="">', page.text)  # no tick


def test_rows_stand_beside_their_own_by_the_trace_and_without_one_beside_nobody(tmp_path):
    (tmp_path / "t.csv").write_text("age,sex\n1,f\n2,m\n3,f\n")
    (tmp_path / "d.csv").write_text("age,sex\n1,f\n3,*\n*,*\n")
    write_trace(np.array([0, 2, 1]), tmp_path / TRACE)
    attributes = {"age": {"role": "quasi"}, "sex": {"role": "quasi"}}
    asked = {"table": str(tmp_path / "t.csv"), "draft": str(tmp_path / "d.csv"), "rows": [0]}
    looks, policy = Looks(), {"version": 1, "attributes": attributes}
    (found,) = looks.look_show_draft(**asked, policy=policy, is_starred=True)["tables"]
    assert (found["rows"], found["before"], found["after"]) == ([1], [["2", "m"]], [["*", "*"]])
    (found,) = looks.look_show_draft(**{**asked, "rows": [2]}, policy=policy)["tables"]
    assert (found["before"], found["after"]) == ([["3", "f"]], [["3", "*"]])
    (tmp_path / TRACE).unlink()
    assert looks.look_show_draft(**asked, policy=policy) == {"is_unmatched": True}


def test_a_table_too_large_is_set_up_on_a_sample_and_the_gate_takes_none(visitor, tables):
    path, looks = tables / "patients.csv", Looks()
    answer = looks.answer("open", {"table": str(path), "read": {}})
    assert answer["rows"] == answer["rows_in_all"] == 300
    server = visitor.server
    # as if half of the free memory were less than this table takes
    server.too_large = {"path": str(path), "read": {}, "every": 10, "free": 1000}
    assert "Set up on 1 row in 10" in visitor.get("/open").words
    visitor.send("sampled")
    assert "sample: 30 of 300 rows" in visitor.get("/open").words
    visitor.edit("person", person="2")
    refused = visitor.post("/jobs", kind="draft", once="1", base=server.project.policy_sha)
    assert refused.status == 422
    assert "shoal publish ../patients.csv -p policy.yaml" in refused.words
    assert server.project.runs == []
    assert visitor.post("/jobs", kind="compare", once="2").status == 422
    # the whole again, once it fits
    visitor.post("/table", path="patients.csv")
    assert server.sample_of == 0


def test_more_than_half_of_the_free_memory_is_too_large(tables, monkeypatch):
    from shoal.web import looks

    table = {"table": str(tables / "patients.csv"), "read": {}}
    monkeypatch.setattr(looks, "free_memory", lambda: 2 * int(looks.memory_of(table["table"])) + 9)
    assert "too_large" not in Looks().answer("open", dict(table))
    monkeypatch.setattr(looks, "free_memory", lambda: 100_000)
    assert Looks().answer("open", dict(table))["too_large"] == {"free": 100_000, "every": 10}
    assert "too_large" not in Looks().answer("open", {**table, "every": 10})


def test_rows_of_a_number_without_a_place_are_counted_however_it_is_written(tmp_path):
    table = tmp_path / "weights.csv"
    table.write_text("weight;sex\n" + "70,5;f\n" * 3 + "7,4;m\n" * 2)
    number = {"role": "quasi", "type": "number", "domain": [20, 130]}
    policy = content_of(
        {"weight": number, "sex": "quasi"}, 2, read={"delimiter": ";", "decimal": ","}
    )
    asked = {"table": str(table), "policy": policy, "base": str(tmp_path), "attribute": "weight"}
    assert Looks().look_show_values(**asked) == {"values": [{"value": "7.4", "rows": 2}]}


def test_a_gap_is_shown_mended_in_a_copy_and_the_source_stays(opened, tables):
    project = opened.server.project
    (tables / "trees").mkdir()
    labels = ["none", "primary", "secondary", "bachelor", "master", "doctorate"]
    source = "".join(f"{v};{'low' if i < 2 else 'high'};*\n" for i, v in enumerate(labels))
    (tables / "trees" / "schooling.csv").write_text(source)
    number = number_of(opened.server, "education")
    page = opened.get(f"/hierarchies/{number}?f=trees")
    assert "schooling.csv" in page.words
    opened.send("use-1")
    page = opened.until(f"/hierarchies/{number}", "1 value has no place in education")
    assert "vocational" in page.words
    assert "1 gap" in page.words
    opened.get(f"/hierarchies/{number}")
    opened.send("put-1", under="high")
    page = opened.until(f"/hierarchies/{number}", "5 of 5 fit")
    assert (tables / "trees" / "schooling.csv").read_text() == source
    corrected = (project.folder / "hierarchies" / "education.csv").read_text()
    assert "vocational;high;*" in corrected
    assert project.policy["attributes"]["education"]["hierarchy"] == "hierarchies/education.csv"
    node = re.search(r"at=(\d+)#rename-to", page.text)[1]  # the first group: high
    opened.get(f"/hierarchies/{number}?at={node}")
    opened.send("rename-form", to="upper")
    assert "upper" in (project.folder / "hierarchies" / "education.csv").read_text()
    opened.post("/undo", base=project.policy_sha)
    assert (project.folder / "hierarchies" / "education.csv").read_text() == corrected
    # what is looked for is in no address, and stands with what is above it
    opened.get(f"/hierarchies/{number}")
    page = opened.post(f"/hierarchies/{number}", do="find", find="voc")
    found = page.text.partition("data-tree>")[2].partition("</table>")[0]
    assert page.path == f"/hierarchies/{number}"
    assert re.findall(r'label">([^<]+)', found) == ["*", "high", "vocational"]
    opened.post(f"/hierarchies/{number}", do="rare", least="40", to="few", base=project.policy_sha)
    assert "few" in (project.folder / "hierarchies" / "education.csv").read_text()


def test_a_step_that_changes_nothing_is_not_shown(tmp_path):
    (tmp_path / "t.csv").write_text("day\n2031-01-05\n2031-01-06\n2031-02-07\n")
    dates = {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}}
    policy = {"version": 1, "attributes": {"day": dates}}
    policy |= {"promises": [{"model": "k-anonymity", "k": 2}]}
    asked = {"table": str(tmp_path / "t.csv"), "policy": policy, "base": str(tmp_path)}
    levels = Looks().look_show_steps(**asked, attribute="day")["levels"]
    assert [level["count"] for level in levels] == [3, 2, 1, 1]
    assert levels[1]["names"] == ["2031-01", "2031-02"]


def test_the_first_step_of_a_rounded_number_is_what_readers_see_by_size(tmp_path):
    (tmp_path / "t.csv").write_text("cost\n100.5\n9.71\n10.56\n50\n")
    cost = {"role": "quasi", "type": "number", "round": 50}
    policy = {"version": 1, "attributes": {"cost": cost}}
    policy |= {"promises": [{"model": "k-anonymity", "k": 2}]}
    asked = {"table": str(tmp_path / "t.csv"), "policy": policy, "base": str(tmp_path)}
    first = Looks().look_show_steps(**asked, attribute="cost")["levels"][0]
    assert first["names"] == ["[0, 50]", "50", "[100, 150]"]
    assert first["people"] == [1, 2]


def test_groups_are_made_of_the_values_and_every_step_is_previewed(opened):
    number = number_of(opened.server, "ward")
    page = opened.get(f"/hierarchies/{number}")
    assert "Step 0 : 3 values of" in page.words
    assert "Step 1 : everybody" in page.words
    opened.send("groups-form")
    page = opened.get(f"/hierarchies/{number}")
    marked = re.findall(r'name="of" value="(\w+)"', page.text)
    assert len(marked) == 3
    page = opened.send("group-form", of=marked[:2], to="both")
    assert "Step 1 : 2 groups of" in page.words
    table = pl.read_csv(opened.server.project.table)
    people = table.filter(pl.col("ward").is_in(marked[:2]))["patient"].n_unique()
    assert f"to {people} people: both" in page.words


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("education", {"how": "dates"}),
        ("education", {"how": "bins", "width": "10"}),
        ("education", {"how": "ranges"}),
        ("sex", {"how": "order", "order": "low\nhigh"}),
    ],
)
def test_a_way_that_does_not_fit_a_column_is_refused_with_the_reason(opened, name, way):
    before = opened.server.project.policy_sha
    number = number_of(opened.server, name)
    refused = opened.post(f"/hierarchies/{number}", do="how", base=before, **way)
    assert refused.status == 422
    assert "300 records" in refused.words
    assert "choose another way" in refused.words
    assert opened.server.project.policy_sha == before


@pytest.mark.long
def test_a_comparison_stops_keeps_what_is_there_and_goes_on(opened):
    opened.edit("k", k="4")
    opened.get("/compare")
    opened.send("compare-form")
    page = opened.until("/compare", "The same as a table", 300)
    if opened.server.jobs.open:
        opened.post(f"/jobs/{opened.server.jobs.open[0].id}/cancel")
    kept = len(opened.server.measured_rows())
    assert kept >= 1
    opened.get("/compare")
    opened.send("compare-form")
    page = opened.until("/compare", "Measure what is missing", 300)
    assert len(opened.server.measured_rows()) > kept or kept > 30
    row = next(r for r in opened.server.measured_rows() if r["holds"] and r["k"] == 5)
    page = opened.get(f"/compare?m={row['label']}&k=5")
    assert f"{row['label']}, k = 5" in page.words
    opened.send("use")
    policy = opened.server.project.policy
    assert policy["method"]["name"] == row["label"].partition(":")[0]
    assert policy["promises"][0]["k"] == 5


ROW = {"label": "mondrian", "k": 4, "holds": True, "reason": "", "classes": 60, "least_class": 4}


@pytest.mark.long
def test_the_levels_of_a_same_for_all_recoding_are_walked(opened):
    server = opened.server
    draft(opened, k="4")
    row = {**ROW, "suppressed": 0, "loss": 0.2, "promises": []}
    server.keep_rows(server.comparison_key(), [row])
    before = server.project.policy_text
    opened.get("/compare")
    opened.send("try-global")  # a draft, never an edit
    page = opened.until("/result", "Tried with method: full-domain", 300)
    page = opened.get(f"/result/{server.project.runs[0].name}?with=0001")
    assert "Draft 1 beside draft 2" in page.words
    assert "What was asked differently" in page.words
    assert server.project.policy_text == before
    page = opened.until("/compare", "Around the best same-for-all recoding Steps of", 300)
    there = re.search(r"/compare\?at=[\d.]+", page.text)[0]
    page = opened.until(there, "Around another same-for-all recoding Steps of")
    assert "Back to the best" in page.words
    assert "shoal compare ../patients.csv -p runs/0002/policy.yaml --levels age:" in page.words
    opened.until("/compare?at=99.99.99.99.99", "Around the best")  # there are no such levels


def test_a_step_is_ticked_when_somebody_has_looked_at_it(opened):
    def ticked() -> list[str]:
        steps = opened.last.text.partition('<nav class="steps"')[2].partition("</nav>")[0]
        return re.findall(r'href="/(\w+)"[^>]* class="done"', steps)

    opened.until("/promises", "5 of 5 fit")
    assert "hierarchies" not in ticked()
    opened.get("/hierarchies")
    opened.get("/columns")
    assert {"hierarchies", "columns", "promises"} <= {*ticked()}


def test_measured_points_stay_when_one_of_them_is_used(opened):
    project = opened.server.project
    opened.post("/hierarchies/1", do="no_value", value="-", base=project.policy_sha)
    before = opened.server.comparison_key()
    opened.edit("method", method="mondrian:cut=median", k="5")
    assert project.policy["method"]["name"] == "mondrian"
    assert opened.server.comparison_key() == before


def test_a_refusal_offers_the_nearest_of_every_promise_it_names(opened):
    project = opened.server.project
    opened.edit("promise", index="1", l="50")
    name = draft(opened, "Nothing was made")
    assert len(re.findall(r'id="nearest-l-1"', opened.last.text)) == 1
    opened.send("nearest-l-1")
    least = project.policy["promises"][1]["l"]
    assert 2 <= least < 50
    assert "nearest-" not in opened.get(f"/result/{name}").text


def test_columns_says_who_would_be_alone_in_the_draft_or_before_where_not_all_are(opened):
    known = "alone, if others know it"
    opened.give("ward", "plain")
    opened.until("/columns", known)
    opened.give("name", "quasi")
    assert known not in opened.until("/columns", "275 of 275 people").words
    opened.give("name", "drop")
    run = opened.server.project.run(draft(opened))
    stated = run.certificate
    for one in stated["columns"]:
        if one["name"] in ("ward", "disease"):
            one["alone_if_known"] = 7 if one["name"] == "ward" else 0
    (run.folder / "certificate.json").write_text(json.dumps(stated))
    words = opened.get("/columns").words
    assert "! 7 alone in draft 1, if others know it" in words
    assert "0 alone in draft 1, if others know it" in words
    opened.edit("k", k="7")  # the draft is of another policy now
    assert "draft 1, if" not in opened.get("/columns").words


@pytest.mark.long
def test_a_finding_about_a_column_has_its_cure_beside_it(opened):
    number = number_of(opened.server, "age")
    opened.give("age", "plain")
    page = opened.until("/columns", "recode it, or drop it")
    assert "published as it is; promised: at least 2 different" in page.words  # charge
    opened.send(f"recode-{number}")
    settings = opened.server.project.policy["attributes"]["age"]
    assert (settings["role"], settings["type"], settings["round"] > 1) == ("quasi", "number", True)
    opened.give("age", "plain")
    opened.until("/columns", "recode it, or drop it")
    opened.send(f"leave-{number}")
    assert opened.server.project.policy["attributes"]["age"]["role"] == "drop"


@pytest.mark.long
def test_no_way_between_roles_loses_how_amounts_are_rounded_or_repeats_a_finding(visitor, tables):
    amounts = [f"1.{i:03d},{i % 90 + 10}" for i in range(0, 990, 4)] + ["k.A."] * 20
    ages = [str(20 + i % 9) for i in range(len(amounts))]
    frame = pl.DataFrame({"Erlös": amounts, "age": ages})
    frame.write_csv(tables / "amounts.csv", separator=";")
    visitor.post("/table", path="amounts.csv", missing="k.A.")
    visitor.edit("person", person="rows")
    first = dict(visitor.server.project.policy["attributes"]["Erlös"])
    assert first["round"] > 1
    for role in ("sensitive", "drop", "plain", "sensitive", "plain", "drop"):
        visitor.until("/columns", "are the only one")
        visitor.send("role-form-1", role=role)
        # it is offered once the column's values are counted
        said = "are the only one" if role == "drop" else "Publish these ranges"
        page = visitor.until("/columns", said)
        assert "may name people" not in page.words
        assert ("Publish these ranges" in page.words) == (role != "drop")
        visitor.send("role-form-1", role="quasi")
        assert visitor.server.project.policy["attributes"]["Erlös"] == first
        assert "Publish these ranges" not in visitor.until("/columns", "are the only one").words
    visitor.send("role-form-1", round="25")  # of a column that others could know, too
    assert visitor.server.project.policy["attributes"]["Erlös"] == {**first, "round": 25}
    assert visitor.server.project.policy["promises"] == [{"model": "k-anonymity", "k": 10}]


def test_rows_of_columns_stay_where_they_are_when_a_role_is_chosen(opened):
    def rows():
        return re.findall(r'id="column-(\d+)"', opened.until("/columns", "are the only one").text)

    before, number = rows(), number_of(opened.server, "age")
    opened.give("age", "plain")
    page = opened.until("/columns", "recode it, or drop it")
    assert rows() == before
    assert f'p=1#column-{number}">age</a>' in page.text.partition('id="remarked"')[2]


def test_a_tile_of_the_result_says_for_whom_it_does_not_hold(opened):
    opened.give("name", "plain")
    run = opened.server.project.run(draft(opened))
    alone = run.certificate["together"]["alone_if_known"]
    tile = opened.get(f"/result/{run.name}").words.partition("named at most")[2]
    assert alone
    assert f"with it, {alone} people are alone" in tile[:200]


def test_the_risks_of_a_sample_and_its_households_are_drawn_on_the_result(opened):
    content = yaml.safe_load(survey.POLICY)
    stated = dict(shoal.publish(survey.generate(200, 1), content).certificate)
    run = opened.server.project.run(draft(opened))
    (run.folder / "certificate.json").write_text(json.dumps(stated))
    page = opened.get(f"/result/{run.name}")
    mean = stated["individual_risk"]["household"]["mean"]
    assert f"with household: {mean:.3g} on average" in page.words
    assert 'aria-labelledby="risks-title risks-text"' in page.text
    assert "of people, or somebody of their household (asked 0.03)" in page.words
    feared = opened.get("/promises").words.partition("Whom do you fear?")[2]
    own = stated["individual_risk"]["own"]
    said = f"the weights of the sample. Draft {run.number}: "
    most, mean = percent_text(own["max"]), percent_text(own["mean"])
    assert f"{said}at most {most}, on average {mean}." in feared


def test_attackers_of_a_sample_are_judged_by_its_weights_before_a_draft_too(visitor, tables):
    survey.generate(200, 1).write_csv(tables / "survey.csv")
    visitor.post("/table", path="survey.csv")
    (visitor.server.project.folder / "policy.yaml").write_text(survey.POLICY)
    page = visitor.get("/promises")
    feared = page.words.partition("Whom do you fear?")[2]
    assert feared.count("estimated by the weights of the sample") == 1


def test_a_change_leads_to_its_place_in_the_history(opened):
    opened.edit("k", k="7")
    number = re.search(r'href="/history#entry-(\d+)">k: ', opened.get("/release").text)[1]
    assert f'<tr id="entry-{number}"' in opened.get("/history").text
