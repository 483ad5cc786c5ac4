"""The experiments of the fusion paper: section 5, figures 3 to 5.

Yang, Wang. Computer Technology and Development 27(5):102-107, 2017 (in Chinese).
The figures hold no numbers; neither the values of k, nor the attributes of a QID, nor who owns
which are named.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from shoal_papers.reproduce.fusion_bench import (
    BY_PARTY,
    COUNTED,
    EXACT,
    HIDDEN,
    LITERAL,
    OWN,
    PRINTED,
    REPEATS,
    STEPWISE,
    bench,
)
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
TIMED_KS = (200,)
QUICK_KS = (5, 20)
DELAYS = (0, 5, 20, 50)
SHARES = (0.25, 0.5, 1)
RULES = (LITERAL, HIDDEN, OWN, STEPWISE)
QIDS = ("QID5", "QID7")
Times = tuple[float, float, float]
"""Seconds of the shortest, the middle and the longest of the repeats."""


def curve(rule: str, qids: str, parties: int) -> str:
    """The name of a curve over k."""
    return f"{rule} {qids}, {parties} parties"


def delayed(rule: str, qids: str) -> str:
    """The name of a curve over the delay, at k = 20."""
    return f"{rule} {qids} by delay"


def in_turns(rule: str, qids: str, parties: int) -> str:
    """The name of a curve over k of the printed rule and the baseline, which took turns."""
    return f"{curve(rule, qids, parties)}, in turns"


def setting_of(rule: str, parties: int, qids: str, run: str) -> Setting:
    """What the rows of a curve without delay have in common."""
    asked = {"method": rule, "parties": parties, "qids": qids}
    return asked | {"delay": 0, "share": 1, "run": run}


def curves(suffix: str) -> dict[str, Setting]:
    """The curves over k, with a suffix to the name of each QID; the printed rule's are counts."""
    found: dict[str, Setting] = {}
    for parties, qids, rule in itertools.product((2, 3), QIDS, RULES):
        if rule != HIDDEN or parties == 3:
            run = COUNTED if rule == LITERAL else EXACT
            found[curve(rule, qids, parties)] = setting_of(rule, parties, qids + suffix, run)
    return found


CURVES, WHOLE = curves(BY_PARTY), curves("")
TIMED = {
    in_turns(rule, qids, parties): setting_of(rule, parties, qids + BY_PARTY, PRINTED)
    for parties, qids, rule in itertools.product((2, 3), QIDS, (LITERAL, STEPWISE))
}
BY_DELAY: dict[str, Setting] = {
    delayed(rule, qids): {
        **{"method": rule, "parties": 3, "qids": qids, "k": 20, "share": 1, "run": EXACT}
    }
    for qids in ("QID5", "six pairs")
    for rule in (OWN, STEPWISE)
}
BY_SHARE: dict[str, Setting] = {
    f"{rule} by records": {
        **{"method": rule, "parties": 3, "qids": f"QID5{BY_PARTY}", "delay": 0, "k": 200},
        "run": PRINTED,
    }
    for rule in (LITERAL, STEPWISE)
}
ORIGINAL = {"BE": setting_of("original", 1, "QID5", EXACT)}
SHARED = {**BY_DELAY, **BY_SHARE, **ORIGINAL}


def grid(quick: bool) -> list[Setting]:
    """Every curve over k without delay, some over the delay, and some over the records."""
    if quick:
        three = [s for s in (*CURVES.values(), *TIMED.values()) if s["parties"] == 3]
        asked = [setting for setting in three if setting["method"] != HIDDEN]
        return crossed([*asked, *ORIGINAL.values()], k=QUICK_KS)
    settings = crossed([*CURVES.values(), *WHOLE.values(), *ORIGINAL.values()], k=KS)
    settings += crossed(TIMED.values(), k=TIMED_KS)
    settings += crossed((TIMED[in_turns(rule, "QID5", 3)] for rule in (LITERAL, STEPWISE)), k=[20])
    settings += crossed(BY_DELAY.values(), delay=DELAYS)
    settings += crossed(BY_SHARE.values(), share=SHARES)
    return crossed(settings)


