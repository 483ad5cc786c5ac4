"""Ledgers that write into tables of SQLite: in step with them whatever is killed, or refused."""

import json
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import shoal as library
from failing_calls import Killed, killed_at
from republish_cases import POLICY, append, policy, wearers
from shoal.attacks.run.attack import audit_ledger
from shoal.auditor.ledger.release_view import ledger_table, verify_ledger
from shoal.connectors import files
from shoal.connectors.database import release_tables
from shoal.connectors.database.sqlite import SqliteSession
from shoal.connectors.ledger import Ledger, TableNote
from shoal.connectors.location import parse_address
from shoal.errors import InputError, LedgerError, PromiseError
from shoal.policy.policy import Policy
from thorough import every, examples, long_but, long_where

OUT = "sqlite:///out.db?table=releases"
N = 30
PARTS = ("L", "L.private", "out.db")


@pytest.fixture(autouse=True)
def place(folder):
    Path("p.json").write_text(json.dumps(POLICY))
    return folder


def run(*statements: str):
    with closing(sqlite3.connect("out.db")) as connection, connection:
        return [connection.execute(statement).fetchall() for statement in statements]


def grow(seed: int, asked=None, output: str | None = OUT, ledger: str = "L", **options):
    return append(Path.cwd() / ledger, wearers(N, seed), asked, output=output, **options)


def assert_refused(error: type[Exception], said: str, seed: int, **options) -> None:
    with pytest.raises(error, match=said):
        grow(seed, **options)


def grow_twice() -> None:
    grow(1)
    grow(2)


def save(name: str) -> None:
    for part in PARTS:
        if Path(part).is_dir():
            shutil.copytree(part, f"{name}/{part}")
        elif Path(part).exists():
            shutil.copy(part, f"{name}/{part}")


def restore(name: str, *parts: str) -> None:
    for part in parts:
        if Path(part).is_dir():
            shutil.rmtree(part)
        else:
            Path(part).unlink(missing_ok=True)
        if Path(name, part).is_dir():
            shutil.copytree(Path(name, part), part)
        elif Path(name, part).exists():
            shutil.copy(Path(name, part), part)


def assert_in_step(output: str = OUT) -> None:
    """The table holds every release of the ledger once, byte for byte, and says so."""
    ledger = Ledger.at("L")
    assert ledger.verify() == []
    assert verify_ledger(output) == verify_ledger("L")
    numbers, certificates = ledger.releases(), set()
    for number in numbers:
        release = files.read(f"{output}&release={number}")
        assert release.sha256 == files.file_sha256(ledger.folder(number) / "data.csv")
        certificates.add(release.sha256)
    assert release_tables.state_of(parse_address(output)).damage == []
    note = TableNote.read(ledger.private)
    assert note is not None
    assert note.releases == len(numbers)
    assert files.read(output).frame.equals(ledger_table("L"))


# What a reader finds


@pytest.mark.parametrize(
    "method", long_but("crp", ["crp", "k-pprp", "sticky", "m-invariance", "static-2"])
)
def test_a_table_holds_what_the_ledger_holds_release_by_release(method, shoal):
    """Increments lie behind one another; of methods for whole tables the last release counts."""
    people, leaks = wearers(N, 1), method == "static-2"
    asked = policy(method, roles={"beat": "drop" if method == "m-invariance" else "plain"})
    append(Path("L").absolute(), people, asked, output=OUT, allow_leaks=leaks)
    others = people.with_columns(pl.col("age") + 1) if method == "sticky" else wearers(N, 2)
    append(Path("L").absolute(), others, asked, output=OUT, allow_leaks=leaks)
    assert_in_step()
    run(
        "CREATE VIEW newest AS SELECT * FROM releases WHERE shoal_release >= (SELECT since FROM"
        " shoal_releases WHERE name = 'releases' ORDER BY release DESC LIMIT 1)"
    )
    found = run(
        "SELECT count(*) FROM newest",
        "SELECT name, release, rows FROM shoal_releases",
        "SELECT min(shoal_row), max(shoal_row), count(*) FROM releases",
    )
    rows = [files.read(f"{OUT}&release={number}").frame.height for number in (1, 2)]
    assert found[0] == [(ledger_table("L").height,)]
    assert found[1] == [("releases", 1, rows[0]), ("releases", 2, rows[1])]
    assert found[2] == [(1, sum(rows), sum(rows))]
    shoal("audit", OUT, "--ledger", "L", "-q", status=1 if leaks else 0)


