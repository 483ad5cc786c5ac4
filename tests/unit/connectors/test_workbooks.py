"""Excel workbooks: what is in a cell is what is read, and what is published is text."""

import io
import shutil
import struct
import subprocess
import sys
import zipfile
import zlib
from datetime import date, datetime
from pathlib import Path

import polars as pl
import pytest

from shoal.connectors import files, workbooks
from shoal.connectors.dialect import Reading
from shoal.data import regular_files
from shoal.errors import InputError, MissingExtraError

xlsxwriter = pytest.importorskip("xlsxwriter", reason="the extra 'excel' is not installed")
pytest.importorskip("python_calamine", reason="the extra 'excel' is not installed")


def office(test):
    """Marks a test that runs LibreOffice, and skips it where that is absent."""
    absent = shutil.which("soffice") is None
    reason = "LibreOffice is not installed: no 'soffice' on the path"
    return pytest.mark.office(pytest.mark.skipif(absent, reason=reason)(test))


def book(path: Path, fill) -> str:
    """A workbook whose sheet `fill` writes."""
    with xlsxwriter.Workbook(path) as made:
        fill(made, made.add_worksheet("Data"))
    return str(path)


def rows(*cells: list):
    """Writes these; a tuple is a formula with what was computed."""

    def fill(made, sheet):
        day = made.add_format({"num_format": "dd.mm.yyyy"})
        for i, row in enumerate(cells):
            for j, cell in enumerate(row):
                if isinstance(cell, str):
                    sheet.write_string(i, j, cell)
                elif isinstance(cell, (date, datetime)):
                    sheet.write_datetime(i, j, cell, day)
                elif isinstance(cell, tuple):
                    sheet.write_formula(i, j, cell[0], None, cell[1])
                elif cell is not None:
                    sheet.write(i, j, cell)

    return fill


def read(path: str | Path, **said) -> pl.DataFrame:
    return files.read(str(path), reading=Reading(**said)).frame


def refusal(path: str, **said) -> str:
    """What is said where the workbook can't be read."""
    with pytest.raises(InputError) as refused:
        read(path, **said)
    return str(refused.value)


def test_cells_are_read_as_they_stand(tmp_path):
    fill = rows(
        ["id", "age", "note", "born", "seen", "ok"],
        ["01305", 41.0, "=1+0", date(2024, 2, 1), datetime(2024, 2, 1, 10, 30), True],
        ["1305", 41.5, None, datetime(2024, 2, 2), datetime(2024, 2, 1), False],
    )
    path = book(tmp_path / "t.xlsx", fill)
    assert read(path).rows() == [
        ("01305", "41", "=1+0", "2024-02-01", "2024-02-01T10:30:00", "TRUE"),
        ("1305", "41.5", None, "2024-02-02", "2024-02-01", "FALSE"),
    ]
    local = read(path, decimal=",", dates="%d.%m.%Y")
    assert local.row(1)[:4] == ("1305", "41,5", None, "02.02.2024")


def test_blank_rows_and_columns_are_no_records(tmp_path):
    path = book(tmp_path / "t.xlsx", rows(["a", "b", ""], ["1", "2", ""], ["", "", ""], ["3"]))
    assert read(path).rows() == [("1", "2"), ("3", None)]


def test_rows_that_may_be_nobody_are_counted(tmp_path):
    def fill(made, sheet):
        rows(["a", "b"], [1, 2], [3, 4], [None, None], ["Total", 6])(made, sheet)
        sheet.set_row(2, options={"hidden": True})
        sheet.set_row(3, options={"hidden": True})

    source = files.read(book(tmp_path / "t.xlsx", fill))
    said = {one.code: one.text for one in source.remarks}
    assert said.keys() == {"empty-rows", "rows-apart", "hidden-rows"}
    assert all(text.startswith("1 row") for text in said.values())
    assert "Total" not in "".join(said.values())
    assert not files.read(book(tmp_path / "u.xlsx", rows(["a"], [1], [2]))).remarks


