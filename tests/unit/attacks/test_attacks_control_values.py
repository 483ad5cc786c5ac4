"""People beside a release, some of whose values nobody in its original has."""

import numpy as np
import polars as pl
import pytest

import shoal
from attack_cases import ORIGINAL, SIX, attacked, policy_of
from shoal.errors import InputError

RULES = {
    "day": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
    "code": {"role": "quasi", "hierarchy": {"prefix": 4}},
    "size": {"role": "quasi", "hierarchy": {"bins": {"width": 5, "levels": 5}}},
}
OTHERS = {"week": {"role": "quasi", "order": "alphabetical"}}
OTHERS["area"] = {"role": "quasi", "hierarchy": {"tree": {"east": ["a", "b"], "west": ["c", "d"]}}}
SENSITIVE = {"d": {"role": "sensitive", "hierarchy": {"prefix": 2}}}


def people(seed, *names):
    day, code, size, week, area, d = np.random.default_rng(seed).integers(0, 400, (6, 600))
    columns = {"day": (np.datetime64("2020-01-01") + day).astype(str), "size": size / 7}
    columns |= {"code": [f"J{n:03}" for n in code], "week": [f"w{n:03}" for n in week]}
    columns |= {"area": np.array([*"abcd"])[area % 4], "d": np.array(["x1", "y1", "y2"])[d % 3]}
    return pl.DataFrame(columns).select(*names, "d")


def published(*names):
    """A release of people with these quasi-identifiers, and its original."""
    policy = policy_of({name: (RULES | OTHERS)[name] for name in names} | SENSITIVE, 5)
    return shoal.publish(people(1, *names), policy.with_method("mondrian")), people(1, *names)


@pytest.mark.parametrize("names", [*([name] for name in RULES), [*RULES]])
def test_people_are_placed_by_the_rules_of_hierarchies_whatever_values_the_original_has(names):
    release, original = published(*names)
    drawn, are_known = people(2, *names), [pl.col(n).is_in(original[n].implode()) for n in names]
    known = drawn.filter(*are_known)
    assert 100 < known.height < 500
    new, old = (
        shoal.attack(release, original=original, control=one, external=one.drop("d"))["attacks"]
        for one in (drawn, known)
    )
    for measured in ("advantage", "uncovered"):
        shares = [one["membership"][measured]["share"] for one in (new, old)]
        assert shares[0] == pytest.approx(shares[1], abs=0.12), measured
    gains = [one["inference"]["d"]["gain"]["share"] for one in (new, old)]
    assert gains[0] == pytest.approx(gains[1], abs=0.12)
    median = [one["linkability"]["external"]["candidates"]["median"] for one in (new, old)]
    assert median[0] == pytest.approx(median[1], rel=0.3)


def test_places_of_an_order_are_covered_by_the_intervals_that_hold_them():
    release, original = published("week")
    spans = [cell.strip("[]").split(", ") for cell in set(release.data["week"])]
    values = people(2, "week")["week"]
    outside = np.mean([not any(s[0] <= value <= s[-1] for s in spans) for value in values])
    found = shoal.attack(release, original=original, control=people(2, "week"))["attacks"]
    assert found["membership"]["uncovered"]["share"] == pytest.approx(outside, abs=1e-4)


def test_a_category_is_covered_by_itself_and_by_its_root():
    policy = policy_of({"area": {"role": "quasi", "hierarchy": {"flat": "any"}}} | SENSITIVE)
    original = pl.DataFrame({"area": [*"aabb"], "d": [*"xyxy"]})
    others = pl.DataFrame({"area": [*"ac"], "d": [*"xy"]})
    for cells, outside in (([*"aabb"], 0.5), (["a", "a", "any", "any"], 0)):
        shown = original.with_columns(area=pl.Series(cells))
        found = attacked(shown, policy, original, "membership", control=others)
        assert found["membership"]["uncovered"]["share"] == outside


def test_people_whose_value_no_rule_places_are_left_out_of_a_control_and_counted():
    release, original = published("area")
    is_odd, some_new = pl.int_range(pl.len()) < 90, pl.col("d").str.replace("y2", "z3")
    odd = pl.when(is_odd).then(pl.lit("e")).otherwise("area").alias("area")
    control, asked = people(2, "area").with_columns(some_new), {"original": original}
    said = (
        "control: the hierarchy or order of 'area' lacks the values of 90 of 600 records, which"
        " are left out; add the values to it, or correct the records"
    )
    with pytest.warns(shoal.ReleaseWarning, match=said):
        new = shoal.attack(release, control=control.with_columns(odd), **asked)["attacks"]
    kept = shoal.attack(release, control=control[90:], **asked)["attacks"]
    assert new["control"]["people"] == kept["control"]["people"] == 510
    assert new["membership"] == kept["membership"]


@pytest.mark.parametrize("what", ["control", "external"])
def test_nobody_in_a_table_beside_a_release_is_refused_in_one_line(what):
    release, original = published("day")
    with pytest.raises(InputError) as refused:
        shoal.attack(release, original=original, **{what: people(2, "day")[:0]})
    assert str(refused.value) == f"{what}: holds no records; give it some people, or leave it out"


def test_numbers_in_the_middle_of_ranges_are_refused_as_no_published_cells():
    original = pl.DataFrame({"age": [*range(60)], "d": [*"xyz"] * 20})
    release = shoal.publish(original, quasi=["age"], sensitive="d", k=6)
    for trace in (None, release.trace):
        with pytest.raises(InputError, match=r"no record covers 60 of 60 .*`.data`, or its file"):
            shoal.attack(release.numbers("mid"), release.policy, original, trace=trace)


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_cells_that_cover_no_value_have_scores_that_are_numbers():
    shown = ORIGINAL.with_columns(age=pl.Series(["[1, 6]"] * 5 + ["8.5"]))
    found = attacked(shown, SIX, ORIGINAL, "all", control=ORIGINAL)
    assert 0 <= found["inference"]["d"]["attackers"]["definetti"]["member"]["share"] <= 1


@pytest.mark.parametrize("name", ["area", "size", "d"])
def test_a_control_with_values_that_the_original_lacks_in_part_is_warned_of(name):
    original, control = people(1, "area", "size"), people(2, "area", "size")
    release = shoal.publish(original, quasi=["area", "size"], sensitive="d", k=5)
    strange = control[:90].with_columns(pl.lit(None if name == "size" else "M").alias(name))
    odd = pl.concat([strange, control[90:]], how="vertical_relaxed")
    with pytest.warns(shoal.ReleaseWarning, match=f"'{name}', 90 of 600 records have a value that"):
        found = [shoal.attack(release, original=original, control=one) for one in (odd, control)]
    stated = [[w.column for w in one.warnings if w.code == "values-unplaced"] for one in found]
    assert stated == [[name], []]


@pytest.mark.parametrize(("name", "cell"), [("day", "2031-07-07"), ("code", "K999")])
def test_a_control_of_nothing_but_new_values_is_placed_by_the_rules_too(name, cell):
    (release, original), control = published(name), people(2, name)
    new, bad = (control.with_columns(pl.lit(one).alias(name)) for one in (cell, ""))
    some = pl.concat([new[1:], original[:1]])
    found = [shoal.attack(release, original=original, control=one) for one in (new, some)]
    shares = [one["attacks"]["membership"]["uncovered"]["share"] for one in found]
    assert np.ptp(shares) < 0.01
    with pytest.raises(InputError, match="in the domain of the release; write them as in"):
        shoal.attack(release, original=original, control=bad)
