"""Tables in SQLite in and out: audited in the transaction, there with their proof or not at all."""

import hashlib
import json
import sqlite3
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shoal as library
from database_cases import CELLS, HOSTILE, PROOF, write
from sample_policies import content_of
from shoal.connectors import files
from shoal.connectors.database import tables
from shoal.connectors.database.tables import opened, rows_sha256
from shoal.connectors.linked_tables import TablePlaces, table_places
from shoal.connectors.location import Location, parse_address, without_password
from shoal.connectors.outputs import certificate_beside, check_not_read
from shoal.data import regular_files
from shoal.errors import InputError, PartyError, PromiseError

OUT = "sqlite:///out.db?table=released"

pytestmark = pytest.mark.usefixtures("folder")


def publish(shoal, *more: str, data: str = "patients.csv", output: str = OUT) -> int:
    return shoal("publish", data, "-p", "policy.yaml", "-o", output, "-q", *more).status


def names_in(path: str = "out.db") -> set[str]:
    with closing(sqlite3.connect(path)) as connection:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def run(*statements: str, path: str = "in.db") -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        for statement in statements:
            connection.execute(statement)


def naive_sha256(frame: pl.DataFrame) -> str:
    def line(cells) -> str:
        texts = ("-," if c is None else f"{len(c.encode())}:{c}," for c in cells)
        return "".join(texts) + "\n"

    whole = "".join(map(line, [frame.columns, *frame.rows()]))
    return hashlib.sha256(whole.encode()).hexdigest()


# What is read is what was written


@pytest.mark.parametrize("table", ["t", HOSTILE, "a.b", "select", "%41 +&=#"])
def test_every_cell_comes_back_as_it_went_in_under_any_name(table):
    quoted = table.replace("%", "%25").replace("&", "%26").replace("=", "%3D")
    address = f"sqlite:///a b.db?table={quoted}"
    digest = write(CELLS, address)
    read = files.read(address)
    assert read.frame.equals(CELLS)
    assert read.sha256 == digest == naive_sha256(CELLS)
    assert {table, "shoal_certificates"} <= names_in("a b.db")


@given(st.lists(st.tuples(*[st.none() | st.text(max_size=3)] * 2), max_size=4))
def test_the_hash_is_that_of_the_lines_and_no_two_tables_share_one(rows):
    frame = pl.DataFrame(rows, schema={"a": pl.String, "b:": pl.String}, orient="row")
    assert rows_sha256(frame) == naive_sha256(frame)


def test_cells_are_text_but_for_declared_numbers_and_rows_stand_in_the_order_of_the_key(tmp_path):
    run(
        "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b REAL)",
        "INSERT INTO t VALUES (10, '007', 0.1), (9, 7, 1e300), (2, NULL, 71.5)",
    )
    frame = files.read("sqlite:///in.db?table=t").frame
    assert frame.rows() == [(2, None, "71.5"), (9, "7", "1e+300"), (10, "007", "0.1")]
    assert files.read(f"sqlite:///{tmp_path}/in.db?table=t").frame.equals(frame)


def test_one_number_is_one_text_in_a_column_of_whole_numbers_and_others(monkeypatch):
    monkeypatch.setattr("shoal.connectors.database.sqlite.BATCH", 1)
    run(
        "CREATE TABLE t (k INTEGER PRIMARY KEY, a, b REAL)",
        "INSERT INTO t (a, b) VALUES (7, 7), (7.0, 8), (-7.0, 9.5), (7.5, 1e300), ('x.0', NULL)",
    )
    frame = files.read("sqlite:///in.db?table=t").frame
    assert frame["a"].to_list() == ["7", "7", "-7", "7.5", "x.0"]
    assert frame["b"].to_list() == ["7.0", "8.0", "9.5", "1e+300", None]


@pytest.mark.parametrize(
    ("made", "address", "stated"),
    [
        ("CREATE TABLE t (a, b)", "?table=t&order=a", "2 rows agree .* or say order=\\*"),
        ("CREATE TABLE t (a)", "?table=t&order=b", "names column 'b'"),
        ("CREATE TABLE t (a)", "?table=u", "there is no such table"),
        ("CREATE TABLE t (a)", "?table=s.t", "&schema=NAME"),
        ("CREATE TABLE t (a)", "?table=t&schema=s", "'table', 'order' and 'release' alone"),
        ("CREATE TABLE t (a)", "", "no table is named"),
        ("CREATE TABLE t (a, shoal_row)", "?table=t", "does not count from 1"),
    ],
)
def test_a_table_that_can_not_be_read_is_refused_in_one_line(made, address, stated):
    run(made, "INSERT INTO t (a) VALUES ('sécret'), ('sécret')")
    with pytest.raises(InputError, match=stated) as refused:
        files.read(f"sqlite:///in.db{address}")
    assert "sécret" not in str(refused.value)


