"""`render: median` and `render: mode`: one value stands for a class, and audits recompute it."""

from collections import Counter, defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from sample_policies import content_of

TREE = {"tree": {"north": ["a", "b"], "south": ["c", "d"]}}
K = 3


def policy(**attributes):
    order = {"render": {"order": "input"}}
    return content_of(attributes, K, method={"name": "mondrian"}, **order)


def number(render):
    return {"role": "quasi", "type": "number", "domain": [0, 99], "render": render}


MODES = {
    "at": {"role": "quasi", "hierarchy": TREE, "render": "mode"},
    "class": {"role": "quasi", "type": "ordinal", "order": [*"lmh"], "render": "mode"},
    "age": number("mode"),
    "near": number("range"),
}


MEDIANS = {"age": number("median"), "near": number("median")}


def frame_of(seed):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(K, 40))
    columns = {"at": rng.choice([*"abcd"], n), "class": rng.choice([*"lmh"], n)}
    columns |= {"age": rng.integers(0, 9, n), "near": rng.integers(0, 99, n)}
    return pl.DataFrame(columns)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from([MODES, MEDIANS]))
def test_a_cell_is_the_commonest_or_the_lower_median_value_of_those_who_show_it(seed, asked):
    frame = frame_of(seed).select(*asked)
    release = shoal.publish(frame, policy(**asked))
    assert release.certificate.holds
    behind = defaultdict(list)  # what stands behind each cell of a class
    for cells, own in zip(release.data.iter_rows(), frame.iter_rows(), strict=True):
        for name, cell, value in zip(frame.columns, cells, own, strict=True):
            behind[name, cell, cells].append(value)
    for (name, cell, _), own in behind.items():
        counted = Counter(map(str, own))
        if asked[name]["render"] == "mode":
            assert counted[str(cell)] == max(counted.values())
        elif asked[name]["render"] == "median":
            assert float(cell) == sorted(own)[(len(own) - 1) // 2]
    techniques = {c["name"]: c["technique"] for c in release.certificate["columns"]}
    stated = {name: own["render"].replace("range", "interval") for name, own in asked.items()}
    assert techniques == stated


@pytest.mark.parametrize("seed", range(3))
def test_a_class_loses_what_its_spans_would(seed):
    frame = frame_of(seed).head(2 * K - 1)  # one class
    ranges = {name: own | {"render": "range"} for name, own in MODES.items()}
    shown, hidden = (shoal.publish(frame, policy(**own)).certificate for own in (ranges, MODES))
    assert hidden["utility"]["gcp"] == pytest.approx(shown["utility"]["gcp"])


def test_another_value_than_the_mode_or_median_is_found_by_the_audit():
    frame = pl.DataFrame({"age": [1, 1, 2, 9, 9, 9], "near": [1, 2, 3, 50, 60, 70]})
    content = policy(age=number("mode"), near=number("median"))
    release = shoal.publish(frame, content)
    assert release.data["age"].to_list() == [1] * 3 + [9] * 3
    assert release.data["near"].to_list() == [2] * 3 + [60] * 3
    for name, forged in (("age", [2] * 3 + [9] * 3), ("near", [3] * 3 + [60] * 3)):
        data = release.data.with_columns(pl.Series(name, forged))
        found = shoal.audit(data, content, original=frame)
        assert found["faults"]["uncovered"] == 3
        assert not found.holds
