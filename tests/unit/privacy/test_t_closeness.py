"""t-closeness, against the cheapest transport in fractions."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
import published
from shoal.privacy import promise as parameters
from shoal.privacy.t_closeness import TCloseness

LIMITS = st.sampled_from([0.0, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.375, 0.4, 0.5, 0.6, 0.75, 1.0])


def ground_of(column, labels):
    if column.distance == "equal":
        return naive.equal_ground(column.values)
    if column.distance == "ordered":
        return naive.ordered_ground(column.values, set(column.codes[labels >= 0].tolist()))
    return naive.tree_ground(column.hierarchy.parent.tolist(), column.values)


def true_distances(classes, name="s"):
    column, truth = classes.sensitive[name], published.plain(classes, name)
    ground = ground_of(column, classes.labels)
    return [
        naive.t_measured(*truth, column.values, ground, which) for which in range(classes.count)
    ]


def as_floats(distances):
    return [float("nan") if distance is None else float(distance) for distance in distances]


@pytest.mark.parametrize("distance", published.DISTANCES)
@given(data=st.data(), t=LIMITS)
def test_measures_the_cheapest_transport_and_compares_it_exactly(distance, data, t):
    classes = data.draw(published.classes(distance=distance))
    promise, truth = TCloseness("s", t), true_distances(classes)
    assert promise.measure(classes) == pytest.approx(as_floats(truth), nan_ok=True)
    assert promise.holds(classes).tolist() == [
        d is not None and d <= Fraction(str(t)) for d in truth
    ]


@pytest.mark.parametrize("distance", published.DISTANCES)
@given(data=st.data(), t=LIMITS)
@settings(max_examples=50)
def test_stays_exact_where_whole_numbers_outgrow_64_bits(distance, data, t):
    classes = data.draw(published.classes(distance=distance))
    expected = TCloseness("s", t).judge(classes)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(parameters, "ROOM", 1)
        measured, holds = TCloseness("s", t).judge(classes)
    assert measured == pytest.approx(expected[0], nan_ok=True)
    assert holds.tolist() == expected[1].tolist()


@given(published.classes(names=("s", "u")), LIMITS)
def test_of_several_attributes_the_worst_counts(classes, t):
    both = TCloseness(("s", "u"), t)
    each = [TCloseness((name,), t) for name in ("s", "u")]
    assert both.measure(classes) == pytest.approx(
        np.maximum(*[one.measure(classes) for one in each]), nan_ok=True
    )
    assert (both.holds(classes) == (each[0].holds(classes) & each[1].holds(classes))).all()


def two_halves(first):
    """Two classes of 20 over two values, `first` of the first class having the first value."""
    codes = [0] * first + [1] * (20 - first) + [1] * first + [0] * (20 - first)
    return published.of_column(codes, np.repeat([0, 1], 20))


def test_a_distance_of_exactly_t_holds_although_floats_say_otherwise():
    assert 13 / 20 - 0.5 > 0.15
    assert TCloseness("s", 0.15).holds(two_halves(13)).all()


@pytest.mark.parametrize(("first", "t"), [(14, 0.15), (13, 0.1499999999999999)])
def test_a_distance_one_unit_beyond_t_fails(first, t):
    assert not TCloseness("s", t).holds(two_halves(first)).any()


def test_a_subject_counts_once_for_each_of_its_values():
    # subject 0 says "a" three times: class and table are one "a" and one "b" each, at distance 0
    classes = published.of_column([0, 0, 0, 1, 0, 1], [0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 2, 3])
    assert TCloseness("s", 0.0).holds(classes).all()


def test_suppressed_records_are_no_part_of_the_table():
    classes = published.of_column([0, 1, 2, 2], [0, 0, -1, -1])
    assert TCloseness("s", 0.0).holds(classes).all()


def test_a_single_value_is_at_distance_zero():
    classes = published.of_column([0, 0, 0, 0], [0, 0, 1, 1], distance="ordered")
    assert TCloseness("s", 0.0).report(classes)["measured"] == 0.0


@given(published.classes(shared_people=False, max_records=24), LIMITS)
def test_a_union_is_no_farther_than_the_farther_of_two(classes, t):
    promise = TCloseness("s", t)
    measured, holds = promise.judge(classes)
    labels = np.where(classes.labels == 1, 0, classes.labels)
    merged = published.relabelled(classes, labels, classes.count)
    if classes.count > 1 and not np.isnan(measured[:2]).any():
        assert promise.measure(merged)[0] <= measured[:2].max() + 1e-12
        assert promise.holds(merged)[0] or not holds[:2].all()


@given(published.classes())
def test_everybody_in_one_class_is_at_distance_zero(classes):
    whole_table = published.in_one_class(classes)
    if (whole_table.labels >= 0).any():
        assert TCloseness("s", 0.0).holds(whole_table)[0]


@given(published.classes(), LIMITS)
def test_classes_of_a_part_are_judged_against_the_table_they_are_part_of(classes, t):
    """Alone, against the whole table, a class is where it is beside all other classes."""
    promise = TCloseness("s", t)
    measured, holds = promise.judge(classes)
    for which in range(classes.count):
        alone = published.in_one_class(classes, classes.labels == which)
        found, kept = promise.judged_against(classes, alone)
        assert found == pytest.approx(measured[[which]], nan_ok=True)
        assert kept.tolist() == [holds[which]]
        assert promise.against(classes)(alone).tolist() == [holds[which]]
