"""Joining ids: the plain intersection in an order that says nothing; no stranger's point."""

import re
import unicodedata

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.data.person.people import checked_ids
from shoal.data.person_names import UNSEEN
from shoal.errors import InputError, PartyError
from shoal.fusion.id_join import (
    common_points,
    distinct_points,
    fresh_secret,
    keyed_ids,
    masked_again,
    masked_ids,
    points_of,
    rows_in_order,
)

AGREEMENT = bytes(range(32))


def normalized(identity: str) -> str:
    """The plain twin of what is done to ids."""
    return unicodedata.normalize("NFKC", identity).strip(" \t\n\r\u00a0\u2003")


def ids_of(cells: list[str]) -> list[str]:
    return checked_ids(pl.Series("id", cells, dtype=pl.String), "bank", ["*"]).to_list()


def joined(tables: list[list[str]], keyed: bool = False) -> list[list[str]]:
    """Every party's ids of the common rows, after all have masked all, or under one key."""
    tables = [ids_of(ids) for ids in tables]
    secrets, key = [fresh_secret() for _ in tables], bytes(32)
    sets = []
    for owner, ids in enumerate(tables):
        points = (
            keyed_ids(ids, AGREEMENT, key) if keyed else masked_ids(ids, AGREEMENT, secrets[owner])
        )
        for other, secret in enumerate(secrets):
            if other != owner and not keyed:
                points = masked_again(points, secret)
        sets.append(points_of(points))
    common = common_points(distinct_points(points.copy()) for points in sets)
    return [
        [ids[row] for row in rows_in_order(points, common)]
        for ids, points in zip(tables, sets, strict=True)
    ]


def split(points: bytes) -> list[bytes]:
    return [points[i : i + 32] for i in range(0, len(points), 32)]


IDS = st.lists(st.sampled_from([f"p{i}" for i in range(12)]), max_size=8, unique=True)


@settings(max_examples=25, deadline=None)
@given(st.lists(IDS, min_size=2, max_size=4), st.booleans())
def test_all_parties_find_the_plain_intersection_in_one_order(tables, keyed):
    found = joined(tables, keyed)
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


@settings(max_examples=200, deadline=None)
@given(
    st.lists(
        st.text(st.characters(codec="utf-8", exclude_categories=["Cn", "Cc"]), min_size=1).filter(
            lambda text: not re.search(UNSEEN, text)
        ),
        max_size=6,
    )
)
def test_ids_are_compared_in_the_compatibility_form_of_unicode(cells):
    expected = [normalized(cell) for cell in cells]
    if not {"", "*"} & {*expected} and len({*expected}) == len(expected):
        assert ids_of(cells) == expected
    elif not any(unicodedata.category(c) in ("Zl", "Zp", "Zs") for cell in cells for c in cell):
        with pytest.raises(InputError):
            ids_of(cells)


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["a", "b", "a"], "repeats 1"),
        (["a", " ", "b"], "names nobody in 1"),
        (["p1", "\uff0a ", "p2", ""], "column 'id' names nobody in 2 records"),
        (["x", " x"], "repeats"),
    ],
)
def test_an_id_that_is_missing_or_occurs_twice_is_refused(cells, shown):
    with pytest.raises(InputError, match=shown):
        ids_of(cells)


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
    with pytest.raises(PartyError, match="not a masked id"):
        masked_again(point, fresh_secret())


def points(*numbers: int) -> np.ndarray:
    return points_of(bytearray(b"".join(bytes([number]) * 32 for number in numbers)))


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(st.integers(0, 255), max_size=30, unique=True), min_size=1, max_size=4))
def test_common_points_are_those_of_all_sets_also_where_bytes_are_zero(sets):
    found = common_points(distinct_points(points(*numbers)) for numbers in sets)
    expected = sorted(set.intersection(*map(set, sets)))
    assert found.tobytes() == points(*expected).tobytes()
    for numbers in sets:
        assert [numbers[row] for row in rows_in_order(points(*numbers), found)] == expected


def test_a_common_point_that_is_not_ones_own_ends_the_run():
    for own in (points(1, 3), points()):
        with pytest.raises(PartyError, match="not in this table"):
            rows_in_order(own, points(2))


@pytest.mark.parametrize("common", [points(1, 1), points(3, 1)])
def test_a_person_who_is_named_twice_does_not_count_twice(common):
    with pytest.raises(PartyError, match="twice"):
        rows_in_order(points(1, 2, 3), common)
    with pytest.raises(PartyError, match="twice"):
        distinct_points(points(4, 4, 5))


def test_points_that_are_not_whole_are_refused():
    with pytest.raises(PartyError, match="not a list of masked ids"):
        points_of(bytes(33))


def test_keyed_ids_can_not_be_found_without_the_key():
    one, other = keyed_ids(["a"], AGREEMENT, bytes(32)), keyed_ids(["a"], AGREEMENT, b"k" * 32)
    assert one != other
    assert one != keyed_ids(["a"], bytes(32), bytes(32))
