"""People who are in several releases of a ledger: who shares whose whole history.

An atom is everybody of one history: the same classes in the same releases, the same absences.
Atoms of k people keep every trajectory one of k. Company is weaker: who was in every class that a
person was in, and perhaps in others as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from shoal.auditor.ledger.release_view import CELLS, COMPANY, HistoryFinding

ABSENT = -1


@dataclass
class PeopleHistory:
    """Who was in which class of which release.

    tokens: (m,) uint64, rising. classes: (m, releases) int32, `ABSENT` where a person was not in
    the release.
    """

    tokens: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    classes: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), dtype=np.int32))

    @property
    def most_releases(self) -> int:
        """In how many releases the person is who is in most."""
        return int((self.classes != ABSENT).sum(axis=1).max(initial=0))

    def take(self, tokens: np.ndarray, labels: np.ndarray) -> int:
        """The next release: whose rows are in which class; how many people have several rows.

        tokens, labels: (n,). Of somebody with several rows the first counts.
        """
        people, first = np.unique(tokens, return_index=True)
        known = np.union1d(self.tokens, people)
        classes = np.full((len(known), self.classes.shape[1] + 1), ABSENT, dtype=np.int32)
        classes[np.searchsorted(known, self.tokens), :-1] = self.classes
        classes[np.searchsorted(known, people), -1] = labels[first]
        self.tokens, self.classes = known, classes
        return int((np.bincount(np.searchsorted(people, tokens)) > 1).sum())

    def findings(self, release: int, k: int, guards: str) -> list[HistoryFinding]:
        """What the releases so far give away together. guards: what the last one rests on."""
        histories, people = np.unique(self.classes, axis=0, return_counts=True)
        found = [_finding("atoms", release, people, people, k, guards == CELLS)]
        if guards == COMPANY:
            company = company_of(histories, people)
            found.append(_finding("company", release, company, people, k, True))
        return found


def company_of(histories: np.ndarray, people: np.ndarray) -> np.ndarray:
    """For each history, how many people were in all of its classes; (m,) int64.

    histories: (m, releases) all different, people: (m,) how many have each.
    """
    company = np.zeros(len(histories), dtype=np.int64)
    if not len(histories):
        return company
    is_there = histories != ABSENT
    first = is_there.argmax(axis=1)
    for release in range(histories.shape[1]):
        # whoever is company of these is in their class of this release
        own = np.flatnonzero(first == release)
        others = np.flatnonzero(is_there[:, release])
        others = others[np.argsort(histories[others, release], kind="stable")]
        shown = histories[others, release]
        for label in np.unique(histories[own, release]).tolist():
            mine = own[histories[own, release] == label]
            theirs = others[slice(*np.searchsorted(shown, (label, label + 1)))]
            for i in mine.tolist():
                at = is_there[i]
                shares = (histories[theirs][:, at] == histories[i, at]).all(axis=1)
                company[i] = people[theirs[shares]].sum()
    return company


def _finding(
    check: str, release: int, sizes: np.ndarray, people: np.ndarray, k: int, breaks: bool
) -> HistoryFinding:
    """sizes: (m,) among how many people those of each history are; people: (m,) how many."""
    few = int(people[sizes < k].sum())
    least = {"least": int(sizes.min()) if len(sizes) else 0}
    return HistoryFinding(check, (1, release), few, breaks and few > 0, least)
