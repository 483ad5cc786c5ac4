"""A release of the whole table beside all earlier ones: every check in turn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.auditor.ledger.correspondence import Transition, correspondence, distinct
from shoal.auditor.ledger.release_view import (
    CELLS,
    SIGNATURES,
    HistoryFinding,
    RecordHistory,
    ReleaseView,
    counts_by_class,
    numbered,
    people_per,
)


def compare(
    past: RecordHistory, release: ReleaseView, holds: Holds, k: int, guards: str, least: int = 1
) -> list[HistoryFinding]:
    """What a release of the whole table gives away beside all earlier ones.

    `past` includes the release afterwards. k: the least people of a cell that people left.
    guards: what the release rests on; the checks of the other kind are counted and are no
    violation. least: how many sensitive values the classes of a record must have in common.
    """
    step = Transition.of(past, release, k, guards)
    finest, cells = numbered(past.cell[step.records], step.after)
    findings = [
        shared_cells("cells", step, holds, *numbered(step.before, step.after), step.last_two),
        shared_cells("all cells", step, holds, finest, cells, step.all_releases),
        departures(step),
        narrowed_cells(step),
        nestedness(step),
        unchanged(step),
        common_values(step, least),
        *correspondence(step),
    ]
    past.replace(release, release.spread(step.rows, finest), cells)
    return findings


# Classes of several releases together, and published cells that a later release narrows.


Holds = Callable[[np.ndarray, int], np.ndarray]
"""`holds(labels, count)`: whether each group of a release's rows keeps every promise, as
`Promises.holds`.
"""


def shared_cells(
    check: str,
    step: Transition,
    holds: Holds,
    cell: np.ndarray,
    count: int,
    releases: tuple[int, int],
) -> HistoryFinding:
    """People in cells that break a promise. cell: (m,) the cell of each row, 0..count-1."""
    labels = step.release.spread(step.rows, cell).astype(np.int32)
    small = np.logical_not(holds(labels, count))
    return step.finding(check, small[cell], CELLS, releases=releases, cells=int(small.sum()))


def departures(step: Transition) -> HistoryFinding:
    """People who were in the table before and are not now, where fewer than k left a class."""
    past = step.past
    has_left = past.label >= 0
    has_left[step.release.records] = False
    if not has_left.any():
        return HistoryFinding("departures", step.last_two, 0, False, {"cells": 0})
    number, count = numbered(past.label[has_left])
    subjects = None if step.release.subjects is None else past.people[has_left]
    few = people_per(number, count, subjects) < step.k
    people = distinct(few[number], subjects)
    is_violation = people > 0 and step.guards == CELLS
    return HistoryFinding(
        "departures", step.last_two, people, is_violation, {"cells": int(few.sum())}
    )


def narrowed_cells(step: Transition) -> HistoryFinding:
    """People of whom a later cell says more than the earlier one."""
    old = step.is_old
    past, release = step.past, step.release
    before, after = step.before[old], step.after[old]
    leaks = np.zeros((len(step.rows), release.lo.shape[1]), dtype=bool)
    leaks[old] = narrower(past.lo[before], past.hi[before], release.lo[after], release.hi[after])
    leaking = leaks.max(axis=1, initial=False)
    return step.finding(
        "specificity", leaking, CELLS, cells=int(leaks.sum()), records=int(leaking.sum())
    )


def nestedness(step: Transition) -> HistoryFinding:
    """Later classes that lie in no single earlier one; no violation."""
    classes = unnested(step.before[step.is_old], step.after[step.is_old])
    return HistoryFinding("nestedness", step.last_two, None, False, {"classes": classes})


def unchanged(step: Transition) -> HistoryFinding:
    """People whose row shows other values than before without being an update."""
    changed = step.shows_otherwise
    if step.release.changed is not None:
        changed = changed & ~step.release.changed[step.rows]
    return step.finding("unchanged", changed, None)


def narrower(lo: np.ndarray, hi: np.ndarray, new_lo: np.ndarray, new_hi: np.ndarray) -> np.ndarray:
    """Cells whose later span lies inside the earlier one and is less; (n, d) bool."""
    with np.errstate(invalid="ignore"):
        inside = (new_lo >= lo) & (new_hi <= hi)
        return inside & ((new_lo > lo) | (new_hi < hi))


def unnested(before: np.ndarray, after: np.ndarray) -> int:
    """Later classes with records of several earlier ones; (n,) classes of the same records."""
    pairs = np.unique(np.stack([after, before]), axis=1)
    return int((np.bincount(pairs[0]) > 1).sum())


# The sensitive values that classes show, and those that all classes of a record share.


def common_values(step: Transition, least: int) -> HistoryFinding:
    """People whose classes so far have fewer than `least` sensitive values in common."""
    in_common = step.past.narrow(step.release, step.rows)
    return step.finding(
        "signatures",
        in_common < least,
        SIGNATURES,
        releases=step.all_releases,
        least=int(in_common.min()) if len(in_common) else 0,
    )


def values_shown(labels: np.ndarray, values: np.ndarray, count: int) -> list[frozenset[int]]:
    """The set of values that each class shows. labels, values: (n,) class and hashed value."""
    kept = labels >= 0
    classes, shown, _ = counts_by_class(labels[kept], values[kept])
    ends = np.searchsorted(classes, np.arange(count), side="right").tolist()
    values_of = shown.tolist()
    return [frozenset(values_of[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def too_frequent(labels: np.ndarray, values: np.ndarray, count: int, least: int) -> np.ndarray:
    """Classes in which some value has more than one row in `least`; (count,) bool."""
    kept = labels >= 0
    classes, _, rows = counts_by_class(labels[kept], values[kept])
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, classes, rows)
    return most * least > np.bincount(labels[kept], minlength=count)
