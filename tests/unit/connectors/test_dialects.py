"""Files as people have them: encodings, delimiters, decimal commas, local dates; and back. And
cells that a spreadsheet would compute: found, told, and escaped one-to-one.
"""

from __future__ import annotations

import codecs
import json
from pathlib import Path

import polars as pl
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

import shoal as shoal_package
from sample_policies import content_of
from shoal.connectors import files
from shoal.connectors.dialect import Dialect, Reading, codec_of, escaped, formula_cells, unescaped
from shoal.connectors.location import Location
from shoal.data.numbers import Notation, PublishedNumbers
from shoal.data.schema import Render
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.policy import Policy

ROWS = [
    ("12,5", "1.2.2024", "grün"),
    ("13,7", "01.02.2024", "grün"),
    ("1.200,25", "14.03.2024", "blau"),
    ("1.300", "15.03.2024", "blau"),
]
POLICY = content_of(
    {
        "größe": {"role": "quasi", "type": "number", "domain": [0, 2000]},
        "datum": {"role": "quasi", "hierarchy": {"dates": ["day", "month", "year"]}},
        "farbe": "sensitive",
    },
    render={"order": "input"},
    read={"encoding": "cp1252", "decimal": ",", "thousands": ".", "dates": "%d.%m.%Y"},
)


def export(encoding: str = "cp1252", delimiter: str = ";", newline: str = "\r\n") -> bytes:
    lines = [("größe", "datum", "farbe"), *ROWS]
    return "".join(delimiter.join(line) + newline for line in lines).encode(encoding)


BESIDE = ("-p", "policy.yaml", "--original", "in.csv")
READ = [part for one in POLICY["read"].items() for part in ("--read", "=".join(one))]


@pytest.fixture
def hospital(folder) -> Path:
    """A folder with an export of cp1252, semicolons and decimal commas, and its policy."""
    (folder / "in.csv").write_bytes(export())
    (folder / "policy.yaml").write_text(yaml.safe_dump(POLICY))
    return folder


def published(hospital: Path, shoal, *more: str, output: str = "out.csv") -> bytes:
    shoal("publish", "in.csv", "-p", "policy.yaml", "-o", output, *more, status=0)
    return (hospital / output).read_bytes()


def rows_of(text: str, delimiter: str = ";") -> list[list[str]]:
    return [line.split(delimiter) for line in text.splitlines()]


def test_a_release_is_written_as_its_input_was(hospital, shoal):
    text = published(hospital, shoal).decode("cp1252")
    assert text.endswith("\r\n")
    # means of a class: both ends with commas, thousands not grouped, days in the form, else ISO
    assert rows_of(text) == [
        ["größe", "datum", "farbe"],
        ["[12,5, 13,7]", "01.02.2024", "grün"],
        ["[12,5, 13,7]", "01.02.2024", "grün"],
        ["[1200,25, 1300]", "2024-03", "blau"],
        ["[1200,25, 1300]", "2024-03", "blau"],
    ]


def test_an_audit_sees_an_end_that_was_changed_behind_its_comma(hospital, shoal):
    text = published(hospital, shoal).decode("cp1252").replace("13,7", "13,6")
    (hospital / "out.csv").write_bytes(text.encode("cp1252"))
    result = shoal("audit", "out.csv", *BESIDE, "--json", status=1)
    assert json.loads(result.out)["faults"]["uncovered"] == 1


def test_write_overrides_read(hospital, shoal):
    more = ("--write", "encoding=utf-8-sig", "--write", "delimiter=|", "--write", "newline=lf")
    text = published(hospital, shoal, *more)
    assert text.startswith(codecs.BOM_UTF8)
    assert b"\r" not in text
    assert rows_of(text.decode("utf-8-sig"), "|")[1][2] == "grün"
    shoal("audit", "out.csv", "-p", "policy.yaml", *more, status=0)


@pytest.mark.parametrize("output", ["out.tsv", "out.txt", "out.tab", "out.csv.gz", "out.jsonl"])
def test_another_format_is_audited_by_the_same_policy(hospital, shoal, output):
    published(hospital, shoal, output=output)
    shoal("audit", output, *BESIDE, status=0)


