"""`shoal audit FILE --column quasi=a,b --k 5`: columns and numbers are all that is asked."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from shoal.cli.main import status_of
from shoal.errors import InputError

# ages and sexes: one class of two with two diseases, one class of two with one
ROWS = "age,sex,who,disease\n20-30,f,a,flu\n20-30,f,b,hiv\n30-40,m,c,flu\n30-40,m,c,flu\n"


@pytest.fixture
def released(tmp_path) -> Path:
    (tmp_path / "r.csv").write_text(ROWS)
    return tmp_path / "r.csv"


def audit(released: Path, *options: str) -> tuple[int, dict]:
    path = released.parent / "audit.json"
    path.unlink(missing_ok=True)
    status = status_of(["audit", str(released), *options, "-q", "-o", str(path)])
    return status, json.loads(path.read_text()) if path.exists() else {}


def measured(certificate: dict) -> list[tuple]:
    return [(p["model"], p["measured"], p["holds"]) for p in certificate["promises"]]


QUASI = ("--column", "quasi=age,sex", "--k", "2")


def test_records_are_counted_unless_a_subject_is_named(released):
    """c has both records of the second class."""
    status, certificate = audit(released, *QUASI)
    assert status == 0
    assert measured(certificate) == [("k-anonymity", 2, True)]
    assert audit(released, "--column", "quasi=age,sex", "--k", "3")[0] == 1
    status, certificate = audit(released, *QUASI, "--column", "subject=who")
    assert status == 1
    assert measured(certificate) == [("k-anonymity", 1, False)]
    assert certificate["subjects"] == 3


def test_withheld_records_may_hide_who_they_are_of(released):
    released.write_text(ROWS.replace("m,c,flu\n30", "m,d,flu\n30") + "*,*,*,*\n*,*,*,*\n")
    options = ("--column", "subject=who", "--column", "sensitive=disease")
    status, certificate = audit(released, *QUASI, *options)
    assert (status, certificate["records"]["withheld"]) == (0, 2)


def test_sensitive_columns_are_measured_as_by_hand(released):
    """Of the second class everybody has flu: l = 1. In all, flu is 3/4: |1/2 - 3/4| = 1/4."""
    options = ("--column", "quasi=age", "--column", "quasi=sex", "--k", "2", "--column")
    status, certificate = audit(released, *options, "sensitive=disease:l=2:t=0.2")
    assert status == 1
    assert measured(certificate) == [
        ("k-anonymity", 2, True),
        ("l-diversity", 1, False),
        ("t-closeness", pytest.approx(0.25), False),
    ]
    assert audit(released, *options, "sensitive=disease:l=1:t=0.25")[0] == 0
    assert audit(released, *options, "sensitive=disease:t=0")[0] == 1


def test_what_cells_span_is_not_guessed_and_its_certificate_verifies(released):
    _, certificate = audit(released, *QUASI)
    assert certificate["policy"] is None
    assert certificate["utility"]["gcp"] is None
    assert certificate["utility"]["generalized_loss"] is None
    assert certificate["utility"]["discernibility"] == 8
    assert [c["technique"] for c in certificate["columns"]] == [None] * 4
    assert [c["distinct_out"] for c in certificate["columns"]] == [2, 2, 3, 2]
    checks = shoal.verify(released, released.parent / "audit.json")
    passed = ["file", "output", "columns", "rows", "figures"]  # no policy says what to measure
    assert [check.name for check in checks if check.ok] == passed
    assert not any(check.ok is False for check in checks)


AGE = "--column quasi=age --k 2"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--column quasi=age,sx --k 2", "column 'sx': is not in the release; did you mean 'sex'?"),
        ("--column quasi=age", "audit --column: needs --k"),
        ("--column age --k 2", "--column 'age': is not ROLE=A,B; write quasi=, subject= or"),
        ("--column quasi=age --k 1", "promise 'k-anonymity'"),
        ("--column quasi=age,age --k 2", "column 'age': is named twice"),
        ("--column quasi=, --k 2", "no quasi-identifier"),
        (f"{AGE} --column sensitive=:l=2", "name one as sensitive"),
        (f"{AGE} --column sensitive=disease:l=two", "needs one whole number as l"),
        (f"{AGE} --column sensitive=disease:l=2,x:l=3", "needs one whole number"),
        (f"{AGE} -p p.yaml", "audit: --policy cannot be used with --column"),
        (f"{AGE} --original o.csv", "--original cannot be used with --column"),
        ("--column sensitive=x --k 2 -p p.yaml", "--policy cannot be used with --column"),
        ("", "needs RELEASED and --policy or --column"),
    ],
)
def test_bad_usage_is_one_line(released, options, said, capsys):
    status, certificate = audit(released, *options.split())
    error = capsys.readouterr().err
    assert (status, certificate) == (2, {})
    assert said in error
    assert len(error.splitlines()) == 1


def test_python_asks_the_same(released):
    frame = pl.read_csv(released, infer_schema=False)
    certificate = shoal.audit(frame, quasi=["age", "sex"], k=2, sensitive="disease", l=1, t=0.25)
    assert certificate.holds
    assert not shoal.audit(frame.to_pandas(), quasi=("age", "sex"), k=3).holds
    assert not shoal.audit(frame, quasi="sex", k=2, sensitive=["disease"], t=0.0).holds
    for wrong in (
        {},
        {"quasi": "age"},
        {"k": 2},
        {"quasi": "age", "k": 2, "original": frame},
        {"policy": {}, "k": 2},
    ):
        with pytest.raises(InputError, match=r"^audit: "):
            shoal.audit(frame, **wrong)


@given(
    st.lists(st.tuples(*[st.sampled_from("ab*")] * 2, st.sampled_from("xyz")), min_size=1),
    st.integers(2, 4),
)
def test_the_smallest_group_is_that_of_a_loop_over_records(rows, k):
    """Rows that show `*` everywhere are left out here: they have a rule of their own."""
    rows = [row for row in rows if row[:2] != ("*", "*")]
    if not rows:
        return
    frame = pl.DataFrame(rows, schema=["a", "b", "s"], orient="row")
    certificate = shoal.audit(frame, quasi=["a", "b"], k=k)
    groups = [sum(other[:2] == row[:2] for other in rows) for row in rows]
    assert certificate["promises"][0]["measured"] == min(groups)
    assert certificate.holds == (min(groups) >= k)
    assert certificate["risk"]["prosecutor_mean"] == pytest.approx(
        np.mean([1 / size for size in groups])
    )


def test_saying_how_the_file_is_written_guesses_nothing_more(tmp_path):
    """Once a policy of columns was changed, the loss of cells that nobody described was stated."""
    (tmp_path / "r.csv").write_bytes("alter;ort\n20-30;Köln\n20-30;Köln\n".encode("cp1252"))
    asked = (tmp_path / "r.csv", "--column", "quasi=alter,ort", "--k", "2")
    for option in ("--read", "--write"):
        status, certificate = audit(*asked, option, "encoding=cp1252", option, "delimiter=;")
        assert status == 0
        assert certificate["utility"]["gcp"] is None
        assert certificate["policy"] is None


@pytest.mark.parametrize(
    ("option", "setting"),
    [
        ("--read", "decimal=,"),
        ("--read", "dates=%d.%m.%Y"),
        ("--write", "numbers=lo"),
        ("--write", "types=text"),
    ],
)
def test_what_would_be_passed_over_is_refused(released, option, setting, capsys):
    status, _ = audit(released, *QUASI, option, setting)
    assert status == 2
    key = setting.partition("=")[0]
    assert capsys.readouterr().err == (
        f"shoal: {option} {key}: says what cells mean, and without a policy they are compared as"
        " text; leave it out, or give --policy\n"
    )