def takes_less_time(view: View) -> ClaimFinding:
    """The rule as printed takes less time than the baseline at every k, QID and number of
    parties.
    """
    pairs = [
        (own[k], base[k])
        for parties, qids in itertools.product((2, 3), QIDS)
        for own, base in [[_times(view, rule, qids, parties) for rule in (LITERAL, STEPWISE)]]
        for k in own.keys() & base.keys()
    ]
    ratios = [base[1] / own[1] if own[1] else 1.0 for own, base in pairs] or [1.0]
    return _are_shorter(
        pairs, f"; the baseline takes {min(ratios):.2f} to {max(ratios):.2f} times as much"
    )


def time_falls(view: View) -> ClaimFinding:
    """With three parties each curve of the printed rule over k falls at every step."""
    steps = (itertools.pairwise(_times(view, LITERAL, qids, 3).values()) for qids in QIDS)
    return _are_shorter([(after, before) for curve in steps for before, after in curve])


def more_attributes_take_less(view: View) -> ClaimFinding:
    """The rule as printed takes less time for QID7 than for QID5, at every k."""
    pairs: list[tuple[Times, Times]] = []
    said = ""
    for parties in (2, 3):
        five, seven = (_times(view, LITERAL, qids, parties) for qids in QIDS)
        found = [(seven[k], five[k]) for k in five if k in seven]
        shorter = sum(less[1] < more[1] for less, more in found)
        said += f"; {parties} parties: {shorter} of {len(found)} medians"
        pairs += found
    return _are_shorter(pairs, said)


def _are_shorter(pairs: Sequence[tuple[Times, Times]], more: str = "") -> ClaimFinding:
    """Whether the first of each two times is the shorter one: a time that is longer beyond the
    spread refutes that, and one whose median is not lower leaves it open, so that it holds in part.
    """
    kept = sum(not _is_above(one, other) for one, other in pairs)
    beyond = sum(_is_above(other, one) for one, other in pairs)
    lower = sum(one[1] < other[1] for one, other in pairs)
    verdict = Verdict.of(kept, len(pairs))
    if verdict is Verdict.HOLDS and lower < len(pairs):
        verdict = Verdict.IN_PART
    return ClaimFinding(
        verdict,
        f"median shorter at {lower} of {len(pairs)}; beyond the spread shorter at {beyond}, longer"
        f" at {len(pairs) - kept}{more}",
    )


def fewer_instructions(view: View) -> ClaimFinding:
    """The rule as printed needs fewer rounds, so fewer instructions and secure maxima, than the
    baseline at every setting.
    """
    pairs = [
        (own[k], base[k])
        for parties in (2, 3)
        for qids in QIDS
        for own, base in [
            [
                _points(view, curve(rule, qids, parties), "rounds", "k")
                for rule in (LITERAL, STEPWISE)
            ]
        ]
        for k in own.keys() & base.keys()
    ]
    fewer = sum(own < base for own, base in pairs)
    totals = [sum(column) for column in zip(*pairs, strict=True)]
    return ClaimFinding(
        Verdict.of(fewer, len(pairs)),
        f"fewer at {fewer} of {len(pairs)} settings, never more at"
        f" {sum(own <= base for own, base in pairs)}; {' against '.join(map(str, totals))} in all",
    )


def instructions_go_to_every_other(view: View) -> ClaimFinding:
    """A round's instruction is sent once to every other owner."""
    rows = [
        row
        for parties in (2, 3)
        for qids in QIDS
        for rule in (LITERAL, STEPWISE)
        for row in view.curves.get(curve(rule, qids, parties), [])
        if "instructions_sent" in row
    ]
    kept = sum(row["instructions_sent"] == row["rounds"] * (row["parties"] - 1) for row in rows)
    return ClaimFinding(
        Verdict.of(kept, len(rows)),
        f"rounds x (parties - 1) messages in {kept} of {len(rows)} runs",
    )


def rows_read_follow_the_table(view: View) -> ClaimFinding:
    """Rows read in a step, as a share of the table, hardly rise with the size of the table."""
    return _by_records(view, "touched", "steps", "rows read in a step", 1.25, per_record=True)


def comparing_costs_at_most_the_table(view: View) -> ClaimFinding:
    """Bytes of a secure maximum grow no faster than the table; ours do not grow at all."""
    return _by_records(view, "shares_bytes", "rounds", "bytes of shares in a round", 1.25)


