"""Tables in a real PostgreSQL server: audited inside the transaction, committed or not there."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest

import linked_cases
import shoal as library
from database_cases import CELLS, HOSTILE, PROOF, write
from postgres_server import PASSWORD, USER, lose_a_commit
from shoal.connectors import files
from shoal.connectors.database import tables
from shoal.connectors.database.tables import opened
from shoal.connectors.dialect import Reading
from shoal.connectors.linked_tables import ForeignKey, table_places
from shoal.connectors.location import Location, parse_address
from shoal.connectors.outputs import certificate_beside
from shoal.errors import InputError, PartyError
from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.problem import LinkedProblem


def publish(shoal, data: str, output: str, *more: str) -> int:
    return shoal("publish", data, "-p", "policy.yaml", "-o", output, "-q", *more).status


@pytest.mark.parametrize("table", ["t", HOSTILE, "a.b", "select", "x" * 63])
def test_every_cell_comes_back_as_it_went_in_under_any_name(pg, table):
    digest = write(CELLS, pg.url(table))
    read = files.read(pg.url(table))
    assert read.frame.equals(CELLS)
    assert read.sha256 == digest
    assert pg.tables() == {table, "shoal_certificates"}


def test_the_hash_is_that_of_sqlite(pg, tmp_path):
    assert write(CELLS, pg.url("t")) == write(CELLS, f"sqlite:///{tmp_path}/t.db?table=t")


def test_a_schema_is_named_and_its_certificates_stand_in_it(pg):
    pg.run(f'CREATE SCHEMA "{HOSTILE.replace(chr(34), chr(34) * 2)}"')
    address = pg.url("t", more=f"&schema={quote(HOSTILE)}")
    write(CELLS, address)
    assert files.read(address).frame.equals(CELLS)
    assert certificate_beside(address) == PROOF.encode()
    assert pg.tables() == set()
    with pytest.raises(InputError, match="no such schema"):
        write(CELLS, pg.url("t", more="&schema=nowhere"))


def test_values_are_read_whatever_the_session_usually_shows(pg, monkeypatch):
    pg.run(
        "CREATE TYPE mood AS ENUM ('sad', 'glad')",
        "CREATE TABLE t (id int PRIMARY KEY, n numeric, f float8, d date, z timestamptz, b bool,"
        " m mood, c char(4), u uuid, e text)",
        "INSERT INTO t VALUES (10, 1.50, 0.1, '2024-02-01', '2024-02-01 12:00+00', true, 'glad',"
        " 'ab', '00000000-0000-0000-0000-000000000001', 'ü')",
        "INSERT INTO t (id) VALUES (9)",
    )
    monkeypatch.setenv("PGTZ", "Asia/Tokyo")
    monkeypatch.setenv("PGDATESTYLE", "German")
    monkeypatch.setenv("PGCLIENTENCODING", "LATIN1")
    frame = files.read(pg.url("t")).frame
    uuid = "00000000-0000-0000-0000-000000000001"
    assert frame.rows() == [
        (9, *[None] * 9),
        (
            10,
            "1.5",
            "0.1",
            date(2024, 2, 1),
            "2024-02-01 12:00:00+00",
            "true",
            "glad",
            "ab",
            uuid,
            "ü",
        ),
    ]


@pytest.mark.parametrize("kind", ["numeric", "amount", "float8", "float4"])
def test_one_number_has_one_text(pg, kind):
    pg.run(
        "CREATE DOMAIN amount AS numeric",
        f"CREATE TABLE t (id int PRIMARY KEY, n {kind}, c numeric(6, 2))",
        "INSERT INTO t VALUES (1, '1.10', 1.1), (2, '1.1', 1.10), (3, '100', 100), (4, '1e2', 1e2),"
        " (5, '-0', 0), (6, '0', 0.0), (7, 'NaN', NULL), (8, 'Infinity', NULL), (9, NULL, NULL)",
    )
    source = files.read(pg.url("t"))
    frame = source.frame
    assert [one.text for one in source.remarks] == ["column 'n': 1 NaN counts as missing"]
    numbers = ["1.1", "1.1", "100", "100", "0", "0", None, "Infinity", None]
    assert frame["n"].to_list() == numbers
    assert frame["c"].drop_nulls().to_list() == ["1.10", "1.10", "100.00", "100.00", "0.00", "0.00"]


def test_no_number_is_no_value_in_numbers_of_any_form_and_domain(pg):
    pg.run(
        "CREATE DOMAIN one AS numeric",
        "CREATE DOMAIN two AS one",
        "CREATE DOMAIN three AS float8",
        "CREATE DOMAIN four AS three",
        "CREATE TABLE t (id int PRIMARY KEY, a numeric(8,2), b two, c four)",
        "INSERT INTO t VALUES (1, 'NaN', 'NaN', 'NaN'), (2, 1.1, 1.10, '-0'), (3, 1.10, 1.1, 0)",
    )
    assert files.read(pg.url("t")).frame.drop("id").rows() == [
        (None, None, None),
        ("1.10", "1.1", "0"),
        ("1.10", "1.1", "0"),
    ]


@pytest.mark.parametrize(
    ("made", "more", "shown"),
    [
        (
            "CREATE TABLE t (a int[], b json)",
            "",
            "'a' is of type integer[], column 'b' is of type json",
        ),
        (
            "CREATE VIEW t AS SELECT 1 AS a, 2 AS b UNION ALL SELECT 1, 3",
            "&order=a",
            "2 rows agree",
        ),
        (
            "CREATE VIEW t AS SELECT 0::float8 AS a, 2 AS b UNION ALL SELECT '-0', 3",
            "&order=a",
            "2 rows agree",
        ),
        ("CREATE TABLE t (a text)", "&order=b", "names column 'b'"),
        ("CREATE TABLE t (a text)", "&order=rowid", "or say order=* for all of them"),
        ("CREATE TABLE t (a text)", "&schema=nope", "there is no such schema; check its name"),
        ("CREATE TABLE u (a text)", "", "there is no such table"),
        ("CREATE TABLE t (a text)", "&nonsense=1", "option 'nonsense' that is not known"),
    ],
)
def test_a_table_that_can_not_be_read_is_refused_in_one_line(pg, made, more, shown):
    pg.run(made)
    with pytest.raises(InputError) as refused:
        files.read(pg.url("t", more=more))
    assert shown in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize("order", ["", "&order=*"])
def test_a_table_without_a_key_and_a_dropped_column_of_any_type_are_read(pg, order):
    pg.run(
        "CREATE TABLE t (a text, b json, c int[], d bytea)",
        "INSERT INTO t VALUES ('y', '{}', '{1}', 'x'), ('x', '[]', NULL, 'z'),"
        " ('y', '{}', '{1}', 'x')",
    )
    reading = Reading(dropped=frozenset("bcd"))
    assert files.read(pg.url("t", more=order), reading=reading).frame["a"].to_list() == [*"xyy"]


def test_a_profile_reads_no_column_that_its_policy_drops(pg, shoal, tmp_path):
    pg.run("CREATE TABLE t (a text, b json)", "INSERT INTO t VALUES ('x', '{}'), ('x', '[]')")
    table, asked = pg.url("t"), tmp_path / "p.yaml"
    refused = shoal("policy", "init", table)
    assert "column 'b' is of type json; give plain values, such as in a view, or a" in refused.err
    asked.write_text(
        "version: 1\nattributes: {a: {role: quasi}}\nother: drop\n"
        "promises: [{model: k-anonymity, k: 2}]\n"
    )
    assert shoal("profile", table, "-p", asked).status == 0


def test_a_part_of_a_table_is_never_taken_for_the_whole_and_every_way_out_works(pg):
    def refused() -> list[str]:
        """The tables that the user may not read as a whole."""
        found = []
        for table in "tv":
            try:
                files.read(pg.url(table, user=f"{USER}:{quote(PASSWORD, safe='')}"))
            except InputError as error:
                ways = "as the table's owner or as a role with BYPASSRLS"
                found += [table] if "row-level" in str(error) and ways in str(error) else ["else"]
        return found

    pg.run(
        "CREATE TABLE t (id int PRIMARY KEY)",
        "INSERT INTO t VALUES (1), (2)",
        "ALTER TABLE t ENABLE ROW LEVEL SECURITY",
        "CREATE POLICY first ON t USING (id = 1)",
        "CREATE VIEW v AS SELECT * FROM t",
        f"GRANT SELECT ON t, v TO {USER}",
    )
    assert refused() == ["t"], "the view's owner, a superuser, counts"
    pg.run(f"ALTER ROLE {USER} BYPASSRLS", f"ALTER VIEW v OWNER TO {USER}")
    assert refused() == []
    pg.run(f"ALTER ROLE {USER} NOBYPASSRLS")
    assert refused() == ["t", "v"]
    pg.run(f"ALTER TABLE t OWNER TO {USER}")
    assert refused() == []
    pg.run("ALTER TABLE t FORCE ROW LEVEL SECURITY")
    assert refused() == ["t", "v"]


@pytest.mark.parametrize("options", ["", "-c lock_timeout=100"], ids=["usual", "the user's own"])
def test_a_table_that_somebody_locks_is_not_waited_for_without_end(pg, monkeypatch, options):
    monkeypatch.setenv("PGOPTIONS", options)
    pg.run("CREATE TABLE t AS SELECT 1 AS id")
    with opened(parse_address(pg.url("t")), writing=True) as holder:
        holder.session.execute("LOCK TABLE public.t IN ACCESS EXCLUSIVE MODE")
        started = time.monotonic()
        with pytest.raises(PartyError, match=r"holds a lock on it; .* by PGOPTIONS="):
            files.read(pg.url("t"))
        assert time.monotonic() - started < (4 if options else 60)


def test_a_release_goes_from_table_to_table_and_says_the_same_as_from_file_to_file(
    pg, workplace, shoal, sample_table
):
    Path("policy.yaml").write_text(Path("policy.yaml").read_text() + "\nother: drop\n")
    names = ", ".join(f'"{name}" text' for name in sample_table.columns)
    pg.run(f"CREATE TABLE people (id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {names})")
    with opened(parse_address(pg.url("people")), writing=True) as table:
        table.session.insert(table, sample_table.select(pl.all().cast(pl.String)))
        table.session.commit()
    people, out = pg.url("people"), pg.url("released")
    assert publish(shoal, people, out) == publish(shoal, "patients.csv", "out.csv") == 0
    assert publish(shoal, people, "mixed.csv") == publish(shoal, "patients.csv", pg.url("b")) == 0
    assert Path("mixed.csv").read_bytes() == Path("out.csv").read_bytes()
    frame = files.read(out).frame
    assert frame.equals(files.read(pg.url("b")).frame)
    of_file = pl.read_csv("out.csv", infer_schema=False).fill_null("")
    assert frame.cast(pl.String).fill_null("").equals(of_file)
    whole = ["-p", "policy.yaml", "--original", people]
    assert shoal("audit", out, *whole, "-q").status == 0
    verified = shoal("verify", out, *whole)
    assert verified.status == 0
    assert "FAIL" not in verified.out
    assert library.read_release(out, numbers="mid").data.height == 600
    pg.run("UPDATE released SET sex = 'F' WHERE shoal_row = 3")
    assert "FAIL file" in shoal("verify", out).out


def test_what_the_database_holds_is_audited_and_a_broken_promise_is_rolled_back(
    pg, workplace, shoal, monkeypatch
):
    sent = tables.TableDraft.write

    def altered(draft: tables.TableDraft, *given) -> None:
        sent(draft, *given)
        draft.table.session.execute(f"UPDATE {draft.unnamed.quoted} SET age = shoal_row::text")

    monkeypatch.setattr(tables.TableDraft, "write", altered)
    assert publish(shoal, "patients.csv", pg.url("released")) == 1
    assert pg.tables() == set()


@pytest.mark.parametrize("when", ["", "DEFERRABLE INITIALLY DEFERRED"])
def test_what_a_trigger_changes_after_the_audit_is_not_committed(pg, when):
    write(CELLS, pg.url("first"))
    pg.run(
        "CREATE FUNCTION later() RETURNS trigger LANGUAGE plpgsql AS"
        " 'BEGIN UPDATE released SET a = 1 WHERE shoal_row = 1; RETURN NULL; END'",
        "CREATE CONSTRAINT TRIGGER later AFTER INSERT ON shoal_certificates"
        f" {when} FOR EACH ROW EXECUTE FUNCTION later()",
    )
    with pytest.raises(InputError, match="changed the release"):
        write(CELLS, pg.url("released"))
    assert "released" not in pg.tables()


def test_types_and_operators_of_others_stand_behind_the_servers(pg):
    pg.run(
        "CREATE SCHEMA odd",
        "CREATE DOMAIN odd.text AS varchar(1)",
        "CREATE FUNCTION odd.never(pg_catalog.text, pg_catalog.text) RETURNS boolean"
        " LANGUAGE sql AS 'SELECT false'",
        "CREATE OPERATOR odd.= (LEFTARG = pg_catalog.text, RIGHTARG = pg_catalog.text,"
        " FUNCTION = odd.never)",
        "ALTER DATABASE postgres SET search_path = public, odd, pg_catalog",
    )
    try:
        digest = write(CELLS, pg.url("t"))
        assert files.read(pg.url("t")).frame.equals(CELLS)
        assert files.read(pg.url("t", more="&schema=public")).sha256 == digest
        assert certificate_beside(pg.url("t")) == PROOF.encode()
    finally:
        pg.run("ALTER DATABASE postgres RESET search_path", "DROP SCHEMA odd CASCADE")


@pytest.mark.parametrize(
    ("made", "more", "expected"),
    [("(\"1\" int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'z'), (2, 'a')", "", ["z", "a"])],
)
def test_rows_have_one_order_whatever_the_server_takes_for_equal(pg, made, more, expected):
    pg.run(*f"CREATE TABLE t {made}".split("; "))
    assert files.read(pg.url("t", more=more)).frame["b"].to_list() == expected


def test_a_primary_key_that_heirs_repeat_orders_nothing(pg):
    pg.run(
        "CREATE TABLE t (k int PRIMARY KEY, b text)",
        "CREATE TABLE heir () INHERITS (t)",
        "INSERT INTO t VALUES (1, 'a')",
        "INSERT INTO heir VALUES (1, 'b')",
    )
    with pytest.raises(InputError, match="2 rows agree in the primary key"):
        files.read(pg.url("t"))


def test_others_see_the_old_release_until_the_commit(pg):
    write(CELLS, pg.url("t"))
    with tables.table_drafts([Location(pg.url("t"))], replace=True) as (draft,):
        draft.write(CELLS.head(2))
        draft.read()
        assert pg.tables() == {"t", "shoal_certificates"}
        assert files.read(pg.url("t")).frame.equals(CELLS)
        draft.certify(PROOF)
    assert files.read(pg.url("t")).frame.equals(CELLS.head(2))


def test_only_a_release_gives_way_and_only_when_asked(pg):
    pg.run("CREATE TABLE mine (shoal_row int)")
    for replace in (False, True):
        with pytest.raises(InputError, match="has not published"):
            write(CELLS, pg.url("mine"), replace)
    write(CELLS, pg.url("t"))
    with pytest.raises(InputError, match="replace=True"):
        write(CELLS, pg.url("t"))
    pg.run("CREATE VIEW seen AS SELECT * FROM t")
    with pytest.raises(InputError, match="such as views, depend"):
        write(CELLS, pg.url("t"), replace=True)
    assert files.read(pg.url("t")).frame.equals(CELLS)


@pytest.mark.parametrize("options", ["", "-c lock_timeout=100"], ids=["usual", "the user's own"])
def test_a_release_that_somebody_reads_does_not_block_others_for_long(pg, monkeypatch, options):
    monkeypatch.setenv("PGOPTIONS", options)
    write(CELLS, pg.url("t"))
    with opened(parse_address(pg.url("t"))) as reader:
        reader.session.query("SELECT a FROM public.t")  # holds the table until the end of the block
        started = time.monotonic()
        with pytest.raises(PartyError, match="somebody else holds a lock on it; try again"):
            write(CELLS.head(2), pg.url("t"), replace=True)
        waited = time.monotonic() - started
        assert waited < 4 if options else 5 <= waited < 60
        assert files.read(pg.url("t")).frame.equals(CELLS)
    write(CELLS.head(2), pg.url("t"), replace=True)
    assert files.read(pg.url("t")).frame.equals(CELLS.head(2))


def test_two_who_publish_one_table_at_once_do_not_both_succeed(pg):
    def slowly() -> None:
        with tables.table_drafts([Location(pg.url("t"))], replace=False) as (slow,):
            slow.write(CELLS)
            slow.read()
            write(CELLS.head(1), pg.url("t"))
            slow.certify(PROOF)

    with pytest.raises(InputError, match="meanwhile"):
        slowly()
    assert files.read(pg.url("t")).frame.equals(CELLS.head(1))


@pytest.mark.parametrize("reached", [True, False], ids=["after", "before"])
def test_a_connection_lost_at_the_commit_is_looked_up(pg, monkeypatch, reached):
    lose_a_commit(pg, monkeypatch, reached)
    if reached:
        write(CELLS, pg.url("t"))
        assert files.read(pg.url("t")).frame.equals(CELLS)
    else:
        with pytest.raises(PartyError, match="lost at the commit, and the release is not there"):
            write(CELLS, pg.url("t"))
        assert pg.tables() == set()


@pytest.mark.parametrize(
    ("frame", "shown"),
    [
        (pl.DataFrame({"a": ["sécret\0"]}), "NUL"),
        (pl.DataFrame({"x" * 64: ["a"]}), "1 to 63 bytes"),
        (pl.DataFrame({"xmin": ["a"]}), "some for itself"),
        (pl.DataFrame({"Shoal_Row": ["a"]}), "is Shoal's own"),
    ],
)
def test_what_the_server_would_change_or_refuse_is_refused_before(pg, frame, shown):
    with pytest.raises(InputError, match=shown) as refused:
        write(frame, pg.url("t"))
    assert "cret" not in str(refused.value)
    assert pg.tables() == set()


def test_a_text_that_the_encoding_of_the_database_lacks_is_refused_unshown(pg):
    pg.run("CREATE DATABASE old ENCODING 'LATIN1' TEMPLATE template0")
    with pytest.raises(InputError, match="encoding of the database") as refused:
        write(pl.DataFrame({"a": ["sécret", "łódź"]}), pg.url("t", base="old"))
    assert "ł" not in str(refused.value)
    write(pl.DataFrame({"a": ["ü"]}), pg.url("t", base="old"))
    assert files.read(pg.url("t", base="old")).frame.item() == "ü"


# Passwords


@pytest.mark.parametrize("by", ["address", "PGPASSWORD", "pgpass", "service", "none", "wrong"])
def test_passwords_come_by_every_way_of_libpq_and_leave_by_none(
    pg, workplace, shoal, monkeypatch, by
):
    monkeypatch.setattr("shoal.connectors.location._secrets", {})
    secret = quote(PASSWORD, safe="")
    address = pg.url("released", user=USER)
    if by == "address":
        address = pg.url("released", user=f"{USER}:{secret}")
    elif by == "wrong":
        address = pg.url("released", user=f"{USER}:geheimes")
    elif by == "PGPASSWORD":
        monkeypatch.setenv("PGPASSWORD", PASSWORD)
    elif by == "pgpass":
        escaped = PASSWORD.replace(":", "\\:")
        Path("pgpass").write_text(f"*:*:*:{USER}:{escaped}\n")
        Path("pgpass").chmod(0o600)
        monkeypatch.setenv("PGPASSFILE", "pgpass")
    elif by == "service":
        about = f"host={pg.folder}\ndbname=postgres\nuser={USER}\npassword={PASSWORD}\n"
        Path("service.conf").write_text(f"[here]\n{about}")
        monkeypatch.setenv("PGSERVICEFILE", "service.conf")
        address = "postgresql:///?service=here&table=released"
    shown = shoal("publish", "patients.csv", "-p", "policy.yaml", "-o", address, "--json")
    assert shown.status == (2 if by in ("none", "wrong") else 0)
    everything = shown.out + shown.err
    if shown.status == 0:
        everything += shoal("verify", address).out
        everything += str(pg.run("SELECT certificate FROM shoal_certificates"))
        kept = shoal(
            "audit", address, "-p", "policy.yaml", "-o", "proof.json", "--report", "r.html"
        )
        everything += kept.out + kept.err
        everything += Path("proof.json").read_text() + Path("r.html").read_text()
    else:
        assert len(shown.err.splitlines()) == 1
        assert "PGPASSWORD" in shown.err
    for word in (PASSWORD, secret, "geheimes", "heim"):
        assert word not in everything
    log = (pg.folder / "log").read_text(errors="replace")
    assert PASSWORD not in log.replace(f"PASSWORD '{PASSWORD}'", "")


def test_a_wrong_address_says_what_to_check(pg):
    for address, error, shown in (
        (pg.url("t", base="nowhere"), InputError, "no such database"),
        (pg.url("t", user="nobody"), InputError, "does not know this user"),
        (
            "postgresql://127.0.0.1:1/d?table=t",
            PartyError,
            "no server answers at 127.0.0.1, port 1; check",
        ),
        ("postgresql:///?service=nowhere&table=t", InputError, "service is not defined"),
    ):
        with pytest.raises(error, match=shown):
            files.read(address)


LIMIT = "CONNECTION LIMIT 0"


@pytest.mark.parametrize(
    ("made", "more", "environment", "error", "shown"),
    [
        ("ROLE role NOLOGIN", "", {}, InputError, "may not log in"),
        (f"ROLE role LOGIN {LIMIT}", "", {}, PartyError, "no connection left"),
        (f"DATABASE role {LIMIT}", "", {}, PartyError, "no connection left"),
        ("", "&sslmod=on", {}, InputError, "option 'sslmod' that is not known; correct it"),
        ("", "&password=a&geheim=1", {}, InputError, "an option that is not known; correct it"),
        ("", "&password=a&geheim", {}, InputError, "an option that is not known; correct it"),
        ("", "&sslmode=foo", {}, InputError, "value that is not known; correct it"),
        ("", "&connect_timeout=abc", {}, InputError, "value that is not known; correct it"),
        ("", "&target_session_attrs=standby", {}, InputError, "target_session_attrs asks for"),
        ("", "&options=-c%20no%3D1", {}, InputError, "does not take a setting of PGOPTIONS"),
        ("", "", {"PGOPTIONS": "-c lock_timeout=10minutes"}, InputError, "lock_timeout=10min"),
        ("", "", {"PGOPTIONS": "-x"}, InputError, "does not take a setting of PGOPTIONS"),
    ],
)
def test_a_server_that_refuses_is_not_said_to_be_away(
    pg, monkeypatch, made, more, environment, error, shown
):
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    user = "role" if made else "postgres"
    base = "role" if made.startswith("DATABASE") else ""
    if base:
        pg.run("CREATE ROLE role LOGIN")
    if made:
        pg.run(f"CREATE {made}")
    try:
        with pytest.raises(error, match=shown) as refused:
            files.read(pg.url("t", user=user, base=base, more=more))
        assert "no server answers" not in str(refused.value)
        assert "geheim" not in str(refused.value)
    finally:
        if base:
            pg.run("DROP DATABASE role")
        if made:
            pg.run("DROP ROLE role")


def test_without_the_driver_the_extra_is_named(workplace):
    blocked = (
        "import sys; sys.modules['adbc_driver_postgresql'] = None;"
        "from shoal.cli.main import status_of; sys.exit(status_of(sys.argv[1:]))"
    )
    run = subprocess.run(
        [
            sys.executable,
            "-c",
            blocked,
            *"publish postgresql:///d?table=t -p policy.yaml -o x.csv".split(),
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONDONTWRITEBYTECODE": "1"},
    )
    assert run.returncode == 4
    assert "pip install '.[postgres]'" in run.stderr


def test_linked_tables_and_their_foreign_keys_are_read_from_a_schema(pg):
    pg.run(
        "CREATE TABLE people (patient text PRIMARY KEY, age integer)",
        "CREATE TABLE visits (visit integer PRIMARY KEY, who text REFERENCES people, day date)",
        "INSERT INTO people VALUES ('a', 1), ('b', 2)",
        "INSERT INTO visits VALUES (1, 'b', '2020-01-05'), (2, 'b', '2020-02-01')",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {USER}",
    )
    schema = pg.url("t").replace("table=t", "").rstrip("?&")
    found = table_places(schema)
    assert [*found.places] == ["people", "visits"]
    assert found.foreign_keys == (ForeignKey("visits", "who", "people", "patient"),)
    policy = library.Policy.from_dict(
        {
            "version": 1,
            "attributes": {"patient": {"role": "subject"}, "age": {"role": "quasi"}},
            "tables": {
                "visits": {
                    "parent": {"people": "who"},
                    "attributes": {
                        "visit": {"role": "drop"},
                        "day": {"role": "quasi", "type": "date"},
                    },
                }
            },
            "anchor": {"first": "visits.day"},
            "promises": [{"model": "k-anonymity", "k": 2}],
        }
    )
    problem = LinkedProblem(policy)
    tables = bound_linked(read_linked(schema, problem).tables, problem)
    assert tables.rows["visits"].counts.tolist() == [0, 2]
    assert tables.rows["visits"].table.frame["day"].to_list() == ["0", "27"]


def test_linked_tables_of_one_schema_are_published_to_another_and_verified(
    pg, shoal, tmp_path, monkeypatch
):
    """All of them or none; verified with their certificates, the policy and the original."""
    monkeypatch.chdir(tmp_path)
    world = linked_cases.world(40)
    for name, frame in world.items():
        write(frame.cast(pl.String), pg.url(name))
    pg.run("DROP TABLE shoal_certificates", "CREATE SCHEMA released")
    given, released = (
        pg.url("t", more=f"&schema={schema}").replace("&table=t", "")
        for schema in ("public", "released")
    )
    Path("policy.yaml").write_text(json.dumps(linked_cases.policy()))
    assert publish(shoal, given, released) == 0
    assert pg.tables("released") == {*world, "shoal_certificates"}
    assert pg.tables() == {*world}
    assert files.read(pg.url("people", more="&schema=released")).frame.height == 40
    for more in ((), ("-p", "policy.yaml"), ("-p", "policy.yaml", "--original", given)):
        done = shoal("verify", released, *more)
        assert done.status == 0, done.out + done.err
    assert publish(shoal, given, released) == 2  # it is there already
    pg.run("UPDATE released.visits SET cost = '0' WHERE visit = '1'")
    assert shoal("verify", released, "-p", "policy.yaml").status == 1
