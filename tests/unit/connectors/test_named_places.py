"""Faults of frames and JSON lines are said with their column, row or line."""

import pandas as pd
import pyarrow as pa
import pytest

from shoal.connectors import files
from shoal.connectors.frames import table_of
from shoal.errors import InputError


def test_columns_that_mix_kinds_are_named_with_the_first_row_that_differs():
    frame = pd.DataFrame({"age": [1, 2, 3, 4], "x": [1, pd.NA, 2.5, "canary"], "y": [b"", 1, 1, 1]})
    with pytest.raises(InputError) as refused:
        table_of(frame)
    assert refused.value.args[0] == (
        "frame: column 'x' mixes kinds of values (row 4); give it one kind"
    )
    assert refused.value.findings == (
        "frame: column 'y' mixes kinds of values (row 2); give it one kind",
    )


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame([[1, 2, 3]], columns=["age", "b", "age"]),
        pa.table([pa.array([1]), pa.array([2])], names=["age", "age"]),
    ],
)
def test_a_column_name_that_occurs_twice_is_named(frame):
    with pytest.raises(InputError, match="frame: column name 'age' occurs twice; rename one"):
        table_of(frame)


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b'{"a": 1}\n\n3\n{"a": 2}\n', 3),
        (b'{"a": 1}\n{"a":\n', 2),
        (b"canary\n", 1),
        (b'{"a": 1}\n{"a": 2}\n{"a": {"b": 1}}\n{"a": 3}\n', 3),
    ],
)
def test_the_line_that_is_no_json_object_is_named(tmp_path, content, line):
    path = tmp_path / "t.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=f"line {line} is not a JSON object like the others"):
        files.read(str(path))


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("nope?.csv", "file 'nope?.csv': nothing matches this pattern; check it"),
        ("no*.parquet", "file 'no*.parquet': nothing matches this pattern; check it"),
        ("sqlite:x.db", "is not there; name a table in SQLite with three slashes, such as"),
        ("sqlite:x.db?table=pub", "such as 'sqlite:///x.db?table=NAME'"),
    ],
)
def test_a_name_that_matches_nothing_is_said_to_match_nothing(folder, shoal, name, says):
    assert says in shoal("audit", name, "--column", "quasi=a", "--k", "2", status=2).err
    assert says in shoal("profile", name).err
