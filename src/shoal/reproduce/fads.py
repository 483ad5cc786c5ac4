"""The experiments of the FADS paper: tables 3 and 4, figures 1 to 11.

Guo, Zhang. Fast clustering-based anonymization algorithm for data streams. Journal of Software
24(8):1852-1867, 2013. Curves are lost from our copy of the paper, so that order and trend alone are
judged, and the few numbers that its text names.
"""

from __future__ import annotations

from collections.abc import Callable

from shoal.reproduce.paper import (
    Claim,
    ClaimFinding,
    Figure,
    Paper,
    Reading,
    Setting,
    Verdict,
    View,
)
from shoal.reproduce.stream_bench import QUICK_RECORDS, bench

FADS, CASTLE, FAANST = "FADS", "CASTLE", "FAANST"
PARAMETERS = {
    FADS: ("fads", "preset=paper,tau=0.5,c0=1"),
    CASTLE: ("castle", "beta=50,mu=100,keep=0"),
    FAANST: ("faanst", "tau=0.5,delay=none,keep=0"),
}
GROWN = {**PARAMETERS, FADS: ("fads", "neighbour=grow,tau=0.5,c0=1")}
OURS = {**PARAMETERS, FADS: ("fads", "neighbour=near,tau=0.5,c0=1")}
FULL, WHOLE = 30_162, {1: 10, 2: 6}
SIZES = (5_000, 10_000, 15_000, 20_000, 25_000, FULL)
DELTAS = (1_000, 2_000, 5_000, 10_000, 15_000)
KS = (10, 50, 100, 200, 500)
FEW_KS = (10, 20, 30, 40, 50)
QIS = {1: (2, 4, 6, 8, 10), 2: (1, 2, 3, 4, 5, 6)}
TAUS, C0S = (0.2, 0.4, 0.6, 0.8, 1.0), (1, 2, 5, 10)
QUICK = {
    "sizes": (1000, QUICK_RECORDS),
    "deltas": (300, 1000),
    "ks": (10, 40),
    "qis": {1: (2, 4), 2: (1, 2)},
}


def _asked(
    experiment: str, group: int, methods: dict[str, tuple[str, str]], quick: bool, **changed: int
) -> list[Setting]:
    """One point of an experiment for each method of its group: tables 3 and 4, with what is
    changed.
    """
    usual = (
        {"k": 10, "delta": 1000, "records": QUICK_RECORDS}
        if quick
        else {"k": 100, "delta": 10_000, "records": FULL}
    )
    whole = (4 if group == 1 else 2) if quick else WHOLE[group]
    names = (FADS, CASTLE) if group == 1 else (FADS, CASTLE, FAANST)
    return [
        {
            "experiment": experiment,
            "group": group,
            "method": methods[n][0],
            "parameters": methods[n][1],
            "attributes": whole,
            **usual,
            **changed,
        }
        for n in names
    ]


def _grid_of(methods: dict[str, tuple[str, str]], quick: bool) -> list[Setting]:
    sizes, deltas = (QUICK["sizes"], QUICK["deltas"]) if quick else (SIZES, DELTAS)
    ks, qis = (QUICK["ks"], QUICK["qis"]) if quick else (KS, QIS)
    found: list[Setting] = []
    for group in (1, 2):
        for n in sizes:
            found += _asked("size", group, methods, quick, records=n)
        for delta in deltas:
            found += _asked("delta", group, methods, quick, delta=delta)
        for k in ks:
            found += _asked("k", group, methods, quick, k=k)
        for many in qis[group]:  # type: ignore[index]
            found += _asked("attributes", group, methods, quick, attributes=many)
    for k in () if quick else FEW_KS:
        found += [s for s in _asked("few k", 1, methods, quick, k=k) if s["method"] == "castle"]
    return found


def grid(quick: bool) -> list[Setting]:
    """Every point of every experiment, under every reading; none twice."""
    found: list[Setting] = []
    for methods in (PARAMETERS,) if quick else (PARAMETERS, GROWN, OURS):
        found += _grid_of(methods, quick)
        base = methods[FADS][1]
        usual = {**_asked("", 1, methods, quick)[0], "reading": base}
        small = {**usual, "experiment": "c0", "k": 10, "delta": 300 if quick else 1000}
        for c0 in (1, 10) if quick else C0S:
            found.append({**small, "parameters": base.replace("c0=1", f"c0={c0}"), "c0": c0})
        for tau in (0.4, 1.0) if quick else TAUS:
            changed = base.replace("tau=0.5", f"tau={tau}")
            found.append({**usual, "experiment": "tau", "parameters": changed, "tau": tau})
    return [setting for i, setting in enumerate(found) if setting not in found[:i]]


