"""Annealing where each move is put to what classes promise: moves, promises, by hand."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import naive_refinement as naive
from naive_peers import classes_of
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.partition import Matrix, Partition
from shoal.data.progress import no_progress
from shoal.privacy.alpha_k_anonymity import AlphaKAnonymity
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.promises import BoundPromises
from shoal.privacy.t_closeness import TCloseness
from shoal.search import refinery
from shoal.search.clustering import Targets
from shoal.search.efforts import Effort
from shoal.search.kernels import rebuilding
from shoal.search.kernels.slots import SlotClasses
from shoal.search.refinement import bound_records, promised_search, refine
from shoal.search.refinery import NOISE, Search, asked_of
from shoal.search.segments import loss_of
from unit.search.test_refinement import NOBODY, classed, members_of, prepared

PAY, ILL = 5, 3


def distance(codes: np.ndarray, members: list[int], values: int, ordered: bool) -> Fraction:
    """From the members' values to all records': earth mover's, as fractions."""
    shares = [
        Fraction(int((codes[members] == v).sum()), len(members))
        - Fraction(int((codes == v).sum()), len(codes))
        for v in range(values)
    ]
    if not ordered:
        return sum(map(abs, shares), Fraction(0)) / 2
    carried = [abs(sum(shares[: v + 1], Fraction(0))) for v in range(values)]
    return sum(carried, Fraction(0)) / max(values - 1, 1)


@st.composite
def promising(draw):
    """Classes, what is sensitive about their records, and promises that all of them keep."""
    matrix, k, partition = draw(classed(people=False, least=6))
    n, members = matrix.records, classes_of(partition.labels)

    def drawn(most):
        return np.array(draw(st.lists(st.integers(0, most - 1), min_size=n, max_size=n)))

    pay = np.unique(drawn(PAY), return_inverse=True)[1].astype(np.int32)
    ill, values = drawn(ILL).astype(np.int32), int(pay.max()) + 1

    def apart(of):
        return max(distance(pay, of, values, True), distance(ill, of, ILL, False))

    def commonest(of):
        return Fraction(max(np.bincount(ill[of])), len(of))

    t = float(max(map(apart, members))) + 1e-6 + draw(st.sampled_from([0, 0.05, 0.2]))
    least = min(len(set(ill[of].tolist())) for of in members)
    share = max(map(commonest, members))
    assume(t < 1)
    models = [TCloseness(("pay", "ill"), t), LDiversity("ill", least)]
    if k > 1:
        models.append(KAnonymity(k))
    if k > 1 and share.denominator in (1, 2, 4, 5):  # as exact in decimals
        models.append(AlphaKAnonymity("ill", float(share), 2))
    else:
        share = Fraction(1)

    def keeps(of):
        return apart(of) <= t and len(set(ill[of].tolist())) >= least and commonest(of) <= share

    columns = {
        "pay": SensitiveColumn("pay", pay, values, "ordered"),
        "ill": SensitiveColumn("ill", ill, ILL, "equal"),
    }
    whole = Classes(np.zeros(n, dtype=np.int32), 1, None, columns)
    return matrix, k, partition, BoundPromises(models, whole), keeps


