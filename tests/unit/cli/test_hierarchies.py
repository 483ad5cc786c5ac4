"""The array form of hierarchies against a plain one made of dictionaries and sets."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from naive_hierarchies import grown
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.errors import InputError


def rows_of(branch, above, names):
    """Leaf-to-root rows of a nested list whose members are leaves where they hold nothing."""
    label = f"n{next(names)}"
    if not branch:
        yield [label, *above]
    for member in branch:
        yield from rows_of(member, [label, *above], names)


@st.composite
def trees(draw):
    """Rows of a random tree: mixed depth, only children, padding, names used twice on one line, any
    row order.
    """
    shape = draw(
        st.recursive(
            st.just([]), lambda inner: st.lists(inner, min_size=1, max_size=4), max_leaves=14
        )
    )
    rows = list(rows_of(shape, [], iter(range(1000))))
    row = draw(st.sampled_from(rows))
    if len(row) > 1:
        below, above = sorted(draw(st.tuples(*[st.integers(1, len(row) - 1)] * 2)))
        rows = [[row[above] if label == row[below] else label for label in other] for other in rows]
    groups = sorted({row[1] for row in rows if len(row) > 1})
    for group in draw(st.sets(st.sampled_from(groups), max_size=2)) if groups else ():
        # of two nodes of that name the lower one, or the leaf would stand beside it
        lowest = max((row[row.index(group, 1) :] for row in rows if group in row[1:]), key=len)
        rows.append([group, *lowest])
    padded = [[label for label in row for _ in range(draw(st.integers(1, 3)))] for row in rows]
    return draw(st.permutations(padded if draw(st.booleans()) else rows))


def covers_of(hierarchy: Hierarchy) -> list[frozenset[str]]:
    return [
        frozenset(hierarchy.labels[first : last + 1])
        for first, last in zip(hierarchy.first, hierarchy.last, strict=True)
    ]


@given(trees())
def test_every_node_is_the_span_of_its_leaves(rows):
    hierarchy, naive = Hierarchy.from_paths(rows), grown(rows)
    covers = covers_of(hierarchy)
    chains = naive.distinct()
    assert sorted(hierarchy.labels[: hierarchy.leaves]) == sorted(naive.lines)
    assert len(covers) == len(set(covers)) == len(chains)
    for node, cover in enumerate(covers):
        chain = chains[cover]
        assert hierarchy.labels[node] == chain[0][-1]
        assert hierarchy.levels[node] == naive.levels[chain[0]]
        above = [(a.label, a.level) for a in hierarchy.aliases if a.node == node]
        assert above == [(link[-1], naive.levels[link]) for link in chain[1:]]


@given(trees())
def test_a_parent_is_the_least_wider_node(rows):
    hierarchy = Hierarchy.from_paths(rows)
    covers = covers_of(hierarchy)
    for node, cover in enumerate(covers):
        wider = [other for other in covers if other > cover]
        if wider:
            assert covers[hierarchy.parent[node]] == min(wider, key=len)
        else:
            assert node == hierarchy.root


@given(trees())
def test_leaves_are_numbered_first_and_root_leads_the_inner_nodes(rows):
    hierarchy = Hierarchy.from_paths(rows)
    leaves = np.arange(hierarchy.leaves)
    assert np.array_equal(hierarchy.first[leaves], leaves)
    assert np.array_equal(hierarchy.last[leaves], leaves)
    assert (hierarchy.last[hierarchy.leaves :] > hierarchy.first[hierarchy.leaves :]).all()
    assert hierarchy.root == (hierarchy.leaves if hierarchy.leaves > 1 else 0)


@given(trees(), st.data())
def test_covering_is_the_lowest_node_above_both_ends(rows, data):
    hierarchy, naive = Hierarchy.from_paths(rows), grown(rows)
    ends = st.integers(0, hierarchy.leaves - 1)
    lo, hi = sorted([data.draw(ends), data.draw(ends)])
    node = int(hierarchy.covering(np.array([lo]), np.array([hi]))[0])
    leaves = list(hierarchy.labels[lo : hi + 1])
    assert covers_of(hierarchy)[node] == naive.covering(leaves)


@given(trees())
def test_a_label_means_the_widest_node_of_its_name(rows):
    hierarchy, naive = Hierarchy.from_paths(rows), grown(rows)
    for label in {label for row in rows for label in row}:
        named = [naive.covers[node] for node in naive.covers if node[-1] == label]
        assert covers_of(hierarchy)[hierarchy.node_of_label(label)] == max(named, key=len)
    assert hierarchy.node_of_label("never seen") == -1


@given(trees())
def test_labels_at_a_level_are_those_of_the_naive_climb(rows):
    hierarchy, naive = Hierarchy.from_paths(rows), grown(rows)
    assert hierarchy.height == naive.height
    for level in range(hierarchy.height + 1):
        expected = [naive.label_at(leaf, level) for leaf in hierarchy.labels[: hierarchy.leaves]]
        assert list(hierarchy.labels_at(level)) == expected


@given(trees())
def test_each_level_coarsens_the_one_below(rows):
    hierarchy = Hierarchy.from_paths(rows)
    finer = hierarchy.ancestors_at(0)
    assert np.array_equal(finer, np.arange(hierarchy.leaves))
    for level in range(1, hierarchy.height + 1):
        coarser = hierarchy.ancestors_at(level)
        assert len(set(zip(finer, coarser, strict=True))) == len(set(finer))
        assert (hierarchy.first[coarser] <= np.arange(hierarchy.leaves)).all()
        assert (hierarchy.last[coarser] >= np.arange(hierarchy.leaves)).all()
        finer = coarser
    assert set(finer) == {hierarchy.root}


@given(trees(), st.data())
def test_moving_costs_the_same_when_chains_are_one_node(rows, data):
    hierarchy, naive = Hierarchy.from_paths(rows), grown(rows)
    leaves = hierarchy.labels[: hierarchy.leaves]
    moves = data.draw(
        st.lists(st.tuples(st.sampled_from(leaves), st.sampled_from(leaves)), max_size=8)
    )
    difference = np.zeros(hierarchy.leaves, dtype=int)
    for source, target in moves:
        difference[leaves.index(source)] += 1
        difference[leaves.index(target)] -= 1
    running = np.r_[0, np.cumsum(difference)]
    amount = running[hierarchy.last + 1] - running[hierarchy.first]
    cost = 0.0
    for node in range(hierarchy.leaves, len(hierarchy.labels)):
        below = amount[hierarchy.parent == node]
        moved = min(below[below > 0].sum(), -below[below < 0].sum())
        cost += hierarchy.levels[node] / hierarchy.height * moved
    assert cost == pytest.approx(
        naive.moving_cost(dict(zip(leaves, difference.tolist(), strict=True)))
    )


@given(trees())
def test_adding_a_leaf_is_adding_a_row_under_the_root(rows):
    root = rows[0][-1]
    alone = all(len(set(row)) == 1 for row in rows)
    if alone:
        return  # the root is the only leaf; see the next test
    assert Hierarchy.from_paths(rows).with_leaf("") == _with_empty_leaf(rows, root)


def _with_empty_leaf(rows, root):
    """As `from_paths` would build it, were empty labels allowed."""
    built = Hierarchy.from_paths([*rows, ["the missing one", root]])
    labels = tuple("" if label == "the missing one" else label for label in built.labels)
    return Hierarchy(
        labels, built.parent, built.first, built.last, built.aliases, built.table_levels
    )


def test_a_leaf_beside_the_only_node_gets_a_root_above_both():
    hierarchy = Hierarchy.from_paths([["a"]]).with_leaf("")
    assert hierarchy.labels == ("a", "", "*")
    assert hierarchy.parent.tolist() == [2, 2, -1]


def test_a_leaf_can_be_added_only_once():
    with pytest.raises(InputError):
        Hierarchy.from_paths([["a", "*"], ["b", "*"]]).with_leaf("").with_leaf("")


def test_existing_leaves_keep_their_codes_when_one_is_added():
    hierarchy = Hierarchy.from_paths(
        [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"]]
    )
    values = np.array(["a", "b", "c", "d"], dtype=object)
    assert np.array_equal(hierarchy.with_leaf("").leaf_codes(values), hierarchy.leaf_codes(values))
    assert hierarchy.with_leaf("").leaf_codes(np.array([""], dtype=object)).tolist() == [
        hierarchy.leaves
    ]


@pytest.mark.parametrize(
    "kind", [list, np.array, pl.Series, lambda texts: np.array(texts, dtype=object)]
)
def test_leaf_codes_are_minus_one_for_groups_and_strangers(kind):
    hierarchy = Hierarchy.from_paths([["a", "x", "*"], ["b", "x", "*"], ["c", "*"]])
    codes = hierarchy.leaf_codes(kind(["c", "x", "b", "*", "stranger", ""]))
    assert codes.tolist() == [2, -1, 1, -1, -1, -1]
    assert codes.dtype == np.int32


def test_leaf_codes_of_no_values_are_none():
    hierarchy = Hierarchy.from_paths([["a", "*"], ["b", "*"]])
    assert hierarchy.leaf_codes(np.array([], dtype=object)).tolist() == []


@pytest.mark.parametrize(
    ("paths", "labels", "nodes"),
    [
        ("Other Other * | x Other * | y * *", "Other x y * Other", {"Other": 4}),
        ("CA Canada * | DE Europe * | FR Europe *", "CA DE FR * Europe", {"Canada": 0, "CA": 0}),
        ("b y * | a x * | c y * | d x *", "b c a d * y x", {}),
    ],
    ids=["a leaf named as its group", "a chain is one node", "in order of first mention"],
)
def test_nodes_are_found_by_their_labels(paths, labels, nodes):
    hierarchy = Hierarchy.from_paths([path.split() for path in paths.split("|")])
    assert hierarchy.labels == tuple(labels.split())
    assert {label: hierarchy.node_of_label(label) for label in nodes} == nodes


def test_levels_without_a_table_are_depths():
    built = Hierarchy.from_paths(
        [["a", "x", "u", "*"], ["b", "x", "u", "*"], ["c", "u", "*"], ["d", "*"]]
    )
    bare = Hierarchy(built.labels, built.parent, built.first, built.last)
    assert np.array_equal(bare.levels, built.levels)
    assert bare == built


def test_all_faults_are_reported_at_once():
    rows = [["a", "x", "*"], ["a", "x", "*"], ["b", "x", "+"], ["c", "", "*"]]
    with pytest.raises(InputError) as refused:
        Hierarchy.from_paths(rows)
    assert len(refused.value.said) == 4
