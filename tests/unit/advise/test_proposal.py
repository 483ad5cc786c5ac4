"""A proposal over a whole table: how it is written, who is counted, hierarchies, the command."""

import re
import tracemalloc
from datetime import timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import yaml
from hypothesis import assume, given
from hypothesis import settings as settings_of_hypothesis
from hypothesis import strategies as st

import shoal as library
from person_bed import BEDS, drawn
from shoal.advise.propose import cells_of, propose_policy
from shoal.data.person_names import person_name
from shoal.data.progress import no_progress
from shoal.data.table import Table
from shoal.data.warnings import ReleaseWarning
from shoal.policy.loading import one_line
from shoal.policy.proposal.cells import ColumnCells
from shoal.policy.proposal.notation import (
    DECIMAL_OR_GROUPS,
    OTHER_FORM,
    POINT_OR_GROUPS,
    WHICH_FIRST,
    notation_in,
)
from shoal.policy.proposal.roles import guess_of
from shoal.samples import patients, purchases

OTHER_NUMBERS, OTHER_DATES = (OTHER_FORM.format(what) for what in ("numbers", "dates"))


def settings(frame: pl.DataFrame, **more) -> dict[str, dict]:
    return propose_policy(frame, 2, **more).content["attributes"]


def publishes(proposal: library.Proposal, frame: pl.DataFrame) -> bool:
    """Whether the policy is sound for its table once its questions are answered."""
    content = yaml.safe_load(proposal.text)
    for attribute in content["attributes"].values():
        attribute.pop("ask", None)
    return library.check(content, frame) == []


# How numbers and dates are written


@pytest.mark.parametrize(
    ("columns", "read", "questions"),
    [
        ({"x": ["12,5", "7"]}, {"decimal": ","}, {}),
        ({"x": ["1,234", "7"]}, {"decimal": ","}, {"x": DECIMAL_OR_GROUPS}),
        ({"x": ["1,234", "7"], "y": ["1,5", "?"]}, {"decimal": ","}, {}),
        ({"x": ["4.740,50", "7"]}, {"decimal": ",", "thousands": "."}, {}),
        ({"x": ["4,740.50", "7"]}, {"thousands": ","}, {}),
        (
            {"x": ["4.740,50", "7"], "y": ["1.234", "2.345"]},
            {},
            {"x": OTHER_NUMBERS, "y": POINT_OR_GROUPS},
        ),
        ({"x": ["1.250", "-12.300", "850", ""]}, {}, {"x": POINT_OR_GROUPS}),
        ({"x": ["1.250", "12.300", "8500"]}, {}, {}),
        ({"x": ["1.250", "12.3"]}, {}, {}),
        ({"x": ["0.250", "12.300"]}, {}, {}),
        ({"x": ["850", "12"]}, {}, {}),
        ({"x": ["4,740.50", "4.740,50"]}, {}, {}),
        ({"x": ["47.40,50", "7"]}, {}, {}),
        ({"x": ["12,5"], "y": ["1.5"]}, {}, {"x": OTHER_NUMBERS}),
        ({"x": ["12,5", "a"]}, {}, {}),
        ({"x": ["1", "2"]}, {}, {}),
        ({"x": ["31.12.2024", "1.2.2024"]}, {"dates": "%d.%m.%Y"}, {}),
        ({"x": ["31.12.2024 14:30"]}, {"dates": "%d.%m.%Y %H:%M"}, {}),
        ({"x": ["12/31/2024", ""]}, {"dates": "%m/%d/%Y"}, {}),
        ({"x": ["31/12/2024"]}, {"dates": "%d/%m/%Y"}, {}),
        ({"x": ["1/2/2024"]}, {"dates": "%d/%m/%Y"}, {"x": WHICH_FIRST.format("%d/%m/%Y")}),
        ({"x": ["1/2/2024"], "y": ["12/31/2024"]}, {"dates": "%m/%d/%Y"}, {}),
        ({"x": ["31.12.2024"], "y": ["31/12/2024"]}, {"dates": "%d.%m.%Y"}, {"y": OTHER_DATES}),
        ({"x": ["2024-12-31"]}, {}, {}),
        ({"x": ["32.12.2024"]}, {}, {}),
        ({"x": ["1/2"]}, {}, {}),
        ({"x": [None, ""]}, {}, {}),
    ],
)
def test_decimal_marks_and_forms_of_dates_are_found_in_the_cells(columns, read, questions):
    frame = pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String))
    found = notation_in(Table(frame))
    assert (found.read, found.questions) == (read, questions)


