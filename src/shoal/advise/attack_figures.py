"""What attacks found on a release, in the few numbers that methods are compared by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

TRIED = ("singling-out", "linkability", "inference")
FIGURES = ("inference_gain", "ends_gain", "linkage")


def attack_figures(certificate: Mapping[str, Any]) -> dict[str, float | None]:
    """By name, null where it could not be measured; empty where nothing was tried.

    inference_gain: of the best attacker on the attribute that it gains most on.
    """
    found = certificate.get("attacks")
    if not found or not all(name in found for name in TRIED):
        return {}
    gains = [_share(one["gain"]) for one in found["inference"].values()]
    known = [gain for gain in gains if gain is not None]
    return {
        "inference_gain": max(known) if known else None,
        "ends_gain": _share(found["singling-out"]["gain"]),
        "linkage": _share(found["linkability"]["success"]),
    }


def _share(number: Any) -> float | None:
    return None if number is None else number["share"]
