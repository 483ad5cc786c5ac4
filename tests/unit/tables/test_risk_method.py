"""The method risk: least loss while people of a sample are named no more often than promised."""

from __future__ import annotations

import csv

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_survey as naive
import shoal
from shoal.data.matrix import Matrix
from shoal.samples import survey
from shoal.search.segments import costs_of
from shoal.tables.kernels import risk_classes as kernel
from shoal.tables.kernels import risk_moves

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
ATTRIBUTES = {
    "at": {"role": "quasi", "hierarchy": TREE},
    "age": {"role": "quasi", "type": "number"},
    "home": {"role": "household"},
    "w": {"role": "weight"},
}


def policy(at_most, households=True, method="risk", **more):
    bound = {"model": "global-risk", "at_most": at_most, "households": households}
    content = {"version": 1, "attributes": ATTRIBUTES, "promises": [bound]}
    return content | {"method": {"name": method}, "render": {"order": "input"}} | more


@st.composite
def samples(draw):
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n = draw(st.integers(4, 60))
    columns = {
        "at": rng.choice([*"abcd"], n),
        "age": rng.integers(0, draw(st.sampled_from([3, 90])), n),
        "home": np.sort(rng.integers(0, n, n)),
        "w": (1 + rng.exponential(draw(st.sampled_from([5.0, 200.0])), n)).round(2),
    }
    return pl.DataFrame(columns)


@settings(max_examples=60)
@given(samples(), st.sampled_from([0.02, 0.05, 0.2]), st.booleans())
def test_the_bound_holds_on_every_published_file(tmp_path_factory, sample, at_most, households):
    folder = tmp_path_factory.mktemp("risk")
    policies = [policy(at_most, households, method) for method in ("risk", "mondrian")]
    for content in policies:
        try:
            shoal.publish(sample, content).save(folder / "out.csv", overwrite=True)
        except shoal.InfeasibleError:
            everybody = naive.risks(
                [0] * sample.height, sample["w"].to_list(), sample["home"].to_list()
            )
            assert np.mean(everybody[households]) > at_most
            continue
        with open(folder / "out.csv", newline="") as file:
            keys = [tuple(row.values()) for row in csv.DictReader(file)]
        found = naive.risks(keys, sample["w"].to_list(), sample["home"].to_list())
        assert np.mean(found[households]) <= at_most * (1 + 1e-12)


def loss(frame, at_most, **more):
    promises = {"promises": [{"model": "global-risk", "at_most": at_most, "households": True}]}
    content = survey_policy() | promises | more
    certificate = shoal.publish(frame, content).certificate
    assert certificate["promises"][0]["measured"] <= at_most
    return certificate["utility"]["gcp"]


def survey_policy():
    content = yaml.safe_load(survey.POLICY)
    del content["attributes"]["age"]["round"]  # methods are compared, not roundings
    return content


def test_less_risk_costs_more_and_no_other_method_loses_as_little():
    frame = survey.generate(1500, 3)
    losses = [loss(frame, at_most) for at_most in (0.1, 0.03, 0.01)]
    assert losses == sorted(losses)
    for other in ("full-domain", "mondrian"):
        assert losses[1] < 0.85 * loss(frame, 0.03, method={"name": other})


@pytest.mark.parametrize("model", ["global-risk", "individual-risk"])
def test_a_policy_that_bounds_the_risk_of_a_sample_and_names_no_method_takes_risk(model):
    content = survey_policy() | {"promises": [{"model": model, "at_most": 0.1}]}
    del content["method"]
    frame = survey.generate(300, 3)
    assert shoal.publish(frame, content).certificate["method"]["name"] == "risk"


def test_weights_hide_classes_of_one():
    frame = pl.DataFrame(
        {"at": [*"abcd"], "age": [1, 2, 3, 4], "home": [1, 2, 3, 4], "w": 4 * [500.0]}
    )
    release = shoal.publish(frame, policy(0.03, households=False))
    assert release.certificate["classes"] == {"count": 4, "min": 1, "mean": 1.0, "max": 1}
    assert release.certificate["utility"]["gcp"] == 0


def test_nobody_has_more_than_the_individual_risk():
    frame = survey.generate(800, 5)
    both = [{"model": "global-risk", "at_most": 0.1}, {"model": "individual-risk", "at_most": 0.08}]
    release = shoal.publish(frame, survey_policy() | {"promises": both})
    assert release.certificate["promises"][1]["measured"] <= 0.08


def test_the_total_risk_is_followed_through_every_move():
    """After unions and moves, what the kernels keep equals what a plain script finds."""
    rng = np.random.default_rng(8)
    n = 200
    codes = np.stack([rng.integers(0, 30, n), rng.integers(0, 4, n)], axis=1)
    matrix = Matrix.from_columns(codes, [30.0, 4.0])
    weights, home = 1 + rng.exponential(20, n), np.sort(rng.integers(0, 80, n))
    home = np.unique(home, return_inverse=True)[1].astype(np.int32)
    rows, point = np.unique(matrix.codes, axis=0, return_inverse=True)
    point = point.reshape(-1).astype(np.int32)
    size = np.bincount(home).astype(np.float64)
    order = np.argsort(point, kind="stable").astype(np.int32)
    first = np.concatenate(([0], np.cumsum(np.bincount(point))))
    near = np.argsort(np.abs(rows[:, None] - rows[None]).sum(axis=2), axis=1)[:, 1:9].astype(
        np.int32
    )
    people = kernel.SurveyedPeople(
        matrix.codes, weights, home, size, np.ones(len(size)), point, first, order, near
    )
    classes = kernel.classes_of(order[first[point]].astype(np.int32), 2)
    terms, costs = np.array([0.0, 0.05 * n, 1, 1]), costs_of(matrix)
    kernel.measure(people, classes, terms, costs)
    price = kernel.unite(people, classes, terms, costs)
    carried = naive.risks(classes.label.tolist(), weights.tolist(), home.tolist())[1]
    assert terms[kernel.TOTAL] == pytest.approx(sum(carried), rel=1e-6)
    assert terms[kernel.TOTAL] <= 0.05 * n
    total = classes.people @ classes.loss + price * terms[kernel.TOTAL]
    assert risk_moves.improve(people, classes, terms, costs, np.arange(n, dtype=np.int32), price, 1)
    carried = naive.risks(classes.label.tolist(), weights.tolist(), home.tolist())[1]
    assert terms[kernel.TOTAL] == pytest.approx(sum(carried), rel=1e-6)
    assert classes.people @ classes.loss + price * terms[kernel.TOTAL] < total
    for c in np.flatnonzero(classes.people):
        members = matrix.codes[classes.label == c]
        assert (members.min(axis=0) == classes.lo[c]).all()
        assert (members.max(axis=0) == classes.hi[c]).all()
