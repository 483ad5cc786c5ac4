"""Publish a part of a table exactly as the whole was, for comparison; nothing is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import polars as pl

from shoal.data.classes import Classes
from shoal.data.encoding import EncodedTable
from shoal.data.release import PublishedColumn, label_classes, read_columns
from shoal.data.schema import Role, Schema
from shoal.data.sensitive import encode_sensitive_columns
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.populations import encode_populations, tables_of
from shoal.policy.binding.table import BoundTable
from shoal.policy.policy import Policy
from shoal.recoding.boxes import recoding_of_whole_table
from shoal.recoding.recode import find_classes


def republisher(
    table: Table, schema: Schema, encoded: EncodedTable, policy: Policy
) -> Callable[[np.ndarray], tuple[tuple[PublishedColumn, ...], np.ndarray, int]]:
    """Publishes some rows of a table under its policy, with its method, parameters and seed.

    Domains, orders and hierarchies stay those of the whole table. Returns the cells, the class of
    each row and how many there are; raises InfeasibleError.
    """

    def publish_rows(rows: np.ndarray) -> tuple[tuple[PublishedColumn, ...], np.ndarray, int]:
        bound = _part(table, schema, encoded, policy, rows)
        classes, _ = find_classes(*bound.method_input(), bound.policy)
        recoding = recoding_of_whole_table(classes, bound.encoded, schema.render)
        frame = pl.DataFrame(
            [
                recoding.column(j, attribute, schema.render)
                for j, attribute in enumerate(bound.encoded.attributes)
            ]
        )
        columns, unreadable = read_columns(Table(frame), _only_quasi(schema))
        if unreadable:
            raise InputError.from_findings(unreadable)
        labels, count = label_classes(columns, recoding.suppressed)
        return columns, labels, count

    return publish_rows


def _only_quasi(schema: Schema) -> Schema:
    return replace(schema, attributes=schema.with_role(Role.QUASI))


def _part(
    table: Table, schema: Schema, encoded: EncodedTable, policy: Policy, rows: np.ndarray
) -> BoundTable:
    """Some rows of a bound table; everything that only the data tells stays that of the whole."""
    subjects = None
    if encoded.subjects is not None:
        subjects = np.unique(encoded.subjects[rows], return_inverse=True)[1]
        subjects = subjects.reshape(-1).astype(np.int32)
    attributes = tuple(replace(a, codes=a.codes[rows]) for a in encoded.attributes)
    part = EncodedTable(attributes, subjects, encoded.suppressed[rows])
    names = [a.name for a in schema.sensitive]
    smaller = Table(pl.DataFrame([table.frame[name].gather(rows) for name in names]))
    sensitive, strange = encode_sensitive_columns(smaller, schema, policy.earlier)
    populations, wrong = encode_populations(tables_of(policy), schema, encoded)
    if strange or wrong:
        raise InputError.from_findings([*strange, *wrong])
    label = None
    if schema.label is not None:
        label = table.column(schema.label).codes[rows]
    everyone = np.zeros(len(rows), dtype=np.int32)
    whole = Classes(everyone, 1, subjects, sensitive)
    return BoundTable(policy, schema, part, whole, label, populations)
