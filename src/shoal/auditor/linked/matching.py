"""The matching attack: for how many published people each original person can be taken.

Who has the originals knows every quasi cell of every row, but not which key is whose. A person fits
a published one if its cells lie in the published cells, its numbers of rows in the published
counts, and all published rows can be matched with distinct rows of its own, each with all that
hangs on it. Nothing of how the release was made is used.

Of tables of which any m rows are known, every choice K of m rows is tried, with the rows that they
hang from. Among people who are alike in all else, one way to publish the values below a row holds
for everybody, but it is not known: a value is shown by one of the cells that cover it, by the cell
that is the value if somebody shows that, and nowhere if no cell covers it; nobody shows a cell more
often than the one who shows it most. A person fits K if it shows what K would in some such way, and
for some way to match the rows above K. Known rows drop out below a row that is not published, and
below one of several that look alike, for each of which values may be published in another way.
"""

from collections import ChainMap, Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from itertools import combinations, product
from math import comb

import numpy as np

from shoal.auditor.kernels.matching import left_over
from shoal.auditor.linked.known_dates import KnownDates
from shoal.auditor.linked.labels import view_of
from shoal.auditor.linked.reading import LinkedRelease, is_beyond_chance
from shoal.data.linked import PEOPLE, Known, LinkedTable, LinkedTables, parents_of
from shoal.data.numbers import alike
from shoal.data.release import PublishedColumn, spans_cover

TRIED = 2_000
"""People whom the attack is tried on; of more, as many are drawn."""

CHOICES = 1_000
"""Choices of known rows that are tried of one person; of more, as many are drawn."""

CHOICES_BELOW = 20
"""The same where some hang from rows that have to be matched first, which takes longer."""

PLACEMENTS = 50
"""Ways to match rows above known ones; where there are more, what is known below them is left out,
so that the attack may find less, and never too little of whom somebody fits.
"""


def matching_attack(
    release: LinkedRelease,
    original: LinkedTables,
    k: int,
    rng: np.random.Generator,
    dates: KnownDates | None = None,
) -> tuple[dict[str, int], int]:
    """Tries to find original people among published ones, as far as k candidates each: of how many
    `people` it `tried` some, the `least` published ones that one of them fits, k if nobody fits
    fewer, and how many fit fewer (`below`). And how many published people show the true day of
    somebody who fits them, where more do than chance explains.

    dates: where gaps are exact, what a known date tells; then as many candidates count as are
    likely. People with equal quasi cells in all tables fit the same ones, so one of them is tried.
    """
    attack = _Attack(release, original, dates, rng)
    kinds = attack.truth.knowing_all.labels
    distinct, first, times = np.unique(kinds, return_index=True, return_counts=True)
    chosen = np.arange(len(distinct))
    if len(chosen) > TRIED:
        chosen = np.sort(rng.permutation(len(chosen))[:TRIED])
    found = np.array([attack.candidates(int(person), k) for person in first[chosen]], np.int64)
    tried = int(times[chosen].sum())
    below = int(times[chosen][found < k].sum())
    least = int(found.min(initial=k))
    people = original.people.count
    return {"people": people, "tried": tried, "least": least, "below": below}, attack.unmoved()


Row = tuple[str, int]
"""A table, and a row of it in the original."""