@pytest.mark.parametrize(
    ("fill", "says"),
    [
        (rows(["a", "a"], ["1", "2"]), "columns 1 and 2 have the same name"),
        (rows(["Report of 2024", None], ["a", "b"], ["1", "2"]), "column 2 has no name"),
        (rows(), "is empty; the first row must name the columns"),
        (rows(["id"], [1234567890123456.0], [12.0]), "column 'id': 1 cell is a number of more"),
        (rows(["a"]), "holds no records"),
        (rows(["T", "", ""], ["of 2024", "", ""], [], list("abc")), "such as read={'header': 4}"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path, fill, says):
    with pytest.raises(InputError, match=says):
        read(book(tmp_path / "t.xlsx", fill))


def test_numbers_of_sixteen_digits_lost_some(tmp_path):
    path = book(tmp_path / "t.xlsx", rows(["id"], [1e15], [-1e15], [1e15 - 1], [0.5]))
    assert refusal(path) == (
        "column 'id': 2 cells are numbers of more than 15 digits, all a spreadsheet keeps; store"
        " them as text"
    )


def several(made, sheet):
    sheet.write_string(0, 0, "a")
    sheet.write_string(1, 0, "1")
    other = made.add_worksheet("Other")
    other.write_string(0, 0, "b")
    other.write_string(1, 0, "2")
    made.add_worksheet("Hidden").hide()


def test_of_several_sheets_one_must_be_named(tmp_path):
    path = book(tmp_path / "t.xlsx", several)
    with pytest.raises(
        InputError, match=r"has 2 sheets \('Data', 'Other'\); say read={'sheet': 'NAME'}"
    ):
        read(path)
    with pytest.raises(InputError, match=r"its sheets are 'Data', 'Other'"):
        read(path, sheet="other")
    assert read(path, sheet="Other").rows() == [("2",)]


def without(path: str, value: bytes, instead: bytes = b"") -> str:
    """The workbook with other bytes in place of some, such as the computed value of formulas."""
    changed = f"{path}.2.xlsx"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for part in old.namelist():
            new.writestr(part, old.read(part).replace(value, instead))
    return changed


def test_errors_and_formulas_that_nobody_computed_are_refused(tmp_path):
    lines = [("=1/0", "#DIV/0!"), ("=1+1", 2)], [("=NA()", "#N/A"), ("=A1", "text")]
    path = book(tmp_path / "t.xlsx", rows(["a", "b"], *lines))
    assert refusal(path) == f"file '{path}': 2 cells are errors (A2, A3); fix them"
    path = without(path, b"<v>2</v>")
    assert refusal(path) == (
        f"file '{path}': 2 cells are errors and 1 is a formula without a value (A2, B2, A3); fix"
        " them"
    )


def test_a_formula_with_a_value_is_its_value(tmp_path):
    path = book(tmp_path / "t.xlsx", rows(["a", "b"], [("=40+1", 41), ('="x"', "x")]))
    assert read(path).rows() == [("41", "x")]
    with pytest.raises(InputError, match=r"1 cell is a formula without a value \(A2\)"):
        read(without(path, b"<v>41</v>"))


@pytest.mark.parametrize("empty", [b"<v/>", b"<v />", b"<v></v>", b"<v>\n</v>"])
def test_a_formula_with_an_empty_value_was_never_computed(tmp_path, empty):
    fill = rows(["a", "b"], [("=1+20", 21), 5], [("=1+1", 2)])
    path = without(book(tmp_path / "t.xlsx", fill), b"<v>21</v>", empty)
    with pytest.raises(InputError, match=r"1 cell is a formula without a value \(A2\)"):
        read(path)


def test_a_formula_may_give_an_empty_text(tmp_path):
    fill = rows(["a", "b"], ["x", "y"], [('=""', "z"), 5])
    path = without(book(tmp_path / "t.xlsx", fill), b"<v>z</v>", b"<v></v>")
    assert read(path).rows() == [("x", "y"), (None, "5")]


def test_a_workbook_that_is_not_there_is_not_called_damaged(tmp_path):
    with pytest.raises(InputError, match=r"can't be read \(No such file or directory\)"):
        read(str(tmp_path / "t.xlsx"))


def test_a_workbook_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    path = book(tmp_path / "t.xlsx", rows(["a"], ["1"]))
    monkeypatch.setattr(regular_files, "FREE", 1000)
    monkeypatch.setattr(regular_files, "RATIO", 1)
    with pytest.raises(InputError, match="unpacks to more than"):
        read(path)


@pytest.mark.parametrize("part", [b"xl/worksheets/sheet1.xml", b"xl/sharedStrings.xml"])
def test_a_workbook_whose_headers_say_that_it_unpacks_to_less_is_refused(tmp_path, part):
    """They say 100 bytes of a part, and give the sum of these."""
    path = tmp_path / "t.xlsx"
    frame = pl.DataFrame({"a": [f"person {n}" for n in range(2000)]})
    path.write_bytes(written(frame))
    with zipfile.ZipFile(path) as archive:
        begins = archive.getinfo(part.decode()).header_offset
        crc = zlib.crc32(archive.read(part.decode())[:100])
    content = bytearray(path.read_bytes())
    listed = content.rindex(part) - 46
    for at in (begins + 14, listed + 16):
        struct.pack_into("<I", content, at, crc)
        struct.pack_into("<I", content, at + 8, 100)
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"is not a complete .xlsx workbook"):
        read(path)


# Out


def written(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    workbooks.write({workbooks.SHEET: frame}, file)
    return file.getvalue()


def test_the_same_table_gives_the_same_bytes_and_text_stays_text(tmp_path):
    frame = pl.DataFrame(
        {"a": ["01305", "=1+0", "http://x.y", None, " _x000D_\t"], "b": ["-5", "é", "", "1", "2"]}
    )
    content = written(frame)
    assert content == written(frame)
    (tmp_path / "t.xlsx").write_bytes(content)
    again = read(str(tmp_path / "t.xlsx"))
    assert again.rows() == [tuple(cell or None for cell in row) for row in frame.rows()]
    with zipfile.ZipFile(tmp_path / "t.xlsx") as archive:
        sheet = archive.read("xl/worksheets/sheet1.xml")
    assert b"<f>" not in sheet
    assert b"hyperlink" not in sheet


@pytest.mark.long
def test_what_a_sheet_cannot_hold_is_refused(monkeypatch):
    with pytest.raises(InputError, match="1 cell of 'a' longer than the 32767 characters"):
        written(pl.DataFrame({"a": ["x" * 32768]}))
    with pytest.raises(InputError, match="16385 columns, a sheet holds 16384"):
        written(pl.DataFrame({str(i): ["x"] for i in range(16385)}))
    said = "^output: 1048576 rows, a sheet holds 1048575; write .csv or .parquet$"
    with pytest.raises(InputError, match=said):
        written(pl.DataFrame({"a": pl.Series(["x"]).new_from_index(0, 1_048_576)}))


@pytest.mark.parametrize("cells", [["x", None, ""], [1, None, None]])
def test_rows_without_any_value_are_refused_as_no_reader_finds_them(cells):
    with pytest.raises(InputError, match="2 rows have no value in any column"):
        workbooks.write({"one": pl.DataFrame({"a": pl.Series(cells)})}, io.BytesIO())
    two = {"a": cells, "b": ["y", "z", None]}
    with pytest.raises(InputError, match="1 row has no value in any column"):
        workbooks.write({"two": pl.DataFrame(two)}, io.BytesIO())
    workbooks.write({"none": pl.DataFrame(), "two": pl.DataFrame(two).head(2)}, io.BytesIO())


def test_without_the_extra_the_way_to_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    monkeypatch.setitem(sys.modules, "xlsxwriter", None)
    (tmp_path / "t.xlsx").write_bytes(b"x")
    with pytest.raises(MissingExtraError, match=r"needs the extra 'excel'.*\[excel\]"):
        read(str(tmp_path / "t.xlsx"))
    with pytest.raises(MissingExtraError, match=r"\[excel\]"):
        written(pl.DataFrame({"a": ["1"]}))


# Written by another program


def converted(folder: Path, name: str, into: str, *options: str) -> None:
    """Writes a file in another format beside it, by LibreOffice."""
    begin = ["soffice", "--headless", f"-env:UserInstallation=file://{folder}/profile"]
    end = ["--convert-to", into, "--outdir", str(folder), str(folder / name)]
    command = [*begin, *options, *end]
    subprocess.run(command, check=True, capture_output=True, timeout=180)


@office
def test_what_libreoffice_saves_reads_as_it_was(tmp_path):
    (tmp_path / "t.csv").write_text("id,age,born\n01305,41,x\n00007,5,y\n")
    # comma, quote, UTF-8, from line 1, all columns as text
    converted(tmp_path, "t.csv", "xlsx", "--infilter=CSV:44,34,76,1,1/2/2/2/3/2")
    assert read(str(tmp_path / "t.xlsx")).equals(files.read(str(tmp_path / "t.csv")).frame)


@office
def test_libreoffices_title_numbers_and_dates_are_read(tmp_path):
    (tmp_path / "t.csv").write_text(
        '"Ward 3, autumn"\nid,weight,admitted\n01305,71.5,01.02.2024\n00007,70,29.02.2024\n'
    )
    # the second column as it stands, the third as dates, day first
    converted(tmp_path, "t.csv", "xlsx", "--infilter=CSV:44,34,76,1,1/2/2/1/3/4")
    path = str(tmp_path / "t.xlsx")
    with pytest.raises(InputError, match="as a title has"):
        read(path)
    assert read(path, header=2).row(0) == ("01305", "71.5", "2024-02-01")
    found = read(path, header=2, decimal=",", dates="%d.%m.%Y")
    assert found.rows() == [("01305", "71,5", "01.02.2024"), ("00007", "70", "29.02.2024")]


@office
def test_what_libreoffice_exports_for_old_programs_is_read(tmp_path):
    (tmp_path / "t.csv").write_text("id,place\n01305,Süd; Ost\n00007,\n")
    converted(tmp_path, "t.csv", "ods", "--infilter=CSV:44,34,76,1,1/2/2/2")
    (tmp_path / "t.csv").unlink()
    # semicolon, quote, Windows Western Europe
    converted(tmp_path, "t.ods", "csv:Text - txt - csv (StarCalc):59,34,1,1")
    path = str(tmp_path / "t.csv")
    with pytest.raises(InputError, match="line 2 is not UTF-8"):
        files.read(path)
    found = files.read(path, reading=Reading("cp1252")).frame
    assert found.rows() == [("01305", "Süd; Ost"), ("00007", None)]


@office
def test_what_is_published_opens_in_libreoffice(tmp_path):
    frame = pl.DataFrame({"id": ["01305", "=1+0"], "note": ["a, b", None]})
    (tmp_path / "t.xlsx").write_bytes(written(frame))
    converted(tmp_path, "t.xlsx", "csv:Text - txt - csv (StarCalc):44,34,76,1")
    assert files.read(str(tmp_path / "t.csv")).frame.equals(frame)


def titled(path: Path, merged_below: str = "") -> str:
    """A sheet with a merged title, a blank row, and its names in row 3."""
    with xlsxwriter.Workbook(path) as made:
        sheet = made.add_worksheet()
        sheet.merge_range(0, 0, 0, 2, "Ward 3, autumn")
        for row, cells in enumerate((["age", "sex", "ill"], [30, "f", "flu"], [31, "m", ""]), 2):
            sheet.write_row(row, 0, cells)
        if merged_below:
            sheet.merge_range(merged_below, "cold")
    return str(path)


def test_a_title_above_the_names_is_called_one_and_passed_over_where_that_is_said(tmp_path):
    path = titled(tmp_path / "title.xlsx")
    with pytest.raises(InputError, match=r"as a title has; say .* such as read={'header': 3}"):
        read(path)
    assert read(path, header=3).rows(named=True) == [
        {"age": "30", "sex": "f", "ill": "flu"},
        {"age": "31", "sex": "m", "ill": None},
    ]
    with pytest.raises(InputError, match=r"has no row 6; correct read={'header': \.\.\.}"):
        read(path, header=6)


def test_merged_cells_among_the_records_are_refused(tmp_path):
    path = titled(tmp_path / "merged.xlsx", "C4:C5")
    assert refusal(path, header=3) == (
        f"file '{path}': 1 range of cells is merged below the names (C4:C5), so that only the"
        " first cell of each has a value; split and fill them"
    )


def test_a_blank_row_below_a_merged_title_is_not_proposed_as_the_names(tmp_path):
    def fill(made, sheet):
        for row, title in enumerate(("Ward 3", "of 2024")):
            sheet.merge_range(row, 0, row, 2, title)
        for row, cells in enumerate((list("abc"), list("123")), 3):
            sheet.write_row(row, 0, cells)

    path = book(tmp_path / "t.xlsx", fill)
    with pytest.raises(InputError, match=r"say read={'header': 4} if row 4 names the columns"):
        read(path)
    with pytest.raises(InputError, match=r"is blank; .* such as read={'header': 4}"):
        read(path, header=3)


@pytest.mark.parametrize("start", [b"PK\x03\x04", b"PAR1", b"ARROW1"])
def test_a_file_of_another_format_named_as_text_is_called_by_its_format(tmp_path, start):
    path = tmp_path / "t.csv"
    path.write_bytes(start + b"\0\1\2")
    with pytest.raises(InputError, match=r"not text; give it a name that ends in \.[a-z]+$"):
        files.read_as(path, ".csv")


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_a_title_without_a_separator_is_not_the_name_of_the_only_column(tmp_path, separator):
    path = tmp_path / "t.csv"
    path.write_text("Ward 3\n\nage;sex\n30;f\n31;m\n".replace(";", separator))
    with pytest.raises(InputError, match=r"those from line 3 on .*; say read={'header': 3}"):
        files.read_as(path, ".csv")
    assert files.read_as(path, ".csv", reading=Reading(header=3)).frame.shape == (2, 2)


@pytest.mark.parametrize("text", ["note\na;b\nc\n", "note\na, b\nc, d\n", "note\na;b\n"])
def test_a_column_of_texts_may_hold_separators(tmp_path, text):
    path = tmp_path / "t.csv"
    path.write_text(text)
    found = files.read_as(path, ".csv", reading=Reading(delimiter="|")).frame
    assert found.columns == ["note"]
    if "," not in text:  # a .csv is parted by commas if nothing else is said
        assert files.read_as(path, ".csv").frame.equals(found)


def test_merged_cells_right_below_a_title_may_be_a_second_title(tmp_path):
    path = titled(tmp_path / "merged.xlsx", "A2:C2")
    with pytest.raises(InputError, match=r"or say read={'header': 3} if row 3 names the columns"):
        read(path)
    assert read(path, header=3).height == 2


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Ward 3;;\nage;sex;ill\n30;f;flu\n", "one cell for 3 columns, as a title has"),
        ("Ward 3\nage;sex;ill\n30;f;flu\n", "if the first line is a title, say which one names"),
    ],
)
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_a_title_above_a_text_table_is_called_one_and_passed_over(tmp_path, text, says, end):
    path = tmp_path / "title.csv"
    path.write_text(text, newline=end)
    with pytest.raises(InputError, match=says):
        files.read_as(path, ".csv", reading=Reading(delimiter=";"))
    found = files.read_as(path, ".csv", reading=Reading(header=2))
    assert found.frame.rows(named=True) == [{"age": "30", "sex": "f", "ill": "flu"}]
    assert found.dialect is not None
    assert found.dialect.newline == end
    with pytest.raises(InputError, match="has no line 9"):
        files.read_as(path, ".csv", reading=Reading(header=9))


