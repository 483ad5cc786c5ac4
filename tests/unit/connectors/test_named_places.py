"""Faults of frames and JSON lines are said with their column, row or line."""

from datetime import UTC, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from shoal.connectors import files
from shoal.connectors.dialect import Reading
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


NOON = datetime(2020, 1, 1, 12)
MIXED = {
    "naive and aware": [NOON, None, NOON.astimezone(UTC)],
    "aware and naive": [NOON.astimezone(UTC), None, NOON],
    "days and points in time": [NOON.date(), None, NOON],
    "points in time and numbers": [NOON, None, 5],
    "times and numbers": [NOON.time(), None, 5],
    "times with a zone and without": [NOON.time(), None, NOON.time().replace(tzinfo=UTC)],
    "numbers and truth": [2.5, None, True],
}


@pytest.mark.parametrize("cells", MIXED.values(), ids=MIXED)
@pytest.mark.parametrize("dtype", [object, "category"])
def test_kinds_that_could_be_made_one_are_refused_unless_the_column_is_dropped(cells, dtype):
    frame = pd.DataFrame({"age": [1, 1, 1], "x": pd.Series(cells, dtype=object).astype(dtype)})
    with pytest.raises(InputError, match=r"column 'x' mixes kinds of values \(row 3\)"):
        table_of(frame)
    assert table_of(frame, reading=Reading(dropped=frozenset({"x"}))).frame["age"].sum() == 3


ALIKE = {
    "whole numbers and others": ([1, np.float32(2.5), None], [1.0, 2.5, None]),
    "whole numbers and decimals": ([Decimal("1.5"), 1], [Decimal("1.5"), Decimal(1)]),
    "truth": ([np.bool_(True), False, float("nan")], [True, False, None]),
    "points in time": ([pd.Timestamp(NOON), NOON, pd.NaT], [NOON, NOON, None]),
    "texts": ([np.str_("a"), "b", None], ["a", "b", None]),
}


@pytest.mark.parametrize(("cells", "read"), ALIKE.values(), ids=ALIKE)
def test_one_kind_of_several_types_is_read(cells, read):
    frame = pd.DataFrame({"x": pd.Series(cells, dtype=object)})
    assert table_of(frame).frame["x"].to_list() == read


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