def test_what_is_said_is_not_looked_for():
    frame = pl.DataFrame({"x": ["12,5"], "y": ["1/2/2024"]})
    assert notation_in(Table(frame), {"decimal": ".", "dates": "%d/%m/%Y"}).read == {}


def test_an_export_of_a_hospital_needs_no_options():
    frame = pl.DataFrame(
        {"lab": ["12,5", "7,25", "9"] * 10, "seen": ["31.12.2024", "1.2.2024", "?"] * 10}
    )
    proposal = propose_policy(frame, 2)
    assert proposal.read == {"dates": "%d.%m.%Y", "decimal": ","}
    assert proposal.content["attributes"]["lab"]["domain"] == [7, 13]
    assert "dates" in proposal.content["attributes"]["seen"]["hierarchy"]
    assert proposal.missing_values == ("?",)
    assert publishes(proposal, frame)


def test_a_frame_of_numbers_and_dates_is_read_as_it_is():
    frame = pl.DataFrame({"x": [1.5, 2.5, 7.5, None]}).with_columns(
        day=pl.date(2024, 1, pl.int_range(1, 5))
    )
    proposed = settings(frame)
    assert proposed["x"]["domain"] == [1, 8]
    assert "dates" in proposed["day"]["hierarchy"]


# Who is counted


def test_a_person_number_by_evidence_needs_no_name():
    frame = patients.generate(800, 7).rename({"patient": "fallnr"})
    proposed = settings(frame)
    assert proposed["fallnr"]["role"] == "subject"
    assert "ask" in proposed["fallnr"]
    assert "ask" not in settings(frame.rename({"fallnr": "patient"}))["patient"]
    assert settings(purchases.generate(2000, 1))["customer"] == {"role": "subject"}


@pytest.mark.parametrize(
    ("people", "orders", "subject", "asks"),
    [
        ("customer", "order_id", "customer", False),
        ("buyer", "order_id", "buyer", False),
        ("customer", "member_id", "customer", True),
    ],
)
def test_of_an_order_and_its_customer_the_customer_is_the_person(people, orders, subject, asks):
    rng = np.random.default_rng(5)
    customer = np.sort(rng.integers(0, 100, 900))
    order = customer * 10 + rng.integers(0, 4, 900)
    frame = pl.DataFrame(
        {
            orders: [f"o{i}" for i in order],
            "sex": [str(i) for i in rng.integers(0, 2, 100)[customer]],
            "born": [str(i) for i in rng.integers(1940, 2000, 100)[customer]],
            "day": [str(i) for i in rng.integers(0, 40, 4000)[order]],
            people: [f"c{i}" for i in customer],
        }
    )
    proposed = settings(frame)
    assert proposed[subject]["role"] == "subject"
    assert ("ask" in proposed[subject]) is asks
    assert proposed[orders] == {"role": "identifier"}


def test_a_name_alone_is_asked_about_where_it_repeats():
    frame = pl.DataFrame({"user": ["ann", "bob", "eve"] * 20, "x": [str(i % 7) for i in range(60)]})
    assert settings(frame)["user"]["role"] == "subject"
    assert settings(frame)["user"]["ask"]["candidates"] == ["user"]
    alone = frame.with_columns(user=pl.Series([f"u{i}" for i in range(60)]))
    assert settings(alone)["user"] == {"role": "subject"}


def test_codes_named_for_people_number_them_however_few_repeat():
    """They look like text that differs for most records, which is dropped elsewhere."""
    codes = [f"K{i * 7 % 80:03}" for i in range(127)]
    frame = pl.DataFrame({"kunde": codes, "x": [str(i % 7) for i in range(127)]})
    assert settings(frame)["kunde"]["role"] == "subject"
    assert "ask" not in settings(frame)["kunde"]  # a word for people alone, and many codes
    assert settings(frame.rename({"kunde": "remark"}))["remark"] == {"role": "drop"}