def test_one_release_is_audited_and_verified_by_its_number(shoal):
    grow_twice()
    first = f"{OUT}&release=1"
    assert "ok   file: is the one certified" in shoal("verify", first, "-p", "p.json", status=0).out
    assert shoal("audit", first, "-p", "p.json", "-q").status == 0
    assert shoal("audit", OUT, "-p", "p.json", "-q").status == 0
    assert library.read_release(first).data.equals(files.read("L/0001/data.csv").frame)
    for address, said in (
        (f"{OUT}&release=3", "there is no such release; it holds 1 to 2"),
        (f"{OUT}&release=x", "'release' takes the number of one"),
        (OUT, "name one with &release=N"),
    ):
        assert said in shoal("verify", address, status=2).err
    run("CREATE TABLE other (a PRIMARY KEY)", "INSERT INTO other VALUES (1)")
    other = shoal("verify", "sqlite:///out.db?table=other&release=1")
    assert (other.status, "holds no releases of a ledger" in other.err) == (2, True)
    run("UPDATE releases SET activity = 'run' WHERE shoal_row = 1")
    assert "FAIL file" in shoal("verify", first).out


def test_the_chain_in_the_table_is_verified_without_the_ledger(shoal):
    heads = [grow(seed).head for seed in (1, 2)]
    assert shoal("ledger", "verify", OUT, "--noted", heads[0]).status == 0
    found = shoal("ledger", "verify", OUT, "--noted", "0" * 64)
    assert (found.status, "the noted release is not in it" in found.err) == (1, True)
    wearers(N, 9).write_csv("more.csv")
    more = ("republish", "more.csv", "-p", "p.json", "--ledger", "L", "-o", OUT)
    line = "release 0001: its line in 'shoal_releases' is missing or was changed"
    for change, said in (
        (
            "UPDATE releases SET age = '*' WHERE shoal_row = 2",
            "release 0001: its rows were changed",
        ),
        ("DELETE FROM releases WHERE shoal_row = 60", "release 0002: its rows were changed"),
        ("DELETE FROM shoal_releases WHERE release = 1", line),
        ("UPDATE shoal_releases SET since = 2 WHERE release = 2", "release 0002: its line"),
        ("UPDATE shoal_releases SET certificate = 'x' WHERE release = 1", "release 0001: its line"),
    ):
        save("whole")
        run(change)
        assert said in shoal("ledger", "verify", OUT, status=1).err
        assert "restore " in shoal(*more, status=1).err
        restore("whole", "out.db")
        shutil.rmtree("whole")
    assert shoal(*more).status == 0, "as the message says"


def test_a_dropped_table_is_written_anew_from_the_ledger_as_the_refusals_say():
    grow_twice()
    run("DROP TABLE releases")
    assert_refused(LedgerError, r"the table is missing.* or .* delete its lines in 'sho", 3)
    Path("L.private/table.json").unlink()
    assert_refused(InputError, "is gone, but 'shoal_releases' still lists it; delete", 3)
    run("DELETE FROM shoal_releases WHERE name = 'releases'")
    assert grow(3).caught_up == 2
    assert_in_step()


def test_an_increment_is_read_from_a_table_and_published_into_another(shoal):
    frame = wearers(N, 1)
    with closing(sqlite3.connect("in.db")) as source, source:
        source.execute(f"CREATE TABLE people ({', '.join(frame.columns)}, PRIMARY KEY (who))")
        source.executemany("INSERT INTO people VALUES (?, ?, ?, ?, ?, ?)", frame.rows())
    command = ["republish", "sqlite:///in.db?table=people", "-p", "p.json", "--ledger", "L", "-q"]
    assert shoal(*command, "-o", OUT).status == 0
    assert_in_step()
    assert "is release 0001 already" in shoal(*command[:-1], "-o", OUT, status=0).err
    assert_in_step()
    same = shoal("republish", OUT, *command[2:], "-o", OUT)
    assert (same.status, "is the input; name another table" in same.err) == (2, True)


def test_records_that_wait_leave_the_table_as_it_is():
    done = append(Path("L").absolute(), wearers(2, 1), output=OUT)
    assert (done.release, Path("out.db").exists()) == (None, False)
    append(Path("L").absolute(), wearers(2, 2), output=OUT)
    assert_in_step()