@pytest.mark.parametrize("value", ["x'00ff'", "CAST(x'736563726574ff' AS TEXT)"])
def test_what_is_no_text_is_refused_without_being_shown(value):
    run("CREATE TABLE t (id INTEGER PRIMARY KEY, a)", f"INSERT INTO t VALUES (1, {value})")
    with pytest.raises(InputError) as refused:
        files.read("sqlite:///in.db?table=t")
    assert "secret" not in str(refused.value)
    assert "bytes" in str(refused.value) or "UTF-8" in str(refused.value)


def read_all(found: TablePlaces) -> list[files.SourceFile]:
    return [files.read(place.path) for place in (*found.places.values(), *found.views.values())]


@pytest.mark.parametrize("end", ["TABLE", "one", "(two", "three", "SELECT two"])
def test_a_schema_that_is_no_utf_8_is_refused_wherever_its_odd_byte_is(end):
    run("CREATE TABLE one (two)", "CREATE VIEW three AS SELECT two FROM one")
    run("INSERT INTO one VALUES (2)")
    made, quoted = Path("in.db").read_bytes(), end.encode()
    Path("in.db").write_bytes(made.replace(quoted, quoted[:-1] + b"\xff"))
    with pytest.raises(InputError, match=r"in\.db.*UTF-8"):
        read_all(table_places("in.db"))


def test_files_that_are_not_there_or_no_database_are_refused():
    with pytest.raises(InputError, match="no such file"):
        files.read("sqlite:///nowhere.db?table=t")
    assert not Path("nowhere.db").exists()
    Path("text.db").write_text("a,b\n" * 400)
    with pytest.raises(InputError, match="is not an SQLite file"):
        files.read("sqlite:///text.db?table=t")
    with pytest.raises(InputError, match="names no file"):
        files.read("sqlite://?table=t")
    with pytest.raises(InputError, match="can't be made"):
        write(CELLS, "sqlite:///nowhere/out.db?table=t")


@pytest.mark.parametrize("order", ["", "&order=rowid"])
def test_a_table_without_a_key_is_read_in_the_order_of_its_rows(order):
    run("CREATE TABLE t (a)", "INSERT INTO t VALUES ('b'), ('a'), ('b')")
    assert files.read(f"sqlite:///in.db?table=t{order}").frame["a"].to_list() == ["b", "a", "b"]


@pytest.mark.parametrize("address", ["?table=t&order=*", "?table=v"])
def test_a_view_and_who_asks_for_it_is_read_in_the_order_of_all_columns(address):
    run(
        "CREATE TABLE t (a, b)",
        "CREATE VIEW v AS SELECT * FROM t",
        "INSERT INTO t VALUES (2, 'x'), (1, 'z'), (2, 'x'), (1, 'y')",
    )
    rows = files.read(f"sqlite:///in.db{address}").frame.rows()
    assert rows == [("1", "y"), ("1", "z"), ("2", "x"), ("2", "x")]


def test_a_column_that_is_dropped_may_hold_bytes():
    run(
        "CREATE TABLE t (age INTEGER, photo BLOB)",
        *(f"INSERT INTO t VALUES ({30 + i % 2}, x'00ff')" for i in range(8)),
    )
    policy = library.Policy.from_dict(
        content_of({"age": {"role": "quasi", "type": "number"}, "photo": "drop"}, 4)
    )
    assert library.publish_file("sqlite:///in.db?table=t", policy, "out.csv").holds


# Publishing


