"""Attacker view: what somebody who knows a person's quasi-identifiers sees of them in a release."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from shoal.auditor.audit import as_certified, bind_with_original
from shoal.auditor.publication import Publication
from shoal.auditor.reading import read_release
from shoal.connectors.frames import table_of
from shoal.connectors.traces import rows_given
from shoal.data.encoding import EncodedTable, encode
from shoal.data.people import UNITS, people_key
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.binding.files import Source, published_table, read_released, read_source
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.attacker_view import AttackerView, AttackerViews, OriginalRows
from shoal.tables.draft import Outcome

MOST_EXPOSED, MOST_DISTORTED = "most-exposed", "most-distorted"
WhichRow = int | str


def attacker_view(
    release: Source | Publication[Any],
    policy: PolicyLike,
    original: Source,
    row: WhichRow = MOST_EXPOSED,
    *,
    trace: str | Path | ArrayLike | None = None,
    progress: Progress = no_progress,
) -> AttackerView:
    """What an attacker who knows the quasi-identifiers of one row of the original learns of it.

    release: a file's path, a frame, or what `publish` gave, which also tells whose row is where, as
    the trace does: the row of the original behind each published one. row: its number in the
    original, from 1, or `most-exposed` or `most-distorted`. The result holds values of the table:
    it is for its owner's eyes. Raises InputError where tables and policy don't fit, or there is no
    such row.
    """
    return attacker_views(release, policy, original, trace=trace, progress=progress).of_row(row)


class PreparedViews:
    """A release whose rows are looked at one after the other; see `attacker_view`."""

    def __init__(self, views: AttackerViews) -> None:
        self._views = views

    def of_row(self, row: WhichRow) -> AttackerView:
        """The view of one row; raises InputError where there is no such row."""
        if row in (MOST_EXPOSED, MOST_DISTORTED):
            if self._views.original.place is None:
                raise InputError(
                    f"row '{row}': nobody knows which row of the release is whose; give a number,"
                    " the trace, or what 'publish' returned"
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
    trace: str | Path | ArrayLike | None = None,
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
        file = read_released(str(release), policy)
        released, policy = file.table, as_certified(policy, str(release), file.sha256)
    else:
        released = published_table(table_of(release), policy)[0]
    rows = None if trace is None else rows_given(trace)
    return PreparedViews(_of_table(released, policy, source, rows))


def _of_draft(found: Outcome, policy: Policy, source: Table) -> AttackerViews:
    """A release of which it is known whose row is where."""
    draft = found.draft
    if draft.truth.original.records != source.records:
        raise InputError("original: is not the table that was published; give that one")
    return _views(Table(draft.frame), found.release, source, draft.truth, policy)


def _of_table(
    released: Table, policy: Policy, source: Table, trace: np.ndarray | None
) -> AttackerViews:
    """A release as its readers have it: without its trace, nobody knows whose row is where."""
    problem, truth, findings = bind_with_original(released, policy, source, trace)
    if problem is None or findings:
        raise InputError.from_findings(findings)
    shown = read_release(released, problem, truth)
    if truth is None:
        encoded, unfit = encode(source, problem.schema)
        if encoded is None:
            raise InputError.from_findings([f"original: {finding}" for finding in unfit])
        return _views(released, shown, source, encoded, policy)
    return _views(released, shown, source, truth, policy)


def _views(
    released: Table,
    shown: Release,
    source: Table,
    known_of: Truth | EncodedTable,
    policy: Policy,
) -> AttackerViews:
    """Everything as `AttackerViews` takes it. known_of: whose row is whose, or the source alone."""
    place, encoded = None, known_of
    if isinstance(known_of, Truth):
        encoded, place = known_of.encoded, np.argsort(known_of.trace)
    assert isinstance(encoded, EncodedTable)
    values = {one.attribute.name: one.value_of_code()[one.codes] for one in encoded.attributes}
    known = {column.name: source.column(column.name) for column in shown.columns}
    sensitive = {name: source.column(name) for name in shown.classes.sensitive}
    original = OriginalRows(known, values, sensitive, place)
    is_counted = place is not None or shown.classes.subjects is not None
    unit = UNITS[people_key(policy.subject, is_counted)].many
    columns = {name: released.column(name) for name in sensitive}
    return AttackerViews(shown, columns, original, unit)
