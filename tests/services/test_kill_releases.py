"""Publications killed at random places of the code: what can be read has been audited.

SHOAL_KILLS=100 kills a hundred in each place.
"""

import json
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

import linked_cases
import shoal as library
from postgres_server import server
from sample_policies import PATIENTS
from shoal.auditor.linked.audit import audit_linked
from shoal.connectors.linked_tables import place_of_several
from shoal.connectors.location import of_table
from shoal.connectors.outputs import certificate_beside
from shoal.data.certificate import Certificate
from shoal.linked.publish import publish_linked
from shoal.policy.policy import Policy
from shoal.samples import patients
from shoal.tables.publish import publish_file

CHILD = Path(__file__).with_name("killed_publish.py")
KILLS = int(os.environ.get("SHOAL_KILLS", "2"))
RECORDS = 500
TABLES = ("people", "visits", "drugs")


@pytest.fixture
def released(folder):
    """A folder with patients and a quick policy, and the shell standing in it."""
    patients.generate(RECORDS, 1).write_csv("patients.csv")
    Path("policy.yaml").write_text(PATIENTS + "\nmethod: {name: mondrian}\n")


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


@pytest.fixture
def clinic(folder):
    """A folder with linked tables and their policy, and the shell standing in it."""
    Path("clinic").mkdir()
    for name, frame in linked_cases.world(60).items():
        frame.write_csv(f"clinic/{name}.csv")
    Path("policy.yaml").write_text(json.dumps(linked_cases.policy()))


def publish_one(output: str) -> None:
    publish_file("patients.csv", Policy.load("policy.yaml"), output)


def publish_several(output: str) -> None:
    publish_linked("clinic", Policy.load("policy.yaml").with_k(10), output)


def check_whole_tables(output: str, may_lack: bool) -> str:
    """What can be read of several tables is a release with its proof; which one it is."""
    proof = certificate_of_tables(output)
    if proof is None:
        assert may_lack, "the earlier release is gone"
        return "none"
    stated = Certificate.parsed(proof, "certificate.json")
    asked = stated["promises"][0]["asked"]
    found = audit_linked(output, Policy.load("policy.yaml").with_k(asked), "clinic").certificate
    assert found.holds
    hashes = [[table["sha256"] for table in one["tables"]] for one in (found, stated)]
    assert hashes[0] == hashes[1]
    return str(asked)


def certificate_of_tables(output: str) -> bytes | None:
    place = place_of_several(output)
    if place.is_table:
        beside = [certificate_beside(of_table(place, name)) for name in TABLES]
        assert len({*beside}) == 1
        return beside[0]
    is_file = place.endswith(".xlsx")
    proof = Path(f"{place}.certificate.json" if is_file else f"{place}/certificate.json")
    return proof.read_bytes() if proof.exists() else None


