"""Worked examples and theorems of the papers that define the promises."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
import published
from shoal.data.classes import Classes, SensitiveColumn
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.t_closeness import TCloseness

SALARIES = [3, 4, 5, 6, 7, 8, 9, 10, 11]


def salary_classes(chosen):
    """Nine salaries 3k..11k; class 0 has the chosen ones, class 1 the rest."""
    column = SensitiveColumn("salary", np.arange(9, dtype=np.int32), 9, "ordered")
    labels = np.array([0 if salary in chosen else 1 for salary in SALARIES], dtype=np.int32)
    return Classes(labels, 2, None, {"salary": column})


@pytest.mark.parametrize(
    ("chosen", "distance"), [((3, 4, 5), Fraction(3, 8)), ((6, 8, 11), Fraction(1, 6))]
)
def test_ordered_distance_of_the_nine_salaries_of_li_et_al(chosen, distance):
    measured = TCloseness("salary", 1.0).measure(salary_classes(chosen))
    assert measured[0] == pytest.approx(float(distance), abs=1e-15)


def test_the_class_of_low_salaries_is_exactly_0_375_close():
    assert TCloseness("salary", 0.375).holds(salary_classes((3, 4, 5)))[0]
    assert not TCloseness("salary", 0.3749).holds(salary_classes((3, 4, 5)))[0]


# nine diseases in a hierarchy of height 3, after the example of Li, Li and Venkatasubramanian
DISEASES = [[[0, 0, 0], [0, 0]], [[0, 0], [0, 0]]]


@given(st.sets(st.integers(0, 8), min_size=1))
def test_hierarchical_distance_equals_the_formula_of_li_et_al(chosen):
    tree = published.hierarchy_of(DISEASES)
    column = SensitiveColumn("disease", np.arange(9, dtype=np.int32), 9, "hierarchical", tree)
    labels = np.array([0 if place in chosen else 1 for place in range(9)], dtype=np.int32)
    p = [Fraction(int(place in chosen), len(chosen)) for place in range(9)]
    truth = naive.li_tree_distance(p, [Fraction(1, 9)] * 9, tree.parent.tolist())
    classes = Classes(labels, 2, None, {"disease": column})
    assert TCloseness("disease", 1.0).measure(classes)[0] == pytest.approx(float(truth), abs=1e-15)


@given(published.hierarchies, st.data())
def test_the_formula_of_li_et_al_is_the_cheapest_transport(tree, data):
    weights = st.lists(st.integers(0, 4), min_size=tree.leaves, max_size=tree.leaves).filter(any)
    p, q = (
        [Fraction(w, sum(drawn)) for w in drawn]
        for drawn in (data.draw(weights), data.draw(weights))
    )
    parent = tree.parent.tolist()
    ground = naive.tree_ground(parent, tree.leaves)
    assert naive.li_tree_distance(p, q, parent) == naive.earth_movers_distance(p, q, ground)


@pytest.mark.parametrize("size", [1, 2, 3, 4, 6])
def test_no_class_of_distinct_values_is_closer_than_its_size_allows(size):
    """Soria-Comas et al. 2015: k of n distinct values lie at least (n+k)(n-k) / (4n(n-1)k) away."""
    n = 12
    column = SensitiveColumn("s", np.arange(n, dtype=np.int32), n, "ordered")
    best = np.linspace(0, n, size + 1)[:-1] + n / (2 * size) - 0.5
    labels = np.ones(n, dtype=np.int32)
    labels[best.round().astype(int)] = 0
    measured = TCloseness("s", 1.0).measure(Classes(labels, 2, None, {"s": column}))[0]
    assert measured >= (n + size) * (n - size) / (4 * n * (n - 1) * size) - 1e-12


@pytest.mark.parametrize(
    ("counts", "c", "least", "holds"),
    [
        ((4, 3, 2, 1), 2, 2, True),  # 4 < 2 * (3 + 2 + 1)
        ((4, 3, 2, 1), 1, 3, False),  # 4 < 1 * (2 + 1) fails
        ((3, 2, 1), 1, 2, False),  # 3 < 1 * (2 + 1) is not strict
        ((3, 2, 2), 1, 2, True),
    ],
)
def test_recursive_diversity_reads_counts_from_the_most_frequent(counts, c, least, holds):
    codes = np.repeat(np.arange(len(counts)), counts).astype(np.int32)
    classes = Classes(
        np.zeros(len(codes), dtype=np.int32),
        1,
        None,
        {"s": SensitiveColumn("s", codes, len(counts))},
    )
    assert LDiversity("s", least, "recursive", c).holds(classes)[0] == holds


@given(published.classes(max_records=20), st.integers(1, 4))
def test_entropy_diversity_is_stronger_than_distinct_diversity(classes, least):
    """Machanavajjhala et al. 2007: an entropy of log(l) needs l different values."""
    entropy, distinct = LDiversity("s", least, "entropy"), LDiversity("s", least)
    assert (distinct.holds(classes) | ~entropy.holds(classes)).all()
