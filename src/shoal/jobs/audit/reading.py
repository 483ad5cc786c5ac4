"""A released table as its readers see it, and what only its owner knows beside that."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from shoal.data.classes import Classes
from shoal.data.covered_people import people_covered
from shoal.data.release import Release, is_suppressed, label_classes, read_columns
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
    suppressed = is_suppressed(columns, schema.render.suppressed)
    if truth is not None:
        columns = truth.completed(columns)
        # who was not suppressed but shows the mark everywhere is in a class like everybody else
        suppressed &= truth.may_be_suppressed(suppressed, policy.recodes_globally)
    labels, count = label_classes(columns, suppressed)
    subjects = released.codes_of(policy.subject) if truth is None else truth.subjects
    subjects = None if subjects is None else subjects.astype(np.int32, copy=False)
    quasi = {column.name: column.codes for column in columns}
    classes = Classes(labels, count, subjects, sensitive, quasi)
    if policy.populations:
        population = people_covered(policy.populations, schema, columns, classes)
        classes = replace(classes, population=population)
    label = released.codes_of(schema.label)
    originals = {} if truth is None else truth.originals()
    return Release(columns, classes, policy.required_k, label, originals)
