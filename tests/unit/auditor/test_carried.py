"""What a forger puts into a released file where an audit of the table would not look."""

import gzip
import json
import re
import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest

import shoal
from certified_cases import with_new_hash
from sample_policies import content_of
from shoal.connectors import files
from shoal.connectors.feeds import rows_of_json
from shoal.errors import InputError
from shoal.tables.publish import publish_file

SECRET = "Jane Roe, 31"
SHEET, BOOK = "xl/worksheets/sheet1.xml", "xl/workbook.xml"


@cache
def content_published(suffix: str) -> tuple[bytes, bytes]:
    """The bytes of an honest release and of its certificate."""
    rows = [(str(20 + i % 7), "abc"[i % 3], ("flu", "ulcer")[i % 2]) for i in range(40)]
    table = pl.DataFrame(rows, schema=["age", "zip", "disease"], orient="row")
    age = {"role": "quasi", "type": "number", "round": 5, "domain": [0, 100]}
    content = content_of(
        {"age": age, "zip": "quasi", "disease": "sensitive"},
        4,
        write={"numbers": ["lo"]},
        method={"name": "mondrian"},
    )
    with TemporaryDirectory() as folder:
        table.write_csv(f"{folder}/in.csv")
        out = Path(folder, f"o{suffix}")
        policy = shoal.Policy.from_dict(content)
        assert publish_file(f"{folder}/in.csv", policy, str(out)).certificate.holds
        return out.read_bytes(), Path(f"{out}.certificate.json").read_bytes()


@pytest.fixture
def published(tmp_path):
    """Writes an honest release of this suffix beside its certificate."""

    def write(suffix: str) -> Path:
        released, certificate = content_published(suffix)
        (tmp_path / f"o{suffix}").write_bytes(released)
        (tmp_path / f"o{suffix}.certificate.json").write_bytes(certificate)
        return tmp_path / f"o{suffix}"

    return write


def output_of(released: Path) -> shoal.Check:
    """The check of how the file is written, by a certificate that names the file as it is now."""
    with_new_hash(released)
    return next(check for check in shoal.verify(released) if check.name == "output")


@pytest.mark.parametrize("suffix", [".csv.gz", ".xlsx", ".parquet", ".arrow"])
def test_an_honest_file_carries_nothing_else(published, suffix):
    assert output_of(published(suffix)).ok is True


def test_a_name_in_the_compression_is_found(published):
    released = published(".csv.gz")
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
def test_other_metadata_of_a_parquet_file_is_found(published, forged, said):
    released = published(".parquet")
    own = {"shoal": pl.read_parquet_metadata(released)["shoal"]}
    pl.read_parquet(released).write_parquet(released, metadata=own | forged)
    assert said in output_of(released).text


@pytest.mark.parametrize("suffix", [".parquet", ".arrow"])
def test_metadata_of_a_column_and_values_that_no_cell_shows_are_found(published, suffix):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import ipc, parquet

    released = published(suffix)
    frame = files.read(str(released)).frame
    table = frame.to_arrow()
    column = table.schema.field(0).with_metadata({"note": SECRET})
    table = table.cast(table.schema.set(0, column))
    hidden = frame.with_columns(pl.col("disease").cast(pl.Enum(["flu", "ulcer", SECRET])))
    if suffix == ".parquet":
        parquet.write_table(table, released)
    else:
        with pa.OSFile(str(released), "wb") as file, ipc.new_file(file, table.schema) as writer:
            writer.write_table(table)
    assert "metadata of its columns" in output_of(released).text
    (hidden.write_parquet if suffix == ".parquet" else hidden.write_ipc)(released)
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


@pytest.fixture
def workbook(published) -> Path:
    return published(".xlsx")


@pytest.mark.parametrize("name", IN_WORKBOOKS)
def test_what_a_workbook_shows_beside_its_cells_is_found(workbook, name):
    rewritten(workbook, IN_WORKBOOKS[name])
    check = output_of(workbook)
    assert check.ok is False
    assert "beside the table" in check.text
    assert SECRET not in check.text


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_what_the_archive_of_a_workbook_holds_beside_it_is_found_or_refused(workbook):
    rewritten(workbook, lambda parts: None, comment=SECRET.encode())
    assert "a comment in its archive" in output_of(workbook).text
    rewritten(workbook, lambda parts: parts.update({"xl/worksheets/sheet2.xml": "<worksheet/>"}))
    assert output_of(workbook).text.startswith("holds 1 part beside the table")
    with zipfile.ZipFile(workbook, "a") as archive:
        archive.writestr(SHEET, archive.read(SHEET))
    with pytest.raises(InputError, match="part of its archive twice"):
        files.read(str(workbook))


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


def test_a_record_of_a_stream_that_json_does_not_have_is_set_aside():
    lines = [b'{"a":1}', b'{"a":1,"a":2}', b'{"a":NaN}', b'{"a":Infinity}', b'{"a":-Infinity}']
    frame, places, bad, count = rows_of_json(lines, ["a"])
    assert (frame.rows(), places.tolist(), count) == ([("1",)], [0], 5)
    assert bad == [(1, "names a key twice"), *((at, "is not a JSON object") for at in (2, 3, 4))]


@pytest.mark.parametrize(
    "line",
    ['{"a":"\\"a\\":1","b":null}', '{"a:":"1","a":"x"}', "{}", '{"a":"\u2028 \x85"}', '{"a":"{}"}'],
)
def test_other_lines_are_read(tmp_path, line):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a":"[20, 29]","b":"x"}\n\n' + line + "\r\n", "utf-8")
    assert files.read(str(path)).frame.height == 2