def test_what_is_absent_is_found_in_the_file(hospital, shoal):
    (hospital / "in.csv").write_bytes(export("utf-16"))
    say_less(hospital, "encoding")
    text = published(hospital, shoal)
    assert text.startswith(codecs.BOM_UTF16)
    assert rows_of(text.decode("utf-16"))[1] == ["[12,5, 13,7]", "01.02.2024", "grün"]
    assert shoal("audit", "out.csv", "-p", "policy.yaml").status == 0


def test_a_frame_of_text_is_read_and_written_alike(hospital):
    frame = pl.DataFrame(ROWS, schema=["größe", "datum", "farbe"], orient="row")
    release = shoal_package.publish(frame, POLICY)
    assert release.data["größe"].to_list()[2:] == ["[1200,25, 1300]"] * 2
    assert release.data["datum"].to_list()[:2] == ["01.02.2024"] * 2
    assert shoal_package.audit(release.data, POLICY, frame, trace=release.trace).holds


# Refusals name the option that helps


def refused(shoal, *says: str, data: str = "in.csv", more: tuple[str, ...] = ()) -> None:
    result = shoal("publish", data, "-p", "policy.yaml", "-o", "out.csv", *more, status=2)
    for text in says:
        assert text in result.err
    assert not Path("out.csv").exists()


def test_text_that_is_not_utf8_names_its_line_and_the_option(hospital, shoal):
    refused(
        shoal,
        "file 'in.csv': line 1 is not UTF-8; say what it is, such as --read encoding=cp1252"
        " (Western Europe), cp1250 (Central Europe), gb18030 (Chinese), cp932 (Japanese)",
        more=("--read", "encoding=utf-8"),
    )


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (export().replace(b"blau", b"bl\x81u", 1), "line 4 is not cp1252; say what it is"),
        (export("utf-8-sig"), "begins with the mark of UTF-8, so it is not cp1252; leave out"),
        (
            export().replace(b"1.200,25", b"12.00,25"),
            "attribute 'größe': 1 cell is not a number with the decimal mark ',' (row 3)",
        ),
        # a point is never taken for a decimal mark where commas are one
        (
            export().replace(b"1.200,25", b"12.5"),
            "; its numbers are written in several ways, such as with decimal points and commas;",
        ),
        (
            export().replace(b"12,5", b"").replace(b"1.200,25", b"12.5"),
            "; its numbers are written in several ways, such as with decimal points and commas;",
        ),
        (
            export().replace(b"14.03.2024", b"2024/03/14"),
            "attribute 'datum': 1 cell is not a date like %d.%m.%Y (row 3); correct it,",
        ),
    ],
)
def test_what_is_not_written_as_was_said_is_refused(hospital, shoal, content, says):
    (hospital / "in.csv").write_bytes(content)
    refused(shoal, says)


def say_less(hospital, *keys: str) -> None:
    """The policy without some of what it says of how the input is written."""
    read = {key: value for key, value in POLICY["read"].items() if key not in keys}
    (hospital / "policy.yaml").write_text(yaml.safe_dump(POLICY | {"read": read}))


def test_numbers_whose_thousands_are_grouped_without_a_word_about_them(hospital, shoal):
    say_less(hospital, "thousands")
    refused(
        shoal, "2 cells are not numbers", "digits are written otherwise: say --read thousands=."
    )
    (hospital / "in.csv").write_bytes(export().replace(b"1.200,25", b"12.00,25"))
    refused(shoal, "2 cells are not numbers", "such as --read decimal=.")


def test_decimal_commas_without_a_word_about_them(hospital, shoal):
    say_less(hospital, "decimal", "thousands")
    (hospital / "in.csv").write_bytes(export().replace(b"1.200,25", b"1200,25"))
    refused(shoal, "digits are written otherwise: say --read decimal=,")


def test_an_encoding_that_lacks_a_character(hospital, shoal):
    (hospital / "in.csv").write_bytes(export("utf-8").replace(b"blau", "青".encode()))
    refused(
        shoal,
        "output: 2 cells of 'farbe' can't be written in cp1252; say --write encoding=utf-8",
        more=("--read", "encoding=utf-8", "--write", "encoding=cp1252"),
    )


