"""Other releases of the same people, aligned with the one that is attacked."""

from __future__ import annotations

import numpy as np

from shoal.data.attack_scene import EarlierRelease
from shoal.data.schema import Role, Schema
from shoal.data.table import Column, Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.policy import Policy

OTHER = -1  # a value that the newer release does not show


def aligned(
    earlier: Table, policy: Policy, released: Table, truth: Truth, schema: Schema
) -> EarlierRelease | None:
    """An earlier release in the order of the newer one's records; None where people can't be
    aligned. By the subject column where the earlier release has it, else row by row.
    """
    absent = [name for name in policy.quasi if name not in earlier.names]
    if absent:
        raise InputError(
            f"earlier release: has no column '{absent[0]}', a quasi-identifier of its policy; name"
            " its own policy with --earlier-policy"
        )
    rows, how = _rows(earlier, policy, truth, schema)
    if rows is None:
        return None
    rows = truth.aligned(rows)
    labels = np.where(rows >= 0, _labels(earlier, policy)[rows], -2).astype(np.int64)
    unchanged = np.ones(len(rows), dtype=bool)
    for attribute in schema.sensitive:
        if attribute.name in earlier.names:
            now = released.column(attribute.name)
            unchanged &= _codes_in(now, earlier.column(attribute.name))[rows] == now.codes
    return EarlierRelease(labels, unchanged, _order(earlier, released, schema), how)


def _rows(
    earlier: Table, policy: Policy, truth: Truth, schema: Schema
) -> tuple[np.ndarray | None, str]:
    """The earlier row of every record of the original, -1 where there is none; None where that is
    not known.
    """
    subject, original = schema.subject, truth.original
    if subject is not None and subject.name in earlier.names:
        before, now = earlier.column(subject.name), original.column(subject.name)
        if len(before.cells) == earlier.records:  # one record each
            row_of_code = np.argsort(before.codes)
            row_of = dict(zip(before.cells, row_of_code.tolist(), strict=True))
            return np.array([row_of.get(cell, -1) for cell in now.cells])[now.codes], "subject"
    if earlier.records == original.records and policy.model.render.order == "input":
        return np.arange(original.records), "order"
    return None, ""


def _labels(earlier: Table, policy: Policy) -> np.ndarray:
    """The class of each row: equal quasi-identifiers are one class, -1 where all are suppressed."""
    mark = policy.model.render.suppressed
    key = np.zeros(earlier.records, dtype=np.int64)
    suppressed = np.ones(earlier.records, dtype=bool)
    for name in policy.quasi:
        column = earlier.column(name)
        key = key * len(column.cells) + column.codes
        key = np.unique(key, return_inverse=True)[1].reshape(-1)
        suppressed &= np.array([cell == mark for cell in column.cells], dtype=bool)[column.codes]
    return np.where(suppressed, -1, key)


def _codes_in(released: Column, earlier: Column) -> np.ndarray:
    """The earlier values in the codes of the newer release; OTHER where that has no such value."""
    code_of = {cell: code for code, cell in enumerate(released.cells)}
    codes = np.array([code_of.get(cell, OTHER) for cell in earlier.cells], dtype=np.int64)
    return codes[earlier.codes]


def _order(earlier: Table, released: Table, schema: Schema) -> tuple[float, float] | None:
    """How many rows agree on what both releases show unchanged, and by chance."""
    if earlier.records != released.records or not released.records:
        return None
    names = [
        a.name
        for a in schema.with_role(Role.SENSITIVE, Role.PLAIN)
        if a.name in earlier.names and a.name in released.names
    ]
    if not names:
        return None
    agree, chance = np.ones(released.records, dtype=bool), 1.0
    for name in names:
        one, other = released.column(name), earlier.column(name)
        codes = _codes_in(one, other)
        agree &= codes == one.codes
        before = np.bincount(codes[codes >= 0], minlength=len(one.cells)) / len(codes)
        chance *= float(before @ (one.counts() / len(codes)))
    return float(agree.mean()), chance