def test_numbers_days_and_ends_of_intervals_are_columns_of_such_types():
    cells = {"age": [*range(20, 40)], "day": ["2024-03-01"] * 20, "sex": ["f", "m"] * 10}
    frame = pl.DataFrame(cells | {"sum": [f"{i % 3}.50" for i in range(20)]})
    frame.write_csv("in.csv")
    number = {"type": "number"}
    attributes = {
        "age": {"role": "quasi", **number},
        "day": {"role": "quasi", "hierarchy": {"dates": ["day", "month"]}},
        "sum": {"role": "plain", **number},
        "sex": {"role": "plain"},
    }
    policy = content_of(attributes, 5, write={"numbers": ["lo", "hi"]})
    assert library.publish_file("in.csv", policy, OUT).holds
    with closing(sqlite3.connect("out.db")) as connection:
        about = connection.execute("SELECT name, type FROM pragma_table_info('released')")
        types = dict(about.fetchall())
        total, low = connection.execute("SELECT sum(sum), min(age_lo) FROM released").fetchone()
    assert types == {
        "shoal_row": "INTEGER", "age": "TEXT", "age_lo": "bigint", "age_hi": "bigint",
        "day": "date", "day_lo": "date", "day_hi": "date", "sum": "double precision",
        "sex": "TEXT",
    }  # fmt: skip
    assert (total, low) == (sum(i % 3 + 0.5 for i in range(20)), 20)
    assert all(check.ok is not False for check in library.verify(OUT, policy=policy))
    assert library.audit_file(OUT, policy, "in.csv").holds


def test_an_output_that_is_there_is_refused_before_anything_is_read():
    write(CELLS, OUT)
    with pytest.raises(InputError, match="is there already"):
        library.publish_file("missing.csv", content_of({"a": "quasi"}, 5), OUT)


def test_a_release_goes_from_table_to_table_and_says_the_same_as_from_file_to_file(
    workplace, shoal, sample_table
):
    connection = sqlite3.connect("in.db")
    with closing(connection), connection:
        names = ", ".join(f'"{name}"' for name in sample_table.columns)
        connection.execute(f"CREATE TABLE people (id INTEGER PRIMARY KEY, {names})")
        places = ", ".join("?" * sample_table.width)
        connection.executemany(
            f"INSERT INTO people ({names}) VALUES ({places})", sample_table.rows()
        )
    policy = Path("policy.yaml").read_text()
    Path("policy.yaml").write_text(f"{policy}\nother: drop\n")
    people = "sqlite:///in.db?table=people"
    assert publish(shoal, data=people) == publish(shoal, output="out.csv") == 0
    assert publish(shoal, data=people, output="mixed.csv") == 0
    assert Path("mixed.csv").read_bytes() == Path("out.csv").read_bytes()
    frame = files.read(OUT).frame.cast(pl.String)
    assert frame.fill_null("").equals(pl.read_csv("out.csv", infer_schema=False).fill_null(""))
    proof = json.loads(certificate_beside(OUT) or b"")
    assert proof["output"]["sha256"] == naive_sha256(frame)
    assert proof["output"]["format"] == "sqlite"
    beside = json.loads(Path("out.csv.certificate.json").read_text())
    for key in ("promises", "utility", "risk", "records", "classes"):
        assert proof[key] == beside[key], key
    whole = ["-p", "policy.yaml", "--original", people]
    assert shoal("audit", OUT, *whole, "-q").status == 0
    assert "FAIL" not in shoal("verify", OUT, *whole, status=0).out
    assert library.read_release(OUT, numbers="mid").data.height == 600


def test_a_change_in_the_database_is_found(workplace, shoal):
    assert publish(shoal) == 0
    run("UPDATE released SET sex = 'F' WHERE shoal_row = 3", path="out.db")
    assert "FAIL file" in shoal("verify", OUT).out
    with pytest.raises(InputError, match="is not the file"):
        library.read_release(OUT)
    run("DELETE FROM released WHERE shoal_row = 3", path="out.db")
    assert shoal("audit", OUT, "-p", "policy.yaml").status == 2
    changed = shoal("verify", OUT, "-p", "policy.yaml", status=1).out
    assert "FAIL file" in changed
    assert "FAIL output: can't be read as the certificate says; " in changed


def test_what_the_database_holds_is_audited_not_what_was_sent(workplace, shoal, monkeypatch):
    sent = tables.TableDraft.write

    def altered(draft: tables.TableDraft, *given) -> None:
        sent(draft, *given)
        draft.table.session.execute(f"UPDATE {draft.unnamed.quoted} SET age = shoal_row")

    monkeypatch.setattr(tables.TableDraft, "write", altered)
    assert publish(shoal) == PromiseError.exit_status
    assert not Path("out.db").exists()  # made by this run, and nothing was committed
    run("CREATE TABLE mine (a)", path="out.db")
    assert publish(shoal) == PromiseError.exit_status
    assert names_in() == {"mine"}