def test_intervals_that_could_not_be_parted(hospital, shoal):
    policy = POLICY | {"render": {"intervals": "{lo},{hi}"}}
    (hospital / "policy.yaml").write_text(yaml.safe_dump(policy))
    refused(
        shoal,
        "render: '{lo},{hi}' can't be parted where numbers have a decimal comma; write"
        " '{lo} - {hi}'",
    )


@pytest.mark.parametrize(
    ("setting", "says"),
    [
        ("encoding=klingon", "is not an encoding that Python knows"),
        ("encoding=base64", "is not an encoding that Python knows"),
        ("delimiter=;;", "must be one ASCII character"),
        ("thousands=,", "are the same mark"),
        ("dates=%d.%m.%y", "year of four digits"),
        ("dates=%m.%Y", "year of four digits"),
        ("decimal=x", "read.decimal"),
        ("colour=red", "is not a known key"),
        ("decimal", "--read 'decimal': is not KEY=VALUE"),
    ],
)
def test_settings_that_mean_nothing(hospital, shoal, setting, says):
    refused(shoal, says, more=("--read", setting))


def test_a_stream_says_what_it_cannot_follow(hospital, shoal):
    result = shoal("stream", "in.csv", "-p", "policy.yaml", "-o", "out.csv", status=2)
    assert "'stream' can't follow 'dates', 'decimal', 'thousands'" in result.err
    assert "streams are UTF-8" in result.err


# What a file says itself


@pytest.mark.parametrize("last", ["", "x"])
def test_a_long_note_is_read_whether_or_not_a_last_cell_is_empty(tmp_path, last):
    note = "y" * 140_000
    (tmp_path / "t.csv").write_text(f"note,last\n{note},{last}\n")
    assert files.read(str(tmp_path / "t.csv")).frame["note"].to_list() == [note]


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".tab"])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found(tmp_path, suffix, delimiter):
    path = tmp_path / f"t{suffix}"
    path.write_text(f"a{delimiter}b\n1{delimiter}2\n")
    source = files.read(str(path))
    assert source.frame.to_dicts() == [{"a": "1", "b": "2"}]
    assert source.dialect == Dialect(delimiter)


@pytest.mark.parametrize("line", ["sep=;", '"sep=;"', "SEP=;"])
def test_the_line_of_a_spreadsheet_names_the_delimiter(tmp_path, line):
    path = tmp_path / "t.csv"
    path.write_bytes(codecs.BOM_UTF8 + f"{line}\r\na,b;c\r\n1;2\r\n".encode())
    source = files.read(str(path))
    assert source.frame.to_dicts() == [{"a,b": "1", "c": "2"}]
    assert source.dialect == Dialect(";", newline="\r\n", bom=True)


@pytest.mark.parametrize(
    ("line", "names"),
    [(",age,sex", ["column_1", "age", "sex"]), ("age,column_1", ["age", "column_1"])],
)
def test_a_first_column_of_row_numbers_gets_a_name(tmp_path, line, names):
    (tmp_path / "t.csv").write_text(f"{line}\n" + ",".join("123"[: len(names)]) + "\n")
    assert files.read(str(tmp_path / "t.csv")).frame.columns == names


@pytest.mark.parametrize("line", [",column_1,sex", "age,,sex", ",,sex"])
def test_other_columns_without_a_name_are_refused(tmp_path, line):
    (tmp_path / "t.csv").write_text(f"{line}\n1,2,3\n")
    with pytest.raises(InputError):
        files.read(str(tmp_path / "t.csv"))


