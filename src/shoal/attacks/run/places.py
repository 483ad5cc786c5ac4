"""Where people of other tables stand on the axes of a release."""

from __future__ import annotations

import numpy as np

from shoal.data.boxes import Axis
from shoal.data.numbers import parse_numbers
from shoal.data.schema import Kind, Schema
from shoal.data.table import Column, Table
from shoal.errors import InputError


def points_of(table: Table, axes: tuple[Axis, ...], schema: Schema, what: str) -> np.ndarray:
    """The quasi-identifiers of people of another table, (m, axes) int32; raises InputError where a
    column holds nothing that the release's domain knows.

    A value outside the domain is one that no cell covers.
    """
    columns, findings = [], []
    for axis in axes:
        column = table.column(axis.name)
        places = _places(axis, column, schema)
        if not (places < axis.size).any():
            findings.append(
                f"{what}: none of its values of '{axis.name}' is in the domain of the release;"
                " write them as in the original"
            )
        columns.append(places[column.codes])
    if findings:
        raise InputError.from_findings(findings)
    return np.column_stack(columns) if columns else np.zeros((table.records, 0), dtype=np.int32)


def _places(axis: Axis, column: Column, schema: Schema) -> np.ndarray:
    """The place of each distinct cell on an axis."""
    attribute = schema[axis.name]
    if axis.tree is not None:
        leaves = axis.tree.leaf_codes(np.array(column.cells, dtype=object)).astype(float)
        values = np.where(leaves < 0, np.inf, leaves)
    elif attribute.kind is Kind.ORDINAL:
        index_of = {label: float(i) for i, label in enumerate(attribute.order or ())}
        values = np.array([index_of.get(cell, np.inf) for cell in column.cells])
    else:
        values = parse_numbers(column.cells)
        values = np.where(np.isnan(values), np.inf, values)
    missing = np.array([not schema.is_value(cell) for cell in column.cells], dtype=bool)
    known = np.isfinite(values) & ~missing
    places = np.full(len(values), axis.nowhere, dtype=np.int32)
    places[known] = axis.points(values[known])
    places[missing] = axis.points(np.array([np.nan]))[0]
    return places
