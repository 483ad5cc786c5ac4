"""Who is one person, asked of tables that look like data of the world."""

from __future__ import annotations

from collections import Counter
from functools import cache

import pytest
import yaml

import shoal
from world_tables import STANZAS, world_table

WRONG = {
    "eICU": "patientunitstayid is one stay; uniquepid is the person",
    "inmates numbered at each stay": "inmate_id is one stay; state_id is the person",
    "patients with a file": "patient_no is one stay; file_no is the person",
    "sellers and buyers": "sellers are people, too",
    "customers who are firms": "a company and its industry stand beside each customer_no",
    "respondents who are firms": "a legal form and an industry stand beside each respondent_id",
    "patients of a veterinary clinic": "a species and a breed stand beside each patient_id",
    "mice of a laboratory": "a species and a genotype stand beside each subject_id",
    "tenants of a cloud": "tenants are accounts of firms; nothing says anything of people",
}
"""Tables of which a proposal is sure and wrong, and why."""


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


def marks(name: str) -> list[pytest.MarkDecorator]:
    """An expected failure, if the proposal for this table is known to be wrong."""
    return [pytest.mark.xfail(strict=True, reason=WRONG[name])] if name in WRONG else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=marks(name)) for name in STANZAS])
def test_no_proposal_is_sure_of_the_wrong_person(name):
    assert verdict(name, named=True) != "sure and wrong"


@pytest.mark.parametrize("name", STANZAS)
def test_no_proposal_is_sure_of_the_wrong_person_without_names(name):
    assert verdict(name, named=False) != "sure and wrong"


@pytest.mark.parametrize(
    ("named", "missed", "without", "vain"), [(True, 10, 5, 3), (False, 11, 3, 9)]
)
def test_people_are_missed_no_oftener_than_measured(named, missed, without, vain):
    count = Counter(verdict(name, named) for name in STANZAS)
    assert count["missed"] <= missed
    assert count["asked without the person"] <= without
    assert count["asked in vain"] <= vain
