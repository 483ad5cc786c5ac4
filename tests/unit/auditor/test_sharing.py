"""Who shares all classes of somebody, against a plain twin."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_beside as naive
from shoal.auditor import sharing
from shoal.auditor.sharing import Links, fitting, fitting_pairs

PEOPLE = 40


@st.composite
def releases(draw):
    """Two to four releases of some of 40 people, with few classes and up to three for a person."""
    count = draw(st.integers(2, 4))
    people = st.integers(0, draw(st.integers(1, PEOPLE - 1)))
    labels = st.sets(st.integers(0, draw(st.integers(0, 4))), min_size=1, max_size=3)
    return [draw(st.dictionaries(people, labels)) for _ in range(count)]


def links(found, classes=20):
    pairs = [
        (person, number * classes + label)
        for number, release in enumerate(found)
        for person, labels in release.items()
        for label in labels
    ]
    items, labels = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Links.of(items, labels, PEOPLE, classes * len(found))


@pytest.mark.parametrize("large", [0, 4])  # by postings alone, by these and bit sets
@given(found=releases())
def test_candidates_are_those_that_a_plain_intersection_leaves(large, found):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sharing, "LARGE", large)
        patch.setattr(sharing, "BLOCK", 16)
        counted = fitting(links(found), links(found)).tolist()
    assert counted == [len(naive.candidates(found, person)) for person in range(PEOPLE)]


@given(found=releases())
def test_what_fits_may_be_values_instead_of_people(found):
    shown = {(n, c): {(n + c) % 5, c} for n in range(len(found)) for c in range(5)}
    pairs = [(value, n * 20 + c) for (n, c), values in shown.items() for value in values]
    items, labels = np.array(pairs, dtype=np.int64).T
    values = Links.of(items, labels, 6, 20 * len(found))
    counted = fitting(links(found), values).tolist()
    kept = [naive.candidates(found, person, shown) for person in range(PEOPLE)]
    assert counted == [len(values) for values in kept]
    pairs = fitting_pairs(links(found), values)
    assert set(zip(pairs.classes.tolist(), pairs.items.tolist(), strict=True)) == {
        (person, value) for person, values in enumerate(kept) for value in values
    }
