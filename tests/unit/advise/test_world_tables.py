"""Who is one person, asked of tables that look like data of the world."""

from collections import Counter
from functools import cache

import pytest
import yaml

import shoal
from thorough import every
from world_tables import STANZAS, world_table

STAYS = {
    "patients and their doctors": "sure and right",
    "patients and their doctors, no sex": "sure and right",
    "customers with a city": "sure and right",
    "people in households": "sure and right",
    "orders of known customers": "sure and right",
    "bands of age": "nobody, rightly",
    "dates of visits": "sure and right",
    "a shop with three clerks": "sure and right",
    "receipts of three clerks": "nobody, rightly",
    "staff of several companies": "sure and right",
    "owners of pets": "sure and right",
    "members with a plan": "sure and right",
    "pupils of schools": "sure and right",
    "respondents of a clustered panel": "sure and right",
    "patients whose file is the family's": "sure and right",
    "pressures of the blood": "nobody, rightly",
    "telephones": "nobody, rightly",
}
"""Tables that look like those of which a proposal must ask, and of which it need not."""


@cache
def verdict(name: str, named: bool) -> str:
    """What the proposal for a table says of its people, judged by the truth."""
    table = world_table(name) if named else world_table(name).nameless()
    attributes = yaml.safe_load(shoal.propose_policy(table.frame).text)["attributes"]
    sure = [column for column, about in attributes.items() if about["role"] == "subject"]
    asks = [about["ask"] for about in attributes.values() if isinstance(about.get("ask"), dict)]
    asks = [ask["candidates"] for ask in asks if ask["question"] == "person"]
    if asks and table.truth == "row":
        return "asked in vain"
    if asks:
        keys = [[key] if isinstance(key, str) else key for key in asks[0]]
        known = table.people is None or any(map(table.is_person, keys))
        return "asked" if known else "asked without the person"
    if sure:
        return "sure and right" if table.is_person(sure) else "sure and wrong"
    return "nobody, rightly" if table.truth in ("row", "-") else "missed"


@pytest.mark.parametrize("name", STAYS)
def test_nobody_is_asked_without_a_reason(name):
    assert verdict(name, named=True) == STAYS[name]


@pytest.mark.parametrize(
    ("named", "missed", "without", "vain"), [(True, 1, 0, 3), (False, 8, 2, 9)]
)
def test_proposals_are_sure_of_no_wrong_person_and_miss_no_more_than_measured(
    named, missed, without, vain
):
    found = {name: verdict(name, named) for name in every(4, STANZAS)}
    assert [name for name, said in found.items() if said == "sure and wrong"] == []
    count = Counter(found.values())
    assert count["missed"] <= missed
    assert count["asked without the person"] <= without
    assert count["asked in vain"] <= vain
