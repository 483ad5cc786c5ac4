"""What a table holds and who may be one person in it: counts by hand, and the consequence tried."""

import json

import numpy as np
import polars as pl
import pytest

import shoal
from person_bed import BEDS
from sample_policies import content_of
from shoal.cli.main import status_of
from shoal.reports.advice_in_words import profile_lines

POLICY = content_of({"age": "quasi"}, 2, other="drop")


def people(repeats: int = 60) -> pl.DataFrame:
    """Households of 3 with a number within, one visit each and some returning."""
    rng = np.random.default_rng(5)
    person = {
        "household": [f"H{i // 3:03}" for i in range(300)],
        "number": [str(i % 3) for i in range(300)],
        "age": rng.integers(18, 78, 300).astype(str),
        "sex": rng.choice(["f", "m"], 300),
        "zip": rng.integers(10100, 10140, 300).astype(str),
    }
    return pl.DataFrame(person)[[*range(300), *range(repeats)]]


def columns_of(profile: shoal.Profile) -> list[tuple[str, ...]]:
    return [candidate.columns for candidate in profile.candidates]


def test_a_column_whose_name_numbers_people_is_counted():
    frame = pl.DataFrame({"user": [f"c{i % 95}" for i in range(100)], "x": ["a", "b"] * 50})
    profile = shoal.profile(frame)
    assert columns_of(profile) == [("user",), ()]
    found = profile.candidates[0]
    assert (found.people, found.rows, found.repeated, found.most_rows) == (95, 100, 5, 2)


def test_profiles_are_no_people():
    profile = shoal.profile(BEDS["wearers"].frame())
    assert profile.candidates[0].is_profile
    assert "age + gender + height + weight: 49 profiles" in "\n".join(profile_lines(profile))


def test_fractions_and_dates_number_nobody():
    frame = pl.DataFrame(
        {
            "paid": [f"{i % 95}.5" for i in range(100)],
            "day": [f"20{i % 95:02}-01-01" for i in range(100)],
        }
    )
    assert columns_of(shoal.profile(frame)) == [()]


def test_columns_together_are_one_person():
    profile = shoal.profile(people(20))
    found = profile.candidates[0]
    assert sorted(found.columns) == ["household", "number"]
    assert (found.people, found.repeated, found.most_rows) == (300, 20, 2)
    assert {"age", "sex"} <= {*found.agreeing}


def test_rows_without_a_value_are_counted_apart():
    frame = pl.DataFrame({"patient": ["", "", *[f"p{i % 96}" for i in range(98)]], "x": "a"})
    found = shoal.profile(frame).candidates[0]
    assert (found.columns, found.people, found.rows, found.without) == (("patient",), 96, 98, 2)


def test_every_row_is_the_last_candidate_and_hides_k_of_itself():
    frame = shoal.sample("patients", 600, 3)
    profile = shoal.profile(frame, quasi=["age", "sex", "zip"], k=5)
    assert columns_of(profile) == [("patient",), ()]
    tried = profile.tried
    assert tried.k == 5
    assert tried.fewer[-1] == 0
    assert tried.smallest[-1] >= 5
    assert 0 < tried.fewer[0] <= tried.classes
    assert tried.smallest[0] < 5


@pytest.mark.parametrize("method", ["mondrian", "full-domain", "rounded-partition"])
def test_the_consequence_is_that_of_a_real_release(method):
    frame = shoal.sample("patients", 400, 3)
    attributes = {
        "patient": {"role": "subject"},
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "sex": {"role": "quasi"},
        "zip": {"role": "quasi", "hierarchy": {"prefix": 5}},
    }
    if method == "full-domain":
        attributes["age"]["hierarchy"] = {"bins": {"width": 20, "start": 0, "levels": 2}}
    policy = content_of(
        attributes, 4, other="drop", method={"name": method}, render={"order": "input"}
    )
    tried = shoal.profile(frame, policy=policy).tried
    attributes = {**attributes, "patient": {"role": "identifier"}}
    release = shoal.publish(frame, policy | {"attributes": attributes})
    hidden = (
        pl.DataFrame({"class": release.classes, "who": frame["patient"]})
        .filter(pl.col("class") >= 0)
        .group_by("class")
        .agg(pl.col("who").n_unique())["who"]
    )
    assert (tried.classes, tried.method) == (len(hidden), method)
    assert (tried.fewer[0], tried.smallest[0]) == ((hidden < 4).sum(), hidden.min())