@pytest.mark.parametrize("name", ["trial by site", "panel", "named"])
def test_columns_that_number_people_together_are_proposed_and_asked_about(name):
    bed = BEDS[name]
    frame = bed.frame()
    proposal = propose_policy(frame, 2)
    assert proposal.subject == proposal.content["subject"] == [*bed.first]
    assert proposal.unit == "people"
    assert list(proposal.questions) == [bed.first[0]]
    assert publishes(proposal, frame)
    content = yaml.safe_load(proposal.text)
    with pytest.raises(library.InputError, match="list several that do together"):
        library.publish(frame, content)
    del content["attributes"][bed.first[0]]["ask"]
    content["method"] = {"name": "mondrian"}
    released = library.publish(frame, content)
    assert released.certificate["subjects"] == frame.select(bed.first).n_unique()
    del content["subject"]
    with pytest.warns(ReleaseWarning, match=re.escape(f"say 'subject: [{', '.join(bed.first)}]'")):
        library.publish(frame, content)


def test_a_profile_of_columns_is_nobody_s_number():
    proposal = propose_policy(BEDS["wearers"].frame(), 2)
    assert proposal.subject is None
    assert "subject" not in proposal.content


def test_records_without_a_person_are_asked_about():
    frame = pl.DataFrame({"patient": ["1", "2", "?", None], "x": ["a", "b", "a", "b"]})
    assert settings(frame)["patient"] == {
        "role": "subject",
        "ask": "records without a value here: 2; whose are they?",
    }


def test_of_two_numbers_one_is_the_person_and_none_is_published():
    frame = pl.DataFrame(
        {
            "client_no": [str(i % 20) for i in range(60)],
            "order_id": [str(i % 30) for i in range(60)],
            "x": [str(i % 7) for i in range(60)],
        }
    )
    proposed = settings(frame)
    assert proposed["client_no"]["ask"]["candidates"] == ["client_no", "order_id"]
    assert proposed["order_id"] == {"role": "identifier"}


def test_a_number_of_things_is_asked_about_where_nothing_else_numbers_people():
    frame = pl.DataFrame({"order_id": [f"{i % 30}" for i in range(60)], "x": ["a", "b"] * 30})
    assert settings(frame)["order_id"]["role"] == "subject"
    assert "ask" in settings(frame)["order_id"]


def test_without_a_quasi_identifier_the_likeliest_is_asked_about():
    proposed = settings(pl.DataFrame({"name": ["a", "b"] * 9, "disease": ["a", "b"] * 9}))
    assert proposed["disease"]["role"] == "quasi"
    assert "is it this" in proposed["disease"]["ask"]


@pytest.mark.parametrize(
    "text", ["\x85", "\xa0a\xa0", "\u2028", "a\n", "\ufeffb", " ", "Zoë", "c\u202ed"]
)
def test_signs_that_no_one_sees_come_back_from_the_written_policy(text):
    written = one_line({text: [text]})
    assert yaml.safe_load(written) == {text: [text]}
    assert written.isprintable()


def test_a_title_as_long_as_a_text_is_proposed_about_and_read_back():
    """Every beginning and end of it was kept: 3.6 GB."""
    title = "ACGT" * 25_000
    tracemalloc.start()
    text = propose_policy(pl.DataFrame({title: ["a", "b"] * 9, "sex": ["f", "m"] * 9})).text
    taken = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert taken < 50 << 20
    assert [*yaml.safe_load(text)["attributes"]] == [title, "sex"]


# Hierarchies of a folder


@pytest.fixture
def folder(tmp_path) -> Path:
    (tmp_path / "adult-sex.csv").write_text("m;*\nf;*\n")
    (tmp_path / "town.csv").write_text("a;north;*\nb;north;*\n")
    (tmp_path / "years.csv").write_text("".join(f"{i};*\n" for i in range(200)))
    (tmp_path / "notes.md").write_text("nothing")
    return tmp_path


TOWNS = pl.DataFrame(
    {
        "SEX": ["m", "f", "?"] * 5 + ["f", "?", "m"] * 5,
        "town": ["a", "b", "b"] * 10,
        "years": [str(i) for i in range(15)] * 2,
        "other": [str(i) for i in range(15)] * 2,
        "born_in": ["b", "a", "a"] * 10,
        "kind": ["x", "y", "y"] * 10,
    }
)