def test_lines_count_from_the_top_of_the_file_whatever_is_passed_over(tmp_path):
    path = tmp_path / "title.csv"
    path.write_bytes(b"sep=;\nWard 3\nage;ill\n30;flu\n31;gr\xfcn\n")
    with pytest.raises(InputError, match="line 5 is not UTF-8"):
        files.read_as(path, ".csv", reading=Reading(header=3))
    found = files.read_as(path, ".csv", reading=Reading("cp1252", header=3))
    assert found.frame.rows() == [("30", "flu"), ("31", "grün")]


TABLE = rows(["age", "ill"], ["1", "x"], ["2", "y"], ["3", "z"])
SHARED = b't="s"><v>2</v>'


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (SHARED, b"><v>7<!-- -->7</v>"),
        (SHARED, b"><v>7<? ?>7</v>"),
        (SHARED, b"><v>7&#55;</v>"),
        (SHARED, b"><v>7<b>7</b></v>"),
        (SHARED, b"><v><![CDATA[77]]></v>"),
        (SHARED, b't="s"><v>&#50;</v>'),
        (SHARED, b't="s"><v> 2 </v>'),
        (SHARED, b't="s"><v>-1</v>'),
        (SHARED, b't="s"><v>99</v>'),
        (SHARED, b't="inlineStr"><is><t>a<![CDATA[b]]></t></is>'),
        (b"<t>x</t>", b"<t><![CDATA[x]]></t>"),
        (b"<workbook ", b'<!DOCTYPE x [<!ENTITY e "e">]><workbook '),
        (b'r="B3"', b'r="A3"'),
        (b'<row r="4"', b'</sheetData><sheetData><row r="4"'),
    ],
)
def test_a_value_that_programs_read_in_different_ways_is_refused(tmp_path, old, new):
    path = book(tmp_path / "t.xlsx", TABLE)
    with pytest.raises(InputError, match="not a complete"):
        read(without(path, old, new))


