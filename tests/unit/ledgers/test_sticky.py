"""Sticky groups: who is published again, with whom, and what all releases give away together."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_republication as naive
from shoal.auditor.ledger.history import PeopleHistory
from shoal.data.ledger_view import CARRIED, CLOSED, LOCKSTEP, RETIRED, TOGETHER, LedgerView, Panel
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.ledgers.methods.sticky import Sticky, in_company
from shoal.ledgers.planned_release import partition_table
from shoal.testing import OnlyK
from sticky_cases import simulated
from thorough import examples

MODES = (LOCKSTEP, TOGETHER, CARRIED)


def bits(*rounds: set[int]) -> np.ndarray:
    return np.array([[sum(1 << (r - 1) for r in own)] for own in rounds], dtype=np.uint64)


def published(mode, group, here, rounds=None, silent=None, codes=None, carried=(), **options):
    """One release of a panel of one group number a person; here: who has a record."""
    group = np.array(group, dtype=np.int32)
    groups = int(group.max()) + 1
    panel = Panel(
        mode,
        group,
        np.zeros(len(group), dtype=np.int8),
        bits(*({1} for _ in group)) if rounds is None else rounds,
        np.array(silent or [0] * groups, dtype=np.int32),
        np.full(groups, 0.1),
    )
    person = np.array([*here, *carried], dtype=np.int32)
    values = np.array([0] * len(person) if codes is None else codes)
    matrix = Matrix.from_columns(values[:, None], [100.0])
    view = LedgerView(
        panel=panel,
        person=person,
        is_carried=np.arange(len(person)) >= len(here),
        partition=partition_table,
    )
    return Sticky(**options).publish(matrix, view, OnlyK(matrix, 3), np.random.default_rng(0))


# The worked example: 1, 2, 3 were in release 1, and 4, 5, 6 in releases 1 and 2; k = 3

EXAMPLE = [{1}, {1}, {1}, {1, 2}, {1, 2}, {1, 2}]


def test_of_six_five_keep_company_and_of_four_one_after_the_other_drops():
    """4 and 5 are only two who were in both releases; then 1 and 2 are only two."""
    group, rounds = [0] * 6, bits(*EXAMPLE)
    assert published(TOGETHER, group, [0, 1, 3, 4, 5], rounds=rounds).count == 1
    assert published(TOGETHER, group, [0, 1, 3, 4], rounds=rounds).count == 0


@given(st.lists(st.sets(st.integers(1, 4)), min_size=1, max_size=8), st.integers(2, 4))
def test_company_is_the_greatest_set_that_keeps_it(rounds, k):
    found = in_company(bits(*rounds), k)
    assert set(np.flatnonzero(found).tolist()) == naive.in_company(rounds, k)


# Lockstep, k = 3


def test_a_whole_group_is_published_and_an_incomplete_one_waits():
    placed = published(LOCKSTEP, [0] * 4 + [1] * 4, [0, 1, 2, 3, 4, 5, 6])
    assert placed.labels.tolist() == [0, 0, 0, 0, -1, -1, -1]
    assert placed.panel.after.silent.tolist() == [0, 1]
    assert not placed.panel.after.status.any()


def test_whoever_is_left_behind_leaves_with_k_people():
    """One of seven is absent: two of the six leave with it, those farthest from the median."""
    codes = [5, 5, 5, 90, 6, 1]
    placed = published(LOCKSTEP, [0] * 7, range(6), silent=[2], codes=codes)
    assert placed.labels.tolist() == [0, 0, 0, -1, 0, -1]
    assert placed.panel.after.status.tolist() == [0, 0, 0, RETIRED, 0, RETIRED, RETIRED]


def test_a_group_too_small_to_part_is_closed():
    placed = published(LOCKSTEP, [0] * 5, range(4), silent=[2])
    assert placed.count == 0
    assert placed.panel.after.status.tolist() == [CLOSED] * 5


# Carried


def test_the_absent_are_shown_where_k_people_are_here():
    placed = published(CARRIED, [0] * 5, [0, 1, 2], carried=[3, 4])
    assert placed.labels.tolist() == [0] * 5
    assert published(CARRIED, [0] * 5, [0, 1], carried=[2, 3, 4]).count == 0


# New groups


@pytest.mark.parametrize(("mode", "size"), [(LOCKSTEP, 6), (TOGETHER, 6), (CARRIED, 5)])
def test_newcomers_wait_for_a_group_of_the_default_size(mode, size):
    none = Panel(mode)
    for people, count in ((size - 1, 0), (size, 1)):
        matrix = Matrix.from_columns(np.arange(people)[:, None], [100.0])
        person = np.full(people, -1, dtype=np.int32)
        view = LedgerView(
            panel=none,
            person=person,
            is_carried=np.zeros(people, dtype=bool),
            partition=partition_table,
        )
        placed = Sticky().publish(matrix, view, OnlyK(matrix, 3), np.random.default_rng(0))
        assert (placed.count, placed.panel.after.groups) == (count, count)


def test_a_size_below_k_is_refused():
    with pytest.raises(InputError, match="'size' is 2, and a class needs 3 people"):
        Sticky(size=2).size_for(LOCKSTEP, 3)


def test_a_group_that_drifted_apart_parts_for_good():
    codes = [1, 1, 2, 80, 81, 82]
    whole = published(LOCKSTEP, [0] * 6, range(6), codes=codes)
    assert whole.labels.tolist() == [0] * 6
    parted = published(LOCKSTEP, [0] * 6, range(6), codes=codes, split=2.0)
    assert parted.labels.tolist() == [0, 0, 0, 1, 1, 1]
    assert parted.panel.after.group.tolist() == [0, 0, 0, 1, 1, 1]


# The theorem's condition, by brute force


@settings(max_examples=examples(100, 5000))
@given(st.integers(0, 1 << 30), st.sampled_from(MODES), st.integers(2, 3))
def test_every_history_or_company_is_of_k_people(seed, mode, k):
    rng = np.random.default_rng(seed)
    people, increments = int(rng.integers(6, 22)), int(rng.integers(2, 7))
    present = rng.random((increments, people)) < rng.uniform(0.5, 1.0)
    codes = rng.integers(0, 100, (increments, people))
    method = Sticky(
        size=int(rng.integers(k, 3 * k)),
        patience=int(rng.integers(0, 3)),
        split=float(rng.choice([0.0, 1.1])),
    )
    releases = simulated(method, mode, k, present, codes)
    for number in range(1, len(releases) + 1):
        least = naive.least_company if mode == TOGETHER else naive.least_atom
        assert least(releases[:number]) >= k, (seed, number)


@given(st.integers(0, 1 << 30), st.integers(2, 3))
def test_the_audit_counts_as_the_twin_does(seed, k):
    """On any history, most of which nobody should publish."""
    rng = np.random.default_rng(seed)
    people, releases = int(rng.integers(1, 10)), int(rng.integers(1, 5))
    history = PeopleHistory()
    published = []
    for _ in range(releases):
        here = np.flatnonzero(rng.random(people) < 0.7)
        labels = rng.integers(0, 2, len(here)).astype(np.int32)
        history.take(here.astype(np.uint64), labels)
        published.append(dict(zip(here.tolist(), labels.tolist(), strict=True)))
    atoms, company = history.findings(releases, k, "company")
    assert atoms.more["least"] == naive.least_atom(published)
    assert company.more["least"] == naive.least_company(published)
    assert company.is_violation == (0 < company.more["least"] < k)
