"""All quasi-identifiers together, where promises are about some of them each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.data.people import Unit, span_text
from shoal.data.warnings import TOGETHER_BELOW, ReleaseWarning


def is_below(certificate: Mapping[str, Any]) -> bool:
    """Whether somebody hides among fewer than asked once all quasi-identifiers are known."""
    found = certificate.get("together") or {}
    asked, least = found.get("asked"), found.get("min")
    return asked is not None and least is not None and least < asked


def together_below(certificate: Mapping[str, Any], unit: Unit) -> ReleaseWarning:
    """What to say where every promise holds and `is_below`."""
    found, sizes = certificate["together"], certificate["classes"]
    few, what = found["alone"], "alone"
    if not few:
        few, what = found["below"], f"in groups of fewer than k = {found['asked']}"
    text = (
        "Every promise holds on its own columns. All quasi-identifiers together"
        f" ({', '.join(found['attributes'])}): groups of {span_text(sizes)}"
        f" {unit.of(sizes['max'])}, {few} of {found['people']} {what}; whoever knows them all can"
        " pick these out"
    )
    return ReleaseWarning(TOGETHER_BELOW, text)
