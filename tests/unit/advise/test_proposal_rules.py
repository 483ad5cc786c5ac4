"""The rules of `policy init`, one by one: what a column is, by its name and its cells."""

import re

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.data.single_ends import outward_domain
from shoal.data.table import encode_text
from shoal.policy.proposal.cells import ColumnCells, in_order
from shoal.policy.proposal.roles import Guess, guess_of

# Domains


@pytest.mark.parametrize(
    ("seen", "name", "domain"),
    [
        ((17, 90), "x", [15, 95]),
        ((9, 99), "x", [5, 100]),
        ((0, 4356), "x", [0, 4500]),
        ((17, 90), "age", [0, 120]),
        ((17, 130), "age", [10, 140]),
        ((-4, 130), "age", [-10, 140]),
        ((1, 16), "x", [0, 17]),
        ((0.25, 0.75), "x", [0.2, 0.8]),
        ((-5, 5), "x", [-6, 6]),
        ((1e-9, 3e-9), "x", [9e-10, 3.1e-09]),
        ((1.5e9, 2.5e9), "x", [1450000000, 2550000000]),
    ],
)
def test_domains_by_hand(seen, name, domain):
    assert outward_domain(np.array(seen, dtype=float), [name]) == domain


@given(
    st.lists(st.integers(-(10**9), 10**9), min_size=2, max_size=9, unique=True),
    st.sampled_from([1, 10, 1000]),
)
def test_a_domain_holds_all_that_is_seen_and_shows_no_end(numbers, scale):
    values = np.array(numbers) / scale
    low, high = outward_domain(values)
    assert low <= values.min() <= values.max() < high
    assert low < values.min() or (low == 0 == values.min())
    assert low >= 0 or values.min() < 0


# Spans of numbers


@pytest.mark.parametrize(
    "labels",
    [
        ["[0-10)", "[10-20)", "[20-30)"],
        ["[0, 10)", "[10, 20)"],
        ["(0, 10]", "(10, 20]"],
        ["<18", "18-29", "30-39", "100+"],
        ["<5", "5-9", ">=10"],
        ["<=30", ">30"],
        ["9-11", "12-14", "100-120"],
        ["0", "1-2", "3+"],
        ["[75-100)", "[100-125)", ">200"],
        ["1.5 - 2.5", "2.5 - 10.5"],
        ["-10 - -5", "-5 - 0"],
    ],
)
def test_spans_are_put_in_order(labels):
    assert in_order(sorted(labels)) == labels
    assert in_order(labels[::-1]) == labels


@pytest.mark.parametrize(
    "labels",
    [
        ["NO", ">30", "<30"],
        ["1", "2", "3"],
        ["1-2", "1 - 2"],
        ["5-1", "1-5"],
        ["2024-01", "2024-02"],
        ["[0-10)"],
        ["a-b", "c-d"],
        [],
    ],
)
def test_other_labels_are_not_spans(labels):
    assert in_order(labels) is None


# Roles


def guess(name: str, cells: list) -> Guess:
    return guess_of(ColumnCells.of(encode_text(pl.Series(name, cells))))


def many(*cells: str, times: int = 10) -> list[str]:
    return [*cells] * times


def quasi(**more) -> dict:
    return {"role": "quasi", **more}


PERIODS = ["day", "month", "quarter", "year"]
RULES = [
    ("zip", many("01305", "1306"), quasi(hierarchy={"prefix": 5})),
    ("zip", [f"{i:05}" for i in range(99)], quasi(hierarchy={"prefix": 5})),
    ("seen", many("2024-01-02", "2024-12-31"), quasi(hierarchy={"dates": PERIODS})),
    (
        "seen",
        many("2024-01-02 10:00:00", "2031-12-31 11:30"),
        quasi(hierarchy={"dates": ["hour", *PERIODS, "decade"]}),
    ),
    ("seen", many("2024-02-31", "2024-01-01"), quasi()),
    ("home_phone", many("1", "2"), {"role": "identifier"}),
    ("encounter_id", ["7", "5", "9"], {"role": "identifier"}),
    ("motto", ["a", "b", "c"], {"role": "identifier"}),
    ("row", [str(i) for i in range(40, 60)], {"role": "identifier"}),
    ("weight", ["7.5", "5", "9"], quasi(type="number", domain=[4.8, 9.2])),
    ("customer", ["7", "5", "9"], {"role": "subject"}),
    ("age", many("[10-20)", "[0-10)", "?"), quasi(type="ordinal", order=["[0-10)", "[10-20)"])),
    ("disease", many("flu", "hiv"), {"role": "sensitive"}),
    ("illness", many("flu", "gout"), {"role": "sensitive"}),
    ("diag_2", [*"abcd", *"abcd"], {"role": "sensitive"}),
    ("num_medications", many("1", "2", "3"), quasi(type="number", domain=[0, 4])),
    ("discharge_disposition_id", many("1", "2", "30"), quasi()),
    ("fips", many("01", "02", "30"), quasi()),
    ("fips", many(*(f"{i:03}" for i in range(60)), times=2), quasi(hierarchy={"prefix": 3})),
    ("sex", many("0", "1"), quasi()),
    ("flag", many("1", "1.0", "1.00"), quasi()),
    ("far", many("1", "2", "1e300"), quasi()),
    ("town", many("a", "b"), quasi()),
    ("note", [f"n{i}" for i in range(60)] + ["n1"], {"role": "drop"}),
    ("gone", many("", "?"), {"role": "drop"}),
]