def test_a_delimiter_that_is_named_is_taken(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b;c\n1;2\n")
    assert files.read(str(path), reading=Reading(delimiter=";")).frame.columns == ["a,b", "c"]


@pytest.mark.parametrize(
    ("encoding", "text"), [("cp1250", "Łódź"), ("gb18030", "北京"), ("cp932", "東京")]
)
def test_a_named_encoding_is_read_and_written(tmp_path, encoding, text):
    path = tmp_path / "t.csv"
    path.write_bytes(f"a,b\n{text},1\n".encode(encoding))
    source = files.read(str(path), reading=Reading(encoding=encoding))
    assert source.frame["a"].to_list() == [text]
    assert source.dialect is not None
    files.write(source.frame, tmp_path / "out", ".csv", dialect=source.dialect)
    assert (tmp_path / "out").read_bytes() == path.read_bytes()


def test_a_spreadsheet_of_another_program_is_named(tmp_path):
    with pytest.raises(InputError, match="neither read nor written"):
        _ = Location("table.ods").kind


@pytest.mark.parametrize("name", ["idna", "hex", "rot13", "no such", "utf-8\0"])
def test_what_is_not_an_encoding_of_text(name):
    assert codec_of(name) is None


# Many files


def test_a_folder_of_parquet_is_one_table(tmp_path):
    for i in range(3):
        pl.DataFrame({"a": [i, i]}).write_parquet(tmp_path / f"part-{i}.parquet")
    (tmp_path / "_SUCCESS").touch()
    whole = files.read(str(tmp_path))
    assert whole.frame["a"].to_list() == [0, 0, 1, 1, 2, 2]
    assert files.read(str(tmp_path / "part-[01].parquet")).frame["a"].to_list() == [0, 0, 1, 1]
    assert files.table_sha256(tmp_path) == whole.sha256
    pl.DataFrame({"a": [2, 3]}).write_parquet(tmp_path / "part-2.parquet")
    assert files.table_sha256(tmp_path) != whole.sha256


# Notation


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("12,5", "12.5"),
        ("1.234.567,5", "1234567.5"),
        ("1234,5", "1234.5"),
        ("-0,5e3", "-0.5e3"),
        (" 12 ", " 12 "),
        (",5", ".5"),
        ("12.5", None),
        ("1.23", None),
        ("12,", None),
        ("1,2,3", None),
        ("", None),
    ],
)
def test_numbers_with_commas_and_groups(text, plain):
    notation = Notation(",", ".")
    assert PublishedNumbers.of(notation, None).translated(text, notation.plain) == plain


ENDS = st.decimals(-1000, 1000, allow_nan=False, places=3).map(lambda d: format(d, "f"))


@given(
    ENDS, ENDS, ENDS, st.sampled_from(["[{lo}, {hi}]", "{lo} - {hi}", "{lo}..{hi}", "<{lo};{hi}>"])
)
def test_what_is_published_with_commas_reads_back(lo, hi, mean, form):
    render, notation = Render(intervals=form), Notation(",")
    interval = form.format(lo=lo, hi=hi)
    for cell in (lo, interval, f"{mean} {interval}", f"[{lo}, {hi})"):
        there = PublishedNumbers.of(Notation(), render).translated(cell, notation.own)
        assert there is not None
        assert "." not in there.replace("..", "")
        assert PublishedNumbers.of(notation, render).translated(there, notation.plain) == cell


@pytest.mark.parametrize(
    ("form", "text", "iso"),
    [
        ("%d.%m.%Y", "1.2.2024", "2024-02-01"),
        ("%m/%d/%Y", "1/2/2024", "2024-01-02"),
        ("%d.%m.%Y %H:%M", "1.2.2024 10:30", "2024-02-01T10:30:00"),
        ("%d.%m.%Y", "31.02.2024", None),
        ("%d.%m.%Y", "2024-02-01", "2024-02-01"),
        ("%d.%m.%Y", "1.2.0010", "0010-02-01"),
    ],
)
def test_days_in_a_form(form, text, iso):
    notation = Notation(dates=form)
    assert notation.day(text) == iso
    if iso is not None:
        assert notation.day(notation.own_day(iso)) == iso


def test_a_month_stays_iso():
    assert Notation(dates="%d.%m.%Y").own_day("2024-02") == "2024-02"


# Other verbs


