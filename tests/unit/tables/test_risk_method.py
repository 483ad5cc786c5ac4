"""The method risk: least loss while people of a sample are named no more often than promised."""

import csv

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_survey as naive
import shoal
from sample_policies import content_of
from shoal.data.partition import Matrix
from shoal.samples import survey
from shoal.search.segments import costs_of
from shoal.tables.kernels import risk_classes as kernel

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
ATTRIBUTES = {
    "at": {"role": "quasi", "hierarchy": TREE},
    "age": {"role": "quasi", "type": "number"},
    "home": "household",
    "w": "weight",
}


def policy(at_most, households=True, method="risk"):
    bound = {"model": "global-risk", "at_most": at_most, "households": households}
    words = {"method": {"name": method}, "render": {"order": "input"}}
    return content_of(ATTRIBUTES, promises=[bound], **words)


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
    out = tmp_path_factory.mktemp("risk") / "out.csv"
    weights, homes = sample["w"].to_list(), sample["home"].to_list()
    for method in ("risk", "mondrian"):
        try:
            shoal.publish(sample, policy(at_most, households, method)).save(out, overwrite=True)
        except shoal.InfeasibleError:
            everybody = naive.risks([0] * sample.height, weights, homes)
            assert np.mean(everybody[households]) > at_most
            continue
        with open(out, newline="") as file:
            keys = [tuple(row.values()) for row in csv.DictReader(file)]
        found = naive.risks(keys, weights, homes)
        assert np.mean(found[households]) <= at_most * (1 + 1e-12)


def surveyed(frame, *promises, **more):
    content = yaml.safe_load(survey.POLICY) | {"promises": [*promises]} | more
    content = {key: value for key, value in content.items() if value is not None}
    del content["attributes"]["age"]["round"]  # methods are compared, not roundings
    certificate = shoal.publish(frame, content).certificate
    for asked, found in zip(promises, certificate["promises"], strict=True):
        assert found["measured"] <= asked["at_most"]
    return certificate


def test_less_risk_costs_more_and_no_other_method_loses_as_little():
    frame, bound = survey.generate(1500, 3), {"model": "global-risk", "households": True}

    def loss(at_most, name="risk"):
        method = {"method": {"name": name}}
        return surveyed(frame, bound | {"at_most": at_most}, **method)["utility"]["gcp"]

    losses = [loss(at_most) for at_most in (0.1, 0.03, 0.01)]
    assert losses == sorted(losses)
    assert losses[1] < 0.85 * min(loss(0.03, name) for name in ("full-domain", "mondrian"))


@pytest.mark.parametrize("model", ["global-risk", "individual-risk"])
def test_a_policy_that_bounds_the_risk_of_a_sample_and_names_no_method_takes_risk(model):
    promise = {"model": model, "at_most": 0.1}
    certificate = surveyed(survey.generate(300, 3), promise, method=None)
    assert certificate["method"]["name"] == "risk"


def test_weights_hide_classes_of_one():
    four = [1, 2, 3, 4]
    frame = pl.DataFrame({"at": [*"abcd"], "age": four, "home": four, "w": 4 * [500.0]})
    certificate = shoal.publish(frame, policy(0.03, households=False)).certificate
    assert certificate["classes"] == {"count": 4, "min": 1, "mean": 1.0, "max": 1}
    assert certificate["utility"]["gcp"] == 0


def test_nobody_has_more_than_the_individual_risk():
    both = [{"model": "global-risk", "at_most": 0.1}, {"model": "individual-risk", "at_most": 0.08}]
    surveyed(survey.generate(800, 5), *both)


def test_the_total_risk_is_followed_through_every_move():
    """After unions and moves, what the kernels keep equals what a plain script finds."""
    rng = np.random.default_rng(8)
    n = 200
    codes = np.stack([rng.integers(0, 30, n), rng.integers(0, 4, n)], axis=1)
    matrix = Matrix.from_columns(codes, [30.0, 4.0])
    weights, home = 1 + rng.exponential(20, n), np.sort(rng.integers(0, 80, n))
    home = np.unique(home, return_inverse=True)[1].astype(np.int32)
    rows, point = np.unique(matrix.codes, axis=0, return_inverse=True)
    point, size = point.reshape(-1).astype(np.int32), np.bincount(home).astype(np.float64)
    order = np.argsort(point, kind="stable").astype(np.int32)
    first = np.concatenate(([0], np.cumsum(np.bincount(point))))
    apart = np.abs(rows[:, None] - rows[None]).sum(axis=2)
    near = np.argsort(apart, axis=1)[:, 1:9].astype(np.int32)
    people = kernel.SurveyedPeople(
        matrix.codes, weights, home, size, np.ones(len(size)), point, first, order, near
    )
    classes = kernel.classes_of(order[first[point]].astype(np.int32), 2)
    terms, costs = np.array([0.0, 0.05 * n, 1, 1]), costs_of(matrix)
    kernel.measure(people, classes, terms, costs)
    price = kernel.unite(people, classes, terms, costs)

    def total() -> float:
        carried = naive.risks(classes.label.tolist(), weights.tolist(), home.tolist())[1]
        assert terms[kernel.TOTAL] == pytest.approx(sum(carried), rel=1e-6)
        return classes.people @ classes.loss + price * terms[kernel.TOTAL]

    before = total()
    assert terms[kernel.TOTAL] <= 0.05 * n
    assert kernel.improve(people, classes, terms, costs, np.arange(n, dtype=np.int32), price, 1)
    assert total() < before
    for c in np.flatnonzero(classes.people):
        members = matrix.codes[classes.label == c]
        assert (members.min(axis=0) == classes.lo[c]).all()
        assert (members.max(axis=0) == classes.hi[c]).all()
