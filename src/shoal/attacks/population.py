"""Population: name people of a release by whoever else of the population could be meant.

El Emam. Guide to the De-Identification of Personal Health Information, 2013; Benedetti, Franconi.
Statistical and technological solutions for controlled data dissemination. 1998.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import counted, exact, people_in
from shoal.attacks.scores import people_fitting
from shoal.data.attack_scene import AttackScene, Boxes, Findings, Surroundings
from shoal.data.numbers import weighted_sum
from shoal.privacy.reidentification import individual_risk
from shoal.protocols import Attack

SLACK = 1e-9


@dataclass(frozen=True)
class Population(Attack):
    """The journalist's and the marketer's risk, with people counted in the population."""

    name: ClassVar[str] = "population"
    number: ClassVar[int] = 7
    needs: ClassVar[tuple[str, ...]] = ("population",)

    def run(self, scene: AttackScene) -> Findings:
        """Both risks, exact for a table or frequencies, expected for a fraction or weights."""
        boxes, around = scene.release.boxes, scene.surroundings
        assert around is not None
        people = boxes.people
        n = int(people.sum())
        found: Findings = {"source": around.source, "journalist_max": None, "marketer": None}
        if not n:
            return found | {"why": "no class"}
        found |= {"baseline": {"max": 1 / people.min(), "mean": len(people) / n}}
        inverse, unmodelled, why = _inverse(boxes, around)
        if why is not None:
            return found | {"why": why}
        found |= {
            "journalist_max": exact(float(inverse.max())),
            "marketer": counted(weighted_sum(people, inverse), n),
        }
        if around.source == "frequencies":
            nobody = unmodelled[scene.release.labels]
            everybody = people_in(scene.release)
            found["unmodelled"] = counted(people_in(scene.release, nobody), everybody)
        if around.source == "fraction":
            found |= {"estimator": around.estimator, "uniques": around.uniques}
            if around.uniques is None:
                found["uniques_why"] = "the estimator's model can't be fitted to these class sizes"
        return found


def _inverse(boxes: Boxes, around: Surroundings) -> tuple[np.ndarray, np.ndarray, str | None]:
    """1 / F of every class, classes that nothing is known of, and why it can't be told."""
    people = boxes.people
    modelled = np.zeros(len(people), dtype=bool)
    if around.source == "fraction":
        assert around.fraction is not None
        return individual_risk(people, people / around.fraction), modelled, None
    if around.source == "weights":
        return individual_risk(people, around.weights), modelled, None
    fits = people_fitting(boxes, around)
    if around.source == "frequencies":
        return 1 / np.maximum(fits, people), fits <= 0, None
    if (fits < people - SLACK).any():
        return fits, modelled, "a class holds more people than fit it: it is not the population"
    return 1 / fits, modelled, None
