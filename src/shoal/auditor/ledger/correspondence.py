"""How many records classes of two releases can have in common, by counts of what they show.

Forward, cross and backward, as in Fung, Wang, Fu, Pei. EDBT 2008, section 3.
"""

from __future__ import annotations

import numpy as np

from shoal.auditor.ledger.mappings import Mappings
from shoal.auditor.ledger.numbering import (
    Rows,
    counts_by_class,
    lists_by_key,
    numbered,
    values_by_class,
)
from shoal.auditor.ledger.release_view import (
    CELLS,
    HistoryFinding,
    RecordHistory,
    ReleaseView,
)
from shoal.auditor.ledger.transition import Transition

MOST_PAIRS = 1 << 28
"""Pairs of classes whose boxes are compared at most."""

MOST_MEETING = 1 << 18
"""Pairs of classes that meet at most for the backward count, which looks at all around each."""

MOST_EXACT = 200
"""Rows of a release up to which forward, cross and backward are exact. Counts may miss a little."""


def correspondence(step: Transition) -> list[HistoryFinding]:
    """Forward, cross and backward."""
    past, release = step.past, step.release
    first, second = _rows_before(past), (step.after, release.rest[step.rows])
    meeting = overlapping(past.lo, past.hi, release.lo, release.hi)
    mappings = None
    if meeting is not None and len(step.rows) <= MOST_EXACT and _stayed_as_they_were(step):
        mappings = Mappings(first, second, meeting)
    is_exact = mappings is not None
    findings = [
        step.finding(
            "forward and cross",
            _shares_few(step, first, second, mappings),
            CELLS,
            exact=is_exact,
        )
    ]
    if meeting is None or len(meeting) > MOST_MEETING:
        return [*findings, HistoryFinding("backward", step.last_two, None, False)]
    classes = np.unique(step.after[~step.is_old])
    if mappings is None:
        must_be_old = backward(first, second, meeting, classes)
    else:
        must_be_old = mappings.fewest_old(classes)
    sizes = np.bincount(step.after, minlength=release.classes)[classes]
    few = np.zeros(release.classes, dtype=bool)
    few[classes] = sizes - must_be_old < step.k
    newcomers = few[step.after] & ~step.is_old
    return [*findings, step.finding("backward", newcomers, CELLS, exact=is_exact)]


def _rows_before(past: RecordHistory) -> Rows:
    current = past.current
    return past.label[current], past.rest[current]


def _stayed_as_they_were(step: Transition) -> bool:
    """Whether nobody left or changed: then the truth is one of the mappings, as flows need."""
    changed = step.release.changed
    return (
        len(step.past.current) == step.is_old.sum()
        and not step.shows_otherwise.any()
        and (changed is None or not changed.any())
    )


def _shares_few(
    step: Transition, first: Rows, second: Rows, mappings: Mappings | None
) -> np.ndarray:
    """(m,) bool: the old records whose two classes share fewer than k records."""
    old = step.is_old
    pairs, which = np.unique(
        np.stack([step.before[old], step.after[old]], axis=1), axis=0, return_inverse=True
    )
    if mappings is None:
        shared = shared_values(first, second, pairs)
    else:
        shared = mappings.most_shared(pairs)
    shares_few = np.zeros(len(step.rows), dtype=bool)
    shares_few[old] = (shared < step.k)[which.reshape(-1)]
    return shares_few


def compare_boxes(past: RecordHistory, release: ReleaseView, k: int) -> list[HistoryFinding]:
    """What boxes alone tell: classes of two releases that meet and share fewer than k rows.

    For readers who do not know who is who. `past` includes the release afterwards, all of whose
    records count as new ones.
    """
    last_two = (release.release - 1, release.release)
    rows = release.kept
    finding = HistoryFinding("boxes", last_two, None, False)
    meeting = overlapping(past.lo, past.hi, release.lo, release.hi)
    if meeting is not None and len(past.lo):
        second = (release.labels[rows].astype(np.int64), release.rest[rows])
        shared = shared_values(_rows_before(past), second, meeting)
        few = (shared > 0) & (shared < k)
        counts = {"pairs": int(few.sum())}
        finding = HistoryFinding("boxes", last_two, int(shared[few].sum()), bool(few.any()), counts)
    past.replace(release, release.spread(rows, release.labels[rows]), release.classes)
    return [finding]


