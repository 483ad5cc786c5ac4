"""The experiments of the fusion paper: section 5, figures 3 to 5.

Yang, Wang. Computer Technology and Development 27(5):102-107, 2017 (in Chinese).
The figures hold no numbers; neither the values of k, nor the attributes of a QID, nor who owns
which are named.
"""

from __future__ import annotations

import itertools

from shoal_papers.reproduce.fusion_bench import BY_PARTY, REPEATS, bench
from shoal_papers.reproduce.paper import (
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

KS = (20, 50, 100, 200, 500, 1000)
QUICK_KS = (5, 20)
DELAYS = (0, 5, 20, 50)
OWN, LITERAL, STEPWISE = "party-tds", "party-tds-literal", "party-tds-stepwise"
RULES = (OWN, LITERAL, STEPWISE)
QIDS = ("QID5", "QID7")


def curve(rule: str, qids: str, parties: int) -> str:
    """The name of a curve over k."""
    return f"{rule} {qids}, {parties} parties"


def delayed(rule: str, qids: str) -> str:
    """The name of a curve over the delay, at k = 20."""
    return f"{rule} {qids} by delay"


def curves(suffix: str) -> dict[str, Setting]:
    """The curves over k, with a suffix to the name of each QID."""
    found: dict[str, Setting] = {}
    for parties, qids, rule in itertools.product((2, 3), QIDS, RULES):
        if rule != LITERAL or parties == 3:
            asked = {"method": rule, "parties": parties, "qids": qids + suffix, "delay": 0}
            found[curve(rule, qids, parties)] = asked
    return found


CURVES, WHOLE = curves(BY_PARTY), curves("")
BY_DELAY: dict[str, Setting] = {
    delayed(rule, qids): {"method": rule, "parties": 3, "qids": qids, "k": 20}
    for qids in ("QID5", "six pairs")
    for rule in (OWN, STEPWISE)
}
ORIGINAL: dict[str, Setting] = {
    "BE": {"method": "original", "parties": 1, "qids": "QID5", "delay": 0}
}


def grid(quick: bool) -> list[Setting]:
    """Every curve over k without delay, and some over the delay."""
    ks, delays = (QUICK_KS, (0, 5)) if quick else (KS, DELAYS)
    if quick:
        some = [
            setting
            for name, setting in CURVES.items()
            if "3 parties" in name and LITERAL not in name
        ]
        return crossed([*some, *ORIGINAL.values()], k=ks)
    over_k = crossed([*CURVES.values(), *WHOLE.values(), *ORIGINAL.values()], k=ks)
    over_delay = crossed(BY_DELAY.values(), delay=delays)
    return [*over_k, *(setting for setting in over_delay if setting not in over_k)]


def takes_less_time(view: View) -> ClaimFinding:
    """Not slower than the baseline beyond the spread, at every k, QID and number of parties."""
    kept, faster, ratios = 0, 0, []
    for parties in (2, 3):
        for qids in QIDS:
            own, base = (_times(view, curve(rule, qids, parties)) for rule in (OWN, STEPWISE))
            for k in own.keys() & base.keys():
                kept += not _is_above(own[k], base[k])
                faster += _is_above(base[k], own[k])
                ratios.append(base[k][1] / own[k][1] if own[k][1] else 1.0)
    numbers = (
        f"not slower at {kept} of {len(ratios)} settings, faster beyond the spread at {faster};"
        f" the baseline takes {min(ratios):.2f} to {max(ratios):.2f} times as much"
    )
    return ClaimFinding(Verdict.of(kept, len(ratios)), numbers)


def time_falls(view: View) -> ClaimFinding:
    """With three parties no curve of our rule over k rises at a step beyond the spread."""
    rising, steps = [], 0
    for name in (curve(OWN, qids, 3) for qids in QIDS):
        for (a, before), (b, after) in itertools.pairwise(_times(view, name).items()):
            steps += 1
            if _is_above(after, before):
                rising.append(f"{name.removeprefix(OWN + ' ')} from {a} to {b}")
    numbers = f"{steps - len(rising)} of {steps} steps don't rise" + "".join(
        f"; rises: {step}" for step in rising[:4]
    )
    return ClaimFinding(Verdict.of(steps - len(rising), steps), numbers)


def more_attributes_take_less(view: View) -> ClaimFinding:
    """QID7 takes no longer than QID5 beyond the spread, at every k."""
    kept, points = 0, 0
    for parties in (2, 3):
        five, seven = (_times(view, curve(OWN, qids, parties)) for qids in QIDS)
        points += len(five)
        kept += sum(not _is_above(seven[k], five[k]) for k in five if k in seven)
    return ClaimFinding(Verdict.of(kept, points), f"at {kept} of {points} settings")


def more_attributes_need_fewer_steps(view: View) -> ClaimFinding:
    """With three parties QID7 needs fewer specializations than QID5, at every k."""
    five, seven = (_points(view, curve(OWN, qids, 3), "steps", "k") for qids in QIDS)
    kept = sum(seven[k] < five[k] for k in five)
    return ClaimFinding(
        Verdict.of(kept, len(five)),
        f"at {kept} of {len(five)}; QID5 {_listed(five)}; QID7 {_listed(seven)}",
    )


def steps_fall(view: View) -> ClaimFinding:
    """With three parties the specializations of no QID rise at any step of k."""
    kept, asked, numbers = 0, 0, []
    for qids in QIDS:
        points = _points(view, curve(OWN, qids, 3), "steps", "k")
        steps = list(itertools.pairwise(points.values()))
        kept += sum(after <= before for before, after in steps)
        asked += len(steps)
        numbers.append(f"{qids} {_listed(points)}")
    two = "; ".join(
        f"{qids} {_listed(_points(view, curve(OWN, qids, 2), 'steps', 'k'))}" for qids in QIDS
    )
    return ClaimFinding(
        Verdict.of(kept, asked),
        f"{kept} of {asked} steps don't rise; {'; '.join(numbers)}; with two parties, of which it"
        f" is not said: {two}",
    )


def _listed(points: dict[int, float]) -> str:
    return ", ".join(f"{value:g}" for value in points.values())


def _times(view: View, name: str) -> dict[int, tuple[float, float, float]]:
    """Least, median and most seconds by k."""
    least, middle, most = (
        _points(view, name, column, "k") for column in ("seconds_least", "seconds", "seconds_most")
    )
    return {k: (least[k], middle[k], most[k]) for k in middle}


def _is_above(one: tuple[float, ...], other: tuple[float, ...]) -> bool:
    """Whether a time is longer beyond the spread: its shortest run than the other's longest."""
    return one[0] > other[-1]


def error_rises(view: View) -> ClaimFinding:
    """No fewer errors at the largest k than at the smallest, and there no fewer than on the
    original.
    """
    numbers, kept = [], 0
    original = _points(view, "BE", "error", "k")
    for qids in QIDS:
        points = list(_points(view, curve(OWN, qids, 3), "error", "k").values())
        bumps = sum(after < before for before, after in itertools.pairwise(points))
        kept += points[-1] >= points[0] >= min(original.values())
        numbers.append(
            f"{qids}: {points[0]:.2f} to {points[-1]:.2f} % wrong, {bumps} steps where it falls"
        )
    return ClaimFinding(
        Verdict.of(kept, len(QIDS)),
        f"original {min(original.values()):.2f} %; " + "; ".join(numbers),
    )


def same_table(view: View) -> ClaimFinding:
    """As many groups and steps as step by step."""
    kept, points = 0, 0
    for parties in (2, 3):
        for qids in QIDS:
            for column in ("groups", "steps"):
                own, base = (
                    _points(view, curve(rule, qids, parties), column, "k")
                    for rule in (OWN, STEPWISE)
                )
                points += len(own)
                kept += sum(own[k] == base[k] for k in own if k in base)
    return ClaimFinding(Verdict.of(kept, points), f"at {kept} of {points} settings")


def fewer_rounds(view: View) -> ClaimFinding:
    """Rounds of all runs with three parties together, by rule."""
    totals = {
        rule: sum(sum(_points(view, curve(rule, qids, 3), "rounds", "k").values()) for qids in QIDS)
        for rule in RULES
    }
    held = totals[OWN] <= totals[STEPWISE] and (
        not totals[LITERAL] or totals[OWN] <= totals[LITERAL]
    )
    return ClaimFinding(
        Verdict.of(int(held), 1), ", ".join(f"{rule} {total}" for rule, total in totals.items())
    )


def delay_favours_batches(view: View) -> ClaimFinding:
    """With a delay of 20 ms and more, our rule is not slower than step by step."""
    kept, numbers = 0, []
    places = [(qids, delay) for qids in ("QID5", "six pairs") for delay in (20, 50)]
    for qids, delay in places:
        own, base = (
            _points(view, delayed(rule, qids), "seconds", "delay") for rule in (OWN, STEPWISE)
        )
        if delay in own and delay in base:
            kept += own[delay] <= base[delay]
            numbers.append(f"{qids} at {delay} ms: {own[delay]:.1f} against {base[delay]:.1f} s")
    return ClaimFinding(Verdict.of(kept, max(len(numbers), 1)), "; ".join(numbers) or "not run")


def _points(view: View, name: str, y: str, x: str) -> dict[int, float]:
    return view.points(name, y, x) if view.curves.get(name) else {}


READINGS = (
    Reading(
        "main",
        "every party's own attributes of QID5 and QID7 are a QID; with two parties a helper"
        " computes; seconds from agreed ids to the table",
        CURVES,
        {**BY_DELAY, **ORIGINAL},
        is_quick=True,
        may_lack=True,
    ),
    Reading(
        "one QID",
        "as main, but all attributes of QID5 and QID7 are one QID each",
        WHOLE,
        {**BY_DELAY, **ORIGINAL},
        may_lack=True,
    ),
)


def _drawn(parties: int) -> tuple[str, ...]:
    return tuple(curve(rule, qids, parties) for rule in (OWN, STEPWISE) for qids in QIDS)


PAIRS = (
    *itertools.product(QIDS, (OWN, STEPWISE)),
    ("QID7", LITERAL),
    *itertools.product(("six pairs",), (OWN, STEPWISE)),
)
"""A method and a QID have the same colour in all figures."""

STYLES = {"BE": len(PAIRS)} | {
    name: style
    for style, (qids, rule) in enumerate(PAIRS)
    for name in (*(curve(rule, qids, parties) for parties in (2, 3)), delayed(rule, qids))
}
FIGURES = (
    Figure(
        "figure_3",
        "3 Time, two parties",
        "k",
        "seconds",
        "k",
        "seconds after the join (median, least to most)",
        low="seconds_least",
        high="seconds_most",
        curves=_drawn(2),
        styles=STYLES,
        has_legend_beside=True,
    ),
    Figure(
        "figure_4",
        "4 Time, three parties",
        "k",
        "seconds",
        "k",
        "seconds after the join (median, least to most)",
        low="seconds_least",
        high="seconds_most",
        curves=_drawn(3),
        styles=STYLES,
        has_legend_beside=True,
    ),
    Figure(
        "figure_5",
        "5 Classification, three parties",
        "k",
        "error",
        "k",
        "% of test records wrong",
        curves=("BE", *(curve(OWN, qids, 3) for qids in QIDS)),
        styles=STYLES,
        has_legend_beside=True,
    ),
    Figure(
        "rounds",
        "Rounds, three parties, QID7",
        "k",
        "rounds",
        "k",
        "secure rounds",
        curves=tuple(curve(rule, "QID7", 3) for rule in RULES),
        styles=STYLES,
    ),
    Figure(
        "delay",
        "Time by added delay, k = 20",
        "delay",
        "seconds",
        "ms one way",
        "seconds after the join",
        is_log=True,
        curves=tuple(BY_DELAY),
        styles=STYLES,
        has_legend_beside=True,
    ),
)

CLAIMS = (
    Claim(
        "3, 4: less time than [17]",
        "the fusion takes less time than the baseline at the same k and QID",
        takes_less_time,
    ),
    Claim(
        "3, 4: more attributes, less time",
        "QID7 takes less time than QID5",
        more_attributes_take_less,
    ),
    Claim(
        "4: more attributes, fewer steps",
        "with three parties QID7 needs fewer specializations",
        more_attributes_need_fewer_steps,
    ),
    Claim("4: larger k, less time", "with three parties time falls as k grows", time_falls),
    Claim(
        "4: larger k, fewer steps",
        "ours, as time is load: so do the specializations",
        steps_fall,
    ),
    Claim("5: accuracy falls with k", "accuracy falls as k grows, with bumps", error_rises),
    Claim(
        "fewer rounds",
        "ours: never more rounds than the baseline or the literal rule, in sum",
        fewer_rounds,
    ),
    Claim("the same table", "ours: groups and steps are those of the baseline", same_table),
    Claim(
        "delay",
        "ours: over a network with 20 ms delay and more, batches pay",
        delay_favours_batches,
    ),
)

PAPER = Paper(
    name="fusion",
    title="Fusion of several owners' tables",
    citation=(
        "Yang YP, Wang J. Research on Data Fusion Algorithm for Multi-party Based on k-anonymity."
        " Computer Technology and Development 27(5):102-107, 2017 (in Chinese)."
    ),
    setting=(
        "Adult's complete training records; QID5 = age, education-num, marital-status,"
        " relationship, capital-gain; QID7 = QID5, sex, hours-per-week. Real parties as processes,"
        " mutual TLS on loopback, MPyC; seconds of wall clock from agreed ids to the table: medians"
        f" of {REPEATS}, rule and baseline in turns, after a run each that is not counted. Errors"
        " of a decision tree on Adult's test records, masked by the cut."
    ),
    grid=grid,
    bench=bench,
    readings=READINGS,
    figures=FIGURES,
    claims=CLAIMS,
    why_main=(
        "The paper: 'the QID conditions are combinations of the attributes that each party"
        " provides'; QID5 are five attributes in total. So each party's own attributes are a QID."
        " Chosen after results of both readings were seen."
    ),
    left_open=(
        (
            "The attributes of QID5 and QID7: the Top5 and Top7 of the papers on top-down"
            " specialization."
        ),
        "The values of k: " + ", ".join(map(str, KS)) + ".",
        (
            "Who owns what: two parties: age, education-num, capital-gain, hours-per-week /"
            " marital-status, relationship, sex; three: age, capital-gain, hours-per-week /"
            " education-num, marital-status / relationship, sex."
        ),
        (
            "Whether the secure maximum was run: nothing says so. Here it is, and the join of ids"
            " is left out."
        ),
        "Hierarchies: those of the papers on top-down specialization, as published by others.",
        (
            "C4.5: a decision tree by entropy with fixed pruning (ccp_alpha 0.0005, two records to"
            " a leaf)."
        ),
    ),
    code=(
        "shoal.fusion.methods.party_tds",
        "shoal_papers.baselines.party_tds_variants",
        "shoal.connectors.party",
        "shoal.fusion.protocol",
        "shoal.fusion.secure_rounds",
        "shoal_papers.reproduce.fusion_bench",
    ),
)
