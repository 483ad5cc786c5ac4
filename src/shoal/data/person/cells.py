"""How the cells of a column are written, and whether they are made to tell one from all others.

kind        time, fraction, whole (with .0), span, negative, int, text, empty
token       a way of writing that is made to tell many apart: addresses, hashes, long numbers
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from shoal.data.person.names import ColumnName

MOST_CELLS = 1_000
NEARLY_ALL = 0.9
NO_VALUE = ("", "?", "*", "NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-")
BLANKS = "".join(map(chr, range(33)))
STRONG = ("mail", "mac", "uuid", "hex", "digits")
NO_NUMBERS = ("time", "fraction", "span", "negative", "empty")
"""Kinds that number nobody."""

_DATE = re.compile(
    r"(\d{4}[-/.]\d{1,2}([-/.]\d{1,2})?([T ].*)?|\d{1,2}[./-]\d{1,2}[./-]\d{2,4}.*"
    r"|\d{1,2}:\d{2}(:\d{2})?)$"
)
_DAY = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])$")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+([eE][+-]?\d+)?$")
_WHOLE = re.compile(r"-?\d+([.,]0+)?$")
_INT = re.compile(r"[+-]?\d+$")
_SPAN = re.compile(r"(.*[\[\](~<>]|\d+ ?- ?\d+$)")
_FULL_NAME = re.compile(r"[^\W\d_]\S+,? [^\W\d_]\S+( [^\W\d_]\S+)?$")
_TOKENS = {
    "mail": re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+$"),
    "mac": re.compile(r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2,}$", re.IGNORECASE),
    "uuid": re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE),
    "hex": re.compile(r"(?=.*\d)[0-9a-f]{8,64}$", re.IGNORECASE),
    "prefix": re.compile(r"[^\W\d_]{1,8}[-_/ .:]?\d{2,}([-_/.]\d+)*$"),
}
_SECONDS = (946_684_800, 2_051_222_400)  # 2000 to 2034, as seconds since 1970
LEAST_DIGITS, LEAST_ZEROS = 7, 3  # lengths of numbers that are made to tell apart


class Look(NamedTuple):
    """How a column's cells are written. token: empty where they are not made to name anything."""

    kind: str
    token: str = ""


def look_of(cells: Sequence[str], name: ColumnName, distinct: int) -> Look:
    """How a column is written. cells: distinct ones that hold a value, without blanks around them;
    distinct: how many there are of which these are some.
    """
    if not cells:
        return Look("empty")
    ints = [cell for cell in cells if _INT.match(cell)]
    fractions = _share(_FRACTION, cells)
    if _share(_DATE, cells) >= NEARLY_ALL:
        return Look("time")
    if fractions >= 0.02 and fractions + len(ints) / len(cells) > NEARLY_ALL:
        return Look("whole" if all(map(_WHOLE.match, cells)) else "fraction")
    if _share(_SPAN, cells) >= 0.2:
        return Look("span")
    if len(ints) >= 0.98 * len(cells):
        return _look_of_ints(ints, name)
    return Look("text", _token_of(cells, distinct))


def _share(pattern: re.Pattern[str], cells: Sequence[str]) -> float:
    return sum(bool(pattern.match(cell)) for cell in cells) / len(cells)


def _look_of_ints(ints: Sequence[str], name: ColumnName) -> Look:
    numbers = [int(cell) for cell in ints]
    least, greatest = min(numbers), max(numbers)
    first, last = _SECONDS
    is_moment = any(first * unit <= least and greatest <= last * unit for unit in (1, 1_000))
    if is_moment and name.is_moment:
        return Look("time")
    if least < 0:
        return Look("negative")
    lengths = [len(cell) for cell in ints]
    usual = max(set(lengths), key=lambda length: (lengths.count(length), -length))
    if usual == 8 and all(map(_DAY.match, ints)):
        return Look("time")
    if usual >= LEAST_DIGITS and lengths.count(usual) >= NEARLY_ALL * len(ints):
        return Look("int", "digits")
    is_one_length = usual >= LEAST_ZEROS and min(lengths) == max(lengths)
    begins_with_zero = any(cell.startswith("0") and len(cell) > 1 for cell in ints)
    return Look("int", "zeros" if is_one_length and begins_with_zero else "")


def _token_of(cells: Sequence[str], distinct: int) -> str:
    for token, pattern in _TOKENS.items():
        if _share(pattern, cells) >= NEARLY_ALL:
            return token
    is_name = distinct > 10 and _share(_FULL_NAME, cells) >= NEARLY_ALL
    return "fullname" if is_name else ""
