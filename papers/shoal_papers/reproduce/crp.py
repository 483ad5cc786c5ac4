"""The experiments of the CRP paper: section 4, figures 1 to 3, and what sections 3.2 and 4.3 say of
the size of increments, the width of domains and classes that are too alike.

Li, Liu, Cai, Zhou. Computer Engineering and Science 38(11):2191-2196, 2016.
The figures hold no numbers, the data set is not named and k is not given: only trends and order can
be compared.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal_papers.reproduce.crp_claims import (
    CLAIMS,
    CRP,
    GROWING,
    K_PPRP,
    SIZES_X,
    STATIC_1,
    STATIC_2,
    X,
    by_size,
)
from shoal_papers.reproduce.mixed_bench import DISTANCES
from shoal_papers.reproduce.paper import Figure, Paper, Reading, Setting, crossed
from shoal_papers.reproduce.republication_bench import (
    ATTENDANCE,
    GROWTH,
    IMPACT,
    IMPACT_TABLES,
    INCREMENTS,
    MIXED,
    MONTHS,
    MOVEMENT,
    QUICK_INCREMENTS,
    QUICK_MONTHS,
    RECORDS,
    REPEATS,
    RETURN,
    SIZE,
    bench,
)
from shoal_papers.reproduce.returning_bench import AS_NEWCOMERS, AS_PEOPLE
from shoal_papers.reproduce.wearer_tables import IN_FILE_ORDER, INVENTED, QUASI, SHUFFLED, WINDOWS

METHODS = {
    STATIC_1: ("static-1", "by=mondrian"),
    STATIC_2: ("static-2", "by=mondrian"),
    K_PPRP: ("k-pprp", "arrivals=any,by=mondrian"),
    CRP: ("crp", ""),
}
SIZES, QUICK_SIZES = (30, 100, 300, 1500, 6000), (30, 100)
WATCH_INCREMENTS = 3  # of 1,500 of the 6,264 minutes, or of the 6,891 windows
FACTORS, QUICK_FACTORS = (0.25, 0.5, 1, 2, 4), (1, 4)
KNOWN, QUICK_KNOWN = (4, 30, 100, 300, 1500), (4, 100)  # windows whose person somebody knows
RETURNING_K = 5


def _curves(
    changed: Mapping[str, str] | None = None, k: int = 10, data: str = INVENTED
) -> dict[str, Setting]:
    """The paper's four over increments; CRP and Static I over their size, on two domains."""
    asked: dict[str, Setting] = {
        curve: {"data": data, "method": method, "parameters": (changed or {}).get(curve, usual)}
        for curve, (method, usual) in METHODS.items()
    }
    growth: dict[str, Setting] = {
        curve: {"experiment": GROWTH, **asked[curve], "k": k} for curve in METHODS
    }
    sizes: dict[str, Setting] = {
        by_size(curve, domain): {"experiment": SIZE, **asked[curve], "k": k, "domain": domain}
        for curve in (CRP, STATIC_1)
        for domain in (1, 2)
    }
    return growth | sizes


def _watch(curve: str, data: str) -> dict[str, Setting]:
    """A curve over sizes, of real wearers, under its own name beside the invented ones."""
    return {f"{curve}, {data}": _curves(data=data)[by_size(curve)]}


def _returning(method: str, parameters: str, returning: str, over_time: str) -> Setting:
    return {
        "experiment": RETURN,
        "method": method,
        "parameters": parameters,
        "k": RETURNING_K,
        "returning": returning,
        "over_time": over_time,
    }


RETURNING: dict[str, Setting] = {
    "CRP, taken for newcomers": _returning("crp", "", AS_NEWCOMERS, "any"),
    "sticky": _returning("sticky", "", AS_PEOPLE, "any"),
    "sticky, size = k": _returning("sticky", f"size={RETURNING_K}", AS_PEOPLE, "any"),
    "sticky, fresh": _returning("sticky", "", AS_PEOPLE, "fresh"),
}
FACTOR_OF: dict[str, Setting] = {
    f"factor of {name}": {"experiment": IMPACT, "attribute": name, "k": 10} for name in QUASI
}
DISTANCE: dict[str, Setting] = {
    f"{distance}, mixed": {"experiment": MIXED, "distance": distance, "k": 10}
    for distance in DISTANCES
}
MOVING: dict[str, Setting] = {"nearest window": {"experiment": MOVEMENT, "data": WINDOWS}}
BESIDE = _watch(CRP, SHUFFLED) | _watch(STATIC_1, SHUFFLED) | _watch(CRP, IN_FILE_ORDER)
OURS = {STATIC_1: "by=rounded-partition", STATIC_2: "by=rounded-partition"}