class _Attack:
    """Published people by label, one template each, and the originals' values beside them."""

    def __init__(
        self,
        release: LinkedRelease,
        original: LinkedTables,
        dates: KnownDates | None,
        rng: np.random.Generator,
    ) -> None:
        self.release, self.original, self.dates, self.rng = release, original, dates, rng
        names = [table.name for table in release.tree.tables]
        self.values = {name: [*original.rows[name].true_values.values()] for name in names}
        self.parents = {name: original.rows[name].parents for name in names}
        self.truth = view_of(original)
        kept = np.flatnonzero(~release.withheld)
        _, first, sizes = np.unique(
            release.view.labels[kept], return_index=True, return_counts=True
        )
        largest = np.argsort(-sizes, kind="stable")
        self.templates, self.sizes = kept[first][largest], sizes[largest]
        self.chosen = {
            table.name: _Shown(release, original, table)
            for table in release.tree.tables
            if not isinstance(table.known, Known)
        }
        self._days: dict[int, set[float]] = {}  # of anchors, by the label that people fit
        self._pairs = lru_cache(maxsize=10_000)(self._pairs_below)
        self._fit = lru_cache(maxsize=100_000)(self._children_fit)
        # rows that are alike with all that hangs from them are compared once
        views = release.view, self.truth.knowing_all
        self._first_alike = {
            name: [_first_alike(view.row_labels(name)) for view in views]
            for name in names
            if name != PEOPLE and release.tree.below(name)
        }

    def candidates(self, person: int, enough: int) -> int:
        """How many published people the person fits, at most `enough`."""
        fits = np.ones(len(self.templates), dtype=bool)
        for column, values in self._compared(PEOPLE):
            codes = column.codes[self.templates]
            fits &= spans_cover(column.lo[codes], column.hi[codes], values[person])
        alike = [
            at
            for at in np.flatnonzero(fits).tolist()
            if self._children_fit(PEOPLE, int(self.templates[at]), person)
        ]
        if self.release.moved is not None:  # the true day, from which its dates count
            day = float(self.values[PEOPLE][-1][person])
            labels = self.release.view.labels[self.templates[alike]].tolist()
            for label in labels if day == day else ():  # NaN: there is none
                self._days.setdefault(label, set()).add(day)
        found = enough
        for known in self._choices(person):
            found = min(found, self._fitting(known, person, alike, enough))
        return min(found, self._likely(person, alike, enough))

    def unmoved(self) -> int:
        """How many published people show the true day of somebody who was found to fit them; 0
        where chance explains it, as each day is drawn from a span without looking.
        """
        moved = self.release.moved
        if moved is None:
            return 0
        labels, days = self.release.view.labels, self.release.drawn_days
        shown = np.flatnonzero(np.isfinite(days) & np.isin(labels, list(self._days)))
        true = [self._days[label] for label in labels[shown].tolist()]
        found = sum(day in own for day, own in zip(moved[shown].tolist(), true, strict=True))
        number = np.array([len(own) for own in true], np.float64)
        return found if is_beyond_chance(found, number / days[shown]) else 0

    def _compared(self, name: str) -> Iterator[tuple[PublishedColumn, np.ndarray]]:
        """The columns of a table of which every cell is known, with the true values."""
        shown = self.release.tables[name]
        for column, values in zip(shown.columns, self.values[name], strict=True):
            if column.name not in shown.dates:
                yield column, values

    def _choices(self, person: int) -> set[tuple[Row, ...]]:
        """The rows that may be known of a person: as many as may be, by table and value."""
        known = [(name, row) for name, shown in self.chosen.items() for row in shown.rows(person)]
        size = min(self.release.tree.known_rows or 0, len(known))
        is_below = any(self.release.tree[name].parent != PEOPLE for name, _ in known)
        most = CHOICES_BELOW if is_below else CHOICES
        if comb(len(known), size) <= most:
            return set(combinations(known, size))
        drawn = (self.rng.choice(len(known), size, replace=False) for _ in range(most))
        return {tuple(known[place] for place in sorted(places.tolist())) for places in drawn}

    def _fitting(self, known: tuple[Row, ...], person: int, alike: list[int], enough: int) -> int:
        """How many people of these kinds show what known rows would, at most `enough`."""
        below: dict[Row, Counter[int]] = {}
        for name, row in known:
            below.setdefault((name, int(self.parents[name][row])), Counter())[row] += 1
        above = {one for row in known for one in self._above(row)}
        found = 0
        for at in alike:
            fits = np.zeros(int(self.sizes[at]), dtype=bool)
            for placed in self._placements((PEOPLE, person), int(self.templates[at]), above):
                fits |= self._showing(below, placed, len(fits))
                if fits.all():
                    break
            found += int(fits.sum())
            if found >= enough:
                return enough
        return found

    def _above(self, row: Row) -> Iterator[Row]:
        """The rows that a row hangs from, the person last."""
        name, number = row
        parent = self.release.tree[name].parent
        if parent is not None:
            hangs_from = parent, int(self.parents[name][number])
            yield hangs_from
            yield from self._above(hangs_from)

    def _showing(
        self, below: Mapping[Row, Counter[int]], placed: Mapping[Row, int], members: int
    ) -> np.ndarray:
        """(members,) bool, who of a kind shows known rows. below: by their table and the row above
        them, how often each is known; placed: as `_placements`.
        """
        fits = np.ones(members, dtype=bool)
        for (name, above), rows in below.items():
            published = placed.get((str(self.release.tree[name].parent), above))
            if published is not None:
                fits &= self.chosen[name].fit(published, rows)
        return fits

    def _placements(self, row: Row, published: int, above: set[Row]) -> Iterator[dict[Row, int]]:
        """The ways to match what is known below a row with what is published below another: which
        published row each row of `above` is; one that is missing is not published.
        """
        tables = [
            child.name
            for child in self.release.tree.below(row[0])
            if any(name == child.name for name, _ in above)
        ]
        ways = (self._placements_in(name, row[1], published, above) for name in tables)
        for chosen in product(*ways):
            yield dict(ChainMap({row: published}, *chosen))

    def _placements_in(
        self, name: str, row: int, published: int, above: set[Row]
    ) -> Iterator[dict[Row, int]]:
        slots, rows = self._below(name, row, published)
        fits = self._pairs(name, row, published)
        asked = [place for place, own in enumerate(rows.tolist()) if (name, own) in above]
        options = [[None, *np.flatnonzero(fits[:, place]).tolist()] for place in asked]
        for number, chosen in enumerate(product(*options)):
            if number == PLACEMENTS:
                yield {}
                return
            taken = [slot for slot in chosen if slot is not None]
            rest = np.delete(np.delete(fits, taken, axis=0), asked, axis=1)
            if len(set(taken)) < len(taken) or not is_saturated(rest):
                continue
            ways = (
                self._placements((name, int(rows[place])), int(slots[slot]), above)
                for place, slot in zip(asked, chosen, strict=True)
                if slot is not None
            )
            for deeper in product(*ways):
                yield dict(ChainMap({}, *deeper))

    def _likely(self, person: int, alike: list[int], enough: int) -> int:
        """Among how many people any known date leaves the person, in the kind that hides it best,
        at most `enough`.
        """
        if self.dates is None:
            return enough
        found = 0
        for at in alike:
            label = int(self.dates.labels[self.templates[at]])
            rows, most = self.dates.hidden_among(np.array([person]), label).T
            found = max(found, int((rows // most).min(initial=enough)))
        return found

    def _children_fit(self, name: str, published: int, row: int) -> bool:
        """Whether counts of rows below lie in what is published, and the rows match."""
        shown = self.release.tables[name]
        for child in self.release.tree.below(name):
            if child.known is Known.NONE or not (child.count_known or self._is_whole(child)):
                continue
            slots, rows = self._below(child.name, row, published)
            said = shown.counts.get(child.name)
            if said is not None:
                cell = said.codes[published]
                if not said.lo[cell] <= len(rows) <= said.hi[cell]:
                    return False
            if len(slots) > len(rows):
                return False
            if self._is_whole(child) and not is_saturated(self._pairs(child.name, row, published)):
                return False
        return True

    @staticmethod
    def _is_whole(table: LinkedTable) -> bool:
        """Whether all of its rows are known."""
        return isinstance(table.known, Known)

    def _below(self, name: str, row: int, published: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows of a table below a published row, and below a row of the original."""
        theirs, own = self.release.tables[name].starts, self.original.rows[name].starts
        return (
            np.arange(theirs[published], theirs[published + 1]),
            np.arange(own[row], own[row + 1]),
        )

    def _pairs_below(self, name: str, row: int, published: int) -> np.ndarray:
        """(slots, rows) bool, which published rows of `_below` may be which of the original."""
        slots, rows = self._below(name, row, published)
        fits = np.ones((len(slots), len(rows)), dtype=bool)
        is_seen = self.release.tree[name].known is not Known.COUNT
        for column, values in self._compared(name) if is_seen else ():
            cells = column.codes[slots]
            fits &= spans_cover(column.lo[cells][:, None], column.hi[cells][:, None], values[rows])
        if self.release.tree.below(name):
            first_shown, first_own = self._first_alike[name]
            shown, own = first_shown[slots].tolist(), first_own[rows].tolist()
            for i, j in np.argwhere(fits).tolist():
                fits[i, j] = self._fit(name, shown[i], own[j])
        return fits


def _first_alike(labels: np.ndarray) -> np.ndarray:
    """(n,) the first row with the label of each row."""
    _, first, number = np.unique(labels, return_index=True, return_inverse=True)
    return first[number]


class _Shown:
    """What people show in a table of which some rows are known, by the place that rows hang from.

    A place is all that is known of a published row above: its person's label, and its own. cells:
    (n,) int64 a number for each row that is equal where rows show the same.
    """

    def __init__(self, release: LinkedRelease, original: LinkedTables, about: LinkedTable) -> None:
        table, view, parent = release.tables[about.name], release.view, about.parent
        assert parent is not None
        self.columns = [*table.columns, *table.counts.values()]
        below = [original.rows[name].counts.astype(np.float64) for name in table.counts]
        self.values = [*original.rows[about.name].true_values.values(), *below]
        self.parents = original.rows[about.name].parents
        owner = original.person_of(about.name)
        self.starts = np.searchsorted(owner, np.arange(original.people.count + 1))
        self.cells = alike([column.codes for column in self.columns], table.rows)
        self.first = np.unique(self.cells, return_index=True)[1]
        self.labels, self.person = view.labels, view.person_of[about.name]
        above = self.labels[view.person_of[parent]]
        self.place = alike([above, view.labels_with_above(parent)], len(above))
        self.place_of_row = self.place[parents_of(table.starts)]
        # below one of several rows that look alike, values may be published in another way
        self.is_single = np.bincount(self.place)[self.place] == np.bincount(self.labels)[above]
        self.label_of = above
        self._seen: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def rows(self, person: int) -> list[int]:
        """A person's rows; of those of one parent with equal values, the first, as often."""
        own = range(self.starts[person], self.starts[person + 1])
        # as text, in which no value equals itself
        shown = [(self.parents[row], str([values[row] for values in self.values])) for row in own]
        first = dict(zip(reversed(shown), reversed(own), strict=True))
        return sorted(first[one] for one in shown)

    def fit(self, published: int, rows: Counter[int]) -> np.ndarray:
        """(members,) bool, who of a label shows what known rows of the original would, each as
        often, below a published row.
        """
        cells, times = self._below(published)
        if not self.is_single[published]:
            return np.ones(len(times), dtype=bool)
        fits = np.zeros(len(times), dtype=bool)
        ways = {row: way for row in sorted(rows) if (way := self._ways(cells, row))}
        for chosen in product(*ways.values()):
            asked = np.zeros(len(cells), dtype=np.int64)
            for row, cell in zip(ways, chosen, strict=True):
                asked[cell] += rows[row]
            asked = np.minimum(asked, times.max(axis=0, initial=0))
            fits |= (times >= asked).all(axis=1)
        return fits

    def _below(self, published: int) -> tuple[np.ndarray, np.ndarray]:
        """The cells that people of a label show at a place, and (members, cells) how often."""
        place = int(self.place[published])
        if place not in self._seen:
            members = np.flatnonzero(self.labels == self.label_of[published])
            rows = np.flatnonzero(self.place_of_row == place)
            cells, number = np.unique(self.cells[rows], return_inverse=True)
            times = np.zeros((len(members), len(cells)), dtype=np.int64)
            np.add.at(times, (np.searchsorted(members, self.person[rows]), number), 1)
            self._seen[place] = cells, times
        return self._seen[place]

    def _ways(self, cells: np.ndarray, row: int) -> list[int]:
        """Which of these cells may show a row of the original: the one that is its value, or all
        that cover it.
        """
        covers = np.ones(len(cells), dtype=bool)
        is_value = np.ones(len(cells), dtype=bool)
        for column, known in zip(self.columns, self.values, strict=True):
            codes = column.codes[self.first[cells]]
            lo, hi = column.lo[codes], column.hi[codes]
            covers &= spans_cover(lo, hi, known[row])
            is_value &= (lo == hi) | np.isnan(lo)
        exact = np.flatnonzero(covers & is_value)
        return (exact if len(exact) else np.flatnonzero(covers)).tolist()


def is_saturated(fits: np.ndarray) -> bool:
    """Whether every row of a (slots, rows) matrix can have a column of its own."""
    slots, rows = np.nonzero(fits)
    starts = np.searchsorted(slots, np.arange(len(fits) + 1))
    wanted, free = (np.ones(size, dtype=np.int64) for size in fits.shape)
    return left_over(starts, rows.astype(np.int32), wanted, free) == 0
