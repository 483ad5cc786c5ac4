"""Ends that are one person's own value, against a count person by person."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.classes import Classes
from shoal.data.release import PublishedColumn
from shoal.data.single_ends import _ends, shares_of_ends


def counted(published, values, labels, people) -> float:
    """The share of ends that exactly one person of the class has, by going through all of them."""
    ends = single = 0
    for label in sorted({*labels} - {-1}):
        rows = [i for i, one in enumerate(labels) if one == label]
        lo, hi = (getattr(published, end)[published.codes[rows[0]]] for end in ("lo", "hi"))
        if not (np.isfinite(lo) and np.isfinite(hi) and lo < hi):
            continue
        ends += 2
        for end in (lo, hi):
            single += len({people[i] for i in rows if values[i] == end}) == 1
    return single / ends if ends else 0.0


@st.composite
def releases(draw):
    """Records of some classes, each with one interval or value, or in no class."""
    intervals = draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=4)
    )
    records = draw(
        st.lists(
            st.tuples(st.integers(-1, len(intervals) - 1), st.integers(0, 3), st.integers(0, 5)),
            min_size=1,
            max_size=20,
        )
    )
    return [(min(pair), max(pair)) for pair in intervals], records, draw(st.booleans())


@given(releases())
def test_the_share_is_that_of_a_count_person_by_person(release):
    intervals, records, has_subjects = release
    labels, values, people = (np.array(part) for part in zip(*records, strict=True))
    lo, hi = (np.array(ends, dtype=float) for ends in zip(*intervals, strict=True))
    codes = np.maximum(labels, 0)
    cells = tuple(map(str, intervals))
    published = PublishedColumn("x", codes, cells, lo, hi, np.zeros(len(lo)))
    subjects = people.astype(np.int32) if has_subjects else None
    classes = Classes(labels.astype(np.int32), len(intervals), subjects)
    own = people if has_subjects else range(len(records))
    found = shares_of_ends([{"q": _ends(published, values.astype(float), classes)}])["q"]
    assert found == counted(published, values, labels.tolist(), own)
