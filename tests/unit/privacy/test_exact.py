"""Comparisons at a threshold never round, and counting does not run out of room."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import published
from shoal.data.classes import Classes, SensitiveColumn
from shoal.privacy import promise, value_counts
from shoal.privacy.l_diversity import LDiversity

FACTORS = st.sampled_from(
    ["0.15", "0.1", "0.3333333333333333", "2", "1e-9", "0", "1e-18", "1e-20", "1e-300"]
).map(Fraction)
WHOLE = st.integers(0, 2**61) | st.integers(0, 3)


@given(WHOLE, WHOLE, FACTORS, st.integers(-1, 1))
@pytest.mark.parametrize("room", [2**62, 1])
def test_sign_is_the_sign_of_the_true_difference(room, left, right, factor, off):
    near = max(int(factor * right) + off, 0)  # within one unit of the threshold
    pairs = [(left, right), (near, right)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(promise, "ROOM", room)
        found = promise.sign(
            *(np.array(column, dtype=np.int64) for column in zip(*pairs, strict=True)), factor
        )
    differences = [a - factor * b for a, b in pairs]
    assert found.tolist() == [(d > 0) - (d < 0) for d in differences]


def test_sign_compares_whole_numbers_beyond_64_bits():
    large = np.array([10**30, 10**30 + 1, 10**30 - 1], dtype=object)
    assert promise.sign(large, np.array([10**31] * 3, dtype=object), Fraction("0.1")).tolist() == [
        0,
        1,
        -1,
    ]


@given(published.classes())
def test_counts_are_the_same_where_a_key_has_no_room(classes):
    found = value_counts.value_counts(classes, "s")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(promise, "ROOM", 1)
        again = value_counts.value_counts(classes, "s")
    for name in ("class_of", "value", "count", "starts"):
        assert (getattr(found, name) == getattr(again, name)).all()


def test_many_classes_of_many_values_do_not_overflow():
    places = 2**31 - 1
    column = SensitiveColumn("s", np.array([0, places - 1, 5, 5], dtype=np.int32), places)
    classes = Classes(np.array([0, 0, 2, 2], dtype=np.int32), 3, None, {"s": column})
    assert LDiversity("s", 2).measure(classes).tolist() == [2, 0, 1]
