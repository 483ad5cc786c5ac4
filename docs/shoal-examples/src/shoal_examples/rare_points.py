"""Rare points: people who share all quasi-identifiers with nobody."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from shoal.extend import Attack, AttackScene


@dataclass(frozen=True)
class RarePoints(Attack):
    """The share of the original's records whose quasi-identifiers nobody else has."""

    name: ClassVar[str] = "rare-points"
    number: ClassVar[int] = 100
    needs: ClassVar[tuple[str, ...]] = ()

    def run(self, scene: AttackScene) -> dict[str, Any]:
        _, counts = np.unique(scene.people.points, axis=0, return_counts=True)
        share = float((counts == 1).sum() / counts.sum())
        return {"alone": {"share": share, "of": int(counts.sum()), "ci": None, "how": "exact"}}
