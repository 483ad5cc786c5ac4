"""What a frame holds comes back from every format it is saved in, or published into."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal

import polars as pl
import pytest

import shoal

OUTPUTS = "o.csv o.tsv.gz o.jsonl o.xlsx o.parquet o.arrow sqlite:///o.db?table=t".split()
ROWS = 24
THIRDS = [row / 3 for row in range(ROWS)]
NOON = datetime(2024, 2, 28, 12)
HOURS = [NOON + timedelta(hours=row) for row in range(ROWS)]

NUMBERS = {
    "third": THIRDS,
    "single": pl.Series(THIRDS, dtype=pl.Float32),
    "tiny": [third * 1e-12 for third in THIRDS],
    "huge": [third * 1e22 for third in THIRDS],
    "whole": [float(row) for row in range(ROWS)],
    "endless": [float("inf"), float("-inf"), *THIRDS[2:]],
    "partly": [None, float("nan"), *THIRDS[2:]],
    "cents": [Decimal(row) / 4 for row in range(ROWS)],
    "long": [10**16 + row for row in range(ROWS)],
}
OTHERS = {
    "exact": [Decimal("12345678901234567.89") + row for row in range(ROWS)],
    "hour": HOURS,
    "midnight": [datetime(1850, 1, 1 + row) for row in range(ROWS)],
    "instant": pl.Series(HOURS).dt.replace_time_zone("UTC"),
    "place": pl.Series(HOURS, dtype=pl.Datetime("ns")).dt.replace_time_zone("Europe/Paris"),
    "clock": [time(1, 2, row) for row in range(ROWS)],
    "day": [date(2024, 2, 1 + row) for row in range(ROWS)],
    "old_day": [date(1899, 12, 1 + row) for row in range(ROWS)],
}
FRAME = pl.DataFrame({"age": [30 + row // 8 for row in range(ROWS)], **NUMBERS, **OTHERS})


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def release() -> shoal.Publication[pl.DataFrame]:
    return shoal.publish(FRAME, quasi=["age"], plain=[*NUMBERS, *OTHERS], k=3)


def texts(frame: pl.DataFrame, name: str) -> list[str | None]:
    return frame[name].cast(pl.String).to_list()


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_kind_of_column_is_saved_in_every_format(release, output):
    release.save(output)
    read = shoal.read_release(output).data
    for name in NUMBERS:
        assert read[name].dtype.is_numeric(), name
        expected = FRAME[name].cast(pl.Float32).fill_nan(None)
        assert read[name].cast(pl.Float32).equals(expected), name
    for name in OTHERS:
        assert texts(read, name) == texts(FRAME, name), name


@pytest.mark.parametrize("output", OUTPUTS)
def test_every_kind_of_column_is_published_from_a_file_into_every_format(release, output):
    FRAME.write_parquet("in.parquet")
    assert shoal.publish_file("in.parquet", release.policy, output).holds


@pytest.fixture(scope="module")
def of_means() -> shoal.Publication[pl.DataFrame]:
    ages = [row * 1.5 for row in range(ROWS)]
    frame = pl.DataFrame({"mean": ages, "median": ages})
    quasi = {"mean": {"render": "mean"}, "median": {"render": "median"}}
    return shoal.publish(frame, quasi=quasi, k=3)


@pytest.mark.parametrize("output", OUTPUTS)
def test_means_and_medians_are_numbers_wherever_they_are_read(of_means, output):
    of_means.save(output)
    read = shoal.read_release(output).data
    for name in ("mean", "median"):
        assert read[name].dtype == of_means.data[name].dtype == pl.Float64
    assert read.equals(of_means.data)


def test_decimals_are_read_as_floats_from_every_format(tmp_path):
    cells = pl.Series([f"{n}.25" for n in range(40)]).cast(pl.Decimal(12, 2))
    frame = pl.DataFrame({"age": [n // 10 for n in range(40)], "cost": cells})
    made = shoal.publish(frame, quasi="age", sensitive="cost", k=5, l=2)
    assert made.numbers("mid")["cost"].dtype == pl.Float64
    for name in ("out.csv", "out.parquet"):
        made.save(tmp_path / name)
        for how in ("mid", "published"):
            read = shoal.read_release(tmp_path / name, numbers=how, to="pandas").data
            assert read["cost"].dtype == "float64"