def _curves(methods: dict[str, tuple[str, str]]) -> dict[str, Setting]:
    """A curve for each method of each experiment, and those of c0 and tau."""
    curves: dict[str, Setting] = {}
    for group in (1, 2):
        for experiment in ("size", "delta", "k", "attributes"):
            for name in (FADS, CASTLE) if group == 1 else (FADS, CASTLE, FAANST):
                method, parameters = methods[name]
                curves[curve(name, experiment, group)] = {
                    "experiment": experiment,
                    "group": group,
                    "method": method,
                    "parameters": parameters,
                }
    for experiment in ("c0", "tau"):
        curves[f"{FADS} by {experiment}"] = {"experiment": experiment, "reading": methods[FADS][1]}
    return curves


def curve(name: str, experiment: str, group: int) -> str:
    """The name of a curve: method, what is varied, group of quasi-identifiers."""
    return f"{name}, group {group}, by {experiment}"


READINGS = (
    Reading(
        "main",
        "FADS as its pseudo-code is printed (the nearest records of one); numbers over the range of"
        " the data, the hierarchies of Fung, Wang and Yu; records in file order, each its own"
        " person; FAANST carries who is left over to the next window",
        _curves(PARAMETERS),
        is_quick=True,
    ),
    Reading(
        "grown",
        "as main, FADS grows each cluster by the record that adds least loss: what its stated cost"
        " fits",
        _curves(GROWN),
    ),
    Reading(
        "ours",
        "as main, FADS grows clusters among the 3k nearest and divides near ones anew: our default,"
        " not the paper's",
        _curves(OURS),
    ),
)


NUMBERED = {
    1: {"size": "1", "delta": "2", "k": "3", "attributes": "5"},
    2: {"size": "6", "delta": "7", "k": "8", "attributes": "9"},
}
AXES = {
    "size": ("records", "records"),
    "delta": ("delta", "delta"),
    "k": ("k", "k"),
    "attributes": ("attributes", "quasi-identifiers"),
}


def _figures() -> tuple[Figure, ...]:
    found = []
    for group, experiments in NUMBERED.items():
        names = (FADS, CASTLE) if group == 1 else (FADS, CASTLE, FAANST)
        for experiment, number in experiments.items():
            x, label = AXES[experiment]
            shown = tuple(curve(name, experiment, group) for name in names)
            found += _pair(number, f"{number}: by {label}, group {group}", x, label, shown)
    found += _pair("10", "10: by c0, delta = 1,000, k = 10", "c0", "c0", (f"{FADS} by c0",))
    found += _pair("11", "11: by tau", "tau", "tau", (f"{FADS} by tau",))
    return tuple(found)


def _pair(number: str, title: str, x: str, label: str, shown: tuple[str, ...]) -> list[Figure]:
    """Loss and time over the same axis."""
    return [
        Figure(f"figure_{number}a", f"{title}, loss", x, "loss", label, "mean loss", curves=shown),
        Figure(
            f"figure_{number}b",
            f"{title}, time",
            x,
            "seconds",
            label,
            "CPU seconds",
            low="seconds_least",
            high="seconds_most",
            curves=shown,
        ),
    ]


def _judged(asks: Callable[[View], list[tuple[bool, str]]]) -> Callable[[View], ClaimFinding]:
    """Holds as far as its parts do; each part is a truth and its numbers."""

    def judge(view: View) -> ClaimFinding:
        parts = asks(view)
        numbers = "; ".join(f"{words}{'' if holds else ' (not)'}" for holds, words in parts)
        return ClaimFinding(Verdict.of(sum(holds for holds, _ in parts), len(parts)), numbers)

    return judge


def equal_then_lower(view: View) -> list[tuple[bool, str]]:
    """Up to delta records both lose alike (within .05), from 1.5 delta on FADS loses less."""
    fads, castle = (view.points(curve(n, "size", 1), "loss", "records") for n in (FADS, CASTLE))
    delta = max(row["delta"] for row in view.curves[curve(FADS, "size", 1)])
    parts = []
    for n in fads:
        holds = abs(fads[n] - castle[n]) < 0.05 if n <= delta else fads[n] < castle[n]
        parts.append((holds, f"at {n}: {fads[n]:.3f} and {castle[n]:.3f}"))
    return parts


