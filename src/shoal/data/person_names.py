"""Names of people, such as the numbers of patients, as they are compared."""

from __future__ import annotations

import re
import unicodedata

import numpy as np
import polars as pl

from shoal.data.table import Column, as_text

UNSEEN = (
    "[\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u206f\ufe00-\ufe0f\ufeff]"
)
"""Signs that nobody sees, such as a byte-order mark or a space of no width."""

BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What Python takes for blanks; Polars knows fewer, and both must find the same people."""

_UNSEEN = re.compile(UNSEEN)


def person_name(cell: str) -> str:
    """A person's name as it is compared: in Unicode's compatibility form, without signs that nobody
    sees and without blanks around it.

    Two ways to write the same signs make nobody another person.
    """
    if not cell.isascii():
        cell = unicodedata.normalize("NFKC", _UNSEEN.sub("", cell))
    return cell.strip(BLANKS)


def names_of(column: pl.Series) -> pl.Series:
    """The same of a whole column."""
    seen = as_text(column).str.replace_all(UNSEEN, "")
    return seen.str.normalize("NFKC").str.strip_chars(BLANKS)


def people_of(column: Column) -> np.ndarray:
    """(n,) the person of each record of a column that names them."""
    number: dict[str, int] = {}
    numbers = [number.setdefault(person_name(cell), len(number)) for cell in column.cells]
    if len(number) == len(column.cells):
        return column.codes
    return np.array(numbers, dtype=np.int32)[column.codes]
