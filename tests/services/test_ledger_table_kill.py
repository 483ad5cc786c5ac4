"""Ledgers that write into tables as real processes, and on a real server: killed, two at once,
without the server.

SHOAL_LONG=1 kills more often, SHOAL_KILLS=100 a hundred times in each database.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path
from urllib.parse import quote

import killed_republish
import polars as pl
import pytest

from failing_calls import Killed, killed_at
from postgres_server import PASSWORD, USER, lose_a_commit
from republish_cases import POLICY, append, policy, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.auditor.ledger.release_view import ledger_table, verify_ledger
from shoal.connectors import files
from shoal.connectors.database import release_tables
from shoal.connectors.database.postgresql import PostgresSession
from shoal.connectors.database.release_tables import listed_releases
from shoal.connectors.database.tables import opened
from shoal.connectors.ledger import Ledger
from shoal.connectors.location import parse_address
from shoal.errors import InputError, LedgerError, PartyError
from thorough import LONG, every

CHILD = Path(__file__).with_name("killed_republish.py")
KILLS = int(os.environ.get("SHOAL_KILLS", "20" if LONG else "1"))
PEOPLE = 60


@pytest.fixture
def place(folder):
    Path("p.json").write_text(json.dumps({**POLICY, "method": {"name": "crp"}}))
    return folder


@pytest.fixture
def table(place, request):
    """The address of a table, and what is to be waited for once a client is gone."""
    if request.param == "sqlite":
        return "sqlite:///out.db?table=releases", lambda: None
    pg = request.getfixturevalue("pg")
    return pg.url("releases"), pg.await_quiet


BOTH = pytest.mark.parametrize("table", ["sqlite", "postgresql"], indirect=True)


def grow(address: str, seed: int):
    return append(Path("L").absolute(), wearers(PEOPLE, seed), policy(), output=address)


def killed(seed: int, address: str, calls: int, seconds: float) -> None:
    """An append of the same increment, in a process that dies."""
    wearers(PEOPLE, seed).write_csv("increment.csv")
    command = [sys.executable, str(CHILD), "increment.csv", address, f"{calls}", f"{seconds}"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode in (0, -signal.SIGKILL), ended.stderr


def assert_in_step(address: str, releases: int) -> None:
    ledger = Ledger.at("L")
    assert ledger.verify() == []
    assert len(ledger.releases()) == releases
    assert verify_ledger(address) == verify_ledger("L")
    found = audit_ledger("L", table=address)
    assert found.holds, found.damage
    people = sum(release.certificate["records"]["out"] for release in found.releases)
    assert people == files.read(address).frame.height == releases * PEOPLE
    assert files.read(address).frame.equals(ledger_table("L"))


@BOTH
def test_killed_anywhere_every_release_is_in_the_ledger_and_in_the_table_once(table, monkeypatch):
    address, settled = table
    draw = random.Random(os.environ.get("SHOAL_KILLS_SEED", "1"))
    with monkeypatch.context() as patched:
        patched.setattr(release_tables, "putting", release_tables.putting)
        made = killed_republish.counting(0, None)
        grow(address, 1)
        sys.setprofile(None)
    done, seen = 1, Counter[tuple[bool, bool]]()
    for trial in range(KILLS):
        seconds = draw.uniform(0, 0.01) if trial % 3 > 1 else 0
        killed(2 + trial, address, draw.randrange(1, made[0]), seconds)
        settled()
        assert Ledger.at("L").verify() == []
        held = len(release_tables.state_of(parse_address(address)).releases)
        listed = len(Ledger.at("L").releases())
        assert (listed, held) in ((done, done), (done + 1, done), (done + 1, done + 1))
        seen[listed > done, held > done] += 1
        if trial % 2 and listed == done + 1:  # the next increment makes it good, too
            done = listed
            continue
        assert grow(address, 2 + trial).release == done + 1
        done += 1
        assert_in_step(address, done)
    grow(address, 1000)
    assert_in_step(address, done + 1)
    print(f"{KILLS} kills, then (in the ledger, in the table): {dict(seen)}")


@pytest.mark.parametrize("table", ["sqlite", *["postgresql"] * LONG], indirect=True)
def test_processes_at_once_append_one_after_the_other(table):
    address, _ = table
    for increment in range(2):
        wearers(PEOPLE, increment).write_csv(f"{increment}.csv")
    command = [sys.executable, "-m", "shoal", "republish", "-p", "p.json", "--ledger", "L", "-q"]
    processes = [
        subprocess.Popen(
            [*command, "-o", address, f"{turn % 2}.csv"], stderr=subprocess.PIPE, text=True
        )
        for turn in range(4 if LONG else 2)
    ]
    for process in processes:
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
    assert_in_step(address, 2)


# What only a server has


def test_increments_come_from_a_table_of_the_server_and_releases_go_into_another(pg, place, shoal):
    pg.keep_wearers(wearers(PEOPLE, 1))
    out = pg.url("releases")
    command = ["republish", pg.url("people"), "-p", "p.json", "--ledger", "L", "-q", "-o", out]
    assert shoal(*command).status == 0
    again = shoal(*(word for word in command if word != "-q"))
    assert (again.status, "is release 0001 already" in again.err) == (0, True)
    grow(pg.url("releases"), 2)
    assert_in_step(out, 2)
    newest = (
        "SELECT count(*)::int FROM releases WHERE shoal_release >= (SELECT since FROM"
        " shoal_releases WHERE name = 'releases' ORDER BY release DESC LIMIT 1)"
    )
    assert pg.run(newest) == [(2 * PEOPLE,)]
    verified = shoal("verify", f"{out}&release=1", "-p", "p.json")
    assert (verified.status, "FAIL" in verified.out) == (0, False)
    assert shoal("audit", out, "--ledger", "L", "-q").status == 0
    pg.run("UPDATE releases SET age = '17' WHERE shoal_row = 5")
    for work in (lambda: grow(pg.url("releases"), 3), lambda: verify_ledger(out)):
        with pytest.raises(LedgerError, match="release 0001: its rows were changed"):
            work()
    assert shoal("audit", out, "--ledger", "L", "-q").status == 1


@pytest.mark.parametrize("first", [True, False], ids=["first", "next"])
def test_killed_between_any_two_steps_a_release_is_in_both_or_neither_in_the_end(
    pg, place, monkeypatch, first
):
    address = pg.url("releases")

    def begin() -> None:
        for part in ("L", "L.private"):
            shutil.rmtree(part, ignore_errors=True)
        pg.run("DROP TABLE IF EXISTS releases, shoal_releases")
        if not first:
            grow(address, 1)

    begin()
    instants = killed_at(0, monkeypatch, PostgresSession, lambda: grow(address, 2))
    assert instants > 40
    for instant in every(60, range(1, instants + 1), first=40 - 15 * first):
        begin()
        with suppress(Killed):
            killed_at(instant, monkeypatch, PostgresSession, lambda: grow(address, 2))
        grow(address, 2 + instant % 2)
        grow(address, 2)
        assert_in_step(address, len(Ledger.at("L").releases()))
    assert len(Ledger.at("L").releases()) >= 2 - first


def test_more_than_nine_releases_are_in_their_order(pg, place):
    address = parse_address(pg.url("releases"))
    with opened(address, writing=True) as table:
        for number in (10, 9, 11, *range(1, 9)):
            release_tables._LIST.put(table, str(number), "1", "0", "{}", "")
        numbers = [line.release for line in listed_releases(table)]
    assert numbers == list(range(1, 12))


DEFERRED = (
    "CREATE FUNCTION change() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN UPDATE releases SET age"
    " = '*' WHERE shoal_row = NEW.shoal_row; RETURN NULL; END$$",
    "CREATE CONSTRAINT TRIGGER t AFTER INSERT ON releases DEFERRABLE INITIALLY DEFERRED FOR EACH"
    " ROW EXECUTE FUNCTION change()",
)


@pytest.mark.parametrize(
    "changes",
    [DEFERRED, ("CREATE RULE r AS ON INSERT TO shoal_releases DO INSTEAD NOTHING",)],
    ids=["trigger", "rule"],
)
def test_what_the_server_changes_behind_the_audit_is_found_before_the_commit(pg, place, changes):
    grow(pg.url("releases"), 1)
    pg.run(*changes)
    with pytest.raises(InputError, match="remove the trigger or rule"):
        grow(pg.url("releases"), 2)
    assert_in_step(pg.url("releases"), 1)


def test_a_password_in_the_address_is_in_no_file_and_no_row(pg, place):
    secret = quote(PASSWORD, safe="")
    grow(pg.url("releases", user=f"{USER}:{secret}"), 1)
    with pytest.raises(InputError) as refused:
        append(Path("L").absolute(), wearers(PEOPLE, 2))
    rows = str(pg.run("SELECT * FROM shoal_releases"))
    kept = [path.read_bytes() for part in ("L", "L.private") for path in Path(part).rglob("*.*")]
    assert len(kept) > 4
    for word in (PASSWORD, secret, "heim"):
        assert word not in str(refused.value) + rows
        assert not any(word.encode() in content for content in kept)


@pytest.mark.parametrize("reached", [True, False], ids=["behind", "before"])
def test_a_connection_that_is_lost_at_the_commit_is_looked_up(pg, place, monkeypatch, reached):
    grow(pg.url("releases"), 1)
    lose_a_commit(pg, monkeypatch, reached)
    if reached:
        assert grow(pg.url("releases"), 2).release == 2
    else:
        with pytest.raises(PartyError, match="0002 is in the ledger, but perhaps not yet"):
            grow(pg.url("releases"), 2)
        done = grow(pg.url("releases"), 2)
        assert (done.repeated, done.caught_up) == (True, 1)
    assert_in_step(pg.url("releases"), 2)


def test_somebody_who_adds_the_same_release_meanwhile_wins_and_nobody_is_published_twice(
    pg, place, monkeypatch
):
    """As a copy of the ledger on another machine would, whose lock nobody here sees."""
    grow(pg.url("releases"), 1)
    insert, address = PostgresSession.insert, parse_address(pg.url("releases"))

    def second(session: PostgresSession, table, frame: pl.DataFrame) -> None:
        monkeypatch.setattr(PostgresSession, "insert", insert)
        with opened(address, writing=True) as other:
            other.session.insert(table, frame)
            committing = threading.Timer(0.3, other.session.commit)
            committing.start()
            try:
                insert(session, table, frame)  # refused as soon as the server has the other's
            finally:
                committing.join()  # before the connection that it uses is closed

    monkeypatch.setattr(PostgresSession, "insert", second)
    with pytest.raises(PartyError, match="somebody else published into it meanwhile"):
        grow(pg.url("releases"), 2)
    assert Ledger.at("L").releases() == [1]
    with pytest.raises(LedgerError, match="some were added or taken away"):
        grow(pg.url("releases"), 2)
    pg.run(f"DELETE FROM releases WHERE shoal_row > {PEOPLE}")
    grow(pg.url("releases"), 2)
    assert_in_step(pg.url("releases"), 2)