def test_without_k_in_the_policy_rows_are_not_tried_as_people():
    frame = shoal.sample("patients", 50, 3)
    roles = {"patient": "subject", "sex": "quasi", "disease": "sensitive"}
    promises = [{"model": "l-diversity", "attribute": "disease", "l": 2}]
    profile = shoal.profile(frame, policy=content_of(roles, promises=promises, other="drop"))
    assert (profile.tried, profile.why_not) == (None, ())


def test_what_cannot_be_tried_is_said():
    frame = shoal.sample("patients", 50, 3)
    profile = shoal.profile(frame, quasi=["age"], k=60)
    assert profile.tried is None
    assert "60" in profile.why_not[0]


def test_kinds_missing_values_and_how_cells_are_written():
    frame = pl.DataFrame(
        {
            "n": ["1", "2", "NA"],
            "amount": ["1,5", "2,25", "3,0"],
            "day": ["31.12.2020", "01.02.2021", "13.01.2022"],
            "code": ["007", "013", "100"],
            "band": ["0-9", "10-19", "20+"],
            "word": ["x", "y", "y"],
            "empty": ["", "", ""],
        }
    )
    profile = shoal.profile(frame)
    assert {c.name: c.kind for c in profile.columns} == {
        "n": "whole number",
        "amount": "number",
        "day": "date",
        "code": "code",
        "band": "spans",
        "word": "text",
        "empty": "empty",
    }
    assert profile.read == {"dates": "%d.%m.%Y", "decimal": ","}
    assert profile.missing_values == ("NA",)
    assert all("no value: 'NA'" in "".join(one) for one in (str(profile), profile_lines(profile)))
    assert [c.missing for c in profile.columns] == [1, 0, 0, 0, 0, 0, 3]
    assert profile.columns[5].bars == (2, 1)


def test_the_command_prints_counts_and_no_cell(tmp_path, capsys):
    table = tmp_path / "t.csv"
    people().with_columns(pl.lit("canary").alias("sex")).write_csv(table, separator=";")
    assert status_of(["profile", str(table), "--qi", "age,zip", "--k", "5", "-q"]) == 0
    shown = capsys.readouterr().out
    assert "360 rows, 5 columns; utf-8, delimiter ';'" in shown
    assert "canary" not in shown
    assert status_of(["profile", str(table), "--read", "encoding=cp1252", "-q"]) == 0
    assert "5 columns; cp1252, delimiter ';'\n" in capsys.readouterr().out
    assert status_of(["profile", str(table), "--qi", "Age,zip", "-q"]) == 2
    assert "column 'Age': is not in the table; did you mean 'age'?" in capsys.readouterr().err
    assert status_of(["profile", str(table), "--json"]) == 0
    shown = capsys.readouterr().out
    assert json.loads(shown)["rows"] == 360
    assert "canary" not in shown


def test_a_policy_and_columns_are_one_too_many():
    with pytest.raises(shoal.InputError, match="not both"):
        shoal.profile(people(), policy=POLICY, quasi=["age"])


def test_declared_texts_for_no_value_are_not_counted_as_values():
    frame = pl.DataFrame({"id": range(8), "icd": ["I10", "k.A.", "J45", "I10"] * 2})
    policy = content_of({"id": "drop", "icd": "quasi"}, 2, missing_values=["", "k.A."])
    icd = shoal.profile(frame, policy=policy).columns[1]
    assert (icd.values, icd.missing) == (2, 2)
