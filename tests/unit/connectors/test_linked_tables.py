"""Where several tables are read from: folders, workbooks, databases, files by name."""

import sqlite3
from contextlib import closing

import polars as pl
import pytest

import linked_cases
from shoal.connectors import files
from shoal.connectors.linked_tables import ForeignKey, TablePlace, is_several, table_places
from shoal.connectors.location import of_table, parse_address, without_password
from shoal.errors import InputError
from shoal.policy.binding.linked import bound_linked, read_linked
from shoal.policy.policy import Policy
from shoal.policy.problem import LinkedProblem


@pytest.fixture
def world():
    return linked_cases.world(12)


@pytest.fixture
def folder(world, tmp_path):
    for name, frame in world.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    return tmp_path


def people_in(source, further=None):
    problem = LinkedProblem(Policy.from_dict(linked_cases.policy()))
    tables = bound_linked(read_linked(source, problem, further).tables, problem)
    return tables.people.count, tables.rows["visits"].count, tables.rows["drugs"].count


def sizes(world):
    return tuple(world[name].height for name in ("people", "visits", "drugs"))


def as_database(world, path, names=("people", "visits", "drugs")) -> str:
    people, visits, drugs = names
    with closing(sqlite3.connect(path)) as file, file:
        file.execute(f"CREATE TABLE {people} (patient TEXT PRIMARY KEY, age INTEGER, blood TEXT)")
        file.execute(
            f"CREATE TABLE {visits} (visit TEXT PRIMARY KEY, patient TEXT REFERENCES {people},"
            " cost INTEGER, disease TEXT)"
        )
        file.execute(f"CREATE TABLE {drugs} (visit TEXT REFERENCES {visits}(visit), drug TEXT)")
        for name, frame in zip(names, world.values(), strict=True):
            marks = ", ".join("?" * frame.width)
            file.executemany(f"INSERT INTO {name} VALUES ({marks})", frame.rows())
    return f"sqlite:///{path}"


def changed(path, *statements):
    with closing(sqlite3.connect(path)) as file, file:
        for statement in statements:
            file.execute(statement)


def test_a_view_is_read_only_where_the_policy_names_it(world, tmp_path):
    address = as_database(world, tmp_path / "in.db")
    changed(tmp_path / "in.db", "CREATE VIEW old AS SELECT * FROM people WHERE age > 60")
    places = table_places(address)
    assert [*places.places] == ["drugs", "people", "visits"]
    assert [*places.views] == ["old"]
    assert people_in(address) == sizes(world)
    changed(
        tmp_path / "in.db",
        "CREATE TABLE copied AS SELECT * FROM drugs",
        "DROP TABLE drugs",
        "CREATE VIEW drugs AS SELECT * FROM copied",
    )
    named = table_places(address).with_views(["people", "drugs"])
    assert [*named.places] == ["copied", "people", "visits", "drugs"]
    with pytest.raises(InputError, match="table 'copied': in the data, not in the policy") as found:
        people_in(address)
    assert len(found.value.said) == 1  # the view is read as the policy's table


def test_a_policy_is_proposed_without_views_and_says_so(world, tmp_path, shoal):
    as_database(world, tmp_path / "in.db")
    changed(tmp_path / "in.db", "CREATE VIEW old AS SELECT * FROM people WHERE age > 60")
    done = shoal("policy", "init", tmp_path / "in.db", "-o", tmp_path / "p.yaml", status=0)
    assert "old" not in (tmp_path / "p.yaml").read_text("utf-8")
    assert "view 'old': is left out; name it under 'tables' if" in done.err + done.out


def test_a_file_in_a_folder_is_the_table_of_its_name(folder, world):
    (folder / "notes.md").write_text("not a table")
    (folder / "certificate.json").write_text("{}")
    assert is_several(folder)
    assert people_in(folder) == sizes(world)


def test_parquet_and_text_stand_side_by_side(folder, world):
    (folder / "visits.csv").unlink()
    world["visits"].write_parquet(folder / "visits.parquet")
    assert people_in(folder) == sizes(world)


def test_two_files_of_one_name_are_refused(folder, world):
    world["visits"].write_parquet(folder / "visits.parquet")
    with pytest.raises(InputError, match=r"table 'visits': is in .* in two files"):
        table_places(str(folder))