def test_a_ledger_that_has_releases_writes_them_all_into_a_new_table():
    for seed in (1, 2):
        grow(seed, output=None)
    done = grow(3)
    assert (done.release, done.caught_up) == (3, 2)
    assert_in_step()


def test_releases_with_several_sets_of_columns_fit_no_table_and_begin_none(monkeypatch):
    """As a ledger of an earlier version may have."""
    monkeypatch.setattr("shoal.ledgers.increment.Terms.check_plain_columns", lambda *_: None)
    plain = Policy.from_dict({**POLICY, "other": "plain"})
    for seed, frame in enumerate([wearers(N, 1), wearers(N, 2).with_columns(more=pl.lit("z"))]):
        append(Path("L").absolute(), frame, plain)
        assert Ledger.at("L").releases() == list(range(1, seed + 2))
    with pytest.raises(InputError, match="differ in their columns"):
        append(Path("L").absolute(), wearers(N, 3), plain, output=OUT)
    assert not Path("out.db").exists()
    append(Path("L").absolute(), wearers(N, 3), plain)


def test_a_frame_is_republished_into_a_table():
    done = library.republish(wearers(N, 1), POLICY, "L", output=OUT)
    assert done.data.equals(files.read(f"{OUT}&release=1").frame)
    assert_in_step()


CELLS = st.lists(
    st.fixed_dictionaries(
        {
            name: st.none()
            | st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=5)
            for name in ("a", "b c")
        }
    ),
    min_size=1,
    max_size=6,
)


@given(CELLS)
def test_whatever_a_file_of_a_ledger_holds_is_in_the_table_and_hashes_alike(cells):
    given = pl.DataFrame(cells, schema={"a": pl.String, "b c": pl.String})
    files.write(given, Path("data.csv"), ".csv")
    written = files.read_as("data.csv", ".csv")
    said = {
        "date": "2026-01-01T00:00:00Z",
        "ledger": {"release": 1, "previous": ""},
        "output": {"sha256": written.sha256},
        "columns": [{"name": name, "technique": "as-is"} for name in given.columns],
    }
    Path("out.db").unlink(missing_ok=True)
    with release_tables.putting(parse_address(OUT), None, written.frame, json.dumps(said)):
        pass
    found = files.read(f"{OUT}&release=1")
    assert found.frame.equals(written.frame)
    assert found.sha256 == written.sha256


# Kills


@pytest.mark.parametrize("first", [True, False], ids=["first", "next"])
@pytest.mark.parametrize("method", ["crp", *long_where(bool, ["sticky", "k-pprp"])])
def test_killed_between_any_two_steps_a_release_is_in_both_or_neither_in_the_end(
    monkeypatch, method, first
):
    """Before or behind every operation; then comes another increment, or the same one again."""
    asked = policy(method)
    if not first:
        grow(1, asked)
    save("before")

    def work():
        grow(2, asked)

    instants = killed_at(0, monkeypatch, SqliteSession, work)
    assert instants > 40
    rows = files.read(OUT).frame
    turn = 3 * ["crp", "sticky", "k-pprp"].index(method) + 10 * first
    for instant in every(20, range(1, instants + 1), first=turn):
        restore("before", *PARTS)
        with suppress(Killed):
            killed_at(instant, monkeypatch, SqliteSession, work)
        assert not Path("L").exists() or Ledger.at("L").verify() == [], instant
        if instant % 3:
            work()
            assert_in_step()
            assert files.read(OUT).frame.equals(rows), instant
        else:  # nothing of the one before is lost where the next increment comes
            there = Ledger(Path("L")).releases()
            grow(3, asked)
            assert len(Ledger.at("L").releases()) == len(there) + 1
            assert_in_step()
            work()
            assert_in_step()


def test_a_commit_that_the_database_refuses_is_made_good_by_the_same_increment(monkeypatch, shoal):
    grow(1)
    real = SqliteSession.commit

    def refused(session):
        from shoal.connectors.database.session import DatabaseRefusal

        raise DatabaseRefusal("has no room left; free some space")

    monkeypatch.setattr(SqliteSession, "commit", refused)
    assert_refused(InputError, r"0002 is in the ledger, but perhaps not.*no room left", 2)
    monkeypatch.setattr(SqliteSession, "commit", real)
    assert_refused(InputError, "name it with -o", 3, output=None)
    save("behind")
    done = grow(2)
    assert (done.repeated, done.release, done.caught_up) == (True, 2, 1)
    assert_in_step()
    restore("behind", *PARTS)
    wearers(N, 2).write_csv("increment.csv")
    stated = shoal(
        "republish", "increment.csv", "-p", "p.json", "--ledger", "L", "-o", OUT, status=0
    )
    assert "1 release was in the ledger and not in the table: written there, too" in stated.err
    assert "this increment is release 0002 already\n" in stated.err
    assert_in_step()


