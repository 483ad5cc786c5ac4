"""Quotes that open or close no cell: readers part such records differently, so none is taken."""

import csv
import io
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.connectors import files, record_ends
from shoal.connectors.coded_files import read_coded
from shoal.connectors.dialect import AS_FOUND
from shoal.data.numba_kernels import always
from shoal.data.room import Room
from shoal.errors import InputError

# Polars reads these as one record, whose third cell holds the second person's number
MERGED = 'a,b,c,d\np0,"x",5",end\np1,66,",end\np2,flu,flu,end\n'


@pytest.fixture(params=[False, True], ids=["plain", "compiled"], autouse=True, scope="module")
def compiled(request: pytest.FixtureRequest) -> Iterator[None]:
    """Short texts are looked at by whole arrays, long ones by compiled loops."""
    with always(compiled=request.param):
        yield


@pytest.fixture
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("quotes") / "in.csv"


def test_records_that_a_lone_quote_would_make_one_are_refused(place: Path) -> None:
    place.write_text(MERGED)
    shown = r"2 records with a quote that opens or closes no cell \(rows 1, 2\); put such"
    with pytest.raises(InputError, match=shown):
        files.read(str(place))
    with pytest.raises(InputError, match=shown):
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


@given(text=st.text('""",\n\rx', max_size=40))
def test_the_quicker_look_passes_no_stray_quote(text: str) -> None:
    stray = record_ends.stray_quotes(_letters(text), ord(","), np.zeros(1, dtype=np.int64))
    assert not (stray and _pass_quicker_look(text))


@given(rows=st.lists(st.lists(st.text('",\n\rx'), min_size=2, max_size=2), min_size=1))
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_the_quicker_look_passes_what_a_writer_quotes(rows: list[list[str]], newline: str) -> None:
    written = io.StringIO(newline="")
    csv.writer(written, lineterminator=newline).writerows(rows)
    assert _pass_quicker_look(written.getvalue())


def _letters(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)


def _pass_quicker_look(text: str) -> bool:
    letters = _letters(text)
    words = letters[: len(letters) // 8 * 8].view("<u8")
    plain, compiled = record_ends.opens_or_closes.plain, record_ends.opens_or_closes.compiled
    found = compiled(letters, words, ord(","))
    assert plain(letters, words, ord(",")) == found
    return bool(found)
