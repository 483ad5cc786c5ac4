"""Global recoding on distinct rows finds what it finds on the records."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.hierarchies.labels import Prefix
from shoal.data.partition import Cut, Matrix
from shoal.errors import InfeasibleError
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.promises import BoundPromises
from shoal.search import large_tables
from shoal.search.large_tables import RowPromises, distinct_rows_of, rows_within
from shoal.tables.methods.full_domain import FullDomain
from shoal.tables.methods.tds import TopDownSpecialization
from shoal_papers.baselines.datafly import Datafly
from shoal_papers.baselines.incognito import Incognito

METHODS = (
    FullDomain(),
    FullDomain(suppression=0.2, rounds=2),
    FullDomain(metric="entropy", suppression=0.3),
    FullDomain(metric="discernibility", search="bottom-up", suppression=0.1),
    Datafly(),
    Datafly(suppression=0.4),
    Incognito(metric="ambiguity", suppression=0.2),
    TopDownSpecialization(),
    TopDownSpecialization(score="gain-per-loss"),
)


def _matrix(records: int, seed: int, has_subjects: bool = False) -> Matrix:
    rng = np.random.default_rng(seed)
    zips = np.array([f"{a}{b}{c}" for a in "12" for b in "12" for c in "123"], dtype=object)
    tree = Prefix(3).make(zips)
    few = np.column_stack([rng.integers(0, most, records // 5 + 1) for most in (tree.leaves, 3, 5)])
    codes = few[rng.integers(0, len(few), records)].astype(np.int32)
    return Matrix.from_columns(
        codes,
        [tree, 2.0, 4.0],
        subjects=rng.integers(0, max(records // 2, 1), records) if has_subjects else None,
        names=("zip", "sex", "age"),
        label=rng.integers(0, 3, records),
    )


def _promises(matrix: Matrix, k: int, with_values: bool) -> BoundPromises:
    everyone = np.zeros(matrix.records, dtype=np.int32)
    values = np.random.default_rng(1).integers(0, 4, matrix.records).astype(np.int32)
    subjects = matrix.subjects
    if subjects is not None:
        subjects = np.unique(subjects, return_inverse=True)[1].astype(np.int32)
    models: list[Any] = [KAnonymity(k)]
    if with_values:
        models += [LDiversity(attribute="disease", l=2), KAnonymity(2 * k, ("sex", "age"))]
    sensitive = {"disease": SensitiveColumn("disease", values, 4)}
    return BoundPromises(models, Classes(everyone, 1, subjects, sensitive))


def _found(method: Any, matrix: Matrix, promises: BoundPromises) -> Any:
    try:
        return _told(method.cut(matrix, promises, np.random.default_rng(0)))
    except InfeasibleError as refused:
        return str(refused)


def _told(cut: Cut | None) -> Any:
    """All that a cut says but for how many rows a search has read."""
    if cut is None:
        return None
    statistics = {k: v for k, v in cut.search_statistics.items() if k != "touched"}
    starts = [part.tolist() for part in cut.starts]
    return starts, cut.suppressed.tolist(), cut.levels, statistics, _told(cut.next_round)


@pytest.mark.parametrize("method", METHODS, ids=repr)
@given(
    records=st.integers(1, 300),
    seed=st.integers(0, 99),
    k=st.sampled_from([2, 5, 12]),
    has_subjects=st.booleans(),
    with_values=st.booleans(),
)
def test_a_method_finds_the_same_cut_on_rows_as_on_records(
    method: Any, records: int, seed: int, k: int, has_subjects: bool, with_values: bool
) -> None:
    if has_subjects or with_values:
        records = records // 4 + 1  # every node is asked of the records: keep it cheap
    matrix = _matrix(records, seed, has_subjects)
    promises = _promises(matrix, k, with_values)
    with pytest.MonkeyPatch.context() as patch:  # every search looks at the records themselves
        patch.setattr(large_tables, "WORTHWHILE", 1 << 40)
        expected = _found(method, matrix, promises)
    assert _found(method, matrix, promises) == expected


@given(
    values=st.lists(st.sampled_from([1, 2, 3, 1_000_000, 2**31 - 1]), min_size=1, max_size=5),
    records=st.integers(1, 20_000),
    different=st.sampled_from([3, 5_000, 20_000]),
    seed=st.integers(0, 99),
)
def test_rows_are_numbered_by_their_first_records(
    values: list[int], records: int, different: int, seed: int
) -> None:
    """The slow truth is NumPy's: sort, and number again by first appearance. Keys that fit into 64
    bits tell all rows apart, others do not.
    """
    rng = np.random.default_rng(seed)
    codes = np.array([rng.integers(0, v, different) for v in values], dtype=np.int32)
    codes = codes[:, rng.integers(0, different, records)]
    _, first, row_of, count = np.unique(
        codes, axis=1, return_index=True, return_inverse=True, return_counts=True
    )
    order = np.argsort(first)
    number = np.empty(len(order), dtype=np.int64)
    number[order] = np.arange(len(order))
    firsts, counts, found = rows_within(codes, records)
    assert np.array_equal(firsts, first[order])
    assert np.array_equal(counts, count[order])
    assert np.array_equal(found, number[row_of.ravel()])
    none, *_ = rows_within(codes, len(order) - 1)
    assert not len(none)  # one row more than may be


def test_three_records_of_one_row_count_three() -> None:
    codes = np.array([[0], [1], [0], [1], [0], [0]], dtype=np.int32)
    found = distinct_rows_of(Matrix.from_columns(codes, [1.0]))
    assert found is not None
    matrix, row_of = found
    assert matrix.codes.tolist() == [[0], [1]]
    assert matrix.count is not None
    assert matrix.count.tolist() == [4, 2]
    assert row_of.tolist() == [0, 1, 0, 1, 0, 0]
    assert (matrix.records, matrix.total, matrix.people) == (2, 6, 6)
    assert matrix.take(np.array([1])).total == 2
    differing = np.arange(7, dtype=np.int32)[:, None]
    assert distinct_rows_of(Matrix.from_columns(differing, [6.0])) is None


def test_records_with_another_label_are_another_row_where_it_is_asked_for() -> None:
    label = [0, 0, 1, 1, 1, 0, 0, 0]
    matrix = Matrix.from_columns(np.zeros((8, 1)), [1.0], label=np.array(label))
    apart, together = (distinct_rows_of(matrix, with_label=asked) for asked in (True, False))
    assert apart is not None
    assert together is not None
    rows, row_of = apart
    assert rows.label is not None
    assert (rows.label.tolist(), row_of.tolist()) == ([0, 1], label)
    assert (together[0].records, together[0].label) == (1, None)


def test_promises_about_rows_are_asked_of_their_records() -> None:
    matrix = _matrix(60, seed=4, has_subjects=True)
    promises = _promises(matrix, k=3, with_values=True)
    found = distinct_rows_of(matrix, with_label=False)
    assert found is not None
    rows, row_of = found
    asked = RowPromises(promises, row_of)
    labels = (np.arange(rows.records) % 3).astype(np.int32)
    assert np.array_equal(asked.holds(labels, 3), promises.holds(labels[row_of], 3))
    assert asked.qids == promises.qids
    assert asked.terms == promises.terms
    kept = labels != 1
    few = promises.restricted_to(kept[row_of]).holds(labels[row_of], 3)
    assert np.array_equal(asked.restricted_to(kept).holds(labels, 3), few)
