"""k-anonymity counts people."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import published
import shoal
from sample_policies import content_of
from shoal.data.classes import Classes
from shoal.data.person_names import names_of, person_name
from shoal.errors import InputError
from shoal.privacy.k_anonymity import KAnonymity


@given(published.classes(), st.data())
def test_some_quasi_identifiers_are_measured_on_their_equal_cells(classes, data):
    n = len(classes.labels)
    cells = data.draw(
        st.lists(st.tuples(st.integers(0, 2), st.integers(0, 1)), min_size=n, max_size=n)
    )
    quasi = {
        name: np.array([cell[j] for cell in cells], dtype=np.int32)
        for j, name in enumerate(("a", "b"))
    }
    shown = Classes(
        classes.labels, classes.count, classes.subjects, {}, {**quasi, "c": np.arange(n)}
    )
    labels, subjects, _ = published.plain(classes)
    expected = [
        naive.k_measured_on_cells(labels, subjects, cells, which) for which in range(classes.count)
    ]
    assert KAnonymity(2, ("a", "b")).measure(shown).tolist() == expected


def test_cells_of_many_wide_attributes_are_told_apart():
    """Five times 16 bits do not fit one 64-bit key: the first attribute would be lost."""
    labels = np.array([0, 1, 0, -1, 2, 2, 2], dtype=np.int32)
    wide = 2**16 - 1
    first = np.array([0, 1, 0, 0, wide, wide, wide], dtype=np.int32)
    rest = np.array([5, 5, 5, 5, wide, wide, 0], dtype=np.int32)
    quasi = {"a": first} | dict.fromkeys("bcde", rest)
    shown = Classes(labels, 4, quasi=quasi)
    assert KAnonymity(2, tuple("abcde")).measure(shown).tolist() == [2, 1, 1, 0]
    assert KAnonymity(2, ("e", "d", "c", "b", "a")).measure(shown).tolist() == [2, 1, 1, 0]


@given(published.classes())
def test_unknown_cells_make_the_classes_stand_in(classes):
    assert (KAnonymity(3, ("a",)).holds(classes) == KAnonymity(3).holds(classes)).all()


def test_a_name_that_is_no_quasi_identifier_is_refused():
    with pytest.raises(InputError, match="'b' is not a quasi-identifier"):
        KAnonymity(2, ("b",)).measure(Classes(np.zeros(2, int), 1, quasi={"a": np.zeros(2, int)}))


def test_no_class_has_no_worst_one():
    report = KAnonymity(2).report(Classes(np.full(3, -1), 0))
    assert (report["measured"], report["holds"]) == (None, True)


TWO = content_of({"who": {"role": "subject"}, "age": {"role": "quasi"}}, 2)


WRITTEN_TWICE = [
    ["\u00e9", "e\u0301"],
    ["P1", "\uff301"],
    ["P1", "P1\u00a0 "],
    ["P1", " P1"],
    ["P1", "\ufeffP1"],
    ["P1", "P\u200b1"],
    ["P1", "P1\x1f"],
]


@pytest.mark.parametrize("names", WRITTEN_TWICE)
def test_a_person_whose_name_is_written_in_two_ways_counts_once(names):
    table = pl.DataFrame({"who": names, "age": ["30", "30"]})
    with pytest.raises(shoal.InfeasibleError, match="1 subject in the table"):
        shoal.publish(table, TWO)
    assert shoal.audit(table, TWO)["promises"][0]["measured"] == 1


@given(st.lists(st.text(max_size=4), min_size=1))
def test_a_column_of_names_is_compared_as_each_of_them(cells):
    column = pl.Series("who", cells)
    assert names_of(column).to_list() == [person_name(cell) for cell in cells]
