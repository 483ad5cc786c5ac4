"""Columns that number people are found by their cells, and what only looks like one is not."""

from __future__ import annotations

import time
import warnings

import numpy as np
import polars as pl
import pytest
import yaml

import shoal as library
from shoal.data.person_numbers import (
    Evidence,
    is_named_as_number,
    names_of,
    person_name,
    person_numbers,
)
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.samples import patients, purchases, wearables


def columns(frame: pl.DataFrame) -> list[str]:
    return [evidence.column for evidence in person_numbers(Table(frame))]


@pytest.fixture
def twice() -> pl.DataFrame:
    """200 people with two rows each; sex and birth year are theirs, the ward is the visit's."""
    rng = np.random.default_rng(7)
    person = np.tile(np.arange(200), 2)
    return pl.DataFrame(
        {
            "fallnr": (person + 5000).astype(str),
            "sex": np.array(["m", "f"])[rng.integers(0, 2, 200)][person],
            "born": (1930 + rng.integers(0, 70, 200))[person].astype(str),
            "ward": np.array(list("abcd"))[rng.integers(0, 4, 400)],
        }
    )


def test_two_rows_a_person_with_a_fixed_sex_and_birth_year(twice):
    (evidence,) = person_numbers(Table(twice))
    assert (evidence.column, evidence.values, evidence.records) == ("fallnr", 200, 400)
    assert set(evidence.agreeing) == {"sex", "born"}
    assert not evidence.is_named
    agreed = ", ".join(evidence.agreeing)
    assert str(evidence) == (
        "column 'fallnr': 400 records carry 200 different values, and records that share one agree"
        f" on {agreed}; if it numbers people, give it the role 'subject'"
    )


def test_one_row_a_person_says_nothing(twice):
    assert columns(twice[:200]) == []


def test_a_postcode_numbers_nobody():
    rng = np.random.default_rng(1)
    code = rng.integers(0, 300, 1000)
    frame = {"zip": code + 10000, "city": code // 5, "state": code // 50, "age": code * 0}
    frame["age"] = rng.integers(0, 90, 1000)
    assert columns(pl.DataFrame({k: v.astype(str) for k, v in frame.items()})) == []


def test_a_household_numbers_nobody():
    rng = np.random.default_rng(1)
    house = np.repeat(np.arange(400), 2)
    frame = {"house": house, "street": house // 4, "age": rng.integers(0, 90, 800)}
    frame["sex"] = rng.integers(0, 2, 800)
    assert columns(pl.DataFrame({k: v.astype(str) for k, v in frame.items()})) == []


def test_dates_and_fractions_number_nobody(twice):
    days = pl.col("fallnr").cast(pl.Int32) - 5000
    real = pl.date(2020, 1, 1) + pl.duration(days=days)
    assert columns(twice.with_columns(fallnr=real.cast(pl.String))) == []
    assert columns(twice.with_columns(fallnr=pl.col("fallnr") + ".5")) == []


def test_records_without_a_number_are_not_one_person(twice):
    some = pl.when(pl.int_range(pl.len()) % 3 == 0).then(pl.lit("")).otherwise(pl.col("fallnr"))
    (evidence,) = person_numbers(Table(twice.with_columns(fallnr=some)))
    assert evidence.records == 266


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("patient_nbr", True), ("PatientID", True), ("customer", True), ("caseNo", True),
        ("id", True), ("fallnr", False),
        ("idea", False), ("number_of_visits", True), ("ward", False),
    ],
)  # fmt: skip
def test_words_of_names_are_whole(name, expected):
    assert is_named_as_number(name) is expected


def test_the_samples():
    renamed = patients.generate(800, 7).rename({"patient": "fallnr"})
    assert columns(renamed) == ["fallnr"]
    assert columns(renamed.drop("fallnr")) == []
    assert columns(purchases.generate(3000, 1)) == ["customer"]
    assert columns(wearables.generate(1500, 1)) == []


def test_diabetes(data_folder):
    frame = pl.read_csv(data_folder / "diabetes130" / "diabetic_data.csv.gz", infer_schema=False)
    (evidence,) = person_numbers(Table(frame))
    assert (evidence.column, evidence.is_named) == ("patient_nbr", True)
    assert (evidence.values, evidence.records) == (71518, 101766)