@pytest.mark.parametrize("sign", [b"=", b" =", b"= ", b"\n=\t"])
@pytest.mark.parametrize("quote", [b'"', b"'"])
def test_attributes_count_however_xml_lets_them_be_written(tmp_path, sign, quote):
    path = book(tmp_path / "t.xlsx", TABLE)
    hidden = b"hidden" + sign + quote + b"1" + quote
    changed = without(path, b'<row r="3"', b'<row r="3" ' + hidden)
    assert "1 row of the sheet is hidden" in files.read(changed).remarks[0].text
    path = book(tmp_path / "u.xlsx", TABLE)
    is_error = b"t" + sign + quote + b"e" + quote + b"><v>#REF!</v>"
    with pytest.raises(InputError, match="1 cell is an error"):
        read(without(path, SHARED, is_error))


@pytest.mark.parametrize("index", [b"8", b"08", b"0</v><v>8"])
@pytest.mark.parametrize(
    "row", ['<row r="{0}"><c r="A{0}" t="s">', '<row><c t="s">', "<row><c t ='s'>"]
)
def test_a_text_that_many_cells_share_is_counted_for_each(tmp_path, monkeypatch, row, index):
    path = book(tmp_path / "t.xlsx", TABLE)
    long = b"<si><t>" + b"x" * 30_000 + b"</t></si></sst>"
    cells = "".join(f"{row.format(n)}<v>8</v></c></row>" for n in range(5, 105)).encode()
    more = cells.replace(b"8</v>", index + b"</v>") + b"</sheetData>"
    changed = without(without(path, b"</sst>", long), b"</sheetData>", more)
    assert read(changed).height == 103
    monkeypatch.setattr(regular_files, "RATIO", 0)
    monkeypatch.setattr(regular_files, "FREE", 2_900_000)
    with pytest.raises(InputError, match="unpacks to more than 3 MB"):
        read(changed)
    assert read(changed, unpacked=3_100_000).height == 103


