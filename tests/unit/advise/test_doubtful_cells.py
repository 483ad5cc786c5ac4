"""Cells among numbers and dates that may mean no value: asked about, never taken for a value."""

from datetime import date, timedelta

import polars as pl
import pytest
import yaml

import shoal
from shoal.web.edits import edited

AGES = [str(20 + i % 40) for i in range(120)]
DAYS = [str(date(2024, 1, 1) + timedelta(days=i)) for i in range(120)]
LOCAL = [f"{day[8:]}.{day[5:7]}.{day[:4]}" for day in DAYS]
GERMAN = [f"{i % 40},5" for i in range(120)]


def proposed(cells: list[str], other: list[str] | None = None) -> shoal.Proposal:
    frame = pl.DataFrame({"x": cells, "sex": ["f", "m"] * (len(cells) // 2)})
    return shoal.propose_policy(frame if other is None else frame.with_columns(y=pl.Series(other)))


@pytest.mark.parametrize("text", ["k.A.", "unbekannt", "keine Angabe", "不明", "-99", "999", "-1"])
@pytest.mark.parametrize("cells", [AGES, DAYS, LOCAL, GERMAN], ids="ages iso days commas".split())
def test_a_cell_that_may_mean_no_value_is_asked_about(text, cells):
    if cells is not AGES and text.strip("-").isdigit():
        pytest.skip("far numbers stand among whole numbers")
    found = proposed([*cells[:-6], *[text] * 6])
    own = found.content["attributes"]["x"]
    assert own["ask"]["values"] == {text: 6}
    assert found.content["missing_values"] == ["", text]
    assert own["role"] == "quasi"
    assert "dates" in own.get("hierarchy", ()) or own["type"] == "number"
    assert own.get("domain", [0])[0] >= 0
    assert "6 cells" in found.questions["x"]
    assert text not in found.questions["x"]
    assert yaml.safe_load(found.text) == found.content


@pytest.mark.parametrize(
    "cells",
    [
        AGES,
        [*AGES[:-1], "70"],
        [*AGES[:-8], *(f"text {'abcdefgh'[i]}" for i in range(8))],
        ["yes", "no"] * 60,
        [str(i % 200 - 100) for i in range(120)],
        [*(str(900 + i % 98) for i in range(114)), *["999"] * 6],
        ["unbekannt", "unknown", "none", "ledig", "-", "missing"] * 20,
    ],
)
def test_others_are_not_asked_about(cells):
    assert not any(isinstance(ask, dict) for ask in _asks(proposed(cells)))


def _asks(proposal: shoal.Proposal) -> list:
    return [own.get("ask") for own in proposal.content["attributes"].values()]


@pytest.mark.parametrize("text", ["k.A.", "k. A.", "Keine Angabe", "n.a.", "#N/A", "n/d"])
@pytest.mark.parametrize("role", ["quasi", "sensitive"])
def test_among_texts_a_well_known_text_for_no_value_is_asked_about(text, role):
    codes = [f"{'EFIJ'[i % 4]}{10 + i % 9}.{i % 7}" for i in range(114)]
    cells = codes if role == "sensitive" else [f"ward {'abc'[i % 3]}" for i in range(114)]
    found = proposed([*cells, *[text] * 6])
    own = found.content["attributes"]["x"]
    assert (own["role"], own["ask"]["values"]) == (role, {text: 6})
    assert found.content["missing_values"] == ["", text]
    no, _ = edited("value", {"column": ["1"]}, found.content, ["x", "sex"])
    assert no["missing_values"] == [""]


def test_a_text_for_no_value_in_several_columns_of_texts_is_asked_about_once():
    cells = [*["a", "b"] * 57, *["k.A."] * 6]
    asked = _asks(proposed(cells, cells))
    assert [ask["values"] for ask in asked if ask] == [{"k.A.": 6}]
    asked = _asks(proposed(cells, [*AGES[:-6], *["k.A."] * 6]))
    assert [ask and ask["values"] for ask in asked] == [None, None, {"k.A.": 6}]


def test_a_number_that_is_a_value_elsewhere_is_asked_about_but_stays_one():
    found = proposed([*AGES[:-6], *["999"] * 6], [str(990 + i % 20) for i in range(120)])
    assert found.content["attributes"]["x"]["ask"]["values"] == {"999": 6}
    assert "missing_values" not in found.content


def test_nothing_is_published_nor_shown_before_it_is_answered(tmp_path):
    cells = [*AGES[:-6], *["k.A."] * 6]
    found = proposed(cells)
    frame = pl.DataFrame({"x": cells, "sex": ["f", "m"] * 60})
    with pytest.raises(shoal.InputError, match="'values' mean no value") as refused:
        shoal.publish(frame, found.content)
    assert "k.A." not in str(refused.value)
    content = found.content
    del content["attributes"]["x"]["ask"]
    release = shoal.publish(frame, content)
    assert release.certificate.holds
    assert "k.A." not in str(release.certificate)


def test_on_the_page_it_is_no_value_or_one():
    content = proposed([*AGES[:-6], *["k.A."] * 6]).content
    form = {"column": ["1"], "role": ["quasi"]}
    yes, _ = edited("role", form, content, ["x", "sex"])
    assert "ask" not in yes["attributes"]["x"]
    assert yes["attributes"]["x"]["type"] == "number"
    assert yes["missing_values"] == ["", "k.A."]
    no, said = edited("value", form, content, ["x", "sex"])
    assert no["attributes"]["x"] == {"role": "quasi"}
    assert no["missing_values"] == [""]
    assert "k.A." not in said
    with pytest.raises(shoal.InputError, match="answered already"):
        edited("value", form, no, ["x", "sex"])