@pytest.mark.parametrize(
    "changed",
    [
        "UPDATE released SET a = 'changed' WHERE shoal_row = 1",
        "DELETE FROM released WHERE shoal_row = 6",
        "UPDATE shoal_certificates SET certificate = '{}'",
    ],
)
def test_what_a_trigger_changes_after_the_audit_is_not_committed(changed):
    write(CELLS, "sqlite:///out.db?table=first")
    trigger = f"CREATE TRIGGER later AFTER INSERT ON shoal_certificates BEGIN {changed}; END"
    run(trigger, path="out.db")
    with pytest.raises(InputError, match=r"changed|added or taken away"):
        write(CELLS, OUT)
    assert "released" not in names_in()


@pytest.mark.parametrize(
    ("made", "rows", "more", "expected"),
    [
        # a bare name in ORDER BY is that of a result, not of the column
        ('"1" INTEGER PRIMARY KEY, b', [(1, "z"), (2, "a")], "", ["z", "a"]),
        ("k COLLATE NOCASE, b", [("b", 1), ("B", 2)], "&order=k", ["2", "1"]),
        ("k COLLATE NOCASE, b", [("B", 2), ("b", 1)], "&order=k", ["2", "1"]),
    ],
)
def test_rows_have_one_order_whatever_the_table_takes_for_equal(made, rows, more, expected):
    run(f"CREATE TABLE t ({made})", *[f"INSERT INTO t VALUES {row}" for row in rows])
    assert files.read(f"sqlite:///in.db?table=t{more}").frame["b"].to_list() == expected


def test_a_primary_key_of_several_nulls_orders_nothing():
    run("CREATE TABLE t (k TEXT PRIMARY KEY, b)", "INSERT INTO t VALUES (NULL, 1), (NULL, 2)")
    with pytest.raises(InputError, match="2 rows agree in the primary key"):
        files.read("sqlite:///in.db?table=t")


def test_others_see_the_old_release_until_the_commit(workplace, shoal):
    assert publish(shoal) == 0
    before = files.read(OUT).frame
    with tables.table_drafts([Location(OUT)], replace=True) as (draft,):
        draft.write(before.head(3))
        draft.read()
        assert files.read(OUT).frame.equals(before)
        assert names_in() == {"released", "shoal_certificates", AUTO_INDEX}
        draft.certify(PROOF)
        assert files.read(OUT).frame.equals(before)
    assert files.read(OUT).frame.equals(before.head(3))


AUTO_INDEX = "sqlite_autoindex_shoal_certificates_1"


def test_only_a_release_gives_way_and_only_when_asked(workplace, shoal):
    run("CREATE TABLE released (a, shoal_row)", "INSERT INTO released VALUES (1, 1)", path="out.db")
    for more in ([], ["--replace"]):
        assert publish(shoal, *more) == 2
    run("DROP TABLE released", path="out.db")
    assert publish(shoal) == 0
    again = ("publish", "patients.csv", "-p", "policy.yaml", "-o", OUT)
    assert "--replace" in shoal(*again, status=2).err
    run("CREATE VIEW seen AS SELECT * FROM released", path="out.db")
    assert publish(shoal, "--replace", "--k", "20") == 0
    assert library.read_release(OUT).certificate["promises"][0]["asked"] == 20
    assert publish(shoal, output="sqlite:///out.db?table=shoal_certificates") == 2
    assert publish(shoal, output="sqlite:///out.db?table=sqlite_x") == 2
    assert publish(shoal, "--replace", data=OUT) == 2


def test_a_release_that_somebody_changed_does_not_give_way():
    write(CELLS, OUT)
    run("ALTER TABLE released ADD COLUMN note", path="out.db")
    with pytest.raises(InputError, match="something other than the release that was certified"):
        write(CELLS, OUT, replace=True)
    assert files.read(OUT).frame.columns[-1] == "note"


def test_views_and_triggers_of_others_call_nothing_unsafe(tmp_path):
    path = tmp_path / "d.db"
    sqlite3.connect(path).close()
    with opened(parse_address(f"sqlite:///{path}?table=t")) as table:
        assert table.session.connection.execute("PRAGMA trusted_schema").fetchone() == (0,)


def test_names_that_sqlite_takes_for_one_are_refused():
    for names in (["a", "A"], ["shoal_row"], [""]):
        with pytest.raises(InputError, match="name '"):
            write(pl.DataFrame({name: ["x"] for name in names}), OUT)
        assert not Path("out.db").exists()


