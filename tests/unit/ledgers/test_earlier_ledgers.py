"""Ledgers and releases of earlier versions stay what they were: some lie in `earlier`.

`earlier` was made by c4463511 of this repository: a ledger of two releases with two records that
wait, and a release of its first increment.
"""

import json
import shutil
from pathlib import Path

import pytest

HEAD = "222879ea2d8cccd187d639d4919e8c52ca785e90e94b7bf2c12a83da333f395b"
BY_ITS_POLICY = ("-p", "policy.yaml", "--ledger", "L", "-q")


@pytest.fixture(autouse=True)
def kept(tmp_path, monkeypatch):
    shutil.copytree(Path(__file__).parent / "earlier", tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")


def test_an_earlier_ledger_is_whole_and_goes_on(shoal):
    assert shoal("ledger", "verify", "L", "--noted", HEAD).status == 0
    assert shoal("audit", "--ledger", "L", "-q").status == 0
    assert shoal("ledger", "export", "L", "-o", "table.csv", "-q").status == 0
    again = shoal("republish", "1.csv", *BY_ITS_POLICY[:-1])
    assert "this increment is release 0001 already; nothing was done" in again.err
    done = shoal("republish", "3.csv", *BY_ITS_POLICY, "--json", status=0)
    assert json.loads(done.out)["records"]["out"] == 42, "with the two that waited"
    assert shoal("ledger", "verify", "L", "--noted", HEAD).status == 0


@pytest.mark.parametrize("first", ["p0", "p82"])
def test_people_of_an_earlier_ledger_are_found_under_the_usual_spellings(shoal, first):
    """It keeps no bare names; who comes next is kept with them."""
    assert shoal("republish", "3.csv", *BY_ITS_POLICY).status == 0
    Path("4.csv").write_text(f"patient,age,sex,disease\n{first.upper()}.0,28,f,e\n")
    refused = shoal("republish", "4.csv", *BY_ITS_POLICY, status=2)
    assert "1 of its people are those of earlier increments" in refused.err


def test_an_earlier_certificate_verifies(shoal):
    shoal("verify", "released.csv", "-p", "policy.yaml", "--original", "1.csv", "-q", status=0)
