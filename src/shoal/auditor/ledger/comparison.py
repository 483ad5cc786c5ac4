"""A release of the whole table beside all earlier ones: every check in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.kernels.matching import left_over
from shoal.auditor.ledger.release_view import (
    CELLS,
    SIGNATURES,
    HistoryFinding,
    RecordHistory,
    ReleaseView,
    Rows,
    lists_by_key,
    values_by_class,
)
from shoal.data.classes import pairs_of, people_with
from shoal.data.numbers import alike


def compare(
    past: RecordHistory, release: ReleaseView, holds: Holds, k: int, guards: str, least: int = 1
) -> list[HistoryFinding]:
    """What a release of the whole table gives away beside all earlier ones.

    `past` includes the release afterwards. k: the least people of a cell that people left.
    guards: what the release rests on; the checks of the other kind are counted and are no
    violation. least: how many sensitive values the classes of a record must have in common.
    """
    step = Transition.of(past, release, k, guards)
    cell = alike([step.before, step.after], len(step.rows))
    finest = alike([past.cell[step.records], step.after], len(step.rows))
    findings = [
        shared_cells("cells", step, holds, cell, step.last_two),
        shared_cells("all cells", step, holds, finest, step.all_releases),
        departures(step),
        narrowed_cells(step),
        nestedness(step),
        unchanged(step),
        common_values(step, least),
        *correspondence(step),
    ]
    past.replace(release, release.spread(step.rows, finest))
    return findings


# Classes of several releases together, and published cells that a later release narrows.


Holds = Callable[[np.ndarray, int], np.ndarray]
"""`holds(labels, count)`: whether each group of a release's rows keeps every promise, as
`Promises.holds`.
"""


def shared_cells(
    check: str, step: Transition, holds: Holds, cell: np.ndarray, releases: tuple[int, int]
) -> HistoryFinding:
    """People in cells that break a promise. cell: (m,) the cell of each row, numbered from 0."""
    labels = step.release.spread(step.rows, cell).astype(np.int32)
    small = np.logical_not(holds(labels, int(cell.max(initial=-1)) + 1))
    return step.finding(check, small[cell], CELLS, releases=releases, cells=int(small.sum()))


def departures(step: Transition) -> HistoryFinding:
    """People who were in the table before and are not now, where fewer than k left a class."""
    past = step.past
    has_left = past.label >= 0
    has_left[step.release.records] = False
    if not has_left.any():
        return HistoryFinding("departures", step.last_two, 0, False, {"cells": 0})
    number = np.unique(past.label[has_left], return_inverse=True)[1]
    who = past.people[has_left]
    few = people_with(number, who)[1] < step.k
    people, cells = len(np.unique(who[few[number]])), {"cells": int(few.sum())}
    is_violation = people > 0 and step.guards == CELLS
    return HistoryFinding("departures", step.last_two, people, is_violation, cells)


def narrowed_cells(step: Transition) -> HistoryFinding:
    """People of whom a later cell says more than the earlier one."""
    old, past, release = step.is_old, step.past, step.release
    before, after = step.before[old], step.after[old]
    leaks = np.zeros((len(step.rows), release.lo.shape[1]), dtype=bool)
    leaks[old] = narrower(past.lo[before], past.hi[before], release.lo[after], release.hi[after])
    leaking = leaks.max(axis=1, initial=False)
    return step.finding(
        "specificity", leaking, CELLS, cells=int(leaks.sum()), records=int(leaking.sum())
    )


def nestedness(step: Transition) -> HistoryFinding:
    """Later classes that lie in no single earlier one; no violation."""
    later = pairs_of(step.after[step.is_old], step.before[step.is_old])[0]
    counts = {"classes": int((np.bincount(later) > 1).sum())}
    return HistoryFinding("nestedness", step.last_two, None, False, counts)


def unchanged(step: Transition) -> HistoryFinding:
    """People whose row shows other values than before without being an update."""
    is_update = step.release.changed[step.rows]
    return step.finding("unchanged", step.shows_otherwise & ~is_update, None)


def narrower(lo: np.ndarray, hi: np.ndarray, new_lo: np.ndarray, new_hi: np.ndarray) -> np.ndarray:
    """Cells whose later span lies inside the earlier one and is less; (n, d) bool."""
    with np.errstate(invalid="ignore"):
        inside = (new_lo >= lo) & (new_hi <= hi)
        return inside & ((new_lo > lo) | (new_hi < hi))


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
    shown = values_by_class(labels[kept], values[kept])
    return [frozenset(shown.get(label, ())) for label in range(count)]


def too_frequent(labels: np.ndarray, values: np.ndarray, count: int, least: int) -> np.ndarray:
    """Classes in which some value has more than one row in `least`; (count,) bool."""
    kept = labels >= 0
    classes, _, rows = pairs_of(labels[kept], values[kept])
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, classes, rows)
    return most * least > np.bincount(labels[kept], minlength=count)


# How many records classes of two releases can have in common, by counts of what they show.
#
# Forward, cross and backward, as in Fung, Wang, Fu, Pei. EDBT 2008, section 3.


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
    few_in_both = _shares_few(step, first, second, mappings)
    findings = [step.finding("forward and cross", few_in_both, CELLS, exact=is_exact)]
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
    nobody_left = len(step.past.current) == step.is_old.sum()
    return bool(nobody_left) and not (step.shows_otherwise.any() or step.release.changed.any())


def _shares_few(
    step: Transition, first: Rows, second: Rows, mappings: Mappings | None
) -> np.ndarray:
    """(m,) bool: the old records whose two classes share fewer than k records."""
    old = step.is_old
    each = np.stack([step.before[old], step.after[old]], axis=1)
    which = alike(each.T, len(each))
    pairs = each[np.unique(which, return_index=True)[1]]
    shared = mappings.most_shared(pairs) if mappings else shared_values(first, second, pairs)
    shares_few = np.zeros(len(step.rows), dtype=bool)
    shares_few[old] = (shared < step.k)[which]
    return shares_few


def compare_boxes(
    past: RecordHistory, release: ReleaseView, k: int, guards: str
) -> list[HistoryFinding]:
    """What boxes alone tell: classes of two releases that meet and share fewer than k rows, and how
    many rows the later ones have. Signatures can't be judged without knowing who is who.

    For readers who do not know that. `past` includes the release afterwards, all of whose records
    count as new ones. guards: as of `compare`.
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
        among_few = int(np.isin(release.labels[rows], meeting[few, 1]).sum())
        breaks = among_few > 0 and guards == CELLS
        finding = HistoryFinding("boxes", last_two, among_few, breaks, counts)
    past.replace(release, release.spread(rows, release.labels[rows]))
    if guards != SIGNATURES:
        return [finding]
    return [finding, HistoryFinding("signatures", (1, release.release), None, False)]


