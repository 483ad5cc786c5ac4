"""Downstream utility: models trained on a release and asked about original records, counts over
ranges.
"""

import json
import math
import statistics
import sys

import numpy as np
import polars as pl
import pytest

import published
import shoal
from certified_cases import run
from sample_policies import content_of
from shoal.auditor.downstream import Spans, prediction_errors, query_error
from shoal.data.schema import Attribute, Kind, Role

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
POLICY = content_of(
    {
        "at": {"role": "quasi", "hierarchy": TREE},
        "age": {"role": "quasi", "type": "number", "domain": [0, 99]},
        "buys": "plain",
    },
    5,
    label="buys",
    render={"order": "input"},
)


@pytest.fixture(scope="module")
def frame():
    """Whoever is older than 50, or lives in the south, buys; the age alone tells most."""
    rng = np.random.default_rng(0)
    age, at = rng.integers(0, 100, 900), rng.choice([*"abcd"], 900)
    buys = np.where((age > 50) ^ np.isin(at, ["c"]), "yes", "no")
    return pl.DataFrame({"at": at, "age": age, "buys": buys})


def test_a_release_that_tells_everything_is_learned_from_like_the_original(frame):
    audited = shoal.audit(frame, POLICY, frame, downstream=True)
    shown = audited["downstream"]
    assert "trained on the original" in str(audited)
    assert shown["label"] == "buys"
    for errors in shown["models"].values():
        assert errors["released"] == errors["original"]
    assert shown["models"]["tree"]["original"] < 0.05 < shown["majority"]
    assert shown["query_error"] == {"mean": 0.0, "median": 0.0}


def test_a_release_that_tells_nothing_leaves_the_most_frequent_answer(frame):
    released = frame.with_columns(at=pl.lit("*"), age=pl.lit("[0, 99]"))
    shown = shoal.audit(released, POLICY, frame, downstream=True)["downstream"]
    for errors in shown["models"].values():
        assert errors["released"] == pytest.approx(shown["majority"], abs=0.06)


def test_what_is_kept_can_be_learned_and_what_is_gone_can_not(frame):
    by_age = frame.with_columns(at=pl.lit("*"))
    halves = pl.when(pl.col("age") > 50).then(pl.lit("[51, 99]")).otherwise(pl.lit("[0, 50]"))
    for released in (by_age, by_age.with_columns(age=halves)):
        shown = shoal.audit(released, POLICY, frame, downstream=True)["downstream"]
        assert 0.15 < shown["models"]["tree"]["released"] < 0.35


def test_suppressed_records_are_not_learned_from(frame):
    ages = frame["age"].cast(float).to_numpy()
    columns = [Spans(Attribute("age", Role.QUASI, Kind.NUMBER, (0, 99)), ages, ages, ages)]
    label = (frame["buys"] == "no").cast(int).to_numpy()
    nobody = prediction_errors(columns, label, np.zeros(900, dtype=bool), 0)
    assert all(errors["released"] == 1.0 for errors in nobody["models"].values())


def plain_query_error(columns, seed, queries):
    """`query_error` record by record, with the same random numbers."""
    rng = np.random.default_rng([seed, 3])
    records, errors = len(columns[0].true), []
    for _ in range(queries):
        chosen = rng.permutation(len(columns))[: rng.integers(1, min(3, len(columns)) + 1)]
        ranges = []
        for j in chosen:
            known = [value for value in columns[j].true.tolist() if not math.isnan(value)]
            ranges.append(sorted(known[i] for i in rng.integers(0, len(known), 2)))
        truth = estimate = 0.0
        for i in range(records):
            inside, share = True, 1.0
            for j, (low, high) in zip(chosen, ranges, strict=True):
                inside &= low <= columns[j].true[i] <= high
                share *= plain_share(columns[j], i, low, high)
            truth += inside
            estimate += share
        errors.append(abs(estimate - truth) / max(truth, 0.001 * records))
    return {"mean": statistics.mean(errors), "median": statistics.median(errors)}


def plain_share(column, i, low, high):
    least, greatest = ENDS[column.attribute.name]
    lo, hi = max(column.lo[i], least), min(column.hi[i], greatest)
    if math.isnan(column.lo[i]):
        return 0.0
    # every whole number or place is as likely
    if all(value.is_integer() for value in column.true.tolist() if not math.isnan(value)):
        return sum(low <= place <= high for place in range(int(lo), int(hi) + 1)) / (hi - lo + 1)
    if lo == hi:
        return float(low <= lo <= high)
    return max(min(hi, high) - max(lo, low), 0.0) / (hi - lo)


ENDS = {"declared": (-2.0, 20.0), "open": (0.0, 9.5), "grade": (0.0, 3.0), "at": (0.0, 4.0)}
ATTRIBUTES = [
    Attribute("declared", Role.QUASI, Kind.NUMBER, (-2.0, 20.0)),
    Attribute("open", Role.QUASI, Kind.NUMBER),
    Attribute("grade", Role.QUASI, Kind.ORDINAL, order=("a", "b", "c", "d")),
    Attribute("at", Role.QUASI, hierarchy=published.hierarchy_of([[0, 0], [0, 0, 0]])),
]


