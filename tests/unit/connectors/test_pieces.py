"""Pieces of a text file: the records of all pieces are those of the file."""

import csv
import hashlib
import io

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.connectors import coded_files, files, record_ends
from shoal.connectors.coded_files import read_sampled
from shoal.connectors.dialect import AS_FOUND
from shoal.connectors.record_ends import Pieces
from shoal.errors import InputError

PARTS = st.sampled_from(["a", "b", '"', ",", "\n", "\r\n", "7", "é", " "])
CELLS = st.lists(PARTS, max_size=6).map("".join)
TABLES = st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=12)


def _written(rows: list[list[str]], newline: str) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator=newline)
    writer.writerow(["na\nme", 'a "b"'])
    writer.writerows(rows)
    return text.getvalue().encode()


@given(
    rows=TABLES,
    newline=st.sampled_from(["\n", "\r\n"]),
    piece=st.sampled_from([1, 2, 3, 7, 16, 1_000]),
    ends=st.booleans(),
)
def test_the_records_of_all_pieces_are_those_of_the_file(
    rows, newline, piece, ends, tmp_path_factory
):
    content = _written(rows, newline)
    if not ends:
        content = content[: -len(newline)]
    path = tmp_path_factory.getbasetemp() / "rows.csv"
    path.write_bytes(content)
    pieces = Pieces(path, piece)
    found = []
    for part in pieces:
        read = list(csv.reader(io.StringIO(part.decode(), newline="")))
        assert all(len(record) == 2 for record in read)  # never half a record
        found += read
    assert found == rows
    assert list(csv.reader(io.StringIO(pieces.head.decode(), newline=""))) == [["na\nme", 'a "b"']]
    assert pieces.sha256 == hashlib.sha256(content).hexdigest()


@given(rows=TABLES, piece=st.sampled_from([1, 5, 40]))
def test_polars_reads_the_same_cells_from_pieces_as_from_the_file(rows, piece, tmp_path_factory):
    content = _written(rows, "\n")
    path = tmp_path_factory.getbasetemp() / "polars.csv"
    path.write_bytes(content)
    pieces = Pieces(path, piece)
    parts = [pieces.head + part for part in pieces]
    read = [pl.read_csv(part, infer_schema=False, truncate_ragged_lines=False) for part in parts]
    assert pl.concat(read).equals(pl.read_csv(content, infer_schema=False))


@pytest.mark.parametrize("content", [b"", b"a,b", b"a,b\n"])
def test_a_file_without_records_has_no_piece(tmp_path, content):
    path = tmp_path / "rows.csv"
    path.write_bytes(content)
    pieces = Pieces(path)
    assert list(pieces) == []
    assert pieces.head == content


def test_a_quote_that_is_left_open_is_refused_before_all_is_held(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'a,b\n1,"' + b"x\n" * 4_000_000)
    with pytest.raises(InputError, match=r"more than 1 MB; a quote may be left open"):
        list(Pieces(path, piece=1 << 16, longest=1 << 20))


# A sample of a table that is too large: every so-many-th row, wherever the pieces end.


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("every", [1, 7, 1000, 9999])
def test_a_sample_is_every_so_many_th_row_of_the_whole(tmp_path, monkeypatch, suffix, every):
    monkeypatch.setattr(coded_files, "PIECE", 64)
    monkeypatch.setattr(coded_files, "PARQUET_ROWS", 50)
    whole = pl.DataFrame({"a": [str(i) for i in range(2001)], "b": ['x,"y"\n'] * 2001})
    path = tmp_path / f"t{suffix}"
    whole.write_csv(path) if suffix == ".csv" else whole.write_parquet(path)
    source, rows = read_sampled(str(path), every, AS_FOUND)
    assert rows == 2001
    assert source.frame.equals(whole.gather_every(every))
    assert source.sha256 == files.file_sha256(path)


def test_what_can_only_be_read_whole_is_not_sampled(tmp_path):
    path = tmp_path / "t.jsonl"
    path.write_text('{"a": 1}\n')
    with pytest.raises(InputError, match="too large"):
        read_sampled(str(path), 10, AS_FOUND)
    path = tmp_path / "t.csv"
    path.write_text("a,b\n")
    with pytest.raises(InputError, match="no records"):
        read_sampled(str(path), 10, AS_FOUND)


assert coded_files.PIECE == record_ends.PIECE
