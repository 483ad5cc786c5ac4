"""The experiments of the CRP paper: section 4, figures 1 to 3.

Li, Liu, Cai, Zhou. Computer Engineering and Science 38(11):2191-2196, 2016.
The figures hold no numbers, the data set is not named and k is not given: only trends and order can
be compared.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from shoal.reproduce.claims import Judge, lies_above, lies_below
from shoal.reproduce.paper import (
    Claim,
    ClaimFinding,
    Figure,
    Paper,
    Reading,
    Setting,
    Verdict,
    View,
    crossed,
)
from shoal.reproduce.republication_bench import (
    INCREMENTS,
    QUICK_INCREMENTS,
    RECORDS,
    REPEATS,
    bench,
)

X = "increments"
STATIC_1, STATIC_2, K_PPRP, CRP = "Static I", "Static II", "K-PPRP", "CRP"
METHODS = {
    STATIC_1: ("static-1", "by=mondrian"),
    STATIC_2: ("static-2", "by=mondrian"),
    K_PPRP: ("k-pprp", "arrivals=any,by=mondrian"),
    CRP: ("crp", ""),
}
NEAR = 0.25
"""Curves within a quarter of each other are close together; the paper says 'not much apart'."""


def _curves(changed: Mapping[str, str] | None = None, k: int = 10) -> dict[str, Setting]:
    return {
        curve: {"method": method, "parameters": (changed or {}).get(curve, usual), "k": k}
        for curve, (method, usual) in METHODS.items()
    }


OURS = {STATIC_1: "by=rounded-partition", STATIC_2: "by=rounded-partition"}

READINGS = (
    Reading(
        "main",
        "k = 10; Static I and II by strict Mondrian, as is K-PPRP's first table; K-PPRP"
        " reconstructed, records join one by one",
        _curves(),
        is_quick=True,
    ),
    Reading("k = 5", "as main, k = 5", _curves(k=5)),
    Reading("k = 25", "as main, k = 25", _curves(k=25)),
    Reading(
        "rounded partition",
        "as main, Static I and II by the rounded partition, which makes as many classes as k"
        " allows",
        _curves({**OURS, K_PPRP: "arrivals=any,by=rounded-partition"}),
    ),
    Reading(
        "same clustering",
        "as main, Static I and II by greedy clustering (k-member), of CRP's own kind",
        _curves({STATIC_1: "by=k-member", STATIC_2: "by=k-member"}),
    ),
    Reading(
        "ours",
        "not the paper's: K-PPRP with at least k newcomers to a class, and CRP that clusters by"
        " k-member",
        _curves({K_PPRP: "arrivals=together,by=mondrian", CRP: "cluster=k-member"}),
    ),
)


def grid(quick: bool) -> list[Setting]:
    """Every curve of every reading, after each increment."""
    asked = [
        curve
        for reading in READINGS
        if reading.is_quick or not quick
        for curve in reading.curves.values()
    ]
    return crossed(asked, increments=range(1, (QUICK_INCREMENTS if quick else INCREMENTS) + 1))


def _judged(
    curves: Mapping[str, dict[int, float]], holds: Callable[[str, int], bool], unit: str
) -> ClaimFinding:
    """A verdict over all points of these curves, and their first and last values."""
    points = [(curve, at) for curve, values in curves.items() for at in values]
    kept = sum(holds(curve, at) for curve, at in points)
    numbers = "; ".join(
        f"{curve} {_span(list(values.values()))} {unit}" for curve, values in curves.items()
    )
    return ClaimFinding(
        Verdict.of(kept, len(points)), f"at {kept} of {len(points)} points; {numbers}"
    )


def _span(values: list[float]) -> str:
    first, last = (
        f"{v:,.0f}" if v >= 100 or v == int(v) else f"{v:.3g}" for v in (values[0], values[-1])
    )
    return f"{first} to {last}"


def only_leaks(curve: str) -> Judge:
    """The curve leaks after every increment and no other ever does."""

    def judge(view: View) -> ClaimFinding:
        curves = {name: view.points(name, "leaks", X) for name in view.curves}
        return _judged(
            curves, lambda name, at: (curves[name][at] > 0) == (name == curve), "records"
        )

    return judge


def stays_flat(*flat: str) -> Judge:
    """The time of these curves after the last increment is at most twice that after the first."""

    def judge(view: View) -> ClaimFinding:
        curves = {name: view.points(name, "seconds", X) for name in flat}
        ends = {name: list(values.values()) for name, values in curves.items()}
        kept = sum(values[-1] <= 2 * values[0] for values in ends.values())
        numbers = "; ".join(
            f"{name} {1000 * v[0]:.3g} to {1000 * v[-1]:.3g} ms" for name, v in ends.items()
        )
        return ClaimFinding(Verdict.of(kept, len(flat)), numbers)

    return judge


def grows(*growing: str) -> Judge:
    """The time of these curves after the last increment is more than 1.5 times that after the
    first.
    """

    def judge(view: View) -> ClaimFinding:
        ends = {name: list(view.points(name, "seconds", X).values()) for name in growing}
        kept = sum(values[-1] > 1.5 * values[0] for values in ends.values())
        numbers = "; ".join(
            f"{name} {1000 * v[0]:.3g} to {1000 * v[-1]:.3g} ms" for name, v in ends.items()
        )
        return ClaimFinding(Verdict.of(kept, len(growing)), numbers)

    return judge


def lie_close(*close: str) -> Judge:
    """After every increment the largest of these curves has at most a quarter more operations than
    the least.
    """

    def judge(view: View) -> ClaimFinding:
        curves = {name: view.points(name, "operations", X) for name in close}
        places = list(next(iter(curves.values())))
        kept = sum(
            max(curves[name][at] for name in close)
            <= (1 + NEAR) * min(curves[name][at] for name in close)
            for at in places
        )
        numbers = "; ".join(
            f"{name} {_span(list(values.values()))}" for name, values in curves.items()
        )
        return ClaimFinding(
            Verdict.of(kept, len(places)), f"at {kept} of {len(places)} increments; {numbers}"
        )

    return judge


def is_fewer(curve: str, than: str, y: str) -> Judge:
    """One curve lies below another after every increment."""

    def judge(view: View) -> ClaimFinding:
        own, other = view.points(curve, y, X), view.points(than, y, X)
        kept = sum(own[at] < other[at] for at in own)
        numbers = f"{curve} {_span(list(own.values()))}; {than} {_span(list(other.values()))}"
        return ClaimFinding(
            Verdict.of(kept, len(own)), f"at {kept} of {len(own)} increments; {numbers}"
        )

    return judge


FIGURES = (
    Figure("figure_1", "1 Leaks", X, "leaks", X, "records with a narrower later version"),
    Figure(
        "figure_2", "2 Generalization operations", X, "operations", X, "cells coarsened by the step"
    ),
    Figure("figure_2_loss", "2 Loss (ours: gcp of the whole table)", X, "gcp", X, "gcp"),
    Figure(
        "figure_3",
        "3 Time",
        X,
        "seconds",
        X,
        "CPU seconds (median, least to most)",
        low="seconds_least",
        high="seconds_most",
        is_log=True,
    ),
    Figure(
        "figure_4", "Ours: people in cells of fewer than k", X, "people_in_small_cells", X, "people"
    ),
)

CLAIMS = (
    Claim(
        "1 only Static II leaks",
        "Static II leaks after every increment, the other three never",
        only_leaks(STATIC_2),
    ),
    Claim(
        "2 Static I least",
        "Static I needs the fewest generalization operations",
        lies_below(STATIC_1, "operations", X),
    ),
    Claim(
        "2 Static II most (by sense)",
        "not the paper's words: Static II, which coarsens the whole table anew, needs the most",
        lies_above(STATIC_2, "operations", X),
    ),
    Claim(
        "2 three close together",
        "Static II, K-PPRP and CRP lie close together",
        lie_close(STATIC_2, K_PPRP, CRP),
    ),
    Claim(
        "2 K-PPRP below CRP",
        "K-PPRP needs slightly fewer operations than CRP",
        is_fewer(K_PPRP, CRP, "operations"),
    ),
    Claim(
        "3 Static I fastest", "Static I takes the least time", lies_below(STATIC_1, "seconds", X)
    ),
    Claim(
        "3 CRP and Static I flat",
        "the time of CRP and Static I stays about the same",
        stays_flat(CRP, STATIC_1),
    ),
    Claim(
        "3 Static II and K-PPRP grow",
        "Static II and K-PPRP take longer with every increment",
        grows(STATIC_2, K_PPRP),
    ),
    Claim(
        "3 CRP faster than both",
        "CRP takes less time than Static II",
        is_fewer(CRP, STATIC_2, "seconds"),
    ),
    Claim(
        "loss: CRP below Static I",
        "clustering an increment loses less than anonymising it simply (Static I)",
        is_fewer(CRP, STATIC_1, "gcp"),
    ),
    Claim(
        "loss: K-PPRP below Static I",
        "K-PPRP loses less than Static I (section 2)",
        is_fewer(K_PPRP, STATIC_1, "gcp"),
    ),
)

PAPER = Paper(
    name="crp",
    title="CRP",
    citation=(
        "Li T, Liu Q, Cai ZP, Zhou TQ. A wearable data re-dissemination method based on K-anonymity"
        " clustering. Computer Engineering and Science 38(11):2191-2196, 2016 (in Chinese)."
    ),
    setting=(
        "Quasi-identifiers age, height and weight of invented wearers; a first table of"
        f" {RECORDS:,} records and {INCREMENTS} increments of {RECORDS:,}, k = 10. Every record is"
        f" its own person. Time: CPU seconds of the method alone, {REPEATS} repeats, after a run"
        " that compiles. Everything else is read from the published files."
    ),
    grid=grid,
    bench=bench,
    readings=READINGS,
    figures=FIGURES,
    claims=CLAIMS,
    left_open=(
        (
            "The data: 'a set of the UCI repository'. Those with such columns are of very few"
            " people, whose bodies repeat; we take invented bodies."
        ),
        "k: not given. 10; readings with 5 and 25.",
        (
            "How Static I and Static II anonymise: not said. Strict Mondrian; readings with other"
            " methods."
        ),
        "K-PPRP: its paper was not available. A reconstruction; see docs/methods/k-pprp.md.",
        (
            "A leak: 'a later version that is more specific'. A record with a cell whose later span"
            " is a proper part of the earlier one, summed over attributes by record, between"
            " neighbouring releases."
        ),
        (
            "A generalization operation: not defined. A cell that the step writes as more than one"
            " value and that was not published like that before. Of each step, not summed over"
            " steps."
        ),
        (
            "The text on figure 2 names Static I as the outlier with the fewest operations. By"
            " sense Static II should be the outlier; both are judged."
        ),
        (
            "'Close together': within a quarter of the least. 'About the same time': at most twice;"
            " 'grow': 1.5 times at least."
        ),
    ),
    code=(
        "shoal.algorithms.republication",
        "shoal.algorithms.table",
        "shoal.kernels",
        "shoal.data",
        "shoal.samples.wearables",
        "shoal.jobs.republish",
        "shoal.reproduce.republication_bench",
    ),
)
