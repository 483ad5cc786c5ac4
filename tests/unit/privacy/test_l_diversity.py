"""l-diversity in its three kinds, against the definitions multiplied out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.errors import InputError
from shoal.privacy.l_diversity import LDiversity, reaches_entropy


def one_class(*counts):
    return published.of_column(np.repeat(np.arange(len(counts)), counts))


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_equally_frequent_values_meet_entropy_exactly(size):
    classes = one_class(*[size] * 5)
    assert LDiversity("s", 5, "entropy").report(classes) == {
        "model": "l-diversity",
        "attributes": ["s"],
        "kind": "entropy",
        "asked": 5,
        "measured": 5,
        "holds": True,
    }


@given(st.lists(st.integers(1, 60), min_size=1, max_size=5), st.integers(1, 5))
def test_entropy_does_not_change_when_all_counts_are_multiplied(counts, least):
    multiplied = tuple(17 * count for count in counts)
    assert reaches_entropy(multiplied, least) == naive.is_entropy_diverse(counts, least)


@pytest.mark.parametrize(
    ("counts", "least", "holds"),
    [
        ((25, *[1] * 25), 10, True),  # as of ten values; floats fall below
        ((26, *[1] * 25), 10, False),
        ((200_001, 200_000), 2, False),
        ((30_000, 29_999), 2, False),
        ((30_000, 29_999, 1), 2, True),
        ((10_320, 9_682, 1), 2, True),
        ((10_321, 9_681, 1), 2, False),
        ((20_001, 20_001, 1), 3, False),  # equal counts, each with its own share
    ],
)
def test_entropy_next_to_its_threshold_is_told_apart(counts, least, holds):
    assert LDiversity("s", least, "entropy").holds(one_class(*counts))[0] == holds


@pytest.mark.parametrize(
    "parameters", [{"l": 2, "kind": "other"}, {"l": 2, "kind": "recursive"}, {"l": 2, "c": 1.0}]
)
def test_senseless_parameters_are_refused(parameters):
    with pytest.raises(InputError):
        LDiversity("s", **parameters)


def test_a_column_that_is_not_sensitive_is_refused_by_name():
    with pytest.raises(InputError, match="attribute 'other'"):
        LDiversity("other", 2).measure(one_class(1, 1))
