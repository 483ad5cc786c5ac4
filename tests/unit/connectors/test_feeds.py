"""Sources of a stream, read in pieces of any size."""

import contextlib
import csv
import gzip
import io
import os
import threading
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from shoal.connectors import delimited, feeds
from shoal.data.schema import Fields
from shoal.errors import InputError


def read(path, piece, lines, again=False):
    """All rows and bad records; with `again`, reopened behind every piece."""
    rows, bad = [], []
    before, feeds.PIECE = feeds.PIECE, piece
    try:
        feed = feeds.feed_of(str(path), fields=Fields(record_lines=lines))
        while True:
            found = feed.read()
            rows += zip(found.position.tolist(), found.frame.rows(), strict=True)
            bad += found.bad
            if found.at_end:
                feed.close()
                return rows, bad
            if again:
                place = feed.place
                feed.close()
                feed = feeds.feed_of(str(path), fields=Fields(record_lines=lines))
                feed.go_to(place)
    finally:
        feeds.PIECE = before


ODD = (b"a", b"1", b",", b'"', b"\n", b"\r\n", b"\xff", b'"x\ny"')
ODD_TEXT = st.lists(st.sampled_from(ODD), max_size=40).map(b"".join)


@settings(max_examples=150, deadline=None)
@given(text=ODD_TEXT, piece=st.integers(1, 9), lines=st.integers(1, 4))
@example(text=b'1,"a', piece=1, lines=4)
def test_pieces_and_reopening_change_nothing(tmp_path_factory, text, piece, lines):
    path = tmp_path_factory.mktemp("feed") / "in.csv"
    path.write_bytes(b"a,b\n" + text)
    whole = read(path, 1 << 20, lines)
    assert read(path, piece, lines) == whole
    assert read(path, piece, lines, again=True) == whole
    numbers = sorted([at for at, _ in whole[0]] + [at for at, _ in whole[1]])
    assert numbers == list(range(len(numbers)))


CELL = st.text(st.sampled_from('ab1 ,"\n'), max_size=6)


@settings(max_examples=100, deadline=None)
@given(table=st.lists(st.tuples(CELL, CELL), max_size=12), piece=st.integers(1, 30))
def test_what_a_writer_of_csv_wrote_is_read_back(tmp_path_factory, table, piece):
    path = tmp_path_factory.mktemp("feed") / "in.csv"
    text = io.StringIO()
    csv.writer(text, lineterminator="\n", quoting=csv.QUOTE_ALL).writerows([("a", "b"), *table])
    path.write_text(text.getvalue())
    rows, bad = read(path, piece, 100)
    assert not bad
    assert [row for _, row in rows] == [(a or None, b or None) for a, b in table]


@pytest.mark.parametrize("broken", [b'2,"open\n', b'2,"open,2\n', b'"2,2\n'])
def test_only_the_line_whose_quote_was_left_open_is_broken(tmp_path, broken):
    path = tmp_path / "in.csv"
    path.write_bytes(b'a,b\n1,"x, y"\n' + broken + b'3,"x, y"\n4,"two\nlines"\n5,6\n')
    rows, bad = read(path, 1 << 20, 100)
    assert [row[0] for _, row in rows] == ["1", "3", "4", "5"]
    assert bad == [(1, "a quote is left open")]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_a_named_pipe_that_trickles_is_not_waited_for(tmp_path):
    """A record every few hundredths of a second, and no end: what has come is read all the same."""
    path, done = tmp_path / "in.csv", threading.Event()
    os.mkfifo(path)

    def trickle():
        with contextlib.suppress(OSError), open(path, "wb", buffering=0) as pipe:
            pipe.write(b"a,b\n")
            while not done.wait(0.03):
                pipe.write(b"1,2\n")

    writer = threading.Thread(target=trickle, daemon=True)
    writer.start()
    feed = feeds.feed_of(str(path))
    began, records = time.monotonic(), 0
    while records < 10:
        piece = feed.read()
        assert not piece.at_end
        records += len(piece.position)
    assert time.monotonic() - began < 20
    done.set()
    while not piece.at_end:
        piece = feed.read()
    feed.close()
    writer.join()


@pytest.mark.parametrize("deep", [b"[" * 990 + b"]" * 990, b'{"a":' * 990 + b"1" + b"}" * 990])
def test_an_object_too_deep_to_be_read_is_no_first_object(tmp_path, deep):
    path = tmp_path / "in.jsonl"
    line = b'{"age": 30, "d": ' + deep + b"}"
    path.write_bytes(line + b'\n{"age": 31, "d": "x"}\n')
    feed = feeds.feed_of(str(path))
    assert feed.names == ["age", "d"]
    assert feed.read().bad == [(0, "is not a JSON object")]


@pytest.mark.parametrize(("suffix", "line"), [("csv", "a,b\n"), ("jsonl", '{"a": 1, "b": 2}\n')])
def test_an_empty_file_that_is_followed_is_waited_for(tmp_path, monkeypatch, suffix, line):
    path, parts = tmp_path / f"in.{suffix}", [line[:3], line[3:]]
    path.touch()
    with pytest.raises(InputError, match="is empty"):
        feeds.feed_of(str(path))

    def come(_):
        with path.open("a") as file:
            file.write(parts.pop(0))

    monkeypatch.setattr(feeds.time, "sleep", come)
    feed = feeds.feed_of(str(path), following=True)
    assert (feed.names, parts) == (["a", "b"], [])
    feed.close()


MOST = 1 << 17


@pytest.fixture
def short_lines(monkeypatch):
    """Bounds for first lines that tests can reach."""
    monkeypatch.setattr(delimited, "HEAD", MOST)
    monkeypatch.setattr(feeds, "LONGEST", MOST)


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".csv.gz", ".jsonl.gz"])
@pytest.mark.parametrize("beyond", [-1, 0, 1, 1 << 16])
@pytest.mark.parametrize("end", [b"\n", b""])
def test_a_first_line_is_read_up_to_its_bound(tmp_path, short_lines, suffix, beyond, end):
    begun, ended = (b'{"a": "', b'"}') if "jsonl" in suffix else (b"a", b"")
    # the line's end counts
    line = begun + b"x" * (MOST + beyond - len(begun + ended + end)) + ended + end
    path = tmp_path / f"in{suffix}"
    path.write_bytes(gzip.compress(line) if suffix.endswith(".gz") else line)
    if beyond > 0:
        with pytest.raises(InputError, match="first line is longer than"):
            feeds.feed_of(str(path))
    else:
        assert len(feeds.feed_of(str(path)).names) == 1


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl"])
@pytest.mark.parametrize("piece", [1 << 8, 1 << 16])
def test_a_first_line_without_end_is_not_read_on(tmp_path, short_lines, monkeypatch, suffix, piece):
    taken = []

    def fresh(self, most):
        taken.append(piece)
        assert sum(taken) <= MOST + piece
        return b"a" * piece

    monkeypatch.setattr(feeds.TextFeed, "_fresh", fresh)
    path = tmp_path / f"in{suffix}"
    path.touch()
    with pytest.raises(InputError, match="first line is longer than"):
        feeds.feed_of(str(path))


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".csv.gz", ".parquet", ".arrow"])
def test_no_device_is_a_source(tmp_path, suffix):
    path = tmp_path / f"in{suffix}"
    path.symlink_to("/dev/null")
    with pytest.raises(InputError, match="is not a regular file"):
        feeds.feed_of(str(path))
