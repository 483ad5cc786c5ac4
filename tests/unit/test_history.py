"""What releases give away together, against exhaustive enumeration on small histories."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_republication import backward, cells, forward_and_cross, mappings
from shoal.jobs.republish.history import returning_people_of
from shoal.privacy.history.cells import narrower, unnested
from shoal.privacy.history.comparison import compare
from shoal.privacy.history.correspondence import backward as backward_by_counts
from shoal.privacy.history.correspondence import overlapping, shared_values
from shoal.privacy.history.mappings import Mappings
from shoal.privacy.history.people import KnownPeople
from shoal.privacy.history.release_view import CELLS, RecordHistory, ReleaseView
from shoal.privacy.history.signatures import too_frequent, values_shown

MOST = 8  # records of the second release: every mapping is enumerated


def view(release, records, labels, boxes, rest, subjects=None) -> ReleaseView:
    lo = np.array([[lo for lo, _ in box] for box in boxes], dtype=float)
    hi = np.array([[hi for _, hi in box] for box in boxes], dtype=float)
    labels, rest = np.array(labels, dtype=np.int32), np.array(rest, dtype=np.uint64)
    shown = values_shown(labels, rest, len(boxes))
    return ReleaseView(release, np.array(records), labels, lo, hi, rest, shown, subjects)


def at_least(k):
    return lambda labels, count: np.bincount(labels[labels >= 0], minlength=count) >= k


@st.composite
def two_releases(draw):
    """Records at places on a line, in two tables: the second holds all of the first. Boxes cover
    their records.
    """
    old, new = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    n = old + new
    place = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    rest = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    releases = []
    for size in (old, n):
        labels = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        labels = np.unique(labels, return_inverse=True)[1].tolist()
        boxes = []
        for c in range(max(labels) + 1):
            members = [place[i] for i in range(size) if labels[i] == c]
            boxes.append(
                ((min(members) - draw(st.integers(0, 1)), max(members) + draw(st.integers(0, 1))),)
            )
        releases.append((labels, boxes))
    return rest, releases


def rows(labels, boxes, rest):
    return [(label, boxes[label], value) for label, value in zip(labels, rest, strict=False)]


@settings(max_examples=60)
@given(two_releases())
def test_forward_and_cross_never_claim_more_than_every_mapping_shows(drawn):
    rest, ((labels1, boxes1), (labels2, boxes2)) = drawn
    first, second = rows(labels1, boxes1, rest), rows(labels2, boxes2, rest)
    assert any(True for _ in mappings(first, second)), "the truth is one of them"
    pairs = sorted({(a, b) for a, b in zip(labels1, labels2, strict=False)})
    values = np.array(rest, dtype=np.uint64)
    shared = shared_values(
        (np.array(labels1), values[: len(labels1)]), (np.array(labels2), values), np.array(pairs)
    )
    for (g1, g2), claimed in zip(pairs, shared.tolist(), strict=True):
        assert claimed >= forward_and_cross(first, second, g1, g2)


@settings(max_examples=60)
@given(two_releases())
def test_backward_never_claims_more_than_every_mapping_shows(drawn):
    rest, ((labels1, boxes1), (labels2, boxes2)) = drawn
    first, second = rows(labels1, boxes1, rest), rows(labels2, boxes2, rest)
    values = np.array(rest, dtype=np.uint64)
    one, two = (
        view(1, range(len(labels1)), labels1, boxes1, rest[: len(labels1)]),
        view(2, range(len(labels2)), labels2, boxes2, rest),
    )
    meeting = overlapping(one.lo, one.hi, two.lo, two.hi)
    classes = np.unique(labels2)
    cracked = backward_by_counts(
        (np.array(labels1), values[: len(labels1)]), (np.array(labels2), values), meeting, classes
    )
    for g2, claimed in zip(classes.tolist(), cracked.tolist(), strict=True):
        assert claimed <= backward(first, second, g2)


@settings(max_examples=60)
@given(two_releases())
def test_flows_say_exactly_what_every_mapping_shows(drawn):
    rest, ((labels1, boxes1), (labels2, boxes2)) = drawn
    first, second = rows(labels1, boxes1, rest), rows(labels2, boxes2, rest)
    values = np.array(rest, dtype=np.uint64)
    one = view(1, range(len(labels1)), labels1, boxes1, rest[: len(labels1)])
    two = view(2, range(len(labels2)), labels2, boxes2, rest)
    meeting = overlapping(one.lo, one.hi, two.lo, two.hi)
    flows = Mappings(
        (np.array(labels1), values[: len(labels1)]), (np.array(labels2), values), meeting
    )
    pairs, classes = np.array(sorted(set(zip(labels1, labels2, strict=False)))), np.unique(labels2)
    assert flows.most_shared(pairs).tolist() == [
        forward_and_cross(first, second, g1, g2) for g1, g2 in pairs.tolist()
    ]
    assert flows.fewest_old(classes).tolist() == [
        backward(first, second, g2) for g2 in classes.tolist()
    ]


def test_backward_claims_what_has_no_other_place():
    """Two old records of one value, and one place for that value outside the class: one of its two
    is old.
    """
    pairs = np.array([(0, 0), (0, 1)])
    first, second = (
        (np.zeros(2, int), np.zeros(2, np.uint64)),
        (
            np.array([0, 0, 1]),
            np.zeros(3, np.uint64),
        ),
    )
    assert backward_by_counts(first, second, pairs, np.array([0])).tolist() == [1]


@st.composite
def histories(draw):
    """Three releases of whole tables; records come and stay."""
    n, k = draw(st.integers(2, 12)), draw(st.integers(2, 3))
    arrives = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    assume(0 in arrives)
    tables = []
    for release in range(3):
        present = [i for i in range(n) if arrives[i] <= release]
        classes = draw(st.lists(st.integers(0, 2), min_size=len(present), max_size=len(present)))
        tables.append(dict(zip(present, classes, strict=True)))
    return tables, k


@given(histories())
def test_cells_are_those_of_exhaustive_enumeration(drawn):
    tables, k = drawn
    past, found = RecordHistory(), []
    for release, table in enumerate(tables, start=1):
        records = list(table)
        labels = np.unique(list(table.values()), return_inverse=True)[1].tolist()
        made = view(release, records, labels, [((0, 1),)] * (max(labels) + 1), [0] * len(records))
        if release == 1:
            past.append(made)
        else:
            found.append(compare(past, made, at_least(k), k, CELLS))
    for release in (2, 3):
        by_check = {finding.check: finding for finding in found[release - 2]}
        for check, span in (
            ("cells", tables[release - 2 : release]),
            ("all cells", tables[:release]),
        ):
            small = [members for members in cells(span).values() if len(members) < k]
            assert by_check[check].people == sum(map(len, small)), check
            assert by_check[check].more["cells"] == len(small)
            assert by_check[check].is_violation == bool(small)


@given(histories())
def test_who_leaves_is_counted_by_class(drawn):
    tables, k = drawn
    before, after = tables[2], {i: c for i, c in tables[2].items() if i % 2}
    assume(after)
    past = RecordHistory()
    for release, table in ((1, before), (2, after)):
        labels = np.unique(list(table.values()), return_inverse=True)[1].tolist()
        made = view(release, list(table), labels, [((0, 1),)] * (max(labels) + 1), [0] * len(table))
        if release == 1:
            past.append(made)
        else:
            found = {f.check: f for f in compare(past, made, at_least(k), k, CELLS)}
    gone: dict[int, int] = {}
    for i, c in before.items():
        gone[c] = gone.get(c, 0) + (i not in after)
    assert found["departures"].people == sum(many for many in gone.values() if many < k)


@pytest.mark.parametrize(
    ("old", "new", "is_narrower"),
    [
        ((0, 9), (0, 9), False),
        ((0, 9), (0, 8), True),
        ((0, 9), (1, 10), False),
        ((3, 3), (0, 9), False),
    ],
)
def test_a_later_span_leaks_if_it_is_a_proper_part(old, new, is_narrower):
    spans = [np.array([[float(end)]]) for end in (*old, *new)]
    assert narrower(*spans).tolist() == [[is_narrower]]


def test_classes_that_gather_several_earlier_ones_are_not_nested():
    assert unnested(np.array([0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1])) == 1


def test_rows_that_change_what_they_show_are_found():
    past = RecordHistory()
    past.append(view(1, range(4), [0] * 4, [((0, 9),)], [1, 2, 3, 4]))
    found = compare(
        past, view(2, range(4), [0] * 4, [((0, 9),)], [1, 2, 3, 5]), at_least(2), 2, "cells"
    )
    assert {f.check: (f.people, f.is_violation) for f in found}["unchanged"] == (1, True)


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_classes_show_the_sets_of_their_values(pairs):
    labels, values = (np.array(part) for part in zip(*pairs, strict=True))
    found = values_shown(labels, values.astype(np.uint64), 4)
    assert found == [frozenset(v for c, v in pairs if c == label) for label in range(4)]


def test_who_shows_fewer_values_in_common_than_m_is_found():
    """A class of three values, then two classes that share two of them with it, and one of them."""
    past = RecordHistory()
    past.append(view(1, range(6), [0] * 6, [((0, 9),)], [1, 1, 2, 2, 3, 3]))
    second = view(2, range(6), [0, 0, 0, 0, 1, 1], [((0, 9),)] * 2, [1, 1, 2, 2, 3, 3])
    found = {f.check: f for f in compare(past, second, at_least(2), 2, "signatures", 2)}
    assert (found["signatures"].people, found["signatures"].is_violation) == (2, True)


def test_no_value_has_more_than_one_row_in_m():
    labels, values = (
        np.array([0, 0, 1, 1, 1, 2, 2]),
        np.array([7, 8, 8, 7, 7, 7, 7], dtype=np.uint64),
    )
    assert too_frequent(labels, values, 3, 2).tolist() == [False, True, True]


@given(st.lists(st.lists(st.integers(0, 20), min_size=1, max_size=8), max_size=8))
def test_people_are_known_exactly_when_they_were_added(groups):
    known, seen = KnownPeople(), set()
    for group in groups:
        assert known.add_and_count_known(np.array(group, dtype=np.uint64)) == len(set(group) & seen)
        seen |= set(group)


@given(st.integers(0, 10_000))
def test_boxes_that_meet_are_those_that_a_double_loop_finds(seed):
    rng = np.random.default_rng(seed)
    ends = [np.sort(rng.integers(0, 6, (n, 2, 2)), axis=2).astype(float) for n in (4, 5)]
    (lo1, hi1), (lo2, hi2) = ((e[:, :, 0], e[:, :, 1]) for e in ends)
    found = {tuple(pair) for pair in overlapping(lo1, hi1, lo2, hi2).tolist()}
    wanted = {
        (i, j)
        for i in range(4)
        for j in range(5)
        if all(lo1[i, d] <= hi2[j, d] and lo2[j, d] <= hi1[i, d] for d in range(2))
    }
    assert found == wanted


@pytest.mark.parametrize("key", ["returning_people", "came_again"])
def test_people_who_returned_are_read_under_the_former_name_too(key):
    assert returning_people_of({"ledger": {key: 2}}) == 2
    assert returning_people_of({}) == 0
