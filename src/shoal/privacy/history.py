"""What several releases of a growing table give away together, measured on what was published.

The attacker has all releases, and knows of some person all quasi-identifiers and in which releases
that person is.
- Cells: people who share a class in one release and a class in another one hide among each other
  only. The cell of a record is all classes it was ever in, "absent" among them; every cell must
  hold what a class must (Byun, Sohn, Bertino, Li. VLDB workshop SDM 2006).
- Signatures: all classes of a record have at least m sensitive values in common (Xiao, Tao. SIGMOD
  2007, where they show the same m values; classes of equal cells are one class to a reader, who
  then sees more).
- Forward and cross: records of a class in the earlier release, or in the later one, that can't be a
  target's who is in both, because the other class lacks their values. Backward: records of a later
  class that must be old, where the target is new (Fung, Wang, Fu, Pei. EDBT 2008).
- Specificity: cells that the later release makes narrower (Li, Liu, Cai, Zhou 2016, figure 1).
- Nestedness: later classes that lie in no single earlier class (Pei, Xu, Wang, Wang, Shi, Tan. ICDM
2007).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

MOST_PAIRS = 1 << 28
"""Pairs of classes whose boxes are compared at most."""

MOST_MEETING = 1 << 18
"""Pairs of classes that meet at most for the backward count, which looks at all around each."""

MOST_EXACT = 200
"""Rows of a release up to which forward, cross and backward are exact instead of counts, which may
miss a little.
"""

Hold = Callable[[np.ndarray, int], np.ndarray]
"""`hold(labels, count)`: whether each group of a release's rows keeps every promise, as
`Promises.hold`.
"""

CELLS, SIGNATURES = "cells", "signatures"
"""What guards a release against its history: as `Republisher.guards`."""


@dataclass(frozen=True)
class Finding:
    """One check of a release against earlier ones.

    releases: which ones it is about, first and last. people: how many it concerns, None where it
    was not counted.
    breaks: whether the release may not be let out. more: further counts.
    """

    check: str
    releases: tuple[int, int]
    people: int | None
    breaks: bool
    more: dict[str, Any] = field(default_factory=dict)

    def report(self) -> dict[str, Any]:
        """As a certificate states it."""
        return {
            "check": self.check,
            "releases": list(self.releases),
            "people": self.people,
            "breaks": self.breaks,
        } | (self.more)


@dataclass(frozen=True)
class Issue:
    """One release as its readers and the owner see it; rows that the owner invented are left out.

    records: (n,) int64 running number of each record. labels: (n,) int32 published class, -1 where
    suppressed.
    subjects: (n,) uint64 tokens, None where every record is its own person.
    lo, hi: (classes, d) float64, what each class shows, in numbers, places or leaves.
    rest: (n,) uint64, everything else that a row shows.
    shown: the sensitive values (hashed) that each class shows.
    changed: (n,) bool, records that are updates of published ones; None where there are none.
    """

    release: int
    records: np.ndarray
    labels: np.ndarray
    lo: np.ndarray
    hi: np.ndarray
    rest: np.ndarray
    shown: Sequence[frozenset[int]]
    subjects: np.ndarray | None = None
    changed: np.ndarray | None = None

    @property
    def classes(self) -> int:
        return len(self.lo)


@dataclass
class Past:
    """All that the releases so far say of every record, by its running number.

    label: class in the table of today, -1 for records that left or are suppressed. cell: number of
    the cell.
    people: its subject. lo, hi: of the classes of the table of today. signature: place in `sets` of
    the sensitive values that all classes of the record had in common.
    """

    label: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    cell: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    rest: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    people: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    lo: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    hi: np.ndarray = field(default_factory=lambda: np.zeros((0, 0)))
    signature: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    sets: list[frozenset[int]] = field(default_factory=list)
    cells: int = 0

    def covering(self, records: int) -> None:
        """Makes room for records up to this number, so far absent."""
        more = max(0, records - len(self.label))
        self.label = np.concatenate([self.label, np.full(more, -1, dtype=np.int64)])
        self.cell = np.concatenate([self.cell, np.full(more, -1, dtype=np.int64)])
        self.rest = np.concatenate([self.rest, np.zeros(more, dtype=np.uint64)])
        self.people = np.concatenate([self.people, np.zeros(more, dtype=np.uint64)])
        self.signature = np.concatenate([self.signature, np.full(more, -1, dtype=np.int64)])

    def append(self, issue: Issue) -> None:
        """Takes in a release that leaves all earlier rows as they are."""
        at = len(self.lo)
        self.covering(int(issue.records.max(initial=-1)) + 1)
        kept = issue.labels >= 0
        self.label[issue.records] = np.where(kept, issue.labels + at, -1)
        self.cell[issue.records] = np.where(kept, issue.labels + self.cells, -1)
        self._describe(issue)
        self.narrow(issue, np.flatnonzero(kept))
        self.lo = np.concatenate([self.lo.reshape(-1, issue.lo.shape[1]), issue.lo])
        self.hi = np.concatenate([self.hi.reshape(-1, issue.hi.shape[1]), issue.hi])
        self.cells += issue.classes

    def replace(self, issue: Issue, cells: np.ndarray, count: int) -> None:
        """Takes in a release of the whole table. cells: (n,) the cell of each of its rows,
        0..count-1.
        """
        self.covering(int(issue.records.max(initial=-1)) + 1)
        self.label[:] = -1
        kept = issue.labels >= 0
        self.label[issue.records] = np.where(kept, issue.labels, -1)
        self.cell[issue.records] = np.where(kept, cells + self.cells, -1)
        self._describe(issue)
        self.lo, self.hi = issue.lo, issue.hi
        self.cells += count

    def narrow(self, issue: Issue, rows: np.ndarray) -> np.ndarray:
        """Takes in what the classes of these rows show; how many values each row's classes have in
        common so far.
        """
        records, labels = issue.records[rows], issue.labels[rows]
        pairs, which = np.unique(
            np.stack([self.signature[records], labels]), axis=1, return_inverse=True
        )
        at = len(self.sets)
        for before, label in pairs.T.tolist():
            self.sets.append(
                issue.shown[label] if before < 0 else self.sets[before] & issue.shown[label]
            )
        self.signature[records] = at + which.reshape(-1)
        return np.array([len(self.sets[at + i]) for i in range(pairs.shape[1])], dtype=np.int64)[
            which.reshape(-1)
        ]

    def _describe(self, issue: Issue) -> None:
        self.rest[issue.records] = issue.rest
        if issue.subjects is not None:
            self.people[issue.records] = issue.subjects


def compare(
    past: Past, issue: Issue, hold: Hold, k: int, guards: str, least: int = 1
) -> list[Finding]:
    """What a release of the whole table gives away beside all earlier ones; `past` then includes
    it.

    k: the least people of a cell that people left. guards: what the release rests on; the checks of
    the other kind
    are counted and break nothing. least: how many sensitive values the classes of a record must
    have in common.
    """
    rows = np.flatnonzero(issue.labels >= 0)
    records, after = issue.records[rows], issue.labels[rows].astype(np.int64)
    past.covering(int(issue.records.max(initial=-1)) + 1)
    before, cell = past.label[records], past.cell[records]
    subjects = None if issue.subjects is None else issue.subjects[rows]
    span, ever = (issue.release - 1, issue.release), (1, issue.release)
    by_cells = guards == CELLS

    def found(
        check: str, releases: tuple[int, int], concerned: Any, breaks: bool, **more: Any
    ) -> Finding:
        people = _distinct(concerned, subjects)
        return Finding(check, releases, people, breaks and people > 0, more)

    findings = []
    pair, pairs = numbered(before, after)
    finest, cells = numbered(cell, after)
    for check, releases, number, count in (
        ("cells", span, pair, pairs),
        ("all cells", ever, finest, cells),
    ):
        labels = np.full(len(issue.labels), -1, dtype=np.int32)
        labels[rows] = number
        small = np.logical_not(hold(labels, count))
        findings.append(found(check, releases, small[number], by_cells, cells=int(small.sum())))
    findings.append(_departures(past, issue, k, by_cells, span))
    old = before >= 0
    leaks = np.zeros((len(rows), issue.lo.shape[1]), dtype=bool)
    leaks[old] = narrower(
        past.lo[before[old]], past.hi[before[old]], issue.lo[after[old]], issue.hi[after[old]]
    )
    leaking = leaks.any(axis=1)
    counts = {"cells": int(leaks.sum()), "records": int(leaking.sum())}
    findings.append(found("specificity", span, leaking, by_cells, **counts))
    findings.append(
        Finding("nestedness", span, None, False, {"classes": unnested(before[old], after[old])})
    )
    changed = np.zeros(len(rows), dtype=bool)
    changed[old] = past.rest[records[old]] != issue.rest[rows[old]]
    if issue.changed is not None:
        changed &= ~issue.changed[rows]
    findings.append(found("unchanged", span, changed, True))
    in_common = past.narrow(issue, rows)
    findings.append(
        found(
            "signatures",
            ever,
            in_common < least,
            guards == SIGNATURES,
            least=int(in_common.min(initial=0)),
        )
    )
    findings += _correspondence(past, issue, rows, before, after, k, by_cells, found)
    past.replace(issue, _filled(len(issue.labels), rows, finest), cells)
    return findings


def _filled(length: int, rows: np.ndarray, numbers: np.ndarray) -> np.ndarray:
    filled = np.full(length, -1, dtype=np.int64)
    filled[rows] = numbers
    return filled


def _distinct(concerned: Any, subjects: np.ndarray | None) -> int:
    return int(concerned.sum()) if subjects is None else len(np.unique(subjects[concerned]))


def _departures(past: Past, issue: Issue, k: int, breaks: bool, span: tuple[int, int]) -> Finding:
    """Records that were in the table before and are not now, class by class."""
    gone = past.label >= 0
    gone[issue.records] = False
    number, count = numbered(past.label[gone])
    subjects = None if issue.subjects is None else past.people[gone]
    few = people_per(number, count if gone.any() else 0, subjects) < k
    people = _distinct(few[number], subjects) if gone.any() else 0
    return Finding("departures", span, people, breaks and people > 0, {"cells": int(few.sum())})


def _correspondence(
    past: Past,
    issue: Issue,
    rows: np.ndarray,
    before: np.ndarray,
    after: np.ndarray,
    k: int,
    breaks: bool,
    found: Callable[..., Finding],
) -> list[Finding]:
    """Forward, cross and backward."""
    span = (issue.release - 1, issue.release)
    today = np.flatnonzero(past.label >= 0)
    first, second = (past.label[today], past.rest[today]), (after, issue.rest[rows])
    old = before >= 0
    meeting = overlapping(past.lo, past.hi, issue.lo, issue.hi)
    # flows need that everybody stayed as they were: then the truth is one of the mappings
    stayed = len(today) == old.sum() and bool(
        (past.rest[issue.records[rows[old]]] == issue.rest[rows[old]]).all()
    )
    stayed &= issue.changed is None or not issue.changed.any()
    is_exact = meeting is not None and len(rows) <= MOST_EXACT and stayed
    mappings = Mappings(first, second, meeting) if is_exact and meeting is not None else None
    pair, which = np.unique(
        np.stack([before[old], after[old]], axis=1), axis=0, return_inverse=True
    )
    shared = shared_values(first, second, pair) if mappings is None else mappings.most_shared(pair)
    concerned = np.zeros(len(rows), dtype=bool)
    concerned[old] = (shared < k)[which.reshape(-1)]
    findings = [found("forward and cross", span, concerned, breaks, exact=is_exact)]
    if meeting is None or len(meeting) > MOST_MEETING:
        return [*findings, Finding("backward", span, None, False)]
    classes = np.unique(after[~old])
    sizes = np.bincount(after, minlength=issue.classes)[classes]
    few = np.zeros(issue.classes, dtype=bool)
    cracked = (
        backward(first, second, meeting, classes)
        if mappings is None
        else mappings.fewest_old(classes)
    )
    few[classes] = sizes - cracked < k
    return [*findings, found("backward", span, few[after] & ~old, breaks, exact=is_exact)]


def compare_boxes(past: Past, issue: Issue, k: int) -> list[Finding]:
    """What can be told without knowing who is who: classes of two releases that meet and share
    fewer than k rows.

    `past` then includes the release, all of whose records count as new ones.
    """
    span = (issue.release - 1, issue.release)
    meeting = overlapping(past.lo, past.hi, issue.lo, issue.hi)
    finding = Finding("boxes", span, None, False)
    rows = np.flatnonzero(issue.labels >= 0)
    if meeting is not None and len(past.lo):
        today = np.flatnonzero(past.label >= 0)
        second = (issue.labels[rows].astype(np.int64), issue.rest[rows])
        shared = shared_values((past.label[today], past.rest[today]), second, meeting)
        few = (shared > 0) & (shared < k)
        finding = Finding(
            "boxes", span, int(shared[few].sum()), bool(few.any()), {"pairs": int(few.sum())}
        )
    past.replace(issue, _filled(len(issue.labels), rows, issue.labels[rows]), issue.classes)
    return [finding]


def numbered(*keys: np.ndarray) -> tuple[np.ndarray, int]:
    """Equal combinations of keys as one number 0..count-1, and the count."""
    number, count = np.zeros(len(keys[0]), dtype=np.int64), 1
    for key in keys:
        distinct, dense = np.unique(key, return_inverse=True)
        if count * max(len(distinct), 1) >= 1 << 62:
            number, count = _dense(number)
        number, count = _dense(number * len(distinct) + dense)
    return number, count


def _dense(number: np.ndarray) -> tuple[np.ndarray, int]:
    distinct, dense = np.unique(number, return_inverse=True)
    return dense.astype(np.int64), len(distinct)


def too_frequent(labels: np.ndarray, values: np.ndarray, count: int, least: int) -> np.ndarray:
    """Classes in which some value has more than one row in `least`; (count,) bool."""
    shown_by, _, times = _counts(labels[labels >= 0], values[labels >= 0])
    most = np.zeros(count, dtype=np.int64)
    np.maximum.at(most, shown_by, times)
    return most * least > np.bincount(labels[labels >= 0], minlength=count)


class KnownPeople:
    """Everybody seen so far, in sorted runs that are merged when they are of like size: looking up
    stays cheap.
    """

    def __init__(self, runs: Sequence[np.ndarray] = ()) -> None:
        """runs: sorted tokens of people who were seen already."""
        self._runs = list(runs)

    def holds(self, people: np.ndarray) -> np.ndarray:
        """Which of these tokens were seen; (n,) bool."""
        seen = np.zeros(len(people), dtype=bool)
        for run in self._runs:
            place = np.minimum(np.searchsorted(run, people), len(run) - 1)
            seen |= run[place] == people
        return seen

    def meet(self, subjects: np.ndarray) -> int:
        """How many of these tokens were seen before; all of them are from now on."""
        new = np.unique(subjects)
        again = self.holds(new)
        fresh = new[~again]
        while self._runs and len(self._runs[-1]) <= len(fresh):
            fresh = np.sort(np.concatenate([self._runs.pop(), fresh]), kind="stable")
        if len(fresh):
            self._runs.append(fresh)
        return int(again.sum())


def people_per(groups: np.ndarray, count: int, subjects: np.ndarray | None) -> np.ndarray:
    """Distinct subjects of each group, (count,) int64."""
    if subjects is None:
        return np.bincount(groups, minlength=count)
    number, many = numbered(groups, subjects)
    of_pair = np.zeros(many, dtype=np.int64)
    of_pair[number] = groups
    return np.bincount(of_pair, minlength=count)


def narrower(lo: np.ndarray, hi: np.ndarray, new_lo: np.ndarray, new_hi: np.ndarray) -> np.ndarray:
    """Cells whose later span lies inside the earlier one and is less; (n, d) bool."""
    with np.errstate(invalid="ignore"):
        inside = (new_lo >= lo) & (new_hi <= hi)
        return inside & ((new_lo > lo) | (new_hi < hi))


def unnested(before: np.ndarray, after: np.ndarray) -> int:
    """Later classes with records of several earlier ones. before, after: (n,) classes of the same
    records.
    """
    pairs = np.unique(np.stack([after, before]), axis=1)
    return int((np.bincount(pairs[0]) > 1).sum())


def values_shown(labels: np.ndarray, values: np.ndarray, count: int) -> list[frozenset[int]]:
    """The set of values that each class shows. labels, values: (n,) class and hashed value of each
    row.
    """
    classes, shown, _ = _counts(labels[labels >= 0], values[labels >= 0])
    ends = np.searchsorted(classes, np.arange(count), side="right").tolist()
    values_of = shown.tolist()
    return [frozenset(values_of[start:end]) for start, end in zip([0, *ends], ends, strict=False)]


def shared_values(
    first: tuple[np.ndarray, np.ndarray], second: tuple[np.ndarray, np.ndarray], pairs: np.ndarray
) -> np.ndarray:
    """How many records each pair of classes can have in common: the sum over values of the smaller
    count; (m,) int64.

    first, second: (classes, values) of all rows of two releases; pairs: (m, 2) classes of the first
    and the second. A target in both classes hides among no more: |g1| - F = |g2| - C = this sum
    (Fung and others, section 3).
    """
    count1, count2 = _counts(*first), _counts(*second)
    total = np.zeros(len(pairs), dtype=np.int64)
    # every value of each pair's first class, looked up in its second class
    start = np.searchsorted(count1[0], pairs[:, 0], side="left")
    length = np.searchsorted(count1[0], pairs[:, 0], side="right") - start
    entry = np.repeat(start - (np.cumsum(length) - length), length) + np.arange(int(length.sum()))
    pair = np.repeat(np.arange(len(pairs)), length)
    wanted, many = numbered(
        np.concatenate([count2[0], pairs[pair, 1]]), np.concatenate([count2[1], count1[1][entry]])
    )
    held = np.zeros(many, dtype=np.int64)
    held[wanted[: len(count2[0])]] = count2[2]
    np.add.at(total, pair, np.minimum(count1[2][entry], held[wanted[len(count2[0]) :]]))
    return total


def _counts(classes: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows per class and value: class, value, count, ordered by class."""
    order = np.lexsort((values, classes))
    classes, values = classes[order], values[order]
    first = np.flatnonzero(
        np.concatenate([[True], (classes[1:] != classes[:-1]) | (values[1:] != values[:-1])])
    )
    if not len(classes):
        first = first[:0]
    return classes[first], values[first], np.diff(np.append(first, len(classes)))


