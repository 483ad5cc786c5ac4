"""The people of a new table by their classes in releases that are out: whom nothing could protect,
and whether the new classes keep everybody among k.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from shoal.data.beside import ABSENT, BesideGuard
from shoal.data.truth import Truth


@dataclass(frozen=True)
class OldCells:
    """The old classes of a table's records.

    cells: (n,) int64, equal where people share all classes in the releases that are out; ABSENT for
    newcomers. elsewhere: (cells,) int64, people of each who are not in the table.
    """

    guard: BesideGuard
    k: int
    cells: np.ndarray
    elsewhere: np.ndarray

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
            members = np.flatnonzero(self.cells == cell)
            more = self.k - int(self.elsewhere[cell])
            if len(members) - more >= self.k:
                members = rng.choice(members, more, replace=False)
            withheld[members] = True
        newcomers = np.flatnonzero(self.cells == ABSENT)
        if len(newcomers) < self.k:
            withheld[newcomers] = True
        return withheld

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
        """Whether the members of each old class who are not published are none or k, and newcomers
        of each class, too.
        """
        published = self.cells[(labels >= 0) & (self.cells >= 0)]
        present = np.bincount(published, minlength=len(self.elsewhere))
        hidden = self.cells[(labels < 0) & (self.cells >= 0)]
        absent = self.elsewhere + np.bincount(hidden, minlength=len(self.elsewhere))
        new = np.bincount(labels[(labels >= 0) & (self.cells == ABSENT)], minlength=1)
        few_absent = (present > 0) & (absent > 0) & (absent < self.k)
        return not few_absent.any() and not ((new > 0) & (new < self.k)).any()

    def of_release(self, truth: Truth) -> OldCells:
        """The same in the order of the published records."""
        return replace(self, cells=truth.aligned(self.cells))
