"""Coverage without a trace: whether each published row can have a row of the original of its own.

A row of the original fits a published one whose cells cover its values and whose other columns show
what its own do. Whose row is whose stays unknown; but where the largest matching leaves published
rows over, these were made of nothing that the original has.
"""

from collections.abc import Iterable
from decimal import Decimal

import numpy as np
import polars as pl

from shoal.auditor.kernels.matching import HIDDEN, find_fitting, match
from shoal.data.encoding import EncodedTable
from shoal.data.numbers import is_long, parse_numbers
from shoal.data.release import Release, shows_nothing
from shoal.data.schema import Attribute, Kind, Role, Schema
from shoal.data.table import Column, Table

MOST_WORK = 1_000_000_000
"""Pairs of distinct rows that are compared, and steps of the search for a matching, at most."""
MOST_FITTING = 20_000_000
"""Pairs of distinct rows that fit, at most."""


def unmatched(
    released: Table, release: Release, schema: Schema, original: Table, encoded: EncodedTable
) -> int | None:
    """The least number of published rows for which the original has no row of their own.

    None where it is not judged: past the bounds on work, where cells show a mean alone, or where
    numbers have more digits than a float tells apart.
    """
    if any(column.observed_bounds is not None for column in release.columns) or _are_long(
        texts
        for column, one in zip(release.columns, encoded.attributes, strict=True)
        if column.ends is not None
        for texts in (*column.ends, one.texts)
    ):
        return None
    others = [
        _side_by_side(attribute, released, original, release.shown.labels < 0, schema)
        for attribute in schema.published
        if attribute.role in (Role.SENSITIVE, Role.PLAIN)
    ]
    shown = _distinct([column.codes for column in release.columns], [one for one, _ in others])
    known = _distinct([one.codes for one in encoded.attributes], [one for _, one in others])
    first, last = _alike(shown, known)
    if int((last - first).sum()) > MOST_WORK:
        return None
    codes, values = _columns(shown, "quasi"), _columns(known, "quasi")
    pairs = (
        _rows([column.lo[own] for column, own in zip(release.columns, codes, strict=True)]),
        _rows([column.hi[own] for column, own in zip(release.columns, codes, strict=True)]),
        _rows(_columns(shown, "other")).astype(np.int64),
        _rows(
            [one.value_of_code()[own] for one, own in zip(encoded.attributes, values, strict=True)]
        ),
        _rows(_columns(known, "other")).astype(np.int64),
        first,
        last,
    )
    starts = np.zeros(len(shown) + 1, dtype=np.int64)
    find_fitting(*pairs, starts, np.zeros(0, dtype=np.int32))
    if starts[-1] > MOST_FITTING:
        return None
    fitting = np.empty(starts[-1], dtype=np.int32)
    find_fitting(*pairs, starts, fitting)
    by_row = np.argsort(fitting, kind="stable")
    ends = np.searchsorted(fitting[by_row], np.arange(len(known) + 1))
    wanted, free = (side["rows"].to_numpy().astype(np.int64) for side in (shown, known))
    is_done = match(starts, fitting, ends, by_row, wanted, free, MOST_WORK)
    return int(wanted.sum()) if is_done else None


def _are_long(columns: Iterable[tuple[str, ...]]) -> bool:
    return any(bool(is_long(texts).any()) for texts in columns)


def _side_by_side(
    attribute: Attribute, released: Table, original: Table, starred: np.ndarray, schema: Schema
) -> tuple[np.ndarray, np.ndarray]:
    """(n,) codes of a column in the release and in the original, equal where its cells are.

    HIDDEN where a published row that shows nothing else hides its value, too.
    """
    name, code_of = attribute.name, dict[object, int]()
    sides = [
        np.array([code_of.setdefault(cell, len(code_of)) for cell in _comparable(attribute, side)])
        for side in (released.column(name), original.column(name))
    ]
    shown, known = released.column(name), original.column(name)
    is_mark = shows_nothing(released, name, schema.render.suppressed)
    codes = np.where(is_mark[shown.codes] & starred, HIDDEN, sides[0][shown.codes])
    return codes, sides[1][known.codes]


def _comparable(attribute: Attribute, column: Column) -> list[object]:
    """What a column's cells are told apart by: numbers by their value, however it is written."""
    cells: list[object] = list(column.cells)
    if attribute.kind is not Kind.NUMBER or attribute.hierarchy is not None:
        return cells
    numbers, long = parse_numbers(column.cells), is_long(column.cells)
    for i in np.flatnonzero(~np.isnan(numbers)).tolist():
        cells[i] = Decimal(column.cells[i].strip()) if long[i] else float(numbers[i])
    return cells


def _distinct(quasi: list[np.ndarray], others: list[np.ndarray]) -> pl.DataFrame:
    """The distinct rows, how many there are of each; equal other columns stand together."""
    frame = pl.DataFrame(
        {f"quasi {i}": codes for i, codes in enumerate(quasi)}
        | {f"other {i}": codes.astype(np.int64) for i, codes in enumerate(others)}
    )
    keys = [name for name in frame.columns if name.startswith("other")] or frame.columns[:1]
    return frame.group_by(frame.columns).agg(pl.len().alias("rows")).sort(keys)


def _columns(distinct: pl.DataFrame, kind: str) -> list[np.ndarray]:
    return [distinct[name].to_numpy() for name in distinct.columns if name.startswith(kind)]


def _rows(columns: list[np.ndarray]) -> np.ndarray:
    return np.column_stack(columns) if columns else np.zeros((0, 0))


def _alike(shown: pl.DataFrame, known: pl.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """(published,) int64 first and end of the original's distinct rows that may fit each."""
    others = [name for name in shown.columns if name.startswith("other")]
    first, last = np.zeros(len(shown), dtype=np.int64), np.full(len(shown), len(known))
    if others:
        place = pl.col("place")
        placed = known.with_row_index("place").group_by(others)
        runs = placed.agg(place.min().alias("first"), (place.max() + 1).alias("last"))
        alike = shown.join(runs, on=others, how="left", maintain_order="left")
        hides = np.logical_or.reduce([shown[name].to_numpy() == HIDDEN for name in others])
        first = np.where(hides, first, alike["first"].fill_null(0).to_numpy())
        last = np.where(hides, last, alike["last"].fill_null(0).to_numpy())
    return first.astype(np.int64), last.astype(np.int64)
