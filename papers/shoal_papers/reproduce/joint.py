"""What marginal t-closeness leaves open, and what joint t-closeness closes: an experiment of ours.

No paper has it. Li et al. (2007, section 6) leave several sensitive attributes open; to keep each
of them near its distribution says nothing of both together. We measure what an attacker gains, and
judge it against classes of the same sizes made at random: small classes give something away under
any promise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from shoal_papers.reproduce.closeness_bench import QUASI
from shoal_papers.reproduce.joint_bench import CONTROLS, GUESSED, KNOWN, bench
from shoal_papers.reproduce.paper import (
    Claim,
    ClaimFinding,
    Figure,
    Paper,
    Reading,
    Setting,
    Verdict,
    View,
)

KS = (5, 10, 20, 43, 83)
MARGINAL, JOINT = "marginal", "joint"
TS = {MARGINAL: (0.05, 0.10, 0.15), JOINT: (0.10, 0.20, 0.30, 0.40)}
SEEDS = 5
QUICK_KS, QUICK_TS = (5, 10), {MARGINAL: (0.15,), JOINT: (0.40,)}
SAME_SIZE = 0.1  # how far sizes of two releases that are compared may lie apart
COST = 0.03  # of gcp: what joint closeness may cost at one size


def curve(asked: str, t: float) -> str:
    return f"{asked}, t = {t:g}"


READINGS = tuple(
    Reading(
        f"seed {seed}",
        f"random numbers of the method and of the control from seed {seed}",
        {
            curve(asked, t): {"asked": asked, "t": t, "seed": seed}
            for asked, ts in TS.items()
            for t in ts
        },
        is_quick=seed == 0,
        may_lack=True,
    )
    for seed in range(SEEDS)
)


def grid(quick: bool) -> list[Setting]:
    """Every k and t of both kinds, seed after seed."""
    return [
        {"asked": asked, "t": t, "k": k, "seed": seed}
        for seed in range(1 if quick else SEEDS)
        for k in (QUICK_KS if quick else KS)
        for asked, ts in (QUICK_TS if quick else TS).items()
        for t in ts
    ]


# Judges

Rows = list[dict[str, Any]]


def _rows(view: View, asked: str) -> Rows:
    return [dict(row) for rows in view.curves.values() for row in rows if row["asked"] == asked]


def _name(row: dict[str, Any]) -> str:
    return f"k = {row['k']}, t = {row['t']:g}"


def _judged(cells: Iterator[tuple[str, bool]], words: str) -> ClaimFinding:
    listed = list(cells)
    if not listed:
        return ClaimFinding(Verdict.IN_PART, "no release to judge it by")
    lost = [name for name, kept in listed if not kept]
    numbers = f"{len(listed) - len(lost)} of {len(listed)} {words}"
    return ClaimFinding(
        Verdict.of(len(listed) - len(lost), len(listed)),
        numbers + (f"; not at {', '.join(lost)}" if lost else ""),
    )


def against_chance(asked: str, column: str, sign: int) -> Callable[[View], ClaimFinding]:
    """Whether every release gives away more (sign 1) or less (sign -1) than chance."""

    def judge(view: View) -> ClaimFinding:
        rows = _rows(view, asked)
        above = [row[column] - row[f"{column}_by_chance"] for row in rows]
        cells = ((_name(row), sign * more > 0) for row, more in zip(rows, above, strict=True))
        return _judged(
            cells, f"releases; {min(above, default=0):+.3f} to {max(above, default=0):+.3f}"
        )

    return judge


def leaves_joint_open(view: View) -> ClaimFinding:
    """Whether both attributes together are farther from the table than each of them may be."""
    rows = _rows(view, MARGINAL)
    times = [row["joint"] / row["t"] for row in rows]
    return _judged(
        ((_name(row), row["joint"] > row["t"]) for row in rows),
        f"releases; {min(times, default=0):.1f} to {max(times, default=0):.1f} times t",
    )


def costs_little_at_one_size(view: View) -> ClaimFinding:
    """Whether a joint release loses at most `COST` more than the strictest marginal one of its
    size.
    """
    marginal = [row for row in _rows(view, MARGINAL) if row["t"] == min(TS[MARGINAL])]
    cells, more = [], []
    for row in _rows(view, JOINT):
        peers = [
            other["gcp"]
            for other in marginal
            if abs(other["mean_size"] - row["mean_size"]) <= SAME_SIZE * row["mean_size"]
        ]
        if peers:
            more.append(row["gcp"] - min(peers))
            cells.append((_name(row), more[-1] <= COST))
    span = f"{min(more, default=0):+.3f} to {max(more, default=0):+.3f}"
    return _judged(iter(cells), f"joint releases beside a marginal one of their size; {span}")


def costs_size(view: View) -> ClaimFinding:
    """Whether classes are larger than k asks, at the smallest k, where joint closeness is asked."""
    rows = [row for row in _rows(view, JOINT) if row["k"] == min(KS)]
    cells = (
        (f"t = {row['t']:g} ({row['mean_size']:.1f})", row["mean_size"] > row["k"]) for row in rows
    )
    return _judged(cells, f"joint releases at k = {min(KS)}")


FIGURES = (
    Figure(
        "gain",
        "Gain above chance",
        "mean_size",
        "gain_above",
        "mean class size",
        "gain less that of random classes",
        has_legend_beside=True,
    ),
    Figure(
        "sure",
        "People whose value is sure, above chance",
        "mean_size",
        "sure_above",
        "mean class size",
        "share of people less that of random classes",
        has_legend_beside=True,
    ),
    Figure(
        "loss",
        "What it costs",
        "mean_size",
        "gcp",
        "mean class size",
        "gcp",
        has_legend_beside=True,
    ),
    Figure(
        "joint",
        "Both attributes together",
        "k",
        "joint",
        "k",
        "greatest joint distance",
        has_legend_beside=True,
    ),
)

CLAIMS = (
    Claim(
        "marginal, together",
        "t-closeness of each attribute leaves both together farther from the table than t",
        leaves_joint_open,
    ),
    Claim(
        "marginal, gain",
        "under it an attacker who knows one attribute gains more about the other than by random"
        " classes of the same sizes",
        against_chance(MARGINAL, "gain", 1),
    ),
    Claim("marginal, sure", "and is sure of more people", against_chance(MARGINAL, "sure", 1)),
    Claim(
        "joint, gain",
        "under joint t-closeness the attacker gains less than by random classes",
        against_chance(JOINT, "gain", -1),
    ),
    Claim("joint, sure", "and is sure of fewer people", against_chance(JOINT, "sure", -1)),
    Claim(
        "cost, loss",
        f"at equal size (within {SAME_SIZE:.0%}), joint closeness costs at most {COST} of gcp more"
        f" than t = {min(TS[MARGINAL])} of each attribute",
        costs_little_at_one_size,
    ),
    Claim("cost, size", "where k is small, it costs size", costs_size),
)

PAPER = Paper(
    name="joint",
    title="What marginal t-closeness leaves open",
    citation=(
        "An experiment of ours, after Li NH, Li TC, Venkatasubramanian S. t-closeness. ICDE 2007,"
        " section 6."
    ),
    setting=(
        f"Quasi-identifiers {' and '.join(QUASI)}, sensitive {KNOWN} and {GUESSED}, method"
        f" tcloseness; k = {', '.join(map(str, KS))}; t ="
        f" {', '.join(f'{t:g}' for t in TS[MARGINAL])} of each attribute, or"
        f" {', '.join(f'{t:g}' for t in TS[JOINT])} of both together. The attacker knows the class"
        f" and the quarter of {KNOWN}, and guesses whether {GUESSED} is above its median. Chance:"
        f" the same people in classes of the same sizes at random, mean of {CONTROLS}."
    ),
    grid=grid,
    bench=bench,
    readings=READINGS,
    figures=FIGURES,
    claims=CLAIMS,
    left_open=(
        "What an attacker knows: the quarter of one attribute. Nobody prescribes it.",
        "How far apart combinations of values are: see the decision on joint distances.",
    ),
    code=(
        "shoal.tables.methods.tcloseness",
        "shoal.privacy.t_closeness",
        "shoal_papers.reproduce.data_sets",
        "shoal_papers.reproduce.joint_bench",
    ),
)
