"""Who is alone in a table, and what each column gives away: by hand, and against a plain twin."""

import json
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.advise.risk import row_keys, singled_out, smallest_sets, table_risk, together
from shoal.cli.main import status_of

POLICY = content_of(
    {
        "who": "subject",
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "sex": "quasi",
        "ward": "plain",
    },
    2,
    other="drop",
)


def naive_sets(rows: list[tuple[int, ...]], people: list[int]) -> dict[int, int]:
    """By person, how many people look like the most exposed of their records."""
    holders = defaultdict(set)
    for row, person in zip(rows, people, strict=True):
        holders[row].add(person)
    smallest: dict[int, int] = {}
    for row, person in zip(rows, people, strict=True):
        smallest[person] = min(smallest.get(person, len(rows)), len(holders[row]))
    return smallest


def frame(**more: list) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "who": ["a", "a", "b", "c", "d"],
            "age": ["40", "40", "40.0", "40", "50"],
            "sex": ["f", "f", "m", "m", "m"],
            "ward": ["n", "n", "n", "s", "n"],
            **more,
        }
    )


def test_by_hand_in_people():
    # a: (40, f) twice; b, c: (40, m), written in two ways; d: (50, m)
    risk = shoal.risk(frame(), POLICY)
    assert (risk.people, risk.unit, risk.lone, risk.sets) == (4, "people", 2, {1: 2, 2: 2})
    assert risk.alone == {"age": 1, "sex": 1}
    assert risk.without == {"age": 1, "sex": 1}
    assert risk.if_known == {"ward": 4}
    assert [risk.hidden(k) for k in (1, 2, 3)] == [4, 2, 0]
    assert risk.below(2) == risk.lone
    assert risk.most_classes(2) == 2


def test_texts_for_no_value_are_one_value():
    policy = POLICY | {"missing_values": ["", "?"]}
    sex = ["f", "f", "", "?", ""]
    risk = shoal.risk(frame(sex=sex, age=["1", "1", "2", "2", "2"]), policy)
    assert risk.sets == {1: 1, 3: 3}


def test_without_a_subject_records_are_counted_and_said_to_be():
    attributes = {**POLICY["attributes"], "who": {"role": "identifier"}}
    risk = shoal.risk(frame(), POLICY | {"attributes": attributes})
    assert (risk.people, risk.unit, risk.lone) == (5, "records", 1)


def test_a_hierarchy_that_does_not_fit_yet_is_no_obstacle():
    attributes = {
        **POLICY["attributes"],
        "sex": {"role": "quasi", "hierarchy": {"tree": {"any": ["f"]}}},
    }
    assert shoal.risk(frame(), POLICY | {"attributes": attributes}).lone == 2


def test_a_record_without_a_person_is_refused_without_its_values():
    with pytest.raises(shoal.InputError, match=r"'who'.*without a subject") as refused:
        shoal.risk(frame(who=["a", "a", "b", "", "d"]), POLICY)
    assert "50" not in str(refused.value)


def test_columns_that_do_not_fit_are_listed():
    with pytest.raises(shoal.InputError, match="'sex'"):
        shoal.risk(frame().drop("sex"), POLICY)


TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(
        st.tuples(st.integers(0, 5), *[st.integers(0, 2)] * width), min_size=1, max_size=25
    )
)


@given(TABLES)
def test_counting_is_that_of_a_plain_twin(table):
    whose, *columns = [list(column) for column in zip(*table, strict=True)]
    people = np.unique(whose, return_inverse=True)[1]
    codes = {f"c{i}": np.array(column) for i, column in enumerate(columns)}
    plain = {"harmless": codes.pop("c0")} if len(codes) > 1 else {}
    risk = table_risk(codes, plain, people, None)

    def lone(names: list[str]) -> int:
        chosen = [{**codes, **plain}[name].tolist() for name in names]
        rows = list(zip(*chosen, strict=True)) if names else [()] * len(people)
        return sum(size == 1 for size in naive_sets(rows, people.tolist()).values())

    names = list(codes)
    rows = list(zip(*(codes[name].tolist() for name in names), strict=True))
    sizes = list(naive_sets(rows, people.tolist()).values())
    assert risk.sets == {size: sizes.count(size) for size in sorted(set(sizes))}
    for name in names:
        assert risk.alone[name] == lone([name])
        assert risk.without[name] == lone([other for other in names if other != name])
        assert risk.without[name] <= risk.lone
    for name in plain:
        assert risk.if_known[name] == lone([*names, name]) >= risk.lone


@given(TABLES)
def test_alone_is_a_set_of_one(table):
    columns = {str(i): np.array(c) for i, c in enumerate(zip(*table, strict=True))}
    keys = together(row_keys(columns, len(table)), len(table))
    people = np.unique(columns["0"], return_inverse=True)[1]
    for whose in (None, people):
        assert singled_out(keys, whose) == (smallest_sets(keys, whose) == 1).sum()


def test_the_command_prints_figures_and_no_cell(tmp_path, capsys):
    table = tmp_path / "t.csv"
    frame().with_columns(pl.col("sex").replace({"f": "canary"})).write_csv(table)
    policy = tmp_path / "p.json"
    policy.write_text(json.dumps(POLICY))
    assert status_of(["profile", str(table), "-p", str(policy), "-q"]) == 0
    shown = capsys.readouterr().out
    assert "2 of 4 people (50 %)" in shown
    assert "canary" not in shown
    assert status_of(["profile", str(table), "-p", str(policy), "--json", "--k", "3"]) == 0
    figures = json.loads(capsys.readouterr().out)["risk"]
    assert figures == shoal.risk(str(table), POLICY).to_dict() | {
        "k": 3,
        "below_k": 4,
        "most_classes": 1,
    }


def test_of_linked_tables_it_is_said_whom_numbers_of_rows_single_out_without_any_column():
    visits = [("a", "1"), ("b", "1"), ("c", "1"), ("c", "1"), ("d", "1")]
    tables = {
        "people": pl.DataFrame({"patient": list("abcd"), "sex": ["w", "m", "m", "m"]}),
        "visits": pl.DataFrame(visits, ["patient", "day"], orient="row"),
    }
    below = {"parent": {"people": "patient"}, "attributes": {"day": {"role": "quasi"}}}
    policy = content_of({"patient": "subject", "sex": "quasi"}, tables={"visits": below})
    found = shoal.risk(tables, policy)
    assert found.to_dict()["alone_by_counts"] == 1  # c
    assert found.alone == {"sex": 2, "visits.day": 1}  # a and c; c
    assert "alone_by_counts" not in shoal.risk(frame(), POLICY).to_dict()
