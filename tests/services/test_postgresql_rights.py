"""A user of a real PostgreSQL server who lacks a right is told which, before any work is done."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from postgres_server import PASSWORD, USER, Server
from republish_cases import POLICY, wearers

LISTS = ("shoal_certificates", "shoal_streams", "shoal_releases")
NEW = {
    "publish": "publish {people} -p p.json -o {new} -q",
    "stream": "stream 1.csv -p s.json -o {new} --checkpoint new.ck -q",
    "republish": "republish 1.csv -p p.json --ledger new -o {new} -q",
}


@pytest.fixture
def pg(running: Server, tmp_path, monkeypatch, shoal):
    """A schema of the owner's with people, a release and a ledger's table; a user with nothing."""
    running.run("DROP SCHEMA IF EXISTS clinic CASCADE", "CREATE SCHEMA clinic")
    running.keep_wearers(wearers(60, 1), "clinic")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PGPASSWORD", PASSWORD)
    for seed in (1, 2):
        wearers(60, seed).write_csv(f"{seed}.csv")
    Path("p.json").write_text(json.dumps(POLICY))
    fads = {"name": "fads", "delta": 20}
    Path("s.json").write_text(json.dumps({**POLICY, "method": fads, "reference": "1.csv"}))
    owner = {"user": "postgres"}
    assert run(shoal, running, "publish 1.csv -p p.json -o {out} -q", **owner).status == 0
    grown = "republish 1.csv -p p.json --ledger L -o {grown} -q"
    assert run(shoal, running, grown, **owner).status == 0
    return running


def address(pg: Server, table: str, user: str = USER) -> str:
    return pg.url(table, user=user, more="&schema=clinic")


def run(shoal, pg: Server, line: str, user: str = USER):
    names = {name: address(pg, name, user) for name in ("people", "out", "grown", "new")}
    return shoal(*(word.format(**names) for word in line.split()))


def grant(pg: Server, *rights: str) -> None:
    pg.run(*(f"GRANT {right} TO {USER}" for right in rights))


def assert_refused(pg: Server, done, lacking: str) -> None:
    """In one line that names the right, and nothing is left behind."""
    assert done.status == 2, done.err
    assert f"this user lacks {lacking}; ask the owner to grant it" in done.err
    lines = [line for line in done.err.splitlines() if not line.endswith(" s)")]  # progress
    assert len(lines) == 1, done.err
    assert {path.name for path in Path().iterdir()} <= {
        "1.csv", "2.csv", "p.json", "s.json", "L", "L.private",
    }  # fmt: skip
    assert pg.tables("clinic") <= {"people", "out", "grown", *LISTS}


@pytest.mark.parametrize(
    "line",
    [
        "publish {people} -p p.json -o new.csv",
        "audit {people} -p p.json",
        "verify {out}",
        "policy init {people} -o new.yaml",
        "republish {people} -p p.json --ledger new",
    ],
)
def test_who_may_not_enter_the_schema_or_not_select_reads_nothing(pg, shoal, line):
    assert_refused(pg, run(shoal, pg, line), "USAGE ON SCHEMA clinic")
    grant(pg, "USAGE ON SCHEMA clinic", "SELECT ON clinic.shoal_certificates")
    table = "out" if "{out}" in line else "people"
    assert_refused(pg, run(shoal, pg, line), f"SELECT ON clinic.{table}".replace("out", '"out"'))
    grant(pg, f"SELECT ON clinic.{table}")
    assert run(shoal, pg, line).status in (0, 1)


@pytest.mark.parametrize("verb", NEW)
def test_who_may_read_and_not_make_a_table_is_refused_before_the_work(pg, shoal, verb):
    pg.run(*(f"DROP TABLE IF EXISTS clinic.{name}" for name in ("out", "grown", *LISTS)))
    grant(pg, "USAGE ON SCHEMA clinic", "SELECT ON clinic.people")
    assert_refused(pg, run(shoal, pg, NEW[verb]), "CREATE ON SCHEMA clinic")
    grant(pg, "CREATE ON SCHEMA clinic")
    assert run(shoal, pg, NEW[verb]).status == 0


def test_who_may_not_insert_into_a_ledgers_table_appends_nothing(pg, shoal):
    grant(pg, "USAGE ON SCHEMA clinic", "SELECT ON ALL TABLES IN SCHEMA clinic")
    line = "republish 2.csv -p p.json --ledger L -o {grown} -q"
    both = "INSERT ON clinic.grown, INSERT ON clinic.shoal_releases"
    assert_refused(pg, run(shoal, pg, line), both)
    grant(pg, "INSERT ON clinic.grown, clinic.shoal_releases")
    assert run(shoal, pg, line).status == 0


def test_who_may_not_keep_certificates_or_does_not_own_a_release_publishes_nothing(pg, shoal):
    grant(pg, "USAGE, CREATE ON SCHEMA clinic", "SELECT ON ALL TABLES IN SCHEMA clinic")
    keeping = "INSERT ON clinic.shoal_certificates, DELETE ON clinic.shoal_certificates"
    assert_refused(pg, run(shoal, pg, NEW["publish"]), keeping)
    grant(pg, "INSERT, DELETE ON clinic.shoal_certificates")
    replacing = "publish {people} -p p.json -o {out} -q --replace"
    refused = run(shoal, pg, replacing)
    assert_refused(pg, refused, 'OWNERSHIP ON clinic."out"')
    assert "ownership by ALTER TABLE ... OWNER TO" in refused.err
    assert run(shoal, pg, NEW["publish"]).status == 0
