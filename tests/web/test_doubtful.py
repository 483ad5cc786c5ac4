"""The question whether cells among numbers mean no value, asked and answered on the page."""

import polars as pl
import pytest


@pytest.mark.long
def test_it_shows_the_text_with_its_count_and_recounts_when_answered(visitor, tables):
    ages = [str(20 + i % 40) for i in range(114)] + ["k.A."] * 6
    pl.DataFrame({"age": ages, "sex": [*"fmm"] * 40}).write_csv(tables / "odd.csv")
    assert visitor.post("/table", path="odd.csv").status == 200
    shown = visitor.get("/columns").text
    assert "<code>k.A.</code>stands in 6 cells." in shown
    assert "does it mean that here?" in shown
    assert visitor.edit("value", column="1").status == 200
    policy = visitor.server.project.policy
    assert policy["attributes"]["age"] == {"role": "quasi"}
    assert policy["missing_values"] == [""]
    again = visitor.get("/columns").text
    assert "stands in 6 cells" not in again


def test_yes_keeps_the_proposed_reading(visitor, tables):
    ages = [str(20 + i % 40) for i in range(114)] + ["-99"] * 6
    pl.DataFrame({"age": ages, "sex": ["f", "m"] * 60}).write_csv(tables / "odd.csv")
    visitor.post("/table", path="odd.csv")
    assert visitor.edit("role", column="1", role="quasi").status == 200
    policy = visitor.server.project.policy
    assert policy["attributes"]["age"]["type"] == "number"
    assert policy["missing_values"] == ["", "-99"]


def test_a_text_among_words_too_means_no_value_and_holds_up_no_count(visitor, tables):
    sizes = [f"{150 + i % 40},5" for i in range(114)] + ["k.A."] * 6
    state = ["ledig", "k.A.", "verwitwet"] * 40
    pl.DataFrame({"size": sizes, "state": state}).write_csv(tables / "odd.csv", separator=";")
    visitor.post("/table", path="odd.csv")
    visitor.until("/columns", "are the only one of their kind")
    visitor.edit("role", column="1", role="quasi")
    assert visitor.server.project.policy["missing_values"] == ["", "k.A."]


def test_what_was_named_when_the_table_was_opened_is_not_asked_again(visitor, tables):
    ages = [str(20 + i % 40) for i in range(108)] + ["k.A."] * 6 + ["NA"] * 6
    pl.DataFrame({"age": ages, "sex": [*"fmm"] * 40}).write_csv(tables / "odd.csv")
    page = visitor.post("/table", path="odd.csv", missing="k.A.")
    assert "stands in 6 cells" not in page.words
    policy = visitor.server.project.policy
    assert "ask" not in policy["attributes"]["age"]
    assert policy["missing_values"] == ["", "NA", "k.A."]
    visitor.post("/table", path="odd.csv", missing="k.A.")  # "NA" was taken away
    assert visitor.server.project.policy["missing_values"] == ["", "k.A."]
