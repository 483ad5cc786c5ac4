"""Which values a class left whole could hold, if its method would have cut any others."""

from __future__ import annotations

from typing import Any

from shoal.data.attack_scene import AttackScene

NO_ACCOUNT = "no account of what this method would have done otherwise"


def replay(scene: AttackScene, number: int) -> dict[str, Any] | None:
    return {"excluded": None, "why": NO_ACCOUNT}