@pytest.mark.parametrize("follows", [OUT, "sqlite:///other.db?table=t", None])
def test_a_first_release_that_the_disk_refused_binds_the_ledger_to_nothing(monkeypatch, follows):
    with monkeypatch.context() as patched:
        patched.setattr(
            Ledger, "commit", lambda *a, **o: (_ for _ in ()).throw(OSError(28, "full"))
        )
        assert_refused(InputError, "full", 1)
    assert not Path("out.db").exists()
    assert grow(1, output=follows).release == 1
    if follows is None:
        assert grow(2, output=None).release == 2
    else:
        assert_in_step(follows)


def test_somebody_who_adds_a_row_behind_the_check_is_found_before_the_commit(monkeypatch):
    grow(1)
    real = release_tables.putting

    def late(*arguments):
        run("INSERT INTO releases (shoal_row, shoal_release) VALUES (900, 1)")
        return real(*arguments)

    monkeypatch.setattr(release_tables, "putting", late)
    assert_refused(InputError, "somebody else wrote into it meanwhile", 2)
    assert Ledger.at("L").releases() == [1]


def test_what_only_looks_at_a_table_needs_no_right_to_write_it(shoal):
    grow(1)
    Path("out.db").chmod(0o400)
    assert shoal("ledger", "verify", OUT).status == 0
    assert shoal("audit", OUT, "--ledger", "L", "-q").status == 0
    missing = shoal("ledger", "verify", "sqlite:///nowhere.db?table=t")
    assert (missing.status, Path("nowhere.db").exists()) == (2, False)


# What is refused


def test_a_promise_that_fails_leaves_both_as_they_were():
    grow(1, policy("static-2"))
    save("before")
    content = Path("out.db").read_bytes()
    with pytest.raises(PromiseError):
        grow(2, policy("static-2"))
    assert Path("out.db").read_bytes() == content
    assert Ledger.at("L").releases() == [1]
    assert_in_step()


def test_an_older_copy_of_the_database_or_of_the_ledger_is_refused():
    for seed in (1, 2, 3):
        save(f"at{seed - 1}")
        grow(seed)
    save("at3")
    for older in range(3):
        restore(f"at{older}", "out.db")
        for increment in (3, 4):
            assert_refused(LedgerError, "the database is an older copy", increment)
        restore("at3", *PARTS)
        restore(f"at{older}", "L", "L.private")
        said = "is in the table and not in the ledger" if older else "is there already"
        with pytest.raises((LedgerError, InputError), match=said):
            grow(4)
        restore("at3", *PARTS)
    assert_in_step()
    restore("at1", *PARTS)  # both together: only a noted hash shows it
    grow(2)
    assert_in_step()


def test_two_copies_of_a_ledger_do_not_take_turns():
    grow(1)
    for part in ("L", "L.private"):
        shutil.copytree(part, part.replace("L", "M"))
    grow(2)
    assert_refused(LedgerError, "is in the table and not in the ledger", 3, ledger="M")
    grow(3, output=OUT)
    assert_in_step()
    # one that continued elsewhere
    shutil.rmtree("M")
    shutil.rmtree("M.private")
    restore_note = Path("L.private/table.json").read_bytes()
    Path("L.private/table.json").unlink()
    assert_refused(InputError, "is there already", 4)
    Path("L.private/table.json").write_bytes(restore_note)
    grow(4)
    assert_in_step()


