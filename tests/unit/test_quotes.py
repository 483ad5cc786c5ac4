"""Quotes that open or close no cell: readers part such records differently, so none is taken."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.connectors import files
from shoal.connectors.coded_files import read_coded
from shoal.connectors.dialect import AS_FOUND
from shoal.data.room import Room
from shoal.errors import InputError

# Polars reads these as one record, whose third cell holds the second person's number
MERGED = 'a,b,c,d\np0,"x",5",end\np1,66,",end\np2,flu,flu,end\n'


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quotes") / "in.csv"


def test_records_that_a_lone_quote_would_make_one_are_refused(place: Path) -> None:
    place.write_text(MERGED)
    told = r"2 records with a quote that opens or closes no cell \(row 1, row 2\); put such"
    with pytest.raises(InputError, match=told):
        files.read(str(place))
    with pytest.raises(InputError, match=told):
        read_coded(place, ".csv", AS_FOUND, Room(1 << 20))


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ('a,b\n1,x "y" z\n', [("1", 'x "y" z')]),
        ('a,b\n1,"x ""y"""\r\n2,z\n', [("1", 'x "y"'), ("2", "z")]),
        ('\ufeff"a","b"\n1,"x\n""y"""', [("1", 'x\n"y"')]),
    ],
)
def test_quotes_that_all_readers_take_alike_are_read(text, rows, place: Path) -> None:
    place.write_text(text, newline="")
    assert files.read(str(place)).frame.rows() == rows


@pytest.mark.parametrize("line", ['1,5" pipe', '1,"x"y', '1,"x', '"1" ,2', '1,"x""y"z', '1,"x"\r.'])
def test_a_quote_that_opens_or_closes_no_cell_is_refused(line: str, place: Path) -> None:
    place.write_text(f"a,b\n{line}\n", newline="")
    with pytest.raises(InputError, match=r"1 record with a quote .* \(row 1\)"):
        files.read(str(place))


CELLS = st.sampled_from(["flu", "longer text here", "", '"x"', 'a"b', '"', '5"', '"x\ny"', 'u"v"w'])


@given(
    lines=st.lists(st.lists(CELLS, min_size=4, max_size=4).map(",".join), min_size=1, max_size=6),
    newline=st.sampled_from(["\n", "\r\n"]),
)
def test_what_is_read_is_what_another_reader_finds(lines, newline, tmp_path_factory) -> None:
    place = tmp_path_factory.getbasetemp() / "quotes.csv"
    text = newline.join(["a,b,c,d", *lines, ""])
    place.write_text(text, newline="")
    expected = list(csv.reader(io.StringIO(text, newline="")))[1:]
    try:
        found = files.read(str(place)).frame.rows()
    except InputError:
        return
    assert [[cell or "" for cell in row] for row in found] == expected
