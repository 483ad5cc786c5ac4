"""What somebody sees for the first time on Open, Columns, Promises and Result."""

from __future__ import annotations

import re

import polars as pl
import pytest

from web.test_page import draft
from web.visitor import Visitor


@pytest.mark.parametrize("suffix", ["csv", "xlsx"])
def test_a_title_above_the_headings_is_recognised(visitor, tables, suffix):
    rows = [["People, 2031", None, None], ["age", "zip", "sex"], ["30", "79100", "f"]]
    table = pl.DataFrame(rows, schema=["a", "b", "c"], orient="row")
    if suffix == "csv":
        table.write_csv(tables / "t.csv", include_header=False, separator=";")
    else:
        pytest.importorskip("fastexcel")
        table.write_excel(tables / "t.xlsx", include_header=False)
    page = visitor.post("/table", path=f"t.{suffix}", look="1", header="1")
    assert 'id="line-2" value="2" checked' in page.text
    assert "its first line has one cell" not in page.words
    assert ("Between cells" in page.words) == (suffix == "csv")


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
    assert said in words
    assert "It is not released yet: don’t send it to anybody." in words
    assert re.search(r"\d+ values, shown in \d+ ways", words)
