"""Values that differ only by capitals or blanks are reported, by counts alone."""

import json
import warnings
from collections import Counter
from itertools import product
from pathlib import Path

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import shoal as library
from sample_policies import content_of
from shoal.data.person_names import alike_values, bare, names_of, same_value, unsigned
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.policy.binding.columns import written_alike
from shoal.policy.policy import Policy

NUMBER = {"role": "quasi", "type": "number"}
AGE = NUMBER | {"domain": [0, 100]}
COLUMNS = {"age": AGE, "town": "quasi", "disease": "sensitive", "note": "plain"}
DIVERSE = {"model": "l-diversity", "attribute": "disease", "l": 2}
POLICY = content_of(COLUMNS, 2, DIVERSE)
ROWS = pl.DataFrame(
    {
        "age": [" 30", "30", "31", "32", "40", "41"],
        "town": ["Ulm", "ulm", "Bonn", "Bonn", "", " "],
        "disease": ["flu", "Flu", "flu ", "gout", "Asthma", "asthma"],
        "note": ["a", "A", "a ", "a", "a", "a"],
    }
)


def texts(frame, policy=POLICY):
    return [one.text for one in written_alike(Table(frame), Policy.from_dict(policy).model)]


def test_groups_of_like_values_are_counted_and_none_is_named():
    town, disease = texts(ROWS)
    assert town.startswith("attribute 'town': 2 of its values are only 1 if")
    assert disease.startswith("attribute 'disease': 5 of its values are only 2 if")
    assert not any(value in text for text in (town, disease) for value in ("Ulm", "flu", "sthma"))


def test_numbers_plain_columns_and_texts_for_no_value_say_nothing():
    alone = ROWS.with_columns(town=pl.lit("Ulm"), disease=pl.lit("flu"))
    assert texts(alone) == []
    without = alone.with_columns(disease=pl.Series(["NA", "na", "", "x", "x", "x"]))
    assert texts(without, POLICY | {"missing_values": ["", "NA", "na"]}) == []


@pytest.mark.parametrize(
    ("cells", "listed", "found"),
    [
        (["NaN", "null", "N/A", "Unknown", "-", "None"], [], 6),
        (["none", "", "x", "x", "x", "x"], [""], 2),
        (["none", "x", "x", "x", "x", "x"], [], 0),
        (["none", "NA", "", "x", "x", "x"], ["none", "NA", ""], 0),
    ],
)
def test_sensitive_texts_that_often_stand_for_no_value_are_counted(cells, listed, found):
    frame = ROWS.with_columns(town=pl.lit("Ulm"), disease=pl.Series(cells))
    said = texts(frame, {**POLICY, "missing_values": listed})
    begin = f"attribute 'disease': {found} of its values often stand for none, and l counts each"
    assert [one.startswith(begin) for one in said] == [True] * bool(found)


def test_households_whose_numbers_are_spelled_in_several_ways_are_said():
    policy = content_of({"age": AGE, "hh": "household", "w": "weight"})
    frame = pl.DataFrame({"age": range(4), "hh": ["H1", "h1", "0H1", "H1.0"], "w": [2] * 4})
    (said,) = texts(frame, policy)
    assert said.startswith("attribute 'hh': 4 of its values are only 1 if capitals, zeros in front")
    assert "each of them counts as a household" in said
    assert texts(frame.with_columns(hh=pl.lit("H1")), policy) == []


def test_the_certificate_says_it_of_such_tables_alone():
    with pytest.warns(ReleaseWarning, match="write them alike") as caught:
        done = library.publish(ROWS, POLICY)
    assert [one.message.code for one in caught].count("written-alike") == 2
    stated = [one for one in done.certificate["warnings"] if one["code"] == "written-alike"]
    assert [one["text"] for one in stated] == texts(ROWS)
    clean = ROWS.with_columns(pl.col("town", "disease").str.strip_chars().str.to_lowercase())
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="write them alike")
        codes = [one["code"] for one in library.publish(clean, POLICY).certificate["warnings"]]
    assert "written-alike" not in codes


ALIKE = [
    ("Asthma", "asthma"),
    ("Z\u00f6liakie", "Zo\u0308liakie"),
    ("back pain", " back\u00a0 pain"),
    ("asthma", "asth\u200bma\U000e0061"),
    ("HIV", "\uff28\uff29\uff36"),
    ("Stra\u00dfe", "STRASSE"),
    ("flu", " "),  # no value, and one that shows nothing
]


@pytest.mark.parametrize("method", ["rounded-partition", "mondrian", "full-domain"])
@pytest.mark.parametrize("pair", ALIKE)
def test_two_ways_to_write_a_disease_are_one_for_l(pair, method):
    """`flu` and a blank are a value and none: two, but two texts for none are one."""
    rows = pl.DataFrame({"age": ["30", "31", "40", "41"] * 4, "d": [*pair, *pair[::-1]] * 4})
    diverse = DIVERSE | {"attribute": "d"}
    asked = content_of({"age": AGE, "d": "sensitive"}, 2, diverse, method={"name": method})
    if pair[1] == " ":
        rows = rows.with_columns(pl.col("d").replace("flu", ""))
    with pytest.raises(library.InfeasibleError, match="the nearest that holds is l = 1"):
        library.publish(rows, asked)
    shown = rows.with_columns(age=pl.lit("[30, 41]"))
    assert library.audit(shown, asked)["promises"][1]["measured"] == 1
    other = rows.with_columns(d=pl.col("d").replace(pair[1], "gout"))
    assert library.publish(other, asked).certificate["promises"][1]["measured"] == 2


