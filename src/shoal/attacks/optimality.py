"""What a proven optimum of full-domain generalization says about the classes it did not split."""

from __future__ import annotations

from typing import Any

from shoal.data.attack_scene import AttackScene

NO_ACCOUNT = "no account of what this method would have done otherwise"


def optimality(scene: AttackScene) -> dict[str, Any] | None:
    """People in classes that surely have a part below k one level lower."""
    return {"forced": None, "why": NO_ACCOUNT}
