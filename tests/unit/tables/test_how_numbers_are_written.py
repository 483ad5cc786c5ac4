"""What is asked, said and obeyed of numbers whose marks tell two stories."""

import ast
import re
import warnings

import pandas as pd
import pytest
import yaml

import shoal
from sample_policies import content_of
from shoal.data.warnings import OPEN, READ_AS_TEXT
from shoal.errors import InputError

ROWS = 120
GROUPS = [f"{1 + row % 12},050" for row in range(ROWS)]
POINTS = [cell.replace(",", ".") for cell in GROUPS]
APOSTROPHES = [cell.replace(",", "'") for cell in GROUPS]
COMMAS = [f"{50 + row % 12},5" for row in range(ROWS)]
TYPED = {"quasi": {"text": {"type": "number"}}, "k": 5}
UNTYPED = {"quasi": ["text"], "k": 5}
BOTH = [{"decimal": ","}, {"thousands": ","}]
ADVISED = re.compile(r"read=(\{[^}]*\})")


def policy(read=None):
    return content_of(
        {"text": {"role": "quasi", "type": "number"}, "other": {"role": "plain", "type": "number"}},
        5,
        other="drop",
        **{} if read is None else {"read": read},
    )


def frame(cells, other=(1.5,) * ROWS):
    return pd.DataFrame({"text": cells, "other": [*other]})


def refusal(call):
    with pytest.raises(InputError) as refused:
        call()
    return str(refused.value)


def asked_of(warned):
    return [one.column for one in warned if one.code == READ_AS_TEXT]


# Advice


def test_commas_before_three_digits_are_asked_about_and_either_answer_is_taken():
    said = refusal(lambda: shoal.publish(frame(GROUPS)[["text"]], **TYPED))
    assert "its commas mark decimals or group digits" in said
    assert [*map(ast.literal_eval, ADVISED.findall(said))] == BOTH
    for read, least in zip(BOTH, (1.05, 1050), strict=True):
        release = shoal.publish(frame(GROUPS)[["text"]], **TYPED, read=read)
        assert release.numbers("interval")["text"].map(lambda ends: ends["lo"]).min() == least


def test_a_column_of_both_decimal_marks_is_called_so_whichever_is_said():
    mixed = frame([*COMMAS[:60], *(cell.replace(",", ".") for cell in COMMAS[60:])])
    for read in (None, {"decimal": ","}, {"decimal": "."}):
        said = refusal(lambda read=read: shoal.publish(mixed, policy(read)))
        assert "its numbers are written in several ways" in said
        assert "read=" not in said


def test_two_ways_to_group_digits_are_called_so():
    mixed = [cell.replace(",", mark) for cell, mark in zip(GROUPS, "' " * 60, strict=True)]
    said = refusal(lambda: shoal.publish(frame(mixed), policy({"decimal": "."})))
    assert "its numbers are written in several ways" in said


@pytest.mark.parametrize("verb", [shoal.publish, shoal.compare, shoal.check])
def test_advice_says_where_else_a_notation_is_named(verb):
    given = (policy(), frame(COMMAS)) if verb is shoal.check else (frame(COMMAS), policy())
    if verb is shoal.check:
        (said,) = [one.message for one in verb(*given) if "digits" in one.message]
    else:
        said = refusal(lambda: verb(*given))
    assert "(in a policy under 'read')" in said


# read=


@pytest.mark.parametrize(
    "call",
    [
        lambda table, words: shoal.publish(table, **words).policy,
        lambda table, words: shoal.publish(table, policy(), read=words["read"]).policy,
        lambda table, words: shoal.Policy.from_columns(table, **words),
        lambda table, words: shoal.compare(table, **words, methods=["mondrian"]),
        lambda table, words: shoal.compare(
            table, policy(), read=words["read"], methods=["mondrian"], ks=[5]
        ),
    ],
)
def test_a_reading_is_taken_by_whatever_takes_columns_by_words(call):
    found = call(frame(GROUPS), TYPED | {"read": BOTH[1], "other": "drop"})
    if isinstance(found, shoal.Policy):
        assert found.model.read.thousands == ","
    else:
        assert all(row.certificate["classes"]["min"] >= 5 for row in found.rows)