CHANGES = {
    "cell": "UPDATE releases SET age = '17' WHERE shoal_row = 5",
    "NULL": "UPDATE releases SET age = NULL WHERE shoal_row = 5",
    "taken": "DELETE FROM releases WHERE shoal_row = 5",
    "added": "INSERT INTO releases (shoal_row, shoal_release) VALUES (99, 9)",
    "before": "INSERT INTO releases (shoal_row, shoal_release) VALUES (-1, 1)",
    "number": "UPDATE releases SET shoal_release = 2 WHERE shoal_row = 5",
    "table": "DROP TABLE releases",
    "column": "ALTER TABLE releases ADD COLUMN more text DEFAULT 'x'",
    "name": "ALTER TABLE releases RENAME COLUMN age TO AGE",
    "less": "ALTER TABLE releases DROP COLUMN age",
    "list": "DROP TABLE shoal_releases",
    "line": "DELETE FROM shoal_releases WHERE release = 2",
    "first": "DELETE FROM shoal_releases WHERE release = 1",
    "certificate": "UPDATE shoal_releases SET certificate = replace(certificate, '4', '5')",
    "rows": "UPDATE shoal_releases SET rows = rows - 1 WHERE release = 2",
    "endless": "UPDATE shoal_releases SET rows = 100000000000 WHERE release = 2",
    "text": "UPDATE shoal_releases SET rows = 'x' WHERE release = 2",
    "kind": "UPDATE shoal_releases SET certificate = json_set(certificate, '$.columns', 5)"
    " WHERE release = 2",
    "since": "UPDATE shoal_releases SET since = 2 WHERE release = 2",
    "more": "INSERT INTO shoal_releases SELECT name, 3, since, rows, certificate, created FROM"
    " shoal_releases WHERE release = 2",
}


def test_what_is_not_as_the_ledger_left_it_is_refused():
    grow_twice()
    save("whole")
    for name, change in CHANGES.items():
        run(change)
        content = Path("out.db").read_bytes()
        for increment in (2, 3):
            with pytest.raises((LedgerError, InputError)) as refused:
                grow(increment)
            assert not {"17", "x"} & set(str(refused.value).split()), name
        found = audit_ledger("L", table=OUT)
        assert (found.holds, bool(found.damage)) == (False, True), name
        assert Path("out.db").read_bytes() == content, name
        restore("whole", "out.db")
    assert Ledger.at("L").releases() == [1, 2]
    grow(3)
    assert_in_step()


@pytest.mark.parametrize(
    "change",
    [
        "INSERT INTO releases SELECT 99, 2, age, height, sex, activity, beat FROM releases"
        " WHERE shoal_row = 5",
        "UPDATE releases SET shoal_release = 2 WHERE shoal_row = 5",
        "UPDATE releases SET shoal_release = 1 WHERE shoal_row = 45",
    ],
    ids=["added", "joined", "left"],
)
def test_a_row_that_bears_another_number_is_read_with_the_release_it_names(change, shoal):
    """As a reader's own SELECT finds it: no certificate may hold over other rows than these."""
    grow_twice()
    one = f"{OUT}&release=2"
    assert shoal("verify", one, "-p", "p.json", "-q").status == 0
    whole = files.read(OUT).sha256
    run(change)
    (shown,) = run("SELECT count(*) FROM releases WHERE shoal_release = 2")
    assert shown == [(files.read(one).frame.height,)]
    assert shoal("verify", one, "-p", "p.json", "-q").status == 1
    if change.startswith("INSERT"):
        assert files.read(OUT).sha256 != whole


def test_a_list_whose_newest_release_begins_nowhere_is_read_without_an_internal_error(shoal):
    grow_twice()
    run("UPDATE shoal_releases SET since = 9 WHERE release = 2")
    assert files.read(OUT).frame.equals(files.read(f"{OUT}&release=2").frame)
    assert shoal("ledger", "verify", OUT).status == 1


def test_a_table_of_somebody_else_is_refused(shoal):
    run("CREATE TABLE releases (a)")
    assert_refused(InputError, "is there already", 1)
    assert not Path("L").exists()
    Path("out.db").unlink()
    grow(1, ledger="M")
    assert_refused(InputError, "is there already", 1)
    grow(1, output="sqlite:///out.db?table=ours")
    assert_refused(LedgerError, "the table holds another one than the ledger", 2)
    grow(2, output="sqlite:///out.db?table=ours")
    assert_in_step("sqlite:///out.db?table=ours")
    for address, said in (
        ("sqlite:///out.db?table=shoal_releases", "where the releases of ledgers are kept"),
        ("sqlite:///out.db?table=shoal_certificates", "where certificates are kept"),
        ("sqlite:///out.db?table=ours&release=1", "the whole table is meant"),
        ("out.csv", "-o names a table in a database"),
        ("sqlite:///K/out.db?table=t", "lies in the ledger"),
        ("sqlite:///K.private/out.db?table=t", "lies in the ledger"),
    ):
        assert_refused(InputError, said, 5, ledger="K", output=address)
        assert not Path("K").exists()
    shoal("publish", "increment.csv", "-p", "p.json", "-o", OUT, "--replace", status=2)


