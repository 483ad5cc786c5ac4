"""Rows with counts are cut into the classes of the rounded partition; the slow truth cuts lists of
records, one entry each, and prices every cut by itself.
"""

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.partition import Matrix
from shoal.data.room import IN_MEMORY, Room
from shoal.search import large_tables
from shoal.search.kernels import rounded_cut
from shoal.search.segments import costs_of

RULES = (int(rounded_cut.SAME), True, True, int(rounded_cut.TIES_LEXICOGRAPHIC))
SAMPLE = 512
Record = tuple[int, ...]


def _naive(records: list[Record], k: int, ties: list[int]) -> list[Counter[Record]]:
    """The classes of records that cost as much for each unit of code; the low side first. ties: the
    attributes that decide between equals, which stay those of the whole.
    """
    m, d = len(records), len(records[0])
    if m < 2 * k or len(set(records)) == 1:
        classes = [records[i * k : (i + 1) * k] for i in range(m // k)]
        classes[-1] = records[(m // k - 1) * k :]
        return [Counter(one) for one in classes]
    spans = [_span(records, j) for j in range(d)]
    orders = [sorted(records, key=lambda r: (r[j], *(r[t] for t in ties))) for j in range(d)]
    low = max(m // 16, k)
    is_last = m <= rounded_cut.most_listed(k, SAMPLE)
    cuts = [c for c in range(low, m - low + 1) if c % k <= m % k or not is_last]
    priced = [
        (sum(len(side) * _loss(side) for side in (orders[j][:c], orders[j][c:])), j, c)
        for j in range(d)
        if spans[j]
        for c in cuts
        if is_last or orders[j][c - 1] != orders[j][c]
    ]
    _, j, c = min(priced, default=(0, 0, low))
    admissible = [size for size in range(k, m - k + 1) if size % k <= m % k]
    c = min(admissible, key=lambda size: (abs(size - c), size))
    return _naive(orders[j][:c], k, ties) + _naive(orders[j][c:], k, ties)


def _span(records: list[Record], j: int) -> int:
    values = [record[j] for record in records]
    return max(values) - min(values)


def _loss(records: list[Record]) -> int:
    return sum(_span(records, j) for j in range(len(records[0])))


def _cut(codes: np.ndarray, k: int, room: Room = IN_MEMORY) -> tuple[np.ndarray, np.ndarray]:
    """The columns of records, cut by their rows, and where classes start. codes: (n, d)."""
    matrix = Matrix.from_columns(codes, [1.0] * codes.shape[1])
    columns = matrix.columns(0)
    starts = large_tables.cut_by_rows(columns, k, RULES, SAMPLE, costs_of(matrix), room)
    assert starts is not None
    return columns, starts


def _records(seed: int, rows: int, records: int, values: tuple[int, ...]) -> np.ndarray:
    rng = np.random.default_rng(seed)
    different = np.column_stack([rng.integers(0, v, rows) for v in values]).astype(np.int32)
    drawn = (rows * rng.random(records) ** 3).astype(int)  # some rows are frequent
    return different[drawn]


@given(
    seed=st.integers(0, 999),
    rows=st.integers(1, 40),
    often=st.integers(2, 12),
    k=st.sampled_from([2, 3, 5, 10]),
    values=st.lists(st.sampled_from([2, 5, 300]), min_size=1, max_size=3).map(tuple),
)
def test_rows_are_cut_as_records_that_are_priced_one_by_one(seed, rows, often, k, values):
    codes = _records(seed, rows, max(rows * often, k), values)
    if len({*map(tuple, codes.tolist())}) * large_tables.WORTHWHILE > len(codes):
        return  # no rows are looked for
    columns, starts = _cut(codes, k)
    found = [Counter(map(tuple, columns[:-1, a:b].T.tolist())) for a, b in pairwise(starts)]
    records = list(map(tuple, codes.tolist()))
    ties = sorted(range(len(values)), key=lambda j: -_span(records, j))
    assert found == _naive(records, k, ties)


@pytest.mark.parametrize("k", [2, 10, 77])
@pytest.mark.parametrize("values", [(2000, 90), (9, 9, 9, 9, 9), (10**8, 10**9, 10**8)])
def test_classes_of_many_rows_hold_every_record_once(k, values):
    codes = _records(k, 3_000, 20_000, values)
    columns, starts = _cut(codes, k)
    sizes = np.diff(starts)
    assert len(sizes) == len(codes) // k
    assert sizes.min() >= k
    assert sizes.max() < 2 * k
    assert np.array_equal(np.sort(columns[-1]), np.arange(len(codes)))
    assert np.array_equal(columns[:-1], codes[columns[-1]].T)
    matrix = Matrix.from_columns(codes, [1.0] * len(values))
    apart = matrix.columns(0)
    nodes = np.array([0, len(codes)])
    by_record = rounded_cut.cut(apart, nodes, k, RULES, SAMPLE, costs_of(matrix))
    assert _lost(columns, starts) <= 1.1 * _lost(apart, by_record)


def _lost(columns: np.ndarray, starts: np.ndarray) -> float:
    """Records times the spans of their class, each by its attribute's range."""
    codes = columns[:-1].astype(np.int64)
    widths = np.maximum.reduceat(codes, starts[:-1], axis=1)
    widths -= np.minimum.reduceat(codes, starts[:-1], axis=1)
    spans = codes.max(axis=1) - codes.min(axis=1)
    return float((widths * np.diff(starts) / spans[:, None]).sum())


def test_records_of_a_row_keep_their_order_and_any_memory_gives_the_same_classes():
    codes = _records(3, 900, 8_000, (50, 60, 3))
    columns, starts = _cut(codes, 7)
    small, small_starts = _cut(codes, 7, Room(1_000))
    assert np.array_equal(columns, small)
    assert np.array_equal(starts, small_starts)
    for row in np.unique(codes, axis=0)[::50]:
        numbers = columns[-1][(columns[:-1] == row[:, None]).all(axis=0)]
        assert (np.diff(numbers) > 0).all()


def test_records_that_seldom_agree_are_not_cut_by_rows():
    codes = np.arange(400, dtype=np.int32).reshape(200, 2) // 3
    matrix = Matrix.from_columns(codes, [1.0, 1.0])
    columns = matrix.columns(0)
    assert large_tables.cut_by_rows(columns, 5, RULES, SAMPLE, costs_of(matrix), IN_MEMORY) is None
    assert np.array_equal(columns, matrix.columns(0))
