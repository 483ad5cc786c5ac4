"""Days from which moved anchors are drawn, so that one known date tells nobody apart."""

from datetime import date, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.auditor.linked.known_dates import KnownDates
from shoal.auditor.linked.reading import read_linked_tables
from shoal.data.linked import ANCHOR, PEOPLE
from shoal.linked.templates import hulls_of
from shoal.policy.binding.linked import bound_linked, read_linked, read_linked_release
from shoal.policy.problem import LinkedProblem

FIRST = date(2021, 3, 1)
VISITS = {"parent": {"people": "patient"}, "attributes": {"day": {"role": "quasi", "type": "date"}}}
POLICY = content_of(
    {"patient": "subject"},
    tables={"visits": VISITS},
    anchor={"first": "visits.day", "gaps": "exact"},
    assume=["one-date-known"],
)
PROBLEM = LinkedProblem(shoal.Policy.from_dict(POLICY))


def visits_of(people, named):
    rows = [(named(i), str(FIRST + timedelta(day))) for i, own in enumerate(people) for day in own]
    return pl.DataFrame(rows, ["patient", "day"], orient="row")


def tables_of(people):
    """people: the days of each, from the first of March 2021."""
    frames = {
        "people": pl.DataFrame({"patient": [f"p{i}" for i in range(len(people))]}),
        "visits": visits_of(people, "p{}".format),
    }
    return bound_linked(read_linked(frames, PROBLEM).tables, PROBLEM)


def in_one_class(tables):
    """Everybody in one class, the j-th row of each in slot j."""
    starts = tables.rows["visits"].starts
    order = np.arange(int(starts[-1])) - np.repeat(starts[:-1], np.diff(starts))
    least = int(np.diff(starts).min())
    return {
        PEOPLE: np.zeros(tables.people.count, np.int64),
        "visits": np.where(order < least, order, -1),
    }


def fitting(people, lo, hi):
    """By date and slot, whose row fits: all of them tried."""
    least = min(map(len, people))
    gaps = [[day - min(days) for day in days[:least]] for days in people]
    return {
        (known, slot): [i for i, own in enumerate(gaps) if lo <= known - own[slot] <= hi]
        for known in {day for days in people for day in days}
        for slot in range(least)
    }


def test_the_worked_example_needs_days_before_and_behind_the_anchors():
    """A on 1 and 31 March, B on 11 March and 14 April: 31 March is A's alone, 14 April B's."""
    people = [[0, 30], [10, 44]]
    tight, wide = fitting(people, 0, 10), fitting(people, -4, 14)
    assert {known: fits for (known, slot), fits in tight.items() if slot == (known > 10)} == {
        0: [0, 1],
        30: [0],
        10: [0, 1],
        44: [1],
    }
    assert all(len(fits) in (0, 2) for fits in wide.values())
    audit = audited(people, 0, 10)
    assert sorted(map(tuple, audit.tolist())) == [(1, 1), (1, 1), (2, 1), (2, 1)]
    assert set(map(tuple, audited(people, -4, 14).tolist())) == {(2, 1)}


def audited(people, lo, hi):
    """What the auditor finds of a release whose anchors are drawn from these days."""
    tables = tables_of(people)
    gaps = [[day - min(days) for day in days] for days in people]
    hull = f"[{FIRST + timedelta(lo)}, {FIRST + timedelta(hi)}]"
    shown = {"anchor.day": str(FIRST), "anchor.hull": hull, "visits.rows": "2"}
    numbers = pl.DataFrame({"patient": [str(i + 1) for i in range(len(people))]})
    release = {
        "people": numbers.with_columns(pl.lit(cell).alias(name) for name, cell in shown.items()),
        "visits": visits_of(gaps, lambda i: str(i + 1)),
    }
    schemas = {table.name: table.schema for table in tables.tree.tables}
    read = read_linked_tables(read_linked_release(release, PROBLEM).tables, PROBLEM, schemas)
    return KnownDates(read, tables).of_everybody(np.arange(len(people)))


@given(
    st.lists(st.lists(st.integers(0, 40), min_size=1, max_size=3), min_size=2, max_size=7),
    st.integers(2, 3),
)
def test_days_hold_exactly_if_no_date_fits_few_people_in_a_slot(people, k):
    people = [sorted(days) for days in people]
    tables = tables_of(people)
    hulls = hulls_of(tables, in_one_class(tables), k)
    lo, hi = (int(end[0]) - FIRST.toordinal() for end in (hulls.first, hulls.last))
    anchors = [min(days) for days in people]
    ends = [day for days in people for day in days]
    assert min(ends) <= lo <= min(anchors) <= max(anchors) <= hi <= max(ends)
    holds = all(len(fits) == 0 or len(fits) >= k for fits in fitting(people, lo, hi).values())
    assert bool(hulls.holds[0]) == holds
    narrow = fitting(people, min(anchors), max(anchors)).values()
    if all(len(fits) == 0 or len(fits) >= k for fits in narrow):
        assert (lo, hi) == (min(anchors), max(anchors))


def test_days_are_widened_only_as_far_as_the_study_goes():
    people = [[0, 30], [10, 44], [1, 25], [9, 60]]
    tables = tables_of(people)
    assert len(np.unique(tables.people.true_values[ANCHOR])) == 4
    hulls = hulls_of(tables, in_one_class(tables), 2)
    first, last = (int(end[0]) - FIRST.toordinal() for end in (hulls.first, hulls.last))
    assert first == 0
    assert last <= 60


@pytest.mark.parametrize("k", [2, 3])
def test_covered_gaps_need_no_days_but_the_anchors(k):
    covered = {**POLICY, "anchor": {"first": "visits.day"}, "assume": []}
    problem = LinkedProblem(shoal.Policy.from_dict(covered))
    frames = {
        "people": pl.DataFrame({"patient": ["a", "b"]}),
        "visits": pl.DataFrame({"patient": ["a", "b"], "day": ["2021-03-01", "2021-03-11"]}),
    }
    tables = bound_linked(read_linked(frames, problem).tables, problem)
    hulls = hulls_of(tables, in_one_class(tables), k)
    assert hulls.holds.all()
    assert (hulls.last - hulls.first).tolist() == [10]