def test_init_reads_as_it_is_told_and_says_so_in_the_policy(hospital, shoal):
    result = shoal("policy", "init", "in.csv", *READ, "--k", "2", status=0)
    proposed = yaml.safe_load(result.out)
    assert proposed["read"] == POLICY["read"]
    assert proposed["attributes"]["größe"]["type"] == "number"
    assert proposed["attributes"]["größe"]["domain"] == [0, 1400]
    assert "dates" in proposed["attributes"]["datum"]["hierarchy"]
    (hospital / "draft.yaml").write_text(result.out, encoding="utf-8")
    assert shoal("policy", "check", "draft.yaml", "in.csv").status == 0
    assert shoal("publish", "in.csv", "-p", "draft.yaml", "-o", "out.csv").status == 0


def test_check_and_compare_read_as_they_are_told(hospital, shoal):
    say_less(hospital, *POLICY["read"])
    assert shoal("policy", "check", "policy.yaml", "in.csv").status == 2
    assert shoal("policy", "check", "policy.yaml", "in.csv", *READ).status == 0
    compared = ("compare", "in.csv", "-p", "policy.yaml", "--methods", "mondrian", "--ks", "2")
    assert shoal(*compared, *READ, "-q").status == 0


def test_a_ledger_takes_increments_of_any_dialect_and_writes_its_own(hospital, shoal):
    attributes = POLICY["attributes"] | {"datum": {"role": "drop"}, "person": {"role": "subject"}}
    policy = POLICY | {"attributes": attributes, "method": {"name": "crp"}}
    (hospital / "policy.yaml").write_text(yaml.safe_dump(policy))
    lines = export().decode("cp1252").splitlines()
    numbered = [lines[0] + ";person", *(f"{line};{i}" for i, line in enumerate(lines[1:]))]
    (hospital / "one.csv").write_bytes("\n".join(numbered).encode("cp1252"))
    ledger = ("-p", "policy.yaml", "--ledger", "ledger")
    shoal("republish", "one.csv", *ledger, status=0)
    text = (hospital / "ledger" / "0001" / "data.csv").read_text("utf-8")
    assert '"[12.5, 13.7]",grün' in text
    again = [f"{line[:-1]}{i + 10}" for i, line in enumerate(numbered[1:])]
    (hospital / "two.csv").write_text("\n".join([numbered[0], *again]), encoding="utf-8")
    shoal("republish", "two.csv", *ledger, "--read", "encoding=utf-8", status=0)
    assert shoal("audit", "--ledger", "ledger").status == 0
    result = shoal("republish", "two.csv", *ledger, "--write", "delimiter=;")
    assert "policy, write: 'republish' can't follow 'delimiter'" in result.err


def test_the_certificate_says_how_the_release_is_written(hospital, shoal):
    published(hospital, shoal)
    certificate = json.loads((hospital / "out.csv.certificate.json").read_text())
    assert certificate["output"]["dialect"] == {
        "delimiter": ";",
        "encoding": "cp1252",
        "newline": "\r\n",
        "bom": False,
        "decimal": ",",
        "dates": "%d.%m.%Y",
        "intervals": "[{lo}, {hi}]",
        "mark": "*",
        "order": "input",
    }
    shoal("verify", "out.csv", status=0)
    result = shoal("verify", "out.csv", *BESIDE)
    assert "FAIL" not in result.out
    assert "ok   measured again" in result.out


# Formulas


FORMULAS = ["=1+0", "-5", "'=1", "@x"]


def with_notes(hospital: Path, formulas: str) -> None:
    """The export with a column of notes, and a policy that says what becomes of formulas."""
    frame = pl.DataFrame(ROWS, schema=["größe", "datum", "farbe"], orient="row")
    notes = frame.with_columns(note=pl.Series(FORMULAS))
    files.write(notes, hospital / "in.csv", ".csv", dialect=Dialect(";", "cp1252"))
    attributes = POLICY["attributes"] | {"note": {"role": "plain"}}
    policy = POLICY | {"attributes": attributes, "write": {"formulas": formulas}}
    (hospital / "policy.yaml").write_text(yaml.safe_dump(policy))


def test_formulas_are_escaped_one_to_one_and_audited_as_they_were(hospital, shoal):
    with_notes(hospital, "escape")
    text = published(hospital, shoal).decode("cp1252")
    assert [row[3] for row in rows_of(text)[1:]] == ["'=1+0", "-5", "''=1", "'@x"]
    for command in ("audit", "verify"):
        result = shoal(command, "out.csv", *BESIDE, status=0)
    assert "formula" not in result.err
    (hospital / "out.csv").write_bytes(text.replace("''=1", "'=1").encode("cp1252"))
    shoal("audit", "out.csv", *BESIDE, status=1)


