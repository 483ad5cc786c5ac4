"""Labels that are spans of numbers, such as `[0-10)`, `10-19`, `<5`, `80+`; put in their order."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NUMBER = r"[-+]?\d+(?:\.\d+)?"
_BRACKETS = re.compile(rf"[\[(]\s*({_NUMBER})\s*(?:,|;|-|–|\.\.)\s*({_NUMBER})\s*[\])]")
_SPAN = re.compile(rf"({_NUMBER})\s*(?:-|–|\.\.|to)\s*({_NUMBER})")
_BELOW = re.compile(rf"(<|<=|≤)\s*({_NUMBER})")
_ABOVE = re.compile(rf"(>|>=|≥)\s*({_NUMBER})|({_NUMBER})\s*\+")
_ONE = re.compile(_NUMBER)


def in_order(labels: Iterable[str]) -> list[str] | None:
    """The labels by their lower ends; None where some is not a span, or two are the same."""
    ends = {label: _ends(label.strip()) for label in labels}
    spans = {label: span for label, span in ends.items() if span is not None}
    if len(spans) < len(ends) or len(set(spans.values())) < max(len(spans), 2):
        return None
    if not any(low < high for low, high in spans.values()):
        return None
    return sorted(spans, key=spans.__getitem__)


def _ends(label: str) -> tuple[float, float] | None:
    span = _BRACKETS.fullmatch(label) or _SPAN.fullmatch(label)
    if span is not None:
        low, high = float(span[1]), float(span[2])
        return (low, high) if low < high else None
    below = _BELOW.fullmatch(label)
    if below is not None:
        return float("-inf"), float(below[2])
    above = _ABOVE.fullmatch(label)
    if above is not None:
        return float(above[2] or above[3]), float("inf")
    return (float(label), float(label)) if _ONE.fullmatch(label) else None
