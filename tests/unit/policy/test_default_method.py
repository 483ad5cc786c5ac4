"""Which method is taken where nobody named one."""

from __future__ import annotations

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.policy.policy import Policy

PEOPLE = pl.DataFrame({"zip": [f"{n:05}" for n in range(10000, 10060)], "age": list(range(60))})


def chosen(hierarchy, settings):
    attributes = {"zip": {"role": "quasi"}, "age": {"role": "quasi", "type": "number"}}
    if hierarchy:
        attributes["zip"]["hierarchy"] = {"prefix": 5}
    policy = Policy.from_dict(content_of(attributes, 3, seed=1))
    if settings:
        policy = policy.with_method(None, settings).with_k(4)
    return shoal.publish(PEOPLE, policy).certificate["method"]


@pytest.mark.parametrize(
    ("hierarchy", "settings", "name"),
    [
        (False, {}, "rounded-partition"),
        (True, {}, "lattice-peeling"),
        (False, {"refine": "none"}, "rounded-partition"),
        (True, {"refine": "none"}, "lattice-peeling"),
        (True, {"cut": "paper"}, "rounded-partition"),  # the other default has no cut
        (False, {"refine": "thorough", "steps": 2}, "lattice-peeling"),
    ],
)
def test_a_setting_changes_no_default_that_takes_it_too(hierarchy, settings, name):
    method = chosen(hierarchy, settings)
    assert method["name"] == name
    assert {key: method["parameters"][key] for key in settings} == settings


def test_a_method_that_is_named_is_kept():
    policy = Policy.from_dict(
        content_of({"zip": {"role": "quasi", "hierarchy": {"prefix": 5}}}, 3, other="drop")
    )
    named = policy.with_method(None, {"refine": "none"}).with_method("rounded-partition")
    assert shoal.publish(PEOPLE, named).certificate["method"]["name"] == "rounded-partition"
