"""How likely somebody is named who comes again and again: `risk.at_least_once`."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.auditor.ledger.history import PeopleHistory
from thorough import LONG

MOST = 20_000 if LONG else 4_000  # ways to guess that are tried


def stated(k: int, releases: int) -> float:
    """What is stated of k people who are one class of all releases."""
    history = PeopleHistory()
    for _ in range(releases):
        history.take(np.arange(k, dtype=np.uint64), np.zeros(k, dtype=np.int32))
    return history.at_least_once()


def test_each_release_counts_with_the_class_that_the_person_is_in_there():
    """It was the newest release's risk for all: less than that of the first release alone."""
    history, people = PeopleHistory(), np.arange(6, dtype=np.uint64)
    history.take(people, np.array([0, 0, 0, 1, 1, 1]))
    history.take(people, np.zeros(6, dtype=np.int32))
    history.take(people[:2], np.array([0, 0]))
    assert history.at_least_once() == pytest.approx(1 - 2 / 3 * 5 / 6 * 1 / 2)


def plain(k: int, releases: int) -> Fraction:
    """Of all ways to guess a row of k in every release, the share with John's among them."""
    ways = itertools.product(range(k), repeat=releases)
    return Fraction(sum(0 in guessed for guessed in ways), k**releases)


@pytest.mark.parametrize("releases", range(1, 8))
def test_it_is_the_share_of_all_ways_to_guess_that_name_the_person(releases):
    for k in range(1, 20):
        if k**releases <= MOST:
            assert stated(k, releases) == pytest.approx(float(plain(k, releases)), abs=1e-12)


def test_it_grows_with_releases_and_shrinks_with_k():
    for k, releases in itertools.product(range(2, 8), range(1, 5)):
        assert plain(k + 1, releases) < plain(k, releases) < plain(k, releases + 1)
        assert stated(k + 1, releases) < stated(k, releases) < stated(k, releases + 1)


def least_k(l: int, releases: int) -> float:
    """As the page of the method says it."""
    return 1 / (1 - (1 - 1 / l) ** (1 / releases))


@given(l=st.integers(2, 12), releases=st.integers(1, 24))
def test_at_most_one_in_l_needs_so_many_people_and_no_fewer(l, releases):
    needed = math.ceil(least_k(l, releases) - 1e-9)
    assert stated(needed, releases) <= 1 / l + 1e-9
    assert needed == 1 or stated(needed - 1, releases) > 1 / l


def test_the_figures_of_the_page():
    assert stated(10, 12) == pytest.approx(0.72, abs=0.005)
    assert math.ceil(least_k(2, 12)) == 18
    assert math.ceil(least_k(4, 12)) == 43
