"""Who of a population fits each class of a release: everybody whom all of its cells cover."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from shoal.data.classes import Classes, Population
from shoal.data.encoding import encode_attribute
from shoal.data.release import PublishedColumn, spans_cover
from shoal.data.schema import Attribute, Kind, Schema
from shoal.data.table import Column, Table

_BLOCK = 1 << 24  # pairs of a class and a person that are compared at a time


def people_covered(
    tables: dict[str, Table], schema: Schema, columns: tuple[PublishedColumn, ...], classes: Classes
) -> dict[str, Population]:
    """Who of each population fits each class; empty where values can't be read here."""
    if any(attribute.opaque for attribute in schema.quasi):
        return {}
    return {
        name: _people_covered(table, schema, columns, classes) for name, table in tables.items()
    }


def _people_covered(
    table: Table, schema: Schema, columns: tuple[PublishedColumn, ...], classes: Classes
) -> Population:
    """For each class the people whom all of its cells cover."""
    people, weights = _distinct([table.column(a.name) for a in schema.quasi])
    kept = np.flatnonzero(classes.labels >= 0)
    shown = np.zeros((classes.count, len(columns)), dtype=np.int64)
    for j, published in enumerate(columns):
        shown[classes.labels[kept], j] = published.codes[kept]
    covered = [
        _covered(attribute, published, table.column(attribute.name), schema)
        for attribute, published in zip(schema.quasi, columns, strict=True)
    ]
    counts = np.zeros(classes.count, dtype=np.int64)
    covered_somewhere = np.zeros(len(weights), dtype=bool)
    step = max(_BLOCK // max(len(weights), 1), 1)
    for start in range(0, classes.count, step):
        rows = slice(start, start + step)
        fits = np.ones((len(shown[rows]), len(weights)), dtype=bool)
        for j, cells in enumerate(covered):
            fits &= cells[shown[rows, j]][:, people[:, j]]
        counts[rows] = fits @ weights
        covered_somewhere |= fits.any(axis=0)
    return Population(counts, int(weights[~covered_somewhere].sum()))


def _distinct(columns: Iterable[Column]) -> tuple[np.ndarray, np.ndarray]:
    """Distinct rows of codes, and how often each occurs."""
    rows, counts = np.unique(
        np.column_stack([c.codes for c in columns]), axis=0, return_counts=True
    )
    return rows, counts


def _covered(
    attribute: Attribute, published: PublishedColumn, column: Column, schema: Schema
) -> np.ndarray:
    """Which published cell covers which value of the population; (cells, values) bool."""
    if attribute.hierarchy is None and attribute.kind is Kind.CATEGORY:
        mark = schema.render.suppressed
        return np.array(
            [[cell in (mark, value) for value in column.cells] for cell in published.cells]
        )
    encoded, _ = encode_attribute(attribute, column, schema)
    values = np.full(len(column.cells), np.inf) if encoded is None else encoded.value_of_code()
    return spans_cover(published.lo[:, None], published.hi[:, None], values)
