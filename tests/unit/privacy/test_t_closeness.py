"""t-closeness, against the cheapest transport in fractions."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import published
from shoal.privacy.t_closeness import TCloseness

LIMITS = st.sampled_from([0.0, 0.1, 0.125, 0.15, 0.2, 0.25, 0.3, 0.375, 0.4, 0.5, 0.6, 0.75, 1.0])


def two_halves(first):
    """Two classes of 20 over two values, `first` of the first class having the first value."""
    codes = [0] * first + [1] * (20 - first) + [1] * first + [0] * (20 - first)
    return published.of_column(codes, np.repeat([0, 1], 20))


@pytest.mark.parametrize(
    ("first", "t", "holds"), [(13, 0.15, True), (14, 0.15, False), (13, 0.1499999999999999, False)]
)
def test_a_distance_of_exactly_t_holds_although_floats_say_otherwise(first, t, holds):
    assert 13 / 20 - 0.5 > 0.15
    assert TCloseness("s", t).holds(two_halves(first)).tolist() == [holds] * 2


@given(published.classes(shared_people=False, max_records=24), LIMITS)
def test_a_union_is_no_farther_than_the_farther_of_two(classes, t):
    promise = TCloseness("s", t)
    measured, holds = promise.judge(classes)
    labels = np.where(classes.labels == 1, 0, classes.labels)
    merged = published.relabelled(classes, labels, classes.count)
    if classes.count > 1 and not np.isnan(measured[:2]).any():
        assert promise.measure(merged)[0] <= measured[:2].max() + 1e-12
        assert promise.holds(merged)[0] or not holds[:2].all()


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
