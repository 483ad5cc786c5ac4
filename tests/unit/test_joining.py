"""Joining ids: the plain intersection, in an order that says nothing, and no point of a stranger's group."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.algorithms.fusion.joining import (
    check_ids,
    common_points,
    fresh_secret,
    masked_again,
    masked_ids,
    normalized,
    rows_in_order,
    split,
)
from shoal.errors import InputError, PartyError

AGREEMENT = bytes(range(32))


def joined(tables: list[list[str]]) -> list[list[str]]:
    """Every party's ids of the common rows, after all have masked all."""
    tables = [check_ids(ids, "id", "bank") for ids in tables]
    secrets = [fresh_secret() for _ in tables]
    masked = []
    for owner, ids in enumerate(tables):
        points = masked_ids(ids, AGREEMENT, secrets[owner])
        for other, secret in enumerate(secrets):
            if other != owner:
                points = masked_again(points, secret)
        masked.append(points)
    common = common_points(masked)
    return [[ids[row] for row in rows_in_order(points, common)] for ids, points in zip(tables, masked, strict=True)]


IDS = st.lists(st.sampled_from([f"p{i}" for i in range(12)]), max_size=8, unique=True)


@settings(max_examples=25, deadline=None)
@given(st.lists(IDS, min_size=2, max_size=4))
def test_all_parties_find_the_plain_intersection_in_one_order(tables):
    found = joined(tables)
    assert all(other == found[0] for other in found)
    assert set(found[0]) == set.intersection(*map(set, tables))


def test_two_runs_share_no_masked_value():
    ids = ["a", "b", "c"]
    one, two = (split(masked_ids(ids, AGREEMENT, fresh_secret())) for _ in range(2))
    assert not set(one) & set(two)
    other_agreement = split(masked_ids(ids, bytes(32), secret := fresh_secret()))
    assert not set(other_agreement) & set(split(masked_ids(ids, AGREEMENT, secret)))


def test_the_order_is_not_that_of_the_ids():
    ids = [f"{i:03d}" for i in range(40)]
    assert joined([ids, ids])[0] != ids


def test_ways_to_write_an_id_in_unicode_are_one_id():
    found = joined([["Zoe\u0308", " 12 ", "other"], ["Zo\u00eb", "\uff11\uff12"]])
    assert sorted(found[0]) == ["12", "Zo\u00eb"]
    assert normalized("Zoe\u0308") == normalized("Zo\u00eb")


@pytest.mark.parametrize(
    ("cells", "told"),
    [(["a", "b", "a"], "repeats 1"), (["a", " ", "b"], "names nobody in 1"), (["x", " x"], "repeats")],
)
def test_an_id_that_is_missing_or_occurs_twice_is_refused(cells, told):
    with pytest.raises(InputError, match=told):
        check_ids(cells, "id", "bank")


@pytest.mark.parametrize(
    "point",
    [
        b"\x01" + bytes(31),  # the neutral point
        bytes(32),  # of order 4
        b"\xec" + b"\xff" * 30 + b"\x7f",  # of order 2
        b"\x02" + bytes(31),  # on no curve
        bytes(31),
    ],
)
def test_a_point_outside_of_the_prime_order_group_is_refused(point):
    with pytest.raises(PartyError, match="no masked id"):
        masked_again(point, fresh_secret())


def test_a_common_point_that_is_not_ones_own_ends_the_run():
    with pytest.raises(PartyError, match="not in this table"):
        rows_in_order(masked_ids(["a"], AGREEMENT, fresh_secret()), masked_ids(["a"], AGREEMENT, fresh_secret()))
