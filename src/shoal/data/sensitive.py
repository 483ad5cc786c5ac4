"""Sensitive columns as promises measure them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from shoal.data.classes import SensitiveColumn
from shoal.data.findings import AttributeFinding, Fault, finding_about
from shoal.data.numbers import parse_numbers
from shoal.data.person_names import same_value, same_values, values_of
from shoal.data.room import IN_MEMORY, Room
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
        column, wrong = encode_sensitive(
            attribute, table.column(name), schema, earlier.get(name), table.room
        )
        findings += wrong
        if column is not None:
            encoded[name] = column
    return encoded, findings


def encode_sensitive(
    attribute: Attribute,
    column: Column,
    schema: Schema,
    earlier: Mapping[str, int] | None = None,
    room: Room = IN_MEMORY,
) -> tuple[SensitiveColumn | None, list[AttributeFinding]]:
    """The column with its values in order, or what is wrong with it.

    Every text for no value is a value of its own, behind all others: `SensitiveColumn` can make
    them one. earlier: how often each text counts elsewhere; such values have places,
    too.
    """
    if not earlier:
        return _encoded(attribute, column, schema, room)
    # each earlier text as one more record, whose code is then read off
    index_of = {cell: i for i, cell in enumerate(column.cells)}
    more = [index_of.setdefault(cell, len(index_of)) for cell in earlier]
    longer = Column(
        column.name, np.concatenate([column.codes, np.array(more, dtype=np.int64)]), tuple(index_of)
    )
    encoded, findings = _encoded(attribute, longer, schema, room)
    if encoded is None:
        return None, findings
    records = len(column.codes)
    times = np.zeros(encoded.values, dtype=np.int64)
    np.add.at(times, encoded.codes[records:], list(earlier.values()))
    return replace(encoded, codes=encoded.codes[:records], earlier=times), []


def _encoded(
    attribute: Attribute, column: Column, schema: Schema, room: Room
) -> tuple[SensitiveColumn | None, list[AttributeFinding]]:
    # a text that looks like one for a missing value is missing, too
    none = {same_value(cell) for cell in (*schema.missing_values, schema.render.suppressed)}
    missing = np.array([value in none for value in same_values(column.cells)], dtype=bool)
    keys, distance, unfit = _keys(attribute, column)
    spelled = same_values(attribute.order or ())
    if len({*spelled}) < len(spelled):
        twice = np.array([spelled.count(value) > 1 for value in same_values(column.cells)])
        remedy = "write it one way, in the data and in the policy"
        return None, [
            finding_about(column, twice, "with a value that its order lists twice", remedy)
        ]
    absent = ~np.isfinite(keys) & ~missing
    if absent.any():
        remedy = (
            "complete the policy, or correct the data; 'shoal policy check POLICY DATA"
            " --show-values' lists them"
        )
        return None, [finding_about(column, absent, f"with values {unfit}", remedy)]
    name, tree = attribute.name, attribute.hierarchy
    if tree is not None and distance == "hierarchical":
        places = _with_missing(keys, missing, tree.leaves)
        texts = tuple(column.cells[i] for i in np.flatnonzero(missing))
        values = tree.leaves + len(texts)
        tree = tree.with_leaf("") if texts else tree
        encoded = SensitiveColumn(
            name,
            room.gather(places, column.codes),
            values,
            distance,
            tree,
            texts,
            missing=len(texts),
        )
        return encoded, []
    distinct, first, place = np.unique(keys[~missing], return_index=True, return_inverse=True)
    place_of_key = np.zeros(len(keys))
    place_of_key[~missing] = place
    first = np.concatenate([np.flatnonzero(~missing)[first], np.flatnonzero(missing)])
    numbers = np.append(distinct, np.full(int(missing.sum()), np.inf))
    encoded = SensitiveColumn(
        name,
        room.gather(_with_missing(place_of_key, missing, len(distinct)), column.codes),
        len(first),
        distance,
        labels=tuple(column.cells[i] for i in first),
        numbers=numbers if distance == "ordered" and attribute.kind is Kind.NUMBER else None,
        missing=int(missing.sum()),
    )
    return encoded, []


def _with_missing(places: np.ndarray, missing: np.ndarray, values: int) -> np.ndarray:
    """The place of each cell: texts for no value, in their order, behind these many values."""
    return np.where(missing, values + np.cumsum(missing) - 1, places).astype(np.int32)


def _keys(attribute: Attribute, column: Column) -> tuple[np.ndarray, str, str]:
    """What each cell is ordered by, which distance cells have, and what is wrong with NaN."""
    if attribute.hierarchy is not None and attribute.kind is Kind.CATEGORY:
        leaves = attribute.hierarchy.leaf_codes(np.array(column.cells, dtype=object))
        keys = np.where(leaves < 0, np.nan, leaves)
        return keys, "hierarchical", "missing from its hierarchy"
    if attribute.kind is Kind.NUMBER:
        distance = "equal" if attribute.is_code else "ordered"
        return parse_numbers(column.cells), distance, "that are not numbers"
    if attribute.kind is Kind.ORDINAL:
        index_of = {label: i for i, label in enumerate(attribute.order or ())}
        keys = np.array([index_of.get(cell, np.nan) for cell in column.cells], dtype=np.float64)
        return keys, "ordered", "missing from its order"
    return values_of(column).astype(np.float64), "equal", ""


def values_of_nobody(
    sensitive: Mapping[str, SensitiveColumn],
    designated: Iterable[tuple[str, str, Sequence[str]]],
) -> list[AttributeFinding]:
    """Designated values that nobody has nor could have: a misspelt one would protect nothing.

    designated: the model of a promise, an attribute of it, and its values of that.
    """
    findings = []
    for model, name, values in designated:
        if not values or name not in sensitive:
            continue
        lost = tuple(value for value in values if sensitive[name].code_of(value) is None)
        if lost:
            message = (
                f"promise '{model}': {len(lost)} of its designated values occur in no record of"
                f" '{name}' as they are written; correct them, or leave them out"
            )
            findings.append(AttributeFinding(Fault.POLICY, name, len(lost), message, lost))
    return findings
