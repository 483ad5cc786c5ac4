"""Rounded partition: counts, sizes, ties, parameters, and promises beyond k."""

from unittest.mock import Mock

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from naive_partition import cheapest_cut_in_two, paper_classes, total_loss
from naive_peers import DistinctValues
from peer_cases import hierarchy_of
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.option import build
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.protocols import Promises
from shoal.search.kernels import rounded_cut
from shoal.search.kernels.sorted_cut import MOST_TRIED
from shoal.search.segments import costs_of
from shoal.tables.kernels.class_refinement import refine_classes
from shoal.tables.methods import rounded_partition
from shoal.tables.methods.rounded_partition import RoundedPartition
from shoal.testing import OnlyK


def linear(codes: np.ndarray, subjects: np.ndarray | None = None) -> Matrix:
    return Matrix.from_columns(
        codes, [float(np.ptp(column)) for column in codes.T], subjects=subjects
    )


def table(n: int, values=(70, 2, 15, 4), seed: int = 5) -> Matrix:
    rng = np.random.default_rng(seed)
    return linear(np.stack([rng.integers(0, v, n) for v in values], axis=1))


def partition(matrix: Matrix, k: int, promises: Promises | None = None, **parameters):
    method, rng = RoundedPartition(**parameters), np.random.default_rng(0)
    return method.partition(matrix, promises or OnlyK(matrix, k), rng)


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


SIZES = [(2, 2), (7, 2), (39, 20), (40, 20), (1500, 7), (1503, 50), (1503, 400)]


@pytest.mark.usefixtures("kernel")
@pytest.mark.parametrize("variant", VARIANTS, ids=str)
@pytest.mark.parametrize(("n", "k"), SIZES)
@pytest.mark.parametrize("values", [(70, 2, 15, 4), (1, 1, 1)], ids=["mixed", "all equal"])
def test_every_variant_gives_exactly_n_over_k_classes(variant, n, k, values):
    result = partition(table(n, values), k, **variant)
    assert result.count == n // k
    assert result.sizes().min() >= k
    assert result.sizes().sum() == n


def test_the_low_side_is_five_of_seven_as_in_figure_4():
    values = np.array([[1], [1], [1], [2], [4], [5], [5]])
    result = partition(linear(values), 2, preset="paper")
    assert [5, 6] in members_of(result.labels)
    assert sorted(result.sizes().tolist()) == [2, 2, 3]


@pytest.mark.parametrize(("n", "k"), [(31, 3), (257, 4), (2000, 9)])
@pytest.mark.parametrize("dimension", ["widest", "in-turn"])
@pytest.mark.parametrize("ties", ["rows", "stable"])
def test_the_paper_preset_is_the_papers_recursion(n, k, dimension, ties):
    matrix = table(n)
    found = partition(matrix, k, preset="paper", dimension=dimension, ties=ties)
    expected = paper_classes(matrix, k, dimension == "in-turn", ties == "stable")
    assert members_of(found.labels) == expected


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


def test_choices_that_do_not_go_together_or_are_unknown_are_refused():
    assert RoundedPartition(ties="stable").cut == "paper"
    method = RoundedPartition(preset="paper", ties="lexicographic")
    assert (method.ties, method.cut, method.dimension) == ("lexicographic", "paper", "widest")
    for asked, says in (
        ({"dimension": "in-turn", "cut": "admissible"}, "go with cut=paper only; leave 'cut' out"),
        ({"dimension": "in-turn", "ties": "lexicographic"}, "go with ties=rows or stable only"),
        ({"dimension": "longest"}, "'dimension' must be one of widest, in-turn, best"),
    ):
        with pytest.raises(InputError, match=says):
            build(RoundedPartition, "method", asked)


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


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_classes_hold_k_distinct_subjects_and_keep_a_promise_beyond_k(variant):
    rng = np.random.default_rng(3)
    codes, values = table(900).codes, rng.integers(0, 4, 900)
    subjects = np.unique(rng.integers(0, 300, 900), return_inverse=True)[1].astype(np.int32)
    for matrix, least in ((linear(codes, subjects), 1), (linear(codes), 3)):
        promises = DistinctValues(matrix, 6, values, least)
        result = partition(matrix, 6, promises, **variant)
        assert promises.holds(result.labels, result.count).all()
        assert result.count > 40


