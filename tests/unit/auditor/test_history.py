"""What releases give away together, against exhaustive enumeration on small histories."""

from collections import Counter
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
    shared_values,
    too_frequent,
    values_shown,
)
from shoal.auditor.ledger.history import returning_people_of
from shoal.auditor.ledger.release_view import CELLS, SIGNATURES, RecordHistory, ReleaseView
from shoal.connectors.ledger.private import KnownPeople


def view(release, records, labels, boxes, rest, subjects=None, **more) -> ReleaseView:
    lo = np.array([[lo for lo, _ in box] for box in boxes], dtype=float)
    hi = np.array([[hi for _, hi in box] for box in boxes], dtype=float)
    labels, rest = np.array(labels, dtype=np.int32), np.array(rest, dtype=np.uint64)
    shown = values_shown(labels, rest, len(boxes))
    records, changed = np.array(records), np.zeros(len(labels), dtype=bool)
    people = records if subjects is None else subjects
    made = ReleaseView(release, records, labels, lo, hi, rest, shown, changed, people)
    return replace(made, **more)


def alike(release, rest, **more) -> ReleaseView:
    """A release of one class that shows these values, a record each."""
    return view(release, range(len(rest)), [0] * len(rest), [((0, 9),)], rest, **more)


def found_by(past, made, k, guards=CELLS, least=1):
    """The findings by their checks. past: a history, or the only release before."""
    if isinstance(past, ReleaseView):
        past, first = RecordHistory(), past
        past.append(first)
    return {one.check: one for one in compare(past, made, at_least(k), k, guards, least)}


def at_least(k):
    return lambda labels, count: np.bincount(labels[labels >= 0], minlength=count) >= k


@st.composite
def two_releases(draw):
    """Two tables of records at places on a line; the second holds all of the first. Boxes cover
    their records. The releases of both, and their rows as the enumeration takes them.
    """
    old, new = draw(st.integers(1, 5)), draw(st.integers(0, 3))
    n = old + new
    place = draw(st.lists(st.integers(0, 5), min_size=n, max_size=n))
    rest = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    views, plain = [], []
    for release, size in enumerate((old, n), start=1):
        labels = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
        labels = np.unique(labels, return_inverse=True)[1].tolist()
        boxes = []
        for c in range(max(labels) + 1):
            members = [place[i] for i in range(size) if labels[i] == c]
            low, high = draw(st.integers(0, 1)), draw(st.integers(0, 1))
            boxes.append(((min(members) - low, max(members) + high),))
        views.append(view(release, range(size), labels, boxes, rest[:size]))
        plain.append([(c, boxes[c], value) for c, value in zip(labels, rest, strict=False)])
    return views, plain


@settings(max_examples=60)
@given(two_releases())
def test_flows_say_exactly_what_every_mapping_shows_and_counts_never_claim_more(drawn):
    (one, two), (first, second) = drawn
    assert any(True for _ in mappings(first, second)), "the truth is one of them"
    shown = (one.labels, one.rest), (two.labels, two.rest)
    meeting = comparison.overlapping(one.lo, one.hi, two.lo, two.hi)
    flows = Mappings(*shown, meeting)
    pairs = sorted({*zip(one.labels.tolist(), two.labels.tolist(), strict=False)})
    shared = [forward_and_cross(first, second, *pair) for pair in pairs]
    assert flows.most_shared(np.array(pairs)).tolist() == shared
    assert (shared_values(*shown, np.array(pairs)) >= shared).all()
    classes = np.unique(two.labels)
    cracked = [backward(first, second, label) for label in classes.tolist()]
    assert flows.fewest_old(classes).tolist() == cracked
    assert (comparison.backward(*shown, meeting, classes) <= cracked).all()


def test_backward_claims_what_has_no_other_place():
    """Two old records of one value, and one place for that value outside the class: one of its two
    is old.
    """
    pairs = np.array([(0, 0), (0, 1)])
    first = np.zeros(2, int), np.zeros(2, np.uint64)
    second = np.array([0, 0, 1]), np.zeros(3, np.uint64)
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


def of_table(release, table):
    """A release of records by their class, all in one box."""
    labels = np.unique(list(table.values()), return_inverse=True)[1].tolist()
    boxes = [((0, 1),)] * (max(labels) + 1)
    return view(release, list(table), labels, boxes, [0] * len(table))


