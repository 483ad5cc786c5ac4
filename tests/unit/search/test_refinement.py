"""Refinement of finished classes: its moves against plain Python, promises, repeatability; short
searches are no hotter than the table bears, and of many records only where something is lost.
"""

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import naive_refinement as naive
from naive_peers import DistinctValues, JustK, classes_of
from peer_cases import matrices
from shoal.data.classes import SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.partition import Matrix, Partition
from shoal.data.progress import no_progress
from shoal.search import refinement, refinery
from shoal.search.efforts import ASKED_RECORDS, FULL_RECORDS, Effort
from shoal.search.kernels import rebuilding
from shoal.search.kernels.slots import SlotClasses
from shoal.search.refinement import (
    MANY_RECORDS,
    quick_search,
    refine,
    refine_quickly,
    search_of_many,
    steps_within,
    thorough_search,
    worth_searching,
)
from shoal.search.refinery import NOISE, Search, SearchSpace, _unit, mean_loss, slots_of
from shoal.search.segments import loss_of
from shoal.tables.methods.lattice_peeling import LatticePeeling
from shoal.tables.methods.rounded_partition import RoundedPartition

EVERYTHING = Search(3, 4, 0.3, 0.01, resizes=True, rebuilds=True)
NOBODY = np.zeros((2, 0), dtype=np.int32)
PLACES = Hierarchy.from_paths(
    [["Bonn", "west", "*"], ["Cologne", "west", "*"], ["Jena", "east", "*"], ["Gera", "east", "*"]]
)


class ValuesKept(DistinctValues):
    """`DistinctValues` that shows its sensitive values, as real promises do."""

    @property
    def sensitive(self):
        return {"ill": SensitiveColumn("ill", self.values.astype(np.int32), 4)}


@st.composite
def classed(draw, people=None, least=4, most=30):
    """A table, k, and classes of at least k records."""
    matrix = draw(matrices(people=people, least=least, most=most))
    k = draw(st.integers(1, 4))
    order = draw(st.permutations(range(matrix.records)))
    starts, start = [0], k
    while matrix.records - start >= k:
        starts.append(start)
        start += draw(st.integers(k, 2 * k))
    labels = np.empty(matrix.records, dtype=np.int32)
    labels[order] = np.searchsorted(starts, np.arange(matrix.records), side="right") - 1
    return matrix, k, Partition.of(labels)


def values_of(matrix: Matrix) -> st.SearchStrategy[list[int]]:
    """A sensitive value for every record."""
    return st.lists(st.integers(0, 2), min_size=matrix.records, max_size=matrix.records)


def prepared(matrix: Matrix, k: int, partition: Partition, seed: int, free: int = 0):
    """The same classes as the kernels and as the twin take them."""
    space = SearchSpace.of(matrix)
    capacity = max(2 * k - 1, int(partition.sizes().max()))
    slots = slots_of(space.rows, partition.labels, partition.count + free, capacity)
    near = space.nearest(space.rows, 5, 64, 1, np.random.default_rng(seed))
    losses = naive.Losses(matrix, _unit(matrix))
    setting = naive.Setting(k, capacity, losses, near.tolist(), NOISE.tolist())
    classes = [*classes_of(partition.labels), *([] for _ in range(free))]
    return space, slots, near, setting, classes


def members_of(slots: SlotClasses, capacity: int) -> list[list[int]]:
    return [
        slots.record[c * capacity : c * capacity + size].tolist()
        for c, size in enumerate(slots.size)
    ]


def anneal(space, slots, near, shape, temperatures, block, bound=NOBODY) -> int:
    """How many moves the kernel makes; without a temperature, it measures the classes."""
    heats = np.concatenate([np.array(temperatures, dtype=NOISE.dtype), NOISE])
    block = np.array(block, dtype=np.uint64)
    return rebuilding.anneal(*slots, near, bound, space.shape(*shape), space.table, heats, block)


