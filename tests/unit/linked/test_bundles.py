"""People whose rows are published alike: bands, cuts and aligned rows, against plain truths."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive_linked
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.linked import BundleRows, Bundles
from shoal.data.partition import Matrix
from shoal.errors import InfeasibleError
from shoal.linked.kernels.align import assign, assign_in_order, assignment_space
from shoal.linked.methods import bundles as method
from shoal.linked.methods.bundles import BundleMethod, OrderedBundles, aligned, bundle_loss

TREE = Hierarchy.from_paths(
    [["a", "x", "*"], ["b", "x", "*"], ["c", "y", "*"], ["d", "y", "*"], ["e", "y", "*"]]
)
DOMAINS = [8.0, TREE]  # whose widths are exact in floating point, so that ties are ties


def width(domain):
    if isinstance(domain, Hierarchy):
        return lambda lo, hi: 0 if lo == hi else 0.25 if hi < 2 else 0.5 if lo > 1 else 1
    return lambda lo, hi: (hi - lo) / domain


def bundles_of(people):
    """People as in `naive_linked`, each with the rows of one table."""
    rows = [row for _, (own,) in people for row in own]
    starts = np.concatenate(([0], np.cumsum([len(own) for _, (own,) in people])))
    persons = np.array([codes for codes, _ in people]).reshape(len(people), -1)
    above = Matrix.from_columns(persons, [8.0] * persons.shape[1])
    below = Matrix.from_columns(np.array(rows).reshape(-1, 2), DOMAINS)
    return Bundles.of(
        (BundleRows(above, -1, np.array([0, len(people)])), BundleRows(below, 0, starts))
    )


def with_drugs(people, rng):
    """The bundles with a table below the rows; rows without quasi-identifiers below that."""
    bundles = bundles_of(people)
    tables = list(bundles.tables)
    for parent, domains in ((1, [8.0]), (2, [])):
        counts = rng.integers(0, 3, tables[parent].matrix.records)
        codes = rng.integers(0, 9, (int(counts.sum()), len(domains)))
        matrix = Matrix.from_columns(codes, domains)
        tables.append(BundleRows(matrix, parent, method.starts_of(counts)))
    return Bundles.of(tuple(tables))


def plain(kernel):
    """What only kernels call, as Python runs it."""
    return getattr(kernel, "py_func", kernel)


code = st.integers(0, 8)
row = st.tuples(code, st.integers(0, 4))
worlds = st.lists(
    st.tuples(st.tuples(code), st.tuples(st.lists(row, max_size=3))), min_size=4, max_size=20
)
ks = SimpleNamespace(k=2, needs_more_than_k=False)


@given(st.integers(1, 5), st.integers(1, 6), st.randoms(use_true_random=False))
def test_assignments_are_the_cheapest_there_are(slots, rows, random):
    slots = min(slots, rows)
    cost = [[random.randint(0, 20) / 4 for _ in range(rows)] for _ in range(slots)]
    space = plain(assignment_space)(slots, rows, slots)
    space.cost[:] = cost
    for found, cheapest in (
        (assign, naive_linked.cheapest_assignment),
        (assign_in_order, naive_linked.cheapest_in_order),
    ):
        plain(found)(slots, rows, space)
        chosen = space.chosen.tolist()
        assert len(set(chosen)) == slots
        assert sum(cost[s][r] for s, r in enumerate(chosen)) == pytest.approx(cheapest(cost))
    assert chosen == sorted(chosen)


def test_the_worked_example_crosses_no_rows():
    persons = Matrix.from_columns(np.array([[30], [34], [60], [62]]), [100.0])
    rows = Matrix.from_columns(np.array([1, 9, 2, 5, 8, 6, 7]).reshape(-1, 1), [10.0])
    starts = np.array([0, 2, 3, 5, 7])
    bundles = Bundles.of((BundleRows(persons, -1, np.array([0, 4])), BundleRows(rows, 0, starts)))
    slots = aligned(bundles, np.array([0, 0, 1, 1])).slots[1].tolist()
    # rows 1, 9 | 2 | 5, 8 | 6, 7: 9 is withheld, 5 goes with 6 and 8 with 7
    assert slots == [0, -1, 0, 1, 2, 1, 2]
    templates = BundleMethod().bundle(bundles, ks, np.random.default_rng(0))
    assert bundle_loss(bundles, templates) == pytest.approx((0.12 + 1.6) / 11)


@given(worlds, st.integers(2, 3))
def test_people_are_cut_as_the_plain_recursion_cuts_them(people, k):
    bundles = OrderedBundles.of(bundles_of(people), np.random.default_rng(0)).bundles
    rows = bundles.tables[1]
    ordered = [
        (tuple(codes), ([tuple(r) for r in rows.matrix.codes[a:b].tolist()],))
        for codes, a, b in zip(
            bundles.tables[0].matrix.codes.tolist(), rows.starts, rows.starts[1:], strict=False
        )
    ]
    widths = [width(8.0), *map(width, DOMAINS)]
    values = [value.tolist() for value in method._dimensions(bundles)]
    expected = naive_linked.cut(ordered, values, k, widths, [2.0])
    found = method.classes_of(bundles, k, len(people))  # one band
    classes = [np.flatnonzero(found == c).tolist() for c in range(max(found) + 1)]
    assert classes == expected


@given(worlds, st.integers(0, 5), st.integers(2, 3))
def test_every_slot_has_a_row_of_every_member_and_every_class_k_people(people, seed, k):
    rng = np.random.default_rng(seed)
    bundles = with_drugs(people, rng)
    templates = BundleMethod(band=1).bundle(
        bundles, SimpleNamespace(k=k, needs_more_than_k=False), rng
    )
    assert np.bincount(templates.classes).min() >= k
    for rows, slots in zip(bundles.tables[1:], templates.slots[1:], strict=True):
        above = templates.slots[rows.parent]
        counts = np.diff(rows.starts)
        for slot in range(above.max(initial=-1) + 1):
            members = np.flatnonzero(above == slot)
            own = [slots[rows.starts[i] : rows.starts[i + 1]] for i in members]
            kept = [sorted(one[one >= 0].tolist()) for one in own]
            assert all(own == kept[0] for own in kept)
            assert len(kept[0]) == len(set(kept[0])) == counts[members].min()
        for i in np.flatnonzero(above < 0):  # a row that is withheld takes those below it along
            assert (slots[rows.starts[i] : rows.starts[i + 1]] < 0).all()


@given(worlds)
def test_no_other_rows_of_the_last_member_would_fit_the_others_better(people):
    bundles = OrderedBundles.of(bundles_of(people), np.random.default_rng(0)).bundles
    classes = np.zeros(len(people), np.int64)
    slots = aligned(bundles, classes).slots[1]
    rows, last = bundles.tables[1], len(people) - 1
    count = slots.max(initial=-1) + 1
    if count == 0:
        return
    others = [
        [tuple(rows.matrix.codes[r]) for r in np.flatnonzero(slots == s) if r < rows.starts[last]]
        for s in range(count)
    ]
    own = [tuple(c) for c in rows.matrix.codes[rows.starts[last] :]]
    widths = list(map(width, DOMAINS))
    cost = [[naive_linked.hull_cost([*o, r], widths) for r in own] for o in others]
    taken = [int(np.flatnonzero(slots[rows.starts[last] :] == s)[0]) for s in range(count)]
    total = sum(cost[s][r] for s, r in enumerate(taken))
    assert total == pytest.approx(naive_linked.cheapest_assignment(cost))


def test_rows_are_kept_whose_rows_below_fit():
    """Two visits alike: the one with as many drugs as the other person's has a partner."""
    people = [((1,), ([(5, 0), (5, 0)],)), ((1,), ([(5, 0)],))]
    visits = bundles_of(people)
    counts = np.array([1, 3, 3])
    drugs = Matrix.from_columns(np.zeros((7, 0), int), [])
    bundles = Bundles.of((*visits.tables, BundleRows(drugs, 1, method.starts_of(counts))))
    templates = BundleMethod().bundle(bundles, ks, np.random.default_rng(0))
    assert templates.slots[1].tolist() == [-1, 0, 0]
    assert (templates.slots[2] >= 0).tolist() == [False] + [True] * 6