def _by_records(
    view: View, column: str, by: str, what: str, most: float, per_record: bool = False
) -> ClaimFinding:
    """Whether a cost by step or round, or by record as well, rises by a factor of `most` at most.

    The last round, which nobody wins, counts too.
    """
    kept, said = 0, []
    for name in BY_SHARE:
        costs, counts = (_points(view, name, c, "share") for c in (column, by))
        shown = [
            costs[at] / (counts[at] + (by == "rounds")) / (at if per_record else 1) for at in costs
        ]
        kept += all(after <= most * before for before, after in itertools.pairwise(shown))
        said.append(f"{name.split()[0]} {', '.join(f'{value:,.0f}' for value in shown)}")
    unit = ", divided by the share" if per_record else ""
    return ClaimFinding(
        Verdict.of(kept, len(BY_SHARE)), f"{what}{unit}, at shares {SHARES}: {'; '.join(said)}"
    )


def more_attributes_need_fewer_steps(view: View) -> ClaimFinding:
    """With three parties QID7 needs fewer specializations than QID5, at every k."""
    five, seven = (_points(view, curve(LITERAL, qids, 3), "steps", "k") for qids in QIDS)
    kept = sum(seven[k] < five[k] for k in five)
    return ClaimFinding(
        Verdict.of(kept, len(five)),
        f"at {kept} of {len(five)}; QID5 {_listed(five)}; QID7 {_listed(seven)}",
    )


def steps_fall(view: View) -> ClaimFinding:
    """With three parties the specializations of no QID rise at any step of k."""
    kept, asked, numbers = 0, 0, []
    for qids in QIDS:
        points = _points(view, curve(LITERAL, qids, 3), "steps", "k")
        steps = list(itertools.pairwise(points.values()))
        kept += sum(after <= before for before, after in steps)
        asked += len(steps)
        numbers.append(f"{qids} {_listed(points)}")
    two = "; ".join(
        f"{qids} {_listed(_points(view, curve(LITERAL, qids, 2), 'steps', 'k'))}" for qids in QIDS
    )
    return ClaimFinding(
        Verdict.of(kept, asked),
        f"{kept} of {asked} steps don't rise; {'; '.join(numbers)}; with two parties, of which it"
        f" is not said: {two}",
    )


def _listed(points: dict[int, float]) -> str:
    return ", ".join(f"{value:g}" for value in points.values())


def _times(view: View, rule: str, qids: str, parties: int) -> dict[int, Times]:
    """Least, median and most seconds by k; of exact batches where a reading has no other."""
    name = in_turns(rule, qids, parties)
    if name not in view.curves:
        name = curve(OWN if rule == LITERAL else rule, qids, parties)
    least, middle, most = (
        _points(view, name, column, "k") for column in ("seconds_least", "seconds", "seconds_most")
    )
    return {k: (least[k], middle[k], most[k]) for k in middle}


def _is_above(one: Times, other: Times) -> bool:
    """Whether a time is longer beyond the spread: its shortest run than the other's longest."""
    return one[0] > other[2]


def accuracy_falls(view: View) -> ClaimFinding:
    """No higher at the largest k than at the smallest, and there no higher than on the original."""
    numbers, kept = [], 0
    original = max(_points(view, "BE", "accuracy", "k").values())
    for qids in QIDS:
        points = list(_points(view, curve(LITERAL, qids, 3), "accuracy", "k").values())
        bumps = sum(after > before for before, after in itertools.pairwise(points))
        kept += points[-1] <= points[0] <= original
        numbers.append(f"{qids}: {points[0]:.2f} to {points[-1]:.2f} %, {bumps} steps up")
    return ClaimFinding(
        Verdict.of(kept, len(QIDS)), f"original {original:.2f} %; " + "; ".join(numbers)
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
    """Rounds with three parties together, by rule, where all rules were run."""
    rounds: dict[str, dict[tuple[str, int], float]] = {}
    for rule, qids in itertools.product(RULES, QIDS):
        for k, value in _points(view, curve(rule, qids, 3), "rounds", "k").items():
            rounds.setdefault(rule, {})[qids, k] = value
    places = set.intersection(*(set(found) for found in rounds.values()))
    totals = {rule: sum(found[at] for at in places) for rule, found in rounds.items()}
    return ClaimFinding(
        Verdict.of(int(totals[OWN] <= min(totals.values())), 1),
        ", ".join(f"{rule} {total}" for rule, total in totals.items()),
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
        " computes; seconds from agreed ids to the table, of the printed rule and the baseline in"
        " turns",
        {**CURVES, **TIMED},
        SHARED,
        is_quick=True,
        may_lack=True,
    ),
    Reading(
        "one QID",
        "as main, but all attributes of QID5 and QID7 are one QID each; times are those of exact"
        " batches with eight steps ahead, not of the printed rule",
        WHOLE,
        SHARED,
        may_lack=True,
    ),
)


