"""A file that is changed while it is read: names, records and hash must be of one content."""

import os
from pathlib import Path

import polars as pl
import pytest

from shoal.connectors import delimited, files, parquet_parts
from shoal.connectors.coded_files import read_coded
from shoal.connectors.dialect import AS_FOUND
from shoal.data.room import Room
from shoal.errors import InputError

CHANGED = "was changed while it was read; run again once whoever writes it is done"


@pytest.fixture
def replaced(tmp_path, monkeypatch) -> Path:
    """A table that gives way to one of other columns as soon as its names were read."""
    path, other = tmp_path / "in.csv", tmp_path / "other.csv"
    path.write_text("name,ill\nAda,flu\n")
    other.write_text("ill,name\nflu,Ada\n")
    begin = delimited.begin

    def begun(*given):
        found = begin(*given)
        if other.exists():
            os.replace(other, path)
        return found

    monkeypatch.setattr(delimited, "begin", begun)
    return path


def test_a_table_that_is_replaced_is_refused(replaced):
    with pytest.raises(InputError, match=CHANGED):
        files.read(str(replaced))
    assert files.read(str(replaced)).frame.columns == ["ill", "name"]


def test_a_table_that_is_replaced_is_refused_past_memory(replaced):
    with pytest.raises(InputError, match=CHANGED):
        read_coded(replaced, ".csv", AS_FOUND, Room(1 << 20))


def test_a_part_that_is_replaced_is_refused(tmp_path, monkeypatch):
    for number in (0, 1):
        pl.DataFrame({"a": ["x"]}).write_parquet(tmp_path / f"part-{number}.parquet")
    hashed = parquet_parts.hashed

    def replaced_behind(parts):
        found = hashed(parts)
        pl.DataFrame({"a": ["y", "z"]}).write_parquet(parts[1].path)
        return found

    monkeypatch.setattr(parquet_parts, "hashed", replaced_behind)
    with pytest.raises(InputError, match=CHANGED):
        files.read(str(tmp_path))
