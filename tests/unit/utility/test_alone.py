"""Who is the only person of a class with what some columns show, against a plain count."""

import tracemalloc
from collections import defaultdict

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.data.classes import Classes
from shoal.data.table import Column
from shoal.utility import tally

RECORDS = st.lists(
    st.tuples(st.integers(-1, 2), st.integers(0, 3), st.integers(0, 2), st.integers(0, 1)),
    min_size=1,
    max_size=25,
)


def naive(records: list[tuple[int, ...]], counts_people: bool) -> list[bool]:
    people = defaultdict(set)
    for number, (label, person, *shown) in enumerate(records):
        people[label, *shown].add(person if counts_people else number)
    return [label >= 0 and len(people[label, *shown]) == 1 for label, _, *shown in records]


@given(RECORDS, st.booleans(), st.sampled_from([0, 1 << 20]))
def test_who_is_alone_is_counted_by_people(records, counts_people, small):
    labels, persons, *shown = np.array(records, dtype=np.int32).T
    columns = [Column(str(i), codes, pl.Series(["u", "v", "w"])) for i, codes in enumerate(shown)]
    classes = Classes(labels, 3, persons if counts_people else None)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(tally, "_TABLE", small or -4 * len(records))
        assert tally._is_alone(classes, columns).tolist() == naive(records, counts_people)


@given(RECORDS, st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_people_in_several_classes_are_counted_whichever_parts_hold_the_classes(records, part_of):
    labels, persons = np.array(records, dtype=np.int32).T[:2]
    in_classes = defaultdict(set)
    for label, person in zip(labels, persons, strict=True):
        in_classes[person] |= {label} - {-1}
    places = np.array([*part_of, 0])[labels]
    added, absorbed = tally.Several(), tally.Several()
    for part in range(3):
        part_classes = Classes(labels[places == part], 3, persons[places == part])
        added.add(part_classes)
        other = tally.Several()
        other.add(part_classes)
        absorbed.absorb(other)
    assert len(added.people) == len(absorbed.people)
    assert len(added.people) == sum(len(classes) > 1 for classes in in_classes.values())


def test_many_values_take_no_room_of_their_own():
    """A table of all classes and values would take 10^10 places."""
    many = 100_000
    number = np.arange(many, dtype=np.int32)
    column = Column("amount", number, pl.Series(map(str, range(many))))
    tracemalloc.start()
    alone = tally._is_alone(Classes(number // 2, many // 2), [column])
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert alone.all()
    assert most < 100 * many