@given(histories())
def test_cells_are_those_of_exhaustive_enumeration(drawn):
    tables, k = drawn
    past = RecordHistory()
    past.append(of_table(1, tables[0]))
    for release in (2, 3):
        found = found_by(past, of_table(release, tables[release - 1]), k)
        for check, span in (
            ("cells", tables[release - 2 : release]),
            ("all cells", tables[:release]),
        ):
            small = [members for members in cells(span).values() if len(members) < k]
            assert found[check].people == sum(map(len, small)), check
            assert found[check].more["cells"] == len(small)
            assert found[check].is_violation == bool(small)


def test_updates_may_change_what_they_show_and_are_no_mapping():
    updated = alike(2, [1, 3, 2, 2], changed=np.array([False, True, False, False]))
    found = found_by(alike(1, [1, 1, 2, 2]), updated, 2)
    assert (found["unchanged"].people, found["unchanged"].is_violation) == (0, False)
    assert not found["backward"].more["exact"]


@given(st.lists(st.tuples(st.integers(-1, 3), st.integers(0, 3)), min_size=1, max_size=20))
def test_classes_show_the_sets_of_their_values(pairs):
    labels, values = (np.array(part) for part in zip(*pairs, strict=True))
    found = values_shown(labels, values.astype(np.uint64), 4)
    assert found == [frozenset(v for c, v in pairs if c == label) for label in range(4)]


def test_no_value_has_more_than_one_row_in_m():
    values = np.array([7, 8, 8, 7, 7, 7, 7], dtype=np.uint64)
    found = too_frequent(np.array([0, 0, 1, 1, 1, 2, 2]), values, 3, 2)
    assert found.tolist() == [False, True, True]


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
        found = found_by(past, made, k, guards, 2)

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
    (one, two), (first, second) = drawn
    with pytest.MonkeyPatch.context() as patch:
        if not is_exact:
            patch.setattr(comparison, "MOST_EXACT", 0)
        found = found_by(one, two, k)
    old, new = one.labels.tolist(), two.labels.tolist()
    shared = [forward_and_cross(first, second, a, b) for a, b in zip(old, new, strict=False)]
    cracked = [new.count(c) - backward(first, second, c) for c in new[len(old) :]]
    for check, numbers in (("forward and cross", shared), ("backward", cracked)):
        exactly = sum(number < k for number in numbers)
        assert found[check].more["exact"] == is_exact
        assert found[check].people == exactly or (not is_exact and found[check].people < exactly)
        assert found[check].is_violation == (found[check].people > 0)
        assert found[check].releases == (1, 2)


@given(two_releases(), st.integers(1, 3))
def test_boxes_that_share_few_rows_are_found_without_knowing_who_is_who(drawn, k):
    (one, two), (first, second) = drawn
    past = RecordHistory()
    past.append(one)
    (finding,) = compare_boxes(past, replace(two, records=two.records + len(first)), k, CELLS)
    shared, among_few = [], set()
    for old, (low1, high1) in {(c, box) for c, (box,), _ in first}:
        for new, (low2, high2) in {(c, box) for c, (box,), _ in second}:
            if low1 <= high2 and low2 <= high1:
                counts = [
                    Counter(value for label, _, value in rows if label == c)
                    for rows, c in ((first, old), (second, new))
                ]
                shared.append((counts[0] & counts[1]).total())
                among_few |= {new} if 0 < shared[-1] < k else set()
    few = [number for number in shared if 0 < number < k]
    rows = sum(label in among_few for label, _, _ in second)
    assert (finding.people, finding.more) == (rows, {"pairs": len(few)})
    assert finding.is_violation == bool(few)
    assert finding.releases == (1, 2)


def test_texts_for_no_value_are_one_value_that_classes_have_in_common():
    """Both of a record's classes show 0, 1 and 2; where 0 and 1 stand for none, two values."""
    for no_value, values in ((frozenset(), 3), (frozenset({0, 1}), 2), (frozenset({1}), 3)):
        first, second = (alike(release, [0, 1, 2], no_value=no_value) for release in (1, 2))
        past = RecordHistory()
        past.append(first)
        assert past.narrow(second, second.kept).tolist() == [values] * 3
