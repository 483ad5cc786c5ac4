"""Peers: anonypy and polarfrost on Adult, each in an environment of its own, and one million
records.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import adult
import polars as pl
import processes
from inputs import policy_file
from measure import ONE_THREAD, Asked, Figure, Result, settings

import shoal

TITLE = "Side by side with peers"
CLAIM = (
    "Whole call on a table in memory, Adult with 8 quasi-identifiers, k = 10: CPU seconds and"
    " information loss (gcp, measured by `shoal audit` on what each of them published)."
)
K = 10
NUMBERS = tuple(name for name in adult.EIGHT if name not in adult.ORDINALS)
CATEGORIES = tuple(name for name in adult.EIGHT if name in adult.ORDINALS)
LARGER = 100_000
MILLION = 1_000_000
MOST_WALL = 900.0  # seconds a peer may take
TIMES_FASTER = 50.0
BEYOND_START = 2.0


@dataclass(frozen=True)
class Peer:
    """needs: what its own requirements leave out. larger: whether it is also tried on the larger
    table.
    """

    name: str
    pinned: str
    needs: tuple[str, ...] = ()
    larger: bool = False


PEERS = (Peer("anonypy", "0.2.1", ("pandas",), larger=True), Peer("polarfrost", "0.2.1"))


@dataclass
class Outcome:
    """What a peer did. problem: why there is nothing to compare."""

    seconds: list[float] = field(default_factory=list)
    larger_seconds: list[float] = field(default_factory=list)
    as_spans: float = float("nan")
    as_sets: float = float("nan")
    smallest: int = 0
    groups: int = 0
    problem: str = ""


def measure(asked: Asked) -> Result:
    found = Result(
        "peers",
        TITLE,
        CLAIM,
        settings(
            asked,
            rows=asked.rows or "Adult",
            k=K,
            seed=1,
            peers=[f"{p.name} {p.pinned}" for p in PEERS],
        ),
        notes=[
            (
                "A peer publishes sets of categories. As spans: from the first to the last of the"
                " set in the order by frequency, as ours are counted. As sets: (values in the set -"
                " 1) / (values - 1), the reading that flatters a set. The target is judged by the"
                " second."
            ),
            (
                "polarfrost imports PySpark always and uses it for Spark tables only; empty modules"
                " stand in for it."
            ),
            (
                f"anonypy is slow, so it is tried once on {LARGER:,} records and not beyond; a peer"
                f" that is not done after {MOST_WALL:g} s is stopped."
            ),
            (
                "The ratio takes the first call of our process, which reads compiled kernels from"
                " disk; later calls are given, too. Imports are timed on neither side. Our call"
                " includes the audit."
            ),
            (
                "For scale, not of this run, one million records, whole process, measured by this"
                " project: ARX's local recoding 12 to 52 CPU s, a Mondrian in pure Python 26,"
                " anonypy 296."
            ),
        ],
    )
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        frame = adult.records(asked.rows, [*adult.EIGHT, "income"])
        frame.write_csv(folder / "adult.csv")
        larger = asked.rows or LARGER
        adult.resampled(larger, columns=[*adult.EIGHT, "income"]).write_csv(folder / "larger.csv")
        policy_file(folder / "policy.json", adult.policy(adult.EIGHT, K))
        outcomes = {peer.name: _peer(peer, folder, frame, asked) for peer in PEERS}
        ours = [_ours(folder / "adult.csv", folder) for _ in range(asked.repeats)]
        paper = [_ours(folder / "adult.csv", folder, "paper") for _ in range(asked.repeats)]
        ours_larger = [_ours(folder / "larger.csv", folder) for _ in range(asked.repeats)]
    found.figures = [
        *_shoal_figures(ours, "Adult"),
        *_shoal_figures(paper, "Adult, preset=paper"),
        *_shoal_figures(ours_larger, f"{larger:,} records"),
    ]
    for peer in PEERS:
        outcome = outcomes[peer.name]
        if outcome.problem:
            found.notes.append(
                f"{peer.name} {peer.pinned} could not be measured to the end: {outcome.problem}"
            )
        if outcome.seconds:
            found.figures += _peer_figures(peer, outcome, ours, ours_larger, larger)
    found.figures += _one_million(asked)
    return found


# Ours


def _ours(table: Path, folder: Path, *preset: str) -> dict[str, Any]:
    return processes.script(
        "shoal_call.py", table, folder / "policy.json", *preset, env=ONE_THREAD
    ).said


def _shoal_figures(ours: list[dict[str, Any]], table: str) -> list[Figure]:
    return [
        Figure(
            f"shoal, {table}, first call of a process",
            "CPU s",
            tuple(run["seconds"][0] for run in ours),
        ),
        Figure(f"shoal, {table}, later call", "CPU s", tuple(run["seconds"][1] for run in ours)),
        Figure(f"shoal, {table}, gcp", "%", tuple(100 * run["gcp"] for run in ours)),
    ]


def _one_million(asked: Asked) -> list[Figure]:
    """Beyond start-up: a whole process less one that publishes the first hundred records."""
    rows = asked.rows or MILLION
    settings_of = {"default": (), "preset=paper": ("--set", "preset=paper")}
    seconds: dict[str, list[float]] = {name: [] for name in settings_of}
    starts: list[float] = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        columns = ",".join([*adult.SIX, "income"])
        processes.script("inputs.py", "table", folder / "in.csv", rows, columns)
        processes.script("inputs.py", "table", folder / "few.csv", 100, columns)
        policy = policy_file(folder / "policy.json", adult.policy(adult.SIX, K))
        more = ("-p", policy, "-o", folder / "published.csv", "-q", "--replace")
        processes.shoal("publish", folder / "in.csv", *more, env=ONE_THREAD)
        for turn in range(asked.repeats):
            asked.say(f"peers: {rows:,} records, turn {turn + 1} of {asked.repeats}")
            starts.append(
                processes.shoal("publish", folder / "few.csv", *more, env=ONE_THREAD).seconds
            )
            for label, chosen in settings_of.items():
                run = processes.shoal("publish", folder / "in.csv", *more, *chosen, env=ONE_THREAD)
                seconds[label].append(run.seconds)
    figures = [
        Figure("shoal publish, 100 records, whole process: start-up", "CPU s", tuple(starts))
    ]
    for label, runs in seconds.items():
        beyond = tuple(run - start for run, start in zip(runs, starts, strict=True))
        what = (
            f"shoal publish, {rows:,} records, 6 quasi-identifiers, whole process beyond start-up,"
            f" {label}"
        )
        figures.append(Figure(what, "CPU s", beyond, BEYOND_START))
    return figures


# Theirs


def _peer(peer: Peer, folder: Path, frame: pl.DataFrame, asked: Asked) -> Outcome:
    outcome = Outcome()
    asked.say(f"peers: installing {peer.name} {peer.pinned} in an environment of its own")
    try:
        python = environment(peer, folder)
        for turn in range(asked.repeats):
            asked.say(f"peers: {peer.name}, turn {turn + 1} of {asked.repeats}")
            outcome.seconds.append(call(peer, python, folder / "adult.csv", folder / "groups.json"))
        if peer.larger:
            asked.say(f"peers: {peer.name}, larger table")
            outcome.larger_seconds.append(
                call(peer, python, folder / "larger.csv", folder / "larger.json")
            )
    except RuntimeError as failed:
        outcome.problem = str(failed)
        if not outcome.seconds:
            return outcome
    groups = json.loads((folder / "groups.json").read_text())
    policy = adult.declared(adult.policy(adult.EIGHT, K), frame)
    certificate = shoal.audit(as_release(groups, policy), shoal.Policy.from_dict(policy))
    outcome.as_spans = 100 * certificate["utility"]["gcp"]
    outcome.as_sets = 100 * loss_of_sets(groups, policy)
    outcome.smallest, outcome.groups = (
        certificate["classes"]["min"],
        certificate["classes"]["count"],
    )
    return outcome


def environment(peer: Peer, folder: Path) -> str:
    """A Python that has the peer; raises RuntimeError where that can't be made."""
    place = folder / f"environment-{peer.name}"
    processes.run([sys.executable, "-m", "venv", str(place)])
    python = str(place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    wanted = [f"{peer.name}=={peer.pinned}", *peer.needs]
    clean = {"PYTHONPATH": ""}  # nothing of ours
    processes.run(
        [python, "-m", "pip", "install", "--quiet", *wanted], env=clean, timeout=MOST_WALL
    )
    return python


def call(peer: Peer, python: str, table: Path, out: Path, k: int = K) -> float:
    arguments = (peer.name, table, out, k, "income", ",".join(NUMBERS), ",".join(CATEGORIES))
    command = [python, str(processes.HERE / "peer_call.py"), *map(str, arguments)]
    return processes.run(command, env={**ONE_THREAD, "PYTHONPATH": ""}, timeout=MOST_WALL).said[
        "seconds"
    ]


def as_release(groups: list[dict[str, Any]], policy: dict[str, Any]) -> pl.DataFrame:
    """What a peer published as a table of ours, a row per record: 17-25 and sets of labels become
    spans.
    """
    orders = {name: policy["attributes"][name]["order"] for name in CATEGORIES}
    columns: dict[str, list[str]] = {name: [] for name in adult.EIGHT}
    for group in groups:
        for name in NUMBERS:
            columns[name] += [_number_span(group["cells"][name])] * group["records"]
        for name in CATEGORIES:
            columns[name] += [_label_span(group["cells"][name], orders[name])] * group["records"]
    return pl.DataFrame(columns).with_columns(pl.lit("0").alias("income"))


def loss_of_sets(groups: list[dict[str, Any]], policy: dict[str, Any]) -> float:
    """The same loss with a set of m of an attribute's n values counted as (m - 1) / (n - 1)."""
    lost, records = 0.0, 0
    for group in groups:
        records += group["records"]
        for name in NUMBERS:
            least, most = policy["attributes"][name]["domain"]
            lo, hi = _ends(group["cells"][name])
            lost += group["records"] * (hi - lo) / (most - least)
        for name in CATEGORIES:
            values = len(group["cells"][name].split(","))
            lost += group["records"] * (values - 1) / (len(policy["attributes"][name]["order"]) - 1)
    return lost / records / len(adult.EIGHT)


def _ends(cell: str) -> tuple[float, float]:
    """The ends of 17-25 or of 17; no number of Adult is negative."""
    ends = cell.split("-")
    return float(ends[0]), float(ends[-1])


def _number_span(cell: str) -> str:
    lo, hi = _ends(cell)
    return f"{lo:g}" if lo == hi else f"[{lo:g}, {hi:g}]"


def _label_span(cell: str, order: list[str]) -> str:
    places = sorted(order.index(label) for label in cell.split(","))
    return order[places[0]] if len(places) == 1 else f"[{order[places[0]]}, {order[places[-1]]}]"


def _peer_figures(
    peer: Peer,
    outcome: Outcome,
    ours: list[dict[str, Any]],
    ours_larger: list[dict[str, Any]],
    larger: int,
) -> list[Figure]:
    first, later = (statistics.median(run["seconds"][i] for run in ours) for i in (0, 1))
    gcp = statistics.median(100 * run["gcp"] for run in ours)
    label = f"{peer.name} {peer.pinned}"
    theirs = round(min(outcome.as_sets, outcome.as_spans), 2)
    times = tuple(seconds / first for seconds in outcome.seconds)
    figures = [
        Figure(f"{label}, Adult", "CPU s", tuple(outcome.seconds)),
        Figure(f"{label} over shoal's first call", "times", times, TIMES_FASTER, "at least"),
        Figure(
            f"{label} over a later call of shoal's",
            "times",
            tuple(s / later for s in outcome.seconds),
        ),
        Figure(f"{label}, Adult, gcp as spans", "%", (outcome.as_spans,)),
        Figure(f"{label}, Adult, gcp as sets", "%", (outcome.as_sets,)),
        Figure(f"shoal's gcp against the lower of these, {label}", "%", (gcp,), theirs, "below"),
        Figure(f"{label}, classes told apart", "classes", (outcome.groups,)),
        Figure(f"{label}, smallest class", "records", (outcome.smallest,), K, "at least"),
    ]
    if outcome.larger_seconds:
        first = statistics.median(run["seconds"][0] for run in ours_larger)
        times = tuple(seconds / first for seconds in outcome.larger_seconds)
        table = f"{larger:,} records"
        figures.append(Figure(f"{label}, {table}", "CPU s", tuple(outcome.larger_seconds)))
        figures.append(
            Figure(
                f"{label} over shoal's first call, {table}",
                "times",
                times,
                TIMES_FASTER,
                "at least",
            )
        )
    return figures