def test_a_writer_waits_for_another_and_then_gives_up(monkeypatch):
    monkeypatch.setattr("shoal.connectors.database.sqlite.PATIENCE", 0.05)
    write(CELLS, OUT)
    with closing(sqlite3.connect("out.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(PartyError, match="somebody else is writing"):
            write(CELLS, OUT, replace=True)
    assert files.read(OUT).frame.equals(CELLS)


def test_what_belongs_to_files_is_refused_for_tables(workplace, shoal):
    assert "a table in a database" in shoal("dossier", OUT, "--metadata", "croissant", status=2).err
    assert shoal("sample", "patients", "-o", OUT).status == 2
    assert shoal("stream", "patients.csv", "-p", "policy.yaml", "-o", OUT).status == 2
    assert shoal("stream", OUT, "-p", "policy.yaml", "-o", "out.csv").status == 2
    assert not Path("out.db").exists()


# Addresses


@pytest.mark.parametrize(
    ("address", "bare"),
    [
        ("postgresql://u:geheim@h/d?table=t", "postgresql://u@h/d?table=t"),
        ("postgres://u:ge:h@im@h:5432/d?table=t", "postgres://u@h:5432/d?table=t"),
        ("postgresql://h/d?password=geheim&table=t", "postgresql://h/d?table=t"),
        ("postgresql://h/d?pass%77ord=geheim&table=t", "postgresql://h/d?table=t"),
        ("postgresql://h/d?oauth_client_secret=geheim&table=t", "postgresql://h/d?table=t"),
        ("-o=postgresql://u:geheim@h/d?table=t", "-o=postgresql://u@h/d?table=t"),
        ("-opostgresql://u:geheim@h/d?table=t", "-opostgresql://u@h/d?table=t"),
        ("postgresql://u@h,[::1]:7/d?table=a@b", "postgresql://u@h,[::1]:7/d?table=a@b"),
        ("sqlite:///a:b@c.db?table=t", "sqlite:///a:b@c.db?table=t"),
        ("out.csv", "out.csv"),
    ],
)
def test_a_password_is_put_aside_before_anybody_can_show_it(address, bare):
    assert without_password(address) == bare


def test_the_password_reaches_the_client_library_alone():
    bare = without_password("postgresql://u:geheim@h/d?table=t&schema=s&sslmode=require")
    address = parse_address(bare)
    assert address.location == "postgresql://u:geheim@h/d?sslmode=require"
    assert "geheim" not in repr(address) + address.shown
    assert (address.schema, address.table) == ("s", "t")
    for text in ("postgresql://u:ge/heim@h/d?table=t", "postgresql://u:geheim?table=t"):
        with pytest.raises(InputError) as refused:
            parse_address(text)
        assert "heim" not in str(refused.value)
    stated = InputError("file 'postgresql://u:geheim@h/d?table=t&password=geheim': x")
    assert str(stated) == "file 'postgresql://u@h/d?table=t&password=***': x"


def test_a_table_is_not_written_over_the_one_that_is_read():
    same = "sqlite:///x.db?table=a&order=b", "sqlite:///x.db?table=a"
    for output in (same[1], "sqlite:///./x.db?table=A"):
        with pytest.raises(InputError, match="is the input"):
            check_not_read(output, same[0], [])
    check_not_read("sqlite:///x.db?table=b", same[0], [])


ENDLESS = "WITH RECURSIVE g(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM g) SELECT"
SLOW = f"{ENDLESS} count(*) FROM (SELECT n FROM g LIMIT 99999999999)"


@pytest.mark.parametrize(
    "made",
    [
        f"VIEW t AS {ENDLESS} 'p' || n AS id FROM g",
        f"VIEW t AS {ENDLESS} 'p' || n AS shoal_row FROM g",
        f"VIEW t AS SELECT ({SLOW}) AS id",
        "VIEW t AS SELECT hex(zeroblob(400000000)) AS id",
        "TABLE t (id TEXT PRIMARY KEY, x AS (hex(zeroblob(2000000))))",
    ],
)
def test_what_a_small_file_computes_without_end_is_refused(monkeypatch, made):
    monkeypatch.setattr(regular_files, "FREE", 1 << 20)
    monkeypatch.setattr(regular_files, "RATIO", 1)
    run(f"CREATE {made}")
    if made.startswith("TABLE"):
        run("INSERT INTO t VALUES ('p')")
    with pytest.raises(InputError, match="more than"):
        files.read("sqlite:///in.db?table=t&order=id")