def test_rows_alike_go_where_the_rows_below_them_are_alike():
    people = [((1,), ([(5, 0), (5, 0)],))] * 2
    drugs = Matrix.from_columns(np.array([[0], [8], [8], [0]]), [8.0])
    below = BundleRows(drugs, 1, np.arange(5))
    bundles = Bundles.of((*bundles_of(people).tables, below))
    templates = BundleMethod().bundle(bundles, ks, np.random.default_rng(0))
    first, second, third, fourth = templates.slots[1].tolist()
    assert (first, second) == (fourth, third)
    assert bundle_loss(bundles, templates) == 0


def test_rows_in_order_keep_it_where_another_order_would_cost_less():
    rows = np.array([[0, 0], [1, 4], [0, 4], [1, 0]])
    matrix = Matrix.from_columns(rows, [80.0, TREE])
    people = bundles_of([((1,), ([],))] * 2).tables[0]
    slots = {}
    for ordered in (False, True):
        below = BundleRows(matrix, 0, np.array([0, 2, 4]), 1.0, ordered)
        slots[ordered] = aligned(Bundles.of((people, below)), np.zeros(2, np.int64)).slots[1]
    assert slots[False].tolist() == [0, 1, 1, 0]
    assert slots[True].tolist() == [0, 1, 0, 1]


@given(worlds, st.randoms(use_true_random=False))
def test_the_order_of_the_input_changes_no_template(people, random):
    def templates(world):
        bundles = bundles_of(world)
        found = BundleMethod().bundle(bundles, ks, np.random.default_rng(0))
        return bundle_loss(bundles, found)

    distinct = list({repr(person): person for person in people}.values())
    if len(distinct) < 2:
        return
    shuffled = random.sample(distinct, len(distinct))
    assert templates(distinct) == pytest.approx(templates(shuffled))


def test_people_with_equally_many_rows_are_in_one_band():
    rows = np.array([9, 8, 8, 8, 3, 2, 2, 2, 2, 1])
    assert method.band_starts(rows, 3).tolist() == [0, 4, 10]
    assert method.band_starts(rows, 100).tolist() == [0, 10]
    assert method.band_starts(rows, 1).tolist() == [0, 1, 4, 5, 9, 10]


@given(worlds)
def test_people_who_have_to_stay_apart_are_in_no_class_together(people):
    apart = np.arange(len(people)) % 2
    bundles = replace(bundles_of(people), apart=apart)
    classes = BundleMethod(band=1).bundle(bundles, ks, np.random.default_rng(0)).classes
    assert all(len({*apart[classes == c].tolist()}) == 1 for c in range(classes.max() + 1))
    assert np.bincount(classes).min() >= 2


def test_too_few_people_who_have_to_stay_apart_are_refused():
    bundles = replace(bundles_of([((1,), ([],))] * 5), apart=np.array([0, 0, 0, 0, 1]))
    with pytest.raises(InfeasibleError, match="1 people have to stay apart"):
        BundleMethod().bundle(bundles, ks, np.random.default_rng(0))


def test_fewer_people_than_k_are_refused():
    with pytest.raises(InfeasibleError, match="the table of people has 1"):
        BundleMethod().bundle(bundles_of([((1,), ([],))]), ks, np.random.default_rng(0))
