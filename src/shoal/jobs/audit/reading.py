"""A released table as its readers see it, and what only its owner knows beside that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.binding.populations import tables_of
from shoal.data.classes import Classes
from shoal.data.covered_people import people_covered
from shoal.data.release import Release, is_starred, is_withheld, label_classes, read_columns
from shoal.data.schema import Schema
from shoal.data.sensitive import encode_sensitive_columns
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.policy import Policy


def read_release(released: Table, schema: Schema, policy: Policy, truth: Truth | None) -> Release:
    """The released table; raises InputError with everything in it that can't be read."""
    columns, unreadable = read_columns(released, schema)
    sensitive, unfit = encode_sensitive_columns(released, schema, policy.earlier)
    findings = [*unreadable, *unfit]
    if findings:
        raise InputError.from_findings(findings)
    mark, sensitive_names = schema.render.suppressed, [a.name for a in schema.sensitive]
    starred = is_starred(columns, mark)
    if truth is not None:
        columns = truth.completed(columns)
    labels, count = label_classes(columns, starred)
    if starred.any() and not is_withheld(released.frame, sensitive_names, starred, mark):
        # by their cells alone, whatever made them: the last class
        labels, count = np.where(starred, np.int32(count), labels), count + 1
    subjects = released.codes_of(policy.subject) if truth is None else truth.subjects
    subjects = None if subjects is None else subjects.astype(np.int32, copy=False)
    quasi = {column.name: column.codes for column in columns}
    classes = Classes(labels, count, subjects, sensitive, quasi)
    if policy.populations:
        population = people_covered(tables_of(policy), schema, columns, classes)
        classes = replace(classes, population=population)
    label = released.codes_of(schema.label)
    originals = {} if truth is None else truth.originals()
    return Release(columns, classes, policy.required_k, label, originals, starred)
