"""Subject share: how much of a class one person owns."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.data.classes import Classes
from shoal.errors import InputError
from shoal.privacy.promises import infeasible_promises
from shoal.privacy.subject_share import SubjectShare

SHARES = st.sampled_from([0.1, 0.2, 0.25, 0.3, 0.5, 0.75, 1.0])


@given(published.classes(), SHARES)
def test_nobody_owns_more_than_the_share(classes, share):
    promise = SubjectShare(share)
    labels, subjects, _ = published.plain(classes)
    owned = [naive.largest_owner(labels, subjects, which) for which in range(classes.count)]
    assert promise.holds(classes).tolist() == [
        o is not None and o <= Fraction(str(share)) for o in owned
    ]
    known = [float("nan") if o is None else float(o) for o in owned]
    assert promise.measure(classes) == pytest.approx(known, nan_ok=True)


@given(published.classes(), SHARES)
def test_merging_two_classes_that_hold_holds_also_where_they_share_people(classes, share):
    promise = SubjectShare(share)
    holds = promise.holds(classes)
    merged = replace(classes, labels=np.where(classes.labels == 1, 0, classes.labels))
    if classes.count > 1 and holds[:2].all():
        assert promise.holds(merged)[0]


def test_a_share_that_the_whole_table_breaks_is_infeasible_and_the_nearest_is_named():
    table = Classes(np.zeros(4, np.int32), 1, np.array([0, 0, 0, 1], np.int32))
    assert infeasible_promises([SubjectShare(0.5)], table) == [
        "promise 'subject-share': share = 0.5 asked, and somebody owns more of the whole table; the"
        " nearest that holds is share = 0.75"
    ]
    assert infeasible_promises([SubjectShare(0.75)], table) == []


@pytest.mark.parametrize("share", [0, 1.5, True, "half"])
def test_senseless_shares_are_refused(share):
    with pytest.raises(InputError):
        SubjectShare(share)