def test_a_release_with_other_columns_is_refused_before_anything_is_written(monkeypatch):
    monkeypatch.setattr("shoal.ledgers.increment.Terms.check_plain_columns", lambda *_: None)
    plain = Policy.from_dict({**POLICY, "other": "plain"})
    place = Path("L").absolute()
    append(place, wearers(N, 1), plain, output=OUT)
    more = wearers(N, 2).with_columns(pl.lit("z").alias("hobby"))
    with pytest.raises(InputError, match="has other columns than the table"):
        append(place, more, plain, output=OUT)
    assert Ledger.at("L").releases() == [1]
    own = wearers(N, 2).with_columns(pl.lit("z").alias("shoal_release"))
    with pytest.raises(InputError, match="is Shoal's own"):
        append(Path("K").absolute(), own, plain, output="sqlite:///k.db?table=k")
    assert not Path("K").exists()
    assert not Path("k.db").exists()
    turned = wearers(N, 3).select(reversed(wearers(1, 1).columns))
    append(place, turned, plain, output=OUT)
    assert_in_step()


TRIGGERS = {
    "cell": "AFTER INSERT ON releases BEGIN UPDATE releases SET age = '*' WHERE shoal_row ="
    " new.shoal_row; END",
    "row": "AFTER INSERT ON releases BEGIN DELETE FROM releases WHERE shoal_row = new.shoal_row;"
    " END",
    "line": "AFTER INSERT ON shoal_releases BEGIN UPDATE shoal_releases SET certificate = '{}'"
    " WHERE release = new.release; END",
}


@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
def test_a_trigger_that_changes_a_release_is_found_before_the_commit(trigger):
    grow(1)
    run(f"CREATE TRIGGER t {trigger}")
    assert_refused(InputError, "remove the trigger or rule", 2)
    assert Ledger.at("L").releases() == [1]
    run("DROP TRIGGER t")
    grow(2)
    assert_in_step()


def test_a_ledger_with_a_table_takes_no_release_without_it(shoal):
    grow(1)
    assert_refused(InputError, "its releases go into a table, too; name it with -o", 2, output=None)
    note = Path("L.private/table.json")
    assert Ledger.at("L").verify() == []
    for damaged in (note.read_text().replace("out.db", "own.db"), "{"):
        note.write_text(damaged)
        assert Ledger.at("L").verify() == ["table.json: was changed"]
    assert_refused(LedgerError, r"the note about its table is damaged|table\.json", 2)
    asked = shoal(
        *("republish", "increment.csv", "-p", "p.json", "--ledger", "K", "--what-if", "-o", OUT)
    )
    assert (asked.status, "--what-if: writes nothing" in asked.err) == (2, True)


def test_a_database_that_is_lost_is_written_anew_once_its_note_is_removed():
    grow_twice()
    Path("out.db").unlink()
    assert_refused(LedgerError, "the database is an older copy", 3)
    Path("L.private/table.json").unlink()
    assert grow(3, output="sqlite:///new.db?table=releases").caught_up == 2
    assert_in_step("sqlite:///new.db?table=releases")


STEPS = st.lists(
    st.sampled_from(["append", "again", "old database", "old ledger", "both"]), max_size=6
)


@pytest.mark.long
@settings(max_examples=examples(6, 60), deadline=None)
@given(STEPS, st.randoms(use_true_random=False))
def test_only_copies_that_belong_together_are_continued(steps, draw):
    """Whatever order things are restored in: what is refused stays as it is."""
    for part in (*PARTS, *Path().glob("at*")):
        path = Path(part)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    database = ledger = newest = 0
    save("at0")
    Path("at0").mkdir(exist_ok=True)
    for seed, step in enumerate(["append", "append", *steps], start=1):
        older = draw.randint(0, newest)
        if step in ("old database", "both"):
            restore(f"at{older}", "out.db")
            database = older
        if step in ("old ledger", "both"):
            restore(f"at{older}", "L", "L.private")
            ledger = older
        if step not in ("append", "again"):
            continue
        if database == ledger:
            grow(seed)
            newest += 1
            database = ledger = newest
            save(f"at{newest}")
            assert_in_step()
        else:
            with pytest.raises((LedgerError, InputError)):
                grow(seed)
