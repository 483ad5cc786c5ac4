"""Where records are counted although a column may number people, every verb says so."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest
import yaml

import shoal as library
from person_bed import BEDS
from shoal.data.person.answer import PersonCandidate
from shoal.data.person.decision import who_is_a_person
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning


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


@pytest.mark.parametrize(
    ("agreeing", "named"),
    [
        ((), "up to 12 each;"),
        (("a", "b", "c", "d"), "agree on a, b, c, d;"),
        (("a", "b", "c", "d", "e"), "agree on a, b, c and 2 more;"),
    ],
)
def test_columns_that_are_not_named_are_counted(agreeing, named):
    assert named in str(PersonCandidate(("case",), 9, 90, 12, agreeing))


def test_columns_together_say_so():
    text = str(PersonCandidate(("site", "number"), 9, 90, 12))
    assert text.startswith("columns site, number: 90 records carry 9 different combinations")


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
    proposed = yaml.safe_load(text)["attributes"]["fallnr"]
    assert proposed["role"] == "subject"
    assert proposed["ask"]["question"] == "person"
    assert proposed["ask"]["candidates"] == ["fallnr"]
    assert "200 people, 2.0 rows each on average, 2 at most of one" in proposed["ask"]["text"]
    (line,) = [line for line in text.splitlines() if "fallnr" in line]
    assert line.endswith("agree on sex, born: the people that k counts, removed")


def test_a_structured_question_is_open_until_it_is_deleted(policy, tmp_path, shoal):
    policy["attributes"]["fallnr"]["ask"] = {
        "question": "person",
        "candidates": ["fallnr", ["a", "b"]],
    }
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    asked = "who is one person, by fallnr, a + b, or every record?"
    for words in (
        ("policy", "check", "p.yaml", "t.csv"),
        ("publish", "t.csv", "-p", "p.yaml", "-o", "o.csv"),
    ):
        done = shoal(*words)
        assert done.status == 2
        assert asked in done.err
    assert not (tmp_path / "o.csv").exists()


@pytest.mark.parametrize(
    "ask",
    [{"question": "other", "candidates": ["x"]}, {"question": "person", "candidates": []}, {}],
)
def test_a_structured_question_must_be_whole(policy, tmp_path, shoal, ask):
    policy["attributes"]["fallnr"]["ask"] = ask
    (tmp_path / "p.yaml").write_text(yaml.safe_dump(policy))
    done = shoal("policy", "check", "p.yaml", "t.csv")
    assert (done.status, "ask" in done.err) == (2, True)


def test_publish_warns_of_profiles_where_nothing_numbers_people():
    frame = BEDS["wearers"].frame().drop("X1", "steps")
    with pytest.warns(ReleaseWarning, match="but only 49 profiles of age, gender, height, weight"):
        library.publish(frame, quasi=["age", "gender"], k=5, other="drop")


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
        {"code": "people-assumed", "text": str(who_is_a_person(Table(twice)).candidates[0])}
    ]
    policy["attributes"]["fallnr"] = {"role": "subject"}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert library.publish(twice, policy).certificate["warnings"] == []