def overlapping(
    lo1: np.ndarray, hi1: np.ndarray, lo2: np.ndarray, hi2: np.ndarray
) -> np.ndarray | None:
    """Pairs of classes whose boxes meet, (m, 2) int64; None where there are too many classes to
    compare.
    """
    if len(lo1) * len(lo2) > MOST_PAIRS:
        return None
    found = []
    step = max(1, (1 << 22) // max(len(lo2), 1))
    for start in range(0, len(lo1), step):
        rows = slice(start, start + step)
        meet = np.ones((len(lo1[rows]), len(lo2)), dtype=bool)
        for j in range(lo1.shape[1]):
            apart = (lo1[rows, j, None] > hi2[:, j]) | (hi1[rows, j, None] < lo2[:, j])
            # a class without a value meets those without one and the suppressed
            none1, none2 = np.isnan(lo1[rows, j, None]), np.isnan(lo2[:, j])
            apart |= (none1 != none2) & ~np.isneginf(lo1[rows, j, None]) & ~np.isneginf(lo2[:, j])
            meet &= ~apart
        i, k = np.nonzero(meet)
        found.append(np.stack([i + start, k], axis=1))
    return np.concatenate(found) if found else np.zeros((0, 2), dtype=np.int64)


def backward(
    first: tuple[np.ndarray, np.ndarray],
    second: tuple[np.ndarray, np.ndarray],
    pairs: np.ndarray,
    classes: np.ndarray,
) -> np.ndarray:
    """For each of these later classes, how many of its records must be old: B of Fung and others;
    (len(classes),).

    pairs: classes of the first and the second release whose boxes meet. For every value, the old
    records that fit into the class, less the places that they find in other classes.
    """
    cracked = np.zeros(len(classes), dtype=np.int64)
    rows1, rows2 = _by_class_and_value(*first), _by_class_and_value(*second)
    meets1 = _lists(pairs[:, 1], pairs[:, 0])
    meets2 = _lists(pairs[:, 0], pairs[:, 1])
    for at, c in enumerate(classes.tolist()):
        for value, here in rows2.get(c, {}).items():
            sources = [g for g in meets1.get(c, ()) if value in rows1.get(g, {})]
            if not sources:
                continue
            old = sum(rows1[g][value] for g in sources)
            targets = {h for g in sources for h in meets2.get(g, ())}
            places = sum(rows2.get(h, {}).get(value, 0) for h in targets)
            cracked[at] += max(0, old - (places - here))
    return cracked


def _by_class_and_value(classes: np.ndarray, values: np.ndarray) -> dict[int, dict[int, int]]:
    found: dict[int, dict[int, int]] = {}
    for c, value, count in zip(*(part.tolist() for part in _counts(classes, values)), strict=True):
        found.setdefault(c, {})[value] = count
    return found


def _lists(keys: np.ndarray, items: np.ndarray) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for key, item in zip(keys.tolist(), items.tolist(), strict=True):
        found.setdefault(key, []).append(item)
    return found


class Mappings:
    """All ways in which the rows of one release can be rows of a later one that holds them all:
    exactly, by flows.

    A row can only be a row of the same value in a class whose box meets its own. So values don't
    matter to each other, and for each the mappings are the flows from earlier classes, which must
    send all, to later ones, which have room for as many as they show.
    """

    def __init__(
        self,
        first: tuple[np.ndarray, np.ndarray],
        second: tuple[np.ndarray, np.ndarray],
        pairs: np.ndarray,
    ) -> None:
        self._rows1, self._rows2 = _by_class_and_value(*first), _by_class_and_value(*second)
        self._meets = _lists(pairs[:, 0], pairs[:, 1])

    def most_shared(self, pairs: np.ndarray) -> np.ndarray:
        """The most records that an earlier and a later class share in any mapping; (m,) int64 for
        pairs (m, 2).
        """
        return np.array([self._most_shared(g1, g2) for g1, g2 in pairs.tolist()], dtype=np.int64)

    def _most_shared(self, g1: int, g2: int) -> int:
        total = 0
        for value, sent in self._rows1[g1].items():
            sources, room = self._of_value(value)
            for shared in range(min(sent, room.get(g2, 0)), 0, -1):
                if _all_find_room(
                    {**sources, g1: sent - shared}, {**room, g2: room[g2] - shared}, self._meets
                ):
                    total += shared
                    break
        return total

    def fewest_old(self, classes: np.ndarray) -> np.ndarray:
        """The fewest records of these later classes that are old in any mapping; (len(classes),)
        int64.
        """
        return np.array([self._fewest_old(g2) for g2 in classes.tolist()], dtype=np.int64)

    def _fewest_old(self, g2: int) -> int:
        total = 0
        for value, here in self._rows2[g2].items():
            sources, room = self._of_value(value)
            total += next(
                old
                for old in range(here + 1)
                if _all_find_room(sources, {**room, g2: old}, self._meets)
            )
        return total

    def _of_value(self, value: int) -> tuple[dict[int, int], dict[int, int]]:
        """How many rows of a value each earlier class sends, and each later one has."""
        sent = {g: shown[value] for g, shown in self._rows1.items() if value in shown}
        return sent, {g: shown[value] for g, shown in self._rows2.items() if value in shown}


def _all_find_room(
    sources: dict[int, int], room: dict[int, int], meets: dict[int, list[int]]
) -> bool:
    """Whether all rows that the sources send fit into the room of the classes that they meet: a
    flow, unit by unit.
    """
    placed: dict[int, dict[int, int]] = {target: {} for target in room}
    for source, many in sources.items():
        for _ in range(many):
            if not _place(source, placed, room, meets, set()):
                return False
    return True


def _place(
    source: int,
    placed: dict[int, dict[int, int]],
    room: dict[int, int],
    meets: dict[int, list[int]],
    tried: set[int],
) -> bool:
    """Puts one row of a source somewhere, moving others on where that makes room."""
    for target in meets.get(source, ()):
        if target not in room or target in tried:
            continue
        tried.add(target)
        inside = placed[target]
        if sum(inside.values()) < room[target]:
            inside[source] = inside.get(source, 0) + 1
            return True
        for other in [g for g, many in inside.items() if many and g != source]:
            if _place(other, placed, room, meets, tried):
                inside[other] -= 1
                inside[source] = inside.get(source, 0) + 1
                return True
    return False
