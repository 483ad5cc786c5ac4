"""The same battery for every hierarchy maker from the registry."""

import numpy as np
import pytest

from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.errors import InputError
from shoal.policy import registry
from shoal.testing import check_hierarchy_maker

EXAMPLES = {
    "prefix": (5, ["13053", "13068", "148", "a b"]),
    "bins": ([0, 20, 40], ["0", "19.5", "39"]),
    "dates": (["day", "month"], ["2013-05-17", "2013-05-18", "1999-01-01"]),
    "order": (["low", "mid", "high"], ["low", "high"]),
    "tree": ({"Europe": ["DE", "FR"], "Asia": ["JP"]}, ["JP", "DE"]),
    "flat": (True, ["a", "b", "c"]),
}


@pytest.mark.parametrize("kind", EXAMPLES)
def test_battery(kind):
    check_hierarchy_maker(registry.makers()[kind], *EXAMPLES[kind])


def test_every_maker_has_an_example():
    assert EXAMPLES.keys() == registry.makers().keys()


class _Faulty:
    kind = "faulty"
    unmatched_message = "are odd"

    @classmethod
    def from_spec(cls, argument):
        if argument != 1:
            raise InputError("hierarchy maker 'faulty' takes 1")
        return cls()

    def values_without_leaf(self, values):
        return np.zeros(len(values), dtype=bool)

    def make(self, values):
        return Hierarchy.from_paths([[value, "*"] for value in values] or [["*"]])


class _Blabs(_Faulty):
    def values_without_leaf(self, values):
        return np.array(["secret" in value for value in values], dtype=bool)

    def make(self, values):
        if self.values_without_leaf(values).any():
            raise InputError(f"no leaf for {list(values)}")
        return Hierarchy.from_paths([[value, "*"] for value in sorted(values)] or [["*"]])


class _Stumbles(_Faulty):
    @classmethod
    def from_spec(cls, argument):
        return cls() if argument + 1 else None

    def make(self, values):
        return Hierarchy.from_paths([[value, "*"] for value in sorted(values)] or [["*"]])


@pytest.mark.parametrize(
    ("faulty", "finding"),
    [
        (_Faulty, "order of the values matters"),
        (_Blabs, "shows a value"),
        (_Stumbles, "raises TypeError"),
    ],
)
def test_the_battery_finds_what_is_wrong(faulty, finding):
    with pytest.raises(AssertionError, match=finding):
        check_hierarchy_maker(faulty, 1, ["a", "b", "c", "d"])
