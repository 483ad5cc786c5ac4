"""Names of people, such as the numbers of patients, as they are compared."""

from __future__ import annotations

import unicodedata

import numpy as np
import polars as pl

from shoal.data.table import Column, as_text


def person_name(cell: str) -> str:
    """A person's name as it is compared: in Unicode's compatibility form, without blanks around it.

    Two ways to write the same signs make nobody another person.
    """
    return cell.strip() if cell.isascii() else unicodedata.normalize("NFKC", cell).strip()


def names_of(column: pl.Series) -> pl.Series:
    """The same of a whole column."""
    return as_text(column).str.normalize("NFKC").str.strip_chars()


def people_of(column: Column) -> np.ndarray:
    """(n,) the person of each record of a column that names them."""
    number: dict[str, int] = {}
    numbers = [number.setdefault(person_name(cell), len(number)) for cell in column.cells]
    if len(number) == len(column.cells):
        return column.codes
    return np.array(numbers, dtype=np.int32)[column.codes]
