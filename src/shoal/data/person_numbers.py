"""Columns that number people, found by their cells: records of one person agree on the person.

pair        two neighbours with equal numbers, the records sorted by number
chance      how often two records agree on another column anyway: the sum of its squared shares
steady      a column on which pairs agree far more often than by chance
cross       two steady columns of which neither is nested in the other, as sex and birth year are;
            city and state behind a postcode nest, so a postcode numbers nobody
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import polars as pl

from shoal.data.column_words import NUMBER, PERSON, words_of
from shoal.data.findings import some_named
from shoal.data.table import Column, Table, as_text, encode_text

MOST_RECORDS = 200_000  # of more, those are looked at whose number hashes to 0
FEWEST_REPEATS = 10
FEWEST_DISTINCT = 20  # at most this many records to a number, on average
COMMON = 0.9  # chance above which agreeing says nothing
STEADY = 0.9  # share of the way from chance to certainty
CROSSING = 1.2  # times as many pairs of values as the richer of two columns has

NO_VALUE = ("", "?", "*", "NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-")

_DATE = r"^(\d{4}-\d{1,2}-\d{1,2}|\d{1,2}[./]\d{1,2}[./]\d{2,4})"
_FRACTION = r"^[+-]?\d*[.,]\d+([eE][+-]?\d+)?$"


@dataclass(frozen=True)
class Evidence:
    """Why a column seems to number people.

    values: distinct ones among `records` records that have one. agreeing: the columns on which
    records with one number agree, steadiest first. is_named: whether its name says so, too.
    """

    column: str
    values: int
    records: int
    agreeing: tuple[str, ...]
    is_named: bool

    def __str__(self) -> str:
        return (
            f"column '{self.column}': {self.records} records carry {self.values} different values,"
            f" and records that share one agree on {some_named(self.agreeing)}; if it numbers"
            " people, give it the role 'subject'"
        )


def person_numbers(table: Table) -> list[Evidence]:
    """Every column that seems to number people; the clearest first. Reads cells, not roles."""
    found = []
    for name in table.names:
        if may_number(table, name):
            evidence = evidence_of(table.column(name), table)
            if evidence is not None:
                found.append(evidence)
    return sorted(found, key=lambda e: (not e.is_named, -len(e.agreeing)))


def is_named_as_number(name: str) -> bool:
    """Whether a column's name has a word for a person or for a number."""
    return bool((PERSON | NUMBER) & set(words_of(name)))


def _has_value(column: Column) -> np.ndarray:
    """(cells,) bool."""
    return np.array([cell.strip() not in NO_VALUE for cell in column.cells], dtype=bool)


def may_number(table: Table, name: str, fewest_repeats: int = FEWEST_REPEATS) -> bool:
    """Whether values repeat as numbers of people do, and are neither dates nor fractions."""
    kind = table.dtype(name)
    if kind.is_float() or kind.is_temporal() or kind == pl.Boolean:
        return False
    cells, repeats = table.texts(name)
    has_value = ~cells.str.strip_chars().is_in(NO_VALUE)
    cells, repeats = cells.filter(has_value), repeats[has_value.to_numpy()]
    records, distinct = int(repeats.sum()), len(cells)
    if not records / FEWEST_DISTINCT < distinct < records:
        return False
    if records - distinct < fewest_repeats:
        return False
    return not cells.str.contains(_DATE).all() and not cells.str.contains(_FRACTION).any()


def evidence_of(column: Column, table: Table) -> Evidence | None:
    """What pairs agree on; None where no two steady columns cross."""
    is_value = _has_value(column)
    chosen = np.flatnonzero(is_value[column.codes])
    records = len(chosen)
    if records > MOST_RECORDS:
        chosen = chosen[_sampled(column, records)[column.codes[chosen]]]
    number = column.codes[chosen].astype(np.int64)
    order = np.argsort(number, kind="stable")
    chosen = chosen[order]
    number = number[order]
    pairs = np.flatnonzero(number[1:] == number[:-1])
    if len(pairs) < FEWEST_REPEATS:
        return None
    steady: dict[str, tuple[float, np.ndarray, int]] = {}
    for name in table.names:
        if name == column.name:
            continue
        codes = table.codes_among(name, chosen)
        steadiness = _steadiness(number, codes, pairs)
        if steadiness >= STEADY:
            steady[name] = (steadiness, codes, _distinct(codes))
    crossing = _crossing(steady)
    if not crossing:
        return None
    agreeing = sorted(filter(crossing.__contains__, steady), key=lambda name: -steady[name][0])
    values = int((column.counts()[is_value] > 0).sum())
    return Evidence(column.name, values, records, tuple(agreeing), is_named_as_number(column.name))


