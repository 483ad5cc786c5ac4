"""The same battery for every method that publishes two tables, plug-ins included."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.classes import SensitiveColumn
from shoal.data.partition import Matrix
from shoal.data.recoding import OWN_METHODS
from shoal.errors import InfeasibleError
from shoal.policy import registry

METHODS = [m for m in registry.methods().values() if m.renders_two_tables]
VARIANTS = [(method, near) for method in METHODS for near in (False, True)]


def grouped(method, codes, l: int, near: bool = False, seed: int = 0) -> np.ndarray:
    codes = np.array(codes, dtype=np.int32)
    places = np.arange(len(codes), dtype=np.int32)
    matrix = Matrix.from_columns(np.stack([places, places % 3], axis=1), [len(codes), 2.0])
    column = SensitiveColumn("disease", codes, int(codes.max()) + 1)
    found = method.implementation(l=l, near=near).bucketize(
        matrix, column, None, np.random.default_rng(seed)
    )
    assert found.labels.dtype == np.int32
    assert set(found.labels.tolist()) == set(range(found.count))
    return found.labels


def test_shoals_own_methods_are_known_without_an_import():
    assert {m.name for m in METHODS if not m.package} == OWN_METHODS


@pytest.mark.parametrize(("method", "near"), VARIANTS, ids=str)
@given(data=st.data())
def test_groups_hold_different_values_and_are_as_many_as_can_be(method, near, data):
    l = data.draw(st.integers(2, 4))
    codes = data.draw(st.lists(st.integers(0, 6), min_size=1, max_size=40))
    counts = np.bincount(codes)
    if len(codes) < l or counts.max() * l > len(codes):
        with pytest.raises(InfeasibleError):
            grouped(method, codes, l, near)
        return
    labels = grouped(method, codes, l, near, seed=data.draw(st.integers(0, 99)))
    assert labels.max() + 1 == len(codes) // l
    groups = [sorted(np.array(codes)[labels == g]) for g in range(len(codes) // l)]
    assert all(len(group) >= l and len(set(group)) == len(group) for group in groups)
    # every record says 1 of its group's len(group) values: n - groups is lost in all
    assert sum(len(group) - 1 for group in groups) == len(codes) - len(codes) // l


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.name)
def test_the_largest_l_is_said(method):
    with pytest.raises(InfeasibleError, match=r"has 3 of 7 records.*the largest l is 2"):
        grouped(method, [0, 0, 0, 1, 1, 2, 3], 3)
    with pytest.raises(InfeasibleError, match="no l of 2 or more is possible"):
        grouped(method, [0, 0, 0, 1], 2)
