"""Bounds on the number of classes under l-diversity, against every way to divide small tables."""

import itertools
from collections.abc import Iterator
from fractions import Fraction
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
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity
from shoal.privacy.k_anonymity import KAnonymity
from shoal.search.most_classes import class_bound, most_distinct
from thorough import LONG

ANY = Fraction(1)


@cache
def parted(counts: tuple[int, ...]) -> set[tuple[int, int, int, tuple[int, ...]]]:
    """All classes that one record of the first value may be in: records, values, records of the
    commonest, and the counts of what is left; once for all that are alike.
    """
    ranges = [range(1 if i == 0 else 0, c + 1) for i, c in enumerate(counts)]
    return {
        (sum(part), sum(c > 0 for c in part), max(part), _left(counts, part))
        for part in itertools.product(*ranges)
    }


def _left(counts, part):
    return tuple(sorted((c - p for c, p in zip(counts, part, strict=True) if c - p), reverse=True))


@cache
def most(counts: tuple[int, ...], k: int, l: int, share: Fraction = ANY) -> int:
    """The most classes of k records, l values, no larger share of one; -1 where there are none."""
    if not counts:
        return 0
    best = -1
    for size, kinds, commonest, left in parted(counts):
        if size >= k and kinds >= l and commonest <= share * size:
            rest = most(left, k, l, share)
            best = max(best, 1 + rest if rest >= 0 else -1)
    return best


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
        assert found == max(most(counts, k, l), 0), counts


@pytest.mark.parametrize("alpha", ["0.5", "0.34", "0.25", "0.24"])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_shares_lie_between_what_is_always_possible_and_the_bound(k, alpha):
    """A value of one person is at most alpha of a class of 1 / alpha people and more. With k = 3,
    l = 2 the truth is at either end: 3 + 3 of 2, 2, 2, and one class of 3, 3.
    """
    l = ceil(1 / Fraction(alpha))
    for counts in TABLES:
        n = sum(counts)
        if max(counts) * l > n or n < k:
            continue
        codes = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
        table = Classes(
            np.zeros(n, np.int32), 1, None, {"v": SensitiveColumn("v", codes, len(counts))}
        )
        upper = class_bound([AlphaKAnonymity("v", float(alpha), k), KAnonymity(k)], table)
        assert upper == n // max(k, l)
        lower, true = n // (l * ceil(k / l)), max(most(counts, k, 1, Fraction(alpha)), 0)
        assert lower <= true <= upper, counts
        assert true == upper or max(k, l) % l


@given(st.lists(st.integers(1, 60), min_size=1, max_size=8), st.integers(1, 9))
def test_one_value_is_theorem_1_and_more_values_never_help(counts, k):
    bounds = [most_distinct(np.array(counts), k, l) for l in range(1, 6)]
    assert bounds[0] == sum(counts) // k
    assert bounds == sorted(bounds, reverse=True)


OCCUPATION = {"attribute": "occupation"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("more", "bound"),
    [
        ([], 3016),
        ([{"model": "l-diversity", **OCCUPATION, "l": 3}], 3016),
        ([{"model": "alpha-k-anonymity", **OCCUPATION, "alpha": 0.5, "k": 10}], 3016),
        ([{"model": "l-diversity", **OCCUPATION, "l": 3, "kind": "entropy"}], None),
    ],
    ids=str,
)
def test_the_certificate_states_it_and_no_release_is_above(adult, more, bound):
    classes = on_adult(adult, *more)["classes"]
    assert classes.get("bound") == bound
    assert bound is None or classes["count"] <= bound


# As many classes as cuts find


def published(frame, promise: dict) -> shoal.Certificate:
    attributes = {"x": {"role": "quasi", "type": "number", "domain": [0, 9]}, "v": "sensitive"}
    method = {"name": "rounded-partition", "count": "most", "refine": "none"}
    return shoal.publish(frame, content_of(attributes, 2, promise, method=method)).certificate


DISTINCT = {"model": "l-diversity", "attribute": "v", "l": 2}
HALVES = {"model": "alpha-k-anonymity", "attribute": "v", "alpha": 0.5, "k": 2}


def test_cuts_along_an_attribute_need_not_reach_the_bound():
    classes = published(pl.DataFrame({"x": [0, 1, 2, 3], "v": list("aabb")}), DISTINCT)["classes"]
    assert (classes["count"], classes["bound"]) == (1, 2)


@settings(deadline=None, max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("abcd")), min_size=2, max_size=24),
    st.sampled_from([DISTINCT, HALVES]),
)
def test_counted_cuts_keep_the_promise_and_stay_below_the_bound(rows, promise):
    try:
        certificate = published(pl.DataFrame(rows, schema=["x", "v"], orient="row"), promise)
    except shoal.InfeasibleError:
        return
    assert certificate.holds
    assert certificate["classes"]["count"] <= certificate["classes"]["bound"]


def test_what_can_not_be_counted_is_refused():
    frame = pl.DataFrame({"x": [0, 1, 2, 3], "v": list("abab")})
    with pytest.raises(shoal.InputError, match="count=most goes with"):
        published(frame, DISTINCT | {"kind": "entropy"})
    assert published(frame, {"model": "k-anonymity", "k": 2})["classes"]["count"] == 2


def on_adult(adult, *promises: dict, **method) -> shoal.Certificate:
    method = {"name": "rounded-partition", "refine": "none", **method}
    words = {"other": "drop", "method": method}
    return shoal.publish(
        adult, content_of(adult_cases.declared(), 10, *promises, **words)
    ).certificate


def share(alpha: float) -> dict:
    return {"model": "alpha-k-anonymity", **OCCUPATION, "alpha": alpha, "k": 10}


@pytest.mark.long
def test_by_default_a_small_share_is_cut_for_most_classes_where_that_loses_less(adult):
    counts = ({}, {"count": "any"}, {"count": "most"})
    found, old, counted = (on_adult(adult, share(0.25), **method) for method in counts)
    assert found["classes"] == counted["classes"]
    assert found["utility"]["gcp"] < old["utility"]["gcp"] / 1.2
    assert found["classes"]["count"] > 10 * old["classes"]["count"]


@pytest.mark.long
@pytest.mark.parametrize(
    ("case", "alpha", "asked"),
    [
        ("small", 0.25, {"preset": "paper"}),
        ("small", 0.25, {"dimension": "widest"}),
        ("whole", 0.5, {}),
        ("even", 0.25, {}),
    ],
    ids=["the paper's cuts", "the widest", "a large share", "many even values"],
)
def test_other_cuts_are_taken_where_they_are_asked_for_or_lose_less(adult, case, alpha, asked):
    values = pl.Series(np.random.default_rng(1).integers(0, 50, adult.height)).cast(pl.String)
    tables = {"small": adult.head(3000), "even": adult.with_columns(occupation=values)}
    frame = tables.get(case, adult)
    found, old = (on_adult(frame, share(alpha), **asked, **c) for c in ({}, {"count": "any"}))
    assert found["classes"] == old["classes"]


@pytest.mark.long
def test_adult_has_as_many_classes_as_the_prototype_found(adult):
    diverse = {"model": "l-diversity", **OCCUPATION, "l": 5}
    assert on_adult(adult, diverse, count="most")["classes"]["count"] >= 0.9 * 2760