def test_a_transformer_takes_a_reading():
    sklearn = pytest.importorskip("shoal.sklearn")
    table = frame(GROUPS)
    for made in (
        sklearn.Anonymizer(**TYPED, other="drop", read=BOTH[1]),
        sklearn.Anonymizer(policy(), read=BOTH[1]),
    ):
        assert made.fit(table).policy_.model.read.thousands == ","


def test_an_audit_of_columns_takes_how_a_file_is_written(tmp_path):
    (tmp_path / "r.csv").write_bytes("ö\n".encode("cp1252") + b"1\n" * 5)
    said = refusal(lambda: shoal.audit(tmp_path / "r.csv", quasi="ö", k=5))
    assert "read={'encoding'" in said
    audited = shoal.audit(tmp_path / "r.csv", quasi="ö", k=5, read={"encoding": "cp1252"})
    assert audited.holds
    said = refusal(lambda: shoal.audit(tmp_path / "r.csv", quasi="ö", k=5, read={"decimal": ","}))
    assert "decimal" in said


def test_a_reading_with_another_key_is_refused_in_one_line():
    said = refusal(lambda: shoal.publish(frame(GROUPS), **UNTYPED, other="drop", read={"dec": ","}))
    assert "dec" in said
    assert "\n" not in said


# A decimal mark that is said of cells that look like groups of digits


@pytest.mark.parametrize("other", [GROUPS, COMMAS])
def test_a_decimal_mark_before_three_digits_throughout_is_warned_of(other):
    release = shoal.publish(frame(GROUPS, other), policy({"decimal": ","}))
    warned = [one for one in release.warnings if one.code == READ_AS_TEXT]
    assert asked_of(warned) == ["text"] + ["other"] * (other is GROUPS)
    assert all(one.severity == OPEN for one in warned)
    assert "thousands" in warned[0].text


def test_a_column_that_another_confirms_is_warned_of_by_words_too():
    release = shoal.publish(frame(GROUPS, COMMAS), quasi=["text", "other"], k=5)
    assert release.policy.model.read.decimal == ","
    assert asked_of(release.warnings) == ["text"]


def test_points_before_three_digits_throughout_are_warned_of_by_words():
    release = shoal.publish(frame(POINTS)[["text"]], **UNTYPED)
    (warned,) = [one for one in release.warnings if one.code == READ_AS_TEXT]
    ways = re.search(r"say (\{.*\}) if they are groups, else (\{.*\})$", warned.text).groups()
    for read, least in zip(map(yaml.safe_load, ways), (1050, 1.05), strict=True):
        release = shoal.publish(frame(POINTS)[["text"]], **UNTYPED, read=read)
        assert release.numbers("interval")["text"].map(lambda ends: ends["lo"]).min() == least
        assert asked_of(release.warnings) == []


@pytest.mark.parametrize(
    ("cells", "read"),
    [
        (COMMAS, {"decimal": ","}),
        ([*GROUPS[:-1], "0,050"], {"decimal": ","}),
        ([*GROUPS[:-1], "1,25"], {"decimal": ","}),
        ([f"{row % 12}" for row in range(ROWS)], {"decimal": ","}),
        (GROUPS, {"thousands": ","}),
        (GROUPS, {"decimal": ",", "thousands": None}),
        (GROUPS, {"decimal": ",", "thousands": "."}),
        (POINTS, {}),
        ([1050.5] * ROWS, {"decimal": ","}),
    ],
)
def test_a_decimal_mark_that_is_certain_is_not_warned_of(cells, read):
    release = shoal.publish(frame(cells), policy(read))
    assert asked_of(release.warnings) == []


DAYS = [f"{1 + row % 12:02}/{1 + row % 11:02}/2024" for row in range(ROWS)]
OPEN_FORMS = {
    "comma": (GROUPS, [{"decimal": ",", "thousands": None}, {"thousands": ","}]),
    "day": (DAYS, [{"dates": "%d/%m/%Y"}, {"dates": "%m/%d/%Y"}]),
}


