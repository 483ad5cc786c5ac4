"""Streams that were begun by earlier versions go on: their state lies in `earlier`.

`earlier` was made by c4463511 of this repository: 200 records of the sample `purchases` (seed 3),
then Ctrl-C.
"""

import json
import shutil
from pathlib import Path

import polars as pl
import pytest

from shoal.errors import ANOTHER_STREAM
from shoal.policy.policy import Policy
from shoal.samples import purchases
from shoal.streams.checkpoint import Checkpoint
from shoal.streams.options import StreamOptions
from shoal.streams.publishing import StreamRequest, hash_of

EARLIER = Path(__file__).parent / "earlier"


@pytest.fixture
def stopped(tmp_path, monkeypatch) -> Path:
    shutil.copytree(EARLIER, tmp_path / "work")
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path / "work"


def test_what_a_policy_settles_is_hashed_as_before():
    policy = Policy.load(EARLIER / "policy.yaml")
    found = hash_of(StreamRequest(StreamOptions("-", "-"), policy).fixed)
    assert found == "9ec381bb99d290675d7c9aab3fef03a018443b71b2a02e191a159b14c2cf4f19"


def test_a_stream_of_an_earlier_version_goes_on(stopped, shoal, monkeypatch):
    before = Path("out.csv").read_text()
    # it names the folder and the version of Polars, neither of which is here
    begun = Checkpoint(Path("state")).load()["policy"]
    monkeypatch.setattr("shoal.streams.publishing.hash_of", lambda fixed: begun)
    more = purchases.generate(400, 3).tail(200).write_csv(include_header=False)
    Path("in.csv").write_text(Path("in.csv").read_text() + more)
    command = ("in.csv", "-p", "policy.yaml", "-o", "out.csv", "--checkpoint", "state")
    shoal("stream", *command, "-q", status=0)
    rows = Path("out.csv").read_text()
    assert rows.startswith(before)
    assert pl.read_csv("out.csv").height == 400
    shoal("verify", "out.csv", "-q", status=0)


def test_a_copy_of_an_earlier_stream_is_refused_with_what_is_left_to_do(stopped, shoal):
    """Its one hash names a folder that is gone: the cure was to find the build that wrote it."""
    run = ("stream", "in.csv", "-p", "policy.yaml", "-q")
    refused = shoal(*run, "-o", "out.csv", "--checkpoint", "state", status=2)
    assert "was made before 0.1.0 was released" in refused.err
    assert ANOTHER_STREAM in refused.err
    shown = shoal(*run, "-o", "out.csv", "--checkpoint", "state", "--trace", "t.jsonl").err
    assert "was released, under other outputs (without --trace); put" in shown
    assert "gets its certificate from 'shoal audit OUTPUT -p POLICY -o CERTIFICATE'" in shown
    proof = ("out.csv", "-p", "policy.yaml", "-o", "out.csv.certificate.json", "-q")
    assert shoal("audit", *proof).status == 0
    assert shoal("verify", *proof[:3], "-q").status == 0
    came = json.loads(shoal("stream-status", "state", "--json").out)["records"]["came"]
    assert f"{came} records came" in shoal("stream-status", "state").out
    header = Path("in.csv").read_text().splitlines(keepends=True)[0]
    assert came == len(Path("in.csv").read_text().splitlines()) - 1
    purchases.generate(400, 3).tail(400 - came).write_csv("more.csv")
    assert Path("more.csv").read_text().startswith(header)
    begun = ("stream", "more.csv", *run[2:], "-o", "more-out.csv", "--checkpoint", "new")
    shoal(*begun, status=0)
