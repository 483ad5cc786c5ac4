"""Numbers published as the means of classes, alone or beside their ranges, and what the auditor
makes of them.
"""

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
    assert shown["mean"] == [21.0] * 2 + [30.33] * 3 + [64.0] * 2
    assert shown["both"] == ["21 [20, 22]"] * 2 + ["30.33 [27, 33]"] * 3 + ["64"] * 2


@pytest.mark.parametrize("render", ["mean", "both"])
def test_means_cost_what_the_ranges_behind_them_would(render):
    shown, plain = (published(how)[0].certificate["utility"] for how in (render, "range"))
    assert shown == plain


def test_a_mean_alone_hides_its_range_from_whoever_lacks_the_original():
    release, frame = published("mean")
    alone = library.audit(release.data, policy("mean"))
    beside = library.audit(release.data, policy("mean"), frame, trace=release.trace)
    assert alone["utility"]["gcp"] is None
    assert alone["utility"]["generalized_loss"] is None
    assert beside["utility"]["gcp"] == pytest.approx((2 * 2 + 3 * 6) / 7 / 100)
    assert beside["faults"] == {"uncovered": 0, "changed": 0}
    assert alone["classes"] == beside["classes"]
    both = library.audit(published("both")[0].data, policy("both"))
    assert both["utility"]["gcp"] == beside["utility"]["gcp"]


@pytest.mark.parametrize(
    ("render", "forged"),
    [("mean", "21.02"), ("both", "21.5 [20, 22]"), ("both", "21 [21, 22]"), ("mean", None),
     ("both", None)],
)  # fmt: skip
def test_a_forged_mean_or_range_is_found_and_a_range_in_place_of_a_mean_is_no_cell(render, forged):
    release, frame = published(render)
    honest = {"mean": "21.0", "both": "21 [20, 22]"}[render]
    cells = pl.col("age").cast(pl.String).replace(honest, forged or "[21, 99]")
    changed = release.data.with_columns(cells)
    if forged is None:
        with pytest.raises(library.InputError, match="2 published cells are neither"):
            library.audit(changed, policy(render), frame)
        return
    certificate = library.audit(changed, policy(render), frame)
    assert certificate["faults"]["uncovered"] >= 1
    assert not certificate.holds


def test_means_of_tiny_numbers_keep_their_digits():
    release, frame = published("mean", [f"{age}e-13" for age in AGES])
    shown = release.data["age"].cast(pl.String).cast(pl.Float64)
    assert shown.sum() == pytest.approx(sum(map(int, AGES)) * 1e-13, rel=1e-2, abs=0)
    assert library.audit(release.data, policy("mean"), frame, trace=release.trace).holds


def test_classes_of_equal_means_are_one_class_to_a_reader():
    frame, cells = (pl.DataFrame({"age": ages}) for ages in (["10", "30", "19", "21"], ["20"] * 4))
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
        cell = str(release.data["age"][int(members[0])]).split(" ")[0]
        mean = sum(Fraction(ages[i]) for i in members) / len(members)
        assert abs(Fraction(cell) - mean) <= Fraction(1, 20_000)


def test_two_decimals_more_than_the_values_have_and_ten_at_most_behind_leading_zeros():
    assert mean_decimals(["1", "20"]) == 2
    assert mean_decimals(["1.5", " 2.125 "]) == 5
    assert mean_decimals(["1e3", "1e-2"]) == 4
    assert mean_decimals(["0.1234567890123"]) == 10
    assert mean_decimals(["0.00012345678901234", "0"]) == 13
    assert mean_decimals(["1", "1e-999999999"]) == 324
    assert mean_decimals([]) == 2


def test_only_single_tables_show_means_and_no_method_that_recodes_values():
    assert not policy("mean").recodes_globally
    with pytest.raises(library.InputError, match="can't show means"):
        policy("mean", method={"name": "full-domain"})
    for verb in ("stream", "republish", "fuse"):
        with pytest.raises(library.InputError, match="means of single tables"):
            policy("both").build_method(verb)


def test_a_file_shows_means_and_a_report_says_what_they_tell(folder, shoal):
    pl.DataFrame({"age": AGES}).write_csv("in.csv")
    policy("both").save("policy.yaml")
    shoal(*"publish in.csv -p policy.yaml -o out.csv --report report.html".split(), status=0)
    assert (folder / "out.csv").read_text().splitlines()[1] == '"21 [20, 22]"'
    assert "Means of age" in (folder / "report.html").read_text()
