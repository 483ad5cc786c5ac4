"""Publications killed at random places of the code: what can be read has been audited.

SHOAL_KILLS=100 kills a hundred in each place.
"""

from __future__ import annotations

import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

import shoal as library
from postgres_server import server
from shoal.connectors import files
from shoal.connectors.outputs import certificate_beside
from shoal.jobs.publish.publish import publish_file
from shoal.policy.policy import Policy
from shoal.samples import patients

pytestmark = pytest.mark.services
CHILD = Path(__file__).with_name("killed_publish.py")
KILLS = int(os.environ.get("SHOAL_KILLS", "2"))
RECORDS = 500


@pytest.fixture
def released(tmp_path, monkeypatch):
    """A folder with patients and a quick policy, and the shell standing in it."""
    monkeypatch.chdir(tmp_path)
    patients.generate(RECORDS, 1).write_csv("patients.csv")
    Path("policy.yaml").write_text(patients.POLICY + "\nmethod: {name: mondrian}\n")


def run_child(output: str, calls: int, seconds: float, *more: str) -> subprocess.CompletedProcess:
    command = [sys.executable, str(CHILD), output, str(calls), str(seconds), *more]
    return subprocess.run(command, capture_output=True, text=True, timeout=300)


def check_whole(output: str, may_lack: bool) -> str:
    """What can be read is a release with its proof; which one it is."""
    proof = certificate_beside(output)
    if proof is None:
        assert may_lack, "the earlier release is gone"
        return "none"
    failed = [check for check in library.verify(output, policy=None) if check.ok is False]
    assert not failed
    assert library.read_release(output).data.height == RECORDS
    return str(library.read_release(output).certificate["promises"][0]["asked"])


def kills(output: str, tries: str, check_nothing_else) -> None:
    """Kills new publications, and some that replace a release.

    tries: where one is made undisturbed, to count its calls.
    """
    draw = random.Random(os.environ.get("SHOAL_KILLS_SEED", "1"))
    whole = run_child(tries, 0, 0)
    assert whole.returncode == 0, whole.stderr
    seen: dict[str, int] = {}
    for trial in range(KILLS):
        replacing = trial % 2 == 1
        if replacing and certificate_beside(output) is None:
            publish_file("patients.csv", Policy.load("policy.yaml"), output)
        # the last tenth of the calls has the commit in it, and a few more come with --replace
        calls, seconds = draw.randrange(1, int(whole.stdout) + 50), 0.0
        if trial % 4 > 1:
            calls = draw.randrange(int(whole.stdout) * 9 // 10, int(whole.stdout) + 50)
            seconds = draw.uniform(0, 0.02)
        run = run_child(output, calls, seconds, "--replace")
        assert run.returncode in (0, -signal.SIGKILL), run.stderr
        found = check_whole(output, may_lack=not replacing)
        check_nothing_else(found)
        seen[found] = seen.get(found, 0) + 1
    print(f"{output.partition(':')[0]}: found {seen}")


def test_a_folder_is_whole_or_not_there(released):
    def nothing_else(found: str) -> None:
        for path in Path().iterdir():
            if path.name.endswith(".part"):  # which no engine reads
                assert path.name.startswith(".")
        assert Path("out").exists() == (found != "none")

    kills("out/", "tries/", nothing_else)


def test_a_table_in_sqlite_is_whole_or_not_there(released):
    def nothing_else(found: str) -> None:
        with closing(sqlite3.connect("out.db")) as connection:
            tables = {n for (n,) in connection.execute("SELECT tbl_name FROM sqlite_master")}
        assert tables == (set() if found == "none" else {"released", "shoal_certificates"})

    kills("sqlite:///out.db?table=released", "sqlite:///tries.db?table=t", nothing_else)


def test_a_table_in_postgresql_is_whole_or_not_there(released):
    with server() as pg:
        pg.run("CREATE DATABASE tries")

        def nothing_else(found: str) -> None:
            expected = set() if found == "none" else {"released", "shoal_certificates"}
            until = time.monotonic() + 30
            # a server that is at work for a client that is gone may still commit for it
            while pg.tables() != expected and time.monotonic() < until:
                time.sleep(0.1)
                expected = pg.tables() if certificate_beside(pg.url("released")) else set()
            assert pg.tables() == expected
            assert not expected or files.read(pg.url("released")).frame.height == RECORDS

        kills(pg.url("released"), pg.url("t", base="tries"), nothing_else)
