"""What if: whatever would not be published says why."""

from dataclasses import replace

import pytest

import shoal
from republish_cases import POLICY, wearers
from shoal.data.certificate import Certificate
from shoal.ledgers import what_if

STICKY = {**POLICY, "method": {"name": "sticky"}}


@pytest.fixture
def ledger(folder):
    shoal.republish(wearers(60, 1), STICKY, "L")
    return "L"


@pytest.mark.parametrize("rows", [0, 1])
def test_every_method_that_publishes_nothing_says_why(ledger, rows):
    found = what_if.what_if(wearers(60, 2).head(rows), STICKY, ledger)
    assert {one.method for one in found if not one.told and one.outcome != "published"} == set()


def test_a_release_that_would_break_a_promise_names_it(ledger, monkeypatch):
    audited = what_if.write_and_audit

    def broken(*given):
        done = audited(*given)
        promises = [{**p, "holds": False} for p in done.certificate["promises"]]
        return replace(done, certificate=Certificate({**done.certificate, "promises": promises}))

    monkeypatch.setattr(what_if, "write_and_audit", broken)
    found = what_if.what_if(wearers(60, 2), STICKY, ledger)
    (sticky,) = [one for one in found if one.method == "sticky"]
    assert sticky.outcome == "withheld"
    assert "promise 'k-anonymity' does not hold on the release" in sticky.told[0]
