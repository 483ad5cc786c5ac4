"""A hospital's workbook of three sheets: what Open shows of it, and what Columns asks."""

import os
import re
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import polars as pl
import pytest

import linked_cases
from shoal.web.frame import person_answered, questions, unanswered
from web.visitor import Visitor, number_of, served

xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
CLINIC = "clinic.xlsx"


def write_workbook(
    path: Path, tables: dict[str, pl.DataFrame], titled: str = "", notes: Sequence[str] = ()
) -> None:
    """titled: a sheet with a title and a blank row above its headings. notes: the first row of one
    more sheet.
    """
    with xlsxwriter.Workbook(path) as book:
        for name, frame in tables.items():
            sheet = book.add_worksheet(name)
            if name == titled:
                sheet.write(0, 0, "Clinic of St. Mary, 2031")
            frame.write_excel(book, sheet, position=(2 if name == titled else 0, 0))
        if notes:
            book.add_worksheet("Notes").write_row(0, 0, notes)


def clinic(people: int = 30) -> dict[str, pl.DataFrame]:
    """Patients, their visits with German dates, and what was given at each."""
    world = linked_cases.world(people)
    days = [f"{1 + i % 28:02}.{1 + i % 12:02}.2031" for i in range(world["visits"].height)]
    return {
        "Patients": world["people"],
        "Visits": world["visits"].with_columns(day=pl.Series(days)),
        "Drugs": world["drugs"].with_columns(dose_mg=pl.int_range(pl.len()) % 7 * 25 + 50),
    }


@pytest.fixture
def looked(visitor, tables) -> Visitor:
    """Somebody who has marked the workbook."""
    write_workbook(tables / CLINIC, clinic(), titled="Drugs")
    visitor.get("/open")
    visitor.send("table-form", path=CLINIC, look="1")
    return visitor


@pytest.fixture
def asked(looked) -> Visitor:
    """Somebody who has opened its sheets together and has answered nothing yet."""
    looked.send("table-form", path=CLINIC)
    looked.until("/columns", "30 people have")
    return looked


# Open


def test_the_sheets_stand_in_the_open_with_their_rows_and_columns(looked):
    sheets, _, folded = looked.last.text.partition('id="sheets"')[2].partition("</fieldset>")
    words = looked.words_of(sheets)
    assert "This workbook has 3 sheets. Which do you want to open?" in words
    assert "All 3 together: tables about the same people Marked, since" in words
    assert "Only Patients Rows: 30. Columns: patient, age, blood." in words
    drugs = words.partition("Only Drugs")[2]
    assert re.match(r" Rows: \d+. Columns: visit, drug, dose_mg. Line 3 names them;", drugs)
    assert folded.startswith("<details><summary>How the file is written")  # and hides no sheet


def test_a_title_in_one_sheet_and_german_dates_in_another_are_read_by_the_policy(asked):
    read = asked.server.project.policy["read"]
    assert read == {"dates": "%d.%m.%Y", "header": {"people": 1, "Visits": 1, "Drugs": 3}}
    page = asked.get("/open").words
    assert "Line 3 names the columns of Drugs; what stands above it was left out." in page
    assert "hierarchy: {dates:" in asked.get("/columns").words
    rows = asked.post("/rows").text
    assert re.findall(r"<h2>(\w+)</h2>", rows)[:3] == ["Patients", "Visits", "Drugs"]
    assert "St. Mary" not in rows


def test_the_line_of_the_headings_is_set_sheet_by_sheet(looked):
    page = looked.send("table-form", path=CLINIC, look="1", **{"header of Drugs": "4"})
    assert 'name="header of Drugs" min="1" value="4"' in page.text
    assert "Line 4 names them" in page.words


def test_a_sheet_that_cannot_be_read_says_so_and_the_others_show(visitor, tables):
    write_workbook(tables / "odd.xlsx", clinic(), notes=["a", "a"])
    visitor.get("/open")
    words = visitor.send("table-form", path="odd.xlsx", look="1").words
    assert "Only Patients Rows: 30." in words
    assert re.search(r"Only Notes ! .*columns 1 and 2 have the same name", words)


def test_the_sheet_of_one_workbook_is_not_looked_for_in_the_next(looked, tables):
    looked.send("table-form", path=CLINIC, sheet="Visits")
    assert looked.server.read_options["sheet"] == "Visits"
    write_workbook(tables / "next.xlsx", clinic(20))
    looked.get("/open")
    page = looked.send("table-form", path="next.xlsx", look="1")
    assert 'value="*" checked' in page.text


