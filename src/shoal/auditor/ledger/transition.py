"""A release of the whole table beside the one that it replaces: which rows are the same records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.auditor.ledger.release_view import HistoryFinding, RecordHistory, ReleaseView


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
    def subjects(self) -> np.ndarray | None:
        subjects = self.release.subjects
        return None if subjects is None else subjects[self.rows]

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
        people = distinct(concerned, self.subjects)
        is_violation = people > 0 and guard in (None, self.guards)
        return HistoryFinding(check, releases or self.last_two, people, is_violation, more)


def distinct(concerned: np.ndarray, subjects: np.ndarray | None) -> int:
    """How many people these records are of."""
    return int(concerned.sum()) if subjects is None else len(np.unique(subjects[concerned]))
