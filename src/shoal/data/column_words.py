"""What the words of a column's name say about it.

Words are whole: `num_medications` has no `medic`, `DISPOSITION` no `position`. Of compounds, such
as `Hauptdiagnose` and `患者氏名`, some ends are known. The words stand in column_words.yaml.
"""

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import pairwise

import numpy as np
import polars as pl
import yaml

from shoal.data.numbers import parse_numbers
from shoal.data.person_names import same_values
from shoal.data.table import Table

CODE = frozenset("id code type key".split())
"""What is written in numbers that nobody computes with."""

REFERENCE = frozenset("id nbr nr no key".split())
"""Last words of the names of numbers that stand for somebody or something."""

_LETTERS_OR_DIGITS = re.compile(r"[^\W\d_]+|\d+")


def words_of(name: str) -> list[str]:
    """The words of a name in small letters: parted by other signs, by digits, or by capitals.

    `PatientID` is `patient id`, `IBANNumber` is `iban number`.
    """
    return [
        word.casefold() for run in _LETTERS_OR_DIGITS.findall(name) for word in _by_capitals(run)
    ]


def _by_capitals(run: str) -> list[str]:
    """A run of letters, cut before a capital that follows a small letter or is followed by one."""
    cuts = [
        i
        for i in range(1, len(run))
        if run[i].isupper() and (run[i - 1].islower() or run[i + 1 : i + 2].islower())
    ]
    return [run[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(run)], strict=True)]


def fold(text: str) -> str:
    """The text in small letters, without accents."""
    signs = unicodedata.normalize("NFKD", text)
    return "".join(sign for sign in signs if not unicodedata.combining(sign)).casefold()


@cache
def word_lists(package: str, name: str) -> Mapping[str, frozenset[str]]:
    """The words of a YAML file by what they mean."""
    lists = yaml.safe_load((files(package) / name).read_text("utf-8")).items()
    return {meaning: frozenset(map(fold, words.split())) for meaning, words in lists}


def mean(words: Sequence[str], meant: str) -> bool:
    """Whether a word, or the end of a compound, means this: `identifier`, `sensitive` and so on."""
    known = word_lists("shoal.data", "column_words.yaml")
    folded = [fold(word) for word in words]
    ends = tuple(known.get(f"{meant}_ends", ()))
    return any(word in known[meant] or word.endswith(ends) for word in folded)


def names_place(words: Sequence[str]) -> bool:
    """Whether a name is that of a postal code."""
    return mean(words, "place") or ("post", "code") in pairwise(words)


# What the cells show about columns that nobody has described.


DATE = re.compile(
    r"(\d{4}[-/]N(T.*| .*)?|(\d\d)?\d\d[-/.]N[-/.]N([T ].*)?|N[./-]N[./-]\d\d(\d\d)?(\D.*)?"
    r"|\d{1,2}:\d{2}(:\d{2})?)$".replace("N", r"(0?\d|[12]\d|3[01])")
)
"""A date or a time of day, or the month of a year, in any common form."""


def looks_like_data(table: Table, names: list[str]) -> list[str]:
    """Those columns whose name is a number, a date above dates, or also stands in one of their
    cells.
    """
    numeric = np.isfinite(parse_numbers(tuple(names))) if names else []
    return [
        name
        for name, is_number in zip(names, numeric, strict=True)
        if is_number or (DATE.match(name) and _are_dates(table, name)) or table.holds(name, name)
    ]


def _are_dates(table: Table, name: str) -> bool:
    """Whether all cells are dates, of which some are empty."""
    cells = [cell for cell in table.column(name).cells if cell.strip()]
    return bool(cells) and all(map(DATE.match, cells))


def is_no_header(odd: Sequence[str], names: Sequence[str]) -> bool:
    """Whether so large a share of the names looks like data that the first line is a record."""
    return 3 * len(odd) > 2 * len(names)


def named_by_a_record(table: Table, names: list[str]) -> list[str]:
    """Those of these columns whose name may be a cell: it looks like data, or most names do."""
    odd = looks_like_data(table, table.names) if names else []
    return names if is_no_header(odd, table.names) else [name for name in names if name in odd]


def copied_columns(table: Table, names: Iterable[str], others: Sequence[str]) -> dict[str, str]:
    """Those columns that hold the very cells of one of the others, each with the first such.

    A column of one value says nothing about anybody, so it is never a copy.
    """
    found = {}
    for name in names:
        copied = next((other for other in others if _is_copy(table, name, other)), None)
        if copied is not None:
            found[name] = copied
    return found


def _is_copy(table: Table, name: str, other: str) -> bool:
    """Whether the cells are the same, however they are spelled."""
    if table.distinct(name) < 2:
        return False
    if table.same_cells(name, other):
        return True
    columns = [table.column(one) for one in (name, other)]
    if len(columns[0].cells) != len(columns[1].cells):
        return False
    spelled = [pl.Series(same_values(column.cells)) for column in columns]
    one, two = (s.gather(c.codes) for s, c in zip(spelled, columns, strict=True))
    return bool((one == two).all())
