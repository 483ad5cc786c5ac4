"""Which of the compared methods to take, and why, in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

NEAR = 0.005  # of loss (gcp): less than most readers can notice
HALF = 0.5  # of the CPU seconds
NOTICED = 1.0  # CPU seconds; below, nobody waits, and which method is faster is chance


class Ranked(Protocol):
    """A release that keeps every promise: its method, its loss (gcp) and CPU seconds."""

    @property
    def label(self) -> str: ...
    @property
    def loss(self) -> float: ...
    @property
    def seconds(self) -> float | None: ...


@dataclass(frozen=True)
class Recommendation:
    """The method to take at this k, and the reason in a sentence.

    method: as `methods` names it, with its parameters.
    """

    method: str
    k: int
    why: str

    def __str__(self) -> str:
        return f"take {self.method} at k = {self.k}: {self.why}"


def recommend(ranked: Sequence[Ranked], k: int) -> Recommendation | None:
    """The method that loses least, or a much faster one that loses hardly more; None of none.

    ranked: by ascending loss, each keeping every promise at this k.
    """
    if not ranked:
        return None
    best, *others = ranked
    quick = [other for other in others if _is_as_good_and_faster(other, best)]
    if quick:
        chosen = min(quick, key=_seconds)
        return Recommendation(chosen.label, k, _faster(chosen, best))
    return Recommendation(best.label, k, _least(best, others))


def _is_as_good_and_faster(other: Ranked, best: Ranked) -> bool:
    return (
        other.loss <= best.loss + NEAR
        and _seconds(best) >= NOTICED
        and _seconds(other) <= HALF * _seconds(best)
    )


def _seconds(row: Ranked) -> float:
    return row.seconds or 0.0


def _least(best: Ranked, others: Sequence[Ranked]) -> str:
    if not others:
        lost = _percent(best.loss)
        return f"it alone keeps every promise, and loses {lost} of the detail"
    following = others[0]
    return (
        f"of {len(others) + 1} methods that keep every promise it loses least,"
        f" {_percent(best.loss)} of the detail; next is {following.label} with"
        f" {_percent(following.loss)}"
    )


def _faster(chosen: Ranked, best: Ranked) -> str:
    return (
        f"it loses {_percent(chosen.loss)} of the detail, hardly more than {best.label} with"
        f" {_percent(best.loss)}, and takes {_seconds(chosen):.2g} instead of"
        f" {_seconds(best):.2g} CPU seconds"
    )


def _percent(share: float) -> str:
    return f"{100 * share:.2f} %"
