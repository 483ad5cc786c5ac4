"""The matching attack: for how many published people each original person can be taken.

Who has the originals knows every quasi cell of every row, but not which key is whose. A person fits
a published one if its cells lie in the published cells, its numbers of rows in the published
counts, and all published rows can be matched with distinct rows of its own, each with all that
hangs on it. Nothing of how the release was made is used. Tables of which only a number of rows is
known are left out: that number is judged on the files alone.
"""

from dataclasses import asdict, dataclass

import numpy as np

from shoal.auditor.linked.labels import view_of
from shoal.auditor.linked.reading import LinkedRelease, ReleasedTable
from shoal.data.linked import PEOPLE, Known, LinkedTables
from shoal.data.release import spans_cover

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
    release: LinkedRelease, original: LinkedTables, k: int, rng: np.random.Generator
) -> Matched:
    """Tries to find original people among published ones, as far as k candidates each.

    People with equal quasi cells in all tables fit the same ones, so one of them is tried.
    """
    attack = _Attack(release, original)
    distinct, first, times = np.unique(attack.truth.labels, return_index=True, return_counts=True)
    chosen = np.arange(len(distinct))
    if len(chosen) > TRIED:
        chosen = np.sort(rng.permutation(len(chosen))[:TRIED])
    found = np.array([attack.candidates(int(person), k) for person in first[chosen]], np.int64)
    tried = int(times[chosen].sum())
    below = int(times[chosen][found < k].sum())
    return Matched(original.people.count, tried, int(found.min(initial=k)), below)


class _Attack:
    """Published people by label, one template each, and the originals' values beside them."""

    def __init__(self, release: LinkedRelease, original: LinkedTables) -> None:
        self.release, self.original = release, original
        names = [table.name for table in release.tree.tables]
        self.values = {name: _values(original, name) for name in names}
        self.truth = view_of(original)
        kept = np.flatnonzero(~release.withheld)
        _, first, sizes = np.unique(
            release.view.labels[kept], return_index=True, return_counts=True
        )
        largest = np.argsort(-sizes, kind="stable")
        self.templates, self.sizes = kept[first][largest], sizes[largest]
        shown_cells = [(one, one.codes[self.templates]) for one in release.tables[PEOPLE].columns]
        self.spans = [(one.lo[codes], one.hi[codes]) for one, codes in shown_cells]

    def candidates(self, person: int, enough: int) -> int:
        """How many published people the person fits, at most `enough`."""
        fits = np.ones(len(self.templates), dtype=bool)
        for (lo, hi), values in zip(self.spans, self.values[PEOPLE], strict=True):
            fits &= spans_cover(lo, hi, values[person])
        found = 0
        for at in np.flatnonzero(fits).tolist():
            if self._children_fit(PEOPLE, int(self.templates[at]), person):
                found += int(self.sizes[at])
                if found >= enough:
                    return enough
        return found

    def _children_fit(self, name: str, published: int, row: int) -> bool:
        """Whether counts of rows below lie in what is published, and the rows match."""
        shown = self.release.tables[name]
        for child in self.release.tree.below(name):
            if not isinstance(child.known, Known) or child.known is Known.NONE:
                continue
            own, theirs = self.original.rows[child.name], self.release.tables[child.name]
            rows = np.arange(own.starts[row], own.starts[row + 1])
            said = shown.counts.get(child.name)
            if said is not None:
                cell = said.codes[published]
                if not said.lo[cell] <= len(rows) <= said.hi[cell]:
                    return False
            slots = np.arange(theirs.starts[published], theirs.starts[published + 1])
            if not self._match(child.name, theirs, slots, rows):
                return False
        return True

    def _match(self, name: str, theirs: ReleasedTable, slots: np.ndarray, rows: np.ndarray) -> bool:
        """Whether all published rows can be matched with distinct rows of the original."""
        if len(slots) > len(rows):
            return False
        fits = np.ones((len(slots), len(rows)), dtype=bool)
        is_seen = self.release.tree[name].known is not Known.COUNT
        columns = zip(theirs.columns, self.values[name], strict=True) if is_seen else ()
        for column, values in columns:
            cells = column.codes[slots]
            fits &= spans_cover(column.lo[cells][:, None], column.hi[cells][:, None], values[rows])
        if self.release.tree.below(name):
            for i, j in np.argwhere(fits).tolist():
                fits[i, j] = self._children_fit(name, int(slots[i]), int(rows[j]))
        return is_saturated(fits)


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
