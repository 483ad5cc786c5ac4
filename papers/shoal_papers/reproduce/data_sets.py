"""Where the real data sets lie, and how those that papers use are read."""

from __future__ import annotations

import os
from pathlib import Path

import polars as pl

from shoal.connectors.files import file_sha256
from shoal.errors import InputError
from shoal_papers.reproduce.paper import DataSet

USUAL = Path("..") / "shared" / "data"
ADULT_COLUMNS = (
    "age",
    "workclass",
    "fnlwgt",
    "education",
    "education-num",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "sex",
    "capital-gain",
    "capital-loss",
    "hours-per-week",
    "native-country",
    "income",
)


def data_file(folder: Path | None, name: str) -> Path:
    """A file of the data sets: in the folder given, else $SHOAL_DATA, else ../shared/data; raises
    InputError.
    """
    set_by_user = os.environ.get("SHOAL_DATA")
    place = folder or (Path(set_by_user) if set_by_user else USUAL)
    path = place / name
    if not path.is_file():
        raise InputError(
            f"data set '{name}': not found in '{place}'; name the folder that holds it with --data"
            " DIR or SHOAL_DATA, or add --quick, which needs no data"
        )
    return path


def census(folder: Path | None) -> tuple[pl.DataFrame, DataSet]:
    """The 1,080 records of CASC's Census table, every cell as text."""
    path = data_file(folder, "casc/census.csv")
    frame = pl.read_csv(path, infer_schema=False)
    return frame, DataSet("CASC Census (census.csv)", frame.height, file_sha256(path))


def adult_test(folder: Path | None) -> pl.DataFrame:
    """The complete test records of UCI Adult, every cell as text; labels as in the training
    records.
    """
    path = data_file(folder, "adult/adult.test")
    rows = [
        line.rstrip(".").split(", ")
        for line in path.read_text().splitlines()
        if "," in line and "?" not in line
    ]
    return pl.DataFrame(rows, schema=list(ADULT_COLUMNS), orient="row")


def adult(folder: Path | None) -> tuple[pl.DataFrame, DataSet]:
    """The complete training records of UCI Adult, every cell as text."""
    path = data_file(folder, "adult/adult.data")
    rows = [line.split(", ") for line in path.read_text().splitlines() if line and "?" not in line]
    if any(len(row) != len(ADULT_COLUMNS) for row in rows):
        raise InputError(
            "data set 'adult/adult.data': rows must have 15 cells, parted by comma and blank; fetch"
            " it again"
        )
    frame = pl.DataFrame(rows, schema=list(ADULT_COLUMNS), orient="row")
    return frame, DataSet(
        "UCI Adult (adult.data), records without '?'", frame.height, file_sha256(path)
    )