def test_adult_and_cup(adult, data_folder):
    assert columns(adult) == []
    cup = pl.read_csv(data_folder / "cup" / "cup.csv.gz", infer_schema=False, separator=";")
    assert columns(cup) == []


def test_a_million_records_are_quick():
    frame = purchases.generate(3000, 1)
    many = pl.concat(
        [frame.with_columns(customer=pl.col("customer") + f"-{i}") for i in range(334)]
    )
    began = time.process_time()
    assert columns(many) == ["customer"]
    assert time.process_time() - began < 20  # about 3 s on two busy cores


@pytest.mark.parametrize(
    ("agreeing", "named"),
    [
        (("a", "b", "c"), "a, b, c;"),
        (("a", "b", "c", "d"), "a, b, c, d;"),
        (("a", "b", "c", "d", "e"), "a, b, c and 2 more;"),
    ],
)
def test_columns_that_are_not_named_are_counted(agreeing, named):
    assert f"agree on {named}" in str(Evidence("case", 9, 90, agreeing, True))


# Where it is used


@pytest.fixture
def policy(twice, tmp_path, monkeypatch) -> dict:
    monkeypatch.chdir(tmp_path)
    twice.write_csv("t.csv")
    quasi = {name: {"role": "quasi"} for name in ("sex", "born", "ward")}
    content = {
        "version": 1,
        "attributes": {"fallnr": {"role": "drop"}, **quasi},
        "promises": [{"model": "k-anonymity", "k": 5}],
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(content))
    return content


def test_publish_warns_and_publishes(policy, shoal):
    done = shoal("publish", "t.csv", "-p", "p.yaml", "-o", "out.csv", "-q", "--method", "mondrian")
    assert done.status == 0
    assert "shoal: column 'fallnr': 400 records carry 200 different values" in done.err


def test_with_a_subject_nobody_is_warned(policy, tmp_path, shoal):
    policy["attributes"]["fallnr"] = {"role": "subject"}
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    done = shoal("publish", "t.csv", "-p", "p.yaml", "-o", "out.csv", "-q", "--method", "mondrian")
    assert done.status == 0
    assert "different values" not in done.err


def test_policy_check_warns_and_is_content(policy, shoal):
    done = shoal("policy", "check", "p.yaml", "t.csv")
    assert done.status == 0
    assert "if it numbers people, give it the role 'subject'" in done.err


def test_policy_init_proposes_the_subject_and_asks(twice):
    text = library.propose(twice)
    assert yaml.safe_load(text)["attributes"]["fallnr"] == {
        "role": "subject",
        "ask": "does it number people? if not, give it another role",
    }
    (line,) = [line for line in text.splitlines() if "fallnr" in line]
    assert line.endswith("agree on sex, born: the people that k counts, removed")


def test_the_certificate_and_python_say_it_too(twice):
    policy = {
        "version": 1,
        "attributes": {
            "fallnr": {"role": "quasi", "type": "number", "domain": [5000, 5200]},
            "sex": {"role": "quasi"},
            "born": {"role": "plain"},
            "ward": {"role": "plain"},
        },
        "promises": [{"model": "k-anonymity", "k": 5}],
        "method": {"name": "mondrian"},
    }
    with pytest.warns(ReleaseWarning, match="if it numbers people") as caught:
        done = library.publish(twice, policy)
    assert [one.message.code for one in caught] == ["people-assumed"]
    assert done.certificate["warnings"] == [
        {"code": "people-assumed", "text": str(person_numbers(Table(twice))[0])}
    ]
    policy["attributes"]["fallnr"] = {"role": "subject"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.publish(twice, policy).certificate["warnings"] == []


UNSEEN = (
    "\0\x1b\x7f\x9f\u034f\u180b\u200b\u2065\u2800\u3164\uffa0\ufeff\ufff9\ufffb\U000e0001\U000e007f"
)


@pytest.mark.parametrize("sign", UNSEEN)
def test_a_sign_that_nobody_sees_makes_no_second_person(sign):
    """The same in both ways to compare names: cell by cell, and column by column."""
    for name in (f"p{sign}1", f"{sign}p1", f"p1{sign}"):
        assert person_name(name) == "p1"
        assert names_of(pl.Series([name])).to_list() == ["p1"]
    assert person_name("p 1") != "p1"
