"""The shared repair: it ends, every class holds, and each merge is with the nearest class."""

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import shoal
from naive_peers import DistinctValues, JustK, classes_of, repaired
from peer_cases import matrices
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.errors import InfeasibleError
from shoal.search.repair import repair


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[Matrix, Partition, np.ndarray]:
    """A table, any partition of it, and a sensitive value for every record."""
    matrix = draw(matrices(most=60))
    n = matrix.records
    labels = draw(st.lists(st.integers(0, n), min_size=n, max_size=n))
    values = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return matrix, Partition.of(np.array(labels, dtype=np.int32)), np.array(values)


@given(partitioned(), st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=300, deadline=None)
def test_classes_are_those_of_the_plain_twin(case, k, least):
    matrix, partition, values = case
    promise = DistinctValues(matrix, k, values, least)
    expected = repaired(matrix, partition.labels, promise)
    if expected is None:
        with pytest.raises(InfeasibleError):
            repair(matrix, partition, promise)
    else:
        assert repair(matrix, partition, promise).labels.tolist() == expected.tolist()


@given(partitioned(), st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=200, deadline=None)
def test_every_class_holds_and_no_class_is_ever_parted(case, k, least):
    matrix, partition, values = case
    promise = DistinctValues(matrix, k, values, least)
    assume(promise.keeps(list(range(matrix.records))))
    after = repair(matrix, partition, promise)
    assert all(promise.keeps(members) for members in classes_of(after.labels))
    assert all(
        len(set(after.labels[members].tolist())) == 1 for members in classes_of(partition.labels)
    )


def test_a_partition_that_holds_is_returned_as_it_is():
    matrix = Matrix.from_columns(np.arange(4)[:, None], [3.0])
    partition = Partition.of(np.array([0, 0, 1, 1]))
    assert repair(matrix, partition, JustK(matrix, 2)) is partition


def test_suppressed_records_stay_suppressed():
    matrix = Matrix.from_columns(np.arange(5)[:, None], [4.0])
    after = repair(matrix, Partition.of(np.array([0, -1, 1, 1, -1])), JustK(matrix, 2))
    assert after.labels.tolist() == [0, -1, 0, 0, -1]


def test_a_failing_class_goes_to_the_nearest_and_on_a_tie_to_the_lowest_number():
    matrix = Matrix.from_columns(np.array([[0], [0], [5], [10], [10]]), [10.0])
    after = repair(matrix, Partition.of(np.array([0, 0, 1, 2, 2])), JustK(matrix, 2))
    assert after.labels.tolist() == [0, 0, 0, 1, 1]


def test_equal_failing_classes_pair_up_instead_of_all_joining_one():
    matrix = Matrix.from_columns(np.zeros((64, 1), dtype=int), [1.0])
    after = repair(matrix, Partition.of(np.arange(64, dtype=np.int32)), JustK(matrix, 4))
    assert np.bincount(after.labels).tolist() == [4] * 16


def test_two_records_of_one_person_do_not_repair_a_class():
    matrix = Matrix.from_columns(np.array([[0], [0], [9]]), [9.0], subjects=np.array([0, 0, 1]))
    after = repair(matrix, Partition.of(np.array([0, 0, 1])), JustK(matrix, 2))
    assert after.labels.tolist() == [0, 0, 0]


def test_one_class_that_still_fails_is_refused_with_a_way_out():
    matrix = Matrix.from_columns(np.arange(6)[:, None], [5.0])
    promise = DistinctValues(matrix, 2, np.zeros(6, dtype=int), 2)
    with pytest.raises(InfeasibleError, match="all 6 subjects"):
        repair(matrix, Partition.of(np.array([0, 0, 0, 1, 1, 1])), promise)


class Sizes:
    """k records in every class, quickly."""

    needs_more_than_k = about_release = False

    def __init__(self, k: int) -> None:
        self.k = k

    def holds(self, labels: np.ndarray, count: int) -> np.ndarray:
        return np.bincount(labels[labels >= 0], minlength=count) >= self.k


@pytest.mark.long
@pytest.mark.parametrize("values", [1, 1000])
def test_a_hundred_thousand_failing_classes_are_repaired_in_seconds_all_equal_or_not(values):
    codes = np.random.default_rng(0).integers(0, values, (100_000, 4))
    matrix = Matrix.from_columns(codes, [999.0] * 4)
    begun = time.process_time()
    after = repair(matrix, Partition.of(np.arange(100_000, dtype=np.int32)), Sizes(10))
    assert after.sizes().min() >= 10
    assert time.process_time() - begun < 60


class NeverFour(JustK):
    """Holds for classes of any size but four: not monotone, as promises are where classes share
    subjects.
    """

    def holds(self, labels, count):
        return np.array([len(np.flatnonzero(labels == c)) != 4 for c in range(count)])


def test_classes_that_read_as_one_are_judged_as_one_where_subjects_are_shared():
    """Two classes of the same person with equal cells hold each, and their union may not."""
    matrix = Matrix.from_columns(
        np.array([[0], [1], [0], [1], [7], [8]]), [9.0], np.array([0, 1, 0, 1, 2, 3])
    )
    partition = Partition.of(np.array([0, 0, 1, 1, 2, 2]))
    repaired = repair(matrix, partition, NeverFour(matrix, 2, needs_more_than_k=True))
    assert repaired.labels.tolist() == [0] * 6


def test_classes_of_too_few_people_for_a_promise_about_the_whole_merge():
    """Ten records of five people: two classes of five hold four people each, 2 / 8 > 0.2."""
    ages = ["1.49", "1.49", "1.09", "1.09", "1.09", "1.49", "1.09", "1.09", "6.34", "1.49"]
    people = ["p1", "p3", "p0", "p5", "p1", "p2", "p2", "p0", "p0", "p0"]
    policy = {
        "version": 1,
        "attributes": {
            "age": {"role": "quasi", "type": "number", "domain": [-2, 9]},
            "person": {"role": "subject"},
        },
        "promises": [{"model": "average-risk", "threshold": 0.2}],
        "method": {"name": "tcloseness-t-first"},
    }
    published = shoal.publish(pl.DataFrame({"age": ages, "person": people}), policy)
    assert published.certificate["promises"][0]["measured"] == 0.2


def test_a_method_that_counts_people_by_qid_leaves_nobody_alone():
    policy = {
        "version": 1,
        "attributes": {
            "age": {"role": "quasi", "type": "number", "domain": [0, 9]},
            "ill": {"role": "sensitive"},
        },
        "promises": [{"model": "sample-uniqueness", "threshold": 0}],
        "method": {"name": "tds"},
    }
    published = shoal.publish(pl.DataFrame({"age": ["5", "6"], "ill": ["x", "y"]}), policy)
    assert published.certificate["promises"][0]["measured"] == 0