def test_next_months_workbook_keeps_the_policy_and_finds_its_own_lines(asked, tables):
    before = asked.server.project.policy
    write_workbook(tables / "june.xlsx", clinic(40), titled="Visits")
    asked.get("/open")
    asked.send("table-form", path="june.xlsx", look="1")
    asked.send("table-form", path="june.xlsx")
    after = asked.server.project.policy
    assert after["read"]["header"] == {"people": 1, "Visits": 3, "Drugs": 1}
    assert {**after, "read": before["read"]} == before


def test_without_the_extra_one_line_says_what_to_install(tables, tmp_path, monkeypatch):
    write_workbook(tables / CLINIC, clinic())
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "python_calamine.py").write_text("raise ImportError('none')")
    path = os.pathsep.join([str(tmp_path / "none"), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", path)
    with served(tables / "none-project", tables, own_desk=True) as server:
        visitor = Visitor(server)
        for look in ("1", ""):
            visitor.get("/open")
            page = visitor.send("table-form", path=CLINIC, look=look)
            assert page.status == 422
            said = unescape(page.text.partition('id="error"')[2].partition("</div>")[0])
            assert "needs the extra 'excel', which is not installed" in said
            assert "pip install '.[excel]'" in said


# Columns


def test_who_is_one_person_is_decided_where_links_leave_no_choice(asked):
    words = asked.get("/columns").words
    assert "Everybody with the same patient , since rows of other tables point to it." in words
    most = max(frame["n"].max() for frame in rows_of_people())
    assert f"people have several rows in a table; nobody has more than {most} in one." in words
    assert f"at most {most} in one table" in words
    assert "Please decide: who is one person?" not in words
    assert 'id="person-form"' not in asked.last.text
    assert person_answered(asked.server)
    assert questions(asked.server) == unanswered(asked.server)


def rows_of_people() -> list[pl.DataFrame]:
    """How many rows everybody has in each table below people."""
    tables = clinic()
    drugs = tables["Drugs"].join(tables["Visits"], on="visit")
    return [one.group_by("patient").len("n") for one in (tables["Visits"], drugs)]


def test_a_table_of_people_that_may_hold_some_twice_is_asked_about_once(visitor, tables):
    world = clinic(60)
    mrn = pl.Series([f"M{i // 2}" for i in range(60)])
    born = pl.Series([f"19{20 + i // 2}-0{1 + i // 2 % 9}-11" for i in range(60)])
    people = world["Patients"].with_columns(mrn=mrn, born=born)
    write_workbook(tables / CLINIC, world | {"Patients": people})
    visitor.get("/open")
    visitor.send("table-form", path=CLINIC, look="1")
    visitor.send("table-form", path=CLINIC)
    words = unescape(visitor.until("/columns", "60 people have").words)
    assert "may several rows be one person's? its 60 rows hold only 30 different" in words
    assert words.count("may several rows be one person's?") == 1
    visitor.send("person-form")
    assert "may several rows be one" not in visitor.get("/columns").words
    assert "ask" not in visitor.server.project.policy["attributes"]["patient"]


def test_a_question_offers_every_role_that_the_column_may_take(asked):
    """Who is one person is asked above."""
    for column, kept in (("Drugs.dose_mg", "quasi"), ("Drugs.drug", "sensitive")):
        row = row_below(asked.get("/columns").text, number_of(asked.server, column))
        roles = re.findall(r'name="edit" value="role">.*?name="role" value="(\w+)"', row)
        assert sorted(roles) == ["drop", "identifier", "plain", "quasi", "sensitive"], column
        assert roles[0] == kept
    asked.send(f"sensitive-{number_of(asked.server, 'Drugs.dose_mg')}")
    own = asked.server.project.policy["tables"]["Drugs"]["attributes"]["dose_mg"]
    assert own["role"] == "sensitive"
    assert "ask" not in own


def test_every_finding_is_listed_whether_its_column_is_asked_about_or_not(asked):
    for column in ("Visits.disease", "blood"):
        asked.give(column, "plain")
    text = asked.until("/columns", "Findings to look at").text
    listed = text.partition('id="remarked"')[2].partition("</p>")[0]
    marked = re.findall(r'id="column-(\d+)" class="question"', text)
    found = {one for one in marked if "a finding" in row_below(text, one)}
    assert {*re.findall(r"#column-(\d+)", listed)} == found
    assert str(number_of(asked.server, "Drugs.drug")) in found


def row_below(text: str, column: str | int) -> str:
    return text.partition(f'id="remark-{column}"')[2].partition("</tr>")[0]


def test_no_draft_is_begun_while_a_question_is_open(asked):
    words = asked.get("/promises").words
    assert "questions have to be answered before a draft can be made: see Columns" in words
    assert 'id="draft-form"' not in asked.last.text
    for column, own in asked.server.project.attributes.items():
        if own.get("ask"):
            asked.give(column, own["role"])
    assert 'id="draft-form"' in asked.get("/promises").text
