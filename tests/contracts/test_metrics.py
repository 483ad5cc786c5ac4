"""The same battery for every measure of utility or risk from the registry."""

import pytest

from shoal.policy import registry
from shoal.testing import check_metric


@pytest.mark.parametrize("name", registry.metrics())
def test_battery(name):
    check_metric(registry.metrics()[name]())


class _FirstRecord:
    name = "first_record"

    def score(self, release):
        return int(release.classes.labels[0]) if release.records else None


class _NotANumber:
    name = "not_a_number"

    def score(self, release):
        return float("nan")


@pytest.mark.parametrize(
    ("faulty", "finding"), [(_FirstRecord, "order of the records"), (_NotANumber, "NaN")]
)
def test_the_battery_finds_what_is_wrong(faulty, finding):
    with pytest.raises(AssertionError, match=finding):
        check_metric(faulty())
