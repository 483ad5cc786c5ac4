"""Whether several releases about the same people are safe together.

Promise: everybody who is in two or more of them stays among at least k people, C(p), and among at
least l values, V(p), when all classes that they are in are intersected. Whoever is in one release
only is as safe as that release. A further release never enlarges C(p) or V(p).
Reading: what the attacker knows of absence is not used; whoever is in at least the same classes
counts. A person with several records is in several classes, and all of them are intersected.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from shoal.attacks.beside.sharing import ABSENT, Links, by_pattern, fitting


@dataclass(frozen=True)
class Attribute:
    """An attribute that several releases show, and that never changes.

    names: by release, its name there. asked: least number of values, None where nobody asks.
    values: which value each class shows, the classes numbered through all releases.
    """

    names: Mapping[int, str]
    asked: int | None
    values: Links


@dataclass(frozen=True)
class Joint:
    """Everybody's classes in all releases, which are numbered through.

    places: people and their classes. release_of: (classes,) the release of each class.
    fits: people and the classes that they fit by what is known of them; None where the attacker
    knows who is in which release, so that only members fit.
    """

    places: Links
    release_of: np.ndarray
    releases: int
    fits: Links | None = None

    @cached_property
    def present(self) -> np.ndarray:
        """(people, releases) bool, who is in a class of which release."""
        present = np.zeros((self.places.item_count, self.releases), dtype=bool)
        present[self.places.items, self.release_of[self.places.classes]] = True
        return present

    @cached_property
    def _labels(self) -> np.ndarray | None:
        """(people, releases) the class of each, None where somebody is in several of one."""
        release = self.release_of[self.places.classes]
        if int(self.present.sum()) < len(release):
            return None
        labels = np.full(self.present.shape, ABSENT, dtype=np.int64)
        labels[self.places.items, release] = self.places.classes
        return labels

    def judged(self, releases: Sequence[int]) -> np.ndarray:
        """The people who are in two or more of these releases."""
        return np.flatnonzero(self.present[:, list(releases)].sum(axis=1) > 1)

    def remaining(self, releases: Sequence[int]) -> np.ndarray:
        """|C(p)| of everybody over these releases; (people,) int64."""
        chosen = list(releases)
        if self.fits is None and self._labels is not None:
            counted = by_pattern(self._labels[:, chosen])
            if counted is not None:
                return counted
        kept = np.isin(self.release_of, chosen)
        places = self.places.of_classes(kept)
        return fitting(places, places if self.fits is None else self.fits.of_classes(kept))

    def people_row(self, releases: Sequence[int], k: int) -> dict[str, Any]:
        """How many people of these releases remain among fewer than k, counts only."""
        people = self.judged(releases)
        remaining = self.remaining(releases)[people]
        return {
            "people": len(people),
            "below_k": int((remaining < k).sum()),
            "alone": int((remaining < 2).sum()),
            "least": int(remaining.min()) if len(people) else None,
        }

    def values_row(self, attribute: Attribute) -> dict[str, Any]:
        """How many people's value of an attribute is certain, or among fewer than asked.

        Where classes show no common value at all, the attribute is not one that never changes.
        """
        releases = sorted(attribute.names)
        people = self.judged(releases)
        places = self.places.of_classes(np.isin(self.release_of, releases))
        remaining = fitting(places, attribute.values)[people]
        asked = attribute.asked
        return {
            "names": [attribute.names[release] for release in releases],
            "releases": [release + 1 for release in releases],
            "people": len(people),
            "asked": asked,
            "below": None if asked is None else int((remaining < asked).sum()),
            "certain": int((remaining == 1).sum()),
            "none": int((remaining == 0).sum()),
            "least": int(remaining.min()) if len(people) else None,
        }

    def report(self, k: int, attributes: Sequence[Attribute]) -> dict[str, Any]:
        """All of it, as a certificate states it; counts, and never who."""
        everything = range(self.releases)
        pairs = combinations(everything, 2)
        whole = self.people_row(everything, k)
        values = [self.values_row(attribute) for attribute in attributes]
        return {
            "k": k,
            **whole,
            "attributes": values,
            "pairs": [
                {"releases": [one + 1, other + 1], **self.people_row((one, other), k)}
                for one, other in (pairs if self.releases > 2 else ())
            ],
            "holds": whole["below_k"] == 0 and not any(row["below"] for row in values),
        }