@settings(max_examples=150)
@given(
    case=classed(),
    seed=st.integers(1, 2**63),
    heat=st.integers(0, 200_000),
    above=st.integers(0, 1500),
    data=st.data(),
)
def test_annealing_makes_the_moves_of_plain_python(case, seed, heat, above, data):
    """Records of people are bound: they change places with their like alone."""
    matrix, k, partition = case
    space, slots, near, setting, classes = prepared(matrix, k, partition, 0)
    least, bound, tied = k, NOBODY, ()
    if matrix.subjects is not None:
        kinds = data.draw(values_of(matrix))
        least, bound = setting.capacity, np.array([kinds, matrix.subjects], dtype=np.int32)
        tied = kinds, matrix.subjects.tolist()
    heats = [heat, heat // 3, 0]
    block = [seed, 0, partition.count, above]
    moves = anneal(space, slots, near, (least, setting.capacity), heats, block, bound)
    expected = naive.anneal(classes, setting, heats, naive.Draws(seed), *tied, above=above)
    assert members_of(slots, setting.capacity) == classes
    assert moves == len(expected)


def test_columns_beyond_the_first_eight_of_a_kind_are_priced_as_well():
    rng = np.random.default_rng(0)
    codes = np.concatenate([rng.integers(0, 4, (60, 9)), rng.integers(0, 9, (60, 9))], axis=1)
    matrix = Matrix.from_columns(codes, [PLACES] * 9 + [8.0] * 9)
    partition = Partition.of(np.arange(60) // 5)
    space, slots, near, setting, classes = prepared(matrix, 3, partition, 0)
    heats, block = [90_000, 0], [7, 0, partition.count, 0]
    anneal(space, slots, near, (3, setting.capacity), heats, block)
    assert naive.anneal(classes, setting, heats, naive.Draws(7))
    assert members_of(slots, setting.capacity) == classes


WITHOUT_COMPILER = """
from test_refinement import RoundedPartition, some, thorough
print(thorough(some(60), 4, method=RoundedPartition, steps=1).labels.tolist())
"""


@pytest.mark.long
def test_a_thorough_search_without_the_compiler_finds_the_same_classes():
    command = [sys.executable, "-W", "ignore", "-c", WITHOUT_COMPILER]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([os.path.dirname(__file__), *sys.path])
    }
    one, other = (
        subprocess.run(command, env=environment | more, capture_output=True, text=True, check=True)
        for more in ({}, {"NUMBA_DISABLE_JIT": "1"})
    )
    assert one.stdout == other.stdout != ""


@settings(max_examples=200)
@given(
    case=classed(people=False),
    seed=st.integers(1, 2**63),
    heat=st.integers(0, 200_000),
    free=st.integers(0, 2),
)
def test_rebuilding_makes_the_moves_of_plain_python(case, seed, heat, free):
    matrix, k, partition = case
    space, slots, near, setting, classes = prepared(matrix, k, partition, 0, free)
    block = np.array([seed, 0, partition.count + free, 0], dtype=np.uint64)
    anneal(space, slots, near, (k, setting.capacity), [], block)  # measures alone
    shape, heats = space.shape(k, setting.capacity), np.concatenate([np.array([heat]), NOISE])
    kept = rebuilding.rebuild(*slots, near, shape, space.table, heats, block)
    expected = naive.rebuild(classes, setting, heat, naive.Draws(seed), rebuilding.NEIGHBOURS)
    assert members_of(slots, setting.capacity) == classes
    assert kept == expected
    assert all(len(members) >= k for members in classes if members)
    of_record = [next(c for c, m in enumerate(classes) if r in m) for r in range(matrix.records)]
    assert slots.class_of.tolist() == of_record


@given(matrix=matrices(people=False), most=st.sampled_from([1, 1024]))
def test_tree_losses_are_those_of_the_lowest_common_node(matrix, most):
    n = matrix.records
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinery, "MOST_LEAVES", most)
        space = SearchSpace.of(matrix)
    slots = slots_of(space.rows, np.zeros(n, np.int32), 1, n)
    anneal(space, slots, np.zeros((n, 1), np.int32), (1, n), [], [1, 0, 1, 0])
    assert slots.loss[0] == naive.Losses(matrix, _unit(matrix))(list(range(n)))


@given(matrix=matrices(people=False, least=2))
def test_near_records_are_the_nearest(matrix):
    space = SearchSpace.of(matrix)
    losses = naive.Losses(matrix, _unit(matrix))
    near = space.nearest(space.rows, 3, 64, 1, np.random.default_rng(0))
    for i, found in enumerate(near.tolist()):
        others = sorted(losses([i, r]) for r in range(matrix.records) if r != i)
        assert [losses([i, r]) for r in found if r != i] == others[:3]


def test_an_order_by_halves_keeps_the_corners_of_a_square_apart():
    corners = np.array([[x, y] for x in (0, 9) for y in (0, 9) for _ in range(4)])
    matrix = Matrix.from_columns(corners[np.random.default_rng(1).permutation(16)], [9.0, 9.0])
    space = SearchSpace.of(matrix)
    order = space.order(space.rows, 4, np.random.default_rng(0))
    assert all(len(np.unique(matrix.codes[run], axis=0)) == 1 for run in order.reshape(4, 4))


