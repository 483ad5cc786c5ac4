"""A real PostgreSQL server that stops amid the work of any verb ends it with 4, and leaves what was
there.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from postgres_server import Server, server
from republish_cases import POLICY, wearers
from shoal.cli.main import status_of
from shoal.connectors import files
from shoal.connectors.database.postgresql import PostgresSession
from shoal.connectors.database.session import SOURCE
from shoal.errors import InputError, PartyError

SLOW = "CREATE FUNCTION slowly(x text) RETURNS text LANGUAGE plpgsql AS"
SLOW += " 'BEGIN PERFORM pg_sleep(0.01); RETURN x; END'"


@pytest.fixture(scope="module")
def running():
    with server() as started:
        started.keep_wearers(wearers(300, 1))
        started.run(
            SLOW,
            "CREATE VIEW slow AS SELECT who, slowly(sex) AS sex FROM people",
            "CREATE VIEW odd AS SELECT who, (1 / (beat - beat))::text AS sex FROM people",
        )
        yield started


@pytest.fixture
def pg(running: Server):
    yield running
    running.stop()
    running.start()


@pytest.fixture(scope="module")
def place(running, tmp_path_factory):
    """A release and a ledger, each in a table and in files."""
    folder = tmp_path_factory.mktemp("outage")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for seed in (1, 2):
            wearers(60, seed).write_csv(f"{seed}.csv")
        Path("p.json").write_text(json.dumps(POLICY))
        Path("s.json").write_text(
            json.dumps({**POLICY, "method": {"name": "fads", "delta": 20}, "reference": "1.csv"})
        )
        assert not status_of(["publish", "1.csv", "-p", "p.json", "-o", running.url("out"), "-q"])
        grown = ["-p", "p.json", "--ledger", "L", "-o", running.url("grown"), "-q"]
        assert not status_of(["republish", "1.csv", *grown])
    return folder


READS = {
    "publish": "publish {people} -p p.json -o new.csv",
    "audit": "audit {out} -p p.json",
    "audit --original": "audit out.csv -p p.json --original {people}",
    "audit --ledger": "audit {grown} --ledger L",
    "verify": "verify {out} -p p.json",
    "ledger verify": "ledger verify {grown}",
    "policy init": "policy init {people} -o new.yaml",
    "policy check": "policy check p.json {people}",
    "profile": "profile {people}",
    "compare": "compare {people} -p p.json --methods mondrian --ks 4",
    "republish": "republish {people} -p p.json --ledger new",
    "republish -o": "republish 2.csv -p p.json --ledger L -o {grown}",
}
WRITES = {
    "publish": "publish 1.csv -p p.json -o {new}",
    "stream": "stream 1.csv -p s.json -o {new} --checkpoint new.ck",
    "republish": "republish 2.csv -p p.json --ledger new -o {new}",
}


def run(shoal, pg: Server, line: str):
    names = {name: pg.url(name) for name in ("people", "out", "grown", "new")}
    return shoal(*(word.format(**names) for word in line.split()))


def stopping(pg: Server, monkeypatch, part: str, at: str = "") -> None:
    """Stops the server before a session reads rows, or writes them."""
    work = getattr(PostgresSession, part)

    def cut(session: PostgresSession, what, *more):
        if at in str(what):
            monkeypatch.setattr(PostgresSession, part, work)
            pg.stop()
        return work(session, what, *more)

    monkeypatch.setattr(PostgresSession, part, cut)


def assert_outage(done, before: set[str]) -> None:
    assert done.status == 4, done.err
    last = done.err.splitlines()[-1]  # behind what tells how far it was
    assert last.startswith(("shoal: table '", "shoal: output '")), done.err
    assert "server" in last
    assert {path.name for path in Path().iterdir()} - before <= {"new.ck"}


@pytest.mark.parametrize("verb", READS)
def test_a_server_that_stops_amid_a_read_ends_every_verb_with_4(
    pg, place, shoal, monkeypatch, verb
):
    monkeypatch.chdir(place)
    if not Path("out.csv").exists():
        assert shoal("publish", "1.csv", "-p", "p.json", "-o", "out.csv", "-q").status == 0
    before = {path.name for path in place.iterdir()}
    stopping(pg, monkeypatch, "query", SOURCE)
    assert_outage(run(shoal, pg, READS[verb]), before)


@pytest.mark.parametrize("verb", WRITES)
def test_a_server_that_stops_amid_a_write_ends_every_verb_with_4_and_no_table(
    pg, place, shoal, monkeypatch, verb
):
    monkeypatch.chdir(place)
    before = {path.name for path in place.iterdir()}
    stopping(pg, monkeypatch, "insert")
    assert_outage(run(shoal, pg, WRITES[verb]), before)
    pg.start()
    assert "new" not in pg.tables()


def test_a_server_that_stops_between_two_rows_is_an_outage(pg):
    threading.Timer(0.5, pg.stop).start()
    with pytest.raises(PartyError, match="the connection was lost"):
        files.read(pg.url("slow", more="&order=who"))


def test_what_fails_between_two_rows_is_named_by_its_state_without_a_cell(pg):
    pg.run("ALTER ROLE postgres SET statement_timeout = '500ms'")
    try:
        for table, shown in (("slow", "by statement_timeout; .*57014"), ("odd", "22012")):
            with pytest.raises(InputError, match=shown):
                files.read(pg.url(table, more="&order=who"))
    finally:
        pg.run("ALTER ROLE postgres RESET statement_timeout")
