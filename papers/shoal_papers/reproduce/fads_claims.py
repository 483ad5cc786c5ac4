"""What the FADS paper says of its figures 1 to 11, and how each sentence is judged.

A claim has parts; it holds where all of them do. A curve that is said to rise or to fall does so at
every step. Times are medians; a step counts only if it is larger than the spread of the repeats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from math import ceil
from typing import Any

import numpy as np

from shoal_papers.reproduce.paper import Claim, ClaimFinding, Verdict, View

FADS, CASTLE, FAANST = "FADS", "CASTLE", "FAANST"
Parts = list[tuple[bool, str]]
"""Whether each part holds, and its numbers."""
Asks = Callable[[View], Parts]


def methods_of(group: int) -> tuple[str, ...]:
    """The curves of a group: FAANST reads numbers only."""
    return (FADS, CASTLE) if group == 1 else (FADS, CASTLE, FAANST)


def curve(name: str, experiment: str, group: int) -> str:
    """The name of a curve: method, what is varied, group of quasi-identifiers."""
    return f"{name}, group {group}, by {experiment}"


def printed(curve_name: str) -> str:
    """The name of a curve that is that of the main reading under every reading."""
    return f"as printed: {curve_name}"


def judged(*asked: Asks) -> Callable[[View], ClaimFinding]:
    """Holds as far as the parts of all these questions do."""

    def judge(view: View) -> ClaimFinding:
        parts = [part for asks in asked for part in asks(view)]
        numbers = "; ".join(f"{words}{'' if holds else ' (not)'}" for holds, words in parts)
        return ClaimFinding(Verdict.of(sum(holds for holds, _ in parts), len(parts)), numbers)

    return judge


# Judges of loss


def equal_then_lower(view: View) -> Parts:
    """Up to delta records both lose alike (within .05), from 1.5 delta on FADS loses less."""
    fads, castle = (view.points(curve(n, "size", 1), "loss", "records") for n in (FADS, CASTLE))
    delta = max(row["delta"] for row in view.curves[curve(FADS, "size", 1)])
    parts = []
    for n in fads:
        holds = abs(fads[n] - castle[n]) < 0.05 if n <= delta else fads[n] < castle[n]
        parts.append((holds, f"at {n}: {fads[n]:.3f} and {castle[n]:.3f}"))
    return parts


def is_lower(experiment: str, x: str, group: int, other: str, than: str = FADS) -> Asks:
    """`than` loses less than the other method at every point."""

    def asks(view: View) -> Parts:
        own, theirs = (view.points(curve(n, experiment, group), "loss", x) for n in (than, other))
        return [
            (own[at] < theirs[at], f"{x} {at}: {own[at]:.3f} and {theirs[at]:.3f}") for at in own
        ]

    return asks


def moves(experiment: str, x: str, group: int, sign: int) -> Asks:
    """No step of any method's loss goes against the direction: 1 up, -1 down."""

    def asks(view: View) -> Parts:
        return [
            _steps(name, view.points(curve(name, experiment, group), "loss", x), sign)
            for name in methods_of(group)
        ]

    return asks


