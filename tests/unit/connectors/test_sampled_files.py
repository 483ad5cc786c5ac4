"""A sample of a table that is too large: every so-many-th row, wherever the pieces end."""

import polars as pl
import pytest

from shoal.connectors import coded_files, files, record_ends
from shoal.connectors.coded_files import read_sampled
from shoal.connectors.dialect import AS_FOUND
from shoal.errors import InputError


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
