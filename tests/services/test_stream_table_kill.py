"""Streams into tables as real processes: killed or disconnected, each row is written once."""

import json
import subprocess
import sys

import pytest

from postgres_server import server
from sample_policies import PURCHASES
from shoal.connectors import files
from shoal.samples import purchases
from stream_processes import killed_at_work
from thorough import LONG
from warm_interpreters import COMMAND

ROWS, KILLS = (12_000, 12) if LONG else (3000, 2)
SCRIPT = f"import sys, shoal.connectors.feeds as f; f.PIECE = 12_000; {COMMAND}"


@pytest.fixture
def address(folder, request):
    purchases.generate(ROWS, 2).write_csv(folder / "p.csv")
    (folder / "policy.yaml").write_text(PURCHASES.replace("delta: 1000", "delta: 300"))
    if request.param == "sqlite":
        yield "sqlite:///out.db?table=released"
        return
    with server() as running:
        yield running.url("released")


@pytest.mark.parametrize("address", ["sqlite", "postgresql"], indirect=True)
def test_a_stream_that_is_killed_again_and_again_puts_every_row_once(address, tmp_path, shoal):
    assert shoal("stream", "p.csv", "-p", "policy.yaml", "-q", "-o", "out.csv").status == 0
    expected = files.read("out.csv").frame
    command = [sys.executable, "-c", SCRIPT, "stream", "p.csv", "-p", "policy.yaml", "-q"]
    command += ["-o", address, "--checkpoint", "ck"]
    killed_at_work(lambda: subprocess.Popen(command, cwd=tmp_path), tmp_path / "ck", KILLS)
    assert files.read(address).frame.equals(expected)
    found = shoal("audit", address, "-p", "policy.yaml", "--json", status=0)
    assert json.loads(found.out)["records"]["out"] == ROWS
    assert shoal("verify", address, "-p", "policy.yaml").status == 0
