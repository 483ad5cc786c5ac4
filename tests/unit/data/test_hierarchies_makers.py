"""Hierarchies made by rule: every value is a leaf, groups are what the rule says, misfits are
refused.
"""

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.hierarchies.bins import Bins
from shoal.data.hierarchies.dates import Dates
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.hierarchies.labels import Flat, Order, Prefix, Tree
from shoal.errors import InputError
from shoal.policy import registry


def texts(*values: str) -> np.ndarray:
    return np.array(values, dtype=object)


def lines(hierarchy: Hierarchy) -> dict[str, list[str]]:
    """Every leaf's labels up to the root, aliases included, repeats left out."""
    columns = [hierarchy.labels_at(level) for level in range(hierarchy.height + 1)]
    rows = zip(*columns, strict=True)
    return {
        row[0]: [label for i, label in enumerate(row) if i == 0 or label != row[i - 1]]
        for row in rows
    }


codes = st.text(st.sampled_from("0123*"), min_size=1, max_size=7)
numbers = st.decimals(0, 1000, places=2).map(str) | st.integers(0, 1000).map(str)
times = st.datetimes(datetime(1, 1, 1)).map(lambda t: t.isoformat(" ")) | st.dates().map(
    date.isoformat
)
graded = st.lists(st.text(min_size=1), unique=True, min_size=1, max_size=20)
RULES = [
    (Prefix(5), codes),
    (Bins.from_spec([0, "0.5", 20, 1001]), numbers),
    (Bins.from_spec({"width": 7.5, "start": -3, "factor": 3, "levels": 4}), numbers),
    (Dates(("hour", "day", "month", "quarter", "year", "decade")), times),
    (Order(tuple("abcdefg"), 3), st.sampled_from("abcdefg")),
    (Tree.from_spec({"x": ["a", "b", {"y": ["c"]}], "d": None}), st.sampled_from("abcd")),
    (Flat(), st.text(min_size=1)),
]


@pytest.mark.parametrize(("maker", "value"), RULES, ids=lambda rule: getattr(rule, "kind", ""))
@given(st.data())
def test_every_value_is_a_leaf_whatever_the_order_of_the_values(maker, value, data):
    values = data.draw(st.lists(value, unique=True, max_size=30))
    hierarchy = maker.make(texts(*values))
    assert (hierarchy.leaf_codes(texts(*values)) >= 0).all()
    assert not maker.values_without_leaf(texts(*values)).any()
    assert hierarchy == maker.make(texts(*data.draw(st.permutations(values))))


def test_every_maker_is_registered_under_its_kind():
    assert {kind: maker.kind for kind, maker in registry.makers().items()} == {
        maker.kind: maker.kind for maker, _ in RULES
    }


SENSELESS = {
    "prefix": [0, True, "5", None, [5]],
    "bins": [
        5, [], [1], [2, 1], [1, 1], [1, "x"], [0, float("inf")], [0, float("nan"), 1],
        [False, True], {}, {"width": 0}, {"width": 1, "factor": 1}, {"width": 1, "levels": 0},
        {"width": 1, "levels": 2.0}, {"width": 1, "start": None}, {"width": 1, "stop": 9},
    ],
    "dates": [[], ["month", "day"], ["day", "day"], ["week"], 5],
    "order": [
        [], None, "ab", ["a", "a"], ["a", 1.5], ["a", True], ["a", None], ["a", ["b"]],
        {"values": ["a"], "fan": 2}, {"values": ["a"], "fanout": 1}, {"fanout": 2},
    ],
    "tree": [
        {}, [], "a", None, {"a": []}, {"a": {}, "b": ["c"]}, {False: ["a"]}, ["a", None],
        {"x": [1.0]},
    ],
    "flat": [5, "", False],
}  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "argument"), [(kind, one) for kind, several in SENSELESS.items() for one in several]
)
def test_an_argument_that_makes_no_sense_is_refused(kind, argument):
    with pytest.raises(InputError, match=f"hierarchy maker '{kind}' takes"):
        registry.makers()[kind].from_spec(argument)


EUROPE = {"Europe": ["DE", "FR"], "Asia": {"East": ["JP", "KR"], "South": "IN"}, "?": None}
BY_HAND = {
    "a prefix loses one character a level": (
        ("prefix", 5, "13053 13068 14850"),
        ["13053|1305*|130**|13***|1****|*"],
    ),
    "shorter codes join where they have more characters, and longer ones at once": (
        ("prefix", 5, "123 12345 12345-6789 1234 9"),
        ["123|12***|1****|*", "1234|123**|12***|1****|*", "9|*"],
        ["12345-6789|1234*|123**|12***|1****|*"],
    ),
    "bins hold their lower and not their upper edge": (
        ("bins", [0, 20, 40.5], "0 19.99 20 40.4 7"),
        ["19.99|[0, 20)|*", "20|[20, 40.5)|*"],
    ),
    "bins of a width grow by their factor": (
        ("bins", {"width": 10, "start": 0, "factor": 2, "levels": 3}, "17 33 85"),
        ["17|[10, 20)|[0, 20)|[0, 40)|*", "33|[30, 40)|[20, 40)|[0, 40)|*"],
        ["85|[80, 90)|[80, 100)|[80, 120)|*"],
    ),
    "bins of decimal width are exact": (
        ("bins", {"width": 0.1}, "0.3 0.29999999999999999999999999 1e-7"),
        ["0.3|[0.3, 0.4)", "0.29999999999999999999999999|[0.2, 0.3)", "1e-7|[0, 0.1)"],
    ),
    "dates lie in ever longer periods": (
        ("dates", ["month", "quarter", "year", "decade"], "2013-05-17 1999-12-31"),
        ["2013-05-17|2013-05|2013-Q2|2013|2010s|*", "1999-12-31|1999-12|1999-Q4|1999|1990s|*"],
    ),
    "neighbours are grouped in order": (
        ("order", ["a", "b", "c", "d", "e"], "c"),
        ["a|a..b|a..d|*", "d|c..d|a..d|*", "e|*"],
    ),
    "an order takes whole numbers and another fanout": (
        ("order", {"values": [1, 2, 3, 4], "fanout": 3}, "2"),
        ["1|1..3|*", "4|*"],
    ),
    "a tree may have leaves at any depth": (
        ("tree", EUROPE, "DE"),
        ["DE|Europe|*", "JP|East|Asia|*", "IN|South|Asia|*", "?|*"],
    ),
}


