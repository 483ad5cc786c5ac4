"""People beside a release, some of whose values nobody in its original has."""

import numpy as np
import polars as pl
import pytest

import shoal
from attack_cases import attacked, policy_of
from shoal.errors import InputError

COLUMNS = {
    "day": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "quarter", "year"]}},
    "icd": {"role": "quasi", "hierarchy": {"prefix": 5}},
    "bmi": {"role": "quasi", "hierarchy": {"bins": {"width": 1, "start": 0, "levels": 5}}},
    "income": {"role": "quasi", "type": "number"},
    "week": {"role": "quasi", "order": "alphabetical"},
}


def people(seed, n=600):
    rng = np.random.default_rng(seed)
    day = np.datetime64("2020-01-01") + rng.integers(0, 700, n).astype("timedelta64[D]")
    code = zip(rng.choice([*"ABCJ"], n), rng.integers(0, 400, n), strict=True)
    frame = {
        "day": day.astype(str),
        "icd": [f"{chapter}{number / 10:04.1f}" for chapter, number in code],
        "bmi": rng.normal(27, 4, n).round(2).clip(10),
        "income": rng.integers(900, 9000, n),
        "week": [f"w{number:04}" for number in rng.integers(0, 900, n)],
        "area": rng.choice([*"abcd"], n),
        "d": rng.choice(["flu", "cold", "hives"], n),
    }
    return pl.DataFrame(frame)


def published(*names):
    """A release of people with these quasi-identifiers, and its original."""
    own = {name: COLUMNS[name] for name in names} | {"d": {"role": "sensitive"}}
    original = people(1).select(*own)
    return shoal.publish(original, policy_of(own, 5).with_method("mondrian")), original


def with_known_values(control, original, names, seed=5):
    """The control with values of other people of the original for those that nobody there has."""
    drawn = original.sample(control.height, with_replacement=True, seed=seed)
    for name in names:
        is_known = control[name].is_in(original[name].implode())
        control = control.with_columns(control[name].zip_with(is_known, drawn[name]))
    return control


def found(release, original, control, *attacks):
    tried = shoal.attack(release, original=original, control=control, attacks=[*attacks])
    return tried["attacks"]


RULES = ["day", "icd", "bmi"]


@pytest.mark.parametrize("names", [*([name] for name in RULES), RULES])
def test_a_control_is_placed_by_the_rules_of_hierarchies_whatever_values_the_original_has(names):
    release, original = published(*names)
    drawn = people(2)
    assert not any(drawn[name].is_in(original[name].implode()).all() for name in names)
    known = with_known_values(drawn, original, names)
    attacks = ("membership", "inference")
    new, old = (found(release, original, one, *attacks) for one in (drawn, known))
    for measured in ("advantage", "uncovered"):
        shares = [one["membership"][measured]["share"] for one in (new, old)]
        assert shares[0] == pytest.approx(shares[1], abs=0.1), measured
    gains = [one["inference"]["d"]["gain"]["share"] for one in (new, old)]
    assert gains[0] == pytest.approx(gains[1], abs=0.06)


@pytest.mark.parametrize("name", ["income", "week"])
def test_numbers_and_places_of_an_order_are_covered_by_the_intervals_that_hold_them(name):
    release, original = published(name)
    cells = [cell.strip("[]").split(", ") for cell in set(release.data[name])]
    spans = [(cell[0].zfill(5), cell[-1].zfill(5)) for cell in cells]
    values = [str(value).zfill(5) for value in people(2)[name]]
    outside = np.mean([not any(lo <= value <= hi for lo, hi in spans) for value in values])
    assert 0 < outside < 0.3
    uncovered = found(release, original, people(2), "membership")["membership"]["uncovered"]
    assert uncovered["share"] == pytest.approx(outside, abs=1e-4)


def test_a_category_is_covered_by_itself_and_by_the_star():
    own = {"area": {"role": "quasi", "hierarchy": {"flat": "any"}}, "d": {"role": "sensitive"}}
    original = pl.DataFrame({"area": [*"aabb"], "d": [*"xyxy"]})
    released = original.with_columns(area=pl.Series(["a", "a", "any", "any"]))
    for shown, outside in ((original, 0.5), (released, 0)):
        others = pl.DataFrame({"area": [*"ac"], "d": [*"xy"]})
        said = attacked(shown, policy_of(own), original, "membership", control=others)
        assert said["membership"]["uncovered"]["share"] == outside


SOME_NEW = pl.when(pl.int_range(pl.len()) % 2 == 0).then(pl.lit("x")).otherwise(pl.lit(""))
TREE = {"tree": {"east": ["a", "b"], "west": ["c", "d"]}}


def test_people_whose_value_no_rule_places_are_left_out_of_a_control_and_counted():
    own = {"area": {"role": "quasi", "hierarchy": TREE}, "icd": COLUMNS["icd"]}
    own |= {"d": {"role": "sensitive", "hierarchy": {"prefix": 3}}}
    policy = policy_of(own, 5).with_method("mondrian")
    release, control = shoal.publish(people(1).select(*own), policy), people(2).select(*own)
    odd = control.with_columns(
        area=pl.when(pl.int_range(pl.len()) < 90).then(pl.lit("e")).otherwise("area")
    )
    asked = {
        "original": people(1).select(*own),
        "attacks": ["membership", "inference", "linkability"],
    }
    said = (
        "control: the hierarchy or order of 'area' lacks the values of 90 of 600 records, which"
        " are left out; add the values to it, or correct the records"
    )
    with pytest.warns(shoal.ReleaseWarning, match=said) as warned:
        new = shoal.attack(
            release, control=odd.with_columns(d=pl.concat_str("d", SOME_NEW)), **asked
        )
    assert [(one.message.code, one.message.column) for one in warned] == [
        ("values-unplaced", "area")
    ]
    assert new["attacks"]["control"]["people"] == 510
    kept = shoal.attack(release, control=control[90:], **asked)["attacks"]
    shares = [one["membership"]["advantage"]["share"] for one in (new["attacks"], kept)]
    assert shares[0] == pytest.approx(shares[1], abs=0.02)


def test_a_list_of_an_attacker_is_placed_by_the_same_rules():
    release, original = published(*RULES)
    asked = {"original": original, "attacks": "linkability"}
    lists = people(2), with_known_values(people(2), original, RULES)
    new, old = (
        shoal.attack(release, external=one.select(RULES), **asked)["attacks"]["linkability"]
        for one in lists
    )
    median = [one["external"]["candidates"]["median"] for one in (new, old)]
    assert median[0] == pytest.approx(median[1], rel=0.3)
    assert median[0] > 0


@pytest.mark.parametrize("what", ["control", "external"])
def test_nobody_in_a_table_beside_a_release_is_refused_in_one_line(what):
    release, original = published("day")
    with pytest.raises(InputError) as refused:
        shoal.attack(release, original=original, **{what: people(2)[:0]})
    assert str(refused.value) == f"{what}: holds no records; give it some people, or leave it out"