def test_cells_without_a_place_follow_one_another(tmp_path):
    path = book(tmp_path / "t.xlsx", TABLE)
    wide = b"".join(b"<row>" + b"<c><v>1</v></c>" * 9 + b"</row>" for _ in range(9_000))
    assert read(without(path, b"</sheetData>", wide + b"</sheetData>")).height == 9_003


FAR = [b"B1048577", b"XFE3", b"AAAA3", b"ZZZZZ3", b"ZZZ1048576", b"B1073741824"]
FAR += [b"B4294967295", b"B4294967299", b"B99999999999", b"B" + b"9" * 5000]
NO_PLACE = [b"", b"B", b"3", b"B0", b"0B", b"$B$3", b"B3:C3", b" B3", b"B3 ", b"B-3", b"B+3"]
NO_PLACE += [b"B3.0", b"B\xc2\xb3", b"\xc3\x843", b"B3B", b"?"]


@pytest.mark.parametrize("place", FAR + NO_PLACE)
def test_a_cell_beyond_all_sheets_is_damage(tmp_path, place):
    path = without(book(tmp_path / "t.xlsx", TABLE), b'r="B3"', b'r="' + place + b'"')
    assert refusal(path) == (
        f"file '{path}': is not a complete .xlsx workbook; save it again, or name it .csv if it is"
        " text"
    )
    with pytest.raises(InputError, match="not a complete"):
        workbooks.first_rows(path, Reading(), 5)