def test_a_hierarchy_in_the_folder_is_no_table(folder, world):
    (folder / "costs.csv").write_text("1;*\n")
    content = linked_cases.policy()
    content["attributes"]["age"] = {"role": "quasi", "hierarchy": "ages.csv"}
    ages = sorted(world["people"]["age"].unique())
    (folder / "ages.csv").write_text("".join(f"{age};*\n" for age in ages))
    problem = LinkedProblem(Policy.from_dict(content, base=folder))
    with pytest.raises(InputError, match="table 'costs': in the data, not in the policy"):
        read_linked(folder, problem)
    (folder / "costs.csv").unlink()
    assert read_linked(folder, problem).tables.keys() == world.keys()


def test_further_files_are_named_beside_that_of_people(folder, world):
    further = {name: str(folder / f"{name}.csv") for name in ("visits", "drugs")}
    assert people_in(str(folder / "people.csv"), further) == sizes(world)
    with pytest.raises(InputError, match=r"table 'visits': is in .* and beside it"):
        people_in(str(folder), further)


def test_frames_and_files_are_taken_by_the_names_of_tables(folder, world):
    given = {**world, "drugs": folder / "drugs.csv", "visits": str(folder / "visits.csv")}
    assert people_in(given) == sizes(world)


def test_a_frame_alone_is_refused(world):
    with pytest.raises(InputError, match="a policy of linked tables needs several"):
        people_in(world["people"])


def test_every_sheet_of_a_workbook_is_a_table_whatever_that_of_people_is_called(world, tmp_path):
    xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
    pytest.importorskip("python_calamine", reason="the extra 'excel' is not installed")
    path = tmp_path / "clinic.xlsx"
    with xlsxwriter.Workbook(path) as book:
        for name, frame in zip(("patients", "visits", "drugs"), world.values(), strict=True):
            sheet = book.add_worksheet(name)
            for row, cells in enumerate([frame.columns, *frame.rows()]):
                sheet.write_row(row, 0, cells)
    assert is_several(path)
    assert people_in(path) == sizes(world)
    places = table_places(str(path)).places
    assert places["visits"] == TablePlace(str(path), "visits")


def test_the_tables_of_a_database_are_found_with_their_foreign_keys(world, tmp_path):
    address = as_database(world, tmp_path / "clinic.db")
    assert is_several(address)
    assert not is_several(f"{address}?table=visits")
    assert people_in(address) == sizes(world)
    assert set(table_places(address).foreign_keys) == {
        ForeignKey("visits", "patient", "people", "patient"),
        ForeignKey("drugs", "visit", "visits", "visit"),
    }


def test_a_file_named_like_a_database_is_the_database(world, tmp_path):
    as_database(world, tmp_path / "clinic.db")
    assert is_several(tmp_path / "clinic.db")
    assert people_in(tmp_path / "clinic.db") == sizes(world)


def test_the_password_of_a_database_goes_along_to_its_tables():
    shown = without_password("postgresql://ann:secret@host/clinic?sslmode=require")
    address = of_table(shown, "visits")
    assert "secret" not in address
    assert parse_address(address).table == "visits"
    assert "ann:secret@" in parse_address(address).location


def test_all_tables_of_a_database_are_read_as_of_one_moment(world, tmp_path, monkeypatch):
    """Between two tables, somebody deletes a patient with all visits."""
    address = as_database(world, tmp_path / "clinic.db")
    with closing(sqlite3.connect(tmp_path / "clinic.db")) as file:
        file.execute("PRAGMA journal_mode = WAL")
    read_as = files.read_as
    read = []

    def and_delete(path, *given):
        found = read_as(path, *given)
        if not read:
            with closing(sqlite3.connect(tmp_path / "clinic.db")) as file, file:
                for name in ("drugs", "visits", "people"):
                    file.execute(f"DELETE FROM {name}")
        read.append(path)
        return found

    monkeypatch.setattr(files, "read_as", and_delete)
    assert people_in(address) == sizes(world)
    assert len(read) == 3
    assert people_in(address) == (0, 0, 0)


def test_a_table_of_people_of_another_name_takes_its_foreign_keys_along(world, tmp_path):
    address = as_database(world, tmp_path / "clinic.db", ("patients", "visits", "drugs"))
    found = table_places(address).with_people(["visits", "drugs"])
    assert ForeignKey("visits", "patient", "people", "patient") in found.foreign_keys
    assert people_in(address) == sizes(world)


def test_findings_of_every_table_are_said_at_once(folder):
    for name in ("visits", "drugs"):
        (folder / f"{name}.csv").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError) as refused:
        people_in(folder)
    assert [said.partition(":")[0] for said in refused.value.said] == [
        "table 'drugs'",
        "table 'visits'",
    ]


def test_a_folder_of_parquet_parts_is_one_table(tmp_path):
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "part-1.parquet")
    assert not is_several(tmp_path)
