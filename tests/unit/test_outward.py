"""Domains that go beyond what was seen."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.outward import outward_domain


@pytest.mark.parametrize(
    ("seen", "domain"),
    [
        ((17, 90), [15, 95]),
        ((9, 99), [5, 100]),
        ((0, 4356), [0, 4500]),
        ((-3, 3), [-4, 4]),
        ((0.1, 0.3), [0.09, 0.31]),
        ((1, 2), [0, 3]),
    ],
)
def test_ends_are_the_next_round_numbers(seen, domain):
    assert outward_domain(np.array(seen, dtype=np.float64)) == domain


def test_an_age_takes_a_life():
    assert outward_domain(np.array([17.0, 90.0]), is_age=True) == [0, 120]
    assert outward_domain(np.array([17.0, 190.0]), is_age=True) != [0, 120]


@given(
    st.lists(
        st.integers(-(10**9), 10**9).map(lambda n: n / 1000), min_size=2, max_size=9, unique=True
    )
)
def test_nobodys_value_is_an_end_but_zero_and_little_is_added(values):
    seen = np.array(values)
    low, high = outward_domain(seen)
    least, greatest = seen.min(), seen.max()
    assert low < least or low == least == 0
    assert high > greatest
    step = max((greatest - least) / 20 * 2.5, 1 if (seen == np.rint(seen)).all() else 0)
    assert least - low <= step * (1 + 1e-9)
    assert high - greatest <= step * (1 + 1e-9)
    if least >= 0:
        assert low >= 0