def shared_values(first: Rows, second: Rows, pairs: np.ndarray) -> np.ndarray:
    """How many records each pair of classes can have in common; (m,) int64.

    The sum over values of the smaller count. A target in both classes hides among no more:
    |g1| - F = |g2| - C = this sum. pairs: (m, 2) classes of the first and the second release.
    """
    classes1, values1, rows1 = counts_by_class(*first)
    classes2, values2, rows2 = counts_by_class(*second)
    # every value of each pair's first class, looked up in its second class
    start = np.searchsorted(classes1, pairs[:, 0], side="left")
    length = np.searchsorted(classes1, pairs[:, 0], side="right") - start
    entry = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
    pair = np.repeat(np.arange(len(pairs)), length)
    wanted, count = numbered(
        np.concatenate([classes2, pairs[pair, 1]]), np.concatenate([values2, values1[entry]])
    )
    shown = np.zeros(count, dtype=np.int64)
    shown[wanted[: len(classes2)]] = rows2
    total = np.zeros(len(pairs), dtype=np.int64)
    np.add.at(total, pair, np.minimum(rows1[entry], shown[wanted[len(classes2) :]]))
    return total


def overlapping(
    lo1: np.ndarray, hi1: np.ndarray, lo2: np.ndarray, hi2: np.ndarray
) -> np.ndarray | None:
    """Pairs of classes whose boxes meet, (m, 2) int64; None where there are too many to compare."""
    if len(lo1) * len(lo2) > MOST_PAIRS:
        return None
    pairs = []
    step = max(1, (1 << 22) // max(len(lo2), 1))
    for start in range(0, len(lo1), step):
        rows = slice(start, start + step)
        meet = np.ones((len(lo1[rows]), len(lo2)), dtype=bool)
        for j in range(lo1.shape[1]):
            low, high = lo1[rows, j, None], hi1[rows, j, None]
            apart = (low > hi2[:, j]) | (high < lo2[:, j])
            # a class without a value meets those without one and the suppressed
            differ = np.isnan(low) != np.isnan(lo2[:, j])
            apart |= differ & ~np.isneginf(low) & ~np.isneginf(lo2[:, j])
            meet &= ~apart
        earlier, later = np.nonzero(meet)
        pairs.append(np.stack([earlier + start, later], axis=1))
    return np.concatenate(pairs) if pairs else np.zeros((0, 2), dtype=np.int64)


def backward(first: Rows, second: Rows, pairs: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """For each of these later classes, how many of its records must be old: B; (len(classes),).

    pairs: classes of the first and the second release whose boxes meet. For every value, the old
    records that fit into the class, less the room that they find in other classes.
    """
    must_be_old = np.zeros(len(classes), dtype=np.int64)
    rows1, rows2 = values_by_class(*first), values_by_class(*second)
    earlier_of = lists_by_key(pairs[:, 1], pairs[:, 0])
    later_of = lists_by_key(pairs[:, 0], pairs[:, 1])
    for i, c in enumerate(classes.tolist()):
        for value, here in rows2.get(c, {}).items():
            sources = [g for g in earlier_of.get(c, ()) if value in rows1.get(g, {})]
            if not sources:
                continue
            old = sum(rows1[g][value] for g in sources)
            targets = {h for g in sources for h in later_of.get(g, ())}
            room = sum(rows2.get(h, {}).get(value, 0) for h in targets)
            must_be_old[i] += max(0, old - (room - here))
    return must_be_old
