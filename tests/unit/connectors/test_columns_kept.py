"""A release holds no column that its policy removes, whether it names the column or not."""

import polars as pl
import pytest

import shoal as library
from sample_policies import content_of

FRAME = pl.DataFrame(
    {"name": [f"n{i}" for i in range(6)], "age": [30, 30, 30, 40, 40, 40], "note": ["x"] * 6}
)
POLICY = content_of({"age": {"role": "quasi", "type": "number"}}, 3, other="drop")


@pytest.mark.parametrize("original", [None, FRAME])
def test_a_column_that_other_drops_is_a_fault_where_the_release_holds_it(original):
    release = library.publish(FRAME, POLICY).data
    assert release.columns == ["age"]
    assert library.audit(release, POLICY, original=original).holds
    leaking = release.with_columns(FRAME["name"], FRAME["note"])
    audited = library.audit(leaking, POLICY, original=original)
    assert audited["faults"]["not_removed"] == 2
    assert not audited.holds


def test_the_way_out_of_derived_numbers_is_named(shoal, folder):
    assert shoal("sample", "patients", "-n", "300", "-o", "p.csv", "-q").status == 0
    publish = ("publish", "p.csv", "-p", "p.policy.yaml", "-o", "r.csv", "-q")
    assert shoal(*publish, "--write", "numbers=lo,mid").status == 0
    refused = shoal("audit", "r.csv", "-p", "p.policy.yaml", status=2)
    assert "say '--write numbers=lo,mid' if the release has them" in refused.err
    shoal("audit", "r.csv", "-p", "p.policy.yaml", "--write", "numbers=lo,mid", status=0)


def test_an_option_that_is_given_twice_is_refused(shoal, folder):
    assert shoal("sample", "patients", "-n", "60", "-o", "p.csv", "-q").status == 0
    publish = ("publish", "p.csv", "-p", "p.policy.yaml", "-o", "r.csv", "--k", "3", "-q")
    refused = shoal(*publish, "--write", "numbers=lo", "--write", "numbers=hi", status=2)
    assert "--write numbers=...: is given 2 times" in refused.err
