"""A released table as its readers see it, and what only its owner knows beside that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from shoal.auditor.covered_people import people_covered
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.person_names import people_of
from shoal.data.release import (
    PublishedColumn,
    Release,
    is_starred,
    is_withheld,
    label_shown,
    read_columns,
)
from shoal.data.schema import Schema
from shoal.data.sensitive import encode_sensitive_columns
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.binding.populations import tables_of
from shoal.policy.policy import Policy

NEEDS_WITHHELD = (
    "reference: a promise compares with all records of the input, and those that are withheld show"
    " no sensitive value; give the original (--original)"
)


def read_cells(
    released: Table, schema: Schema, policy: Policy
) -> tuple[tuple[PublishedColumn, ...], dict[str, SensitiveColumn]]:
    """What quasi-identifiers and sensitive columns say; raises InputError with every finding."""
    columns, unreadable = read_columns(released, schema)
    sensitive, unfit = encode_sensitive_columns(released, schema, policy.earlier)
    findings = [*unreadable, *unfit]
    if findings:
        raise InputError.from_findings(findings)
    return columns, sensitive


def read_release(released: Table, schema: Schema, policy: Policy, truth: Truth | None) -> Release:
    """The released table; raises InputError with everything in it that can't be read."""
    columns, sensitive = read_cells(released, schema, policy)
    mark, sensitive_names = schema.render.suppressed, [a.name for a in schema.sensitive]
    starred = is_starred(columns, mark)
    if truth is not None:
        columns = truth.completed(columns)
    withheld = is_withheld(released.frame, sensitive_names, starred, mark)
    if withheld and compares_with_input(policy):
        sensitive = _with_withheld_values(released, schema, policy, truth, starred)
    labels, count = label_shown(columns, starred, withheld)
    subjects = None if truth is None else truth.subjects
    if truth is None and policy.subject in released.names:
        subjects = people_of(released.column(policy.subject)).astype(np.int32, copy=False)
    quasi = {column.name: column.codes for column in columns}
    classes = Classes(labels, count, subjects, sensitive, quasi)
    if policy.populations:
        population = people_covered(tables_of(policy), schema, columns, classes)
        classes = replace(classes, population=population)
    label = released.codes_of(schema.label)
    originals = {} if truth is None else truth.originals()
    return Release(columns, classes, policy.required_k, label, originals, starred)


def compares_with_input(policy: Policy) -> bool:
    """Whether suppressed records count in what classes are compared with."""
    return any(model.compares_with_input for model in policy.build_promises())


def _with_withheld_values(
    released: Table, schema: Schema, policy: Policy, truth: Truth | None, starred: np.ndarray
) -> dict[str, SensitiveColumn]:
    """The sensitive columns with what the starred records hold in the original."""
    if truth is None:
        raise InputError(NEEDS_WITHHELD)
    rows = pl.Series(starred)
    columns = {}
    for attribute in schema.sensitive:
        shown = released.frame[attribute.name].cast(pl.String)
        true = truth.original.frame[attribute.name].cast(pl.String)
        true = true if truth.rows is None else true.gather(truth.rows)
        columns[attribute.name] = true.zip_with(rows, shown)
    sensitive, unfit = encode_sensitive_columns(
        Table(pl.DataFrame(columns)), schema, policy.earlier
    )
    if unfit:
        raise InputError.from_findings(unfit)
    return sensitive
