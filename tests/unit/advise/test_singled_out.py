"""Who is alone with what the columns say: against counting by hand, and a plain twin."""

from collections import defaultdict
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.advise.propose import Order, SinglingOut, share_text
from shoal.advise.risk import Risk, singled_out, table_risk


def naive_share(columns: list[list[int]], people: list[int] | None) -> float:
    """The share of people of whom some record holds values that nobody else's record holds."""
    rows = list(zip(*columns, strict=True))
    people = list(range(len(rows))) if people is None else people
    holders = defaultdict(set)
    for row, person in zip(rows, people, strict=True):
        holders[row].add(person)
    alone = {next(iter(who)) for who in holders.values() if len(who) == 1}
    return len(alone) / len(set(people))


def counted(columns: list[list[int]], people: list[int] | None = None) -> tuple[Risk, Order]:
    codes = {f"c{i}": np.array(column, dtype=np.uint8) for i, column in enumerate(columns)}
    persons = None if people is None else np.array(people)
    return table_risk(codes, {}, persons), SinglingOut(codes, persons).order()


def test_by_hand():
    # (1, x), (1, y), (2, x), (2, x)
    risk, _ = counted([[1, 1, 2, 2], [0, 1, 0, 0]])
    assert [risk.share_alone(name) for name in ("c0", "c1", "c2")] == [0, 0.25, None]
    assert [risk.share_added(name) for name in ("c0", "c1", "c2")] == [0.25, 0.5, None]
    assert risk.share(risk.lone) == 0.5


def test_two_records_of_one_person_are_one_person():
    # person 0 twice with (1), person 1 with (2), person 2 with (2)
    risk, _ = counted([[1, 1, 2, 2]], [0, 0, 1, 2])
    assert risk.share_alone("c0") == pytest.approx(1 / 3)


def test_nobody_and_nothing():
    for columns in ([], [[]]):
        risk, order = counted(columns)
        assert risk.share(risk.lone) == 0
        assert order.steps == ()


TABLES = st.integers(1, 4).flatmap(
    lambda width: st.lists(
        st.tuples(st.integers(0, 6), *[st.integers(0, 3)] * width), min_size=1, max_size=30
    )
)


@given(TABLES, st.booleans())
def test_as_the_plain_twin_counts(rows, by_people):
    owner, *columns = map(list, zip(*rows, strict=True))
    people = [sorted(set(owner)).index(one) for one in owner] if by_people else None
    risk, order = counted(columns, people)
    every = naive_share(columns, people)
    assert risk.share(risk.lone) == pytest.approx(every)
    for i, column in enumerate(columns):
        assert risk.share_alone(f"c{i}") == pytest.approx(naive_share([column], people))
        rest = columns[:i] + columns[i + 1 :]
        others = naive_share(rest or [[0] * len(rows)], people)
        assert risk.share_added(f"c{i}") == pytest.approx(every - others)
    worst = sorted((naive_share([a, b], people) for a, b in combinations(columns, 2)), reverse=True)
    assert [share for *_, share in order.pairs] == pytest.approx([s for s in worst[:3] if s])
    taken: list[list[int]] = []
    for name, share in order.steps:
        taken.append(columns[int(name[1:])])
        assert share == pytest.approx(naive_share(taken, people))


@given(TABLES)
def test_every_step_takes_a_column_that_adds_most(rows):
    _, *columns = map(list, zip(*rows, strict=True))
    taken: list[int] = []
    for name, share in counted(columns)[1].steps:
        left = [i for i in range(len(columns)) if i not in taken]
        best = max(naive_share([columns[j] for j in [*taken, i]], None) for i in left)
        assert share == pytest.approx(best)
        taken.append(int(name[1:]))


def test_counting_once_more_by_keys():
    keys = np.array([5, 5, 7], dtype=np.uint64) << np.uint64(40)
    assert singled_out(keys) == 1
    assert singled_out(keys, np.array([0, 0, 1])) == 2


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