def test_files_are_matched_by_name_and_content(folder):
    proposed = settings(TOWNS, hierarchies=folder, base=folder)
    found = {name: one.get("hierarchy") for name, one in proposed.items()}
    assert found == {
        "SEX": "adult-sex.csv",
        "town": "town.csv",
        "years": "years.csv",
        "other": None,  # numbers are in any long enough list of numbers
        "born_in": "town.csv",
        "kind": None,
    }
    assert not [name for name, one in proposed.items() if "ask" in one]
    assert publishes_in(folder, TOWNS)


def publishes_in(folder: Path, frame: pl.DataFrame) -> bool:
    content = yaml.safe_load(propose_policy(frame, 2, hierarchies=folder, base=folder).text)
    return library.check(library.Policy.from_dict(content, base=folder), frame) == []


def test_paths_are_relative_to_the_policy(folder, tmp_path):
    (tmp_path / "policies").mkdir()
    proposed = settings(TOWNS, hierarchies=folder, base=tmp_path / "policies")
    assert proposed["town"]["hierarchy"] == "../town.csv"


def test_several_files_gaps_and_faults_are_asked_about(folder):
    (folder / "old_town.csv").write_text("a;*\nb;*\n")
    (folder / "kind.csv").write_text("x;*\n")
    (folder / "years.csv").write_bytes(b"\xff\xfe\x00")
    proposed = settings(TOWNS, hierarchies=folder, base=folder)
    assert proposed["town"]["ask"] == "which hierarchy, old_town.csv or town.csv?"
    assert (
        proposed["kind"]["ask"] == "its hierarchy kind.csv lacks 1 of 2 values; add them to the"
        " file"
    )
    assert proposed["kind"]["hierarchy"] == "kind.csv"
    assert "years.csv can't be read" in proposed["years"]["ask"]


@pytest.mark.parametrize("name", ["absent", "empty"])
def test_a_folder_without_tables_is_refused(tmp_path, name):
    (tmp_path / "empty").mkdir()
    with pytest.raises(library.InputError, match=f"hierarchies '.*{name}': .*; name "):
        propose_policy(TOWNS, hierarchies=tmp_path / name)


# The proposal and the command


def test_a_proposal_says_what_it_asks_and_whom_it_counts():
    proposal = propose_policy(patients.generate(500, 2), 5)
    assert (proposal.k, proposal.subject, proposal.unit) == (5, "patient", "people")
    assert list(proposal.questions) == ["charge"]
    assert str(proposal) == proposal.text
    content = yaml.safe_load(proposal.text)
    assert content == proposal.content
    columns = {column.name: column for column in proposal.columns}
    assert columns["name"].alone is None
    assert 0 < columns["age"].alone < columns["age"].adds < proposal.together < 1


def test_the_command_ends_with_its_questions(workplace, shoal):
    done = shoal("policy", "init", "patients.csv", "-o", "new.yaml")
    *_, wrote, count, question = done.err.splitlines()  # where it is slow, it says what it does
    assert wrote.startswith("wrote new.yaml; read it, correct the roles, then: shoal policy check")
    assert count == "1 open question; answer it and delete its 'ask', or nothing is published:"
    assert question == "  charge: could others know it already? if so, give it the role 'quasi'"
    assert done.out == ""
    quiet = shoal("policy", "init", "patients.csv", "-q")
    assert (quiet.err, quiet.out) == ("", (workplace / "new.yaml").read_text())


def test_the_command_says_where_no_column_numbers_people(workplace, shoal):
    pl.DataFrame({"sex": ["m", "f"] * 9}).write_csv("s.csv")
    done = shoal("policy", "init", "s.csv")
    assert done.err == ("no column numbers people: every record is taken to be its own person\n")


@pytest.mark.parametrize(("records", "is_open"), [(600, False), (20_000, True)])
def test_where_nothing_would_show_who_has_several_records_it_is_said(
    workplace, shoal, records, is_open
):
    made = drawn(records, 1, "age sex visit")(np.random.default_rng(1))
    pl.DataFrame(made).write_csv("s.csv")
    said = "nothing would show that somebody has several"
    init, profile = shoal("policy", "init", "s.csv"), shoal("profile", "s.csv")
    assert f"people{f', and {said} records' * is_open}: every record is taken" in init.err
    assert f"every row: {records:,} people{f'; {said} rows' * is_open}\n" in profile.out


