"""Bounds on the number of classes under l-diversity, against every way to divide small tables."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from functools import cache
from math import ceil

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import adult_cases
import shoal
from sample_policies import content_of
from shoal.data.classes import Classes, SensitiveColumn
from shoal.privacy.alpha_k import AlphaKAnonymity
from shoal.privacy.k_anonymity import KAnonymity
from shoal.tables.draft import class_bound, most_distinct
from thorough import LONG


def most_shares(counts: np.ndarray, k: int, l: int) -> tuple[int, int]:
    """What is always possible, and the most there may be, of classes of k people in which no value
    has more than 1 / l of them. counts: (values,), none more than n / l.
    """
    n = int(counts.sum())
    return n // (l * ceil(k / l)), n // max(k, l)


@cache
def parted(counts: tuple[int, ...]) -> tuple[tuple[int, int, int, tuple[int, ...]], ...]:
    """All classes that one record of the first value may be in: records, values, records of the
    commonest, and the counts of what is left; once for all that are alike.
    """
    ranges = [range(1 if i == 0 else 0, c + 1) for i, c in enumerate(counts)]
    return tuple(
        {
            (sum(part), sum(c > 0 for c in part), max(part), _left(counts, part))
            for part in itertools.product(*ranges)
        }
    )


@cache
def most(counts: tuple[int, ...], k: int, l: int, is_share: bool) -> int:
    """The most classes of these counts of values by trying all; -1 where there are none."""
    counts = tuple(sorted((c for c in counts if c), reverse=True))
    if not counts:
        return 0
    best = -1
    for size, kinds, commonest, left in parted(counts):
        if size < k or (commonest * l > size if is_share else kinds < l):
            continue
        rest = most(left, k, l, is_share)
        best = max(best, 1 + rest if rest >= 0 else -1)
    return best


def _left(counts, part):
    return tuple(sorted((c - p for c, p in zip(counts, part, strict=True) if c - p), reverse=True))


def divided(n: int, largest: int) -> Iterator[tuple[int, ...]]:
    """All counts of values of n records, none above `largest`."""
    if not n:
        yield ()
    for first in range(min(n, largest), 0, -1):
        yield from ((first, *rest) for rest in divided(n - first, first))


TABLES = [counts for n in range(1, 17 if LONG else 13) for counts in divided(n, n)]


@pytest.mark.parametrize("l", [1, 2, 3, 4])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_the_bound_for_distinct_values_is_what_trying_all_finds(k, l):
    for counts in TABLES:
        found = most_distinct(np.array(counts), k, l)
        assert found == max(most(counts, k, l, False), 0), counts


@pytest.mark.parametrize(("alpha", "most_classes"), [(0.5, 6), (0.3, 3), (0.25, 3), (0.24, 2)])
def test_a_share_asks_for_as_many_people_as_values_of_that_share_fill(alpha, most_classes):
    """A value of one person is at most alpha of a class of 1 / alpha people and more."""
    values = SensitiveColumn("v", np.arange(12, dtype=np.int32) % 6, 6)
    table = Classes(np.zeros(12, dtype=np.int32), 1, None, {"v": values})
    assert class_bound([KAnonymity(2), AlphaKAnonymity("v", alpha, 2)], table) == most_classes


@pytest.mark.parametrize("l", [2, 3, 4])
@pytest.mark.parametrize("k", [1, 2, 3, 4])
def test_shares_lie_between_what_is_always_possible_and_the_bound(k, l):
    for counts in TABLES:
        if max(counts) * l > sum(counts) or sum(counts) < k:
            continue
        lower, upper = most_shares(np.array(counts), k, l)
        true = max(most(counts, k, l, True), 0)
        assert lower <= true <= upper, counts
        if max(k, l) % l == 0:
            assert true == lower == upper


def test_the_truth_may_be_at_either_end():
    # k = 3, l = 2: classes of 4 are always possible, classes of 3 need three values
    assert most((2, 2, 2), 3, 2, True) == 2 == most_shares(np.array([2, 2, 2]), 3, 2)[1]
    assert most((3, 3), 3, 2, True) == 1 == most_shares(np.array([3, 3]), 3, 2)[0]


def test_the_worked_examples():
    # 2,2,2,2, l = 3: 4 + 4 works, 3 + 5 does not
    assert most((2, 2, 2, 2), 1, 3, True) == 2
    counts = (2, 2, 2, 2)
    assert not [
        part
        for part in itertools.product(range(3), repeat=4)
        if sum(part) == 3
        and max(part) * 3 <= 3
        and max(c - p for c, p in zip(counts, part, strict=True)) * 3 <= 5
    ]
    # a a b b: two classes, though no cut along one attribute makes them
    assert most_distinct(np.array([2, 2]), 2, 2) == 2


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 9))
def test_one_value_is_theorem_1_and_more_values_never_help(counts, k):
    table = np.array(counts)
    assert most_distinct(table, k, 1) == sum(counts) // k
    bounds = [most_distinct(table, k, l) for l in range(1, 6)]
    assert bounds == sorted(bounds, reverse=True)


PROMISES = [
    ([], 3016),
    ([{"model": "l-diversity", "attribute": "occupation", "l": 3}], 3016),
    ([{"model": "alpha-k-anonymity", "attribute": "occupation", "alpha": 0.5, "k": 10}], 3016),
    ([{"model": "l-diversity", "attribute": "occupation", "l": 3, "kind": "entropy"}], None),
]


@pytest.mark.long
@pytest.mark.parametrize(("more", "bound"), PROMISES, ids=str)
def test_the_certificate_states_it_and_no_release_is_above(adult, more, bound):
    declared = {"age": {"role": "quasi", "type": "number", "domain": [17, 90]}}
    declared["education-num"] = {"role": "quasi", "type": "number", "domain": [1, 16]}
    declared["occupation"] = {"role": "sensitive"}
    content = content_of(
        declared, 10, *more, other="drop", method={"name": "rounded-partition", "refine": "none"}
    )
    classes = shoal.publish(adult, content).certificate["classes"]
    assert classes.get("bound") == bound
    assert bound is None or classes["count"] <= bound


# As many classes as cuts find


def published(frame, promise: dict, **method) -> shoal.Certificate:
    content = content_of(
        {
            "x": {"role": "quasi", "type": "number", "domain": [0, 9]},
            "v": {"role": "sensitive"},
        },
        2,
        promise,
        method={"name": "rounded-partition", "count": "most", "refine": "none", **method},
    )
    return shoal.publish(frame, content).certificate


DISTINCT = {"model": "l-diversity", "attribute": "v", "l": 2}
HALVES = {"model": "alpha-k-anonymity", "attribute": "v", "alpha": 0.5, "k": 2}


def test_cuts_along_an_attribute_need_not_reach_the_bound():
    classes = published(pl.DataFrame({"x": [0, 1, 2, 3], "v": list("aabb")}), DISTINCT)["classes"]
    assert (classes["count"], classes["bound"]) == (1, 2)


@settings(deadline=None, max_examples=25)
@given(data=st.data())
def test_counted_cuts_keep_the_promise_and_stay_below_the_bound(data):
    n = data.draw(st.integers(2, 24))
    x = data.draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    v = data.draw(st.lists(st.sampled_from("abcd"), min_size=n, max_size=n))
    promise = data.draw(st.sampled_from([DISTINCT, HALVES]))
    try:
        certificate = published(pl.DataFrame({"x": x, "v": v}), promise)
    except shoal.InfeasibleError:
        return
    assert certificate.holds
    assert certificate["classes"]["count"] <= certificate["classes"]["bound"]


def test_what_can_not_be_counted_is_refused():
    frame = pl.DataFrame({"x": [0, 1, 2, 3], "v": list("abab")})
    with pytest.raises(shoal.InputError, match="count=most goes with"):
        published(frame, DISTINCT | {"kind": "entropy"})
    assert published(frame, {"model": "k-anonymity", "k": 2})["classes"]["count"] == 2


def on_adult(adult, alpha: float, **method) -> shoal.Certificate:
    content = {
        "version": 1,
        "other": "drop",
        "attributes": adult_cases.declared(),
        "promises": [
            {"model": "alpha-k-anonymity", "attribute": "occupation", "alpha": alpha, "k": 10}
        ],
        "method": {"name": "rounded-partition", "refine": "none", **method},
    }
    return shoal.publish(adult, content).certificate


@pytest.mark.long
def test_by_default_a_small_share_is_cut_for_most_classes_where_that_loses_less(adult):
    found, old, counted = (
        on_adult(adult, 0.25, **method) for method in ({}, {"count": "any"}, {"count": "most"})
    )
    assert found["classes"] == counted["classes"]
    assert found["utility"]["gcp"] < old["utility"]["gcp"] / 1.2
    assert found["classes"]["count"] > 10 * old["classes"]["count"]


@pytest.mark.long
@pytest.mark.parametrize("asked", [{"preset": "paper"}, {"dimension": "widest"}])
def test_who_says_how_to_cut_gets_these_cuts(adult, asked):
    small = adult.head(3000)
    found = on_adult(small, 0.25, **asked)
    assert found["classes"] == on_adult(small, 0.25, count="any", **asked)["classes"]


@pytest.mark.long
def test_a_large_share_and_many_even_values_are_cut_as_before(adult):
    assert on_adult(adult, 0.5)["classes"] == on_adult(adult, 0.5, count="any")["classes"]
    values = np.random.default_rng(1).integers(0, 50, adult.height)
    even = adult.with_columns(occupation=pl.Series([f"v{value}" for value in values]))
    assert on_adult(even, 0.25)["classes"] == on_adult(even, 0.25, count="any")["classes"]


@pytest.mark.long
def test_adult_has_as_many_classes_as_the_prototype_found(adult):
    content = content_of(
        adult_cases.declared(),
        10,
        {"model": "l-diversity", "attribute": "occupation", "l": 5},
        other="drop",
        method={"name": "rounded-partition", "count": "most", "refine": "none"},
    )
    assert shoal.publish(adult, content).certificate["classes"]["count"] >= 0.9 * 2760