ROW = [b"", b"0", b"-3", b"+3", b" 3", b"3 ", b"3.0", b"3e0", b"x", b"B3", b"1048577", b"\xc2\xb3"]
ROW += [b"4294967295", b"4294967299", b"99999999999", b"9" * 5000]


@pytest.mark.parametrize("number", ROW)
@pytest.mark.parametrize("place", [b'r="A3"', b""])
def test_a_row_beyond_all_sheets_is_damage(tmp_path, number, place):
    path = without(book(tmp_path / "t.xlsx", TABLE), b'<row r="3"', b'<row r="' + number + b'"')
    assert "is not a complete .xlsx workbook" in refusal(without(path, b'r="A3"', place))


def test_the_last_cell_of_a_sheet_has_a_place_and_none_follows_it(tmp_path, monkeypatch):
    monkeypatch.setattr(regular_files, "FREE_CELLS", 10)
    path = book(tmp_path / "t.xlsx", TABLE)
    last = b'<row r="1048576"><c r="XFD1048576"><v>1</v></c>'
    sheet = without(path, b"</sheetData>", last + b"</row></sheetData>")
    assert "reaches over 17179869184 cells" in refusal(sheet)
    for beyond in (b"<c><v>1</v></c></row>", b"</row><row><c><v>1</v></c></row>", b"</row><row/>"):
        sheet = without(path, b"</sheetData>", last + beyond + b"</sheetData>")
        assert "is not a complete .xlsx workbook" in refusal(sheet)


