"""Names that a table and its policy write in two ways, and tables of another form: said as such."""

import unicodedata

import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError

ROWS = [f"{30 + i % 4},M,a" for i in range(40)]


def refused(tmp_path, text: str, names: tuple[str, ...] = ("age", "sex", "d"), **own) -> str:
    (tmp_path / "in.csv").write_text(text, newline="")
    content = content_of(dict.fromkeys(names, "quasi") | own, 4)
    policy = shoal.Policy.from_dict(content, tmp_path)
    with pytest.raises(InputError) as said:
        shoal.publish_file(tmp_path / "in.csv", policy, tmp_path / "out.csv")
    return str(said.value)


def test_names_of_other_capitals_are_said_to_be(tmp_path):
    said = refused(tmp_path, "\n".join(["AGE,Sex , d", *ROWS]))
    assert "3 of 3 names differ from those of the policy only by capitals, blanks" in said
    assert "'AGE' for 'age'" in said


def test_names_between_another_mark_lead_to_the_delimiter(tmp_path):
    said = refused(tmp_path, "\n".join(["age,sex,d", *ROWS]).replace(",", "^"))
    assert "'^' parts those of the policy; say read={'delimiter': '^'}" in said


def test_letters_that_are_composed_otherwise_are_said_to_be(tmp_path):
    nfd = unicodedata.normalize("NFD", "âge")
    said = refused(tmp_path, "\n".join([f"{nfd},sex,d", *ROWS]), ("âge", "sex", "d"))
    assert "names differ only by capitals, blanks, marks or how letters are composed" in said


def test_lines_of_old_macs_are_said_to_be(tmp_path):
    said = refused(tmp_path, "\r".join(["age,sex,d", *ROWS]))
    assert "its lines end in carriage returns alone, as on old Macs" in said


def test_a_hierarchy_with_a_first_line_of_names_or_in_a_workbook_is_said_to_be(tmp_path):
    (tmp_path / "h.csv").write_text("sex;group\nM;*\nF;*\n")
    (tmp_path / "h.xlsx").write_bytes(b"PK\x03\x04" + 20 * b"\0")
    text = "\n".join(["age,sex,d", *ROWS])
    own = {"role": "quasi", "hierarchy": "h.csv"}
    assert "if its first line names the columns" in refused(tmp_path, text, sex=own)
    own = {"role": "quasi", "hierarchy": "h.xlsx"}
    assert "is a workbook; save its sheet as .csv" in refused(tmp_path, text, sex=own)


def test_json_that_is_read_as_csv_is_said_to_be(tmp_path):
    """As a pipe into `shoal stream -` brings it."""
    said = refused(tmp_path, '{"age": 1, "sex": "M"}\n{"age": 2, "sex": "F"}\n')
    assert "the first line is JSON" in said
    assert "whose name says that it is JSON lines" in said
