"""Every verb for a table and a policy takes how cells are written, as `shoal.audit` does."""

from typing import Any

import polars as pl
import pytest

import shoal
from sample_policies import content_of

READ = {"decimal": ","}
FRAME = pl.DataFrame(
    {
        "age": [f"{20 + n // 4},5" for n in range(40)],
        "sex": ["f", "m"] * 20,
        "ill": [f"{'abcd'[n % 4]}" for n in range(40)],
    }
)
POLICY = content_of(
    {
        "age": {"role": "quasi", "type": "number", "domain": [0, 100]},
        "sex": {"role": "quasi", "type": "ordinal", "order": ["f", "m"]},
        "ill": "sensitive",
    },
    4,
    seed=1,
)
BINS = {"role": "quasi", "type": "number", "domain": [0, 100], "hierarchy": {"bins": {"width": 10}}}
LEVELS = content_of(
    {"age": BINS, "ill": "sensitive"}, 4, method={"name": "full-domain"}, other="drop", seed=1
)
PATHS: dict[str, Any] = {"policy": POLICY, "original": "in.csv", "trace": "t.jsonl"}
AGAIN: dict[str, Any] = {"replace": True}
CALLS = {
    "publish": lambda **read: shoal.publish(FRAME, POLICY, **read).certificate["classes"],
    "risk": lambda **read: shoal.risk(FRAME, POLICY, **read).lone,
    "marginal": lambda **read: shoal.marginal(FRAME, POLICY, **read).k,
    "lattice_walk": lambda **read: shoal.lattice_walk(FRAME, LEVELS, **read).heights,
    "check": lambda **read: [one.attribute for one in shoal.check(POLICY, FRAME, **read)],
    "attack": lambda **read: shoal.attack("o.csv", attacks="homogeneity", **PATHS, **read).holds,
    "attacker_view": lambda **read: (
        shoal.attacker_view("o.csv", POLICY, "in.csv", 1, **read).people
    ),
    "publish_file": lambda **read: shoal.publish_file("in.csv", POLICY, "p.csv", **AGAIN, **read)[
        "classes"
    ],
    "audit_file": lambda **read: shoal.audit_file("o.csv", **PATHS, **read)["faults"],
    "verify": lambda **read: [one.ok for one in shoal.verify("o.csv", **PATHS, **read)],
}


@pytest.fixture
def released(folder):
    FRAME.write_csv("in.csv")
    policy = shoal.Policy.of(POLICY).with_files(READ, {})
    shoal.publish_file("in.csv", policy, "o.csv", trace="t.jsonl")


@pytest.mark.parametrize("name", CALLS)
def test_reads_as_it_is_told(name, released, monkeypatch):
    shown = CALLS[name](read=READ)
    for policy in ("POLICY", "LEVELS"):
        said = shoal.Policy.from_dict(globals()[policy]).with_files(READ, {})
        monkeypatch.setitem(globals(), policy, said)
    monkeypatch.setitem(PATHS, "policy", POLICY)
    assert shown == CALLS[name]()


@pytest.mark.parametrize("name", CALLS)
def test_what_is_no_way_to_read_is_one_line(name, released):
    with pytest.raises(shoal.InputError, match=r"^read, decimals: [^\n]*\'decimal\'[^\n]*$"):
        CALLS[name](read={"decimals": ","})
