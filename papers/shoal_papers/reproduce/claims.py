"""Judges that several papers need: a curve lies below the others, all curves rise, and the like."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from shoal_papers.reproduce.paper import ClaimFinding, Verdict, View

Judge = Callable[[View], ClaimFinding]


def lies_below(curve: str, y: str, x: str) -> Judge:
    """The curve lies strictly below every other one, at every x."""
    return lambda view: _extreme(view, curve, y, x, sign=1)


def lies_above(curve: str, y: str, x: str) -> Judge:
    """The curve lies strictly above every other one, at every x."""
    return lambda view: _extreme(view, curve, y, x, sign=-1)


def rises(y: str, x: str) -> Judge:
    """No curve falls at any step of x, and all end higher; level steps are reported."""

    def judge(view: View) -> ClaimFinding:
        curves = {curve: view.points(curve, y, x) for curve in view.curves}
        falls = {curve: _steps(points, lambda a, b: b < a) for curve, points in curves.items()}
        levels = {curve: _steps(points, lambda a, b: b == a) for curve, points in curves.items()}
        rising = [
            curve
            for curve, points in curves.items()
            if not falls[curve] and len(set(points.values())) > 1
        ]
        numbers = f"{len(rising)} of {len(curves)} curves rise"
        for word, steps in (("falls", falls), ("stays level", levels)):
            numbers += "".join(
                f"; {curve} {word} from {x} = " + ", ".join(f"{a} to {b}" for a, b in found)
                for curve, found in steps.items()
                if found
            )
        return ClaimFinding(Verdict.of(len(rising), len(curves)), numbers)

    return judge


def is_never_slowest(curve: str, x: str) -> Judge:
    """At no x is the curve slower than all others by more than the spread of the repeats."""

    def judge(view: View) -> ClaimFinding:
        own = view.points(curve, "seconds", x)
        least = view.points(curve, "seconds_least", x)
        most = {
            other: view.points(other, "seconds_most", x) for other in view.curves if other != curve
        }
        slow = [
            at for at in own if most and all(least[at] > points[at] for points in most.values())
        ]
        numbers = f"{_quantity(min(own.values()))} to {_quantity(max(own.values()))} s"
        for other in most:
            ratios = [value / own[at] for at, value in view.points(other, "seconds", x).items()]
            numbers += (
                f"; {other} takes {_quantity(min(ratios))} to {_quantity(max(ratios))} times as"
                " long"
            )
        if slow:
            numbers += f"; slowest of all at {_places(x, slow)}"
        return ClaimFinding(Verdict.of(len(own) - len(slow), len(own)), numbers)

    return judge


def everywhere(
    curve: str,
    x: str,
    columns: tuple[str, ...],
    holds: Callable[..., bool],
    words: Callable[..., str],
) -> Judge:
    """`holds(x, *columns)` at every point of a curve; `words` tells the numbers of points."""

    def judge(view: View) -> ClaimFinding:
        series = [view.points(curve, column, x) for column in columns]
        points = [(at, *(values[at] for values in series)) for at in series[0]]
        bad = [point for point in points if not holds(*point)]
        shown = bad or [points[0], points[-1]]
        numbers = f"at {len(points) - len(bad)} of {len(points)} {x}; " + "; ".join(
            words(*point) for point in shown
        )
        return ClaimFinding(Verdict.of(len(points) - len(bad), len(points)), numbers)

    return judge


def _extreme(view: View, curve: str, y: str, x: str, sign: int) -> ClaimFinding:
    own = view.points(curve, y, x)
    others = {other: view.points(other, y, x) for other in view.curves if other != curve}
    beaten = {
        at: [other for other, points in others.items() if sign * own[at] >= sign * points[at]]
        for at in own
    }
    lost = {at: by for at, by in beaten.items() if by}
    numbers = f"{'lowest' if sign > 0 else 'highest'} at {len(own) - len(lost)} of {len(own)} {x}"
    if others:
        nearest = [_quotient(_nearest(others, at, sign), own[at]) for at in own]
        numbers += (
            f"; the nearest other has {_quantity(min(nearest))} to {_quantity(max(nearest))} times"
            " as much"
        )
    for other in sorted({other for by in lost.values() for other in by}):
        places = [at for at, by in lost.items() if other in by]
        numbers += f"; not against {other} at {_places(x, places)}"
    return ClaimFinding(Verdict.of(len(own) - len(lost), len(own)), numbers)


def _nearest(others: dict[str, dict[Any, Any]], at: Any, sign: int) -> float:
    return sign * min(sign * points[at] for points in others.values())


def _steps(points: dict[Any, Any], chosen: Callable[[Any, Any], bool]) -> list[tuple[Any, Any]]:
    """The steps of a curve whose two heights are of the chosen kind."""
    return [(a, b) for a, b in pairwise(points) if chosen(points[a], points[b])]


def _places(x: str, places: list[Any]) -> str:
    return f"{x} = {', '.join(str(at) for at in places)}"


def _quotient(value: float, by: float) -> float:
    return value / by if by else float("inf")


def _quantity(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
