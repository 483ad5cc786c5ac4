"""The matching attack: for how many published people each original person can be taken.

Who has the originals knows every quasi cell of every row, but not which key is whose. A person fits
a published one if its cells lie in the published cells, its numbers of rows in the published
counts, and all published rows can be matched with distinct rows of its own, each with all that
hangs on it. Nothing of how the release was made is used.

Of tables right below people of which any m rows are known, every choice K of m rows is tried. Among
people who are alike in all else, one way to publish values holds for everybody, but it is not
known: a value is shown by one of the cells that cover it, by the cell that is the value if somebody
shows that, and nowhere if no cell covers it; nobody shows a cell more often than the one who shows
it most. A person fits K if in some such way it shows what K would. Tables with a number below other
tables are judged on the files alone.
"""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import combinations, product

import numpy as np

from shoal.auditor.linked.known_dates import KnownDates
from shoal.auditor.linked.labels import view_of
from shoal.auditor.linked.reading import LinkedRelease, ReleasedTable
from shoal.data.linked import PEOPLE, Known, LinkedTable, LinkedTables
from shoal.data.numbers import alike
from shoal.data.release import PublishedColumn, spans_cover

TRIED = 2_000
"""People whom the attack is tried on; of more, as many are drawn."""


@dataclass(frozen=True)
class Matched:
    """What the attack found. people: of the original; tried: how many of them; least: the fewest
    published people that one of them fits, k if nobody fits fewer; below: how many fit fewer.
    """

    people: int
    tried: int
    least: int
    below: int

    def report(self) -> dict[str, int]:
        return asdict(self)


def matching_attack(
    release: LinkedRelease,
    original: LinkedTables,
    k: int,
    rng: np.random.Generator,
    dates: KnownDates | None = None,
) -> Matched:
    """Tries to find original people among published ones, as far as k candidates each.

    dates: where gaps are exact, what a known date tells; then as many candidates count as are
    likely. People with equal quasi cells in all tables fit the same ones, so one of them is tried.
    """
    attack = _Attack(release, original, dates)
    kinds = attack.truth.knowing_all.labels
    distinct, first, times = np.unique(kinds, return_index=True, return_counts=True)
    chosen = np.arange(len(distinct))
    if len(chosen) > TRIED:
        chosen = np.sort(rng.permutation(len(chosen))[:TRIED])
    found = np.array([attack.candidates(int(person), k) for person in first[chosen]], np.int64)
    tried = int(times[chosen].sum())
    below = int(times[chosen][found < k].sum())
    return Matched(original.people.count, tried, int(found.min(initial=k)), below)


Choice = tuple[tuple[str, int], ...]
"""Rows that are known, by table; of rows with equal values, the first, as often."""