@pytest.mark.parametrize(("cells", "ways"), OPEN_FORMS.values(), ids=OPEN_FORMS)
def test_what_is_open_is_asked_with_answers_that_are_taken(cells, ways):
    release = shoal.publish(frame(cells)[["text"]], **UNTYPED)
    (asked,) = [one.text for one in release.warnings if one.code == READ_AS_TEXT]
    assert "'read' takes" not in asked
    answers = re.search(r"\? Say (.*) under 'read', or write numbers as 1234.5", asked)[1]
    assert [yaml.safe_load(answer) for answer in answers.split(" or ")] == ways
    for read in ways:
        release = shoal.publish(frame(cells)[["text"]], **UNTYPED, read=read)
        assert asked_of(release.warnings) == []
        assert release.policy.model.read.model_dump(exclude_unset=True) == read
        declared = release.policy.model.attributes["text"]
        assert declared.type == "number" or "dates" in (declared.hierarchy or {})


# What stands for no value


def test_what_stands_for_no_value_is_said_by_words():
    rows = range(ROWS)
    table = pd.DataFrame(
        {
            "text": ["k.A." if row % 10 == 0 else f"{row % 12},5" for row in rows],
            "whole": [-9 if row % 10 == 3 else 20 + row % 12 for row in rows],
            "real": [-9.0 if row % 10 == 5 else 20.5 + row % 12 for row in rows],
        }
    )
    words = {"quasi": ["text", "whole", "real"], "k": 5}
    with pytest.warns(UserWarning, match="list them in missing_values=") as warned:
        shoal.publish(table, **words)
    assert len([one for one in warned if "missing_values=" in str(one.message)]) == 3
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*no value|.*missing_values")
        release = shoal.publish(table, **words, missing_values=["k.A.", -9])
    attributes = release.policy.model.attributes
    assert {one.type for one in attributes.values()} == {"number"}
    assert attributes["whole"].domain[0] >= 0
    assert attributes["real"].domain[0] >= 0


# Files


def test_floats_that_get_a_decimal_comma_in_a_file_are_named_once(tmp_path):
    table = frame(COMMAS, [row / 8 for row in range(ROWS)])
    release = shoal.publish(table, quasi=["text"], plain=["other"], k=5)
    with pytest.warns(UserWarning, match=r": column 'other' with .*\(decimal=','\)") as warned:
        release.save(tmp_path / "r.csv")
    assert len(warned) == 1
    read = pd.read_csv(tmp_path / "r.csv", decimal=",")
    assert sorted(read["other"]) == sorted(table["other"])
    points = shoal.publish(frame(APOSTROPHES), quasi=["text"], other="plain", k=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        points.save(tmp_path / "a.csv")
        release.save(tmp_path / "r.parquet")
        release.save(tmp_path / "r.xlsx")


def test_a_column_of_two_decimal_marks_without_a_type_is_called_so():
    mixed = [*COMMAS[:60], *(cell.replace(",", ".") for cell in COMMAS[60:])]
    release = shoal.publish(frame(mixed)[["text"]], **UNTYPED)
    (warned,) = [one for one in release.warnings if one.code == READ_AS_TEXT]
    assert "decimal mark" in warned.text


@pytest.mark.parametrize("none", ["n/a", "no idea"])
def test_texts_for_no_value_are_listed_and_then_null_without_a_word(none, recwarn):
    """The remedy was another decimal mark, with which every number became text."""
    cells = [none] * 10 + list(COMMAS[10:])
    asked = {"quasi": {"text": {"type": "number"}, "other": {}}, "k": 5}
    with pytest.raises(InputError, match=r"10 cells are not .*; correct them, list the text under"):
        shoal.publish(frame(cells), **asked)
    release = shoal.publish(frame(cells), **asked, missing_values=["", none])
    recwarn.clear()
    assert release.numbers()["text"].isna().sum() == 10
    assert [str(one.message) for one in recwarn if "null" in str(one.message)] == []