def is_lower_everywhere(
    experiment: str, x: str, group: int, other: str
) -> Callable[[View], list[tuple[bool, str]]]:
    """FADS loses less than the other method at every point."""

    def asks(view: View) -> list[tuple[bool, str]]:
        own, theirs = (view.points(curve(n, experiment, group), "loss", x) for n in (FADS, other))
        return [
            (own[at] < theirs[at], f"{x} {at}: {own[at]:.3f} and {theirs[at]:.3f}") for at in own
        ]

    return asks


def moves(
    experiment: str, x: str, group: int, sign: int, y: str = "loss"
) -> Callable[[View], list[tuple[bool, str]]]:
    """Each method's curve ends higher (sign 1) or lower (-1) than it begins."""

    def asks(view: View) -> list[tuple[bool, str]]:
        parts = []
        for name in (FADS, CASTLE) if group == 1 else (FADS, CASTLE, FAANST):
            points = list(view.points(curve(name, experiment, group), y, x).values())
            parts.append(
                (sign * (points[-1] - points[0]) > 0, f"{name} {points[0]:.3g} to {points[-1]:.3g}")
            )
        return parts

    return asks


def is_faster(
    experiment: str, x: str, group: int, other: str
) -> Callable[[View], list[tuple[bool, str]]]:
    """FADS takes less time than the other at every point."""

    def asks(view: View) -> list[tuple[bool, str]]:
        own, theirs = (
            view.points(curve(n, experiment, group), "seconds", x) for n in (FADS, other)
        )
        return [
            (own[at] < theirs[at], f"{x} {at}: {theirs[at] / own[at]:.1f} times as long")
            for at in own
        ]

    return asks


def crosses(view: View) -> list[tuple[bool, str]]:
    """FAANST loses more than CASTLE on few records and less on all."""
    castle, faanst = (view.points(curve(n, "size", 2), "loss", "records") for n in (CASTLE, FAANST))
    first, last = min(castle), max(castle)
    return [
        (
            faanst[first] >= castle[first],
            f"at {first}: FAANST {faanst[first]:.3f}, CASTLE {castle[first]:.3f}",
        ),
        (
            faanst[last] < castle[last],
            f"at {last}: FAANST {faanst[last]:.3f}, CASTLE {castle[last]:.3f}",
        ),
    ]