def test_formulas_are_refused_where_the_policy_says_so(hospital, shoal):
    with_notes(hospital, "refuse")
    refused(shoal, "column 'note': 2 cells read as spreadsheet formulas; see 'write: formulas'")
    shoal("publish", "in.csv", "-p", "policy.yaml", "-o", "out.jsonl", status=0)


def test_formulas_are_warned_of_otherwise(hospital, shoal):
    with_notes(hospital, "keep")
    text = published(hospital, shoal).decode("cp1252")
    assert [row[3] for row in rows_of(text)[1:]] == FORMULAS
    certificate = json.loads((hospital / "out.csv.certificate.json").read_text())
    assert "formula-cells" in [warning["code"] for warning in certificate["warnings"]]


YEARS = ["01.02.2023", "14.03.2023", "15.03.2024", "31.12.2024"]


@pytest.mark.parametrize("levels", [["day", "year"], ["day", "quarter", "year"], ["day", "decade"]])
def test_periods_beside_local_dates_are_read_back(folder, shoal, levels):
    """A year is a number, but not a date that was written wrongly."""
    pl.DataFrame({"datum": YEARS, "ort": ["a", "b", "a", "b"]}).write_csv("in.csv")
    policy = content_of(
        {"datum": {"role": "quasi", "hierarchy": {"dates": levels}}, "ort": "sensitive"},
        render={"order": "input"},
        read={"dates": "%d.%m.%Y"},
    )
    Path("policy.yaml").write_text(yaml.safe_dump(policy))
    shoal("publish", "in.csv", "-p", "policy.yaml", "-o", "out.csv", status=0)
    for beside in (BESIDE[:2], BESIDE):
        shoal("audit", "out.csv", *beside, status=0)


def test_months_are_not_days_of_a_form_without_marks_between(tmp_path):
    """`2024-12` is a December, although %Y-%m%d could read the second of January in it."""
    dates = {"role": "quasi", "hierarchy": {"dates": ["day", "month"]}}
    policy = Policy.from_dict(content_of({"d": dates}, 2, read={"dates": "%Y-%m%d"}))
    shown = pl.DataFrame({"d": ["2024-12", "2024-1231"]})
    frame, findings = policy.tables.cells.read_published(shown)
    assert frame["d"].to_list() == ["2024-12", "2024-12-31"]
    assert not findings


def test_a_list_of_people_is_read_like_the_original(folder, shoal):
    """The same people in two notations: an attacker with either list finds as much."""
    days = [f"2024-{month:02}-{day:02}" for month in (1, 2) for day in range(1, 13)]
    sizes = [f"{150 + 1.5 * i}" for i in range(24)]
    plain = pl.DataFrame({"größe": sizes, "datum": days, "farbe": ["grün", "blau", "rot"] * 8})
    local = plain.with_columns(
        pl.col("größe").str.replace(".", ",", literal=True),
        pl.col("datum").str.to_date().dt.strftime("%d.%m.%Y"),
    )
    policy = POLICY | {"promises": [{"model": "k-anonymity", "k": 3}]}
    dialects = {"plain": {}, "local": POLICY["read"]}
    found = {}
    for name, frame in (("plain", plain), ("local", local)):
        encoding = dialects[name].get("encoding", "utf-8")
        for file, people in (("in.csv", frame), ("list.csv", frame.drop("farbe"))):
            Path(file).write_bytes(people.write_csv(separator=";").encode(encoding))
        Path("policy.yaml").write_text(yaml.safe_dump(policy | {"read": dialects[name]}))
        published(Path.cwd(), shoal, "--replace", "-q")
        attack = ("attack", "out.csv", *BESIDE, "--attack", "linkability")
        into = ("-o", "found.json", "-q", "--replace")
        shoal(*attack, "--external", "list.csv", *into, status=0)
        found[name] = json.loads(Path("found.json").read_text())["attacks"]["linkability"]
    assert found["plain"] == found["local"]
    assert found["plain"]["external"]["candidates"]["min"] >= 3