def _printed(parties: int) -> tuple[str, ...]:
    return tuple(in_turns(rule, qids, parties) for rule in (LITERAL, STEPWISE) for qids in QIDS)


def _exact(parties: int) -> tuple[str, ...]:
    return tuple(curve(rule, qids, parties) for rule in (OWN, STEPWISE) for qids in QIDS)


def _of_time(name: str, title: str, drawn: tuple[str, ...]) -> Figure:
    return Figure(
        name,
        title,
        "k",
        "seconds",
        "k",
        "seconds after the join (median, least to most)",
        low="seconds_least",
        high="seconds_most",
        curves=drawn,
        styles=STYLES,
        has_legend_beside=True,
    )


PAIRS = (
    *itertools.product(QIDS, (LITERAL, STEPWISE, OWN)),
    *itertools.product(("six pairs",), (OWN, STEPWISE)),
)
"""A method and a QID have the same colour in all figures."""

STYLES = {"BE": len(PAIRS)} | {
    name: style
    for style, (qids, rule) in enumerate(PAIRS)
    for name in (
        *(name(rule, qids, parties) for parties in (2, 3) for name in (curve, in_turns)),
        delayed(rule, qids),
    )
}
FIGURES = (
    _of_time("figure_3", "3 Time, two parties: the printed rule and [17]", _printed(2)),
    _of_time("figure_4", "4 Time, three parties: the printed rule and [17]", _printed(3)),
    _of_time("exact_two", "Time, two parties: exact batches and [17]", _exact(2)),
    _of_time("exact_three", "Time, three parties: exact batches and [17]", _exact(3)),
    Figure(
        "figure_5",
        "5 Classification, three parties",
        "k",
        "accuracy",
        "k",
        "% of test records right",
        curves=("BE", *(curve(LITERAL, qids, 3) for qids in QIDS)),
        styles=STYLES,
        has_legend_beside=True,
    ),
    Figure(
        "rounds",
        "Rounds, three parties, QID5",
        "k",
        "rounds",
        "k",
        "secure rounds",
        curves=tuple(curve(rule, "QID5", 3) for rule in (LITERAL, OWN, STEPWISE)),
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
        "4: larger k, fewer steps", "ours, as time is load: so do the specializations", steps_fall
    ),
    Claim("5: accuracy falls with k", "accuracy falls as k grows, with bumps", accuracy_falls),
    Claim(
        "4.3: fewer instructions than [17]",
        "the baseline chooses and instructs at every step, the fusion at fewer; exact counts",
        fewer_instructions,
    ),
    Claim(
        "4.3: updating the others, O(m|T|)",
        "with m other parties, m tables are updated by an instruction each",
        instructions_go_to_every_other,
    ),
    Claim(
        "4.3: scoring and updating, O(|T|)",
        "candidates are scored, and the own table updated, by reading it in proportion",
        rows_read_follow_the_table,
    ),
    Claim(
        "4.3: comparing, O(|T|)",
        "finding the maximum takes time up to the order of the table, n times where n branches"
        " follow; judged by round: not more",
        comparing_costs_at_most_the_table,
    ),
    Claim(
        "fewer rounds",
        "ours: no more rounds than the baseline or the printed rule, in sum",
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
        f" of {REPEATS} (exact batches: 5), rule and baseline in turns, after a run each that does"
        " not count. Accuracy of a decision tree on Adult's test records, masked by the cut."
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
