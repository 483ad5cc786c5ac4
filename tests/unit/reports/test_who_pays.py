"""How unevenly the loss of a release falls on its rows, by hand."""

from types import SimpleNamespace

import numpy as np
import pytest

from shoal.data.true_values import TrueValues
from shoal.reports.limits import Kept, WhoPays, hidden_from, kept, who_pays


def column(name, codes, widths):
    return SimpleNamespace(name=name, codes=np.array(codes), widths=np.array(widths))


def release(*columns, starred=None):
    return SimpleNamespace(columns=columns, starred=starred)


def test_the_tenth_that_pays_most_and_the_group_that_does():
    age = column("age", [0] * 8 + [1] * 2, [0.1, 0.9])
    sex = column("sex", [0] * 5 + [1] * 5, [0.0, 0.3])
    # rows lose .05 five times, .2 three times, .6 twice
    found = who_pays(release(age, sex))
    assert found == WhoPays(
        tenth=pytest.approx(0.6), mostly=("age",), half=pytest.approx(0.05),
        worst=pytest.approx(0.6), rows=2, columns=("age",),
    )  # fmt: skip


def test_a_suppressed_row_loses_all_and_is_no_group():
    age = column("age", [0, 0, 0, 1], [0.2, 1.0])
    found = who_pays(release(age, starred=np.array([False, False, False, True])))
    assert (found.tenth, found.worst, found.rows) == (1.0, pytest.approx(0.2), 3)


def test_whom_a_column_is_hidden_from_is_counted_in_people():
    age = SimpleNamespace(name="age", codes=np.array([0, 1, 1, 1]), lo=np.array([3, -np.inf]))
    sex = SimpleNamespace(name="sex", codes=np.array([0, 0, 0, 0]), lo=np.array([1.0]))
    whose = np.array([0, 1, 1, 2])
    of_people = SimpleNamespace(columns=(age, sex), classes=SimpleNamespace(subjects=whose))
    assert hidden_from(of_people) == {"age": 2}
    of_records = SimpleNamespace(columns=(age, sex), classes=SimpleNamespace(subjects=None))
    assert hidden_from(of_records) == {"age": 3}


def test_what_is_kept_of_a_column_is_exact_rows_and_whom_an_average_range_covers():
    counts = {"age": np.array([2, 1, 4]), "town": np.array([3])}
    age = SimpleNamespace(
        name="age", codes=np.array([0, 0, 1, 2]), cells=("1-2", "90", "*"), observed_bounds=None,
        lo=np.array([1, 90, -np.inf]), hi=np.array([2, 90, np.inf]), widths=np.array([0.1, 0, 1]),
    )  # fmt: skip
    town = SimpleNamespace(
        name="town", codes=np.zeros(4, int), cells=("x",), observed_bounds=None,
        lo=np.array([0]), hi=np.array([3]), widths=np.array([1.0]),
    )  # fmt: skip
    found = kept(
        SimpleNamespace(
            columns=(age, town),
            cell_counts=counts,
            originals={"age": TrueValues.of(np.array([1.0, 2, 90, np.nan]))},
        )
    )
    # two rows cover two of three values, one row covers its own, the suppressed one all
    covered = pytest.approx((2 / 3 + 2 / 3 + 1 / 3 + 1) / 4)
    assert found["age"] == Kept(exact=1, covered=covered, hidden=4)
    assert found["town"] == Kept(exact=0, covered=None, hidden=0)


def test_where_a_width_is_not_known_nothing_is_said():
    assert who_pays(release(column("age", [0], [np.nan]))) is None
    assert who_pays(release()) is None
