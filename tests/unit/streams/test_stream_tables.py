"""Streams into tables of SQLite: each step in one transaction, once, whatever stops the stream."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from failing_calls import Killed, dying
from sample_policies import PURCHASES
from shoal.connectors import files
from shoal.connectors.database.sqlite import SqliteSession
from shoal.connectors.location import parse_address
from shoal.errors import ANOTHER_STREAM, CheckpointError
from shoal.samples import purchases
from shoal.streams.checkpoint import Checkpoint
from shoal.streams.stream_tables import TableSink
from thorough import long_but

OUT = "sqlite:///out.db?table=released"
ROWS = 2500


@pytest.fixture
def shop(folder, monkeypatch):
    monkeypatch.setattr("shoal.connectors.feeds.PIECE", 12_000)
    purchases.generate(ROWS, 2).write_csv("p.csv")
    Path("policy.yaml").write_text(PURCHASES.replace("delta: 1000", "delta: 200"))
    return folder


def stream(shoal, *more: str, output: str = OUT, status: int | None = None):
    order = ("stream", "p.csv", "-p", "policy.yaml", "-q", "-o", output)
    return shoal(*order, *more, status=status)


def run(*statements: str):
    with closing(sqlite3.connect("out.db")) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements]


def rows():
    return files.read(OUT).frame


@pytest.fixture
def expected(shop, shoal):
    """What a file gets."""
    assert stream(shoal, output="out.csv").status == 0
    return files.read("out.csv").frame


def test_a_table_gets_what_a_file_gets_and_its_certificate_beside_it(expected, shoal):
    found = stream(shoal, "--checkpoint", "ck", "--json")
    assert found.status == 0
    assert rows().equals(expected)
    certificate = json.loads(found.out)
    texts = [finding["text"] for finding in certificate["warnings"]]
    said = [line.removeprefix("shoal: ").removeprefix("grave: ") for line in found.err.splitlines()]
    assert sorted(said) == sorted(texts)
    (sha256, text), *_ = run("SELECT sha256, certificate FROM shoal_certificates")[0]
    assert json.loads(text) == certificate
    assert certificate["output"]["sha256"] == sha256 == files.read(OUT).sha256
    assert certificate["output"]["format"] == "sqlite"
    assert certificate["measured"] == "whole"
    of_file = json.loads(Path("out.csv.certificate.json").read_text())
    assert certificate["promises"] == of_file["promises"]
    assert run("SELECT name, rows FROM shoal_streams")[0] == [("released", str(ROWS))]
    assert shoal("audit", OUT, "-p", "policy.yaml", "-q").status == 0
    assert shoal("verify", OUT, "-p", "policy.yaml").status == 0
    assert stream(shoal, "--checkpoint", "ck").status == 0  # nothing is left to do
    assert rows().equals(expected)


@pytest.mark.parametrize(
    ("where", "name"),
    long_but(
        (SqliteSession, "commit"),
        [
            (Checkpoint, "commit"),
            (TableSink, "put"),
            (SqliteSession, "commit"),
            (SqliteSession, "insert"),
            (TableSink, "certify"),
        ],
    ),
)
@pytest.mark.parametrize("behind", [False, True], ids=["before", "behind"])
def test_a_crash_at_any_step_loses_and_repeats_nothing(
    expected, shoal, monkeypatch, where, name, behind
):
    real, crashes = getattr(where, name), 0
    for at in (1, 2, 3, 1, 2, 1000):
        monkeypatch.setattr(where, name, dying(real, at, behind))
        try:
            assert stream(shoal, "--checkpoint", "ck").status == 0
        except Killed:
            crashes += 1
        if (
            Path("out.db").exists()
            and run("SELECT 1 FROM sqlite_master WHERE name = 'released'")[0]
        ):
            assert rows().equals(expected.head(rows().height))
    assert crashes
    assert rows().equals(expected)
    assert len(run("SELECT 1 FROM shoal_certificates")[0]) == 1


@pytest.mark.parametrize(("where", "name"), [(Checkpoint, "commit"), (TableSink, "put")])
def test_a_stream_that_is_stopped_certifies_what_is_there(
    expected, shoal, monkeypatch, where, name
):
    stopped = dying(getattr(where, name), 4, behind=False, death=KeyboardInterrupt)
    monkeypatch.setattr(where, name, stopped)
    assert stream(shoal, "--checkpoint", "ck").status == 130
    there = rows()
    assert 0 < there.height < ROWS
    certificate = json.loads(run("SELECT certificate FROM shoal_certificates")[0][0][0])
    assert certificate["records"]["out"] == there.height
    assert certificate["output"]["sha256"] == files.read(OUT).sha256
    assert stream(shoal, "--checkpoint", "ck").status == 0
    assert rows().equals(expected)


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE released SET age = '*'",
        "UPDATE shoal_certificates SET certificate = '{}'",
        "DELETE FROM shoal_certificates",
    ],
)
def test_a_trigger_that_fires_on_the_certificate_is_found_before_the_commit(shop, shoal, change):
    columns = "name text, sha256 text, certificate text, created text"
    run(
        f"CREATE TABLE shoal_certificates ({columns})",
        f"CREATE TRIGGER t AFTER INSERT ON shoal_certificates BEGIN {change}; END",
    )
    assert "remove the trigger or rule" in stream(shoal, "--checkpoint", "ck", status=2).err
    assert run("SELECT count(*) FROM shoal_certificates") == [[(0,)]]
    assert (rows()["age"] != "*").any()


def test_a_trigger_that_changes_rows_is_found_before_the_commit(expected, shoal, monkeypatch):
    real = Checkpoint.commit
    monkeypatch.setattr(Checkpoint, "commit", dying(real, 3, behind=False))
    with pytest.raises(Killed):
        stream(shoal, "--checkpoint", "ck")
    monkeypatch.setattr(Checkpoint, "commit", real)
    before = rows()
    run(
        "CREATE TRIGGER t AFTER INSERT ON released BEGIN UPDATE released SET age = '*' WHERE"
        " shoal_row = new.shoal_row; END"
    )
    assert "remove the trigger or rule" in stream(shoal, "--checkpoint", "ck", status=2).err
    assert rows().equals(before)
    run("DROP TRIGGER t")
    assert stream(shoal, "--checkpoint", "ck").status == 0
    assert rows().equals(expected)


def test_a_checkpoint_is_not_resumed_into_another_table(shop, shoal):
    assert stream(shoal, "--checkpoint", "ck").status == 0
    other = stream(shoal, "--checkpoint", "ck", output="sqlite:///out.db?table=other", status=2)
    assert "was made under another output table; resume" in other.err


def test_what_is_not_as_the_stream_left_it_is_refused(expected, shoal, monkeypatch):
    assert stream(shoal).status == 2
    assert "give --checkpoint" in stream(shoal).err
    assert "is there already" not in stream(shoal, "--checkpoint", "ck").err
    assert "is there already" in stream(shoal, "--checkpoint", "ck2").err
    shutil.copy("out.db", "whole.db")
    run("DROP TABLE released")
    assert "is gone, but 'shoal_streams' still" in stream(shoal, "--checkpoint", "ck2").err
    shutil.copy("whole.db", "out.db")
    for change in (
        "DELETE FROM released WHERE shoal_row = 2500",
        "DELETE FROM shoal_streams",
        "UPDATE shoal_streams SET identity = 'x'",
        "UPDATE shoal_streams SET step = '1'",
        "UPDATE shoal_streams SET step = 'x'",
        "UPDATE shoal_streams SET rows = '-1'",
        "DROP TABLE released",
        "INSERT INTO released (shoal_row, age) VALUES (9999, '1')",
        "UPDATE released SET age = '*' WHERE shoal_row = 5",
        "ALTER TABLE released ADD COLUMN more text DEFAULT 'x'",
        "ALTER TABLE released RENAME COLUMN age TO AGE",
    ):
        run(change)
        said = stream(shoal, "--checkpoint", "ck", status=2).err
        assert "is not as the stream left it" in said, change
        assert f"{ANOTHER_STREAM}, only for the records behind" in said
        assert ("missing; if it was renamed, rename it back" in said) == ("DROP" in change)
        is_foreign = "identity" in change or "INSERT" in change
        assert ("somebody else has written into it" in said) == is_foreign
        shutil.copy("whole.db", "out.db")
    run("DELETE FROM released WHERE shoal_row = 5")
    assert "FAIL file" in shoal("verify", OUT, "-p", "policy.yaml", status=1).out
    remedy = "into this one once it is dropped and 'shoal_streams' has no line of it"
    assert remedy in shoal("audit", OUT, "-p", "policy.yaml", status=2).err
    run("DROP TABLE released", "DELETE FROM shoal_streams WHERE name = 'released'")
    monkeypatch.setattr("shoal.connectors.database.sqlite.PATIENCE", 0.05)
    with closing(sqlite3.connect("out.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert stream(shoal, "--checkpoint", "ck2").status == 4
    assert stream(shoal, "--checkpoint", "ck2").status == 0
    assert rows().equals(expected)


@pytest.mark.parametrize(
    "change",
    [
        ["UPDATE released SET age = '17' WHERE shoal_row = 5"],
        ["ALTER TABLE released ADD COLUMN more text DEFAULT 'x'"],
        ["ALTER TABLE released RENAME COLUMN age TO AGE"],
        [
            "DROP TABLE shoal_streams",
            "CREATE TABLE shoal_streams (name, identity, step, rows, digest)",
            "INSERT INTO shoal_streams (name) VALUES ('released')",
        ],
    ],
    ids=["cell", "column", "name", "list"],
)
@pytest.mark.parametrize("stops", [False, True])
def test_what_was_changed_while_a_stream_runs_gets_no_certificate(
    shop, shoal, monkeypatch, change, stops
):
    """Also where the stream is stopped, and certifies what was measured release by release."""
    real, calls = Checkpoint.commit, 0

    def commit(*arguments):
        nonlocal calls
        calls += 1
        if calls == 4:
            run(*change)
            if stops:
                raise KeyboardInterrupt
        return real(*arguments)

    monkeypatch.setattr(Checkpoint, "commit", commit)
    assert "is not as the stream left it" in stream(shoal, "--checkpoint", "ck", status=2).err
    assert not run("SELECT 1 FROM sqlite_master WHERE name = 'shoal_certificates'")[0]


def test_two_who_run_copies_of_a_checkpoint_do_not_take_turns(shop):
    """Each has committed its own rows as step 2; those of one must not be dropped in silence."""
    address, names = parse_address(OUT), ["age"]
    TableSink(address, names, "one", 0).put(1, b'{"age":"1"}\n')
    ours, theirs = (TableSink(address, names, "one", 1) for _ in range(2))
    ours.put(2, b'{"age":"2"}\n')
    with pytest.raises(CheckpointError, match="is not as the stream left it"):
        theirs.put(2, b'{"age":"3"}\n')
    ours.put(3, b"")
    resumed = TableSink(address, names, "one", 3)
    resumed.put(3, b'{"age":"4"}\n')  # is there already
    assert run("SELECT age FROM released")[0] == [("1",), ("2",)]


def test_names_that_no_table_can_have_and_sources_are_refused(shop, shoal):
    output = "sqlite:///out.db?table=shoal_streams"
    found = stream(shoal, "--checkpoint", "ck", output=output, status=2)
    assert "where the steps of streams are kept" in found.err
    assert not Path("ck").exists()
    found = shoal("stream", OUT, "-p", "policy.yaml", "-q", "-o", "out.csv", status=2)
    assert "a stream reads files and topics" in found.err