def has_knee(view: View) -> Parts:
    """Up to delta = 10,000 the loss falls per record more than twice as fast as behind it."""
    parts = []
    for name in methods_of(1):
        points = view.points(curve(name, "delta", 1), "loss", "delta")
        knee = 10_000 if 10_000 in points else sorted(points)[len(points) // 2]
        first, last = min(points), max(points)
        before = (points[first] - points[knee]) / max(knee - first, 1)
        behind = (points[knee] - points[last]) / max(last - knee, 1)
        parts.append((before > 2 * behind, f"{name} {1000 * before:.4f} and {1000 * behind:.4f}"))
    return [(holds, f"{words} for 1,000 records") for holds, words in parts]


def crosses(view: View) -> Parts:
    """FAANST loses more than CASTLE on few records and less on all."""
    castle, faanst = (view.points(curve(n, "size", 2), "loss", "records") for n in (CASTLE, FAANST))
    return [
        (
            (faanst[at] - castle[at]) * sign > 0,
            f"at {at}: FAANST {faanst[at]:.3f}, CASTLE {castle[at]:.3f}",
        )
        for at, sign in ((min(castle), 1), (max(castle), -1))
    ]


def nears(view: View) -> Parts:
    """FAANST wobbles, and ends nearer to FADS than it begins."""
    fads, faanst = (view.points(curve(n, "size", 2), "loss", "records") for n in (FADS, FAANST))
    gaps = [faanst[at] - fads[at] for at in fads]
    steps = [b - a for a, b in pairwise(faanst.values())]
    turns = sum(a * b < 0 for a, b in pairwise(steps))
    return [
        (gaps[-1] < gaps[0], f"{gaps[0]:.3f} to {gaps[-1]:.3f} above FADS"),
        (turns > 0, f"{turns} turns"),
    ]


def is_least_moved(view: View) -> Parts:
    """Over delta, the loss of FADS moves least."""
    ranges = {
        name: _range(view.points(curve(name, "delta", 2), "loss", "delta"))
        for name in methods_of(2)
    }
    words = ", ".join(f"{name} {moved:.3f}" for name, moved in ranges.items())
    return [(min(ranges, key=lambda name: ranges[name]) == FADS, f"moves by {words}")]


def is_near(experiment: str, x: str, least: float, most: float) -> Asks:
    """FAANST's loss less that of FADS lies strictly between these at every point."""

    def asks(view: View) -> Parts:
        fads, faanst = (view.points(curve(n, experiment, 2), "loss", x) for n in (FADS, FAANST))
        return [
            (least < faanst[at] - fads[at] < most, f"{x} {at}: {faanst[at] - fads[at]:+.3f}")
            for at in fads
        ]

    return asks


def c0_lowers_loss(view: View) -> Parts:
    """From the least to the greatest c0 the loss falls, by less than .01, at every size."""
    fewest, most = _c0_ends(view, "loss")
    return [
        (0 <= fewest[at] - most[at] < 0.01, f"at {at}: falls by {fewest[at] - most[at]:.4f}")
        for at in fewest
    ]


def tau_hardly_moves_loss(view: View) -> Parts:
    """The loss of FADS stays within .01 whatever tau is."""
    points = view.points(f"{FADS} by tau", "loss", "tau")
    return [(_range(points) < 0.01, f"{min(points.values()):.3f} to {max(points.values()):.3f}")]


def keeps_bounded(view: View) -> Parts:
    """However long the stream, FADS keeps at most delta / k clusters; CASTLE and FAANST keep more
    of every longer one.
    """
    parts = []
    for group in (1, 2):
        for name in methods_of(group):
            rows = view.curves[curve(name, "long", group)]
            kept = view.points(curve(name, "long", group), "kept", "records")
            holds = all(kept[b] > kept[a] for a, b in pairwise(kept))
            if name == FADS:
                holds = max(kept.values()) <= ceil(rows[0]["delta"] / rows[0]["k"])
            words = ", ".join(f"{clusters:,}" for clusters in kept.values())
            parts.append((holds, f"{name}, group {group}, keeps {words}"))
    return parts


def groups_differ(view: View) -> Parts:
    """Numbers alone lose less and take less time than both kinds, for each method."""
    parts = []
    for name in methods_of(1):
        for y, words in (("loss", "loses"), ("seconds", "takes")):
            both, alone = (view.points(curve(name, "size", g), y, "records") for g in (1, 2))
            last = max(both)
            parts.append(
                (alone[last] < both[last], f"{name} {words} {both[last]:.3g} and {alone[last]:.3g}")
            )
    return parts


# Judges of time


def is_linear(experiment: str, group: int, y: str, *names: str) -> Asks:
    """Time against records on logarithmic axes: FADS with slope 1.2 at most, others above it."""

    def asks(view: View) -> Parts:
        parts = []
        for name in names:
            points = view.points(curve(name, experiment, group), y, "records")
            slope = float(np.polyfit(np.log(list(points)), np.log(list(points.values())), 1)[0])
            parts.append(((slope <= 1.2) is (name == FADS), f"{y}, {name} {slope:.2f}"))
        return parts

    return asks


def compares_less(experiment: str, x: str, group: int) -> Asks:
    """FADS as printed makes at most half the comparisons of CASTLE at every point."""

    def asks(view: View) -> Parts:
        fads, castle = (
            view.points(printed(curve(n, experiment, group)), "comparisons", x)
            for n in (FADS, CASTLE)
        )
        return [
            (
                2 * fads[at] <= castle[at],
                f"{x} {at}: {fads[at] / 1e6:.2f} and {castle[at] / 1e6:.2f} million",
            )
            for at in fads
        ]

    return asks


def rises_less(experiment: str, x: str, most_off: float | None = None) -> Asks:
    """The time of CASTLE rises more than that of FADS, as last over first; and within `most_off` a
    line fits FADS.
    """

    def asks(view: View) -> Parts:
        fads, castle = (view.points(curve(n, experiment, 1), "seconds", x) for n in (FADS, CASTLE))
        own, theirs = (_last(points) / _first(points) for points in (fads, castle))
        parts = [(theirs > own, f"FADS {own:.2f} times, CASTLE {theirs:.2f} times")]
        if most_off is not None:
            at, seconds = np.array(list(fads), float), np.array(list(fads.values()))
            line = np.polyval(np.polyfit(at, seconds, 1), at)
            off = float(np.abs(seconds / line - 1).max())
            parts.append((off <= most_off, f"FADS lies {off:.0%} off a line"))
        return parts

    return asks


def slope_is_less(view: View) -> Parts:
    """Seconds for one more quasi-identifier: fewer for FADS than for CASTLE."""
    slopes = []
    for name in methods_of(1):
        points = view.points(curve(name, "attributes", 1), "seconds", "attributes")
        slopes.append(float(np.polyfit(list(points), list(points.values()), 1)[0]))
    return [(slopes[0] < slopes[1], f"FADS {slopes[0]:.3g} s, CASTLE {slopes[1]:.3g} s")]


def time_over_k(view: View) -> Parts:
    """FADS never rises; CASTLE is flat from k = 50 on and clearly less at 10."""
    fads, castle = (view.points(curve(n, "k", 1), "seconds", "k") for n in (FADS, CASTLE))
    flat = [seconds for k, seconds in castle.items() if k >= 50] or list(castle.values())
    ratio = max(flat) / min(flat)
    return [
        _steps(FADS, fads, -1),
        (ratio <= 1.25, f"CASTLE from k = 50 on within {ratio:.2f} times"),
        (
            _first(castle) < 0.8 * flat[0],
            f"CASTLE {_first(castle):.3f} s at k = {min(castle)}, {flat[0]:.3f} s at the next",
        ),
    ]


def fluctuates(view: View) -> Parts:
    """The time of CASTLE both rises and falls over k by more than the spread of the repeats."""
    name = f"{CASTLE} by few k"
    low, high = (view.points(name, f"seconds_{end}", "k") for end in ("least", "most"))
    rises = [f"{a} to {b}" for a, b in pairwise(low) if low[b] > high[a]]
    falls = [f"{a} to {b}" for a, b in pairwise(low) if high[b] < low[a]]
    return [
        (bool(rises), f"rises at k = {', '.join(rises) or 'none'}"),
        (bool(falls), f"falls at k = {', '.join(falls) or 'none'}"),
    ]


def is_faster(experiment: str, x: str, group: int, other: str, than: str = FADS) -> Asks:
    """`than` takes less time than the other at every point."""

    def asks(view: View) -> Parts:
        own, theirs = (
            view.points(curve(n, experiment, group), "seconds", x) for n in (than, other)
        )
        return [
            (own[at] < theirs[at], f"{x} {at}: {theirs[at] / own[at]:.1f} times as long")
            for at in own
        ]

    return asks


def gap_widens(view: View) -> Parts:
    """FAANST takes ever more seconds longer than FADS."""
    fads, faanst = (view.points(curve(n, "size", 2), "seconds", "records") for n in (FADS, FAANST))
    return [_steps("FAANST less FADS", {at: faanst[at] - fads[at] for at in fads}, 1)]


def delta_hardly_moves_time(view: View) -> Parts:
    """FAANST and FADS: no delta takes more than one and a half times the time of another."""
    parts = []
    for name in (FAANST, FADS):
        seconds = view.points(curve(name, "delta", 2), "seconds", "delta").values()
        ratio = max(seconds) / min(seconds)
        parts.append((ratio <= 1.5, f"{name} within {ratio:.2f} times"))
    return parts


def falls_most(view: View) -> Parts:
    """Of the three, FAANST's time falls most over k."""
    falls = {}
    for name in methods_of(2):
        points = view.points(curve(name, "k", 2), "seconds", "k")
        falls[name] = _first(points) / _last(points)
    words = ", ".join(f"{name} {fall:.1f} times" for name, fall in falls.items())
    return [(max(falls, key=lambda name: falls[name]) == FAANST, f"falls {words}")]


def is_far_below(view: View) -> Parts:
    """FAANST takes at most half the time of CASTLE, whatever the number of quasi-identifiers."""
    castle, faanst = (
        view.points(curve(n, "attributes", 2), "seconds", "attributes") for n in (CASTLE, FAANST)
    )
    return [
        (faanst[at] <= 0.5 * castle[at], f"attributes {at}: {faanst[at] / castle[at]:.2f} times")
        for at in castle
    ]


def c0_costs_time(view: View) -> Parts:
    """The greatest c0 takes more than 1.2 times the time of the least, at every size."""
    fewest, most = _c0_ends(view, "seconds")
    return [
        (most[at] > 1.2 * fewest[at], f"at {at}: {most[at] / fewest[at]:.2f} times")
        for at in fewest
    ]


def tau_hardly_moves_time(view: View) -> Parts:
    """No tau takes more than 1.07 times the time of another."""
    seconds = view.points(f"{FADS} by tau", "seconds", "tau").values()
    ratio = max(seconds) / min(seconds)
    return [(ratio <= 1.07, f"within {ratio:.2f} times")]


def c0_curve(c0: int) -> str:
    """The name of a curve of figure 10."""
    return f"{FADS}, c0 = {c0}"


def _c0_ends(view: View, y: str) -> tuple[dict[Any, Any], dict[Any, Any]]:
    """Over the records: at the least and at the greatest c0."""
    found = sorted(
        (rows[0]["c0"], name) for name, rows in view.curves.items() if rows and "c0" in rows[0]
    )
    least, most = (view.points(name, y, "records") for _, name in (found[0], found[-1]))
    return least, most


def _steps(name: str, points: Mapping[Any, float], sign: int) -> tuple[bool, str]:
    against = [(a, b) for a, b in pairwise(points) if sign * (points[b] - points[a]) < 0]
    words = f"{name} {_first(points):.3g} to {_last(points):.3g}"
    if against:
        words += f", against it from {', '.join(f'{a} to {b}' for a, b in against)}"
    return not against, words


def _first(points: Mapping[Any, float]) -> float:
    return points[min(points)]


def _last(points: Mapping[Any, float]) -> float:
    return points[max(points)]


def _range(points: Mapping[Any, float]) -> float:
    return max(points.values()) - min(points.values())


def _claims() -> Sequence[Claim]:
    size1, size2 = ("size", "records", 1), ("size", "records", 2)
    delta1, delta2 = ("delta", "delta", 1), ("delta", "delta", 2)
    k1, k2 = ("k", "k", 1), ("k", "k", 2)
    some1, some2 = ("attributes", "attributes", 1), ("attributes", "attributes", 2)
    asked: tuple[tuple[str, str, tuple[Asks, ...]], ...] = (
        (
            "1(a) equal, then lower",
            "FADS and CASTLE lose alike up to 10,000 records, then FADS less",
            (equal_then_lower,),
        ),
        ("1(a) falls", "loss falls as the stream grows", (moves(*size1, -1),)),
        ("1(b) faster", "FADS is much faster than CASTLE", (is_faster(*size1, CASTLE),)),
        (
            "1(b) comparisons",
            "FADS is much faster than CASTLE: at most half the comparisons",
            (compares_less(*size1),),
        ),
        (
            "1(b) linear",
            "FADS's time is linear in the records, CASTLE's square",
            (is_linear("size", 1, "seconds", FADS, CASTLE),),
        ),
        (
            "3.3 linear",
            "FADS's time is linear in the records, that of the others square: long streams",
            tuple(
                is_linear("long", group, y, *names)
                for group in (1, 2)
                for y, names in (("seconds", methods_of(group)), ("comparisons", (FADS, CASTLE)))
            ),
        ),
        ("2(a) falls", "loss falls with delta", (moves(*delta1, -1),)),
        ("2(a) always lower", "FADS loses less at every delta", (is_lower(*delta1, CASTLE),)),
        ("2(a) knee", "the loss flattens near delta = 10,000", (has_knee,)),
        (
            "2(b) time over delta",
            "CASTLE's time rises much with delta, FADS's linearly and far less",
            (rises_less("delta", "delta", 0.2),),
        ),
        ("3(a) rises", "loss rises with k", (moves(*k1, 1),)),
        ("3(a) always lower", "FADS loses less at every k", (is_lower(*k1, CASTLE),)),
        (
            "3(b) time over k",
            "FADS takes less time as k grows; CASTLE's is flat from k = 50, clearly less at 10",
            (time_over_k,),
        ),
        (
            "3(b) comparisons",
            "FADS is faster than CASTLE at every k: at most half the comparisons",
            (compares_less(*k1),),
        ),
        ("4 fluctuates", "CASTLE's time fluctuates from k = 10 to 50", (fluctuates,)),
        ("5(a) rises", "loss rises with the number of quasi-identifiers", (moves(*some1, 1),)),
        ("5(b) slower rise", "so does time, that of FADS more slowly", (slope_is_less,)),
        (
            "6(a) crossing",
            "FAANST loses a bit more than CASTLE on few records, less on all",
            (crosses,),
        ),
        ("6(a) lowest", "FADS loses less than FAANST", (is_lower(*size2, FAANST),)),
        ("6(a) nears", "FAANST's loss wobbles and nears that of FADS", (nears,)),
        (
            "6(b) both below CASTLE",
            "FADS and FAANST are faster than CASTLE, FADS faster than FAANST, ever more so",
            (
                is_faster(*size2, CASTLE),
                is_faster(*size2, CASTLE, FAANST),
                is_faster(*size2, FAANST),
                gap_widens,
            ),
        ),
        (
            "6(b) comparisons",
            "FADS is faster than CASTLE on numbers alone: at most half the comparisons",
            (compares_less(*size2),),
        ),
        ("7(a) falls", "loss falls with delta, numbers alone", (moves(*delta2, -1),)),
        (
            "7(a) least moved",
            "delta moves FADS's loss least, which is the lowest",
            (is_least_moved, is_lower(*delta2, CASTLE), is_lower(*delta2, FAANST)),
        ),
        (
            "7(b) time over delta",
            "delta hardly moves the time of FAANST and FADS; FADS is faster",
            (delta_hardly_moves_time, is_faster(*delta2, FAANST)),
        ),
        ("8(a) rises", "loss rises with k, numbers alone", (moves(*k2, 1),)),
        (
            "8(a) just above",
            "FAANST loses just more than FADS at every k",
            (is_near(*k2[:2], 0, 0.05),),
        ),
        (
            "8(b) time over k",
            "FADS is the fastest at every k, FAANST's time falls most",
            (is_faster(*k2, CASTLE), is_faster(*k2, FAANST), falls_most),
        ),
        (
            "9(a) below CASTLE",
            "FADS and FAANST lose less than CASTLE at any number of quasi-identifiers",
            (is_lower(*some2, CASTLE), is_lower(*some2, CASTLE, FAANST)),
        ),
        (
            "9(a) one curve",
            "FADS and FAANST lose nearly alike",
            (is_near(*some2[:2], -0.02, 0.02),),
        ),
        (
            "9(b) fastest",
            "FADS is the fastest, FAANST far below CASTLE",
            (is_faster(*some2, CASTLE), is_faster(*some2, FAANST), is_far_below),
        ),
        ("10(a) c0 and loss", "a larger c0 lowers the loss, by less than .01", (c0_lowers_loss,)),
        ("10(b) c0 and time", "a larger c0 takes clearly more time", (c0_costs_time,)),
        (
            "11(a) tau and loss",
            "the loss stays within .01, whatever tau is",
            (tau_hardly_moves_loss,),
        ),
        ("11(b) tau and time", "the time stays within 6 %", (tau_hardly_moves_time,)),
        (
            "section 3.1 bounded",
            "FADS keeps a bounded number of clusters, the others ever more",
            (keeps_bounded,),
        ),
        (
            "groups",
            "numbers alone lose less and take less time than both kinds of attribute",
            (groups_differ,),
        ),
    )
    return tuple(Claim(about, words, judged(*asks)) for about, words, asks in asked)


CLAIMS = _claims()
