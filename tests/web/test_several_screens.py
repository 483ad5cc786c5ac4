"""The screens of several tables, from the answers to a release, without a browser."""

import re
import shutil

import pytest

import linked_cases
from shoal.data.certificate import Certificate
from shoal.reports.linked import paid_lines
from shoal.web.checked import beside
from shoal.web.routes_of_release import _first_rating
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
        visitor.give("visits.cost", "quasi")
        visitor.give("drugs.drug", "sensitive")
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
    def offered(table, state):
        page = clinic.get("/promises").text
        form = re.search(rf'name="table" value="{table}".*?</form>', page, re.DOTALL)[0]
        ways = re.findall(r'<option value="(\w+)"( \w+)?>', form)
        return [value for value, own in ways if own.strip() in state]

    every = ["all", "3", "2", "1", "count", "none"]
    assert offered("visits", ("", "selected", "disabled")) == every
    assert offered("visits", ("disabled",)) == ["3", "2", "1", "count", "none"]
    assert offered("drugs", ("disabled",)) == ["none"]
    assert "can’t be chosen, since others could know visits.cost" in clinic.get("/promises").words
    assert "since what is known of drugs tells of all of these" in clinic.get("/promises").words
    clinic.edit("known", table="drugs", known="2")
    assert offered("drugs", ("selected",)) == ["2"]
    clinic.edit("known", table="drugs", known="count")
    assert offered("drugs", ("selected",)) == ["count"]


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


def tables_of(page: str, section: str) -> dict[str, tuple[list[str], list[list[str]]]]:
    """By table of a card of the page, its columns, and the text of every cell of each row."""
    shown = page[page.index(f'id="{section}"') :]
    shown = shown[: shown.index("</section>")]
    found = {}
    for name, table in re.findall(r"<h3>(\w+)</h3><div.*?(<table.*?</table>)", shown, re.DOTALL):
        cells = [re.findall(r"<td.*?</td>", row) for row in table.split("</tr>")]
        texts = [[re.sub("<.*?>", " ", cell).split() for cell in row] for row in cells if row]
        found[name] = re.findall("<th(?: [^>]*)?>(.*?)</th>", table), texts
    return found


def test_all_rows_of_one_person_stand_before_and_after_without_their_links(clinic):
    frames = linked_cases.world(60)
    clinic.get("/result")
    withheld = 0
    for person in range(6):
        shown = tables_of(clinic.send("rows-form").text, "rows")
        assert [*shown] == ["patients", "visits", "drugs"]
        name = frames["people"]["patient"][person]
        own = frames["visits"].with_row_index("at", 1).filter(frames["visits"]["patient"] == name)
        assert shown["patients"][0] == ["Row", "age", "blood"]
        ((row, age, _),) = shown["patients"][1]
        assert (row[0], age[0]) == (str(person + 1), str(frames["people"]["age"][person]))
        columns, visits = shown["visits"]
        assert columns == ["Row", "cost", "disease"]
        rows = [(row[0], cost[0], disease[0]) for row, cost, disease in visits]
        assert rows == [tuple(map(str, one)) for one in own["at", "cost", "disease"].iter_rows()]
        columns, drugs = shown["drugs"]
        assert columns == ["Row", "Row of visits", "drug"]
        assert [above for _, (above,), _ in drugs] == [row for row, *_ in rows]
        keys = frames["drugs"]["visit"]
        assert [keys[int(row[0]) - 1] for row, *_ in drugs] == own["visit"].to_list()
        withheld += sum("withheld" in row for row, *_ in visits)
    assert withheld
    assert "call your table patients “people”" in clinic.get("/result").words


def test_who_pays_and_what_was_before_and_after_are_shown_as_of_one_table(clinic):
    page, run = clinic.get("/result"), clinic.server.project.runs[0]
    for line in paid_lines(Certificate(run.certificate)):
        assert line in page.words
    assert "People who lose such rows" in page.words
    assert "Before and after: visits.cost" in page.words
    assert "rows that are withheld are lost" in page.words
    report = clinic.get(f"/runs/{run.name}/report").words
    assert "Who pays most?" in report
    assert "beside the original. Bars are shares of the rows that each table had" in report


@pytest.mark.parametrize("which", ["most-exposed", "most-distorted", "any"])
def test_what_an_attacker_sees_of_one_person_is_on_the_screen_alone(clinic, which):
    frames, run = linked_cases.world(60), clinic.server.project.runs[0]
    clinic.get("/result")
    page = clinic.send(f"attacker-{which}", which=which)
    assert page.status == 200, page.words
    shown = page.text[page.text.index('id="attacker"') :]
    row = int(re.search(r'id="row" name="row" min="1" value="(\d+)"', shown)[1])
    person = frames["people"].row(row - 1, named=True)
    own = frames["visits"].filter(frames["visits"]["patient"] == person["patient"])
    words = page.words[page.words.index("What would an attacker see?") :]
    assert f"age {person['age']} " in words
    assert re.search(rf"visits: {own.height} rows?; known: all rows cost", words)
    assert re.search(rf"drugs: {own.height} rows?; known: the number of rows", words)
    cells = re.search(r'<table class="cells">.*?</table>', shown, re.DOTALL)[0]
    assert re.findall(r"<bdi>(\d+)</bdi>", cells) == [str(cost) for cost in own["cost"]]
    people = int(re.search(r"Finds (\d+) people who look the same", words)[1])
    assert people >= 4
    assert re.search(rf"as published: visits.disease.*?(\d+) of {people}", words)
    assert "And about 1 more private column" in words
    assert f"Finds {people} people" not in clinic.get(f"/runs/{run.name}/report").words


def test_the_attacker_goes_from_person_to_person_and_no_further(clinic):
    clinic.get("/result")
    page = clinic.send("attacker-form", row="60")
    assert 'name="row" min="1" value="60"' in page.text
    words = clinic.send("attacker-form", row="61").words
    assert "give a number from 1 to 60" in words


def test_why_no_price_was_measured_is_said_where_it_was_asked_for(clinic, monkeypatch):
    asked_of = clinic.server.asked_of
    monkeypatch.setattr(clinic.server, "asked_of", lambda run: asked_of(run) | {"table": "gone"})
    clinic.get("/result")
    clinic.send("prices")
    text = clinic.until("/result", "Nothing was measured").text
    assert re.search(r'id="prices".{,600}</form><div class="box bad" id="not-priced"', text)


def test_the_price_of_each_column_and_of_k_is_measured(clinic):
    clinic.get("/result")
    clinic.send("prices")
    page = clinic.until("/result", "Others, without it")
    assert "Nothing was measured" not in page.words
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


def test_a_column_sets_apart_whom_the_numbers_of_rows_do_not_set_apart_already():
    risk = {"people": 100, "alone_by_counts": 30}
    column = {"name": "sex", "role": "quasi"}
    for alone, grade in ((30, "low"), (40, "medium"), (60, "high")):
        rated = _first_rating(column, risk | {"columns": {"sex": {"alone": alone}}})
        assert rated["distinguishing"] == grade


def test_alone_says_what_the_numbers_of_rows_single_out(clinic):
    words = clinic.until("/columns", "together with how many rows").words
    assert "and below each row of another" in words
