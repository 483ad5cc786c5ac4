"""What is wrong with a file of keys and values, said without the checker's own words."""

import numpy as np
import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.auditor.dossier.context import read_context
from shoal.data.findings import listed_rows
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.given_trees import declared_hierarchy
from shoal.policy.policy import Policy

POLICY = content_of({"age": "quasi", "ill": "sensitive"}, 2)
AGE = {"role": "quasi"}
QUOTES = "put words like yes, no, on and off in quotes"
CASES = [
    ({"accept": {"alone": "x"}}, ["accept.alone: must be a number or a mapping of keys to values"]),
    ({"accept": {"certain": {"ill": "x"}}}, ["accept.certain.ill: must be a number"]),
    ({"seed": -1}, ["seed: must be at least 0"]),
    ({"version": 2}, ["version: must be 1"]),
    (
        {"read": {"decimal": ";"}, "population": {"fraction": 2}},
        ["population.fraction: must be at most 1", "read.decimal: must be '.' or ','"],
    ),
    (
        AGE | {"order": {"a": 1}, "weight": 0},
        [
            f"attributes.age.order: must be a list or text; {QUOTES}",
            "attributes.age.weight: must be above 0",
        ],
    ),
    (AGE | {"order": [["a"], "b"]}, [f"attributes.age.order.0: must be text; {QUOTES}"]),
    (AGE | {"domain": [0, 1, 2]}, ["attributes.age.domain: has more than 2 entries"]),
]


@pytest.mark.parametrize(("change", "says"), CASES)
def test_each_place_has_one_finding_in_plain_words(change, says):
    change = {"attributes": {"age": change}} if "role" in change else change
    with pytest.raises(InputError) as refused:
        Policy.from_dict(POLICY | change)
    assert refused.value.said == [f"policy, {one}" for one in says]


NUMBER = {"role": "quasi", "type": "number"}
HAS_NO_MEAN = "type number without a hierarchy"
EMPTY = "attributes.x.ask: is empty"
SETTINGS = [
    ({"role": "sensitve"}, "or 'household'; did you mean 'sensitive'?"),
    ({"role": "quasi", "type": "numbr"}, "did you mean 'number'?"),
    ({"role": "quasi", "domain": [-1.7e308, 1.7e308]}, "domain must lie within"),
    ({"role": "quasi", "ask": None}, f"{EMPTY}; write the question, or delete the key"),
    ({"role": "quasi", "ask": ""}, f"{EMPTY}; write a text, or delete the key"),
    ({"role": "quasi", "type": "category", "round": 5}, "of type number"),
    (NUMBER | {"round": 0}, "must be above 0"),
    (NUMBER | {"round": 5, "render": "mean"}, "'round' belongs to a quasi-identifier"),
    (NUMBER | {"round": 5, "role": "sensitive"}, "'round' belongs to a quasi-identifier"),
    (NUMBER | {"round": 5, "render": "median"}, "publishes ranges"),
    ({"role": "quasi", "render": "median"}, "of type number"),
    ({"role": "sensitive", "render": "mode"}, "belongs to a quasi-identifier"),
    (NUMBER | {"role": "sensitive", "render": "mean"}, HAS_NO_MEAN),
    ({"role": "quasi", "render": "mean"}, HAS_NO_MEAN),
    ({"role": "quasi", "order": ["a"], "render": "both"}, HAS_NO_MEAN),
    (NUMBER | {"hierarchy": {"bins": 10}, "render": "mean"}, HAS_NO_MEAN),
]


@pytest.mark.parametrize(("settings", "says"), SETTINGS)
def test_settings_that_a_column_can_not_have_are_refused(settings, says):
    with pytest.raises(InputError) as refused:
        Policy.from_dict(content_of({"x": settings, "y": "quasi"}))
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("accept", "says"),
    [
        ({"certain": {"age": 0.1}}, "accept 'certain': attribute 'age' must have the role"),
        ({"alone": {"age": 0.1}}, "must have the role 'sensitive' or 'plain'"),
        ({"certain": {"il": 0.1}}, "attribute 'il' is not in the policy; did you mean 'ill'?"),
    ],
)
def test_a_threshold_says_which_columns_it_is_for(accept, says):
    with pytest.raises(InputError, match=says.replace("?", r"\?")):
        Policy.from_dict(POLICY | {"accept": accept})


@pytest.mark.parametrize("day", ["soon", "31.12.2031", 3.5, True, "2031-13-01"])
def test_a_date_says_how_dates_are_written(day):
    expected = "^context, review_by: must be a date, written like 2031-12-31$"
    with pytest.raises(InputError, match=expected):
        read_context({"version": 1, "review_by": day})


@pytest.mark.parametrize(
    ("rows", "count", "says"),
    [
        ([6], None, "row 7"),
        ([0, 1], None, "rows 1, 2"),
        (range(5), 5, "rows 1, 2, 3, 4, 5"),
        (range(21), None, f"rows {', '.join(map(str, range(1, 21)))} and 1 more"),
        (range(5), 17, "rows 1, 2, 3, 4, 5 and 12 more"),
    ],
)
def test_rows_that_are_not_listed_are_counted(rows, count, says):
    assert listed_rows(rows, count) == says


def test_rows_that_a_maker_has_no_place_for_are_counted(tmp_path):
    column = Table(pl.DataFrame({"age": ["30", "31"] * 6 + ["x"] * 22})).column("age")
    is_value = np.ones(len(column.cells), dtype=bool)
    with pytest.raises(InputError, match=r"\(rows 13, 14, .*, 31, 32 and 2 more\)") as refused:
        declared_hierarchy("age", {"bins": [0, 20, 40]}, tmp_path, column, is_value)
    assert refused.value.found[0].rows == (*range(13, 35),)


def test_one_run_lists_what_is_wrong_with_every_attribute():
    frame = pl.DataFrame({"day": ["2024-01-05", "x"] * 5, "age": ["30", "31", "y"] * 3 + ["z"]})
    quasi = {"day": {"hierarchy": {"dates": "day"}}, "age": {"type": "number"}}
    with pytest.raises(InputError, match=r"'day': 5 records.*\n.*'age': 4 records") as refused:
        shoal.publish(frame, quasi=quasi, k=2)
    assert [len(one.rows) for one in refused.value.found] == [5, 4]