def shared_values(first: Rows, second: Rows, pairs: np.ndarray) -> np.ndarray:
    """How many records each pair of classes can have in common; (m,) int64.

    The sum over values of the smaller count. A target in both classes hides among no more:
    |g1| - F = |g2| - C = this sum. pairs: (m, 2) classes of the first and the second release.
    """
    shown = [
        pl.DataFrame({"class": classes.astype(np.int64), "value": values}).group_by(pl.all()).len()
        for classes, values in (first, second)
    ]
    shared = (
        pl.DataFrame(pairs, schema=["one", "other"])
        .with_row_index("pair")
        .join(shown[0], left_on="one", right_on="class")
        .join(shown[1], left_on=["other", "value"], right_on=["class", "value"])
        .group_by("pair")
        .agg(pl.min_horizontal("len", "len_right").sum())
    )
    total = np.zeros(len(pairs), dtype=np.int64)
    total[shared["pair"]] = shared["len"]
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


# Which rows of one release can be rows of a later one: exactly, by flows.


class Mappings:
    """All ways in which the rows of one release can be rows of a later one that holds them all.

    A row can only be a row of the same value in a class whose box meets its own. So values don't
    matter to each other, and for each the mappings are the flows from earlier classes, which must
    send all, to later ones, which have room for as many as they show.
    """

    def __init__(self, first: Rows, second: Rows, pairs: np.ndarray) -> None:
        """pairs: (m, 2) classes of the two releases whose boxes meet."""
        self._rows1 = values_by_class(*first)
        self._rows2 = values_by_class(*second)
        self._meets = lists_by_key(pairs[:, 0], pairs[:, 1])

    def most_shared(self, pairs: np.ndarray) -> np.ndarray:
        """The most records that each pair of classes, (m, 2), shares in any mapping; (m,) int64."""
        return np.array([self._most_shared(g1, g2) for g1, g2 in pairs.tolist()], dtype=np.int64)

    def _most_shared(self, g1: int, g2: int) -> int:
        total = 0
        for value, sent in self._rows1[g1].items():
            sources, room = self._of_value(value)
            for shared in range(min(sent, room.get(g2, 0)), 0, -1):
                others = {**sources, g1: sent - shared}
                left = {**room, g2: room[g2] - shared}
                if not _without_room(others, left, self._meets):
                    total += shared
                    break
        return total

    def fewest_old(self, classes: np.ndarray) -> np.ndarray:
        """The fewest records of each of these later classes that are old in any mapping; int64."""
        return np.array([self._fewest_old(g2) for g2 in classes.tolist()], dtype=np.int64)

    def _fewest_old(self, g2: int) -> int:
        """Those that find no room in all other classes."""
        flows = map(self._of_value, self._rows2[g2])
        return sum(_without_room(sent, {**room, g2: 0}, self._meets) for sent, room in flows)

    def _of_value(self, value: int) -> tuple[dict[int, int], dict[int, int]]:
        """How many rows of a value each earlier class sends, and each later one has."""
        sent = {g: shown[value] for g, shown in self._rows1.items() if value in shown}
        return sent, {g: shown[value] for g, shown in self._rows2.items() if value in shown}


