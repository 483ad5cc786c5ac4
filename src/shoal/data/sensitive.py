"""Sensitive columns as promises measure them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shoal.data.classes import SensitiveColumn
from shoal.data.encoding import parse_numbers
from shoal.data.findings import AttributeFinding, finding_about
from shoal.data.schema import Attribute, Kind, Schema
from shoal.data.table import Column, Table


def encode_sensitive_columns(
    table: Table, schema: Schema, earlier: Mapping[str, Mapping[str, int]]
) -> tuple[dict[str, SensitiveColumn], list[AttributeFinding]]:
    """The sensitive columns by name, or what is wrong. earlier: as in `encode_sensitive`."""
    encoded: dict[str, SensitiveColumn] = {}
    findings: list[AttributeFinding] = []
    for attribute in schema.sensitive:
        name = attribute.name
        column, wrong = encode_sensitive(attribute, table.column(name), schema, earlier.get(name))
        findings += wrong
        if column is not None:
            encoded[name] = column
    return encoded, findings


def encode_sensitive(
    attribute: Attribute, column: Column, schema: Schema, earlier: Mapping[str, int] | None = None
) -> tuple[SensitiveColumn | None, list[AttributeFinding]]:
    """The column with its values in order, or what is wrong with it.

    A missing value is a value of its own: one more place behind all others, one more leaf under the
    root of a hierarchy. earlier: how often each text counts elsewhere; such values have places,
    too.
    """
    if not earlier:
        return _encoded(attribute, column, schema)
    # each earlier text as one more record, whose place is then read off
    place = {cell: i for i, cell in enumerate(column.cells)}
    more = [place.setdefault(cell, len(place)) for cell in earlier]
    longer = Column(
        column.name, np.concatenate([column.codes, np.array(more, dtype=np.int64)]), tuple(place)
    )
    encoded, findings = _encoded(attribute, longer, schema)
    if encoded is None:
        return None, findings
    records = len(column.codes)
    times = np.zeros(encoded.values, dtype=np.int64)
    np.add.at(times, encoded.codes[records:], list(earlier.values()))
    return replace(encoded, codes=encoded.codes[:records], earlier=times), []


def _encoded(
    attribute: Attribute, column: Column, schema: Schema
) -> tuple[SensitiveColumn | None, list[AttributeFinding]]:
    missing = np.array(
        [c in schema.missing_values or c == schema.render.suppressed for c in column.cells],
        dtype=bool,
    )
    place, distance = np.arange(len(column.cells), dtype=np.float64), "equal"
    what = ""
    if attribute.hierarchy is not None and attribute.kind is Kind.CATEGORY:
        place = attribute.hierarchy.leaf_codes(np.array(column.cells, dtype=object)).astype(
            np.float64
        )
        place[place < 0], distance, what = np.nan, "hierarchical", "missing from its hierarchy"
    elif attribute.kind is Kind.NUMBER:
        place, distance, what = parse_numbers(column.cells), "ordered", "that are no numbers"
    elif attribute.kind is Kind.ORDINAL:
        known = {label: i for i, label in enumerate(attribute.order or ())}
        place = np.array([known.get(cell, np.nan) for cell in column.cells], dtype=np.float64)
        distance, what = "ordered", "missing from its order"
    absent = ~np.isfinite(place) & ~missing
    if absent.any():
        remedy = (
            "complete the policy, or mend the data; 'shoal policy check --show-values' lists them"
        )
        return None, [finding_about(column, absent, f"with values {what}", remedy)]
    place[missing] = np.inf
    if distance == "hierarchical":
        assert attribute.hierarchy is not None
        tree = attribute.hierarchy.with_leaf("") if missing.any() else attribute.hierarchy
        codes = np.where(missing, attribute.hierarchy.leaves, np.where(missing, 0, place)).astype(
            np.int32
        )
        return SensitiveColumn(attribute.name, codes[column.codes], tree.leaves, distance, tree), []
    distinct, first, places = np.unique(place, return_index=True, return_inverse=True)
    labels = tuple(column.cells[i] for i in first)
    places = places.astype(np.int32)[column.codes]
    numbers = distinct if attribute.kind is Kind.NUMBER else None
    return (
        SensitiveColumn(
            attribute.name, places, len(distinct), distance, labels=labels, numbers=numbers
        ),
        [],
    )
