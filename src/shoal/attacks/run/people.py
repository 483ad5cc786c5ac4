"""People and values in numbers that a release and its original share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from shoal.attacks.run.request import points_of
from shoal.data.attack_scene import People, ShownRelease
from shoal.data.boxes import Axis, axes_of, boxes_of
from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.encoding import EncodedTable
from shoal.data.release import PublishedColumn
from shoal.data.schema import Role, Schema
from shoal.data.sensitive import encode_sensitive
from shoal.data.table import Column, Table
from shoal.errors import InputError


@dataclass(frozen=True)
class Ground:
    """The whole table in numbers, to which every release of it and its people are bound.

    sensitive: columns whose codes hold the release's records, then the original's, then the
    control's. people: everybody of the original, in its own order.
    """

    schema: Schema
    original: Table
    encoded: EncodedTable
    axes: tuple[Axis, ...]
    blind: tuple[str, ...]
    sensitive: dict[str, SensitiveColumn]
    people: People
    outsiders: People | None

    def shown(
        self,
        columns: tuple[PublishedColumn, ...],
        classes: Classes,
        sensitive: dict[str, SensitiveColumn],
        plain: dict[str, np.ndarray],
    ) -> ShownRelease:
        """A release in numbers; classes: with its people."""
        boxes = boxes_of(self.axes, columns, classes.labels, classes.people())
        return ShownRelease(boxes, classes.labels, classes.subjects, sensitive, plain)

    def values_of(self, rows: np.ndarray) -> dict[str, SensitiveColumn]:
        """The sensitive columns of some records of the original."""
        return {
            name: replace(column, codes=self.people.values[name][rows].astype(np.int32))
            for name, column in self.sensitive.items()
        }


def ground_of(
    released: Table, original: Table, schema: Schema, encoded: EncodedTable, control: Table | None
) -> Ground:
    """The ground of a release; raises InputError where the control does not fit it."""
    axes, blind = axes_of(encoded.attributes)
    tables = [released, original, *([] if control is None else [control])]
    if control is not None:
        _require_columns(control, schema)
    sensitive: dict[str, SensitiveColumn] = {}
    findings: list[object] = []
    for attribute in schema.sensitive:
        column = _joined([table.column(attribute.name) for table in tables])
        found, wrong = encode_sensitive(attribute, column, schema)
        findings += wrong
        if found is not None:
            values = max(found.values, int(found.codes.max(initial=-1)) + 1)
            sensitive[attribute.name] = replace(found, values=values)
    if findings:
        raise InputError.from_findings([f"attack: {finding}" for finding in findings])
    ends = np.cumsum([table.records for table in tables])
    parts = [
        {name: column.codes[start:stop].astype(np.int64) for name, column in sensitive.items()}
        for start, stop in pairwise(ends.tolist())
    ]
    by_name = {e.attribute.name: e for e in encoded.attributes}
    points = np.zeros((original.records, len(axes)), dtype=np.int32)
    for j, axis in enumerate(axes):
        own = by_name[axis.name]
        points[:, j] = axis.points(own.value_of_code())[own.codes]
    people = People(points, parts[0], _persons(encoded))
    outsiders = None
    if control is not None:
        outside = points_of(control, axes, schema, "control")
        outsiders = People(outside, parts[1], persons_of(control, schema))
    return Ground(schema, original, encoded, axes, tuple(blind), sensitive, people, outsiders)


def persons_of(table: Table, schema: Schema) -> np.ndarray:
    """Whose record each is, (m,); each its own where no column says so."""
    subject = schema.subject
    codes = None if subject is None else table.codes_of(subject.name)
    return np.arange(table.records) if codes is None else codes.astype(np.int64)


def plain_columns(released: Table, schema: Schema) -> dict[str, np.ndarray]:
    """The codes of the columns that pass through."""
    return {
        attribute.name: released.column(attribute.name).codes.astype(np.int64)
        for attribute in schema.with_role(Role.PLAIN)
        if attribute.name in released.names
    }


def _persons(encoded: EncodedTable) -> np.ndarray:
    if encoded.subjects is None:
        return np.arange(encoded.records)
    return encoded.subjects.astype(np.int64)


def _joined(columns: list[Column]) -> Column:
    first, *others = columns
    for other in others:
        first = first.joined(other)
    return first


def _require_columns(control: Table, schema: Schema) -> None:
    needed = [a.name for a in (*schema.quasi, *schema.sensitive)]
    absent = [name for name in needed if name not in control.names]
    if absent:
        raise InputError(
            f"control: has no column '{absent[0]}'; give people with all quasi-identifiers and"
            " sensitive attributes of the policy",
            [f"control: has no column '{name}'" for name in absent[1:]],
        )
