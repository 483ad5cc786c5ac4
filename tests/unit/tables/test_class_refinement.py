"""The local search over finished classes, against plain recounting."""

from __future__ import annotations

import numpy as np
import pytest

from naive_partition import total_loss
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.matrix import Matrix
from shoal.search.segments import costs_of
from shoal.tables.kernels.class_refinement import refine_classes
from shoal.tables.kernels.class_refinement import span_loss as compiled_span_loss

span_loss = compiled_span_loss.py_func

# eight leaves, two by two in nodes 8..11, those two by two in 12 and 13, root 14
TREE = Hierarchy(
    tuple(str(i) for i in range(15)),
    np.array([8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, -1], dtype=np.int32),
    np.array([*range(8), 0, 2, 4, 6, 0, 4, 0], dtype=np.int32),
    np.array([*range(8), 1, 3, 5, 7, 3, 7, 7], dtype=np.int32),
)


def table(n: int, seed: int) -> Matrix:
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, 8, n), rng.integers(0, 30, n), rng.integers(0, 8, n)], axis=1)
    return Matrix.from_columns(codes, [TREE, 29.0, TREE], weights=[1.0, 2.0, 0.5])


def refined(matrix: Matrix, starts: np.ndarray, group: int = 2) -> tuple[np.ndarray, int]:
    rows = np.column_stack([matrix.codes, np.arange(matrix.records)]).astype(np.int32)
    moves = refine_classes(rows, starts, 64, 4, group, 3, costs_of(matrix))
    assert np.array_equal(rows[:, :-1], matrix.codes[rows[:, -1]])
    labels = np.empty(matrix.records, dtype=np.int32)
    labels[rows[:, -1]] = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return labels, moves


@pytest.mark.parametrize("group", [2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_refining_lowers_the_loss_and_keeps_every_record_and_size(seed, group):
    matrix = table(97, seed)
    starts = np.array([0, 5, 12, *range(20, 98, 7)])
    starts[-1] = 97
    before = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    labels, moves = refined(matrix, starts, group)
    assert moves > 0
    assert np.array_equal(np.bincount(labels), np.bincount(before))
    assert total_loss(matrix, labels) < total_loss(matrix, before)


def test_one_swap_that_makes_two_classes_pure_is_found():
    matrix = Matrix.from_columns(np.array([[0], [0], [9], [9], [9], [0]]), [9.0])
    labels, _ = refined(matrix, np.array([0, 3, 6]))
    assert total_loss(matrix, labels) == 0


def test_only_classes_above_the_mean_are_visited():
    values = [0, 9, 0, 9, 50, 52, 51, 53]
    matrix = Matrix.from_columns(np.array(values)[:, None], [99.0])
    starts = np.array([0, 2, 4, 6, 8])
    rows = np.column_stack([matrix.codes, np.arange(matrix.records)]).astype(np.int32)
    refine_classes(rows, starts, 64, 1, 2, 3, costs_of(matrix), above=1.0)
    assert sorted(map(sorted, rows[:, 0].reshape(4, 2).tolist())) == [
        [0, 0],
        [9, 9],
        [50, 52],
        [51, 53],
    ]


def test_span_loss_is_the_matrix_rule_on_lines_and_trees():
    matrix = table(5, 0)
    costs = costs_of(matrix)
    assert span_loss(3, 20, 1, costs) == 17 * matrix.scale[1]
    assert span_loss(0, 1, 0, costs) == pytest.approx(1 / 7)
    assert span_loss(1, 2, 0, costs) == pytest.approx(3 / 7)
    assert span_loss(3, 4, 2, costs) == pytest.approx(0.5)
    assert span_loss(6, 6, 2, costs) == 0
