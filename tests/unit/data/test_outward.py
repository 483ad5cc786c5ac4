"""Domains that go beyond what was seen."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.single_ends import outward_domain


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
