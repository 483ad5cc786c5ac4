"""Rows that count as people and may be nobody: totals, notes, and spare rows of a form.

Rows without any value are left out as the table is read. In these, something stands that describes
nobody: a usual sign for no value, a person's name alone, or what all such rows repeat.
"""

import re
from collections.abc import Container, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.column_words import fold, meanings
from shoal.data.person.columns import mixed
from shoal.data.person_names import MOST_NOTES, Described, people_of, rows_lacking
from shoal.data.schema import REMOVED
from shoal.data.table import Column, Table, Texts
from shoal.data.warnings import ROWS_APART, ReleaseWarning
from shoal.policy.binding.files import PolicyTables
from shoal.policy.model import PolicyModel
from shoal.policy.proposal.cells import ColumnCells

_ANY_TOTAL = "(?i)" + "|".join(sorted(meanings()["total"]))
_NUMBER = re.compile(r"[-+]?[\d.,' ]*\d([eE][-+]?\d+)?\s?%?")
MOST_LAST = 20
"""Rows at the end of a table among which statistics of those above them stand."""
MOST_HEADS, MANY_BELOW, MOST_BELOW = 3, 20, 1_000
"""First rows that may say in other words what columns are, and rows that are compared."""
_NOTE = r"\p{L}.*[ :=]"
CHANCE = 0.01
"""The chance that all these people give one answer, below which a form was filled in beforehand."""


def check_signs(table: Table, tables: PolicyTables) -> list[str]:
    """A finding where rows hold nothing but usual signs for no value: listed in the policy, these
    would make them nobody.
    """
    model, (_, silent) = tables.model, tables.nobody(table.names)
    columns = []
    for name in sorted({*table.names} - {*silent}, key=lambda n: n not in model.audited_columns):
        columns.append(Described.of(table.column(name), model.no_names))
        if not columns[-1].is_none.any():  # seldom is a further column encoded
            return []
    count = len(rows_lacking(columns, len(columns)))
    rows, them = ("1 row holds", "it") if count == 1 else (f"{count} rows hold", "them")
    text = (
        f"data: {rows} nothing but usual signs for no value, removed columns aside, and would count"
        f" as people; list the signs under 'missing_values', which leaves {them} out, or take"
        f" {them} out of the data"
    )
    return [text] if count else []