@pytest.mark.parametrize("header", ["age\tid", '"x,y"\tage'], ids=["one column left", "a comma"])
def test_an_audit_splits_cells_as_the_certificate_says(folder, shoal, header):
    cells = "".join(f"{n}\t{n}\n" for n in range(1, 5))
    Path("in.csv").write_text(f"{header}\n{cells}")
    names = [name.strip('"') for name in header.split("\t")]
    quasi = {name: {"role": "quasi", "type": "number", "domain": [0, 9]} for name in names}
    attributes = quasi | ({"id": "drop"} if "id" in names else {})
    Path("p.json").write_text(json.dumps(content_of(attributes)))
    assert shoal("publish", "in.csv", "-p", "p.json", "-o", "out.csv", "-q").status == 0
    shoal("audit", "out.csv", "-p", "p.json", "--original", "in.csv", status=0)


AGE = {"role": "quasi", "type": "number"}
BY_HAND = {
    "=1+0": "'=1+0",
    "-5": "-5",
    "'=1": "''=1",
    "''@x": "'''@x",
    "+4.5e-3": "+4.5e-3",
    "-": "'-",
    "-5..3": "'-5..3",
    "@x": "'@x",
    "\tx": "'\tx",
    "'quoted'": "'quoted'",
    "a=b": "a=b",
    "": "",
    "[-5, 3]": "[-5, 3]",
}


@pytest.mark.parametrize("cell", BY_HAND)
def test_cells_are_escaped_as_by_hand(cell):
    for dtype in (pl.String, pl.Categorical):
        frame = pl.DataFrame({"c": pl.Series([cell], dtype=dtype)})
        assert escaped(frame)["c"].to_list() == [BY_HAND[cell]]


@given(st.lists(st.text(alphabet="'=+-@\t\r5.ea", max_size=5), min_size=1, unique=True))
def test_escaping_is_one_to_one_and_leaves_no_formula(cells):
    frame = pl.DataFrame({"c": cells, "=n": cells})
    written = escaped(frame)
    assert formula_cells(Table(written)) == {}
    assert written["c"].n_unique() == len(cells)
    assert unescaped(written).equals(frame)


def test_names_numbers_and_missing_cells():
    frame = pl.DataFrame({"=sum": [1, 2], "x": ["=a", None], "y": ["-1", "-2"]})
    assert formula_cells(Table(frame)) == {"=sum": 1, "x": 1}
    assert escaped(frame).columns == ["'=sum", "x", "y"]
    assert escaped(frame)["x"].to_list() == ["'=a", None]
    assert escaped(frame)["'=sum"].dtype == pl.Int64


def test_publish_tells_of_delimited_text_alone(folder, shoal):
    Path("in.csv").write_text('age,note\n20,=1+1\n20,"-5"\n20,"@x"\n20,ok\n')
    Path("p.yaml").write_text(yaml.safe_dump(content_of({"age": AGE, "note": "plain"}, 2)))
    for name, count in (("out.csv", 1), ("out.parquet", 0)):
        shown = shoal(*f"publish in.csv -p p.yaml -o {name} -q".split(), status=0)
        warnings = json.loads(Path(f"{name}.certificate.json").read_text())["warnings"]
        assert [warning["code"] for warning in warnings].count("formula-cells") == count
        said = "column 'note': 2 cells read as spreadsheet formulas; see 'write: formulas'"
        assert shown.err.count(said) == count


def test_an_infinite_number_reads_as_a_formula_to_publish_and_verify_alike(folder, shoal):
    pl.DataFrame({"age": [20, 20], "x": [float("-inf"), 1.5]}).write_parquet("in.parquet")
    Path("p.json").write_text(json.dumps(content_of({"age": AGE, "x": "plain"}, 2)))
    shown = shoal(*"publish in.parquet -p p.json -o out.csv -q".split(), status=0)
    assert "column 'x': 1 cell reads as a spreadsheet formula" in shown.err
    assert shoal(*"verify out.csv --policy p.json -q".split()).status == 0
