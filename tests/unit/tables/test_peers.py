"""What every method holds to that cuts a table from above or below: people, and too few of them."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from naive_peers import (
    DistinctValues,
    JustK,
    classes_of,
    relaxed_mondrian,
    strict_mondrian,
)
from peer_cases import matrices, run
from shoal.data.matrix import Matrix
from shoal.tables.methods.mondrian import Mondrian
from shoal_papers.baselines.bottom_up import BottomUp
from shoal_papers.baselines.mondrian_relaxed import MondrianRelaxed
from shoal_papers.baselines.top_down_greedy import RULES, TopDownGreedy

DRAWN = {
    Mondrian: {
        "cut": st.sampled_from(["median", "nearest"]),
        "trees": st.sampled_from(["order", "children"]),
    },
    MondrianRelaxed: {"ties": st.sampled_from(["rows", "codes"])},
    TopDownGreedy: {"assignment": st.sampled_from(list(RULES)), "rounds": st.integers(1, 6)},
    BottomUp: {
        "neighbour": st.sampled_from(["added", "union", "box"]),
        "block": st.sampled_from([0, 8, 20]),
    },
}
every_method = pytest.mark.parametrize("method", DRAWN)


@pytest.mark.parametrize("method", [MondrianRelaxed, TopDownGreedy])
@given(data=st.data(), matrix=matrices(people=False), k=st.integers(1, 6))
@settings(max_examples=200)
def test_classes_hold_at_most_2k_minus_1_records(method, data, matrix, k):
    assume(matrix.records >= k)
    drawn = data.draw(st.builds(method, **DRAWN[method]))
    sizes = [len(members) for members in classes_of(run(drawn, matrix, JustK(matrix, k)))]
    assert max(sizes) <= max(2 * k - 1, 1)


TWINS = {
    Mondrian: lambda method, *given: strict_mondrian(*given, method.cut, method.trees),
    MondrianRelaxed: lambda method, *given: relaxed_mondrian(*given, method.ties),
}
with_a_twin = pytest.mark.parametrize("method", TWINS)


@with_a_twin
@given(data=st.data(), matrix=matrices(), k=st.integers(1, 6), needs_more_than_k=st.booleans())
@settings(max_examples=300)
def test_classes_are_those_of_the_plain_twin(method, data, matrix, k, needs_more_than_k):
    assume(matrix.people >= k)
    drawn = data.draw(st.builds(method, **DRAWN[method]))
    promise = JustK(matrix, k, needs_more_than_k)
    assert run(drawn, matrix, promise).tolist() == TWINS[method](drawn, matrix, promise).tolist()


@with_a_twin
@given(data=st.data(), matrix=matrices(least=8), k=st.integers(1, 6))
@settings(max_examples=200)
def test_a_cut_that_breaks_a_promise_beyond_k_is_refused_and_the_next_is_tried(
    method, data, matrix, k
):
    drawn = data.draw(st.builds(method, **DRAWN[method]))
    n = matrix.records
    values = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    promise = DistinctValues(matrix, k, values, 2)
    assume(promise.keeps(list(range(n))))
    labels = run(drawn, matrix, promise)
    assert labels.tolist() == TWINS[method](drawn, matrix, promise).tolist()
    assert all(promise.keeps(members) for members in classes_of(labels))


@every_method
@pytest.mark.parametrize("n", [5, 9])
def test_fewer_than_two_classes_worth_of_records_are_one_class(method, n):
    matrix = Matrix.from_columns(np.arange(n)[:, None], [8.0])
    assert run(method(), matrix, JustK(matrix, 5)).tolist() == [0] * n