def test_setting_rare_branches_apart_loses_less_over_hierarchies():
    rng = np.random.default_rng(2)
    # two branches of two leaves under a root; one record in twenty lies in the second branch
    tree = hierarchy_of([[None, None], [None, None]])
    codes = rng.integers(0, 2, (4000, 6)) + 2 * (rng.random((4000, 6)) < 0.05)
    matrix = Matrix.from_columns(codes, [tree] * 6)
    apart, mixed = (partition(matrix, 20, rare=rare, refine="none") for rare in ("apart", "mixed"))
    assert apart.count == mixed.count == 200
    assert total_loss(matrix, apart.labels) < total_loss(matrix, mixed.labels)


@pytest.mark.usefixtures("kernel")
def test_the_same_table_gives_the_same_classes_in_any_row_order():
    matrix = table(3000)
    shuffled = matrix.take(np.random.default_rng(1).permutation(3000))
    one, other = (
        sorted(sorted(m.codes[of].tolist()) for of in members_of(partition(m, 10).labels))
        for m in (matrix, shuffled)
    )
    assert one == other


# The local search over finished classes, against plain recounting

# eight leaves, two by two in four nodes, those two by two in two, and the root
EIGHT = hierarchy_of([[[None, None], [None, None]], [[None, None], [None, None]]])


def branched(n: int, seed: int) -> Matrix:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, most, n) for most in (8, 30, 8)], axis=1)
    return Matrix.from_columns(codes, [EIGHT, 29.0, EIGHT], weights=[1.0, 2.0, 0.5])


def refined(matrix: Matrix, starts: np.ndarray, group: int = 2, sweeps: int = 4, **above):
    """The classes as labels, and the moves made."""
    rows = np.column_stack([matrix.codes, np.arange(matrix.records)]).astype(np.int32)
    moves = refine_classes(rows, starts, 64, sweeps, group, 3, costs_of(matrix), **above)
    assert np.array_equal(rows[:, :-1], matrix.codes[rows[:, -1]])
    labels = np.empty(matrix.records, dtype=np.int32)
    labels[rows[:, -1]] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return labels, moves


@pytest.mark.parametrize("group", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_refining_lowers_the_loss_and_keeps_every_record_and_size(seed, group):
    matrix, starts = branched(97, seed), np.array([0, 5, 12, *range(20, 91, 7), 97])
    before = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    labels, moves = refined(matrix, starts, group)
    assert moves > 0
    assert np.array_equal(np.bincount(labels), np.bincount(before))
    assert total_loss(matrix, labels) < total_loss(matrix, before)


@pytest.mark.parametrize(
    ("values", "starts", "how", "classes"),
    [
        ([0, 0, 9, 9, 9, 0], [0, 3, 6], {}, [[0, 0, 0], [9, 9, 9]]),
        (
            [0, 9, 0, 9, 50, 52, 51, 53],
            [0, 2, 4, 6, 8],
            {"sweeps": 1, "above": 1.0},
            [[0, 0], [9, 9], [50, 52], [51, 53]],
        ),
    ],
    ids=["one swap makes two classes pure", "classes below the mean are not visited"],
)
def test_refining_by_hand(values, starts, how, classes):
    matrix = Matrix.from_columns(np.array(values)[:, None], [99.0])
    labels, _ = refined(matrix, np.array(starts), **how)
    assert sorted(sorted(np.array(values)[of].tolist()) for of in members_of(labels)) == classes


@pytest.mark.parametrize(("attributes", "refines"), [(32, 0), (31, 1)])
def test_wide_tables_exchange_alone_unless_they_are_asked_for_more(
    monkeypatch, attributes, refines
):
    monkeypatch.setattr(rounded_partition, "MANY_RECORDS", 1_000)
    refined_by = Mock(side_effect=lambda matrix, partition, *_: partition)
    monkeypatch.setattr(rounded_partition.Effort, "refined", refined_by)
    matrix = table(1_001, (9,) * attributes)
    usual, _, plain = (partition(matrix, 10, refine=refine) for refine in ("auto", "full", "none"))
    assert refined_by.call_count == 2 + refines
    assert usual.sizes().min() >= 10
    assert total_loss(matrix, usual.labels) < total_loss(matrix, plain.labels)
