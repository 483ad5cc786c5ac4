"""Streams into tables as real processes: killed or disconnected, each row is written once."""

import json
import subprocess

import pytest

from postgres_server import server
from shoal.connectors import files
from stream_processes import in_small_pieces, killed_at_work, open_shop
from thorough import LONG

ROWS, KILLS = (12_000, 12) if LONG else (3000, 2)


@pytest.fixture
def address(folder, request):
    open_shop(folder, ROWS)
    if request.param == "sqlite":
        yield "sqlite:///out.db?table=released"
        return
    with server() as running:
        yield running.url("released")


@pytest.mark.parametrize("address", ["sqlite", "postgresql"], indirect=True)
def test_a_stream_that_is_killed_again_and_again_puts_every_row_once(address, tmp_path, shoal):
    assert shoal("stream", "p.csv", "-p", "policy.yaml", "-q", "-o", "out.csv").status == 0
    expected = files.read("out.csv").frame
    words = ("stream", "p.csv", "-p", "policy.yaml", "-q", "-o", address, "--checkpoint", "ck")
    command = in_small_pieces(*words, piece=12_000)
    killed_at_work(lambda: subprocess.Popen(command, cwd=tmp_path), tmp_path / "ck", KILLS)
    assert files.read(address).frame.equals(expected)
    found = shoal("audit", address, "-p", "policy.yaml", "--json", status=0)
    assert json.loads(found.out)["records"]["out"] == ROWS
    assert shoal("verify", address, "-p", "policy.yaml").status == 0
