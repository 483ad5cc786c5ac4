"""Any m known rows fit k people: nodes of values, against plain truths."""

from collections import Counter
from dataclasses import replace
from itertools import combinations, pairwise
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_items
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.linked import BundleRows, Bundles, Templates
from shoal.data.partition import Matrix
from shoal.errors import InputError
from shoal.linked.kernels import known_sets
from shoal.linked.methods.bundles import bundle_loss, starts_of
from shoal.linked.methods.items import Items

PATHS = [["a1", "a", "*"], ["a2", "a", "*"], ["b1", "b", "*"], ["b2", "b", "*"], ["b3", "b", "*"]]
TREE = Hierarchy.from_paths(PATHS)
LEAVES = TREE.labels[: TREE.leaves]
NODES = [(0, 1), (2, 4), (0, 4)]
value = st.sampled_from(LEAVES)
worlds = st.lists(st.lists(value, max_size=4), min_size=4, max_size=12)
row = st.tuples(st.integers(0, 4), st.integers(0, 3))


def asked(k, bundles):
    """Only k is promised, and cells are the spans of codes."""

    def shown(number, slots):
        cells = cells_of(bundles.tables[number].matrix, slots)
        numbers = {cell: i for i, cell in enumerate({*cells.values()})}
        return np.array([numbers[cells[slot]] if slot >= 0 else -1 for slot in slots.tolist()], int)

    return SimpleNamespace(k=k, needs_more_than_k=False, shown=shown)


def nobody(people):
    """People without a column of their own."""
    none = Matrix.from_columns(np.zeros((people, 0), int), [])
    return BundleRows(none, -1, np.array([0, people]))


def table(rows, ranges, known, counted=False, parent=0):
    """rows: each parent's, as tuples of codes."""
    codes = np.array([r for own in rows for r in own]).reshape(-1, len(ranges))
    starts = starts_of(np.array([len(own) for own in rows], dtype=np.int64))
    matrix = Matrix.from_columns(codes, ranges)
    return BundleRows(matrix, parent, starts, known=known, counted=counted)


def sets_of(world, m, tree=TREE, counted=False):
    codes = [[(tree.labels.index(v),) for v in own] for own in world]
    return Bundles.of((nobody(len(world)), table(codes, [tree], m, counted)))


def by_person(bundles, slots):
    """The published slots of each person."""
    starts = bundles.tables[1].starts
    return [slots[a:b][slots[a:b] >= 0].tolist() for a, b in pairwise(starts)]


def test_the_worked_example():
    """b2 goes to `other b`, which takes in b1; a2 is raised, and takes in a1."""
    tree = Hierarchy.from_paths([path for path in PATHS if path[0] != "b3"])
    bundles = sets_of([["a1", "a2"], ["a1", "b1"], ["a1", "a2", "b1"], ["b2"]], 2, tree)
    for size in (0, 4):
        templates = Items(size=size).bundle(bundles, asked(2, bundles), np.random.default_rng(0))
        a, b = templates.slots[1][[0, 3]].tolist()
        assert by_person(bundles, templates.slots[1]) == [[a, a], [a, b], [a, a, b], [b]]
        assert bundle_loss(bundles, templates) == pytest.approx(1 / 3)


@given(worlds, st.integers(2, 3), st.integers(1, 3))
def test_rows_are_published_where_the_plain_search_puts_them(world, k, m):
    bundles = sets_of(world, m)
    found = Items(size=len(world) + k).bundle(bundles, asked(k, bundles), np.random.default_rng(0))
    expected, most = naive_items.published(world, naive_items.Tree(PATHS, LEAVES), k, m)
    kept = [Counter() for _ in world]
    for own, nodes in zip(kept, expected, strict=True):
        for node in {*nodes} - {None}:
            own[node] = min(nodes.count(node), most(node))
    slots = found.slots[1]
    starts = bundles.tables[1].starts
    names = {}
    for person, nodes in enumerate(expected):
        for place, slot in zip(nodes, slots[starts[person] :].tolist(), strict=False):
            if slot >= 0:
                assert names.setdefault(slot, place) == place
    shown = [Counter(names[s] for s in own) for own in by_person(bundles, slots)]
    assert shown == kept


