"""The shared repair: it ends, every class holds, and each merge is with the nearest class."""

import time

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal
from naive_peers import DistinctValues, JustK, classes_of, repaired
from peer_cases import matrices
from sample_policies import content_of
from shoal.data.classes import Classes
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.search.segments import repair


def any_class(labels: list[int]) -> bool:
    return max(labels) >= 0


@st.composite
def partitioned(draw: st.DrawFn) -> tuple[Matrix, Partition, np.ndarray]:
    """A table, any partition of it but for suppressed records, and a sensitive value for each."""
    matrix = draw(matrices(most=60))
    n = matrix.records
    labels = draw(st.lists(st.integers(-1, n), min_size=n, max_size=n).filter(any_class))
    values = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    return matrix, Partition.of(np.array(labels, dtype=np.int32)), np.array(values)


@given(partitioned(), st.integers(1, 6), st.integers(1, 3))
@settings(max_examples=300)
def test_classes_are_those_of_the_plain_twin_hold_and_are_never_parted(case, k, least):
    matrix, partition, values = case
    promise = DistinctValues(matrix, k, values, least)
    expected = repaired(matrix, partition.labels, promise)
    if expected is None:
        with pytest.raises(InfeasibleError):
            repair(matrix, partition, promise)
        return
    after = repair(matrix, partition, promise).labels
    assert after.tolist() == expected.tolist()
    assert all(promise.keeps(members) for members in classes_of(after))
    assert all(len(set(after[m].tolist())) == 1 for m in classes_of(partition.labels))


def test_a_partition_that_holds_is_returned_as_it_is():
    matrix = Matrix.from_columns(np.arange(4)[:, None], [3.0])
    partition = Partition.of(np.array([0, 0, 1, 1]))
    assert repair(matrix, partition, JustK(matrix, 2)) is partition


def test_one_class_that_still_fails_is_refused_with_a_way_out():
    matrix = Matrix.from_columns(np.arange(6)[:, None], [5.0])
    promise = DistinctValues(matrix, 2, np.zeros(6, dtype=int), 2)
    with pytest.raises(InfeasibleError, match="all 6 subjects"):
        repair(matrix, Partition.of(np.array([0, 0, 0, 1, 1, 1])), promise)


@pytest.mark.long
@pytest.mark.parametrize("values", [1, 1000])
def test_a_hundred_thousand_failing_classes_are_repaired_in_seconds_all_equal_or_not(values):
    codes = np.random.default_rng(0).integers(0, values, (100_000, 4))
    matrix = Matrix.from_columns(codes, [999.0] * 4)
    promises = BoundPromises([KAnonymity(10)], Classes(np.zeros(100_000, dtype=np.int32), 1))
    begun = time.process_time()
    after = repair(matrix, Partition.of(np.arange(100_000, dtype=np.int32)), promises)
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
    codes, people = np.array([[0], [1], [0], [1], [7], [8]]), np.array([0, 1, 0, 1, 2, 3])
    matrix = Matrix.from_columns(codes, [9.0], people)
    partition = Partition.of(np.array([0, 0, 1, 1, 2, 2]))
    repaired = repair(matrix, partition, NeverFour(matrix, 2, needs_more_than_k=True))
    assert repaired.labels.tolist() == [0] * 6


AGE = {"role": "quasi", "type": "number", "domain": [-2, 9]}


def measured(columns: dict, role: str, method: str, **promise) -> float:
    """What a table of ages and of another column keeps of a promise."""
    roles = {name: AGE if name == "age" else role for name in columns}
    content = content_of(roles, promises=[promise], method={"name": method})
    return shoal.publish(pl.DataFrame(columns), content).certificate["promises"][0]["measured"]


def test_classes_of_too_few_people_for_a_promise_about_the_whole_merge():
    """Ten records of five people: two classes of five hold four people each, 2 / 8 > 0.2."""
    ages = "1.49 1.49 1.09 1.09 1.09 1.49 1.09 1.09 6.34 1.49".split()
    columns, promise = {"age": ages, "person": [*"1305122000"]}, {"model": "average-risk"}
    assert measured(columns, "subject", "tcloseness-t-first", **promise, threshold=0.2) == 0.2


def test_a_method_that_counts_people_by_qid_leaves_nobody_alone():
    columns, promise = {"age": ["5", "6"], "ill": ["x", "y"]}, {"model": "sample-uniqueness"}
    assert measured(columns, "sensitive", "tds", **promise, threshold=0) == 0