@pytest.mark.parametrize(
    ("codes", "domain", "labels", "found"),
    [
        ([0, 9, 9, 0], 9.0, [0, 0, 1, 1], [[0, 0], [9, 9]]),
        ([0, 0, 9, 9, 9], 9.0, [0, 0, 0, 1, 1], [[0, 0], [9, 9, 9]]),
        ([0, 0, 2, 2, 3, 3], PLACES, [0, 0, 0, 0, 1, 1], [[0, 0], [2, 2], [3, 3]]),
    ],
    ids=["two exchanged", "one moves where it can be spared", "two crowds in a class rebuilt"],
)
def test_classes_become_pure(codes, domain, labels, found):
    matrix = Matrix.from_columns(np.array(codes)[:, None], [domain])
    partition = Partition.of(np.array(labels, dtype=np.int32))
    after = refine(matrix, partition, JustK(matrix, 2), EVERYTHING, np.random.default_rng(0))
    assert sorted(matrix.codes[m, 0].tolist() for m in classes_of(after.labels)) == found


@settings(max_examples=100)
@given(case=classed(), seed=st.integers(0, 99), least=st.integers(0, 2), data=st.data())
def test_no_search_loses_more_or_breaks_a_promise_that_was_kept(case, seed, least, data):
    matrix, k, partition = case
    promise = JustK(matrix, k, needs_more_than_k=matrix.subjects is not None)
    if least:
        promise = ValuesKept(matrix, k, np.array(data.draw(values_of(matrix))), least)
    before = promise.holds(partition.labels, partition.count).all()
    found = refine(matrix, partition, promise, EVERYTHING, np.random.default_rng(seed))
    assert sorted(set(found.labels.tolist())) == list(range(found.count))
    assert loss_of(matrix, found) <= loss_of(matrix, partition) + 1e-9
    assert promise.holds(found.labels, found.count).all() or not before


@settings(max_examples=100)
@given(case=classed(people=True), data=st.data())
def test_bound_records_leave_every_class_its_people_and_their_values(case, data):
    matrix, k, partition = case
    values = data.draw(values_of(matrix))
    bound = np.array([values, matrix.subjects], np.int32)
    search = Search(1, 6, 0.3, 0.1, resizes=True, rebuilds=True)
    plant = refinery.Refinery(matrix, partition, k, bound, search, np.random.default_rng(0))

    def shown(labels):
        classes = []
        for members in classes_of(labels):
            pairs = {(int(matrix.subjects[r]), values[r]) for r in members}
            counts = sorted(value for _, value in pairs)
            classes.append((len(members), len({person for person, _ in pairs}), counts))
        return sorted(classes, key=str)

    assert shown(plant.after(0).labels) == shown(partition.labels)


def test_a_step_that_breaks_a_promise_is_taken_back():
    class Untouched(JustK):
        """Any class but the first ones breaks it, and no value says why."""

        def keeps(self, members):
            return tuple(members) in {(0, 1), (2, 3)}

    matrix = Matrix.from_columns(np.array([[0], [9], [9], [0]]), [9.0])
    partition = Partition.of(np.array([0, 0, 1, 1]))
    promise = Untouched(matrix, 2, needs_more_than_k=True)
    found = refine(matrix, partition, promise, EVERYTHING, np.random.default_rng(0))
    assert found.labels.tolist() == [0, 0, 1, 1]


def some(n: int = 900) -> Matrix:
    rng = np.random.default_rng(0)
    columns = [rng.integers(0, 4, n), rng.integers(0, 60, n), rng.integers(0, 9, n)]
    return Matrix.from_columns(np.column_stack(columns), [PLACES, 59.0, 8.0])


def searched(matrix: Matrix, refine: str, k: int = 5, method=LatticePeeling, seed: int = 0):
    made = method(refine=refine)
    return made.partition(matrix, JustK(matrix, k), np.random.default_rng(seed))


def thorough(matrix: Matrix, k: int = 5, progress=no_progress, method=LatticePeeling, **parameters):
    chosen = method(refine="thorough", **parameters)
    return chosen.search(matrix, JustK(matrix, k), np.random.default_rng(0), progress)


def test_neither_threads_nor_their_number_change_anything(monkeypatch):
    monkeypatch.setattr(refinery, "BLOCK", 40)
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(refinery.os, "sched_getaffinity", lambda _, n=cores: range(n))
        found.append(thorough(some(), steps=4).labels.tolist())
    assert found[0] == found[1] == found[2]


def test_another_seed_gives_other_classes_and_the_same_seed_the_same():
    one, again, other = (searched(some(), "full", seed=seed).labels for seed in (1, 1, 2))
    assert one.tolist() == again.tolist() != other.tolist()