@given(worlds, st.lists(st.lists(row, max_size=3), min_size=12, max_size=12), st.data())
def test_any_known_rows_fit_k_members_of_the_class(world, others, data):
    """Theorem 2, tried: one f for a class, and every choice of rows of every person."""
    k, m = data.draw(st.integers(2, 3)), data.draw(st.integers(1, 3))
    counted = data.draw(st.booleans())
    first = sets_of(world, m).tables[1]
    second = table(others[: len(world)], [4.0, 3.0], m, counted)
    bundles = Bundles.of((nobody(len(world)), first, second))
    size = data.draw(st.sampled_from([0, 2 * k]))
    templates = Items(size=size).bundle(bundles, asked(k, bundles), np.random.default_rng(0))
    classes = templates.classes
    rows = [[] for _ in world]
    node_of: dict = {}
    for number in (1, 2):
        about = bundles.tables[number]
        for r, slot in enumerate(templates.slots[number].tolist()):
            person = int(np.searchsorted(about.starts, r, side="right")) - 1
            key = (int(classes[person]), number, tuple(about.matrix.codes[r].tolist()))
            node = None if slot < 0 else (number, slot)
            rows[person].append((key, node))
            node_of.setdefault(key, set()).add(node)
    assert all(len(nodes - {None}) <= 1 for nodes in node_of.values())  # one f
    f = {key: next(iter(nodes - {None}), None) for key, nodes in node_of.items()}
    shown = [Counter(node for _, node in own if node is not None) for own in rows]
    for c in range(int(classes.max()) + 1):
        members = np.flatnonzero(classes == c).tolist()
        assert len(members) >= k
        most = Counter()
        for i in members:
            most |= shown[i]
        for i in members:
            for size in range(1, m + 1):
                for chosen in combinations([key for key, _ in rows[i]], size):
                    image = Counter(f[key] for key in chosen if f[key] is not None) & most
                    assert sum(not image - shown[other] for other in members) >= k
        if counted:  # one number of rows for all
            starts = bundles.tables[2].starts
            kept = templates.slots[2] >= 0
            assert len({int(kept[starts[i] : starts[i + 1]].sum()) for i in members}) == 1


def cells_of(matrix, slots):
    """By slot, the span of each column over all of its rows; of a tree, of the node over them."""
    found = {}
    for slot in {*slots.tolist()} - {-1}:
        codes = matrix.codes[slots == slot]
        spans = list(zip(codes.min(axis=0).tolist(), codes.max(axis=0).tolist(), strict=True))
        if matrix.attributes and matrix.is_tree(0) and spans[0][0] < spans[0][1]:
            spans[0] = next(n for n in NODES if n[0] <= spans[0][0] and spans[0][1] <= n[1])
        found[slot] = tuple(spans)
    return found


@given(
    st.lists(st.tuples(st.integers(0, 1), st.lists(row, max_size=3)), min_size=8, max_size=16),
    st.integers(1, 3),
    st.booleans(),
    st.data(),
)
def test_whoever_knows_nothing_but_the_cells_finds_k_people(world, m, counted, data):
    """No two classes look alike, and cells that cover a withheld row are those of its node."""
    ages, rows = zip(*world, strict=True)
    k = data.draw(st.integers(2, 3))
    people = replace(nobody(len(world)), matrix=Matrix.from_columns(np.array([ages]).T, [1.0]))
    visits = table(rows, [TREE, 3.0], m, counted)
    bundles = Bundles.of((people, visits))
    size = data.draw(st.sampled_from([0, 2 * k]))
    templates = Items(size=size).bundle(bundles, asked(k, bundles), np.random.default_rng(0))
    cells, ends = cells_of(visits.matrix, templates.covered[1]), [*pairwise(visits.starts.tolist())]
    looks = []
    for c, spans in cells_of(people.matrix, templates.classes).items():
        members = np.flatnonzero(templates.classes == c).tolist()
        counts = [len(rows[i]) for i in members]
        slots = [templates.slots[1][slice(*ends[i])].tolist() for i in members]
        shown = [[cells[slot] for slot in own if slot >= 0] for own in slots]
        looks.append((spans, min(counts), max(counts), shown))
        for i in members:
            for known, slot in zip(rows[i], templates.covered[1][slice(*ends[i])], strict=True):
                covering = {
                    cell for own in shown for cell in own if naive_items.covers(cell, known)
                }
                if not counted or min(counts) == max(counts):
                    assert cells[slot] in covering if slot >= 0 else not covering
    assert len({look[:3] for look in looks}) == len(looks)
    for age, own in world:
        alike = [
            shown
            for spans, least, most, shown in looks
            if naive_items.covers(spans, [age]) and (not counted or least <= len(own) <= most)
        ]
        for known in combinations(own, min(m, len(own))):
            assert sum(len(naive_items.showing(shown, known)) for shown in alike) >= k


@pytest.mark.parametrize(("second", "classes"), [(4, 1), (3, 2)])
def test_classes_are_one_only_where_all_that_is_known_as_a_whole_looks_alike(second, classes):
    """Of eight people in classes of four, half have another second visit, or the same."""
    first = [[(0,), (4,)]] * 4
    visits = table([*first, *[[(second,), (0,)]] * 4], [TREE], None)
    drugs = table([[(0,)]] * 16, [4.0], 1, parent=1)
    bundles = Bundles.of((nobody(8), visits, drugs))
    templates = Items(size=4).bundle(bundles, asked(2, bundles), np.random.default_rng(0))
    assert int(templates.classes.max()) + 1 == classes