@pytest.mark.parametrize(("name", "cells", "settings"), RULES)
def test_the_first_rule_that_fits(name, cells, settings):
    assert guess(name, cells).settings == settings
    assert guess(name, cells).questions == ()


NUMBERS = "staff_no case_nr Matrikel user_id Personalnummer invoice_no Lfd_Nr Aktenzeichen".split()
MEASURES = (
    "income steps room_no store_no num_visits no_of_children distance_m visit_date_day".split()
)


@pytest.mark.parametrize("again", [0, 1, 8])
@pytest.mark.parametrize("name", [*NUMBERS, *MEASURES])
def test_a_number_that_hardly_repeats_is_removed_and_a_measure_is_not(name, again):
    numbers = [str(7 * i + 10_000) for i in range(100)]
    numbers[:again] = numbers[50 : 50 + again]
    role = guess(name, numbers).role
    is_room = name in ("room_no", "store_no")  # another one in every record might be a person's
    assert (role in ("identifier", "subject")) == (name in NUMBERS or (is_room and not again))


@pytest.mark.parametrize("name", ["salary", "income", "total_cost", "class", "TestScore", "vote"])
def test_what_others_may_know_as_well_is_asked(name):
    found = guess(name, many("low", "high"))
    assert found.role == "sensitive"
    assert found.questions == ("could others know it already? if so, give it the role 'quasi'",)


def test_what_is_compared_as_numbers():
    assert guess("income", many(*map(str, range(11)))).settings["type"] == "number"
    assert "type" not in guess("income", many(*map(str, range(10)))).settings


def test_many_values_ask_for_a_hierarchy():
    assert guess("town", many(*(f"t{i}" for i in range(60)))).reason.startswith("60 values; give")


def test_none_is_an_answer_among_texts_and_no_value_among_numbers():
    cells = ColumnCells.of(encode_text(pl.Series("x", ["None", "Low", "?", " NA"])))
    assert cells.values.to_list() == ["Low", "None"]
    assert cells.absent == (" NA", "?")
    cells = ColumnCells.of(encode_text(pl.Series("x", ["None", "1", "-", "2.5"])))
    assert cells.numbers is not None
    assert cells.absent == ("-", "None")


# Weights of a sample, and who lives together


HOMES = pl.DataFrame(
    {"hh": [*"aabbcd"], "weight": [9.5, 9.5, 70, 70, 3, 12], "age": [3, 40, 9, 61, 33, 70]}
)


def proposed(frame):
    return {column.name: column for column in shoal.propose_policy(frame).columns}


def test_a_weight_that_all_of_a_household_share_is_that_of_a_sample():
    columns = proposed(HOMES)
    roles = {name: column.role for name, column in columns.items()}
    assert roles == {"hh": "household", "weight": "weight", "age": "quasi"}
    assert columns["weight"].ask is None


BODIES = pl.Series("weight", [20.0, 71.5, 30, 84, 63, 77])
ASKS_FOR_A_ROLE = "does it say how many people of the population .* give it the role 'weight'"


def test_a_weight_that_differs_in_a_household_stays_known_and_asks_for_both_roles():
    columns = proposed(HOMES.with_columns(BODIES))
    assert columns["weight"].role == "quasi"
    assert re.search(f"{ASKS_FOR_A_ROLE}, and 'hh' the role 'household'$", columns["weight"].ask)
    assert columns["hh"].role != "household"


@pytest.mark.parametrize("name", ["weight", "wgt", "pesos"])
def test_a_weight_of_hundredths_asks_and_one_of_a_body_does_not(name):
    alone = HOMES.select("age", BODIES.alias(name))
    assert proposed(alone)[name].ask is None
    (weight,) = proposed(alone.with_columns(pl.col(name) + 0.25).select(name)).values()
    assert weight.role == "quasi"
    assert re.search(f"{ASKS_FOR_A_ROLE}$", weight.ask)


def test_the_name_of_a_survey_suggests_a_weight_and_asks():
    columns = proposed(HOMES.drop("hh").rename({"weight": "sampling_weight"}))
    assert columns["sampling_weight"].role == "weight"
    assert "how many people" in columns["sampling_weight"].ask


def test_a_weight_below_1_is_that_of_nobody():
    light = HOMES.with_columns(weight=HOMES["weight"] / 10)
    assert proposed(light)["weight"].role == "quasi"


@pytest.mark.parametrize(
    ("names", "role", "asks"), [(40, "quasi", True), (10, "quasi", True), (1, "quasi", False)]
)
def test_sentences_that_repeat_are_left_out_or_asked_about(names, role, asks):
    notes = [f"Daughter of Mr N{i:02d} called again" for i in range(names)]
    notes += [f"Mr N{i:02d} is very worried" for i in range(names)]
    guess = guess_of(ColumnCells.of(encode_text(pl.Series("remark", notes * 50))))
    assert (guess.role, bool(guess.questions)) == (role, asks)
