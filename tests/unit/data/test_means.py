"""Numbers published as the means of classes, alone or beside their ranges, and what the auditor
makes of them.
"""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal as library
from sample_policies import content_of
from shoal.data.numbers import mean_decimals

AGES = ["20", "22", "27", "31", "33", "64", "64"]


def policy(render: str, k: int = 2, **more) -> library.Policy:
    age = {"role": "quasi", "type": "number", "domain": [0, 100], "render": render}
    content = content_of({"age": age}, k, render={"order": "input"}) | more
    return library.Policy.from_dict(content | {"method": more.get("method", {"name": "mdav"})})


def published(render: str, ages=AGES, **more):
    frame = pl.DataFrame({"age": list(ages)})
    return library.publish(frame, policy(render, **more)), frame


def test_a_class_shows_its_mean_its_range_or_both_and_the_value_that_it_agrees_on():
    shown = {
        render: published(render)[0].data["age"].to_list() for render in ("range", "mean", "both")
    }
    assert shown["range"] == ["[20, 22]"] * 2 + ["[27, 33]"] * 3 + ["64"] * 2
    assert shown["mean"] == ["21"] * 2 + ["30.33"] * 3 + ["64"] * 2
    assert shown["both"] == ["21 [20, 22]"] * 2 + ["30.33 [27, 33]"] * 3 + ["64"] * 2


@pytest.mark.parametrize("render", ["mean", "both"])
def test_means_cost_what_the_ranges_behind_them_would(render):
    plain, shown = (
        published("range")[0].certificate["utility"],
        published(render)[0].certificate["utility"],
    )
    assert shown == plain


def test_a_mean_hides_its_range_from_whoever_lacks_the_original():
    release, frame = published("mean")
    asked = policy("mean")
    alone, beside = (
        library.audit(release.data, asked),
        library.audit(release.data, asked, frame, trace=release.trace),
    )
    assert alone["utility"]["gcp"] is None
    assert alone["utility"]["generalized_loss"] is None
    assert beside["utility"]["gcp"] == pytest.approx((2 * 2 + 3 * 6) / 7 / 100)
    assert beside["faults"] == {"uncovered": 0, "changed": 0}
    assert alone["classes"] == beside["classes"]


def test_a_range_beside_the_mean_can_be_read_without_the_original():
    release, _ = published("both")
    assert library.audit(release.data, policy("both"))["utility"]["gcp"] == pytest.approx(
        (2 * 2 + 3 * 6) / 7 / 100
    )


@pytest.mark.parametrize(
    ("render", "honest", "forged"),
    [
        ("mean", "21", "21.02"),
        ("both", "21 [20, 22]", "21.5 [20, 22]"),
        ("both", "21 [20, 22]", "21 [21, 22]"),
    ],
)
def test_a_forged_mean_or_range_is_found(render, honest, forged):
    release, frame = published(render)
    changed = release.data.with_columns(pl.col("age").cast(pl.String).replace(honest, forged))
    certificate = library.audit(changed, policy(render), frame)
    assert certificate["faults"]["uncovered"] >= 1
    assert not certificate.holds


@pytest.mark.parametrize(("render", "honest"), [("mean", "21"), ("both", "21 [20, 22]")])
def test_a_range_in_place_of_a_mean_is_no_cell(render, honest):
    release, frame = published(render)
    changed = release.data.with_columns(pl.col("age").cast(pl.String).replace(honest, "[21, 99]"))
    with pytest.raises(library.InputError, match="2 published cells are neither"):
        library.audit(changed, policy(render), frame)


def test_means_of_tiny_numbers_keep_their_digits():
    release, frame = published("mean", [f"{age}e-13" for age in AGES])
    shown = release.data["age"].cast(pl.String).cast(pl.Float64)
    assert shown.sum() == pytest.approx(sum(map(int, AGES)) * 1e-13, rel=1e-2, abs=0)
    assert library.audit(release.data, policy("mean"), frame, trace=release.trace).holds


