"""Classes are counted in distinct people, and how many classes have each size is exact."""

from collections import Counter
from statistics import fmean

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import published
import shoal
from shoal.data.classes import Classes, Sizes
from shoal.data.numbers import alike

PEOPLE = st.lists(st.integers(0, 6) | st.integers(0, 20_000), max_size=40)


def counted(people: list[int]) -> Counter[int]:
    """How many groups have each size, one after the other; groups of nobody are none."""
    return Counter(size for size in people if size)


def listed(sizes: Sizes) -> dict[int, int]:
    return dict(zip(sizes.sizes.tolist(), sizes.groups.tolist(), strict=True))


@given(published.classes())
def test_the_people_of_a_class_are_its_distinct_subjects(classes: Classes) -> None:
    labels, subjects, _ = published.plain(classes)
    members: list[list[int]] = [[] for _ in range(classes.count)]
    for record, label in enumerate(labels):
        if label >= 0:
            members[label].append(record if subjects is None else subjects[record])
    assert classes.sizes.tolist() == [len(own) for own in members]
    assert classes.people().tolist() == [len(set(own)) for own in members]


@given(PEOPLE)
def test_every_size_is_listed_with_its_groups_also_a_size_of_one_group(people: list[int]) -> None:
    sizes, expected = Sizes.of(np.array(people, dtype=np.int64)), counted(people)
    assert listed(sizes) == expected
    assert sizes.sizes.tolist() == sorted(expected)
    assert sizes.stated == {
        "count": expected.total(),
        "min": min(expected, default=None),
        "mean": fmean(expected.elements()) if expected else None,
        "max": max(expected, default=None),
    }
    assert sizes.total == sum(people)


@given(st.lists(PEOPLE, max_size=4))
def test_sizes_of_parts_are_those_of_all_groups(parts: list[list[int]]) -> None:
    joined = Sizes.joined(Sizes.of(np.array(part, dtype=np.int64)) for part in parts)
    assert listed(joined) == counted([size for part in parts for size in part])


@pytest.mark.parametrize("sizes", [(2, 3, 3), (3, 3, 9), (4,), (2, 5, 7)])
def test_a_class_whose_size_no_other_has_is_in_the_certificate(sizes: tuple[int, ...]) -> None:
    """Its people are the least of all, and at the greatest risk."""
    cells = [f"cell {which}" for which, size in enumerate(sizes) for _ in range(size)]
    certificate = shoal.audit(pl.DataFrame({"cell": cells}), quasi="cell", k=2)
    assert certificate["classes"]["count"] == len(sizes)
    assert certificate["classes"]["min"] == min(sizes)
    assert certificate["classes"]["max"] == max(sizes)
    assert certificate["risk"]["prosecutor_max"] == 1 / min(sizes)


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=1, max_size=12))
def test_records_that_are_alike_get_dense_numbers_of_their_own(pairs) -> None:
    """Three columns of 31 bits do not fit 64: numbers are made dense on the way."""
    wide = np.array(pairs, dtype=np.int64) * (2**30)
    number = alike((wide[:, 0], wide[:, 1], wide[:, 0]), len(pairs)).tolist()
    assert {*number} == {*range(len(set(pairs)))}
    assert len(set(zip(pairs, number, strict=True))) == len(set(pairs))