def spare_rows(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning where rows are totals, notes or a second line of names, and one where people have
    no value in any column that a release shows, or none but what all of them repeat and others
    seldom hold.
    """
    if not {*model.audited_columns} <= {*table.names}:
        return []
    apart = _rows_apart(table, model)
    said = _said_of(len(apart))
    known = [Described.of(table.column(name), model.no_names) for name in model.quasi]
    if not any(one.is_none.any() for one in known):
        return said
    known = [one for one in known if _tells_apart(one.column)]
    rows = rows_lacking(known, len(known) // 2 + 1)
    if not len(rows):
        return said
    roles = {name: one.role for name, one in model.attributes.items()}
    more = [n for n in table.names if roles.get(n, model.other) in ("sensitive", "plain")]
    others = [Described.of(table.column(name), model.no_names) for name in more]
    columns = known + [one for one in others if _tells_apart(one.column)]
    rows = np.intersect1d(rows, rows_lacking(columns, len(columns) // 2 + 1))
    people = _people_only_in(np.setdiff1d(_alike(rows, columns), apart), table, model)
    if not people:
        return said
    has, count = ("1 person has", "counts") if people == 1 else (f"{people} people have", "count")
    text = (
        f"{has} no value in any column that a release shows, but what such rows repeat, as"
        f" subtotals and spare rows of a form do, and {count} towards k; take out of the data what"
        " is nobody, then publish"
    )
    return [*said, ReleaseWarning(ROWS_APART, text)]


def _said_of(rows: int) -> list[ReleaseWarning]:
    if not rows:
        return []
    is_one = rows == 1
    text = (
        f"{rows} {'row looks' if is_one else 'rows look'} like a total, a note or a second line of"
        f" names and {'counts as a person' if is_one else 'count as people'}; take out of the data"
        " what is nobody, then publish"
    )
    return [ReleaseWarning(ROWS_APART, text)]


def _rows_apart(table: Table, model: PolicyModel) -> np.ndarray:
    """The rows, ascending, of totals and notes, and those that repeat the names of columns."""
    audited = [Described.of(table.column(name), model.no_names) for name in model.audited_columns]
    lacking, empty = rows_lacking(audited, 1), rows_lacking(audited, len(audited) - 1)
    removed = {*model.subject_columns} | {
        name for name, one in model.attributes.items() if one.role in REMOVED
    }
    names, found = np.zeros(table.records, dtype=np.int8), [np.zeros(0, dtype=np.int64)]
    filled, noted = (np.zeros(len(empty), dtype=np.int64) for _ in range(2))
    last, heads = [], []
    for column in (Texts.of(table, title) for title in table.names):
        names += column.rows_called(column.texts == column.title.strip())
        found += _totals(column, lacking, column.title in removed)
        heads.append(_head_cells(column, model.no_names))
        last.append(_last_cells(column, column.title in removed, model.no_names))
        if 0 < len(empty) <= MOST_NOTES:
            filled += ~column.rows_called(column.texts.is_in(["", *model.no_names]))[empty]
            is_note = column.texts.str.contains(_NOTE) & column.texts.is_unique()
            noted += column.rows_called(is_note)[empty]
    found.append(table.records - 1 - np.arange(_statistics(list(zip(*last, strict=True)))))
    found.append(np.flatnonzero([*map(_is_head, zip(*heads, strict=True))]))
    found += [np.flatnonzero(names > 1), empty[(filled == 1) & (noted == 1)]]
    return np.unique(np.concatenate(found))


def _head_cells(column: Texts, no_names: Container[str]) -> list[str]:
    """How each of the first cells stands to those below: `alike`, `other`, `text` over numbers or
    JSON over anything, `open` over words of any kind, or empty.
    """
    texts = column.texts.gather(column.codes[: MOST_HEADS + MOST_BELOW]).fill_null("").to_list()
    below = [one for one in texts[MOST_HEADS:] if one not in no_names]
    forms = map(re.compile, (_NUMBER.pattern, r".*\d.*", r"\S+", r"\{.*"))
    shares = [np.mean([*map(bool, map(one.fullmatch, below)), False]) for one in forms]
    are_numbers, have_digits, are_words, are_json = (share >= 0.9 for share in shares)

    def stands(cell: str) -> str:
        if cell in no_names or len(below) < MANY_BELOW:
            return ""
        if cell in below or not re.search(r"[^\W\d_]", cell):
            return "alike"
        if are_numbers or (cell.startswith("{") and not are_json):
            return "text"
        is_other = (have_digits and not re.search(r"\d", cell)) or (are_words and " " in cell)
        if is_other or 2 * len({*below}) <= len(below):
            return "other"
        return "alike" if have_digits else "open"

    return [stands(cell) for cell in texts[:MOST_HEADS]]


def _is_head(cells: Sequence[str]) -> bool:
    """Whether the cells of a row are all unlike those below, and one at least is sure to be."""
    return (
        "alike" not in cells and "text" in cells and cells.count("text") + cells.count("other") > 1
    )


def _totals(column: Texts, lacking: np.ndarray, is_removed: bool) -> Iterator[np.ndarray]:
    """The rows that a column calls a total, alone or of another of its values, where it names
    people, the call is the only one or all such rows lack a value.
    """
    some = np.flatnonzero(column.texts.str.contains(_ANY_TOTAL).to_numpy())
    for cell in some[: MOST_NOTES if len(some) <= MOST_NOTES else 0]:
        if _is_total(column.texts[int(cell)], column.texts):
            rows = np.flatnonzero(column.codes == cell)
            if is_removed or len(rows) == 1 or np.isin(rows, lacking).all():
                yield rows


def _is_total(text: str, others: pl.Series) -> bool:
    """Whether a text is a word for totals, or another one of these texts with such a word."""
    known = meanings()
    rest = [word for word in re.findall(r"[^\W_]+", text) if fold(word) not in known["total"]]
    if rest == re.findall(r"[^\W_]+", text):
        return False
    is_alone = all(fold(word) in known["beside_total"] for word in rest)
    return is_alone or " ".join(rest) in others


class _Cell(NamedTuple):
    """A text of a row. is_statistic: whether it is a word for one, and no other row holds it."""

    text: str
    is_statistic: bool
    is_label: bool


def _last_cells(column: Texts, is_label: bool, no_names: Container[str]) -> list[_Cell]:
    """The last cells of a column, the last one first. is_label: whether it names the rows."""
    known = meanings()["total"] | meanings()["statistic"]
    texts = column.texts.gather(column.codes[: -MOST_LAST - 1 : -1]).fill_null("").to_list()
    words = {text: fold(re.sub(r"[\W_]", "", text.replace("%", "percent"))) for text in texts}
    once = {
        text
        for text in words
        if words[text] in known and column.rows_called(column.texts == text).sum() == 1
    }
    return [_Cell("" if one in no_names else one, one in once, is_label) for one in texts]


def _statistics(rows: Sequence[Sequence[_Cell]]) -> int:
    """How many of the last rows are called `SD`, `Min`, `N` and the like by their first text, while
    most other cells are numbers; one alone is not enough but in a column that names the rows.
    """
    labels: list[_Cell] = []
    for row in rows:
        numbers = [cell for cell in row if _NUMBER.fullmatch(cell.text) and not cell.is_statistic]
        texts = [cell for cell in row if cell.text and cell not in numbers]
        if not (texts and texts[0].is_statistic and len(numbers) >= len(texts)):
            break
        labels.append(texts[0])
    is_told = len(labels) > 1 or any(one.is_label for one in labels)
    return len(labels) if is_told else 0


def _alike(rows: np.ndarray, columns: Sequence[Described]) -> np.ndarray:
    """Those of these rows that are alike whenever the same columns are empty, though not by chance,
    or empty in all.
    """
    if not len(rows):
        return rows
    codes = [one.column.codes[rows].astype(np.int64) + 1 for one in columns]
    empty = [one.is_none[one.column.codes[rows]] for one in columns]
    held = mixed(*(np.where(none, 0, code) for none, code in zip(empty, codes, strict=True)))
    _, first, form, sizes = np.unique(
        mixed(*empty), return_index=True, return_inverse=True, return_counts=True
    )
    is_alike = np.bincount(form, held != held[first][form]) == 0
    for number in np.flatnonzero(is_alike):
        row, size = rows[first[number]], int(sizes[number])
        filled = [one for one, none in zip(columns, empty, strict=True) if not none[first[number]]]
        share = min((_share_of(one, row, size) for one in filled), default=0.0)
        repeats = size - 1 if filled else 1  # the first of them may hold any value
        is_alike[number] = share**repeats < CHANCE
    return rows[is_alike[form]]


def _people_only_in(rows: np.ndarray, table: Table, model: PolicyModel) -> int:
    """How many people have no other rows."""
    name = model.person or next(iter(model.subject_columns), None)
    if name is None or not len(rows):
        return len(rows)
    people = people_of(table.column(name))
    of_rows = np.bincount(people[rows], minlength=int(people.max()) + 1)
    return int(((of_rows > 0) & (of_rows == np.bincount(people))).sum())


def _tells_apart(column: Column) -> bool:
    """Whether it says something of some records, unlike a number of each or one text of all."""
    if len(column.cells) == len(column.codes):
        return not ColumnCells.of(column).counts_records
    return len(column.cells) > 1


def _share_of(one: Described, row: int, besides: int) -> float:
    """Of the others with a value, the share that holds what this row holds."""
    counts, cell = one.column.counts(), one.column.codes[row]
    filled = int(counts[~one.is_none].sum())
    return float(counts[cell] - besides + 1) / (filled - besides + 1)