def test_where_a_column_may_show_who_has_several_records_it_is_asked_about(workplace, shoal):
    made = {"UR": [f"{20_000 + i}" for i in range(40)] * 3, "visit": ["2024-01-31"] * 120}
    pl.DataFrame(made).write_csv("s.csv")
    assert "UR: who is one person? by UR: 40 people" in shoal("policy", "init", "s.csv").err
    assert "nothing would show" not in shoal("profile", "s.csv").out


def test_the_columns_of_a_wide_table_are_listed_as_often_as_those_of_a_narrow_one(monkeypatch):
    listed = []
    columns = pl.DataFrame.columns.fget
    counted = property(lambda frame: [listed.append(1), columns(frame)][1])
    monkeypatch.setattr(pl.DataFrame, "columns", counted)
    for width in (20, 200):
        library.propose(pl.DataFrame({f"c{i}": [*"ab"] for i in range(width)}))
        listed.append(0)
    narrow = listed.index(0)
    assert len(listed) - 2 - narrow == narrow


def test_explain_shows_every_role_the_worst_pairs_and_an_order(workplace, shoal):
    done = shoal("policy", "init", "patients.csv", "--explain")
    lines = done.err.splitlines()
    assert lines[0].split() == ["column", "role", "alone", "adds", "why"]
    assert lines[9].startswith("ward ")
    assert lines[10].startswith("all 5 quasi-identifiers: ")
    assert lines[11].startswith("worst pairs: age and zip ")
    assert lines[12].endswith(" of people unique")
    assert ", + age " in lines[12]
    assert yaml.safe_load(done.out)["version"] == 1


def test_the_command_takes_hierarchies_relative_to_the_policy(workplace, shoal):
    (workplace / "trees").mkdir()
    (workplace / "trees" / "sex.csv").write_text("female;*\nmale;*\ndiverse;*\n")
    (workplace / "policies").mkdir()
    done = shoal(
        "policy", "init", "patients.csv", "-o", "policies/p.yaml", "--hierarchies", "trees", "-q"
    )
    assert (done.status, done.err) == (0, "")
    content = yaml.safe_load((workplace / "policies" / "p.yaml").read_text())
    assert content["attributes"]["sex"]["hierarchy"] == "../trees/sex.csv"
    assert shoal("policy", "init", "patients.csv", "--hierarchies", "none").status == 2


WORDS = st.sampled_from(
    "age zip name patient_id id diag_1 salary class x no user order_no code été yes 1x key".split()
)
ODD_NAMES = ["y z", "- a", "a: b", "a\nb", "#", "# c\nd", "{", "'", '"']
NAMES = st.one_of(WORDS, st.sampled_from(ODD_NAMES))
NUMBERS = st.sampled_from("0 1 2 -3 1.5 1,5 1,234 007 1e300 nan inf 1_0 ٣".split())
DATES = st.sampled_from("2024-02-30 2024-02-01 1.2.2024 13/1/2024 1/2/2024 [0-5) <3".split())
TEXTS = st.sampled_from(["a", "b c", " d ", "true", "=1", "'e'", "#f", "g: h", "{}", "\n", "\x07"])
NO_VALUES = st.sampled_from([None, "", "?", "None", "-", "*"])


@st.composite
def tables(draw: st.DrawFn) -> pl.DataFrame:
    """Columns of mostly one kind."""
    records = draw(st.integers(1, 25))
    columns = {}
    for name in draw(st.lists(NAMES, min_size=1, max_size=5, unique=True)):
        kind = draw(st.sampled_from([NUMBERS, DATES, TEXTS]))
        column = st.lists(st.one_of(kind, kind, NO_VALUES), min_size=records, max_size=records)
        columns[name] = pl.Series(draw(column), dtype=pl.String)
    frame = pl.DataFrame(columns)
    # rows of nobody alone are refused
    assume(any(person_name(cell or "") for row in frame.rows() for cell in row))
    return frame