def _without_room(
    sources: dict[int, int], room: dict[int, int], meets: dict[int, list[int]]
) -> int:
    """How many rows of the sources don't fit into the classes they meet, at least."""
    place = {target: number for number, target in enumerate(room)}
    fitting = [[place[t] for t in meets.get(source, ()) if t in place] for source in sources]
    starts = np.cumsum([0, *map(len, fitting)])
    wanted, free = (np.array([*rows.values()], dtype=np.int64) for rows in (sources, room))
    return left_over(starts, np.array([*chain(*fitting)], dtype=np.int32), wanted, free)


# A release of the whole table beside the one that it replaces: which rows are the same records.


@dataclass(frozen=True)
class Transition:
    """The rows of a release that are in a class, and where their records were before.

    k: the least people of a cell that people left. guards: what the release rests on; checks of
    the other kind are counted and are not violations.
    rows: (m,) rows of the release that are in a class. records: (m,) their running numbers.
    before: (m,) int64, class in the table before, -1 where absent. after: (m,) int64, class now.
    """

    past: RecordHistory
    release: ReleaseView
    k: int
    guards: str
    rows: np.ndarray
    records: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @classmethod
    def of(cls, past: RecordHistory, release: ReleaseView, k: int, guards: str) -> Transition:
        past.make_room_for(release)
        rows = release.kept
        records = release.records[rows]
        after = release.labels[rows].astype(np.int64)
        return cls(past, release, k, guards, rows, records, past.label[records], after)

    @property
    def is_old(self) -> np.ndarray:
        """(m,) bool: the records that were in a class before."""
        return self.before >= 0

    @property
    def shows_otherwise(self) -> np.ndarray:
        """(m,) bool: the old records whose rows show something else outside the classes."""
        differs: np.ndarray = self.past.rest[self.records] != self.release.rest[self.rows]
        return self.is_old & differs

    @property
    def last_two(self) -> tuple[int, int]:
        return self.release.release - 1, self.release.release

    @property
    def all_releases(self) -> tuple[int, int]:
        return 1, self.release.release

    def finding(
        self,
        check: str,
        concerned: np.ndarray,
        guard: str | None,
        *,
        releases: tuple[int, int] | None = None,
        **more: Any,
    ) -> HistoryFinding:
        """How many people a check concerns; a violation where the release rests on its guard.

        concerned: (m,) bool. guard: None where every release rests on it. releases: which ones
        the check is about; by default the last two.
        """
        people = len(np.unique(self.release.people[self.rows[concerned]]))
        is_violation = people > 0 and guard in (None, self.guards)
        return HistoryFinding(check, releases or self.last_two, people, is_violation, more)
