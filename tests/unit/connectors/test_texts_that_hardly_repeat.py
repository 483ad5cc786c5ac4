"""Columns whose cells hardly repeat are read as texts, others as categories: nobody can tell."""

from pathlib import Path

import polars as pl
import pytest

from shoal.connectors import files, record_ends

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
