"""What somebody sees for the first time on Open, Columns, Promises and Result."""

import re

import polars as pl
import pytest

from shoal.web.checked import proved
from shoal.web.frame import in_fields
from web.test_page import draft
from web.visitor import Visitor


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_title_above_the_headings_is_recognised(visitor, tables, suffix):
    rows = [["People, 2031", None, None], ["age", "zip", "sex"], ["30", "79100", "f"]]
    table = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    if suffix == "csv":
        table.write_csv(tables / "t.csv", include_header=False, separator=";")
    else:
        pytest.importorskip("xlsxwriter")
        table.write_excel(tables / "t.xlsx", include_header=False)
    page = visitor.post("/table", path=f"t.{suffix}", look="1", header="1")
    assert 'id="line-2" value="2" checked' in page.text
    assert "its first line has one cell" not in page.words
    assert ("Between cells" in page.words) == (suffix == "csv")


@pytest.mark.long
def test_columns_stand_in_the_order_of_the_file_and_name_who_singles_out_most(visitor, tables):
    ages = [str(min(20 + i, 80)) for i in range(114)] + ["k.A."] * 6
    codes = [f"{i % 60:03}" for i in range(120)]
    frame = pl.DataFrame({"sex": ["f", "m"] * 60, "zip": codes, "age": ages})
    frame.with_row_index("id").write_csv(tables / "odd.csv")
    visitor.post("/table", path="odd.csv")
    visitor.edit("person", person="1")
    for number in ("2", "3", "4"):
        visitor.edit("role", column=number, role="quasi")
    text = visitor.until("/columns", "most people").text
    places = [text.index(f'<tr id="column-{number}"') for number in range(1, 5)]
    assert places == sorted(places)
    assert "<strong>age" in text.partition("Without it:")[2].partition("most people")[0]


def test_people_with_several_rows_are_spoken_of_and_a_draft_is_no_release(opened):
    said = "Somebody with several rows may be in more than one class."
    assert said in opened.until("/promises", "Yes : 300 rows allow").words
    draft(opened)
    words = Visitor.words_of(opened.last.text.partition('id="verdict"')[2])
    said = "have rows in several classes, and promises hold for one class at a time: whoever knows"
    assert re.search(rf"\d+ of \d+ people {said}", words)
    assert said in Visitor.words_of(opened.get("/release").text.partition("Not promised:")[2])
    assert "It is not released yet: don’t send it to anybody." in words
    assert re.search(r"\d+ values, shown in \d+ ways", words)


def test_the_next_table_of_a_form_keeps_how_the_first_was_read(visitor, tables):
    names = [f"{name};" for name in ("A", "B", "C", "D", "E", "F")]
    for month, amounts in (("1", ("1.234,50", "7,25")), ("2", ("1.234", "2.500"))):
        rows = [f"{name}{amounts[number % 2]}\n" for number, name in enumerate(names * 10)]
        (tables / f"m{month}.csv").write_text("ward;amount\n" + "".join(rows), "utf-8")
    visitor.post("/table", path="m1.csv")
    read = visitor.server.read_options
    assert read == {"decimal": ",", "thousands": "."}
    visitor.server.project.edit_policy(
        "by hand", visitor.server.project.policy | {"read": read | {"unpacked": "1GB"}}, None
    )
    visitor.get("/open")
    page = visitor.send("table-form", path="m2.csv", look="1")
    assert '<option value="." selected>point: 2.500' in page.text
    visitor.send("table-form", path="m2.csv")
    assert visitor.server.read_options == read | {"unpacked": "1GB"}


@pytest.mark.parametrize(
    ("ok", "said"), [(True, "were measured again"), (None, "Not that its"), (False, "wrong")]
)
def test_a_check_proves_promises_only_where_they_were_measured_again(ok, said):
    checks = [{"name": "file", "ok": True}, {"name": "promises", "ok": ok}]
    lines = " ".join(proved(checks))
    assert said in lines
    assert ("That its promises hold" in lines) == (ok is True)


def test_a_finding_names_the_field_of_the_page_and_not_an_option(visitor, tables):
    (tables / "t.csv").write_text("Visits,,\nward,age,sex\nA,1,f\n")
    visitor.get("/open")
    page = visitor.send("table-form", path="t.csv")
    assert "Line 2 names the columns; what stands above it was left out" in page.words
    assert visitor.server.read_options == {"header": 2}
    opened = visitor.get("/open").words
    assert "Line 2 names the columns; what stands above it was left out" in opened
    assert in_fields("correct it, or say --read decimal=., or --read delimiter=, if so") == (
        "correct it, or say “Decimal mark” . under Open, or “Between cells” , under Open if so"
    )


def test_the_line_of_the_headings_is_found_anew_in_the_next_table_which_keeps_the_policy(
    visitor, tables
):
    rows = "".join(f"{i};{'fm'[i % 2]};{20 + i % 40}\n" for i in range(120))
    (tables / "may.csv").write_text(f"Cases of May\nid;sex;age\n{rows}")
    (tables / "june.csv").write_text(f"id;sex;age\n{rows}")
    visitor.post("/table", path="may.csv", header="2")
    visitor.edit("person", person="1")
    before = visitor.server.project.policy
    visitor.get("/open")
    for table, line in (("june.csv", 1), ("may.csv", 2), ("june.csv", 1)):
        page = visitor.send("table-form", path=table, look="1")
        assert f'id="line-{line}" value="{line}" checked' in page.text
    visitor.send("table-form", path="june.csv")
    after = visitor.server.project.policy
    assert visitor.server.project.table.name == "june.csv"
    assert "header" not in after["read"]
    assert {**after, "read": {**after["read"], "header": 2}} == before
    (tables / "july.csv").write_text(f"id;sex;years\n{rows}")
    said = visitor.post("/table", path="july.csv").words
    assert "This table has no age: a new policy was proposed. Undo brings back" in said
