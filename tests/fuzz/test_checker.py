"""The checker by hand, and that it shares nothing with what it checks."""

import ast
import sys
from fractions import Fraction
from pathlib import Path

import pytest

from fuzz.cells import Policy, Table
from fuzz.judge import judge

CHECKER = ("cells", "rules", "judge", "linked_judge")
AGE = {"role": "quasi", "type": "number", "domain": [0, 100]}
K, L = {"model": "k-anonymity", "k": 2}, {"model": "l-diversity", "attribute": "ill", "l": 2}


def policy(*promises: dict, ill: dict | None = None, **more) -> Policy:
    attributes = {"age": AGE, "ill": {"role": "sensitive", **(ill or {})}}
    return Policy.of({"version": 1, "attributes": attributes, "promises": list(promises), **more})


def table(*rows: str) -> Table:
    return Table(["age", "ill"], [row.split("|") for row in rows])


def measured(verdict) -> list:
    return [found.measured for found in verdict.promises]


@pytest.mark.parametrize("module", CHECKER)
def test_the_checker_imports_nothing_but_the_standard_library_and_itself(module):
    tree = ast.parse((Path(__file__).parent / f"{module}.py").read_text())
    for node in ast.walk(tree):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        for name in names:
            assert name.split(".")[0] in sys.stdlib_module_names or name.startswith("fuzz.")
            assert not name.startswith("fuzz.") or name.removeprefix("fuzz.") in CHECKER


def test_a_release_of_stars_alone_is_one_class():
    verdict = judge(policy(K, L), table("*|flu", "*|flu", "*|flu"))
    assert measured(verdict) == [3, 1]
    assert not verdict.holds
    assert (verdict.starred, verdict.withheld) == (3, 0)


def test_a_starred_row_is_a_class_until_its_sensitive_value_is_starred_too():
    shown = judge(policy(K), table("[20, 30]|flu", "[20, 30]|hiv", "*|hiv"))
    assert measured(shown) == [1]
    assert not shown.holds
    hidden = judge(policy(K), table("[20, 30]|flu", "[20, 30]|hiv", "*|*"))
    assert measured(hidden) == [2]
    assert hidden.holds
    assert hidden.withheld == 1


def test_several_texts_for_no_value_are_several_values_for_t_and_one_for_l():
    rows = ["20|", "20|", "20|flu", "20|flu", "30|refused", "30|refused", "30|flu", "30|flu"]
    close = {"model": "t-closeness", "attributes": ["ill"], "t": 0.1}
    verdict = judge(policy(L, close, missing_values=["", "refused"]), table(*rows))
    assert measured(verdict) == [2, Fraction(1, 4)]
    assert not verdict.holds


def test_an_order_moves_a_missing_value_by_the_larger_of_both_distances():
    """Numbers 1 and 2 and two texts for none: 1/8 in order, 1/4 by texts for none."""
    rows = ["20|1", "20|2", "20|", "20|", "30|1", "30|2", "30|refused", "30|refused"]
    close = {"model": "t-closeness", "attributes": ["ill"], "t": 0.2}
    asked = policy(close, missing_values=["", "refused"], ill={"type": "number"})
    assert measured(judge(asked, table(*rows))) == [Fraction(1, 4)]


def test_ordered_and_hierarchical_distances_by_hand():
    rows = ["20|1", "20|2", "30|3", "30|4"]
    close = {"model": "t-closeness", "attributes": ["ill"], "t": 0.2}
    ordered = policy(close, ill={"type": "number"})
    assert measured(judge(ordered, table(*rows))) == [Fraction(1, 3)]
    tree = policy(close, ill={"hierarchy": {"tree": {"any": {"a": [1, 2], "b": [3, 4]}}}})
    assert measured(judge(tree, table(*rows))) == [Fraction(1, 2)]


def test_people_are_counted_where_the_original_names_them():
    content = {
        "version": 1,
        "attributes": {"who": {"role": "subject"}, "age": AGE},
        "promises": [K],
    }
    original = Table(["who", "age"], [["p", "1"], ["p ", "2"], ["q", "3"]])
    released = Table(["age"], [["[1, 3]"]] * 3)
    assert measured(judge(Policy.of(content), released, original)) == [2]
    assert measured(judge(Policy.of(content), released)) == [3]


@pytest.mark.parametrize(
    ("cell", "value", "is_covered"),
    [("[20, 30]", "25", True), ("[20, 30]", "30.5", False), ("*", "7", True), ("7", "7.0", True)],
)
def test_cells_cover_the_values_between_their_ends(cell, value, is_covered):
    verdict = judge(policy(K), table(f"{cell}|x", f"{cell}|x"), table(f"{value}|x", f"{value}|x"))
    assert bool(verdict.uncovered) is not is_covered


def test_a_cell_that_says_nothing_is_unfit():
    assert judge(policy(K), table("about forty|x", "about forty|x")).unfit