def spans_of(attribute, rng, records=40):
    least, greatest = ENDS[attribute.name]
    true = rng.integers(max(least, 0), min(greatest, 9) + 1, records).astype(float)
    true[:2] = least, greatest
    lo = np.maximum(true - rng.integers(0, 4, records), least)
    hi = np.minimum(true + rng.integers(0, 4, records), greatest)
    lo[5:8], hi[5:8] = -np.inf, np.inf
    for column in (lo, hi, true):
        column[9] = np.nan
    return Spans(attribute, lo, hi, true)


@pytest.mark.parametrize("which", [[0], [1], [2], [3], [0, 3], [0, 1, 2, 3]])
def test_errors_of_counts_are_those_of_counting_record_by_record(which):
    columns = [spans_of(ATTRIBUTES[j], np.random.default_rng(j)) for j in which]
    expected = plain_query_error(columns, 5, 60)
    assert query_error(columns, 5, 60) == pytest.approx(expected)


def test_numbers_are_learned_from_by_the_middle_of_their_cell():
    """Cells [0, 10] of one label and [4, 20] of the other: the middles 5 and 12 are told apart by
    8.5, so of the true values only 9 is taken for the other.
    """
    n = 300
    label = np.arange(n) % 2
    lo, hi = np.where(label == 0, 0.0, 4.0), np.where(label == 0, 10.0, 20.0)
    for true, wrong in ((8.0, 0.0), (9.0, 1.0)):
        column = Spans(ATTRIBUTES[0], lo, hi, np.where(label == 0, true, 12.0))
        shown = prediction_errors([column], label, np.ones(n, dtype=bool), 0)
        zeros = (label[held_out(n, 0)] == 0).mean()
        assert shown["models"]["tree"]["released"] == pytest.approx(wrong * zeros)
        assert shown["models"]["tree"]["original"] == 0.0


def test_a_third_is_tested_and_the_most_frequent_label_of_the_rest_is_the_floor():
    n = 100
    label = np.where(np.arange(n) < 60, 2, 5)
    column = Spans(ATTRIBUTES[0], np.zeros(n), np.zeros(n), np.zeros(n))
    shown = prediction_errors([column], label, np.ones(n, dtype=bool), 3)
    tested = held_out(n, 3)
    assert shown["tested"] == 33
    assert shown["majority"] == (label[tested] != 2).mean()
    assert shown["models"]["tree"] == {"original": shown["majority"], "released": shown["majority"]}


def held_out(records, seed):
    return np.random.default_rng([seed, 2]).permutation(records)[: records // 3]


def test_no_value_is_learned_from_as_one_of_its_own():
    n = 200
    label = np.arange(n) % 2
    values = np.where(label == 0, np.nan, -2.0)  # the least of the domain, and no value
    column = Spans(ATTRIBUTES[0], values, values, values)
    shown = prediction_errors([column], label, np.ones(n, dtype=bool), 0)
    assert shown["models"]["tree"] == {"original": 0.0, "released": 0.0}


def test_categories_are_learned_from_by_the_nodes_that_they_lie_under():
    """The two leaves of the first branch have one label, the three of the second the other."""
    n = 200
    true = np.arange(n) % 5.0
    label = (true >= 2).astype(int)
    branch = Spans(ATTRIBUTES[3], np.where(true < 2, 0.0, 2.0), np.where(true < 2, 1.0, 4.0), true)
    shown = prediction_errors([branch], label, np.ones(n, dtype=bool), 0)
    assert shown["models"]["tree"] == {"original": 0.0, "released": 0.0}
    mark = Spans(ATTRIBUTES[3], np.full(n, -np.inf), np.full(n, np.inf), true)
    shown = prediction_errors([mark], label, np.ones(n, dtype=bool), 0)
    assert shown["models"]["tree"]["released"] == shown["majority"]


def test_it_needs_the_original_in_order(frame):
    with pytest.raises(shoal.InputError, match="original"):
        shoal.audit(frame, POLICY, downstream=True)
    with pytest.raises(shoal.InputError, match="give the original and the trace"):
        shoal.audit(frame, POLICY | {"render": {"order": "shuffled"}}, frame, downstream=True)


def test_without_scikit_learn_the_extra_is_named(frame, monkeypatch):
    for name in [*sys.modules]:
        if name.split(".")[0] == "sklearn":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sklearn", None)
    with pytest.raises(shoal.MissingExtraError, match=r"pip install '\.\[ml\]'"):
        shoal.audit(frame, POLICY, frame, downstream=True)


def test_the_command_says_it_on_the_screen_in_the_certificate_and_in_the_report(
    frame, tmp_path, capsys
):
    frame.write_csv(tmp_path / "in.csv")
    (tmp_path / "policy.json").write_text(json.dumps(POLICY))
    assert run(tmp_path, "publish in.csv -p policy.json -o out.csv -q") == 0
    audit = "audit out.csv -p policy.json --downstream --report r.html"
    assert run(tmp_path, audit) == 2
    assert run(tmp_path, f"{audit} --original in.csv -o c.json") == 0
    assert "trained on the release" in capsys.readouterr().err
    assert "trained on the release" in (tmp_path / "r.html").read_text()
    assert json.loads((tmp_path / "c.json").read_text())["downstream"]["label"] == "buys"
