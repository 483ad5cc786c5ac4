"""What a frame holds comes back from every format it is saved in, or published into."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import polars as pl
import pytest
import python_calamine

import shoal
from small_memory import make_every_table_too_large

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
    "began": [datetime(2024, 2, 1 + row) for row in range(ROWS)],
    "partly_exact": [NOON + timedelta(milliseconds=row * 500) for row in range(ROWS)],
    "instant": pl.Series(HOURS).dt.replace_time_zone("UTC"),
    "place": pl.Series(HOURS, dtype=pl.Datetime("ns")).dt.replace_time_zone("Europe/Paris"),
    "clock": [time(1, 2, row) for row in range(ROWS)],
    "day": [date(2024, 2, 1 + row) for row in range(ROWS)],
    "old_day": [date(1899, 12, 1 + row) for row in range(ROWS)],
}
FRAME = pl.DataFrame({"age": [30 + row // 8 for row in range(ROWS)], **NUMBERS, **OTHERS})

pytestmark = pytest.mark.usefixtures("folder")


@pytest.fixture(scope="module")
def release() -> shoal.Publication[pl.DataFrame]:
    return shoal.publish(FRAME, quasi=["age"], plain=[*NUMBERS, *OTHERS], k=3)


def texts(frame: pl.DataFrame, name: str) -> list[str | None]:
    """The cells as they are written: a fraction of a second only where there is one."""
    return [
        text and text.replace(".000000000", "").replace(".000000", "")
        for text in frame[name].cast(pl.String).to_list()
    ]


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


@pytest.mark.parametrize("unit", ["ms", "us", "ns"])
def test_a_point_in_time_shows_a_fraction_only_where_it_has_one(unit):
    times = [NOON, datetime(2024, 2, 1), datetime(2024, 2, 1, 1, 2, 3, 500000), None]
    frame = pl.DataFrame({"age": [30] * 4, "at": pl.Series(times, dtype=pl.Datetime(unit))})
    frame = frame.with_columns(zoned=pl.col("at").dt.replace_time_zone("Asia/Tokyo"))
    shoal.publish(frame, quasi=["age"], plain=["at", "zoned"], k=2).save("o.csv")
    half = ".5".ljust({"ms": 4, "us": 7, "ns": 10}[unit], "0")
    expected = ["2024-02-28 12:00:00", "2024-02-01 00:00:00", f"2024-02-01 01:02:03{half}"]
    read = pl.read_csv("o.csv", infer_schema=False).sort("at", descending=True)
    assert sorted(read["at"].drop_nulls()) == sorted(expected)
    assert sorted(read["zoned"].drop_nulls()) == sorted(f"{text}+09:00" for text in expected)


def test_a_point_in_time_is_written_alike_past_memory(monkeypatch):
    times = [datetime(2024, 2, 1 + row // 8) for row in range(ROWS)]
    pl.DataFrame({"age": FRAME["age"], "at": times}).write_parquet("in.parquet")
    frame = pl.read_parquet("in.parquet")
    policy = shoal.Policy.from_columns(frame, quasi=["age", "at"], k=3, method="mondrian")
    shoal.publish_file("in.parquet", policy, "whole.csv")
    make_every_table_too_large(monkeypatch)
    shoal.publish_file("in.parquet", policy, "parts.csv", memory="1GB")
    assert Path("parts.csv").read_bytes() == Path("whole.csv").read_bytes()
    assert "2024-02-01 00:00:00\n" in Path("whole.csv").read_text()


def test_points_in_time_are_dates_in_a_workbook(release):
    release.save("o.xlsx")
    sheet = python_calamine.CalamineWorkbook.from_path("o.xlsx").get_sheet_by_index(0)
    names, *rows = sheet.to_python()
    cells = {name: [row[j] for row in rows] for j, name in enumerate(names)}
    midnight = time()  # of which that library makes a date
    for name in ("hour", "began"):
        expected = [at.date() if at.time() == midnight else at for at in OTHERS[name]]
        assert sorted(cells[name], key=str) == sorted(expected, key=str)
    assert all(isinstance(cell, str) for cell in cells["partly_exact"])  # a sheet rounds


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_release_with_points_in_time_is_verified(release, output):
    FRAME.write_parquet("in.parquet")
    policy = release.policy.save("p.yaml") or "p.yaml"
    shoal.publish_file("in.parquet", policy, output, trace="t.jsonl")
    asked = {"policy": policy, "original": "in.parquet", "trace": "t.jsonl"}
    checks = {check.name: check for check in shoal.verify(output, **asked)}
    assert checks["measured again"].ok, checks["measured again"].text
    assert all(check.ok is not False for check in checks.values())


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