def kills(
    place: Callable[[object], str],
    check_nothing_else: Callable[[object, str], None],
    publish: Callable[[str], object] = publish_one,
    check: Callable[[str, bool], str] = check_whole,
) -> None:
    """Kills new publications, and some that replace a release, each at an address of its own.

    check_nothing_else: given the trial, and what is found at its address. publish: makes a release
    that is replaced. check: says which release is there.
    """
    draw = random.Random(os.environ.get("SHOAL_KILLS_SEED", "1"))
    whole = run_child(place("whole"), 0, 0)
    assert whole.returncode == 0, whole.stderr
    seen: Counter[str] = Counter()
    for trial in range(KILLS):
        output, replacing = place(trial), trial % 2 == 1
        if replacing:
            publish(output)
        # the last tenth of the calls has the commit in it, and a few more come with --replace
        calls, seconds = draw.randrange(1, int(whole.stdout) + 50), 0.0
        if trial % 4 > 1:
            calls = draw.randrange(int(whole.stdout) * 9 // 10, int(whole.stdout) + 50)
            seconds = draw.uniform(0, 0.02)
        run = run_child(output, calls, seconds, "--replace")
        assert run.returncode in (0, -signal.SIGKILL), run.stderr
        found = check(output, not replacing)
        check_nothing_else(trial, found)
        seen[f"{'old' if found == '10' else 'new' if found == '20' else 'none'}"] += 1
    print(f"{place(0).partition(':')[0]}: {KILLS} kills, then found {dict(seen)}")


def test_a_folder_is_whole_or_not_there(released):
    def nothing_else(trial: object, found: str) -> None:
        assert Path(f"out{trial}").exists() == (found != "none")
        strange = {path.name for path in Path().iterdir()} - {"patients.csv", "policy.yaml"}
        # hidden drafts, which no engine reads
        assert all(re.fullmatch(r"out\w+|\.out\w+\.\w+\.part", name) for name in strange)

    kills(lambda trial: f"out{trial}/", nothing_else)


def tables_in(path: str) -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {n for (n,) in connection.execute("SELECT tbl_name FROM sqlite_master")}


def test_a_table_in_sqlite_is_whole_or_not_there(released):
    def nothing_else(trial: object, found: str) -> None:
        check_tables(tables_in("out.db"), trial, found)

    kills(lambda trial: f"sqlite:///out.db?table=r{trial}", nothing_else)


def test_a_table_in_postgresql_is_whole_or_not_there(released):
    with server() as pg:

        def nothing_else(trial: object, found: str) -> None:
            pg.await_quiet()
            found = check_whole(pg.url(f"r{trial}"), may_lack=found == "none")
            check_tables(pg.tables(), trial, found)

        kills(lambda trial: pg.url(f"r{trial}"), nothing_else)


@pytest.mark.parametrize("name", ["out{}", "out{}.xlsx"])
def test_linked_tables_in_files_are_all_there_or_none(clinic, name):
    def nothing_else(trial: object, found: str) -> None:
        # of a workbook the proof takes its place first
        assert not Path(name.format(trial)).exists() or found != "none"
        strange = {path.name for path in Path().iterdir()} - {"clinic", "policy.yaml"}
        assert all(
            re.fullmatch(r"out\w+(\.xlsx(\.certificate\.json)?)?|\.out.*\.\w+\.part", one)
            for one in strange
        )
        drafts = f".{name.format(trial)}.*.part"
        if found == "none" and [*Path().glob(drafts)]:  # the next one takes them away
            publish_several(name.format(trial))
            assert not [*Path().glob(drafts)]

    kills(name.format, nothing_else, publish_several, check_whole_tables)


def test_linked_tables_in_sqlite_are_all_there_or_none(clinic):
    def nothing_else(trial: object, found: str) -> None:
        if not Path(f"out{trial}.sqlite").exists():
            return
        tables = tables_in(f"out{trial}.sqlite")
        assert tables == ({*TABLES, "shoal_certificates"} if found != "none" else set())

    kills("out{}.sqlite".format, nothing_else, publish_several, check_whole_tables)


def test_linked_tables_in_postgresql_are_all_there_or_none(clinic):
    with server() as pg:

        def place(trial: object) -> str:
            pg.run(f"CREATE SCHEMA IF NOT EXISTS r{trial}")
            return f"postgresql://postgres@/postgres?host={pg.folder}&schema=r{trial}"

        def nothing_else(trial: object, found: str) -> None:
            pg.await_quiet()
            found = check_whole_tables(place(trial), may_lack=found == "none")
            tables = pg.tables(f"r{trial}")
            assert tables == ({*TABLES, "shoal_certificates"} if found != "none" else set())

        kills(place, nothing_else, publish_several, check_whole_tables)


def check_tables(tables: set[str], trial: object, found: str) -> None:
    """A release is there if its certificate is, and nothing else that was ever begun."""
    assert (f"r{trial}" in tables) == (found != "none")
    assert all(re.fullmatch(r"r\w+|shoal_certificates", name) for name in tables)
