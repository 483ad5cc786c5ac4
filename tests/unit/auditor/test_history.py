"""What releases give away together, against exhaustive enumeration on small histories."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_republication import backward, cells, forward_and_cross, mappings
from shoal.auditor.ledger import comparison
from shoal.auditor.ledger.comparison import (
    Mappings,
    compare,
    compare_boxes,
    narrower,
    shared_values,
    too_frequent,
    values_shown,
)
from shoal.auditor.ledger.history import returning_people_of
from shoal.auditor.ledger.release_view import (
    CELLS,
    SIGNATURES,
    RecordHistory,
    ReleaseView,
    numbered,
)
from shoal.connectors.ledger.private import KnownPeople

MOST = 8  # records of the second release: every mapping is enumerated


def view(release, records, labels, boxes, rest, subjects=None) -> ReleaseView:
    lo = np.array([[lo for lo, _ in box] for box in boxes], dtype=float)
    hi = np.array([[hi for _, hi in box] for box in boxes], dtype=float)
    labels, rest = np.array(labels, dtype=np.int32), np.array(rest, dtype=np.uint64)
    shown = values_shown(labels, rest, len(boxes))
    records, changed = np.array(records), np.zeros(len(labels), dtype=bool)
    people = records if subjects is None else subjects
    return ReleaseView(release, records, labels, lo, hi, rest, shown, changed, people)


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
    meeting = comparison.overlapping(one.lo, one.hi, two.lo, two.hi)
    classes = np.unique(labels2)
    cracked = comparison.backward(
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
    meeting = comparison.overlapping(one.lo, one.hi, two.lo, two.hi)
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
    assert comparison.backward(first, second, pairs, np.array([0])).tolist() == [1]


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
    assert comparison.unnested(np.array([0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1])) == 1


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
    assert found["signatures"].more == {"least": 1}


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
    found = {tuple(pair) for pair in comparison.overlapping(lo1, hi1, lo2, hi2).tolist()}
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


@st.composite
def described(draw):
    """Three tables of people who come, stay, leave and return: for each release, its records with
    person, class and value, and the boxes of its classes. A person may have several records.
    """
    n = draw(st.integers(2, 9))
    person = draw(st.lists(st.integers(10, 14), min_size=n, max_size=n))
    tables = []
    for _ in range(3):
        present = [i for i in range(n) if draw(st.integers(0, 3))]
        assume(present)
        classes = draw(st.lists(st.integers(0, 2), min_size=len(present), max_size=len(present)))
        values = draw(st.lists(st.integers(0, 2), min_size=len(present), max_size=len(present)))
        dense = {c: place for place, c in enumerate(sorted(set(classes)))}
        ends = st.tuples(st.integers(0, 3), st.integers(4, 7))
        boxes = [draw(st.tuples(ends, ends)) for _ in dense]
        tables.append((present, [dense[c] for c in classes], values, boxes))
    return person, tables


@pytest.mark.parametrize("guards", [CELLS, SIGNATURES])
@given(described(), st.integers(1, 3), st.booleans())
def test_every_check_counts_people_as_plain_loops_over_records_do(guards, drawn, k, shared):
    person, tables = drawn
    who = (lambda i: person[i]) if shared else (lambda i: i)
    past, in_common, last = RecordHistory(), {}, {}
    for release, (records, labels, values, boxes) in enumerate(tables, start=1):
        subjects = np.array([person[i] for i in records], dtype=np.uint64) if shared else None
        made = view(release, records, labels, boxes, values, subjects)
        now = dict(zip(records, zip(labels, values, strict=True), strict=True))
        shown = [{v for c, v in now.values() if c == which} for which in range(len(boxes))]
        for i, (c, _) in now.items():
            in_common[i] = in_common.get(i, {0, 1, 2}) & shown[c]
        before = last
        last = {i: (boxes[c], c, v) for i, (c, v) in now.items()}
        if release == 1:
            past.append(made)
            continue
        found = {f.check: f for f in compare(past, made, at_least(k), k, guards, least=2)}

        bare = {i for i in now if len(in_common[i]) < 2}
        assert found["signatures"].people == len({who(i) for i in bare})
        assert found["signatures"].is_violation == (bool(bare) and guards == SIGNATURES)
        assert found["signatures"].releases == (1, release)
        assert found["signatures"].more["least"] == min(len(in_common[i]) for i in now)

        gone: dict[int, set[int]] = {}
        for i in before.keys() - now.keys():
            gone.setdefault(before[i][1], set()).add(who(i))
        few = [people for people in gone.values() if len(people) < k]
        assert found["departures"].people == len(set().union(*few))
        assert found["departures"].more["cells"] == len(few)
        assert found["departures"].is_violation == (bool(few) and guards == CELLS)
        assert found["departures"].releases == (release - 1, release)

        stayed = now.keys() & before.keys()
        narrowed = {
            (i, d)
            for i in stayed
            for d in range(2)
            if before[i][0][d] != last[i][0][d]
            and before[i][0][d][0] <= last[i][0][d][0]
            and last[i][0][d][1] <= before[i][0][d][1]
        }
        leaking = {i for i, _ in narrowed}
        assert found["specificity"].people == len({who(i) for i in leaking})
        assert found["specificity"].more == {"cells": len(narrowed), "records": len(leaking)}
        assert found["specificity"].is_violation == (bool(leaking) and guards == CELLS)

        altered = {i for i in stayed if before[i][2] != now[i][1]}
        assert found["unchanged"].people == len({who(i) for i in altered})
        assert found["unchanged"].is_violation == bool(altered)

        origins = [{before[i][1] for i in stayed if now[i][0] == c} for c in range(len(boxes))]
        assert found["nestedness"].more == {"classes": sum(len(o) > 1 for o in origins)}
        assert not found["nestedness"].is_violation


@given(two_releases(), st.integers(1, 3), st.booleans())
def test_what_releases_correspond_in_is_counted_exactly_while_everybody_stays(drawn, k, is_exact):
    """Counts, as of large releases, never report more than the exact figure of small ones."""
    rest, ((labels1, boxes1), (labels2, boxes2)) = drawn
    first, second = rows(labels1, boxes1, rest), rows(labels2, boxes2, rest)
    past = RecordHistory()
    past.append(view(1, range(len(labels1)), labels1, boxes1, rest[: len(labels1)]))
    made = view(2, range(len(labels2)), labels2, boxes2, rest)
    with pytest.MonkeyPatch.context() as patch:
        if not is_exact:
            patch.setattr(comparison, "MOST_EXACT", 0)
        found = {f.check: f for f in compare(past, made, at_least(k), k, CELLS)}
    shared = [
        forward_and_cross(first, second, a, b) for a, b in zip(labels1, labels2, strict=False)
    ]
    cracked = [
        sum(c == label for c in labels2) - backward(first, second, label)
        for label in labels2[len(labels1) :]
    ]
    for check, exactly in (
        ("forward and cross", sum(number < k for number in shared)),
        ("backward", sum(number < k for number in cracked)),
    ):
        assert found[check].more["exact"] == is_exact
        assert found[check].people == exactly or (not is_exact and found[check].people < exactly)
        assert found[check].is_violation == (found[check].people > 0)
        assert found[check].releases == (1, 2)


def test_updates_may_change_what_they_show_and_are_no_mapping():
    past = RecordHistory()
    past.append(view(1, range(4), [0] * 4, [((0, 9),)], [1, 1, 2, 2]))
    second = view(2, range(4), [0] * 4, [((0, 9),)], [1, 3, 2, 2])
    second = replace(second, changed=np.array([False, True, False, False]))
    found = {f.check: f for f in compare(past, second, at_least(2), 2, CELLS)}
    assert (found["unchanged"].people, found["unchanged"].is_violation) == (0, False)
    assert not found["backward"].more["exact"]


@given(two_releases(), st.integers(1, 3))
def test_boxes_that_share_few_rows_are_found_without_knowing_who_is_who(drawn, k):
    rest, ((labels1, boxes1), (labels2, boxes2)) = drawn
    past = RecordHistory()
    past.append(view(1, range(len(labels1)), labels1, boxes1, rest[: len(labels1)]))
    start = len(labels1)
    made = view(2, range(start, start + len(labels2)), labels2, boxes2, rest)
    (finding,) = compare_boxes(past, made, k)
    shared = [
        sum(
            min(
                sum(c == a and v == value for c, v in zip(labels1, rest, strict=False)),
                sum(c == b and v == value for c, v in zip(labels2, rest, strict=True)),
            )
            for value in set(rest)
        )
        for a, (old,) in enumerate(boxes1)
        for b, (new,) in enumerate(boxes2)
        if old[0] <= new[1] and new[0] <= old[1]
    ]
    few = [number for number in shared if 0 < number < k]
    assert (finding.people, finding.more) == (sum(few), {"pairs": len(few)})
    assert finding.is_violation == bool(few)
    assert finding.releases == (1, 2)


@given(st.lists(st.tuples(st.integers(-1, 2), st.integers(-1, 2)), min_size=1, max_size=12))
def test_groups_of_equal_keys_get_numbers_of_their_own(pairs):
    """Three keys of 31 bits do not fit one of 64: numbers are made dense on the way."""
    wide = np.array(pairs, dtype=np.int64) * (2**30)
    keys = (wide[:, 0], wide[:, 1], wide[:, 0])
    number, count = numbered(*keys)
    assert count == len(set(pairs)) == len(np.unique(number))
    assert len(set(zip(pairs, number.tolist(), strict=True))) == count


def test_texts_for_no_value_are_one_value_that_classes_have_in_common():
    """Both of a record's classes show 0, 1 and 2; where 0 and 1 stand for none, two values."""
    for no_value, values in ((frozenset(), 3), (frozenset({0, 1}), 2), (frozenset({1}), 3)):
        past = RecordHistory()
        rest = [0, 1, 2]
        first, second = (
            replace(view(r, [0, 1, 2], [0] * 3, [[(0, 1)]], rest), no_value=no_value)
            for r in (1, 2)
        )
        past.append(first)
        assert past.narrow(second, second.kept).tolist() == [values] * 3
