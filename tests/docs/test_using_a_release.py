"""The analyst's page in other tools: its SQL in DuckDB, its R in R, its workbook as a sheet.

The page's Python is run with all other pages.
"""

import shlex
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
from pages import blocks

from shoal.cli.main import status_of

PAGE = Path(__file__).resolve().parents[2] / "docs" / "using-a-release.md"


def shown(language: str) -> list[str]:
    return [block.text for block in blocks(PAGE) if block.language == language]


@pytest.fixture
def published(folder) -> pl.DataFrame:
    """The page's release, in the folder where its commands are run."""
    listed = [
        line.removeprefix("$ ")
        for text in shown("console")
        for line in text.splitlines()
        if line.startswith(("$ shoal sample", "$ shoal publish patients"))
    ]
    assert len(listed) == 3
    for command in listed:
        assert status_of(shlex.split(command)[1:]) == 0, command
    return pl.read_csv("published.csv", schema_overrides={"age": pl.String, "zip": pl.String})


def in_range(table: pl.DataFrame) -> float:
    """The expected number of people from 30 to 39, a record at a time."""
    count = 0.0
    for lo, hi in table.select("age_lo", "age_hi").iter_rows():
        if lo is not None:
            count += len(set(range(30, 40)) & set(range(lo, hi + 1))) / (hi - lo + 1)
    return count


def test_the_sql_of_the_page_runs_in_duckdb(published):
    duckdb = pytest.importorskip("duckdb")
    by_disease, counted = shown("text")
    rows = duckdb.sql(by_disease).fetchall()
    assert [row[0] for row in rows] == sorted(published["disease"].unique())
    assert sum(row[2] for row in rows) == len(published)
    assert duckdb.sql(counted).fetchall()[0][0] == pytest.approx(in_range(published))


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="needs R: Rscript is not on the path")
def test_the_r_of_the_page_runs(published):
    (loading,) = shown("r")
    text = PAGE.read_text()
    expression = text[text.index("`sum(pmax(") + 1 :].partition("`")[0]
    script = f"{loading}\ncat('counted', with(table, {expression}))\n"
    done = subprocess.run(["Rscript", "-e", script], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counted = done.stdout.rpartition("counted ")[2]
    assert float(counted) == pytest.approx(in_range(published), rel=1e-4)


def test_the_workbook_has_numbers_where_the_page_says_so(published):
    calamine = pytest.importorskip("python_calamine")
    book = calamine.CalamineWorkbook.from_path("published.xlsx")
    head, *rows = book.get_sheet_by_name("data").to_python()
    kinds = {name: {type(row[j]) for row in rows} for j, name in enumerate(head)}
    assert kinds["age_lo"] == kinds["age_mid"] == {float}
    assert kinds["age"] == kinds["zip"] == {str}
