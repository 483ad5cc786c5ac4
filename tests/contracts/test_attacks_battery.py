"""The same battery for every attack from the registry."""

import numpy as np
import pytest

from shoal.policy import registry
from shoal.testing import check_attack

ALONE = [name for name, attack in registry.attacks().items() if not {*attack.needs} - {"alignment"}]


@pytest.mark.parametrize("name", ALONE)
def test_battery(name):
    check_attack(registry.attacks()[name]())


def test_the_registry_has_ten_attacks_of_their_own_numbers():
    numbers = [attack.number for attack in registry.attacks().values()]
    assert numbers == list(range(1, 11))


class _FirstRecord:
    name, number, needs, uses_people = "first-record", 100, (), True

    def run(self, scene):
        return {"first": {"share": int(scene.people.points[0, 0]), "ci": None, "how": "exact"}}


class _NotTheSame:
    name, number, needs, uses_people = "not-the-same", 101, (), True

    def run(self, scene):
        return {"number": np.random.default_rng().random()}


class _UsesThemAfterAll:
    name, number, needs, uses_people = "secretive", 102, (), False

    def run(self, scene):
        return {"axes": len(scene.release.boxes.axes)}


@pytest.mark.parametrize(
    ("faulty", "finding"),
    [
        (_UsesThemAfterAll, "quasi-identifiers after all"),
        (_FirstRecord, "order of the records"),
        (_NotTheSame, "answers differently"),
    ],
)
def test_the_battery_finds_what_is_wrong(faulty, finding):
    with pytest.raises(AssertionError, match=finding):
        check_attack(faulty())
