"""`render: median` and `render: mode`: one value stands for a class, and audits recompute it."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.errors import InputError

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
K = 3


def policy(**attributes):
    return {
        "version": 1,
        "attributes": attributes,
        "promises": [{"model": "k-anonymity", "k": K}],
        "method": {"name": "mondrian"},
        "render": {"order": "input"},
    }


def number(render, **more):
    return {"role": "quasi", "type": "number", "domain": [0, 99], "render": render, **more}


MODES = {
    "at": {"role": "quasi", "hierarchy": TREE, "render": "mode"},
    "class": {"role": "quasi", "type": "ordinal", "order": [*"lmh"], "render": "mode"},
    "age": number("mode"),
    "near": number("range"),
}


def frame_of(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(K, 40))
    return pl.DataFrame(
        {
            "at": rng.choice([*"abcd"], n),
            "class": rng.choice([*"lmh"], n),
            "age": rng.integers(0, 9, n),
            "near": rng.integers(0, 99, n),
        }
    )


def members(shown, frame, name):
    """What stands behind each cell of a class, by the class."""
    found = defaultdict(list)
    for cells, own in zip(shown.iter_rows(), frame[name], strict=True):
        found[cells].append(own)
    return found


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_a_mode_is_the_most_frequent_value_of_those_who_show_it(seed):
    frame = frame_of(seed)
    release = shoal.publish(frame, policy(**MODES))
    assert release.certificate.holds
    for place, name in enumerate(["at", "class", "age"]):
        for cells, own in members(release.data, frame, name).items():
            counted = Counter(map(str, own))
            assert counted[cells[place]] == max(counted.values())
    techniques = {c["name"]: c["technique"] for c in release.certificate["columns"]}
    assert techniques == {"at": "mode", "class": "mode", "age": "mode", "near": "interval"}


@settings(max_examples=40)
@given(st.integers(0, 10**6))
def test_a_median_is_the_lower_one_of_those_who_show_it(seed):
    frame = frame_of(seed).select("age", "near")
    release = shoal.publish(frame, policy(age=number("median"), near=number("median")))
    assert release.certificate.holds
    for place, name in enumerate(frame.columns):
        for cells, own in members(release.data, frame, name).items():
            assert float(cells[place]) == sorted(own)[(len(own) - 1) // 2]


@pytest.mark.parametrize("seed", range(5))
def test_a_class_loses_what_its_spans_would(seed):
    frame = frame_of(seed).head(2 * K - 1)  # one class
    ranges = {name: own | {"render": "range"} for name, own in MODES.items()}
    shown, hidden = (shoal.publish(frame, policy(**own)).certificate for own in (ranges, MODES))
    assert hidden["utility"]["gcp"] == pytest.approx(shown["utility"]["gcp"])


def test_another_value_than_the_mode_or_median_is_found_by_the_audit():
    frame = pl.DataFrame({"age": [1, 1, 2, 9, 9, 9], "near": [1, 2, 3, 50, 60, 70]})
    content = policy(age=number("mode"), near=number("median"))
    release = shoal.publish(frame, content)
    assert release.data["age"].to_list() == [*"111999"]
    assert release.data["near"].to_list() == ["2", "2", "2", "60", "60", "60"]
    for name, forged in (("age", [*"222999"]), ("near", ["3", "3", "3", "60", "60", "60"])):
        data = release.data.with_columns(pl.Series(name, forged))
        found = shoal.audit(data, content, original=frame)
        assert found["faults"]["uncovered"] == 3
        assert not found.holds


@pytest.mark.parametrize(
    ("attribute", "said"),
    [
        ({"role": "sensitive", "render": "mode"}, "belongs to a quasi-identifier"),
        ({"role": "quasi", "render": "median"}, "of type number"),
        (number("median", round=5), "publishes ranges"),
    ],
)
def test_what_has_no_such_value_refuses_it(attribute, said):
    with pytest.raises(InputError, match=said):
        shoal.Policy.from_dict(policy(age=number("range"), x=attribute))