def keeps_bounded(view: View) -> list[tuple[bool, str]]:
    """FADS keeps no more clusters as the stream grows; CASTLE and FAANST do."""
    parts = []
    for name in (FADS, CASTLE, FAANST):
        points = list(view.points(curve(name, "size", 2), "kept", "records").values())
        grows = points[-1] > points[len(points) // 2]
        parts.append(
            (grows is (name != FADS), f"{name} keeps {points[len(points) // 2]} to {points[-1]}")
        )
    return parts


def groups_differ(view: View) -> list[tuple[bool, str]]:
    """Numbers alone lose less than both kinds, for each method."""
    parts = []
    for name in (FADS, CASTLE):
        one, two = (view.points(curve(name, "size", g), "loss", "records") for g in (1, 2))
        parts.append(
            (two[max(two)] < one[max(one)], f"{name} {one[max(one)]:.3f} and {two[max(two)]:.3f}")
        )
    return parts


def hardly_moves(
    experiment: str, most: float, least_x: float
) -> Callable[[View], list[tuple[bool, str]]]:
    """The loss of FADS stays within `most` from `least_x` on."""

    def asks(view: View) -> list[tuple[bool, str]]:
        points = view.points(f"{FADS} by {experiment}", "loss", experiment)
        losses = [loss for at, loss in points.items() if at >= least_x]
        return [(max(losses) - min(losses) < most, f"{min(losses):.3f} to {max(losses):.3f}")]

    return asks


CLAIMS = (
    Claim(
        "1(a) equal, then lower",
        "FADS and CASTLE lose alike up to 10,000 records, then FADS less",
        _judged(equal_then_lower),
    ),
    Claim("1(a) falls", "loss falls as the stream grows", _judged(moves("size", "records", 1, -1))),
    Claim(
        "1(b) faster",
        "FADS is much faster than CASTLE",
        _judged(is_faster("size", "records", 1, CASTLE)),
    ),
    Claim("2(a) falls", "loss falls with delta", _judged(moves("delta", "delta", 1, -1))),
    Claim(
        "2(a) always lower",
        "FADS loses less at every delta",
        _judged(is_lower_everywhere("delta", "delta", 1, CASTLE)),
    ),
    Claim("3(a) rises", "loss rises with k", _judged(moves("k", "k", 1, 1))),
    Claim(
        "3(a) always lower",
        "FADS loses less at every k",
        _judged(is_lower_everywhere("k", "k", 1, CASTLE)),
    ),
    Claim(
        "3(b) time falls",
        "FADS takes less time as k grows",
        _judged(lambda v: moves("k", "k", 1, -1, "seconds")(v)[:1]),
    ),
    Claim(
        "5(a) rises",
        "loss rises with the number of quasi-identifiers",
        _judged(moves("attributes", "attributes", 1, 1)),
    ),
    Claim(
        "5(b) time rises",
        "so does time",
        _judged(moves("attributes", "attributes", 1, 1, "seconds")),
    ),
    Claim(
        "6(a) crossing",
        "FAANST loses a bit more than CASTLE on few records, less on all",
        _judged(crosses),
    ),
    Claim(
        "6(a) lowest",
        "FADS loses less than FAANST",
        _judged(is_lower_everywhere("size", "records", 2, FAANST)),
    ),
    Claim(
        "6(b) faster",
        "FADS is faster than FAANST",
        _judged(is_faster("size", "records", 2, FAANST)),
    ),
    Claim(
        "7(a) falls",
        "loss falls with delta, numbers alone",
        _judged(moves("delta", "delta", 2, -1)),
    ),
    Claim("8(a) rises", "loss rises with k, numbers alone", _judged(moves("k", "k", 2, 1))),
    Claim(
        "8(b) time falls", "time falls with k for all", _judged(moves("k", "k", 2, -1, "seconds"))
    ),
    Claim(
        "9(a) below CASTLE",
        "FADS loses less than CASTLE at any number of quasi-identifiers",
        _judged(is_lower_everywhere("attributes", "attributes", 2, CASTLE)),
    ),
    Claim(
        "10 c0 hardly matters",
        "loss moves by less than .02 as c0 grows tenfold",
        _judged(hardly_moves("c0", 0.02, 1)),
    ),
    Claim(
        "11 tau hardly matters",
        "loss moves by less than .01 from tau = .4 on",
        _judged(hardly_moves("tau", 0.01, 0.4)),
    ),
    Claim(
        "section 3.1 bounded",
        "FADS keeps a bounded number of clusters, the others ever more",
        _judged(keeps_bounded),
    ),
    Claim("groups", "numbers alone lose less than both kinds of attribute", _judged(groups_differ)),
)

PAPER = Paper(
    name="fads",
    title="FADS: fast clustering-based anonymization of data streams",
    citation=(
        "Guo, Zhang. Journal of Software 24(8):1852-1867, 2013 (in Chinese). Section 4, tables 3"
        " and 4, figures 1 to 11."
    ),
    setting=(
        "10 quasi-identifiers (6 numbers, 4 hierarchies) or the 6 numbers alone; k = 100, delta ="
        " 10,000, tau = 0.5, c0 = 1; CASTLE with beta = 50, mu = 100; one thread"
    ),
    grid=grid,
    bench=bench,
    readings=READINGS,
    figures=_figures(),
    claims=CLAIMS,
    left_open=(
        (
            "Domains of the numbers: not given. The range of the data; with wider ones every loss"
            " is smaller, which may be why the paper's .18 to .19 (figure 11) lies below ours."
        ),
        "Who a record's person is: not said. Every record its own.",
        (
            "Which quasi-identifiers stay as their number falls: not said. Numbers and hierarchies"
            " in turn, in the order of the text."
        ),
        "The captions of figures 7 and 8 are exchanged; the text's reading is followed.",
        (
            "CASTLE and FAANST: their papers were not at hand; see docs/methods/castle.md and"
            " faanst.md."
        ),
    ),
    code=(
        "shoal.algorithms.stream",
        "shoal.kernels.nearest_clusters",
        "shoal.kernels.grown_clusters",
        "shoal.kernels.regroup",
        "shoal.kernels.join_clusters",
        "shoal.kernels.covering",
        "shoal.kernels.stream_distances",
        "shoal.kernels.candidates",
        "shoal.kernels.mixed_means",
        "shoal.data.space",
        "shoal.reproduce.stream_bench",
    ),
)
