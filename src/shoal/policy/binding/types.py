"""Columns of a release as numbers and dates, for formats that have types."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl

from shoal.data.numbers import MOST_EXACT
from shoal.data.table import as_text
from shoal.policy.binding.derived import derived_columns
from shoal.policy.binding.notation import is_date, is_number
from shoal.policy.policy import Policy

_DAY = r"^\d{4}-\d\d-\d\d$"


def typed(frame: pl.DataFrame, policy: Policy) -> pl.DataFrame:
    """The release with declared numbers as Int64 or Float64, and days as Date.

    Columns that show anything else, such as intervals or a text for missing values, stay text. So
    do numbers in bins that would not read as they are written, such as `07` or `2` beside `1.5`:
    the leaves of a hierarchy are texts.
    """
    declared = policy.model.attributes
    source_of = {column.name: column.source for column in derived_columns(policy)}
    for name in frame.columns:
        attribute = declared.get(source_of.get(name, name))
        column = frame[name]
        if attribute is None or column.dtype not in (pl.String, pl.Categorical, pl.Enum):
            continue
        text = column.cast(pl.String)
        if is_number(attribute):
            numbers = _numbers(text)
            is_leaf = attribute.hierarchy is not None and name not in source_of
            if not is_leaf or as_text(numbers).equals(as_text(text)):
                frame = frame.with_columns(numbers)
        elif is_date(attribute):
            frame = frame.with_columns(_days(text))
    return frame


def _numbers(text: pl.Series) -> pl.Series:
    numbers = text.str.strip_chars().replace("", None).cast(pl.Float64, strict=False)
    if _says_more(text, numbers) or not bool(numbers.drop_nulls().is_finite().all()):
        return text
    values = numbers.drop_nulls().to_numpy()
    is_large = np.abs(values) >= MOST_EXACT
    if not is_large.any() and (np.floor(values) == values).all():
        return numbers.cast(pl.Int64)
    return text if is_large.any() and _loses_digits(text) else numbers


def _loses_digits(text: pl.Series) -> bool:
    """Whether some number is another one as a float."""
    cells = [cell.strip() for cell in text.drop_nulls().unique().to_list()]
    return any(cell and Decimal(cell) != Decimal(float(cell)) for cell in cells)


def _days(text: pl.Series) -> pl.Series:
    filled = text.replace("", None).drop_nulls()
    if not bool(filled.str.contains(_DAY).all()):
        return text
    days = text.replace("", None).str.to_date("%Y-%m-%d", strict=False)
    return text if _says_more(text, days) else days


def _says_more(text: pl.Series, values: pl.Series) -> bool:
    """Whether some cell that is not empty has no such value."""
    return bool(((text.fill_null("") != "") & values.is_null()).any())
