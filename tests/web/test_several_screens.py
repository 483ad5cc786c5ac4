"""The screens of several tables, from the answers to a release, without a browser."""

from __future__ import annotations

import re
import shutil

import pytest

import linked_cases
from shoal.web.checked import beside
from web.visitor import Visitor, served


@pytest.fixture(scope="module")
def clinic(tmp_path_factory):
    """Somebody who has made a draft of three tables."""
    start = tmp_path_factory.mktemp("clinic")
    (start / "clinic").mkdir()
    for name, frame in linked_cases.world(60).items():
        own = name.replace("people", "patients")  # as their owner calls them
        frame.write_csv(start / "clinic" / f"{own}.csv")
    with served(start / "project", start) as server:
        visitor = Visitor(server)
        visitor.until("/open?t=clinic", "Open them together")
        visitor.send("together-form")
        visitor.until("/columns", "60 people")
        visitor.edit("person", person="1")
        columns = server.project.about["columns"]
        for name, role in (("visits.cost", "quasi"), ("drugs.drug", "sensitive")):
            visitor.edit("role", column=str(columns.index(name) + 1), role=role)
        visitor.edit("k", k="4")
        visitor.get("/promises")
        visitor.send("draft-form")
        visitor.until("/result", "its certificate beside it")
        yield visitor


def test_the_tables_of_a_draft_are_drawn(clinic):
    page = clinic.get("/result").text
    assert re.search(r'<section class="card" id="tables">.*?<svg class="entities"', page)
    assert "Macro" not in page


def test_a_promise_of_rows_says_where_it_was_measured(clinic):
    """A class without drugs shows no drug, however many different ones others show."""
    words = clinic.get("/result").words
    said = "different values of drugs.drug in each that has such rows, among rows that look alike"
    assert said in words
    assert "in each class that has rows of drugs" in clinic.get("/promises").words


def test_what_one_table_does_is_not_advised_for_several(clinic):
    for screen in ("/promises", "/release"):
        words = clinic.get(screen).words
        assert "by a ledger, from its first month" not in words
        assert "goes by a ledger" not in words
    assert "Try all of them" not in words
    assert "each round with people who are in no other" in words


def test_columns_that_only_link_tables_are_named(clinic):
    words = clinic.get("/columns").words
    assert "drugs.visit, visits.visit, visits.patient only say what belongs to what" in words


def test_every_number_of_known_rows_is_offered_once_and_only_what_can_be(clinic):
    def offered(state):
        page = clinic.get("/promises").text
        form = re.search(r'name="table" value="visits".*?</form>', page, re.DOTALL)[0]
        ways = re.findall(r'<option value="(\w+)"( \w+)?>', form)
        return [value for value, own in ways if own.strip() in state]

    assert offered(("", "selected", "disabled")) == ["all", "3", "2", "1", "count", "none"]
    assert offered(("disabled",)) == ["count", "none"]
    assert "can’t be chosen, since others could know visits.cost" in clinic.get("/promises").words
    clinic.edit("known", table="visits", known="2")
    assert offered(("selected",)) == ["2"]
    clinic.edit("known", table="visits", known="all")
    assert offered(("selected",)) == ["all"]


def test_a_refused_edit_of_known_rows_says_why_and_is_not_in_the_history(clinic):
    before = len(clinic.server.project.history.entries())
    answer = clinic.edit("known", table="visits", known="count")
    assert "first say under Columns" in answer.words
    assert len(clinic.server.project.history.entries()) == before


def test_two_drafts_side_by_side_have_the_figures_of_the_tiles(clinic):
    run = clinic.server.project.runs[0]
    assert "Withheld rows are lost whole" in clinic.get("/result").words
    rows = {row["text"]: row["own"] for row in beside(run, run)["rows"]}
    words = clinic.get("/result").words
    assert f"{rows['Detail lost']} of the detail lost" in words
    assert re.search(rf"\b{rows['Rows suppressed or withheld']} of [\d,]+ rows withheld", words)


def test_a_draft_says_where_it_was_released_and_the_list_counts_the_rows_of_all_tables(clinic):
    assert "It is not released yet" in clinic.get("/result").words
    project = clinic.server.project
    run, place = project.runs[0], project.folder / "releases" / "2031-01-01"
    shutil.copytree(run.data, place / run.data.name)
    shutil.copy(run.folder / "certificate.json", place / run.data.name)
    shutil.copy(run.folder / "policy.yaml", place)
    assert "It is not released yet" in clinic.get("/result").words  # but another draft was
    kept = clinic.server.released_people() / f"{place.name}.draft"
    kept.write_text(run.name)
    words = clinic.get("/result").words
    assert "It was released as releases/2031-01-01" in words
    assert "It is not released yet" not in words
    rows = sum(table["rows"]["published"] for table in run.certificate["tables"])
    assert f"2031-01-01 {rows:,} 60 " in clinic.get("/release").words


def test_rows_of_every_table_stand_before_and_after_without_their_links(clinic):
    clinic.get("/result")
    page = clinic.send("rows-form").text
    shown = page[page.index('id="rows"') :]
    heads = re.findall(r"<h3>(\w+)</h3>.*?<th class=.figure.>Row</th>(.*?)</tr>", shown, re.DOTALL)
    columns = {name: re.findall("<th>(.*?)</th>", head) for name, head in heads}
    assert [*columns] == ["patients", "visits", "drugs"]
    assert columns["patients"] == ["age", "blood"]
    assert "call your table patients “people”" in clinic.get("/result").words
    assert columns["visits"] == ["cost", "disease"]
    ages = [str(age) for age in linked_cases.world(60)["people"]["age"].head(10)]
    before = re.findall(r'<td class="cell"><bdi class="was">(\d+)</bdi>', shown)
    assert before[:2] == ages[:2]
    withheld = clinic.server.project.runs[0].certificate["tables"][1]["rows"]["withheld"]
    assert withheld
    for _ in range(14):
        if "withheld</small>" in page:
            break
        page = clinic.send("rows-form").text
    assert "withheld</small>" in page


def test_the_price_of_each_column_and_of_k_is_measured(clinic):
    clinic.get("/result")
    clinic.send("prices")
    page = clinic.until("/result", "Others, without it")
    assert "With k = 3 instead" in page.words
    tries = re.findall(r'id="try-(\d+)".*?"Try a draft without (.*?)"', page.text, re.DOTALL)
    column = {name: number for number, name in tries}["visits.cost"]
    clinic.send(f"try-{column}")
    clinic.until("/result", "Tried without visits.cost")


def test_methods_are_compared_by_what_they_lose(clinic):
    clinic.get("/compare")
    clinic.send("compare-form")
    words = clinic.until("/compare", "bundles").words
    assert "same-for-all recoding" not in words