@pytest.mark.parametrize("method", [LatticePeeling, RoundedPartition])
def test_more_steps_lose_less_and_a_rounded_partition_keeps_its_sizes(method):
    matrix = some(903)
    found = [searched(matrix, refine, method=method) for refine in ("none", "full")]
    found.append(thorough(matrix, method=method, steps=60))
    assert all(loss_of(matrix, b) < loss_of(matrix, a) for a, b in pairwise(found))
    sizes = [sorted(classes.sizes().tolist()) for classes in found]
    assert method is LatticePeeling or sizes[0] == sizes[1] == sizes[2]


def test_the_statistics_say_how_many_steps_were_made_and_progress_how_far_it_is():
    matrix, heard = some(200), []
    found = thorough(matrix, seconds=1, progress=heard.append)
    steps = steps_within(matrix, 1)
    assert found.search_statistics["steps"] == steps > 1
    assert "stop" not in found.search_statistics
    assert thorough(matrix, steps=steps).labels.tolist() == found.labels.tolist()
    assert heard[-1].startswith(f"refining: step {steps} of {steps}, loss ")
    assert all("least" in line and "at first" in line and "%" in line for line in heard)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_interrupted_search_keeps_the_best_and_can_be_repeated(compiled):
    matrix, heard = some(), []

    def interrupt(stage):
        heard.append(stage)
        if len(heard) == 7 and compiled:  # as a kernel gives it back
            raise SystemError("a result with an exception set") from KeyboardInterrupt()
        if len(heard) == 7:
            raise KeyboardInterrupt

    found = thorough(matrix, progress=interrupt, steps=30)
    assert found.search_statistics["stop"] == 7
    assert heard[-1].startswith("interrupted")
    assert loss_of(matrix, found) < loss_of(matrix, searched(matrix, "none"))
    again = thorough(matrix, steps=30, stop=7)
    assert again.labels.tolist() == found.labels.tolist()


def test_a_fault_is_not_taken_for_an_interrupt():
    def fail(stage):
        raise SystemError("another reason")

    with pytest.raises(SystemError):
        thorough(some(200), progress=fail, steps=3)


def test_stopped_before_the_first_step_is_the_start():
    found = thorough(some(200), steps=9, stop=0).search_statistics
    assert found["stop"] == 0
    assert found["loss_before"] == found["loss_after"]


def test_a_search_of_many_steps_says_after_every_pause_how_far_it_is(monkeypatch):
    monkeypatch.setattr(refinement, "PAUSE", -1.0)
    heard = []

    def interrupt(stage):
        heard.append(stage)
        if len(heard) == 2:
            raise KeyboardInterrupt

    found = thorough(some(200), progress=interrupt, steps=10**6)
    assert found.search_statistics["stop"] == 2
    assert heard[0].startswith("refining: step 1 of 1000000")


def test_efforts_follow_the_size_of_the_table():
    auto = Effort("auto", 60, 0, -1, True)
    for annealed in (FULL_RECORDS, ASKED_RECORDS):
        found = [auto.on(n, annealed) for n in (1_000, 1_001, annealed, annealed + 1)]
        above = "light" if annealed == FULL_RECORDS else "exchange"
        assert found == ["exchange", "full", "full", above]
    for annealed in (ASKED_RECORDS, 0):
        found = [auto.on(n, annealed) for n in (200_000, 200_001, 1_000_000, 1_000_001)]
        assert found == ["exchange", "light", "light", "none"]
    assert auto.on(30_000, 0) == "exchange"
    assert auto._replace(refine="none").on(5, FULL_RECORDS) == "none"


def test_a_search_cools_down_to_its_last_temperature():
    search = thorough_search(some(50), 5, True, 9, -1)
    steps = [search.temperatures(step)[: search.sweeps] for step in range(search.steps)]
    temperatures = np.concatenate(steps)
    assert (np.diff(temperatures) <= 0).all()
    assert temperatures[0] == int(search.hot * 65536)
    assert abs(temperatures[-1] - search.cold * 65536) <= 1
    assert replace(quick_search(some(50), 5, True), steps=1).temperatures(0)[0] > 0


@pytest.fixture
def all_are_many(monkeypatch):
    monkeypatch.setattr(refinement, "MANY_RECORDS", 0)


# two classes of the same cells, another pure one, and one that loses something
CROWDED = Partition.of(np.array([0, 0, 1, 1, 1, 2, 2, 3, 3]))


