"""t-closeness of combinations of values, against the cheapest transport in fractions."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import published
import shoal
from sample_policies import content_of
from shoal.data.classes import Classes, SensitiveColumn
from shoal.errors import InputError
from shoal.privacy.t_closeness import UNITS, TCloseness, joint_column

LIMITS = st.sampled_from([0.0, 0.1, 0.15, 0.25, 0.3, 0.5, 0.75, 1.0])
JOINT = ("s", "u")


@given(published.classes(JOINT), LIMITS)
def test_what_is_close_together_is_close_on_each_attribute_alone(classes, t):
    # one record to a subject
    alone = Classes(classes.labels, classes.count, None, classes.sensitive)
    joint, each = TCloseness(JOINT, t, joint=True), TCloseness(JOINT, t)
    assert not (each.measure(alone) > joint.measure(alone) + 1e-12).any()
    assert (each.holds(alone) | ~joint.holds(alone)).all()


def test_combinations_are_leaves_of_one_hierarchy_in_depth_first_order():
    rng = np.random.default_rng(1)
    columns = [
        SensitiveColumn(name, rng.integers(0, 50, 400).astype(np.int32), 50, "ordered")
        for name in JOINT
    ]
    column = joint_column("both", columns, np.ones(400, dtype=bool))
    tree = column.hierarchy
    assert tree.height == UNITS
    assert (np.bincount(column.codes) > 0).all()
    below = np.flatnonzero(tree.parent >= 0)
    assert (tree.levels[tree.parent[below]] > tree.levels[below]).all()
    assert (tree.first[tree.parent[below]] <= tree.first[below]).all()
    assert (tree.last[tree.parent[below]] >= tree.last[below]).all()


def test_together_needs_two_attributes():
    with pytest.raises(InputError, match="two attributes"):
        TCloseness("s", 0.2, joint=True)


def policy(method, t):
    numbers = {"age": {"role": "quasi", "type": "number"}}
    numbers["charge"] = {"role": "sensitive", "type": "number"}
    close = {"model": "t-closeness", "attributes": ["disease", "charge"], "t": t, "joint": True}
    attributes = {"disease": "sensitive"} | numbers
    content = content_of(attributes, 4, close, method={"name": method}, other="drop")
    return shoal.Policy.from_dict(content)


def people(n=300):
    rng = np.random.default_rng(2)
    age = rng.integers(18, 90, n)
    disease = np.array(["a", "b", "c"])[(age // 30 + rng.integers(0, 2, n)) % 3]
    return pl.DataFrame(
        {"age": age, "disease": disease, "charge": age * 10 + rng.integers(0, 400, n)}
    )


@pytest.mark.parametrize(
    "method", ["tcloseness", "tcloseness-kmeanspp", "tcloseness-merge", "mondrian"]
)
def test_a_release_keeps_it_whatever_the_method(method):
    report = shoal.publish(people(), policy(method, 0.45)).certificate["promises"][1]
    assert report["joint"] is True
    assert report["holds"]
    assert report["measured"] <= 0.45


def test_ours_makes_smaller_classes_than_merging():
    ours, merged = (
        shoal.publish(people(), policy(name, 0.45)).certificate
        for name in ("tcloseness", "tcloseness-merge")
    )
    assert ours["classes"]["count"] > merged["classes"]["count"]


def test_a_release_whose_attributes_are_close_only_alone_is_refused_by_the_auditor():
    asked = policy("tcloseness", 0.3)
    frame = people()
    separate = asked.model.model_dump(exclude_unset=True)
    separate["promises"][1].pop("joint")
    alone = shoal.publish(frame, shoal.Policy.from_dict(separate))
    certificate = shoal.audit(alone.data, asked, frame, trace=alone.trace)
    assert not certificate.holds
    assert certificate["promises"][1]["measured"] > 0.3
