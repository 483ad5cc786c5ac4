"""Large tables under t-closeness: twins, dealing beside a naive one, and cutting for k first."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from peer_cases import hierarchy_of
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.partition import Matrix, Partition
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.privacy.t_closeness import TCloseness
from shoal.search.segments import costs_of, loss_of
from shoal.tables import twins
from shoal.tables.kernels.deal import deal
from shoal.tables.methods import tcloseness
from shoal.tables.methods.tcloseness import TClosenessByExchange

TREE = hierarchy_of([[None] * 3, [None] * 3, [None] * 3])
OURS = TClosenessByExchange(aim="spans")


def bound(
    n: int, seed: int, t: float, distance: str, values: int = 4, has_tree=False, people=None
) -> tuple[Matrix, BoundPromises]:
    """A table whose sensitive value follows from its quasi-identifiers but for chance."""
    rng = np.random.default_rng(seed)
    codes = rng.integers(0, 9, (n, 3))
    value = (codes[:, 0] + rng.integers(0, values, n)) * values // (9 + values)
    column = SensitiveColumn("s", value.astype(np.int32), values, distance)
    matrix = Matrix.from_columns(codes, [8.0, TREE if has_tree else 8.0, 8.0], people)
    everybody = Classes(np.zeros(n, np.int32), 1, matrix.subjects, {"s": column})
    return matrix, BoundPromises([KAnonymity(3), TCloseness(("s",), t)], everybody)


def with_twins_above(patch: pytest.MonkeyPatch, records: int, units: int, left: int) -> None:
    patch.setattr(twins, "ASKED_RECORDS", records)
    patch.setattr(twins, "UNITS", units)
    patch.setattr(twins, "MOST_LEFT", left)


def partition(matrix: Matrix, promises: BoundPromises) -> Partition:
    found = OURS.partition(matrix, promises, np.random.default_rng(0))
    assert (found.labels >= 0).all()
    assert promises.holds(found.labels, found.count).all()
    return found


@given(st.integers(1, 4), st.integers(2, 7), st.lists(st.integers(1, 3), min_size=1), st.data())
@settings(max_examples=60)
def test_each_class_is_dealt_as_many_records_of_each_stratum(families, shares, amounts, data):
    of_family = [data.draw(st.permutations(amounts)) for _ in range(families)]
    size, n = sum(amounts), families * sum(amounts) * shares
    column = st.lists(st.integers(0, 5), min_size=n, max_size=n)
    codes = np.array([data.draw(column) for _ in range(2)], dtype=np.int32)
    matrix = Matrix.from_columns(codes.T, [8.0, 8.0])  # so that losses are exact
    members = np.random.default_rng(0).permutation(n)
    before = members.copy()
    starts = np.arange(families + 1) * size * shares
    strata = np.arange(families + 1) * len(amounts)
    flat = np.array([amount for family in of_family for amount in family])
    deal(codes, costs_of(matrix), members, starts, strata, flat, shares)
    at = 0
    for family in of_family:
        stratum = {}
        for number, amount in enumerate(family):
            for record in before[at : at + amount * shares]:
                stratum[int(record)] = number
            at += amount * shares
        run = members[at - size * shares : at]
        assert sorted(run) == sorted(stratum)
        for dealt in run.reshape(shares, size):
            assert Counter(stratum[int(r)] for r in dealt) == dict(enumerate(family))
    if families == 1:
        dealt = [sorted(map(int, one)) for one in members.reshape(shares, size)]
        assert dealt == naive_deal(codes, before, of_family[0], shares)


def naive_deal(codes, members, amounts, shares):
    """The classes of one family, each as its records in ascending order."""

    def halved(strata: list[list[int]], classes: int) -> list[list[int]]:
        if classes == 1:
            return [sorted(r for stratum in strata for r in stratum)]
        low = classes // 2
        found = []
        for j in range(len(codes)):
            ordered = [sorted(stratum, key=lambda r: codes[j][r]) for stratum in strata]
            ends = [len(stratum) // classes * low for stratum in strata]
            sides = (
                [one[:end] for one, end in zip(ordered, ends, strict=True)],
                [one[end:] for one, end in zip(ordered, ends, strict=True)],
            )
            found.append((sum(map(loss, sides)), j, sides))
        _, _, (left, right) = min(found, key=lambda one: one[:2])
        return halved(left, low) + halved(right, classes - low)

    def loss(side: list[list[int]]) -> float:
        rows = [r for stratum in side for r in stratum]
        return len(rows) * sum(float(np.ptp(column[rows])) / 8 for column in codes)

    strata, at = [], 0
    for amount in amounts:
        strata.append([int(r) for r in members[at : at + amount * shares]])
        at += amount * shares
    return halved(strata, shares)


@given(st.integers(0, 99), st.sampled_from([0.2, 0.4]), st.booleans())
@settings(max_examples=20)
def test_twins_keep_every_promise_and_record(seed, t, has_tree):
    matrix, promises = bound(400, seed, t, "equal", has_tree=has_tree)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(twins, "UNITS", 130)
        found = twins.by_twins(matrix, promises, np.random.default_rng(seed), partition)
    assert (found.labels >= 0).all()
    assert promises.holds(found.labels, found.count).all()


@pytest.mark.long
@pytest.mark.parametrize(("distance", "t"), [("equal", 0.3), ("ordered", 0.25), ("ordered", 0.6)])
def test_a_large_table_loses_no_more_and_is_the_same_again(monkeypatch, distance, t):
    matrix, promises = bound(3000, 5, t, distance)
    plainly = partition(matrix, promises)
    with_twins_above(monkeypatch, 2_000, 1_000, 10)
    found, again = (partition(matrix, promises) for _ in range(2))
    assert loss_of(matrix, found) <= 1.15 * loss_of(matrix, plainly)
    assert (found.labels == again.labels).all()


@pytest.mark.parametrize("distance", ["equal", "ordered"])
@pytest.mark.parametrize("together", [False, True], ids=["apart", "together"])
def test_people_with_several_records_are_searched_as_large_tables_are(
    monkeypatch, distance, together
):
    """Equal quasi-identifiers of one person may leave too many classes with too few people."""
    people = np.random.default_rng(0).integers(0, 1500, 3000)
    people = np.unique(np.sort(people) if together else people, return_inverse=True)[1]
    matrix, promises = bound(3000, 5, 0.4, distance, people=people)
    if together:
        first = np.searchsorted(people, people)
        matrix = replace(matrix, codes=np.ascontiguousarray(matrix.codes[first]))
    with_twins_above(monkeypatch, 2_000, 1_000, 10)
    searched, whole = [], TClosenessByExchange._exchanged

    def exchanged(self, part, *more, **brief):
        searched.append(part.records)
        return whole(self, part, *more, **brief)

    monkeypatch.setattr(TClosenessByExchange, "_exchanged", exchanged)
    partition(matrix, promises)
    assert together or 3000 not in searched


def test_what_has_twins(monkeypatch):
    with_twins_above(monkeypatch, 100, 50, 20)
    assert twins.has_twins(*bound(400, 0, 0.3, "equal"))
    assert not twins.has_twins(*bound(100, 0, 0.3, "equal"))  # small
    assert not twins.has_twins(*bound(400, 0, 0.3, "ordered"))
    assert not twins.has_twins(*bound(400, 0, 0.3, "equal", values=200))  # too many are left
    matrix, promises = bound(400, 0, 0.3, "equal")
    several = Matrix.from_columns(matrix.codes, [8.0] * 3, np.arange(400) // 2)
    assert twins.has_twins(several, promises)


def test_a_table_that_is_cut_for_k_first_needs_few_repairs(monkeypatch):
    monkeypatch.setattr(twins, "ASKED_RECORDS", 100)
    matrix, promises = bound(1000, 1, 0.9, "ordered")
    searched = []
    monkeypatch.setattr(tcloseness.TClosenessByExchange, "_exchanged", searched.append)
    found = partition(matrix, promises)
    assert not searched  # nothing was spread over the values
    assert found.count > 1000 // 3 * 0.9