def test_what_hangs_from_a_known_row_is_published_with_it():
    world = [[(0,), (1,)], [(0,), (1,)], [(0,), (1,)], [(0,), (1,)]]
    visits = table(world, [TREE], 1)
    drugs = table([[(0,)] * (i % 2) for i in range(8)], [4.0], None, parent=1)
    bundles = Bundles.of((nobody(4), visits, drugs))
    templates = Items(size=4).bundle(bundles, asked(2, bundles), np.random.default_rng(0))
    assert (templates.slots[1] >= 0).all()
    assert (templates.slots[2] >= 0).all()
    assert len(set(templates.slots[1].tolist())) == 2


def test_rows_below_different_slots_are_never_taken_for_each_other():
    """The same drug on an urgent and on a planned visit, of two people each: both are hidden."""
    visits = table([[(0,), (4,)]] * 4, [TREE], None)
    drugs = [[(0,)], []] * 2 + [[], [(0,)]] * 2
    below = table(drugs, [TREE], 1, parent=1)
    bundles = Bundles.of((nobody(4), visits, below))
    templates = Items(size=4).bundle(bundles, asked(2, bundles), np.random.default_rng(0))
    assert len(set(templates.slots[2].tolist())) == 2
    few = Items(size=6).bundle(bundles, asked(3, bundles), np.random.default_rng(0))
    assert (few.slots[2] < 0).all()


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=8),
    st.integers(2, 4),
    st.integers(2, 3),
    st.sets(st.integers(0, 4)),
)
def test_rare_sets_are_those_that_trying_all_finds(world, k, m, stuck):
    holdings = [sorted(Counter(own).items()) for own in world]
    begins = starts_of(np.array([len(own) for own in holdings], dtype=np.int64))
    node, times = np.array([h for own in holdings for h in own], np.int64).reshape(-1, 2).T.copy()
    is_stuck = np.isin(np.arange(5), list(stuck))
    found = known_sets.rare_sets(
        np.array([0, len(world)]), begins, node, times, m, k, np.ones(1, dtype=bool), is_stuck
    )
    expected = naive_items.rare_sets(world, m, k, stuck)
    assert found.tolist() == [expected[n] for n in range(5)]


@given(
    st.lists(st.lists(st.integers(0, 4), max_size=5), min_size=1, max_size=6),
    st.lists(st.integers(-1, 2), min_size=5, max_size=5),
)
def test_holdings_of_joined_nodes_are_joined(world, number):
    holdings = [sorted(Counter(own).items()) for own in world]
    begins = starts_of(np.array([len(own) for own in holdings], dtype=np.int64))
    node, times = np.array([h for own in holdings for h in own], np.int64).reshape(-1, 2).T.copy()
    known_sets.renumber(begins, node, times, np.array(number))
    for i, own in enumerate(world):
        expected = sorted(Counter(number[n] for n in own if number[n] >= 0).items())
        held = slice(begins[i], begins[i + 1])
        assert list(zip(node[held].tolist(), times[held].tolist(), strict=True)) == expected


def test_a_person_who_counts_twice_loses_twice():
    """a1 loses nothing, b2 and b3 half of all; one of two rows is withheld."""
    bundles = sets_of([["a1"], ["b2"], ["b3"], ["a1", "a2"]], 2)
    slots = np.array([0, 1, 1, 0, -1])
    templates = Templates((np.zeros(4, np.int64), slots))
    assert bundle_loss(bundles, templates) == pytest.approx((0.5 + 0.5 + 1) / 5)
    weight = np.array([1.0, 2.0, 0.0, 2.0])
    assert bundle_loss(bundles, templates, weight) == pytest.approx((2 * 0.5 + 2 * 1) / 7)


def test_the_largest_counts_are_published_as_the_least_of_them():
    """Counts 1 and 2 have enough people for classes of their own; 7 and 9 are in one of both."""
    world = [["a1"] * count for count in [1] * 4 + [2] * 4 + [7, 7, 7, 9]]
    bundles = sets_of(world, 1, counted=True)
    templates = Items(size=4).bundle(bundles, asked(2, bundles), np.random.default_rng(0))
    shown = [len(own) for own in by_person(bundles, templates.slots[1])]
    assert shown == [1] * 4 + [2] * 4 + [7] * 4


def test_classes_below_2k_and_tables_that_are_known_as_a_whole_are_refused():
    bundles = sets_of([["a1"]] * 8, 2)
    with pytest.raises(InputError, match="'size' of at least 6"):
        Items(size=5).bundle(bundles, asked(3, bundles), np.random.default_rng(0))
    tables = tuple(replace(rows, known=None) for rows in bundles.tables)
    with pytest.raises(InputError, match="say 'known: 2' of one, or choose 'bundles'"):
        Items().bundle(Bundles.of(tables), asked(3, bundles), np.random.default_rng(0))
