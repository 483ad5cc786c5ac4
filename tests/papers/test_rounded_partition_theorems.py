"""Theorems 1 and 2 and the corollaries of Wu, Tang, Ni, Sun (2012), on any table."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from naive_partition import same_sizes, total_loss
from shoal.data.partition import Matrix, Partition
from shoal.protocols import Promises
from shoal.tables.methods.rounded_partition import RoundedPartition


class KAlone(Promises):
    """k-anonymity and nothing else, one record per subject."""

    needs_more_than_k = False

    def __init__(self, k: int):
        self.k = k

    def holds(self, labels: np.ndarray, count: int) -> np.ndarray:
        raise AssertionError("k alone needs no asking")


@st.composite
def tables(draw) -> tuple[Matrix, int]:
    """Up to 400 records on 1 to 4 attributes, many of them tied; and a k that fits."""
    n = draw(st.integers(1, 400))
    most = draw(st.lists(st.sampled_from([1, 2, 3, 40, 100_000]), min_size=1, max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    codes = np.stack([rng.integers(0, m, n) for m in most], axis=1)
    ranges: list = [float(m - 1) for m in most]
    return Matrix.from_columns(codes, ranges), draw(st.integers(1, min(n, 60)))


def partition(matrix: Matrix, k: int, **parameters) -> Partition:
    return RoundedPartition(**parameters).partition(matrix, KAlone(k), np.random.default_rng(0))


PAPERS_CUT = st.fixed_dictionaries(
    {
        "preset": st.just("paper"),
        "sizes": st.sampled_from(["same", "cross", "proportional"]),
        "dimension": st.sampled_from(["widest", "best"]),
        "ties": st.sampled_from(["rows", "lexicographic"]),
    }
)
ANY = st.fixed_dictionaries(
    {
        "cut": st.sampled_from(["paper", "admissible"]),
        "dimension": st.sampled_from(["widest", "best"]),
        "ties": st.sampled_from(["rows", "lexicographic"]),
        "refine": st.sampled_from(["none", "light", "full"]),
    }
)


@settings(max_examples=150, deadline=None)
@given(tables(), ANY)
def test_theorem_1_n_over_k_classes_whatever_the_ties(case, parameters):
    matrix, k = case
    result = partition(matrix, k, **parameters)
    assert result.count == matrix.records // k
    assert len(result.labels) == matrix.records
    assert result.sizes().sum() == matrix.records
    assert result.sizes().min() >= k
    assert result.sizes().max() < 2 * k


@settings(max_examples=150, deadline=None)
@given(tables(), PAPERS_CUT)
def test_theorem_2_bounds_the_largest_class(case, parameters):
    matrix, k = case
    alpha, beta = divmod(matrix.records, k)
    depth = alpha.bit_length() - 1
    assert partition(matrix, k, **parameters).sizes().max() <= k + -(-beta // 2**depth)


def largest_by_the_papers_cut(n: int, k: int) -> int:
    codes = np.random.default_rng(n).integers(0, 5, (n, 2))
    matrix = Matrix.from_columns(codes, [4.0, 4.0])
    return int(partition(matrix, k, preset="paper").sizes().max())


@settings(max_examples=60, deadline=None)
@given(st.integers(4, 40), st.integers(0, 200))
def test_corollary_1_no_class_reaches_2k_less_1_where_k_is_above_3(k, more):
    assert largest_by_the_papers_cut(2 * k + more, k) < 2 * k - 1


def test_corollary_1_is_false_for_k_of_2():
    assert largest_by_the_papers_cut(5, 2) == 3


@settings(max_examples=60, deadline=None)
@given(st.integers(2, 9), st.integers(0, 200))
def test_corollary_2_the_largest_class_of_a_large_table_has_k_or_k_plus_1(k, more):
    n = 2 * k * k + more
    assert largest_by_the_papers_cut(n, k) == k + (n % k > 0)


def levels(n: int, k: int) -> list[list[int]]:
    """The sizes of the groups of each level, by the plain rule of step 4."""
    found = [[n]]
    while groups := [side for m in found[-1] if m >= 2 * k for side in same_sizes(m, k)]:
        found.append(groups)
    return found


def test_lemma_2_is_false_as_printed():
    """It says that at level i coefficients lie below 2**(x - i + 1): here below 2, with x = 1."""
    assert levels(6, 2) == [[6], [4, 2], [2, 2]]


def test_lemma_2_holds_with_its_upper_bound_included():
    for k in range(1, 9):
        for n in range(k, 300):
            x = (n // k).bit_length() - 1
            for i, groups in enumerate(levels(n, k)[: x + 1]):
                assert all(2 ** (x - i) <= m // k <= 2 ** (x - i + 1) for m in groups)


def test_classes_lie_at_level_x_and_the_next_and_a_level_holds_at_most_the_table():
    """What theorems 2, 3 and 4 need of lemma 2."""
    for k in range(1, 9):
        for n in range(k, 300):
            x = (n // k).bit_length() - 1
            found = levels(n, k)
            assert x <= len(found) - 1 <= x + 1
            assert all(m >= 2 * k for groups in found[:x] for m in groups)
            assert all(sum(groups) <= n for groups in found)


def test_figure_4_splits_seven_records_into_five_and_two():
    assert same_sizes(7, 2) == (5, 2)


@settings(max_examples=60, deadline=None)
@given(tables())
def test_refinement_never_loses_more_and_keeps_the_class_sizes(case):
    matrix, k = case
    plain, refined = partition(matrix, k, refine="none"), partition(matrix, k, refine="full")
    assert sorted(plain.sizes()) == sorted(refined.sizes())
    assert total_loss(matrix, refined.labels) <= total_loss(matrix, plain.labels) + 1e-6


@settings(max_examples=40, deadline=None)
@given(tables(), st.integers(0, 99))
def test_classes_do_not_depend_on_the_order_of_the_records(case, seed):
    matrix, k = case
    order = np.random.default_rng(seed).permutation(matrix.records)
    shuffled = Matrix(
        matrix.codes[order], matrix.scale, matrix.base, matrix.parent, matrix.last, matrix.width
    )
    plain, other = partition(matrix, k), partition(shuffled, k)
    assert contents(matrix, plain) == contents(shuffled, other)


def contents(matrix: Matrix, result: Partition) -> list[list[list[int]]]:
    return sorted(sorted(matrix.codes[result.labels == c].tolist()) for c in range(result.count))
