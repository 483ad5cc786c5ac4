"""Lattice peeling: levels, vectors and groups against plain Python, orders, promises, bounds."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive_peeling
from naive_partition import total_loss
from naive_peers import DistinctValues, JustK, classes_of
from peer_cases import matrices
from shoal.data.classes import Classes
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.table import read_hierarchy
from shoal.data.option import build
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.tables.methods import lattice_peeling
from shoal.tables.methods.lattice_peeling import (
    LatticePeeling,
    levels_of,
    thinned,
    units_of,
    vectors_of,
)
from thorough import long_but

PLACES = Hierarchy.from_paths(
    [["Bonn", "west", "*"], ["Cologne", "west", "*"], ["Jena", "east", "*"], ["Gera", "east", "*"]]
)


def partition(matrix: Matrix, k: int, promises=None, **parameters):
    return LatticePeeling(**parameters).partition(
        matrix, promises or JustK(matrix, k), np.random.default_rng(0)
    )


def prepared(matrix: Matrix, most: int = 10**6):
    units = units_of(matrix)
    levels = [levels_of(matrix, j, values) for j, values in enumerate(units.values)]
    return units, levels, vectors_of(levels, units, most)


def contents(matrix: Matrix, labels: np.ndarray) -> list:
    """What is in the classes, whoever it is."""
    return sorted(
        sorted(tuple(matrix.codes[r].tolist()) for r in members) for members in classes_of(labels)
    )


def mean_loss(matrix: Matrix, labels: np.ndarray) -> float:
    return total_loss(matrix, labels) / (matrix.records * matrix.attributes)


# Levels and vectors


@given(matrix=matrices())
def test_levels_group_the_records_as_plain_python_does(matrix):
    units, levels, _ = prepared(matrix)
    for j, of_attribute in enumerate(levels):
        cells = naive_peeling.cells(matrix, j)
        assert len(of_attribute) == len(cells)
        ranks = units.rows[units.of_record, j]
        for level, expected in zip(of_attribute, cells, strict=True):
            groups = len(set(expected))
            assert len(set(zip(level.node[ranks].tolist(), expected, strict=True))) == groups
            assert level.node.max() + 1 == groups
            loss = naive_peeling.mean_loss(matrix, j, expected)
            assert level.loss[ranks].mean() == pytest.approx(loss, abs=1e-12)


@given(matrix=matrices())
def test_the_whole_lattice_comes_by_ascending_loss_and_ends_with_everything_in_one_group(matrix):
    _, levels, vectors = prepared(matrix)
    cells = [naive_peeling.cells(matrix, j) for j in range(matrix.attributes)]
    assert sorted(map(tuple, vectors.tolist())) == naive_peeling.lattice(cells)
    loss = [
        sum(naive_peeling.mean_loss(matrix, j, cells[j][level]) for j, level in enumerate(v))
        for v in vectors
    ]
    assert all(earlier <= later + 1e-9 for earlier, later in pairwise(loss))
    assert vectors[-1].tolist() == [len(of_attribute) - 1 for of_attribute in levels]


@given(matrix=matrices(), most=st.integers(1, 30))
def test_of_too_many_vectors_the_coarsest_always_stays_and_the_finest_if_there_is_room(
    matrix, most
):
    _, levels, vectors = prepared(matrix, most)
    assert len(vectors) <= most
    assert vectors[-1].tolist() == [len(of_attribute) - 1 for of_attribute in levels]
    assert most == 1 or vectors[0].tolist() == [0] * matrix.attributes or len(vectors) == 1


def test_the_levels_with_the_nearest_losses_are_dropped_first_and_never_the_coarsest():
    means = [np.array([0.0, 0.1, 0.5, 1.0]), np.array([0.0, 0.45, 1.0])]
    assert thinned(means, 12) == [[0, 1, 2, 3], [0, 1, 2]]
    assert thinned(means, 9) == [[0, 2, 3], [0, 1, 2]]
    assert thinned(means, 6) == [[0, 2, 3], [0, 2]]
    assert thinned(means, 4) == [[0, 3], [0, 2]]
    assert thinned(means, 1) == [[3], [2]]


# Groups


def peeled(matrix: Matrix, promises) -> tuple[list[list[int]], list[int]]:
    units, levels, vectors = prepared(matrix)
    group = lattice_peeling._peel(units, levels, vectors, promises)[units.of_record]
    return sorted(classes_of(group)), np.flatnonzero(group < 0).tolist()


def peeled_plainly(matrix: Matrix, k: int, *keep) -> tuple[list[list[int]], list[int]]:
    cells = [naive_peeling.cells(matrix, j) for j in range(matrix.attributes)]
    taken, left = naive_peeling.peel(matrix, cells, prepared(matrix)[2].tolist(), k, *keep)
    return sorted(taken), left


@given(matrix=matrices(), k=st.integers(1, 6), needs_more_than_k=st.booleans())
def test_groups_are_those_of_plain_python(matrix, k, needs_more_than_k):
    assert peeled(matrix, JustK(matrix, k, needs_more_than_k)) == peeled_plainly(matrix, k)


@given(matrix=matrices(), k=st.integers(1, 4), least=st.integers(1, 3), data=st.data())
def test_a_group_leaves_only_where_every_promise_holds(matrix, k, least, data):
    values = st.lists(st.integers(0, 3), min_size=matrix.records, max_size=matrix.records)
    promises = DistinctValues(matrix, k, np.array(data.draw(values)), least)

    def keep(groups):
        return [promises.keeps(members) for members in groups]

    assert peeled(matrix, promises) == peeled_plainly(matrix, k, keep)


@pytest.mark.parametrize(
    ("most", "many"), [(10**6, 8), (9, 40), (9, 70)], ids=["wide", "40", "more than NumPy's axes"]
)
def test_many_attributes_are_no_trap(most, many):
    """Keys that 64 bits cannot hold are scrambled and group the same."""
    codes = np.repeat(np.random.default_rng(1).integers(0, most, (120, many)), 3, axis=0)
    matrix = Matrix.from_columns(codes, [float(most)] * many)
    assert sorted(partition(matrix, 3).sizes().tolist()) == [3] * 120


# The method


@pytest.mark.parametrize(
    ("places", "ages", "k", "labels"),
    [
        # two people in each of Bonn and Cologne of one age leave by city
        ([0, 0, 1, 1, 2, 3, 2, 3], [0, 0, 0, 0, 9, 9, 8, 8], 2, [0, 0, 1, 1, 2, 3, 2, 3]),
        # and here by region
        ([0, 0, 1, 1, 2, 3, 2, 3], [0, 0, 0, 0, 9, 9, 8, 8], 3, [0, 0, 0, 0, 1, 1, 1, 1]),
        # who is left over joins the class where that costs least
        ([0, 0, 0, 3, 3, 3, 2], [0, 0, 0, 9, 9, 9, 9], 3, [0, 0, 0, 1, 1, 1, 1]),
    ],
)
def test_worked_examples(places, ages, k, labels):
    matrix = Matrix.from_columns(np.array([places, ages]).T, [PLACES, 9.0])
    assert partition(matrix, k, refine="none").labels.tolist() == labels


@settings(max_examples=50)
@given(matrix=matrices(people=False, least=4), k=st.integers(2, 4), seed=st.integers(0, 99))
def test_the_order_of_the_records_changes_nothing(matrix, k, seed):
    order = np.random.default_rng(seed).permutation(matrix.records)
    shuffled = replace(matrix, codes=np.ascontiguousarray(matrix.codes[order]))
    for refine in ("none", "full"):
        one, other = partition(matrix, k, refine=refine), partition(shuffled, k, refine=refine)
        assert contents(matrix, one.labels) == contents(shuffled, other.labels)


def test_a_crowd_of_equal_records_is_cut_into_classes_below_2k():
    matrix = Matrix.from_columns(np.zeros((1000, 2), dtype=np.int32), [PLACES, 5.0])
    assert partition(matrix, 10).sizes().max() < 20


@pytest.mark.parametrize("parameters", [{"refine": "much"}, {"vectors": 0}])
def test_parameters_outside_their_range_are_refused(parameters):
    with pytest.raises(InputError, match="must be"):
        build(LatticePeeling, "method", parameters)
    assert build(LatticePeeling, "method", {"vectors": 1}).vectors == 1


ADULT = ("age workclass education marital-status occupation race sex native-country").split()


def over_hierarchies(adult: pl.DataFrame, folder: Path) -> Matrix:
    hierarchies = [read_hierarchy(f"{folder}/{name}.csv", name) for name in ADULT]
    columns = [
        hierarchy.leaf_codes(adult[name])
        for hierarchy, name in zip(hierarchies, ADULT, strict=True)
    ]
    return Matrix.from_columns(np.column_stack(columns), hierarchies)


@pytest.mark.parametrize(
    ("k", "most"), long_but((10, 0.0843), [(5, 0.0609), (10, 0.0843), (50, 0.1577), (100, 0.2006)])
)
def test_adult_over_hierarchies_loses_less_than_the_best_local_recoding_of_arx(
    adult, data_folder, k, most
):
    """Their figures: ARX 3.9.2, its best local recoding of the same table and hierarchies."""
    matrix = over_hierarchies(adult, data_folder / "adult" / "hierarchies_arx")
    everyone = Classes(np.zeros(matrix.records, dtype=np.int32), 1)
    result = partition(matrix, k, BoundPromises([KAnonymity(k)], everyone), refine="none")
    assert result.sizes().min() >= k
    assert mean_loss(matrix, result.labels) < 0.95 * most