class _Attack:
    """Published people by label, one template each, and the originals' values beside them."""

    def __init__(
        self, release: LinkedRelease, original: LinkedTables, dates: KnownDates | None
    ) -> None:
        self.release, self.original, self.dates = release, original, dates
        names = [table.name for table in release.tree.tables]
        self.values = {name: _values(original, name) for name in names}
        self.truth = view_of(original)
        kept = np.flatnonzero(~release.withheld)
        _, first, sizes = np.unique(
            release.view.labels[kept], return_index=True, return_counts=True
        )
        largest = np.argsort(-sizes, kind="stable")
        self.templates, self.sizes = kept[first][largest], sizes[largest]
        self.chosen = {
            table.name: _Shown(release, table.name)
            for table in release.tree.below(PEOPLE)
            if not isinstance(table.known, Known)
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
        found = min([self._fitting(known, alike, enough) for known in self._choices(person)])
        return min(found, self._likely(person, alike, enough))

    def _compared(self, name: str) -> Iterator[tuple[PublishedColumn, np.ndarray]]:
        """The columns of a table of which every cell is known, with the true values."""
        shown = self.release.tables[name]
        for column, values in zip(shown.columns, self.values[name], strict=True):
            if column.name not in shown.dates:
                yield column, values

    def _choices(self, person: int) -> set[Choice]:
        """The rows that may be known of a person: as many as may be, by table and value."""
        rows = []
        for name in self.chosen:
            starts = self.original.rows[name].starts
            own = np.arange(starts[person], starts[person + 1])
            cells = zip(*(values[own].tolist() for values in self.values[name]), strict=True)
            # as text, in which no value equals itself
            rows += [(name, str(cell), row) for cell, row in zip(cells, own.tolist(), strict=True)]
        first = {(name, cell): row for name, cell, row in reversed(rows)}
        known = sorted((name, first[name, cell]) for name, cell, _ in rows)
        return set(combinations(known, min(self.release.tree.known_rows or 0, len(known))))

    def _fitting(self, known: Choice, alike: list[int], enough: int) -> int:
        """How many people of these kinds show what known rows would, at most `enough`."""
        found = 0
        for at in alike:
            fits = np.ones(int(self.sizes[at]), dtype=bool)
            label = int(self.release.view.labels[self.templates[at]])
            for name, shown in self.chosen.items():
                rows = [row for table, row in known if table == name]
                if rows:
                    fits &= shown.fit(label, rows, self.values[name])
            found += int(fits.sum())
            if found >= enough:
                return enough
        return found

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
            own, theirs = self.original.rows[child.name], self.release.tables[child.name]
            rows = np.arange(own.starts[row], own.starts[row + 1])
            said = shown.counts.get(child.name)
            if said is not None:
                cell = said.codes[published]
                if not said.lo[cell] <= len(rows) <= said.hi[cell]:
                    return False
            slots = np.arange(theirs.starts[published], theirs.starts[published + 1])
            if len(slots) > len(rows):
                return False
            if self._is_whole(child) and not self._match(child.name, theirs, slots, rows):
                return False
        return True

    @staticmethod
    def _is_whole(table: LinkedTable) -> bool:
        """Whether all of its rows are known."""
        return isinstance(table.known, Known)

    def _match(self, name: str, theirs: ReleasedTable, slots: np.ndarray, rows: np.ndarray) -> bool:
        """Whether all published rows can be matched with distinct rows of the original."""
        fits = np.ones((len(slots), len(rows)), dtype=bool)
        is_seen = self.release.tree[name].known is not Known.COUNT
        for column, values in self._compared(name) if is_seen else ():
            cells = column.codes[slots]
            fits &= spans_cover(column.lo[cells][:, None], column.hi[cells][:, None], values[rows])
        if self.release.tree.below(name):
            for i, j in np.argwhere(fits).tolist():
                fits[i, j] = self._children_fit(name, int(slots[i]), int(rows[j]))
        return is_saturated(fits)


class _Shown:
    """What people show in a table of which some rows are known, by label.

    cells: (n,) int64 a number for each row that is equal where rows show the same.
    """

    def __init__(self, release: LinkedRelease, name: str) -> None:
        table = release.tables[name]
        self.columns, self.person = table.columns, release.view.person_of[name]
        self.cells = alike([column.codes for column in table.columns], table.rows)
        self.first = np.unique(self.cells, return_index=True)[1]
        self.labels = release.view.labels
        self._seen: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def fit(self, label: int, rows: list[int], values: list[np.ndarray]) -> np.ndarray:
        """(members,) bool, who of a label shows what known rows of the original would."""
        cells, times = self._of(label)
        fits = np.zeros(len(times), dtype=bool)
        distinct = sorted(set(rows))
        ways = {row: way for row in distinct if (way := self._ways(cells, row, values))}
        for chosen in product(*ways.values()):
            asked = np.zeros(len(cells), dtype=np.int64)
            for row, cell in zip(ways, chosen, strict=True):
                asked[cell] += rows.count(row)
            asked = np.minimum(asked, times.max(axis=0, initial=0))
            fits |= (times >= asked).all(axis=1)
        return fits

    def _of(self, label: int) -> tuple[np.ndarray, np.ndarray]:
        """The cells that people of a label show, and (members, cells) how often each does."""
        if label not in self._seen:
            members = np.flatnonzero(self.labels == label)
            rows = np.flatnonzero(self.labels[self.person] == label)
            cells, place = np.unique(self.cells[rows], return_inverse=True)
            times = np.zeros((len(members), len(cells)), dtype=np.int64)
            np.add.at(times, (np.searchsorted(members, self.person[rows]), place), 1)
            self._seen[label] = cells, times
        return self._seen[label]

    def _ways(self, cells: np.ndarray, row: int, values: list[np.ndarray]) -> list[int]:
        """Which of these cells may show a row of the original: the one that is its value, or all
        that cover it.
        """
        covers = np.ones(len(cells), dtype=bool)
        is_value = np.ones(len(cells), dtype=bool)
        for column, known in zip(self.columns, values, strict=True):
            codes = column.codes[self.first[cells]]
            lo, hi = column.lo[codes], column.hi[codes]
            covers &= spans_cover(lo, hi, known[row])
            is_value &= (lo == hi) | np.isnan(lo)
        exact = np.flatnonzero(covers & is_value)
        return (exact if len(exact) else np.flatnonzero(covers)).tolist()


def is_saturated(fits: np.ndarray) -> bool:
    """Whether every row of a (slots, rows) matrix can have a column of its own (Kuhn, 1955)."""
    owner, seat = np.full(fits.shape[1], -1), np.full(fits.shape[0], -1)
    for slot in range(fits.shape[0]):
        came = np.full(fits.shape[1], -1)  # the slot from which each row was first reached
        free, waiting = np.zeros(0, np.int64), [slot]
        while waiting and not free.size:
            at = waiting.pop()
            reached = np.flatnonzero(fits[at] & (came < 0))
            came[reached] = at
            free = reached[owner[reached] < 0]
            waiting += owner[reached].tolist()
        if not free.size:
            return False
        row = int(free[0])
        while row >= 0:  # everybody on the way moves on by one
            at = int(came[row])
            owner[row], seat[at], row = at, row, int(seat[at])
    return True


def _values(original: LinkedTables, name: str) -> list[np.ndarray]:
    """By quasi column, the number, place or leaf of each row; NaN for no value."""
    encoded = original.rows[name].encoded
    return [attribute.value_of_code()[attribute.codes] for attribute in encoded.attributes]