def test_classes_of_equal_means_are_one_class_to_a_reader():
    frame, cells = (
        pl.DataFrame({"age": ["10", "30", "19", "21"]}),
        pl.DataFrame({"age": ["20"] * 4}),
    )
    certificate = library.audit(cells, policy("mean"), frame)
    assert certificate["classes"]["count"] == 1
    assert certificate["faults"] == {"uncovered": 0, "changed": 0}
    assert certificate["utility"]["gcp"] == 0.2


@given(
    st.lists(st.decimals(-50, 50, places=2).map(str), min_size=2, max_size=30),
    st.sampled_from(["mean", "both"]),
    st.integers(2, 4),
)
@settings(max_examples=60, deadline=None)
def test_every_published_mean_is_that_of_its_class(ages, render, k):
    if len(ages) < k:
        return
    attribute = {"role": "quasi", "type": "number", "render": render}
    asked = content_of({"age": attribute}, k, render={"order": "input"})
    release = library.publish(pl.DataFrame({"age": ages}), asked)
    assert release.certificate.holds
    for which in range(release.classes.max() + 1):
        members = np.flatnonzero(release.classes == which)
        cell = release.data["age"][int(members[0])].split(" ")[0]
        mean = sum(Fraction(ages[i]) for i in members) / len(members)
        assert abs(Fraction(cell) - mean) <= Fraction(1, 20_000)


def test_missing_values_publish_as_they_do_beside_ranges():
    ages = ["20", "22", "", "", "40", ""]
    for render in ("mean", "both"):
        release, _ = published(render, ages, k=2, missing="value")
        assert release.certificate["faults"] == {"uncovered": 0, "changed": 0}
        # a row without any value would be nobody
        frame = pl.DataFrame({"age": ages, "row": range(len(ages))})
        suppressed = library.publish(frame, policy(render, 3, missing="suppress", other="plain"))
        assert suppressed.data["age"].to_list().count("*") == 3


def test_two_decimals_more_than_the_values_have_and_ten_at_most_behind_leading_zeros():
    assert mean_decimals(["1", "20"]) == 2
    assert mean_decimals(["1.5", " 2.125 "]) == 5
    assert mean_decimals(["1e3", "1e-2"]) == 4
    assert mean_decimals(["0.1234567890123"]) == 10
    assert mean_decimals(["0.00012345678901234", "0"]) == 13
    assert mean_decimals(["1", "1e-999999999"]) == 324
    assert mean_decimals([]) == 2


@pytest.mark.parametrize(
    "attribute",
    [
        {"role": "sensitive", "type": "number", "render": "mean"},
        {"role": "quasi", "render": "mean"},
        {"role": "quasi", "order": ["a"], "render": "both"},
        {"role": "quasi", "type": "number", "hierarchy": {"bins": 10}, "render": "mean"},
    ],
)
def test_only_numbers_without_a_hierarchy_have_means(attribute):
    content = content_of({"x": attribute, "y": {"role": "quasi"}}, 2)
    with pytest.raises(library.InputError, match=r"type number without a hierarchy"):
        library.Policy.from_dict(content)


def test_a_method_that_recodes_values_refuses_means():
    assert not policy("mean").recodes_globally
    with pytest.raises(library.InputError, match="can't show means"):
        policy("mean", method={"name": "full-domain"})


@pytest.mark.parametrize("verb", ["stream", "republish", "fuse"])
def test_only_single_tables_show_means(verb):
    with pytest.raises(library.InputError, match="means of single tables"):
        policy("both").build_method(verb)


def test_a_file_shows_means_and_a_report_says_what_they_tell(tmp_path, shoal):
    pl.DataFrame({"age": AGES}).write_csv(tmp_path / "in.csv")
    (tmp_path / "policy.json").write_text(
        json.dumps(policy("both").model.model_dump(exclude_none=True))
    )
    files = [str(tmp_path / name) for name in ("in.csv", "policy.json", "out.csv", "report.html")]
    assert (
        shoal("publish", files[0], "-p", files[1], "-o", files[2], "--report", files[3]).status == 0
    )
    assert (tmp_path / "out.csv").read_text().splitlines()[1] == '"21 [20, 22]"'
    assert "Means of age" in (tmp_path / "report.html").read_text()
