"""`shoal reproduce fusion`: what is run, and how verdicts come about."""

from dataclasses import replace

import pytest

from shoal_papers.reproduce.fusion import (
    CLAIMS,
    LITERAL,
    OWN,
    PAPER,
    QIDS,
    STEPWISE,
    accuracy_falls,
    comparing_costs_at_most_the_table,
    curve,
    fewer_instructions,
    fewer_rounds,
    grid,
    in_turns,
    instructions_go_to_every_other,
    more_attributes_need_fewer_steps,
    more_attributes_take_less,
    rows_read_follow_the_table,
    same_table,
    steps_fall,
    takes_less_time,
    time_falls,
)
from shoal_papers.reproduce.fusion_bench import PRINTED, TIMES, FusionBench, bench
from shoal_papers.reproduce.paper import Verdict, View
from shoal_papers.reproduce.verdict_report import judge


def view(own: list[float], base: list[float], column: str = "seconds") -> View:
    def rows(values):
        return [
            {"k": k, column: value, f"{column}_least": value, f"{column}_most": value}
            for k, value in zip((20, 50, 100), values, strict=True)
        ]

    curves = {
        name(rule, qids, 3): rows(base if rule == STEPWISE else own)
        for qids in QIDS
        for rule in (OWN, LITERAL, STEPWISE)
        for name in (curve, in_turns)
    }
    return View(curves | {"BE": [{"k": 20, "accuracy": 86.0}]})


def test_judges_tell_kept_claims_from_broken_ones():
    assert takes_less_time(view([1, 1, 1], [2, 1.1, 3])).verdict == Verdict.HOLDS
    assert takes_less_time(view([1, 1, 1], [2, 1, 0.5])).verdict == Verdict.IN_PART
    assert takes_less_time(view([3, 3, 3], [2, 1, 0.5])).verdict == Verdict.FAILS
    assert time_falls(view([3, 2, 1], [0, 0, 0])).verdict == Verdict.HOLDS
    assert time_falls(view([1, 2, 3], [0, 0, 0])).verdict == Verdict.FAILS
    assert fewer_rounds(view([2, 2, 2], [5, 3, 2], "rounds")).verdict == Verdict.HOLDS
    assert fewer_rounds(view([6, 6, 6], [5, 3, 2], "rounds")).verdict == Verdict.FAILS
    assert accuracy_falls(view([85, 86, 84], [0, 0, 0], "accuracy")).verdict == Verdict.HOLDS
    assert accuracy_falls(view([83, 86, 84], [0, 0, 0], "accuracy")).verdict == Verdict.FAILS
    assert fewer_instructions(view([2, 2, 2], [5, 3, 2], "rounds")).verdict == Verdict.IN_PART


def timed(rule: str, least: float, middle: float, most: float) -> dict[str, list[dict]]:
    row = {"k": 20, "seconds_least": least, "seconds": middle, "seconds_most": most}
    return {in_turns(rule, qids, 3): [row] for qids in QIDS}


def test_a_median_within_the_spread_alone_refutes_and_proves_nothing():
    slower = timed(LITERAL, 1.0, 3.0, 4.0)
    assert takes_less_time(View(slower | timed(STEPWISE, 1, 1.5, 2))).verdict == Verdict.IN_PART
    assert takes_less_time(View(slower | timed(STEPWISE, 0.1, 0.2, 0.9))).verdict == Verdict.FAILS


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [
        ((1.0, 1.5, 2.0), Verdict.HOLDS),
        ((1.0, 3.5, 4.0), Verdict.IN_PART),
        ((4.5, 5.0, 6.0), Verdict.FAILS),
    ],
)
def test_more_attributes_take_less_time_only_where_every_median_is_lower(seconds, verdict):
    five = timed(LITERAL, 1.0, 3.0, 4.0)
    seven = {in_turns(LITERAL, "QID7", 3): timed(LITERAL, *seconds)[in_turns(LITERAL, "QID7", 3)]}
    assert more_attributes_take_less(View(five | seven)).verdict == verdict


