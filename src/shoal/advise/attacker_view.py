"""Attacker view: what somebody who knows a person's quasi-identifiers sees of them in a release."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from shoal.auditor.audit import bind_with_original
from shoal.auditor.publication import Publication
from shoal.auditor.reading import read_release
from shoal.connectors.frames import table_of
from shoal.data.encoding import encode
from shoal.data.people import UNITS, people_key
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.files import Source, published_table, read_released, read_source
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.attacker_view import AttackerView, AttackerViews, OriginalRows
from shoal.recoding.recode import by_content
from shoal.tables.draft import Outcome

MOST_EXPOSED, MOST_DISTORTED = "most-exposed", "most-distorted"
WhichRow = int | str


def attacker_view(
    release: Source | Publication[Any],
    policy: PolicyLike,
    original: Source,
    row: WhichRow = MOST_EXPOSED,
    *,
    progress: Progress = no_progress,
) -> AttackerView:
    """What an attacker who knows the quasi-identifiers of one row of the original learns of it.

    release: a file's path, a frame, or what `publish` gave, which also tells whose row is where
    after a shuffle. row: its number from 1, `most-exposed` or `most-distorted`. The result holds
    values of the table: it is for its owner's eyes. Raises InputError where tables and policy
    don't fit, or there is no such row.
    """
    return attacker_views(release, policy, original, progress=progress).of_row(row)


class PreparedViews:
    """A release whose rows are looked at one after the other; see `attacker_view`."""

    def __init__(self, views: AttackerViews) -> None:
        self._views = views

    def of_row(self, row: WhichRow) -> AttackerView:
        """The view of one row; raises InputError where there is no such row."""
        if row in (MOST_EXPOSED, MOST_DISTORTED):
            if self._views.original.place is None:
                raise InputError(
                    f"row '{row}': the release is shuffled, so nobody knows which row is whose;"
                    " give a number, or what 'publish' returned"
                )
            is_exposed = row == MOST_EXPOSED
            return self._views.of(
                self._views.most_exposed() if is_exposed else self._views.most_distorted()
            )
        rows = self._views.original.records
        if isinstance(row, bool) or not isinstance(row, Integral) or not 1 <= row <= rows:
            raise InputError(
                f"row: is not in the table; give a number from 1 to {rows}, '{MOST_EXPOSED}' or"
                f" '{MOST_DISTORTED}'"
            )
        return self._views.of(int(row))


def attacker_views(
    release: Source | Publication[Any],
    policy: PolicyLike,
    original: Source,
    *,
    progress: Progress = no_progress,
) -> PreparedViews:
    """Views of a release, prepared once for looks at many rows."""
    policy = Policy.of(policy)
    source = read_source(original, policy, progress)
    progress("reading the release")
    found = release.found if isinstance(release, Publication) else None
    if isinstance(found, Outcome):
        return PreparedViews(_of_draft(found, policy, source))
    if isinstance(release, Publication):
        release = release.data
    if isinstance(release, (str, Path)):
        released = Table(read_released(str(release), policy).frame)
    else:
        released = published_table(table_of(release), policy)[0]
    return PreparedViews(_of_table(released, policy, source))


def _of_draft(found: Outcome, policy: Policy, source: Table) -> AttackerViews:
    """A release whose rows are known, although they may be shuffled."""
    draft, records = found.draft, source.records
    if draft.truth.original.records != records:
        raise InputError("original: is not the table that was published; give that one")
    order = np.arange(records)  # the row of the source behind each record that was published
    if policy.model.render.order != "input":
        order = by_content(source.frame)
    place = np.empty(records, dtype=np.int64)
    place[order if draft.truth.rows is None else order[draft.truth.rows]] = np.arange(records)
    values = {}
    for one in draft.truth.encoded.attributes:
        values[one.attribute.name] = np.empty(records)
        values[one.attribute.name][order] = one.value_of_code()[one.codes]
    released = Table(draft.frame)
    return _views(released, found.release, source, values, place, policy)


def _of_table(released: Table, policy: Policy, source: Table) -> AttackerViews:
    """A release as its readers have it: shuffled, nobody knows whose row is where."""
    schema, truth, findings = bind_with_original(released, policy, source)
    if schema is None or findings:
        raise InputError.from_findings(findings)
    encoded, unfit = (truth.encoded, []) if truth is not None else encode(source, schema)
    if encoded is None:
        raise InputError.from_findings([f"original: {finding}" for finding in unfit])
    shown = read_release(released, schema, policy, truth)
    values = {one.attribute.name: one.value_of_code()[one.codes] for one in encoded.attributes}
    place = None if truth is None else np.arange(source.records)
    return _views(released, shown, source, values, place, policy)


def _views(
    released: Table,
    shown: Release,
    source: Table,
    values: dict[str, np.ndarray],
    place: np.ndarray | None,
    policy: Policy,
) -> AttackerViews:
    """Everything as `AttackerViews` takes it. values, place: as in `OriginalRows`."""
    known = {column.name: source.column(column.name) for column in shown.columns}
    sensitive = {name: source.column(name) for name in shown.classes.sensitive}
    original = OriginalRows(known, values, sensitive, place)
    is_counted = place is not None or shown.classes.subjects is not None
    unit = UNITS[people_key(policy.subject, is_counted)].many
    columns = {name: released.column(name) for name in sensitive}
    return AttackerViews(shown, columns, original, unit)
