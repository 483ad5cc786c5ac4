"""Null characters and halves of characters are no text: found where they are read, by name."""

import sqlite3
from pathlib import Path

import polars as pl
import pytest

import shoal
from sample_policies import content_of
from shoal.errors import InputError

POLICY = content_of(
    {"age": {"role": "quasi", "type": "number", "domain": [0, 120]}, "d": "sensitive"},
    4,
    other="drop",
)
NO_TEXT = ["\\u0000", "\\ud83d", "\\ude00", "\\ude00\\ud83d"]
TEXT = ["\\ud83d\\ude00", "\\\\ud83d", "\\u00e9", "0"]


def lines(last: str, column: str = "d") -> str:
    rows = [f'{{"age":{30 + i % 4},"d":"x","e":"y"}}' for i in range(40)]
    cells = {"age": "30", "d": '"x"', "e": '"y"'} | {column: f'"cut {last}"'}
    return "\n".join([*rows, "{" + ",".join(f'"{n}":{c}' for n, c in cells.items()) + "}"]) + "\n"


@pytest.mark.parametrize("last", NO_TEXT + TEXT)
def test_a_stream_sets_such_a_record_aside(tmp_path: Path, last: str) -> None:
    source, aside = tmp_path / "in.jsonl", tmp_path / "out.csv.dead-letters.jsonl"
    source.write_text(lines(last))
    shoal.stream_file(source, POLICY, tmp_path / "out.csv")
    said = aside.read_text() if aside.exists() else ""
    assert said.count("halves of characters") == (last in NO_TEXT)


@pytest.mark.parametrize(
    "text",
    [b'{"age":30,"d":"\xed\xa0\x80"}', '{"age":30,"d":"\\u0000"}'.encode("utf-16-be")],
    ids=["half", "utf-16"],
)
def test_a_stream_sets_a_record_aside_that_is_no_utf_8(tmp_path: Path, text: bytes) -> None:
    source, aside = tmp_path / "in.jsonl", tmp_path / "out.csv.dead-letters.jsonl"
    source.write_bytes(lines("0").encode() + text + b"\n")
    shoal.stream_file(source, POLICY, tmp_path / "out.csv")
    assert aside.read_text() == '{"record": 41, "reason": "is not a JSON object"}\n'


@pytest.mark.parametrize("last", NO_TEXT + TEXT)
def test_a_file_of_such_records_is_refused_by_the_column(tmp_path: Path, last: str) -> None:
    source, out = tmp_path / "in.jsonl", tmp_path / "out.csv"
    source.write_text(lines(last))
    if last in TEXT:
        shoal.publish_file(source, POLICY, out)
        return
    with pytest.raises(InputError, match=r"column 'd' holds null characters|line 41 is not"):
        shoal.publish_file(source, POLICY, out)
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


def test_a_column_that_nobody_needs_may_hold_them(tmp_path: Path) -> None:
    source = tmp_path / "in.jsonl"
    source.write_text(lines(NO_TEXT[0], column="e"))
    assert shoal.publish_file(source, POLICY, tmp_path / "out.csv").holds


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["x", "x\0"])])
def test_a_frame_of_them_is_refused(dtype: pl.DataType) -> None:
    frame = pl.DataFrame({"age": [30] * 5, "d": pl.Series(["x"] * 4 + ["x\0"], dtype=dtype)})
    with pytest.raises(InputError, match="column 'd' holds null characters"):
        shoal.publish(frame, POLICY)


def test_a_table_of_them_in_a_database_is_refused(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "in.db") as made:
        made.execute("create table t (id integer primary key, age integer, d text)")
        made.executemany("insert into t values (?, 30, ?)", [(1, "x"), (2, "x\0y")])
    with pytest.raises(InputError, match="column 'd' holds null characters; take them out"):
        shoal.publish_file(f"sqlite:///{tmp_path}/in.db?table=t", POLICY, tmp_path / "out.csv")


def test_a_name_with_one_is_refused_by_its_place(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"age":30,"d\\ud83d":"x"}\n')
    with pytest.raises(InputError, match="the name of column 2 is not a text"):
        shoal.publish_file(tmp_path / "in.jsonl", POLICY, tmp_path / "out.csv")
