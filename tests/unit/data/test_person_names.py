"""Two ways to write the same signs make nobody another person."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.column_words import fold
from shoal.data.person_names import bare, names_of, person_name, same_value, same_values

UNSEEN = (
    "\0\x1b\x7f\x9f\u034f\u180b\u200b\u2065\u2800\u3164\uffa0\ufeff\ufff9\ufffb\ufffe\uffff"
    "\U00016fe4\U0001d159\U0001fffe\U0009ffff\U000e0001\U000e007f\U0010fffe\U0010ffff"
)


@pytest.mark.parametrize("sign", UNSEEN)
def test_a_sign_that_nobody_sees_makes_no_second_person(sign):
    """The same in both ways to compare names: cell by cell, and column by column."""
    for name in (f"p{sign}1", f"{sign}p1", f"p1{sign}"):
        assert person_name(name) == "p1"
        assert names_of(pl.Series([name])).to_list() == ["p1"]
    assert person_name("p 1") != "p1"


@given(st.lists(st.text("aKßé \t\x1f\x85\xa0\u200b\u0130\u01c5~-", max_size=5)))
def test_values_are_compared_all_at_once_as_they_are_one_by_one(cells):
    assert same_values(cells) == [same_value(cell) for cell in cells]


@pytest.mark.parametrize(
    ("capitals", "small"), [("DİYABET", "diyabet"), ("SARI", "sarı"), ("ΟΔΟΣ", "οδος")]
)
def test_capitals_of_any_language_are_no_second_value(capitals, small):
    assert same_value(capitals) == same_value(small) == same_values([small])[0]


def test_signs_that_are_newer_than_this_python_name_the_same_person_everywhere():
    signs = pl.Series([chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000])
    texts = "P" + signs.filter(signs.str.normalize("NFKC") != signs) + "1"
    assert [person_name(text) for text in texts] == names_of(texts).to_list()
    assert person_name("\U0001ccd61") == person_name("A1") == "A1"


def test_marks_above_a_letter_are_sorted_in_time_that_grows_with_their_number():
    """Python alone would sort these for an hour."""
    above, below, times = "\u0301", "\u0323", 400_000
    name = "a" + (above + below) * times
    assert person_name(name) == "\u1ea1" + below * (times - 1) + above * times
    assert fold(name) == "a"


@pytest.mark.parametrize("number", ["1,000", "1'000", "1\u2019000", "+1 000", "01,000.0", "+1000"])
def test_a_number_with_a_plus_or_with_marks_of_thousands_is_spelled_otherwise(number):
    assert bare(pl.Series([number])).to_list() == ["1000"]


@pytest.mark.parametrize("name", ["1,00", "1 0000", "1,000,00", "+", "+a", "a 1,000", "1,000 a"])
def test_what_is_no_such_number_keeps_its_signs(name):
    assert bare(pl.Series([name])).to_list() == [name]
