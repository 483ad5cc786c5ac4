"""The worked examples of the rounded partition paper: tables 1 and 2, figures 2 to 4, section 2.1,
corollaries.
"""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from shoal.data.partition import Matrix
from shoal.tables.methods.rounded_partition import RoundedPartition
from shoal.testing import OnlyK
from shoal_papers.baselines.mondrian_relaxed import MondrianRelaxed

# Table 1 without its names
TABLE_1 = pl.DataFrame(
    {
        "age": ["20", "20", "30", "40", "50", "50"],
        "zip": ["101", "103", "102", "102", "101", "103"],
        "disease": ["H1N1", "HIV", "FLU", "Pneumonia", "HBV", "HIV"],
    }
)
# Table 2: one 2-anonymous form of it
TABLE_2 = TABLE_1.with_columns(
    pl.Series("age", ["20", "20", "[30~40]", "[30~40]", "50", "50"]),
    pl.Series("zip", ["[101~103]", "[101~103]", "102", "102", "[101~103]", "[101~103]"]),
)


def policy(method: dict) -> shoal.Policy:
    return shoal.Policy.from_dict(
        {
            "version": 1,
            "attributes": {
                "age": {"role": "quasi", "type": "number"},
                "zip": {"role": "quasi", "type": "number"},
                "disease": {"role": "sensitive"},
            },
            "promises": [{"model": "k-anonymity", "k": 2}],
            "render": {"intervals": "[{lo}~{hi}]"},
            "method": method,
        }
    )


PAPER = {"name": "rounded-partition", "preset": "paper"}


def partition_of(method, codes: np.ndarray, k: int):
    matrix = Matrix.from_columns(codes, [float(np.ptp(column)) for column in codes.T])
    return method.partition(matrix, OnlyK(matrix, k), np.random.default_rng(0))


def test_table_2_is_a_2_anonymous_form_of_table_1():
    certificate = shoal.audit(TABLE_2, policy(PAPER), TABLE_1)
    assert certificate.holds
    assert certificate["classes"] == {"count": 3, "min": 2, "mean": 2.0, "max": 2}


def test_figure_3_the_rounded_partition_finds_three_classes_of_two():
    certificate = shoal.publish(TABLE_1, policy(PAPER)).certificate
    assert certificate["classes"] == {"count": 3, "min": 2, "mean": 2.0, "max": 2, "bound": 3}


def test_figure_2_the_balanced_partition_finds_only_two_classes_of_three():
    certificate = shoal.publish(TABLE_1, policy({"name": "mondrian-relaxed"})).certificate
    assert certificate["classes"] == {"count": 2, "min": 3, "mean": 3.0, "max": 3}


def test_our_default_publishes_table_2_itself():
    """Its loss is the least of all partitions of table 1 into three pairs, up to equally good
    ones.
    """
    ours = shoal.publish(TABLE_1, policy({"name": "rounded-partition"})).certificate["utility"][
        "gcp"
    ]
    assert ours <= shoal.audit(TABLE_2, policy(PAPER), TABLE_1)["utility"]["gcp"]


@pytest.mark.parametrize("j", range(1, 8))
def test_section_2_1_three_times_a_power_of_two_records(j):
    n = 3 * 2**j
    codes = np.random.default_rng(j).permutation(n)[:, None]
    assert partition_of(MondrianRelaxed(), codes, 2).sizes().tolist() == [3] * 2**j
    assert partition_of(RoundedPartition(preset="paper"), codes, 2).sizes().tolist() == [2] * (
        n // 2
    )


@settings(max_examples=60, deadline=None)
@given(
    k=st.integers(2, 12),
    more=st.integers(0, 400),
    ties=st.integers(1, 50),
    sizes=st.sampled_from(["same", "cross"]),
)
def test_corollary_1_smaller_than_2k_minus_1(k, more, ties, sizes):
    """For k > 3, says the paper; k = 3 holds as well (for k = 2 it can't: 2k - 1 = k + 1)."""
    n = 2 * k + more
    codes = np.random.default_rng(n).integers(0, ties, (n, 2))
    largest = partition_of(RoundedPartition(preset="paper", sizes=sizes), codes, k).sizes().max()
    assert largest < 2 * k - 1 or k == 2


@pytest.mark.parametrize("k", [2, 5, 10])
def test_corollary_3_the_mean_size_comes_close_to_k(k):
    means = []
    for n in (3 * k - 1, 30 * k - 1, 300 * k - 1):
        codes = np.random.default_rng(n).integers(0, 40, (n, 3))
        means.append(partition_of(RoundedPartition(preset="paper"), codes, k).sizes().mean())
    assert means == sorted(means, reverse=True)
    assert means[-1] - k < k / 250


@settings(max_examples=60, deadline=None)
@given(k=st.integers(2, 12), n=st.integers(24, 600))
def test_even_sizes_reach_the_least_possible_discernibility(k, n):
    """With alpha classes, no sizes have a smaller sum of squares than floor and ceiling of n /
    alpha.
    """
    codes = np.random.default_rng(n).integers(0, 9, (n, 2))
    sizes = {
        name: partition_of(RoundedPartition(preset="paper", sizes=name), codes, k).sizes()
        for name in ("same", "cross", "proportional")
    }
    alpha = n // k
    small, more = divmod(n, alpha)
    least = more * (small + 1) ** 2 + (alpha - more) * small**2
    assert int((sizes["proportional"] ** 2).sum()) == least
    assert int((sizes["same"] ** 2).sum()) <= int((sizes["cross"] ** 2).sum())


def test_adult_meets_the_least_possible_discernibility(adult):
    codes = np.column_stack([adult["age"].cast(pl.Int64), adult["education-num"].cast(pl.Int64)])
    sizes = partition_of(RoundedPartition(preset="paper"), codes, 10).sizes()
    assert len(sizes) == 3016
    assert int((sizes**2).sum()) == 301_642
