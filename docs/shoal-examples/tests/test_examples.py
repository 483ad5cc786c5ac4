import pytest
from shoal_examples.in_a_row import InARow
from shoal_examples.initials import Initials
from shoal_examples.largest_class import LargestClass
from shoal_examples.one_group import OneGroup
from shoal_examples.rare_points import RarePoints
from shoal_examples.value_range import ValueRange

from shoal.extend import (
    check_attack,
    check_hierarchy_maker,
    check_metric,
    check_partitioner,
    check_promise,
    check_stream_method,
    small_matrices,
)


@pytest.mark.parametrize("k", [2, 3, 10])
def test_in_a_row_puts_everybody_into_a_class_that_holds(k):
    for matrix in small_matrices():
        check_partitioner(InARow(), matrix, k)


@pytest.mark.parametrize("delta", [5, 20, 200])
def test_one_group_publishes_the_same_whatever_the_chunks(delta):
    check_stream_method(OneGroup(delta=delta))


@pytest.mark.parametrize("least", [0.0, 2000.0, 9000.0])
def test_value_range_keeps_its_word(least):
    check_promise(ValueRange("charge", least))


def test_largest_class_is_a_metric():
    check_metric(LargestClass())


def test_rare_points_is_an_attack():
    check_attack(RarePoints())


def test_initials_has_a_leaf_for_every_name():
    tree = check_hierarchy_maker(Initials, 2, ["Berlin", "Bern", "Bonn", "Oslo"])
    assert tree.height == 3