def test_specializations_are_counted_with_three_parties():
    five, seven = curve(LITERAL, "QID5", 3), curve(LITERAL, "QID7", 3)

    def steps(*values: int) -> list[dict]:
        return [{"k": k, "steps": value} for k, value in zip((20, 50, 100), values, strict=True)]

    falling = View({five: steps(9, 5, 5), seven: steps(8, 4, 4)})
    assert steps_fall(falling).verdict == Verdict.HOLDS
    assert more_attributes_need_fewer_steps(falling).verdict == Verdict.HOLDS
    rising = View({five: steps(5, 6, 4), seven: steps(5, 7, 3)})
    assert steps_fall(rising).verdict == Verdict.IN_PART
    assert more_attributes_need_fewer_steps(rising).verdict == Verdict.IN_PART


def test_each_party_has_a_qid_of_its_own_attributes():
    joint = bench(None, True).joint
    assert joint.asked({"qids": "QID5", "parties": 2}) == [
        ["salary", "age", "sex", "job", "education"]
    ]
    assert joint.asked({"qids": "QID5 by party", "parties": 3}) == [
        ["salary", "education"],
        ["age", "sex"],
        ["job"],
    ]


def test_rule_and_baseline_take_turns_after_a_run_that_is_not_counted(monkeypatch):
    done = []

    def run(self, setting):
        done.append(setting["method"])
        return {name: float(len(done)) for name in TIMES} | {"steps": 3}

    monkeypatch.setattr(FusionBench, "_run", run)
    measured = replace(bench(None, True), repeats=3)
    setting = {"method": LITERAL, "parties": 2, "qids": "QID5", "delay": 0, "k": 20}
    setting |= {"run": PRINTED}
    own = measured.measure(setting)
    base = measured.measure(setting | {"method": STEPWISE})
    assert done == [LITERAL, STEPWISE] * 4
    assert (own["seconds_least"], own["seconds"], own["seconds_most"]) == (3, 5, 7)
    assert (base["seconds"], base["repeats"], base["steps"]) == (6, 3, 3)


def test_the_same_table_is_judged_by_groups_and_steps():
    both = view([1, 2, 3], [1, 2, 3], "groups").curves
    steps = {
        name: [row | {"steps": 2, "groups": row.get("groups", 0)} for row in rows]
        for name, rows in both.items()
    }
    assert same_table(View(steps)).verdict == Verdict.HOLDS


def test_costs_are_judged_by_counts_on_parts_of_the_table():
    def by_records(touched, shares_bytes):
        rows = [
            {"share": share, "touched": rows, "shares_bytes": size, "steps": 2, "rounds": 1}
            for share, rows, size in zip((0.25, 0.5, 1), touched, shares_bytes, strict=True)
        ]
        return View({f"{rule} by records": rows for rule in (LITERAL, STEPWISE)})

    kept, broken = by_records((100, 200, 400), (80, 80, 80)), by_records((9, 99, 999), (1, 4, 16))
    for judge_cost in (rows_read_follow_the_table, comparing_costs_at_most_the_table):
        assert judge_cost(kept).verdict is Verdict.HOLDS
        assert judge_cost(broken).verdict is Verdict.FAILS
    sent = {"parties": 3, "rounds": 4, "instructions_sent": 8}
    runs = View({curve(LITERAL, "QID5", 3): [sent], curve(STEPWISE, "QID5", 3): [sent]})
    assert instructions_go_to_every_other(runs).verdict is Verdict.HOLDS


def test_a_reading_is_not_judged_by_the_curves_that_it_shares_with_another():
    columns = ("seconds", "seconds_least", "seconds_most", "steps", "groups", "rounds", "accuracy")
    columns += ("touched", "shares_bytes")
    rows = [setting | dict.fromkeys(columns, 1) for setting in grid(True)]
    assert [judged.reading.name for judged in judge(PAPER, rows)] == ["main"]


def test_no_setting_is_run_twice_and_every_claim_has_a_name_of_its_own():
    settings = [tuple(sorted(setting.items())) for setting in grid(False)]
    assert len(set(settings)) == len(settings)
    assert len({claim.about for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("parties", [2, 3])
def test_one_run_measures_rounds_bytes_and_the_classifier(parties):
    measured = bench(None, True)
    setting = {"method": OWN, "parties": parties, "qids": "QID5", "delay": 0, "k": 20}
    row = measured.measure(setting)
    assert row["groups"] > 1
    assert 0 < row["rounds"] <= row["steps"]
    assert row["batch_bytes"] + row["shares_bytes"] > 0
    assert row["instructions_sent"] == row["rounds"] * (parties - 1)
    assert row["accuracy"] > 50
    assert measured.measure(setting | {"method": "original"})["accuracy"] > 50