READINGS = (
    Reading(
        "main",
        "k = 10; Static I and II by strict Mondrian, as is K-PPRP's first table; K-PPRP"
        " reconstructed, records join one by one",
        _curves() | BESIDE | RETURNING | FACTOR_OF | DISTANCE | MOVING,
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
    Reading(
        SHUFFLED,
        "as main, on minutes of 49 real wearers in random order, every minute taken for a person:"
        " 1,500 and 3 times 1,500",
        _curves(data=SHUFFLED),
    ),
    Reading(
        IN_FILE_ORDER,
        "the same in the order of the file, person by person",
        _curves(data=IN_FILE_ORDER),
    ),
    Reading(
        WINDOWS,
        "as main, on windows of raw three-axis acceleration of 4 people (PUC-Rio) in random order,"
        " every window taken for a person: 1,500 and 3 times 1,500",
        _curves(data=WINDOWS),
    ),
)


def grid(quick: bool) -> list[Setting]:
    """Every curve of every reading: after each increment, at each size, in each month."""
    asked = [
        curve
        for reading in READINGS
        if reading.is_quick or not quick
        for curve in reading.curves.values()
    ]
    listed: list[Setting] = []
    for curve in asked:
        listed += crossed([curve], **_axis(curve, quick))
    return [setting for i, setting in enumerate(listed) if setting not in listed[:i]]


def _axis(curve: Setting, quick: bool) -> dict[str, Sequence[float]]:
    """What a curve is drawn over, and the places that it is read at."""
    experiment = curve["experiment"]
    if experiment in (SIZE, MIXED):
        return {"size": QUICK_SIZES if quick else SIZES}
    if experiment == MOVEMENT:
        return {"size": QUICK_KNOWN if quick else KNOWN}
    if experiment == IMPACT:
        return {"factor": QUICK_FACTORS if quick else FACTORS}
    if experiment == RETURN:
        return {"increments": range(QUICK_MONTHS if quick else MONTHS)}
    most = QUICK_INCREMENTS if quick else INCREMENTS
    last = most if curve["data"] == INVENTED else min(most, WATCH_INCREMENTS)
    return {"increments": range(1, last + 1)}


IN_SIZES = (by_size(CRP), by_size(STATIC_1), by_size(CRP, 2), by_size(STATIC_1, 2), *BESIDE)

FIGURES = (
    Figure(
        "figure_1",
        "1 Leaks",
        X,
        "leaks",
        X,
        "records with a narrower later version",
        curves=GROWING,
    ),
    Figure(
        "figure_2",
        "2 Generalization operations",
        X,
        "operations",
        X,
        "cells coarsened by the step",
        curves=GROWING,
    ),
    Figure(
        "figure_2_loss", "2 Loss (ours: gcp of the whole table)", X, "gcp", X, "gcp", curves=GROWING
    ),
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
        curves=GROWING,
        has_legend_beside=True,
    ),
    Figure(
        "figure_4",
        "Ours: people in cells of fewer than k",
        X,
        "people_in_small_cells",
        X,
        "people",
        curves=GROWING,
    ),
    Figure(
        "size_loss",
        "3.2 Loss by size of the increments",
        SIZES_X,
        "gcp",
        "records in an increment",
        "gcp",
        curves=IN_SIZES,
        has_legend_beside=True,
        has_log_x=True,
    ),
    Figure(
        "size_width",
        "4.3(1) Classes whose intervals have width 0",
        SIZES_X,
        "no_width",
        "records in an increment",
        "share of classes",
        curves=IN_SIZES,
        has_legend_beside=True,
        has_log_x=True,
    ),
    Figure(
        "size_values",
        "4.3(1) Classes of one activity",
        SIZES_X,
        "one_activity",
        "records in an increment",
        "share of classes",
        curves=IN_SIZES,
        has_legend_beside=True,
        has_log_x=True,
    ),
    Figure(
        "size_people",
        "Ours: classes that hold one person",
        SIZES_X,
        "one_body",
        "records in an increment",
        "share of classes",
        curves=tuple(BESIDE),
        has_legend_beside=True,
        has_log_x=True,
    ),
    Figure(
        "impact",
        "Equation 1: loss by the impact factor of one attribute",
        "factor",
        "gcp",
        "impact factor, the others 1",
        "gcp",
        curves=tuple(FACTOR_OF),
        has_log_x=True,
    ),
    Figure(
        "impact_own",
        "Equation 1: loss of the attribute itself",
        "factor",
        "own_loss",
        "impact factor, the others 1",
        "gcp of the attribute",
        curves=tuple(FACTOR_OF),
        has_log_x=True,
    ),
    Figure(
        "mixed",
        "4.3(2) Adult: one number, seven categories",
        SIZES_X,
        "gcp",
        "records in an increment",
        "gcp",
        curves=tuple(DISTANCE),
        has_legend_beside=True,
        has_log_x=True,
    ),
    Figure(
        "movement",
        "Ours: whom the published acceleration names",
        SIZES_X,
        "named",
        "windows whose person is known",
        "share of 1,500 later windows",
        curves=tuple(MOVING),
        has_log_x=True,
    ),
    Figure(
        "return_alone",
        f"Ours: 49 people return, k = {RETURNING_K}",
        X,
        "alone",
        X,
        "people with fewer than k in all their classes",
        curves=tuple(RETURNING),
        has_legend_beside=True,
    ),
    Figure(
        "return_loss",
        f"Ours: 49 people return, k = {RETURNING_K}",
        X,
        "gcp",
        X,
        "gcp of the release (0: there is none)",
        curves=tuple(RETURNING),
        has_legend_beside=True,
    ),
    Figure(
        "return_published",
        f"Ours: 49 people return, k = {RETURNING_K}",
        X,
        "published",
        X,
        "records published, of those that arrived",
        curves=tuple(RETURNING),
        has_legend_beside=True,
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
        " that compiles. Everything else is read from the published files. By size: a table and"
        f" {INCREMENTS} increments of {', '.join(f'{size:,}' for size in SIZES)}, or as many as"
        " the 6,264 real minutes allow; numbers are of all classes of all increments. Domain x 2:"
        " values doubled, or doubled and one more, so that the scale has twice as many values."
        f" People who return: {MONTHS} increments, one minute each of {ATTENDANCE:.0%} of 49 real"
        f" wearers, k = {RETURNING_K}. Impact factors: a table and {IMPACT_TABLES - 1} increments"
        f" of {RECORDS:,} invented wearers. Mixed: UCI Adult, the classes as they are found, not"
        " written; losses by the hierarchies of ARX. Movement: the nearest of some"
        " windows by 24 features, mean and standard deviation of twelve axes."
    ),
    grid=grid,
    bench=bench,
    readings=READINGS,
    figures=FIGURES,
    claims=CLAIMS,
    why_main=(
        "Main stays invented wearers, as it was before the readings with real ones existed: the"
        " paper's 1,500 records are people, and no public set has so many."
    ),
    left_open=(
        (
            "The data: 'a set of the UCI repository'. Those with such columns are of very few"
            " people, whose bodies repeat; we take invented bodies. Readings with 6,264 minutes of"
            " 49 real wearers (Fuller and others), every minute taken for a person."
        ),
        "k: not given. 10; readings with 5 and 25.",
        (
            "How Static I and Static II anonymise: not said. Strict Mondrian; readings with other"
            " methods."
        ),
        (
            "K-PPRP: its paper was not available. A reconstruction; see"
            " docs/methods/comparators.md#k-pprp."
        ),
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
            "Distances of what is no number (3.2): not given. Ours, by the lowest node over two"
            " values; beside it 0 or 1, places in the hierarchy's order, and none. Impact factors:"
            " not given. 1 over the declared domain; one attribute's times 1/4 to 4."
        ),
        (
            "'Close together': within a quarter of the least. 'About the same time': the longest at"
            " most twice the shortest; 'grow': 1.5 times at least, and no step falls by more than"
            " the spread of the repeats."
        ),
        (
            "'Wide domains' and 'large loss' (3.2): not measured in the paper. If only the declared"
            " domain widens, gcp falls with it by definition; so we let the people fill it, and"
            " judge the loss both as a share of the domain and in units."
        ),
        (
            "'Too alike' (4.3(1)): not measured in the paper. Classes that show a single value of"
            " every quasi-identifier, or that have a single sensitive value."
        ),
    ),
    code=(
        "shoal.ledgers.methods.crp",
        "shoal_papers.baselines.k_pprp",
        "shoal_papers.baselines.rebuild",
        "shoal.ledgers.methods.sticky",
        "shoal_papers.baselines.k_member",
        "shoal.tables.methods.mondrian",
        "shoal.tables.methods.rounded_partition",
        "shoal.samples.wearables",
        "shoal_papers.reproduce.republication_bench",
        "shoal_papers.reproduce.returning_bench",
        "shoal_papers.reproduce.wearer_tables",
        "shoal_papers.reproduce.axial_windows",
        "shoal_papers.reproduce.mixed_bench",
    ),
)
