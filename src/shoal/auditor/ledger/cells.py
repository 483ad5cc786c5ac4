"""Classes of several releases together, and published cells that a later release narrows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from shoal.auditor.ledger.numbering import numbered, people_per
from shoal.auditor.ledger.release_view import CELLS, HistoryFinding
from shoal.auditor.ledger.transition import Transition, distinct

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
