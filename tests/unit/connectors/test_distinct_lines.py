"""Text whose lines repeat: each different one is parsed once, and nobody can tell."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sample_policies import content_of
from shoal.connectors import delimited, files, record_ends
from shoal.connectors.dialect import Reading
from shoal.connectors.record_ends import lines_of
from shoal.data.table import RepeatedTable, Table
from shoal.errors import InputError
from shoal.policy.policy import Policy
from shoal.samples import sample
from shoal.tables.publish import publish_file

LINES = st.lists(st.text('ab,"\r ä', max_size=6), min_size=1, max_size=40)


def naive(lines: list[bytes]) -> tuple[list[bytes], list[int]] | None:
    if any(line[:1] in (b"", b"\r") or line.count(b'"') % 2 for line in lines):
        return None
    different = list(dict.fromkeys(lines))
    return different, [different.index(line) for line in lines]


@given(LINES, st.booleans(), st.integers(4, 300))
def test_each_different_line_is_found_once(texts, ends, chunk):
    lines = [text.encode() for text in texts]
    content = b"a,b\n" + b"\n".join(lines) + (b"\n" if ends else b"")
    if not ends and not lines[-1]:  # which is no line
        lines.pop()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_ends, "CHUNK", chunk)
        found = lines_of(np.frombuffer(content, dtype=np.uint8), 4) if lines else None
    expected = naive(lines) if lines else None
    if expected is not None and len(content) <= chunk:
        assert found is not None
    if found is not None:
        assert found.content == b"a,b\n" + b"".join(line + b"\n" for line in expected[0])
        assert found.different == len(expected[0])
        assert found.line_of.tolist() == expected[1]


def shown(content: bytes) -> pl.DataFrame | tuple[str, ...]:
    try:
        return delimited.read(content, "x.csv", ".csv", ("b",), Reading())[0].frame
    except InputError as refused:
        return refused.args


@given(LINES)
def test_what_is_read_or_refused_is_what_the_whole_text_says(texts):
    content = ("a,b\n" + "\n".join(texts) + "\n").encode()
    whole = shown(content)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(record_ends, "LEAST_TEXT", 0)
        patched.setattr(record_ends, "MOST_DIFFERENT", 9)
        again = shown(content)
    if isinstance(whole, pl.DataFrame):
        assert isinstance(again, pl.DataFrame)
        assert again.cast(pl.String).equals(whole.cast(pl.String))
    else:
        assert again == whole


def test_a_table_of_different_records_says_what_all_its_records_say():
    rows = pl.DataFrame({"a": ["x", None, "y"], "b": ["1", "1", "2"]})
    row_of = np.array([2, 0, 1, 1, 0], dtype=np.int32)
    whole, repeated = Table(rows[row_of]), RepeatedTable(Table(rows), row_of)
    assert repeated.frame.equals(whole.frame)
    assert (repeated.records, repeated.names) == (5, ["a", "b"])
    for name in whole.names:
        one, other = repeated.column(name), whole.column(name)
        assert (one.cells, one.codes.tolist()) == (other.cells, other.codes.tolist())
        assert repeated.distinct_and_alone(name) == whole.distinct_and_alone(name)
        assert repeated.series(name).equals(whole.series(name))
        assert name in repeated
    assert repeated.follows("b", "a") == whole.follows("b", "a")
    assert repeated.follows("a", "b") == whole.follows("a", "b")
    fewer = repeated.without(["a"])
    assert fewer.frame.equals(whole.without(["a"]).frame)
    assert fewer.distinct_and_alone("a") == whole.distinct_and_alone("a")


def test_a_release_and_its_certificate_are_the_same(tmp_path: Path, monkeypatch):
    age = {"role": "quasi", "type": "number"}
    roles = {"age": age, "sex": "quasi", "disease": "sensitive", "zip": "plain"}
    policy = Policy.from_dict(content_of(roles, 5, other="drop"))
    name = str(tmp_path / "in.csv")
    sample("patients", 600, 1).write_csv(name)
    monkeypatch.setattr(record_ends, "MOST_DIFFERENT", 9)
    releases = []
    for least in (0, 1 << 24):
        monkeypatch.setattr(record_ends, "LEAST_TEXT", least)
        outcome = publish_file(name, policy, str(tmp_path / f"{least}.csv"))
        said = {**outcome.certificate, "seconds": None, "date": None}
        releases.append(((tmp_path / f"{least}.csv").read_bytes(), said))
    assert releases[0] == releases[1]


def test_no_more_different_lines_are_known_than_there_is_room_for(monkeypatch):
    monkeypatch.setattr(record_ends, "MOST_LINES", 8)
    few, many = (b"a\n" + b"".join(b"%d\n" % (i % n) for i in range(40)) for n in (7, 9))
    assert lines_of(np.frombuffer(few, dtype=np.uint8), 2).different == 7
    assert lines_of(np.frombuffer(many, dtype=np.uint8), 2) is None


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1,2\r\r\n3,4\n\n5,6\n", [("1", "2\r"), ("3", "4"), ("5", "6")]),
        ("1,x\ry\n\n3,4\n", [("1", "x\ry"), ("3", "4")]),
        ("\r\r\n3,4\n", [("3", "4")]),
    ],
)
def test_a_carriage_return_beside_a_blank_line_costs_nobody_a_record(text, rows):
    assert shown(f"a,b\n{text}".encode()).cast(pl.String).rows() == rows


# Columns whose cells hardly repeat are read as texts, others as categories: nobody can tell.


NAMES = ["few", "many"]


def test_only_columns_whose_first_cells_repeat_become_categories(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame = pl.DataFrame({"few": [n % 7 for n in range(300)], "many": range(300)})
    frame.write_csv(tmp_path / "in.csv")
    short = files.read(str(tmp_path / "in.csv"), NAMES).table
    monkeypatch.setattr(record_ends, "LEAST_TEXT", 0)
    long = files.read(str(tmp_path / "in.csv"), NAMES).table
    assert [short.dtype(name) for name in NAMES] == [pl.Categorical, pl.Categorical]
    assert [long.dtype(name) for name in NAMES] == [pl.Categorical, pl.String]
    for name in NAMES:
        one, other = short.column(name), long.column(name)
        assert one.cells == other.cells
        assert one.codes.tolist() == other.codes.tolist()