@pytest.mark.parametrize("place", [b"b3", b"B03", b"B0000003"])
def test_a_place_may_be_written_in_other_ways(tmp_path, place):
    path = book(tmp_path / "t.xlsx", TABLE)
    assert read(without(path, b'r="B3"', b'r="' + place + b'"')).equals(read(path))


TEXTS = b'uniqueCount="8"'
"""How many texts the workbook of TABLE says that its cells share."""


@pytest.mark.parametrize(
    "count", [b"", b"0", b"3", b"9", b"80", b"200000", b"-1", b"+9", b" 9", b"1e7", b"x", None]
)
@pytest.mark.parametrize("uses", [b"0", b"4294967295", b"9" * 30, b"x"])
def test_a_count_of_texts_that_is_wrong_and_costs_nothing_is_passed_over(tmp_path, count, uses):
    path = book(tmp_path / "t.xlsx", TABLE)
    said = b"" if count is None else b'uniqueCount="' + count + b'"'
    changed = without(without(path, TEXTS, said), b' count="8"', b' count="' + uses + b'"')
    assert read(changed).equals(read(path))


@pytest.mark.parametrize(
    "count", [b"3000000", b"4294967295", b"18446744073709551615", b"9" * 20, b"9" * 5000]
)
@pytest.mark.parametrize("is_first", [True, False])
def test_a_count_of_texts_for_which_memory_would_be_taken_is_damage(tmp_path, count, is_first):
    said = b'uniqueCount="' + count + b'"'
    nested = TEXTS + b"><sst " + said + b"/><si/"
    path = without(book(tmp_path / "t.xlsx", TABLE), TEXTS, said if is_first else nested)
    assert "is not a complete .xlsx workbook" in refusal(path)
    with pytest.raises(InputError, match="not a complete"):
        workbooks.first_rows(path, Reading(), 0)


