"""beta-likeness and delta-disclosure privacy, against shares counted by hand."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import published
from shoal.errors import InputError
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.delta_disclosure import DeltaDisclosure
from shoal.privacy.value_counts import precise_logarithm

DELTAS = st.sampled_from([0.1, 0.25, 0.5, 0.7, 1.0, 1.5, 2.0])


def one_class(inside, outside):
    """Class 0 with these numbers of records of the values, class 1 with the others of the table."""
    codes = np.concatenate([np.repeat(np.arange(len(part)), part) for part in (inside, outside)])
    return published.of_column(codes, np.repeat([0, 1], [sum(inside), sum(outside)]))


def test_below_delta_is_strict_where_it_can_be_reached():
    # the first value: half of the class, a quarter of the table
    classes = one_class((2, 1, 1), (0, 3, 1))
    assert not DeltaDisclosure("s", 1.0, "binary").holds(classes)[0]
    assert DeltaDisclosure("s", 1.0001, "binary").holds(classes)[0]
    assert DeltaDisclosure("s", 0.7).holds(classes)[0]
    assert not DeltaDisclosure("s", 0.693).holds(classes)[0]


def test_a_gain_of_exactly_beta_holds():
    classes = one_class((3, 7), (0, 10))  # 15 % of the table, 30 % of the class: a gain of 1
    assert BetaLikeness("s", 1.0, "basic").holds(classes)[0]
    assert not BetaLikeness("s", 0.999999, "basic").holds(classes)[0]


@given(published.classes(), DELTAS)
def test_delta_disclosure_bounds_basic_beta_likeness(classes, delta):
    """q / p < exp(delta), so that no gain reaches exp(delta) - 1."""
    beta = BetaLikeness("s", math.expm1(delta), "basic")
    assert (beta.holds(classes) | ~DeltaDisclosure("s", delta).holds(classes)).all()


@pytest.mark.parametrize(("having", "size", "holds"), [(39717, 46915, False), (62213, 73488, True)])
def test_a_gain_next_to_the_logarithm_is_told_apart(having, size, holds):
    """A value of half of the table may gain ln 2: one class lies 5e-10 above, the other 7e-11
    below, both continued fractions of (1 + ln 2) / 2.
    """
    lacking = size - having
    classes = one_class((having, lacking), (0, having - lacking))
    assert BetaLikeness("s", 1.0).holds(classes)[0] == holds
    assert BetaLikeness("s", 1.0, "basic").holds(classes)[0]


def test_logarithms_at_a_threshold_are_good_to_sixty_digits():
    ln2 = Decimal("0.693147180559945309417232121458176568075500134360255254120680009")
    with localcontext(prec=70):
        assert abs(precise_logarithm(2, 1) - ln2) < Decimal("1e-58")
        assert abs(precise_logarithm(3, 12) + 2 * ln2) < Decimal("1e-58")


def test_kinds_and_logarithms_are_named():
    with pytest.raises(InputError, match="kind must be one of"):
        BetaLikeness("s", 1.0, "stronger")
    with pytest.raises(InputError, match="logarithm must be one of"):
        DeltaDisclosure("s", 1.0, "decimal")
