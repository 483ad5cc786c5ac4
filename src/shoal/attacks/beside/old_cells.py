"""The people of a new table by their classes in releases that are out: whom nothing could protect,
and whether the new classes keep everybody among k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.data.beside import ABSENT, BesideGuard, Overlap
from shoal.data.truth import Truth


@dataclass(frozen=True)
class OldCells:
    """The old classes of a table's records.

    cells: (n,) int64, equal where people share all classes in the releases that are out; ABSENT for
    newcomers. elsewhere: (cells,) int64, people of each who are not in the table.
    overlap: what they are of; the old classes of each cell, which `strict` is about.
    """

    guard: BesideGuard
    k: int
    cells: np.ndarray
    elsewhere: np.ndarray
    overlap: Overlap | None = None

    @classmethod
    def of(cls, guard: BesideGuard, k: int, overlap: Overlap, codes: np.ndarray) -> OldCells:
        """Of a table's records. codes: (n,) which name of those that were asked for each has."""
        return cls(guard, k, overlap.cells[codes], overlap.elsewhere, overlap)

    def taken(self, kept: np.ndarray) -> OldCells:
        """The same of some of the records, (n,) bool; the others count as being elsewhere."""
        gone = self.cells[~kept & (self.cells >= 0)]
        more = np.bincount(gone, minlength=len(self.elsewhere))
        return replace(self, cells=self.cells[kept], elsewhere=self.elsewhere + more)

    def unsafe(self, rng: np.random.Generator) -> np.ndarray:
        """(n,) bool, the records that step 1 withholds."""
        known = self.cells >= 0
        sizes = np.bincount(self.cells[known], minlength=len(self.elsewhere))
        withheld = known & (sizes < self.k)[self.cells]
        if not self.guard.strict:
            return withheld
        for cell in np.flatnonzero(
            (sizes >= self.k) & (self.elsewhere > 0) & (self.elsewhere < self.k)
        ).tolist():
            self._withhold(withheld, self.cells == cell, int(self.elsewhere[cell]), rng)
        self._withhold_by_class(withheld, rng)
        newcomers = np.flatnonzero(self.cells == ABSENT)
        if len(newcomers) < self.k:
            withheld[newcomers] = True
        return withheld

    def _withhold(
        self, withheld: np.ndarray, members: np.ndarray, absent: int, rng: np.random.Generator
    ) -> None:
        """Withholds members until k are absent, or all where fewer than k would be left."""
        rows, more = np.flatnonzero(members & ~withheld), self.k - absent
        if len(rows) - more >= self.k:
            rows = rng.choice(rows, more, replace=False)
        withheld[rows] = True

    def _withhold_by_class(self, withheld: np.ndarray, rng: np.random.Generator) -> None:
        """Withholds members of old classes, of which cells are parts, and of cells with few."""
        while self.overlap is not None:
            present, absent = self._people(~withheld)
            few = (present > 0) & ((present < self.k) | ((absent > 0) & (absent < self.k)))
            by_class = self.overlap.by_class(absent)
            missing = (by_class > 0) & (by_class < self.k) & (self.overlap.by_class(present) > 0)
            known = self.cells >= 0
            if few.any():
                cell = int(np.argmax(few))
                gone = int(absent[cell]) if present[cell] >= self.k else 0
                self._withhold(withheld, self.cells == cell, gone, rng)
            elif missing.any():
                number = int(np.argmax(missing))
                inside = np.isin(self.cells, self.overlap.of_cell[self.overlap.of_class == number])
                self._withhold(withheld, known & inside, int(by_class[number]), rng)
            else:
                break

    def _people(self, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(cells,) each, the people who are shown and those who are not. shown: (n,) bool."""
        known, cells = self.cells >= 0, len(self.elsewhere)
        present = np.bincount(self.cells[known & shown], minlength=cells)
        return present, self.elsewhere + np.bincount(self.cells[known & ~shown], minlength=cells)

    def report(self, labels: np.ndarray) -> dict[str, Any]:
        """The last check, as a certificate states it: the people of each cell, and who is left.

        labels: (n,) published class of each record, -1 where it is in none.
        """
        both = (labels >= 0) & (self.cells >= 0)
        pairs = labels[both].astype(np.int64) * max(len(self.elsewhere), 1) + self.cells[both]
        cell = np.unique(pairs, return_inverse=True)[1].reshape(-1)
        remaining = np.bincount(cell)[cell]
        below = int((remaining < self.k).sum())
        return {
            "k": self.k,
            "attacker": "presence",
            "releases": list(self.guard.releases),
            "people": int(both.sum()),
            "below_k": below,
            "alone": int((remaining < 2).sum()),
            "least": int(remaining.min()) if len(remaining) else None,
            "strict": self.guard.strict,
            "withheld": int(((labels < 0) & (self.cells >= 0)).sum()),
            "newcomers": int((self.cells == ABSENT).sum()),
            "holds": below == 0 and (not self.guard.strict or self._guards_differences(labels)),
        }

    def _guards_differences(self, labels: np.ndarray) -> bool:
        """Whether the members of each old class who are not published are none or k, those who
        share several of them too, and newcomers of each class.
        """
        present, absent = self._people(labels >= 0)
        groups = [(present, absent)]
        if self.overlap is not None:
            groups.append((self.overlap.by_class(present), self.overlap.by_class(absent)))
        new = np.bincount(labels[(labels >= 0) & (self.cells == ABSENT)], minlength=1)
        few_absent = any(
            ((there > 0) & (gone > 0) & (gone < self.k)).any() for there, gone in groups
        )
        return not few_absent and not ((new > 0) & (new < self.k)).any()

    def of_release(self, truth: Truth) -> OldCells:
        """The same in the order of the published records."""
        return replace(self, cells=truth.aligned(self.cells))