def test_any_number_of_texts_that_are_there_may_be_counted(tmp_path, monkeypatch):
    path = book(tmp_path / "t.xlsx", TABLE)
    monkeypatch.setattr(workbooks, "TEXT", 1 << 40)
    assert read(path).height == 3
    assert "is not a complete .xlsx workbook" in refusal(without(path, TEXTS, b'uniqueCount="9"'))


@pytest.mark.parametrize("value", [b"1E400", b"nan"])
def test_a_number_that_no_sheet_holds_is_damage(tmp_path, value):
    path = book(tmp_path / "t.xlsx", rows(["id", "x"], ["a", 77]))
    path = without(path, b"<v>77</v>", b"<v>" + value + b"</v>")
    for reader in (read, lambda path: workbooks.first_rows(path, Reading(), 5)):
        with pytest.raises(InputError, match="not a complete"):
            reader(path)


def test_a_duration_longer_than_any_is_damage(tmp_path):
    def fill(made, sheet):
        sheet.write_row(0, 0, ["id", "x"])
        sheet.write_number(1, 1, 1e10, made.add_format({"num_format": "[h]:mm:ss"}))

    with pytest.raises(InputError, match="not a complete"):
        read(book(tmp_path / "t.xlsx", fill))


def test_the_first_rows_of_a_sheet_that_reaches_too_far_are_not_shown(tmp_path, monkeypatch):
    monkeypatch.setattr(regular_files, "FREE_CELLS", 10)

    def fill(made, sheet):
        sheet.write_row(0, 0, ["id", "x"])
        sheet.write(99, 99, 1)

    path = book(tmp_path / "t.xlsx", fill)
    assert workbooks.first_rows(path, Reading(), 5) == (["Data"], [])
    with pytest.raises(InputError, match="stands far from the others"):
        read(path)


def test_zeros_that_a_mask_shows_are_kept_and_durations_are_hours(tmp_path):
    book = xlsxwriter.Workbook(tmp_path / "masks.xlsx")
    sheet = book.add_worksheet()
    code, hours = (book.add_format({"num_format": mask}) for mask in ("00000", "[h]:mm"))
    sheet.write_row(0, 0, ["plz", "mixed", "stay"])
    for row, (plz, days) in enumerate([(1305, 2.5), (13053, 0.0625), (99, 1.000011574074074)], 1):
        sheet.write_number(row, 0, plz, code)
        sheet.write_number(row, 1, plz, code if row == 1 else None)
        sheet.write_number(row, 2, days, hours)
    book.close()
    frame = files.read(str(tmp_path / "masks.xlsx")).frame
    assert frame["plz"].to_list() == ["01305", "13053", "00099"]
    assert frame["mixed"].to_list() == ["1305", "13053", "99"]
    assert frame["stay"].to_list() == ["60:00", "1:30", "24:00:01"]
