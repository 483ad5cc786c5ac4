"""From which days the moved anchors of a class are drawn.

With covered gaps that is the hull of its members' anchors. With exact gaps whoever knows a date d
of a person knows which rows may show it: those of an offset o for which d - o is a day that the
anchor may have, it being equally likely to be any day of the hull. So for every date of a member,
in each slot no row of the class fits, or those of k members do. As every member has one row of each
slot, a person is then found with probability 1 / k at most, in whichever slots the known row may
be: the fitting rows of a person are at most a k-th of all. Where the hull is too narrow for that,
it is widened, at most to the days of the whole study.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np

from shoal.data.classes import pairs_of
from shoal.data.linked import ANCHOR, PEOPLE, LinkedTables
from shoal.data.numbers import run_entries


@dataclass(frozen=True)
class Hulls:
    """(classes,) int64 first and last day from which a class's moved anchors are drawn, 0 where a
    member has no anchor; (classes,) bool, whether no known date tells members apart.
    """

    first: np.ndarray
    last: np.ndarray
    holds: np.ndarray


def step_of(tables: LinkedTables) -> int:
    """Days between those that an anchor may have."""
    return 1 if tables.tree.anchor is None else tables.tree.anchor.step


def hulls_of(tables: LinkedTables, slots: Mapping[str, np.ndarray], k: int) -> Hulls:
    """The days of each class. slots: of each row, by table; those of people are the classes."""
    kept = slots[PEOPLE] >= 0
    classes, days = slots[PEOPLE][kept], tables.people.true_values[ANCHOR][kept]
    count = int(classes.max(initial=-1)) + 1
    least, greatest = np.full(count, np.inf), np.full(count, -np.inf)
    with np.errstate(invalid="ignore"):  # who has no anchor has none to compare
        np.minimum.at(least, classes, days)
        np.maximum.at(greatest, classes, days)
    has_all = np.isfinite(least)
    first, last = (np.where(has_all, end, 0).astype(np.int64) for end in (least, greatest))
    if tables.tree.anchor is None or not tables.tree.anchor.is_exact:
        return Hulls(first, last, np.ones(len(first), dtype=bool))
    return _widened(tables, slots, Hulls(first, last, has_all), k)


def _widened(tables: LinkedTables, slots: Mapping[str, np.ndarray], hulls: Hulls, k: int) -> Hulls:
    """The narrowest hulls, in doubling steps to both sides, in which known dates tell nobody."""
    columns = list(_columns(tables, slots))
    step = step_of(tables)
    start, end = _study(tables)
    before = np.maximum(hulls.first - start, 0) // step * step
    behind = np.maximum(end - hulls.last, 0) // step * step
    first, last, more = hulls.first.copy(), hulls.last.copy(), 0
    while True:
        holds = np.ones(len(first), dtype=bool)
        for dates in columns:
            holds[dates.broken(first, last, step, k)] = False
        wider = ~holds & hulls.holds & (np.maximum(before, behind) > more)
        if not wider.any():
            return Hulls(first, last, holds)
        more = max(step, 2 * more)
        first[wider] = (hulls.first - np.minimum(more, before))[wider]
        last[wider] = (hulls.last + np.minimum(more, behind))[wider]


def _study(tables: LinkedTables) -> tuple[int, int]:
    """The first and the last day of the column that anchors are taken from, over all people."""
    anchor = tables.tree.anchor
    assert anchor is not None
    own = tables.people.true_values[ANCHOR][tables.person_of(anchor.table)]
    days = tables.rows[anchor.table].true_values[anchor.column] + own
    days = days[~np.isnan(days)]
    return (int(days.min()), int(days.max())) if len(days) else (0, 0)


@dataclass(frozen=True)
class _Dates:
    """One column of dates: what may be known, and what is published.

    known_class, known: (d,) int64, the class of a person and the date of a row of it. slot, klass,
    offset: (n,) int64, of each published row with a date.
    """

    known_class: np.ndarray
    known: np.ndarray
    slot: np.ndarray
    klass: np.ndarray
    offset: np.ndarray

    def broken(self, first: np.ndarray, last: np.ndarray, step: int, k: int) -> np.ndarray:
        """The classes in which 1..k - 1 rows of some slot fit a known date."""
        if not len(self.slot):
            return self.slot
        far = int(max(np.ptp(self.offset), 0)) + 1
        base, least = 3 * far, int(self.offset.min())
        keys = np.sort((self.slot * step + self.offset % step) * base + self.offset - least)
        slots, place = np.unique(self.slot, return_index=True)
        slots = slots[np.argsort(self.klass[place], kind="stable")]
        begins = np.searchsorted(np.sort(self.klass[place]), np.arange(len(first) + 1))
        counts = np.diff(begins)[self.known_class]
        known, place = run_entries(begins[self.known_class], counts)
        slot, klass, date = slots[place], self.known_class[known], self.known[known]
        # days of other weeks never meet, as all of a class share the day of the week
        series = (slot * step + (date - first[klass]) % step) * base
        earliest, latest = (
            series + np.clip(date - day[klass] - least, -far, 2 * far - 1) for day in (last, first)
        )
        fitting = np.searchsorted(keys, latest, "right") - np.searchsorted(keys, earliest, "left")
        return klass[(fitting > 0) & (fitting < k)]


def _columns(tables: LinkedTables, slots: Mapping[str, np.ndarray]) -> Iterator[_Dates]:
    """Every column of dates, with the rows of people in classes."""
    anchors = tables.people.true_values[ANCHOR]
    for name, columns in tables.tree.dates.items():
        person = tables.person_of(name)
        klass = slots[PEOPLE][person].astype(np.int64)
        for column in columns:
            offset = tables.rows[name].true_values[column]
            dates = offset + anchors[person]
            known = np.flatnonzero((klass >= 0) & ~np.isnan(dates))
            shown = known[slots[name][known] >= 0]
            classes, dates_known, _ = pairs_of(klass[known], dates[known].astype(np.int64))
            slot, offsets = slots[name][shown].astype(np.int64), offset[shown].astype(np.int64)
            yield _Dates(classes, dates_known, slot, klass[shown], offsets)