@settings(max_examples=60)
@given(case=promising(), seed=st.integers(1, 2**63), heat=st.integers(0, 200_000))
def test_every_move_is_that_of_plain_python_and_keeps_the_promises(case, seed, heat):
    matrix, k, partition, promises, keeps = case
    space, slots, near, setting, classes = prepared(matrix, k, partition, 0)
    temperatures = [heat, heat // 3, 0]
    moves = rebuilding.anneal_promised(
        SlotClasses(*slots),
        asked_of(matrix, promises).arrays(setting.capacity, 0, partition.count),
        near,
        NOBODY,
        space.shape(k, setting.capacity),
        space.table,
        np.concatenate([np.array(temperatures), NOISE]),
        np.array([seed, 0, partition.count], dtype=np.uint64),
    )
    asked = {"keeps": keeps, "most_asked": rebuilding.ASKED}
    expected = naive.anneal(classes, setting, temperatures, naive.Draws(seed), **asked)
    assert members_of(slots, setting.capacity) == classes
    assert moves == len(expected)
    assert promises.holds(slots.class_of, partition.count).all()


@settings(max_examples=40)
@given(case=promising(), seed=st.integers(0, 99))
def test_no_step_needs_to_be_taken_back(case, seed):
    matrix, k, partition, promises, _ = case
    bound, rng = bound_records(matrix, promises), np.random.default_rng(seed)
    assert not bound.shape[1]
    search = Search(2, 4, 0.3, 0.01, resizes=True, rebuilds=True)
    plant = refinery.Refinery(matrix, partition, k, bound, search, rng, asked_of(matrix, promises))
    for step in range(2):
        found = plant.after(step)
        assert found.count == partition.count
        assert promises.holds(found.labels, found.count).all()
    refined = refine(matrix, partition, promises, search, np.random.default_rng(seed))
    assert loss_of(matrix, refined) <= loss_of(matrix, partition) + 1e-9


def bound(ill, models) -> BoundPromises:
    column = SensitiveColumn("ill", np.array(ill, dtype=np.int32), 4)
    return BoundPromises(models, Classes(np.zeros(len(ill), np.int32), 1, None, {"ill": column}))


DIVERSE = LDiversity("ill", 2)
CLOSE = TCloseness(("ill",), 0.2)


@pytest.mark.parametrize(
    ("codes", "ill", "labels", "models", "shown"),
    [
        # half of the records are ill
        ("00099990", "00110010", "00001111", [KAnonymity(4), CLOSE], ["0000", "9999"]),
        # each class holds a 0 that is well and a 9 that is ill
        ("0099", "0011", "0101", [KAnonymity(2), DIVERSE], ["09", "09"]),
        ("0099", "0011", "0101", [KAnonymity(2)], ["00", "99"]),
    ],
    ids=["both classes stay close", "one value would be left", "nothing is promised of values"],
)
def test_unlike_records_change_places_where_both_classes_keep_the_promise(
    codes, ill, labels, models, shown
):
    matrix = Matrix.from_columns(np.array([*map(int, codes)])[:, None], [9.0])
    partition, promises = Partition.of(np.array([*map(int, labels)])), bound([*ill], models)
    search = Search(3, 6, 0.3, 0.01, resizes=True, rebuilds=False)
    found = refine(matrix, partition, promises, search, np.random.default_rng(0))
    assert sorted("".join(codes[r] for r in of) for of in classes_of(found.labels)) == shown


def test_other_promises_bind_records_to_their_values():
    matrix = Matrix.from_columns(np.arange(4)[:, None], [3.0])
    entropy = LDiversity("ill", 2, "entropy")
    tied = bound([0, 0, 1, 1], [KAnonymity(2), entropy])
    assert bound_records(matrix, tied)[0].tolist() == [0, 0, 1, 1]
    assert asked_of(matrix, tied) is None
    both = bound([0, 0, 1, 1], [entropy, TCloseness(("ill",), 0.5)])
    assert bound_records(matrix, both).shape == (2, 4)
    assert not Effort("auto", 1, 0, -1, resizes=True).anneals(matrix, both)


def test_the_search_says_how_far_it_is_and_repeats_itself():
    rng = np.random.default_rng(3)
    matrix = Matrix.from_columns(rng.integers(0, 50, (120, 2)), [49.0, 49.0])
    promises = bound(rng.integers(0, 4, 120), [KAnonymity(4), DIVERSE])
    start, search = Partition.of(rng.permutation(np.arange(120) % 12)), promised_search(4, True)
    assert promises.holds(start.labels, start.count).all()
    said: list[str] = []
    one, again = (
        refine(matrix, start, promises, search, np.random.default_rng(1), tell=tell)
        for tell in (said.append, no_progress)
    )
    assert said[0].startswith("refining: step 1 of 5, loss ")
    assert one.labels.tolist() == again.labels.tolist()
    assert loss_of(matrix, one) < 0.9 * loss_of(matrix, start)
    assert not one.search_statistics


def test_leaves_under_each_node_by_hand():
    # leaves 0, 1 under node 4; 2 under 5; 3 and both nodes under 6
    parent = np.array([4, 4, 5, 6, 6, 6, -1], dtype=np.int32)
    layout = np.array([[0, 0, 2, 0, 2, 1], [1, 3, 7, 2, 4, 2]], dtype=np.int64)
    lookup = np.concatenate([np.array([0, 1], dtype=np.int32), parent])
    none = np.zeros(0, dtype=np.int64)
    targets = Targets((), np.zeros((4, 2), np.int32), layout, none, lookup, np.ones(2))
    first, last = refinery._spans(targets)
    assert first.tolist() == [0, 0, 0, 1, 2, 3, 0, 2, 0]
    assert last.tolist() == [0, 0, 0, 1, 2, 3, 1, 2, 3]