@pytest.mark.parametrize("claim", BY_HAND)
def test_by_hand(claim):
    (kind, argument, values), *lists = BY_HAND[claim]
    made = lines(registry.makers()[kind].from_spec(argument).make(texts(*values.split())))
    for expected in (path.split("|") for paths in lists for path in paths):
        assert made[expected[0]][: len(expected)] == expected


@given(st.lists(codes, unique=True, min_size=1))
def test_a_prefix_group_holds_every_value_that_begins_with_it(values):
    hierarchy = Prefix(5).make(texts(*values))
    for node in range(hierarchy.leaves, len(hierarchy.labels)):
        label = hierarchy.labels[node]
        members = set(hierarchy.labels[hierarchy.first[node] : hierarchy.last[node] + 1])
        if node != hierarchy.root:
            begun = int(5 - hierarchy.levels[node])
            assert members == {v for v in values if v[:begun] == label[:begun] and len(v) > begun}


@given(st.lists(numbers, unique=True, min_size=1))
def test_bins_are_in_order_of_number_and_hold_their_members(values):
    hierarchy = Bins.from_spec({"width": 2.5, "factor": 3, "levels": 2}).make(texts(*values))
    placed = [Decimal(leaf) for leaf in hierarchy.labels[: hierarchy.leaves]]
    assert placed == sorted(placed)
    for leaf, line in lines(hierarchy).items():
        for label in line[1:-1]:
            low, high = label.strip("[)").split(", ")
            assert Decimal(low) <= Decimal(leaf) < Decimal(high)


NO_NUMBERS = ["x", "", "nan", "inf", "1_0", "-1", "60", "1e999", "1e-99999999", "true", "0x10"]
NO_DATES = ["17.5.2013", "2013-05", "2013", "", "2013-02-30", "noon"]
ODD = ["<odd>", "<even>"]


@pytest.mark.parametrize(
    ("maker", "good", "odd", "said"),
    [
        *(
            (Bins.from_spec([0, 60]), "59.99", [one], "(number 2) is not a number or lies outside")
            for one in NO_NUMBERS
        ),
        (Dates(("day",)), "2013-05-17", NO_DATES, "(number 2, 3, 4, 5, 6, ...) are not ISO dates"),
        (Order(("a", "b")), "a", ODD, "(number 2, 3)"),
        (Tree.from_spec(["a", "b"]), "a", ODD, "(number 2, 3)"),
    ],
)
def test_values_that_a_rule_has_no_place_for_are_counted_and_not_shown(maker, good, odd, said):
    with pytest.raises(InputError) as refused:
        maker.make(texts(good, *odd))
    value = "value" if len(odd) == 1 else "values"
    message = str(refused.value)
    assert message.startswith(f"{len(odd)} distinct {value} of {len(odd) + 1} {said}")
    assert not any(f"'{one}'" in message for one in odd if one)


def test_time_stamps_and_the_date_they_fall_on_share_its_day():
    made = Dates.from_spec(["day", "year"]).make(
        texts("2013-05-17", "2013-05-17 23:59:59", "2013-05-17T01:00:00+09:00")
    )
    assert made.leaves == 3
    assert made.labels[made.root] == "2013-05-17"
    assert made.node_of_label("*") == made.root


@given(st.lists(times, unique=True, min_size=1))
def test_dates_are_in_order_of_time(values):
    hierarchy = Dates(("month", "year")).make(texts(*values))
    placed = [datetime.fromisoformat(leaf) for leaf in hierarchy.labels[: hierarchy.leaves]]
    assert placed == sorted(placed)


@given(graded, st.integers(2, 4))
def test_each_ordered_group_is_a_run_of_neighbours_of_at_most_fanout_members(values, fanout):
    hierarchy = Order(tuple(values), fanout).make(texts())
    assert list(hierarchy.labels[: hierarchy.leaves]) == values
    members = np.bincount(hierarchy.parent[hierarchy.parent >= 0], minlength=len(hierarchy.labels))
    assert members.max() <= fanout


def test_the_one_key_at_the_top_of_a_tree_is_its_root():
    hierarchy = Tree.from_spec({"Any": ["a", {"g": ["b", "c"]}]}).make(texts())
    assert hierarchy.labels[hierarchy.root] == "Any"


def test_a_tree_that_lists_a_leaf_twice_is_refused():
    with pytest.raises(InputError, match="lists 1 value more than once"):
        Tree.from_spec({"x": ["a", "b"], "y": ["b"]}).make(texts("a"))


def test_a_value_that_is_its_own_root_is_still_a_leaf():
    assert Flat().make(texts("*", "a")).labels == ("*", "a", "*")