def test_a_value_that_a_promise_names_is_found_however_it_is_written():
    rows = pl.DataFrame({"age": ["30", "31"] * 4, "d": ["HIV", "flu"] * 4})
    promise = {"model": "alpha-k-anonymity", "attribute": "d", "alpha": 0.4, "k": 2}
    asked = content_of({"age": AGE, "d": "sensitive"})
    with pytest.raises(library.InfeasibleError):
        library.publish(rows, asked | {"promises": [promise | {"values": ["hiv "]}]})


def test_check_says_it_and_verify_misses_it_where_it_was_left_out(folder, shoal):
    ROWS.write_csv("rows.csv")
    Path("policy.yaml").write_text(yaml.safe_dump(POLICY))
    said = shoal(*"policy check policy.yaml rows.csv".split(), status=0)
    assert "5 of its values are only 2" in said.out + said.err
    assert "flu" not in said.out + said.err
    assert shoal(*"publish rows.csv -p policy.yaml -o out.csv".split()).status == 0
    verify = "verify out.csv --policy policy.yaml --original rows.csv".split()
    assert shoal(*verify).status == 0
    (certificate,) = folder.glob("out*.json")
    content = json.loads(certificate.read_text())
    content["warnings"] = [w for w in content["warnings"] if w["code"] != "written-alike"]
    certificate.write_text(json.dumps(content))
    said = shoal(*verify)
    assert said.status != 0
    assert "written-alike" in said.out + said.err


@pytest.mark.parametrize(
    ("numbers", "spelled", "people"),
    [
        # blanks at an end make nobody another person
        (["a1", "A1", "b2", "b2 ", "c3", "d  4"], 2, 1),
        (["7", "007", "7.0", "8", "0", "00"], 5, 2),
        (["123-45-6789", "123456789", "P 1", "P-1", "1-12", "11-2"], 4, 2),  # two centres, at last
        (["P12", "P١٢", "P१२", "13", "P2", "p2"], 5, 2),
        ([f"a{i}0" for i in range(6)], 0, 0),
    ],
)
def test_people_whose_numbers_are_in_several_spellings_are_counted_apart_and_said_so(
    numbers, spelled, people
):
    policy = content_of(COLUMNS | {"id": "subject"}, 2, DIVERSE)
    found = texts(ROWS.select("age", id=pl.Series(numbers)), policy)
    begins = f"attribute 'id': {spelled} of its values are only {people} if "
    begins += "capitals, zeros in front, '.0', marks"
    assert [text.startswith(begins) for text in found] == [True] * bool(spelled)
    assert all("and each of them counts as a person" in text for text in found)


@pytest.mark.parametrize(
    ("cells", "role"),
    [
        *product(
            (["1", "-9.00", None, "-9.00"], ["1", "-9,0", "-9", "-9.00"]), (NUMBER, "subject")
        ),
        (["1", " -9", "-9", "-9.0 "], NUMBER),
    ],
)
def test_codes_for_no_value_that_are_written_as_decimals_are_warned_of(cells, role):
    policy = content_of({"a": role, "b": "quasi"}, 2)
    table = Table(pl.DataFrame({"a": cells, "b": ["x"] * 4}))
    for listed, warned in ([["", "-9"], 1], [["", "-9", *map(str, cells)], 0], [[""], 0]):
        found = written_alike(table, Policy.from_dict({**policy, "missing_values": listed}).model)
        texts = [one.text for one in found if "'missing_values'" in one.text]
        assert len(texts) == warned
        assert all(text.startswith("attribute 'a': 2 records hold") for text in texts)


@pytest.mark.parametrize("name", ["nan", "None", "NULL ", "#N/A", "Unknown", "k.A."])
def test_a_person_whose_name_often_stands_for_no_value_is_warned_of(name):
    policy = content_of(COLUMNS | {"id": "subject"}, 2, DIVERSE)
    frame = ROWS.select("age", id=pl.Series(["a", "b", "c", name, name, name]))
    (text,) = texts(frame, policy)
    assert text.startswith("attribute 'id': 3 records hold a text that often stands for no value")
    assert name.strip() not in text
    listed = frame.with_columns(id=pl.col("id").str.strip_chars())
    assert texts(listed, policy | {"missing_values": ["", name.strip()]}) == []
    assert texts(frame.with_columns(id=pl.lit("Nona")), policy) == []


@given(st.lists(st.text("aAßsé\u0301-. +,01\uff11", max_size=5), min_size=1, unique=True))
def test_no_spelling_is_lost_among_those_that_are_compared_first(names):
    shown = unsigned(bare(names_of(pl.Series(names)).unique()))
    sizes = [size for size in Counter(map(same_value, shown)).values() if size > 1]
    assert alike_values(pl.Series(names), True, []) == (sum(sizes), len(sizes))