def crowded(n: int = 600, seed: int = 0) -> Matrix:
    """A table whose records are mostly equal to many others."""
    rng = np.random.default_rng(seed)
    columns = [rng.integers(0, 4, n), rng.geometric(0.5, n), rng.integers(0, 9, n) // 6]
    return Matrix.from_columns(np.column_stack(columns), [PLACES, 20.0, 1.0])


def wide(records: int, trees: bool = False) -> Matrix:
    ranges: list[float | Hierarchy] = [PLACES if trees else 3.0]
    return Matrix.from_columns(np.arange(records)[:, None] % 4, ranges)


@settings(max_examples=100)
@given(case=classed())
@example((Matrix.from_columns(np.array([[0]] * 5 + [[1], [1], [2], [3]]), [3.0]), 2, CROWDED))
def test_classes_worth_searching_are_those_of_plain_python(case):
    matrix, _, partition = case
    members = classes_of(partition.labels)
    rows = [{tuple(matrix.codes[r]) for r in records} for records in members]
    largest: dict[frozenset, int] = {}
    for c, records in enumerate(members):
        if len(rows[c]) == 1:
            cells = frozenset(rows[c])
            if cells not in largest or len(records) > len(members[largest[cells]]):
                largest[cells] = c
    expected = [len(rows[c]) > 1 or c in largest.values() for c in range(len(members))]
    assert worth_searching(matrix, partition).tolist() == expected


@settings(max_examples=60)
@given(case=classed(people=False), seed=st.integers(0, 99), resizes=st.booleans())
def test_a_search_of_the_losing_classes_loses_no_more_and_keeps_k(case, seed, resizes):
    matrix, k, partition = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "MANY_RECORDS", 0)
        rng = np.random.default_rng(seed)
        found = refine_quickly(matrix, partition, JustK(matrix, k), resizes, rng)
    assert sorted(set(found.labels.tolist())) == list(range(found.count))
    assert found.sizes().min() >= min(k, partition.sizes().min())
    assert loss_of(matrix, found) <= loss_of(matrix, partition) + 1e-9
    if not resizes:
        assert sorted(found.sizes()) == sorted(partition.sizes())


@pytest.mark.parametrize("method", [LatticePeeling, RoundedPartition])
def test_the_losing_classes_of_a_crowded_table_are_refined(method, all_are_many):
    none, full = (searched(crowded(), refine, method=method) for refine in ("none", "full"))
    assert loss_of(crowded(), full) < loss_of(crowded(), none)


def test_the_order_of_many_records_changes_no_cell(all_are_many):
    shown = []
    for order in (np.arange(600), np.random.default_rng(1).permutation(600)):
        matrix = crowded().take(order)
        classes = classes_of(searched(matrix, "full").labels)
        shown.append(sorted(sorted(matrix.codes[of].tolist()) for of in classes))
    assert shown[0] == shown[1]


def test_where_all_records_are_equal_nothing_is_left_to_search(all_are_many):
    matrix = Matrix.from_columns(np.zeros((8, 1), dtype=np.int64), [1.0])
    partition = Partition.of(np.repeat([0, 1], 4))
    found = refine_quickly(matrix, partition, JustK(matrix, 2), True, np.random.default_rng(0))
    assert found.labels.tolist() == partition.labels.tolist()


def test_many_records_get_as_many_tries_together_as_fewer_do():
    for k in (2, 10, 100):
        for resizes in (True, False):
            most = quick_search(wide(8), k, resizes)
            tries = most.steps * most.sweeps * MANY_RECORDS
            for records in (50_001, 70_000, 200_000):
                search = search_of_many(wide(records), k, resizes)
                assert search.steps * search.sweeps * records <= 1.1 * tries
    few, many = (search_of_many(wide(n, trees=True), 10, True) for n in (50_001, 200_000))
    assert (few.steps, many.steps) == (5, 2)


def test_a_search_is_no_hotter_than_asked_and_falls_as_steeply():
    search = Search(4, 22, 0.09, 0.012, resizes=True, rebuilds=False)
    assert search.no_hotter(0.1) is search
    cooler = search.no_hotter(0.03)
    assert (cooler.hot, cooler.cold) == (0.03, pytest.approx(0.004))


def test_a_mean_loss_is_in_widths_of_an_attribute():
    codes = np.array([[0, 0], [1, 0], [0, 0], [3, 0]])
    partition = Partition.of(np.array([0, 0, 1, 1]))
    for weight in (1.0, 5.0):  # scales do not matter
        matrix = Matrix.from_columns(codes, [3.0, 1.0], weights=[weight, weight])
        # 1/3 and 1 of the only attribute that varies, which is as wide as both on average twice
        assert mean_loss(matrix, partition) == pytest.approx(2 * (1 / 3 + 1) / 2, rel=1e-3)
