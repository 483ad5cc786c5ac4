"""Order: find a person's row by the place that a value of theirs has in a sorted table.

Looks among the rows of the person's class for the one nearest to that place. Ours; the control is
the place of another person of the same class.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import exact, newcombe, people_in, wilson
from shoal.auditor.reading import nearest_to_place
from shoal.data.attack_scene import AttackScene, Findings
from shoal.data.classes import pairs_of
from shoal.protocols import Attack


@dataclass(frozen=True)
class Order(Attack):
    """How many people stand where the column that rows follow most says that they stand."""

    name: ClassVar[str] = "order"
    number: ClassVar[int] = 10
    needs: ClassVar[tuple[str, ...]] = ("alignment",)
    uses_people: ClassVar[bool] = False

    def run(self, scene: AttackScene) -> Findings:
        """The column that rows follow most, who is found by it, and who by another's place."""
        release, followed = scene.release, scene.followed
        n = people_in(release)
        if followed is None or not n:
            why = "rows follow no column"
            nothing = dict.fromkeys(("column", "correlation", "found", "others", "chance", "gain"))
            return nothing | {"why": why}
        labels = np.where(release.in_classes, release.labels, -1)
        found = people_in(release, nearest_to_place(labels, followed.place))
        elsewhere = _of_others(labels, followed.place, scene.rng(self.number))
        others = people_in(release, nearest_to_place(labels, elsewhere))
        return {
            "column": followed.name,
            "correlation": followed.correlation,
            "found": wilson(found, n),
            "others": wilson(others, n),
            "chance": exact(_by_chance(labels, release.persons), n),
            "gain": newcombe((found, n), (others, n)),
        }


def _by_chance(labels: np.ndarray, persons: np.ndarray) -> float:
    """The share of people who are found on average by drawing a row of each class."""
    kept = labels >= 0
    label, person = (np.unique(of[kept], return_inverse=True)[1] for of in (labels, persons))
    rows = np.bincount(label)
    person, label, held = pairs_of(person, label)
    missed = np.ones(int(person.max()) + 1)
    np.multiply.at(missed, person, 1 - held / rows[label])
    return float(1 - missed.mean())


def _of_others(labels: np.ndarray, place: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """(n,) the places of each class, dealt out among its rows at random."""
    mixed = place.copy()
    order = np.lexsort((rng.random(len(labels)), labels))
    mixed[np.argsort(labels, kind="stable")] = place[order]
    return mixed
