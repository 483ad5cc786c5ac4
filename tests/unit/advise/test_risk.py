"""Who is alone in a table, and what each column gives away: by hand, and against a plain twin."""

import json
from collections import defaultdict
from itertools import combinations

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal
from sample_policies import content_of
from shoal.advise.propose import Order, SinglingOut, share_text
from shoal.advise.risk import Risk, table_risk

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


def naive_lone(columns: list[list[int]], people: list[int]) -> int:
    """People of whom some record holds values that nobody else's record holds."""
    rows = list(zip(*columns, strict=True)) if columns else [()] * len(people)
    return sum(size == 1 for size in naive_sets(rows, people).values())


def coded(columns: list[list[int]]) -> dict[str, np.ndarray]:
    return {f"c{i}": np.array(column, dtype=np.uint8) for i, column in enumerate(columns)}


def counted(columns: list[list[int]]) -> tuple[Risk, Order]:
    codes = coded(columns)
    return table_risk(codes, {}, None), SinglingOut(codes, None).order()


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


def test_shares_by_hand():
    # (1, x), (1, y), (2, x), (2, x)
    risk, _ = counted([[1, 1, 2, 2], [0, 1, 0, 0]])
    assert [risk.share_alone(name) for name in ("c0", "c1", "c2")] == [0, 0.25, None]
    assert [risk.share_added(name) for name in ("c0", "c1", "c2")] == [0.25, 0.5, None]
    assert risk.share(risk.lone) == 0.5


def test_nobody_and_nothing():
    for columns in ([], [[]]):
        risk, order = counted(columns)
        assert risk.share(risk.lone) == 0
        assert order.steps == ()


@st.composite
def tables(draw) -> tuple[dict[str, list[int]], np.ndarray | None, list[int]]:
    """Columns, and whose each row is: as it is given, and as it is meant."""
    width, by_people = draw(st.integers(1, 4)), draw(st.booleans())
    row = st.tuples(st.integers(0, 6), *[st.integers(0, 3)] * width)
    whose, *columns = map(list, zip(*draw(st.lists(row, min_size=1, max_size=30)), strict=True))
    people = np.unique(whose, return_inverse=True)[1] if by_people else np.arange(len(whose))
    named = {f"c{i}": column for i, column in enumerate(columns)}
    return named, people if by_people else None, people.tolist()


@given(tables())
def test_counting_is_that_of_a_plain_twin(drawn):
    columns, given_people, people = drawn
    codes = coded([*columns.values()])
    plain = {"c0": codes.pop("c0")} if len(codes) > 1 else {}
    risk = table_risk(codes, plain, given_people)

    def lone(names: list[str]) -> int:
        return naive_lone([columns[name] for name in names], people)

    names = list(codes)
    rows = list(zip(*(columns[name] for name in names), strict=True))
    sizes = list(naive_sets(rows, people).values())
    assert risk.sets == {size: sizes.count(size) for size in sorted(set(sizes))}
    assert risk.lone == lone(names)
    for name in names:
        assert risk.alone[name] == lone([name])
        assert risk.without[name] == lone([other for other in names if other != name])
        assert risk.without[name] <= risk.lone
    for name in plain:
        assert risk.if_known[name] == lone([*names, name]) >= risk.lone


@given(tables())
def test_the_order_of_columns_is_that_of_a_plain_twin(drawn):
    columns, given_people, people = drawn
    order = SinglingOut(coded([*columns.values()]), given_people).order()

    def share(*names: str) -> float:
        return naive_lone([columns[name] for name in names], people) / len(set(people))

    worst = sorted((share(*pair) for pair in combinations(columns, 2)), reverse=True)
    assert [found for *_, found in order.pairs] == pytest.approx([s for s in worst[:3] if s])
    assert all(found == pytest.approx(share(*pair)) for *pair, found in order.pairs)
    taken: list[str] = []
    for name, found in order.steps:
        best = max(share(*taken, other) for other in columns if other not in taken)
        taken.append(name)
        assert found == pytest.approx(share(*taken))
        assert found == pytest.approx(best)


@pytest.mark.parametrize(
    ("share", "text"),
    [
        (0.0, "0 %"),
        (0.0002, "below 0.1 %"),
        (0.001, "0.1 %"),
        (0.1234, "12.3 %"),
        (0.9999, "99.9 %"),
        (1.0, "100 %"),
    ],
)
def test_shares_in_words(share, text):
    assert share_text(share) == text


def test_the_command_prints_figures_and_no_cell(folder, request):
    run = request.getfixturevalue("shoal")
    frame().with_columns(pl.col("sex").replace({"f": "canary"})).write_csv("t.csv")
    (folder / "p.json").write_text(json.dumps(POLICY))
    shown = run(*"profile t.csv -p p.json -q".split(), status=0).out
    assert "2 of 4 people (50 %)" in shown
    assert "canary" not in shown
    asked = run(*"profile t.csv -p p.json --json --k 3".split(), status=0).out
    assert json.loads(asked)["risk"] == shoal.risk("t.csv", POLICY).to_dict() | {
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