def _sampled(column: Column, records: int) -> np.ndarray:
    """The values whose hash is 0, so that all records of a value stay or go; (cells,) bool."""
    share = -(-records // MOST_RECORDS)
    hashes = np.arange(len(column.cells), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return (hashes >> np.uint64(32)) % np.uint64(share) == 0


def _steadiness(number: np.ndarray, codes: np.ndarray, pairs: np.ndarray) -> float:
    """How far pairs agree beyond chance, 1 if always; -1 where the column can't tell.

    pairs: (pairs,) the place of each pair's first record.
    """
    agree = float((codes[pairs] == codes[pairs + 1]).mean())
    if agree < STEADY:  # the way from chance to certainty is no longer than from 0
        return -1.0
    shares = np.bincount(codes) / len(codes)
    chance = float((shares**2).sum())
    distinct = int((shares > 0).sum())
    if distinct < 2 or chance > COMMON:
        return -1.0
    if (agree - chance) / (1 - chance) < STEADY:
        return -1.0
    if _distinct(codes, number) <= distinct:  # it determines the number: another name of the same
        return -1.0
    return (agree - chance) / (1 - chance)


def _distinct(codes: np.ndarray, other: np.ndarray | None = None) -> int:
    """Distinct values, or pairs of values."""
    key = codes if other is None else codes * (int(other.max()) + 1) + other
    return len(np.unique(key))


def _crossing(steady: dict[str, tuple[float, np.ndarray, int]]) -> set[str]:
    """The steady columns that are not nested in another one of them."""
    found: set[str] = set()
    for (one, (_, codes, most)), (two, (_, others, more)) in combinations(steady.items(), 2):
        if _distinct(codes, others) >= CROSSING * max(most, more):
            found |= {one, two}
    return found


# Names of people, such as the numbers of patients, and sensitive values, as they are compared.


UNSEEN = (
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U000e0000-\U000e0fff]"
)
"""Signs that nobody sees: marks of direction, spaces of no width, fillers, tags and controls."""

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
    if not (cell.isascii() and cell.isprintable()):
        cell = unicodedata.normalize("NFKC", _UNSEEN.sub("", cell))
    return cell.strip(BLANKS)


def same_value(cell: str) -> str:
    """A value as promises compare it: a person's name, whatever its case and runs of blanks."""
    folded = person_name(cell).casefold()
    return " ".join((folded if folded.isascii() else person_name(folded)).split())


def values_of(column: Column) -> np.ndarray:
    """(cells,) int64, which value each text is, numbered by first occurrence."""
    number: dict[str, int] = {}
    return np.array(
        [number.setdefault(same_value(cell), len(number)) for cell in column.cells], np.int64
    )


def as_compared(cells: pl.Series) -> pl.Series:
    """The values of a column as promises compare them."""
    column = encode_text(cells)
    return pl.Series(cells.name, [same_value(cell) for cell in column.cells]).gather(column.codes)


def names_of(column: pl.Series) -> pl.Series:
    """The people that a column names."""
    seen = as_text(column).str.replace_all(UNSEEN, "")
    return seen.str.normalize("NFKC").str.strip_chars(BLANKS)


def people_of(column: Column) -> np.ndarray:
    """(n,) the person of each record of a column that names them."""
    number: dict[str, int] = {}
    numbers = [number.setdefault(person_name(cell), len(number)) for cell in column.cells]
    if len(number) == len(column.cells):
        return column.codes
    return np.array(numbers, dtype=np.int32)[column.codes]
