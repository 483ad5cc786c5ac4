"""Rounded partition: counts, sizes, ties, parameters, and promises beyond k."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naive_partition import cheapest_cut_in_two, paper_classes, total_loss
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.matrix import Matrix
from shoal.errors import InputError
from shoal.protocols import Promises
from shoal.search.kernels import rounded_cut
from shoal.search.kernels.sorted_cut import MOST_TRIED
from shoal.tables.methods.rounded_partition import RoundedPartition


class OnlyK(Promises):
    """k distinct subjects, and nothing else."""

    def __init__(self, k: int, subjects: np.ndarray | None = None, beyond=None):
        self.k = k
        self.subjects = subjects
        self.beyond = beyond
        self.needs_more_than_k = beyond is not None

    def holds(self, labels: np.ndarray, count: int) -> np.ndarray:
        held = np.empty(count, dtype=bool)
        for c in range(count):
            members = np.flatnonzero(labels == c)
            people = (
                len(members) if self.subjects is None else len(set(self.subjects[members].tolist()))
            )
            held[c] = people >= self.k and (self.beyond is None or self.beyond(members))
        return held


def linear(codes: np.ndarray, subjects: np.ndarray | None = None) -> Matrix:
    return Matrix.from_columns(
        codes, [float(np.ptp(column)) for column in codes.T], subjects=subjects
    )


def table(n: int, values=(70, 2, 15, 4), seed: int = 5) -> Matrix:
    rng = np.random.default_rng(seed)
    return linear(np.stack([rng.integers(0, v, n) for v in values], axis=1))


def partition(matrix: Matrix, k: int, **parameters):
    return RoundedPartition(**parameters).partition(matrix, OnlyK(k), np.random.default_rng(0))


def members_of(labels: np.ndarray) -> list[list[int]]:
    return sorted(np.flatnonzero(labels == c).tolist() for c in range(labels.max() + 1))


VARIANTS = [
    {},
    {"preset": "paper"},
    {"sizes": "cross", "cut": "paper"},
    {"sizes": "proportional", "cut": "paper"},
    {"dimension": "widest"},
    {"ties": "rows"},
    {"dimension": "in-turn"},
    {"ties": "stable"},
]


@pytest.fixture(params=["small", "large"])
def kernel(request, monkeypatch):
    """Both ways that nodes are cut, as for a small table and as for a large one."""
    if request.param == "large":
        monkeypatch.setattr(rounded_cut, "LISTED", 0)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize(
    ("n", "k"), [(2, 2), (7, 2), (39, 20), (40, 20), (5000, 7), (5003, 50), (5003, 400)]
)
def test_every_variant_gives_exactly_n_over_k_classes(variant, n, k):
    result = partition(table(n), k, **variant)
    assert result.count == n // k
    assert result.sizes().min() >= k
    assert result.sizes().sum() == n


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize("n", [103, 1503])
def test_a_table_of_equal_records_still_gives_n_over_k_classes(variant, n):
    assert partition(linear(np.ones((n, 3), dtype=np.int32)), 5, **variant).count == n // 5


def test_the_low_side_is_five_of_seven_as_in_figure_4():
    values = np.array([[1], [1], [1], [2], [4], [5], [5]])
    result = partition(linear(values), 2, preset="paper")
    assert [5, 6] in members_of(result.labels)
    assert sorted(result.sizes().tolist()) == [2, 2, 3]


@pytest.mark.parametrize(("n", "k"), [(31, 3), (257, 4), (2000, 9)])
@pytest.mark.parametrize("in_turn", [False, True])
@pytest.mark.parametrize("stable", [False, True])
def test_the_paper_preset_is_the_papers_recursion(n, k, in_turn, stable):
    matrix = table(n)
    asked = {
        "dimension": "in-turn" if in_turn else "widest",
        "ties": "stable" if stable else "rows",
    }
    found = partition(matrix, k, preset="paper", **asked)
    assert members_of(found.labels) == paper_classes(matrix, k, in_turn, stable)


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("ties", ["rows", "stable"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    tops=st.lists(st.integers(1, 120), min_size=2, max_size=5),
    leaves=st.integers(2, 60),
    n=st.integers(10, 120),
    k=st.integers(2, 7),
)
def test_the_widest_attribute_is_the_widest_before_rounding(tops, leaves, n, k, ties):
    """Over many whole domains, so that widths are often equal, and rounded differently."""
    rng = np.random.default_rng([*tops, n])
    codes = np.stack([rng.integers(0, top, n, endpoint=True) for top in (*tops, leaves - 1)], 1)
    flat = Hierarchy.from_paths([[str(leaf), "*"] for leaf in range(leaves)])
    matrix = Matrix.from_columns(codes, [*map(float, tops), flat])
    found = partition(matrix, k, preset="paper", ties=ties)
    assert members_of(found.labels) == paper_classes(matrix, k, stable=ties == "stable")


@pytest.mark.parametrize(("weight", "other_top"), [(1.0, 1), (0.3, 98), (0.1234567, 7)])
def test_of_equally_wide_attributes_the_first_is_cut(weight, other_top):
    """49 of 49 is as wide as 1 of 1, though 49 times the rounded 1/49 is less than 1."""
    codes = np.array([[0, 0], [0, other_top], [49, 0], [49, other_top]])
    matrix = Matrix.from_columns(codes, [49.0, float(other_top)], weights=[weight, weight])
    assert members_of(partition(matrix, 2, preset="paper").labels) == [[0, 1], [2, 3]]
    assert 49 * (1 / 49) < 1


def test_constant_attributes_lose_their_turn():
    """At depth 0 the first attribute, which is constant, so the second; at depth 1 that one."""
    values = np.array([[0, 1, 0], [0, 2, 9], [0, 3, 0], [0, 4, 9]] * 2)
    found = partition(linear(values), 2, dimension="in-turn", ties="stable")
    assert members_of(found.labels) == [[0, 4], [1, 5], [2, 6], [3, 7]]


def test_in_turn_and_stable_keep_to_the_papers_cuts():
    assert RoundedPartition(ties="stable").cut == "paper"
    with pytest.raises(InputError, match="go with cut=paper only; leave 'cut' out"):
        RoundedPartition(dimension="in-turn", cut="admissible")
    with pytest.raises(InputError, match="go with ties=rows or stable only"):
        RoundedPartition(dimension="in-turn", ties="lexicographic")


@pytest.mark.parametrize(("before", "is_found"), [(MOST_TRIED - 1, True), (MOST_TRIED, False)])
def test_a_cut_is_looked_for_on_the_widest_attributes_the_first_of_equals(before, is_found):
    rng = np.random.default_rng(1)
    half = np.arange(40) % 2  # six attributes that divide the records alike, behind random ones
    codes = np.stack([*rng.integers(0, 2, (before, 40)), *[half] * 6], axis=1)
    found = partition(linear(codes), 20, refine="none").labels
    assert (len({*zip(found.tolist(), half.tolist(), strict=True)}) == 2) == is_found


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize(("n", "k"), [(21, 10), (29, 10), (300, 101)])
def test_one_admissible_cut_is_the_cheapest_of_all(n, k, seed):
    matrix = table(n, seed=seed)
    result = partition(matrix, k, refine="none")
    assert result.count == 2
    assert total_loss(matrix, result.labels) == pytest.approx(cheapest_cut_in_two(matrix, k))


@pytest.mark.usefixtures("kernel")
def test_the_default_loses_less_than_the_paper_preset():
    matrix = table(3000)
    ours, paper = partition(matrix, 10), partition(matrix, 10, preset="paper")
    assert total_loss(matrix, ours.labels) < 0.8 * total_loss(matrix, paper.labels)


def test_explicit_parameters_override_the_preset():
    method = RoundedPartition(preset="paper", ties="lexicographic")
    assert (method.ties, method.cut, method.dimension) == ("lexicographic", "paper", "widest")


def test_an_unknown_choice_is_an_input_error_that_lists_the_choices():
    with pytest.raises(InputError, match="'dimension' must be one of widest, in-turn, best"):
        RoundedPartition(dimension="longest")


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_classes_hold_k_distinct_subjects_when_subjects_own_several_records(variant):
    base = table(900)
    subjects = np.random.default_rng(3).integers(0, 300, 900).astype(np.int32)
    subjects = np.unique(subjects, return_inverse=True)[1].astype(np.int32)
    matrix = linear(base.codes, subjects)
    result = RoundedPartition(**variant).partition(
        matrix, OnlyK(6, subjects), np.random.default_rng(0)
    )
    people = [len(set(subjects[members].tolist())) for members in members_of(result.labels)]
    assert min(people) >= 6
    assert result.count > 40


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_every_class_keeps_a_promise_beyond_k(variant):
    matrix = table(2000)
    sensitive = np.random.default_rng(9).integers(0, 4, 2000)
    diverse = OnlyK(8, beyond=lambda members: len(set(sensitive[members].tolist())) >= 3)
    result = RoundedPartition(**variant).partition(matrix, diverse, np.random.default_rng(0))
    assert diverse.holds(result.labels, result.count).all()
    assert result.count > 60


def test_setting_rare_branches_apart_loses_less_over_hierarchies():
    rng = np.random.default_rng(2)
    # two branches of two leaves under a root; one record in twenty lies in the second branch
    tree = Hierarchy(
        ("a", "b", "c", "d", "ab", "cd", "*"),
        np.array([4, 4, 5, 5, 6, 6, -1], dtype=np.int32),
        np.array([0, 1, 2, 3, 0, 2, 0], dtype=np.int32),
        np.array([0, 1, 2, 3, 1, 3, 3], dtype=np.int32),
    )
    codes = rng.integers(0, 2, (4000, 6)) + 2 * (rng.random((4000, 6)) < 0.05)
    matrix = Matrix.from_columns(codes, [tree] * 6)
    apart, mixed = (partition(matrix, 20, rare=rare, refine="none") for rare in ("apart", "mixed"))
    assert apart.count == mixed.count == 200
    assert total_loss(matrix, apart.labels) < total_loss(matrix, mixed.labels)


@pytest.mark.usefixtures("kernel")
def test_the_same_table_gives_the_same_classes_in_any_row_order():
    matrix = table(3000, values=(70, 2, 15, 4))
    order = np.random.default_rng(1).permutation(3000)
    shuffled = Matrix.from_columns(matrix.codes[order], [69.0, 1.0, 14.0, 3.0])
    assert _boxes(matrix, 10) == _boxes(shuffled, 10)


def _boxes(matrix: Matrix, k: int) -> list[tuple]:
    labels = partition(matrix, k).labels
    return sorted(
        (
            tuple(matrix.codes[m].min(axis=0).tolist()),
            tuple(matrix.codes[m].max(axis=0).tolist()),
            len(m),
        )
        for m in members_of(labels)
    )
