"""Which table of a folder fits which column: by values, never by names."""

import json
from pathlib import Path

import polars as pl
import pytest

import shoal
from sample_policies import content_of

FRAME = pl.DataFrame(
    {
        "school": ["low", "low", "mid", "high", "?"],
        "sex": ["f", "m", "f", "m", "f"],
        "zip": ["10", "11", "12", "10", "11"],
        "born": ["10", "11", "12", "10", "11"],
    }
)


def folder(tmp_path: Path, **tables: str) -> Path:
    for name, text in tables.items():
        (tmp_path / f"{name}.csv").write_text(text.replace(" ", "\n"))
    return tmp_path


def test_values_decide_and_names_do_not(tmp_path):
    tables = folder(tmp_path, sex="low;s;* mid;s;* high;u;*", geschlecht="f;* m;*")
    found = {match.file: match for match in shoal.match_hierarchies(FRAME, tables)}
    school, sex = found["sex.csv"], found["geschlecht.csv"]
    assert (school.column, school.coverage.rows, school.values, school.steps) == ("school", 1, 3, 2)
    assert school.is_sound
    assert not school.findings
    assert not school.is_ambiguous
    assert (sex.column, sex.is_sound) == ("sex", True)
    assert "only 1 step" in sex.findings[0]


def test_a_gap_is_counted_in_rows_and_values(tmp_path):
    (match,) = shoal.match_hierarchies(FRAME, folder(tmp_path, a="low;s;* high;u;*"))
    coverage = match.coverage
    assert (coverage.column, coverage.rows) == ("school", 0.75)
    assert (coverage.missing, coverage.missing_rows) == (1, 1)


def test_missing_values_of_the_policy_need_no_place(tmp_path):
    tables = folder(tmp_path, a="low;s;* mid;s;*")
    policy = content_of({"school": "quasi"}, 2, other="drop", missing_values=["?", "high"])
    (match,) = shoal.match_hierarchies(FRAME, tables, policy)
    assert match.coverage.rows == 1
    (match,) = shoal.match_hierarchies(FRAME, folder(tmp_path, a="f;x;* m;x;*"), policy)
    assert match.column is None  # sex is not a quasi-identifier of this policy


def test_two_columns_and_two_tables_are_ambiguous_and_a_name_breaks_the_tie(tmp_path):
    text = "10;1;* 11;1;* 12;1;*"
    (match,) = shoal.match_hierarchies(FRAME, folder(tmp_path, my_born=text))
    assert match.column == "born"
    assert [one.column for one in match.fits] == ["born", "zip"]
    assert match.is_ambiguous
    first, second = shoal.match_hierarchies(FRAME, folder(tmp_path, other=text))
    assert first.also_fits == ("other.csv",)
    assert second.also_fits == ("my_born.csv",)


def test_what_is_wrong_with_a_table_is_said_and_what_is_strange_fits_nothing(tmp_path):
    tables = folder(tmp_path, bad="low;s;* low;u;* mid;s;*", icd="A;x;* B;x;*")
    (tmp_path / "cut.csv.gz").write_bytes(b"no gzip")
    bad, cut, icd = shoal.match_hierarchies(FRAME, tables)
    assert not bad.is_sound
    assert bad.column == "school"
    assert any("more than once" in finding for finding in bad.findings)
    assert (cut.column, cut.is_sound, len(cut.findings)) == (None, False, 1)
    assert (icd.column, icd.is_sound, icd.fits) == (None, True, ())


def test_a_folder_without_tables_is_refused(tmp_path):
    with pytest.raises(shoal.InputError, match="no tables"):
        shoal.match_hierarchies(FRAME, tmp_path)


def test_the_command_shows_no_value(tmp_path, shoal):
    tables = tmp_path / "tables"
    tables.mkdir()
    folder(tables, a="low;s;* mid;s;*", b="low;s;* low;u;*")
    data = tmp_path / "d.csv"
    FRAME.write_csv(data)
    shown = shoal("hierarchies", "match", data, tables, status=0).out
    assert "1 value missing, 1 row" in shown
    assert "low" not in shown
    content = json.loads(shoal("hierarchies", "match", data, tables, "--json", "-q", status=0).out)
    assert [one["column"] for one in content["files"]] == ["school", "school"]
