"""What a forger puts into a released file where an audit of the table would not look."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zipfile
from pathlib import Path

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.connectors import files
from shoal.connectors.feeds import rows_of_json
from shoal.errors import InputError
from shoal.tables.publish import publish_file

SECRET = "Jane Roe, 31"
SHEET, BOOK = "xl/worksheets/sheet1.xml", "xl/workbook.xml"


def published(folder: Path, name: str) -> Path:
    rows = [(str(20 + i % 7), "abc"[i % 3], ("flu", "ulcer")[i % 2]) for i in range(40)]
    table = pl.DataFrame(rows, schema=["age", "zip", "disease"], orient="row")
    quasi = {"role": "quasi"}
    policy = content_of(
        {
            "age": quasi | {"type": "number", "round": 5, "domain": [0, 100]},
            "zip": quasi,
            "disease": {"role": "sensitive"},
        },
        4,
        write={"numbers": ["lo"]},
        method={"name": "mondrian"},
    )
    table.write_csv(folder / "in.csv")
    asked = shoal.Policy.from_dict(policy)
    assert publish_file(str(folder / "in.csv"), asked, str(folder / name)).certificate.holds
    return folder / name


def output_of(released: Path) -> shoal.Check:
    """The check of how the file is written, by a certificate that names the file as it is now."""
    proof = Path(f"{released}.certificate.json")
    content, written = json.loads(proof.read_text()), released.read_bytes()
    content["output"] |= {"sha256": hashlib.sha256(written).hexdigest(), "bytes": len(written)}
    proof.write_text(json.dumps(content))
    return next(check for check in shoal.verify(released) if check.name == "output")


@pytest.mark.parametrize("suffix", [".csv.gz", ".xlsx", ".parquet", ".arrow"])
def test_an_honest_file_carries_nothing_else(tmp_path, suffix):
    assert output_of(published(tmp_path, f"o{suffix}")).ok is True


def test_a_name_in_the_compression_is_found(tmp_path):
    released = published(tmp_path, "o.csv.gz")
    content = gzip.decompress(released.read_bytes())
    with open(released, "wb") as file, gzip.GzipFile(SECRET, "wb", fileobj=file) as packed:
        packed.write(content)
    assert "a name or a comment in its compression" in output_of(released).text


@pytest.mark.parametrize(
    ("forged", "said"),
    [
        ({"shoal": json.dumps([SECRET])}, "another description of its columns"),
        ({"original": SECRET}, "holds 1 entry of metadata beside the table"),
    ],
)
def test_other_metadata_of_a_parquet_file_is_found(tmp_path, forged, said):
    released = published(tmp_path, "o.parquet")
    own = {"shoal": pl.read_parquet_metadata(released)["shoal"]}
    pl.read_parquet(released).write_parquet(released, metadata=own | forged)
    assert said in output_of(released).text


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_metadata_of_a_column_is_found(tmp_path, suffix):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import ipc, parquet

    released = published(tmp_path, f"o{suffix}")
    table = files.read(str(released)).frame.to_arrow()
    column = table.schema.field(0).with_metadata({"note": SECRET})
    table = table.cast(table.schema.set(0, column))
    if suffix == ".parquet":
        parquet.write_table(table, released)
    else:
        with pa.OSFile(str(released), "wb") as file, ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert "metadata of its columns" in output_of(released).text


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_a_list_of_values_that_no_cell_shows_is_found(tmp_path, suffix):
    released = published(tmp_path, f"o{suffix}")
    hidden = pl.Enum(["flu", "ulcer", SECRET])
    frame = files.read(str(released)).frame.with_columns(pl.col("disease").cast(hidden))
    if suffix == ".parquet":
        frame.write_parquet(released)
    else:
        frame.write_ipc(released)
    assert "a list of values that no cell may show" in output_of(released).text


def with_part(part: str, pattern: str, replacement: str):
    """A change of a workbook: what is put in the place of a pattern, in one of its parts."""

    def change(parts: dict[str, str]) -> None:
        changed = re.sub(pattern, replacement, parts[part], count=1)
        assert changed != parts[part]
        parts[part] = changed

    return change


IN_WORKBOOKS = {
    "author": with_part("docProps/core.xml", "<dc:creator>", f"<dc:creator>{SECRET}"),
    "company": with_part("docProps/app.xml", "<Company>", f"<Company>{SECRET}"),
    "print header": with_part(
        SHEET, "</worksheet>", f"<headerFooter><oddHeader>{SECRET}</oddHeader></headerFooter>\\g<0>"
    ),
    "formula": with_part(SHEET, '<c r="C2" t="s"><v>', f'<c r="C2" t="s"><f>"{SECRET}"</f><v>'),
    "comment": with_part(SHEET, "<sheetData>", f"<!--{SECRET}-->\\g<0>"),
    "name": with_part(BOOK, "</sheets>", "\\g<0><definedNames/>"),
    "sheet": with_part(BOOK, 'name="data"', f'name="{SECRET}"'),
    "pronunciation": with_part("xl/sharedStrings.xml", "</t></si>", "</t><rPh/></si>"),
    "format": with_part(
        "xl/styles.xml", "<fonts", '<numFmts><numFmt formatCode="x"/></numFmts><fonts'
    ),
}


def rewritten(released: Path, change, comment: bytes = b"") -> None:
    with zipfile.ZipFile(released) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(released, "w") as archive:
        archive.comment = comment
        for name, part in parts.items():
            archive.writestr(name, part)


@pytest.fixture(scope="module")
def workbook(tmp_path_factory) -> Path:
    return published(tmp_path_factory.mktemp("workbook"), "o.xlsx")


@pytest.fixture
def copied(workbook, tmp_path) -> Path:
    for beside in ("", ".certificate.json"):
        Path(f"{tmp_path}/o.xlsx{beside}").write_bytes(Path(f"{workbook}{beside}").read_bytes())
    return tmp_path / "o.xlsx"


@pytest.mark.parametrize("name", IN_WORKBOOKS)
def test_what_a_workbook_shows_beside_its_cells_is_found(copied, name):
    rewritten(copied, IN_WORKBOOKS[name])
    check = output_of(copied)
    assert check.ok is False
    assert "beside the table" in check.text
    assert SECRET not in check.text


def test_a_comment_of_the_archive_is_found(copied):
    rewritten(copied, lambda parts: None, comment=SECRET.encode())
    assert "a comment in its archive" in output_of(copied).text


def test_a_hidden_sheet_is_found(copied):
    with zipfile.ZipFile(copied, "a") as archive:
        archive.writestr("xl/worksheets/sheet2.xml", "<worksheet/>")
    assert output_of(copied).text.startswith("holds 1 part beside the table")


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_workbook_with_two_sheets_of_one_name_is_refused(copied):
    with zipfile.ZipFile(copied, "a") as archive:
        archive.writestr(SHEET, archive.read(SHEET))
    with pytest.raises(InputError, match="part of its archive twice"):
        files.read(str(copied))


# JSON lines: Shoal reads the first of two values, most programs the last


@pytest.mark.parametrize(
    "line",
    [
        '{"a":"[20, 29]","b":"x","a":"23"}',
        '{ "a" : "[20, 29]" , "a" : "23" }',
        '{"a":"[20, 29]","b":"x","\\u0061":"23"}',
        '{"a":"1","\u2028":"1","\u2028":"2"}',
        '{"a":null,"a":"23"}',
        '{"a":"\\"b\\":1}","a":"23"}',
    ],
)
def test_a_key_that_a_line_names_twice_is_refused(tmp_path, line):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a":"[20, 29]","b":"x"}\n\n' + line + "\n", "utf-8")
    with pytest.raises(InputError, match=r"1 line names a key twice \(line 3\)"):
        files.read(str(path))


def test_a_record_of_a_stream_that_names_a_key_twice_is_set_aside():
    lines = [b'{"a":1}', b'{"a":1,"a":2}']
    frame, places, bad, count = rows_of_json(lines, ["a"])
    assert (frame.rows(), places.tolist(), count) == ([("1",)], [0], 2)
    assert bad == [(1, "names a key twice")]


@pytest.mark.parametrize("number", [b"NaN", b"Infinity", b"-Infinity"])
def test_a_record_of_a_stream_with_a_number_that_json_does_not_have_is_set_aside(number):
    frame, _, bad, _ = rows_of_json([b'{"a":' + number + b"}", b'{"a":1}'], ["a"])
    assert (frame.rows(), bad) == ([("1",)], [(0, "is not a JSON object")])


@pytest.mark.parametrize(
    "line",
    ['{"a":"\\"a\\":1","b":null}', '{"a:":"1","a":"x"}', "{}", '{"a":"\u2028 \x85"}', '{"a":"{}"}'],
)
def test_other_lines_are_read(tmp_path, line):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a":"[20, 29]","b":"x"}\n\n' + line + "\r\n", "utf-8")
    assert files.read(str(path)).frame.height == 2