def test_columns_are_looked_at_together_not_one_by_one(monkeypatch):
    """38,000 columns of 60 rows took more than a minute."""
    asked, frame = [], pl.DataFrame({f"cg{i}": ["0.5", f"{i / 7:.2f}", "NA"] for i in range(300)})
    is_in = pl.Series.is_in
    monkeypatch.setattr(
        pl.Series, "is_in", lambda *given, **more: asked.append(1) or is_in(*given, **more)
    )
    together = cells_of(Table(frame), no_progress)
    assert len(asked) < 30
    for name, cells in together.items():
        alone = ColumnCells.of(Table(frame).column(name))
        assert guess_of(alone).settings == guess_of(cells).settings
        assert alone.cells.to_list() == cells.cells.to_list() == sorted({"0.5", frame[name][1]})
        assert alone.absent == cells.absent == ("NA",)


CONTENT = st.recursive(
    st.one_of(st.text(), st.sampled_from(["yes", "a", "x_1", "a, b"]), st.floats(), st.integers()),
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text() | st.just("a"), inner)),
)


@given(CONTENT)
def test_content_on_a_line_reads_as_it_was(content):
    line = one_line(content)
    assert "\n" not in line
    assert repr(yaml.safe_load(line)) == repr(content)


@given(tables())
@settings_of_hypothesis(deadline=None)
def test_any_table_gets_a_policy_that_fits_it(frame):
    proposal = propose_policy(frame, 2, explain=True)
    content = yaml.safe_load(proposal.text)
    assert content == proposal.content
    assert [*content["attributes"]] == frame.columns
    assert all(column.role != "plain" for column in proposal.columns)
    for attribute in content["attributes"].values():
        attribute.pop("ask", None)
    kept = [name for name, one in content["attributes"].items() if one["role"] != "identifier"]
    cells = {cell for row in frame.select(kept).rows() for cell in row}
    nothing = {None, "", "?", "None", "-", "*", *content.get("missing_values", [])}
    assume(cells - nothing)  # else rows of nobody
    # k and l may be out of reach, and whose a record is only its owner knows
    expected = (
        "promise 'k-anonymity'",
        "whole table has",
        "records without a subject",
        "record without a subject",
        "nothing but usual signs for no value",
    )
    faults = [finding.message for finding in library.check(content, frame)]
    assert [fault for fault in faults if not any(one in fault for one in expected)] == []


def test_rows_of_empty_cells_are_nobody():
    """As a spreadsheet saves rows whose cells were cleared: no part of any figure."""
    people = pl.DataFrame({"age": [30, 40, 50] * 10, "sex": ["f", "m"] * 15})
    cleared = pl.concat([people, pl.DataFrame({"age": [None] * 5, "sex": [None, " "] + [""] * 3})])
    assert propose_policy(cleared).text == propose_policy(people).text
    assert library.profile(cleared).to_dict() == library.profile(people).to_dict()


@pytest.mark.parametrize("cells", ["MF", "MFX"])
def test_a_hierarchy_is_advised_only_where_something_lies_between_a_value_and_all(cells):
    proposal = propose_policy(
        pl.DataFrame({"sex": [*cells] * 20, "ward": [*"0123"] * 5 * len(cells)}), 2
    )
    line = next(line for line in proposal.text.splitlines() if line.strip().startswith("sex"))
    assert "others may know it" in line
    assert ("a hierarchy would lose less" in line) == (len(cells) > 2)


@pytest.mark.parametrize("to", [lambda frame: frame, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_durations_are_dropped_for_a_reason_and_the_rest_is_published(to):
    frame = pl.DataFrame(
        {
            "age": [20 + row % 4 for row in range(40)],
            "stay": [timedelta(days=row % 7) for row in range(40)],
            "sex": ["f", "m"] * 20,
        }
    )
    proposal = propose_policy(to(frame), k=5)
    columns = {column.name: column for column in proposal.columns}
    assert list(columns) == frame.columns
    assert columns["stay"].settings == {"role": "drop"}
    assert columns["stay"].reason.startswith("durations, which can't be published: dropped;")
    content = yaml.safe_load(proposal.text)
    for settings in content["attributes"].values():
        settings.pop("ask", None)
    release = library.publish(to(frame), content)
    assert release.certificate.holds
    assert pl.DataFrame(release.data).columns == ["age", "sex"]


def test_a_frame_of_durations_alone_is_refused():
    frame = pl.DataFrame({"stay": [timedelta(days=row % 7) for row in range(40)]})
    with pytest.raises(library.InputError, match="column 'stay' holds durations; give numbers"):
        propose_policy(frame)
