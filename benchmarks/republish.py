"""Re-publication: what the next release of a growing table costs and loses, and what its history's
audit costs.
"""

from __future__ import annotations

import json
import statistics
import tempfile
from pathlib import Path
from typing import Any

import adult
import processes
import yaml
from measure import ONE_THREAD, Asked, Figure, Result, ratios, settings

from shoal.samples import wearables

TITLE = "Re-publication"
CLAIM = (
    "CPU seconds (one thread) and loss of `shoal republish` on invented wearers and on Adult, k ="
    " 10, and of `shoal audit --ledger`; and what 100 kills leave of a ledger."
)
K = 10
LARGE, MILLION, MANY, MOST = 100_000, 1_000_000, 12, 200
SMALL = 1500
KILLS = 100
# CRP and k-member in DESIGN's anchors, per cent on Adult at k = 10
GCP_OF_PAPER, BEST_OTHER = (5.4, 4.87)
CLUSTERS = ("k-member", "rounded-partition", "lattice-peeling")


def measure(asked: Asked) -> Result:
    large, million = asked.rows or LARGE, asked.rows or MILLION
    found = Result(
        "republish",
        TITLE,
        CLAIM,
        settings(asked, k=K, seed=7, threads=1, rows=[SMALL, large, million]),
    )
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        policy = folder / "wearables.yaml"
        policy.write_text(wearables.POLICY)
        _series(found, policy, asked)
        _large(found, folder, policy, large, million, asked)
        _history(found, folder, policy, million, asked)
        _adult(found, folder, asked)
        _kills(found, folder, policy, asked)
    return found


def _series(found: Result, policy: Path, asked: Asked) -> None:
    """CRP's own setting, again and again: the cost of an increment must grow by little more than
    hashing its people.
    """
    releases = MOST if asked.rows is None else 20
    asked.say(f"republish: {releases} increments of {SMALL}, crp; 12 by static-2")
    runs = [_call("series", policy, "crp", SMALL, releases) for _ in range(asked.repeats)]
    early = [statistics.median(run["seconds"][1:11]) for run in runs]
    late = [statistics.median(run["seconds"][-10:]) for run in runs]
    static = [_call("series", policy, "static-2", SMALL, 12) for _ in range(asked.repeats)]
    found.figures += [
        Figure(
            f"crp, {SMALL:,} + {SMALL:,}, all of `republish_file` after imports",
            "CPU s",
            tuple(early),
            0.1,
        ),
        Figure(f"crp, increments {releases - 9} to {releases}", "CPU s", tuple(late)),
        Figure(
            "the last ten increments over the ten after the first release",
            "times",
            ratios(late, early),
            1.2,
        ),
        Figure(
            "crp, increment 2, the method alone", "CPU s", tuple(run["method"][1] for run in runs)
        ),
        Figure(
            "static-2, release 12 over release 2, the method alone",
            "times",
            ratios([run["method"][-1] for run in static], [run["method"][1] for run in static]),
        ),
    ]


def _large(
    found: Result, folder: Path, policy: Path, large: int, million: int, asked: Asked
) -> None:
    asked.say(f"republish: increments of {large:,} and {million:,}")
    processes.shoal(
        "sample", "wearables", "-n", large, "--seed", 1, "-o", folder / "large.csv", "-q"
    )
    processes.shoal(
        "sample", "wearables", "-n", million, "--seed", 2, "-o", folder / "million.csv", "-q"
    )
    exact: list[float] = []
    blocks: list[float] = []
    whole: list[float] = []
    losses: dict[str, float] = {}
    for turn in range(asked.repeats):
        for what, source, block, seconds in (
            ("exact", "large.csv", 0, exact),
            ("blocks", "large.csv", 1 << 13, blocks),
            ("million", "million.csv", 1 << 17, whole),
        ):
            ledger = folder / f"{what}-{turn}"
            used = processes.shoal(
                "republish",
                folder / source,
                "-p",
                policy,
                "--ledger",
                ledger,
                "--set",
                f"block={block}",
                "-q",
                env=ONE_THREAD,
            )
            seconds.append(used.seconds)
            losses[what] = 100 * _certificate(ledger, 1)["utility"]["gcp"]
    found.figures += [
        Figure(
            f"crp, an increment of {large:,}, exact, whole process", "CPU s", tuple(exact), 10.0
        ),
        Figure(f"crp, an increment of {large:,} in blocks of 8,192", "CPU s", tuple(blocks)),
        Figure(f"crp, an increment of {million:,} in blocks of 131,072", "CPU s", tuple(whole)),
        Figure(f"gcp of {large:,}, exact", "%", (losses["exact"],)),
        Figure(f"gcp of {large:,} in blocks of 8,192", "%", (losses["blocks"],)),
        Figure(f"gcp of {million:,} in blocks of 131,072", "%", (losses["million"],)),
    ]


def _history(found: Result, folder: Path, policy: Path, million: int, asked: Asked) -> None:
    asked.say(f"republish: a ledger of {MANY} releases of {million:,}, audited")
    ledger = folder / "long"
    for seed in range(MANY):
        source = folder / "increment.csv"
        asked_for = ("-n", million, "--seed", 100 + seed, "-o", source, "--replace", "-q")
        processes.shoal("sample", "wearables", *asked_for)
        # small blocks: what is audited does not depend on how well the classes were found
        processes.shoal(
            "republish", source, "-p", policy, "--ledger", ledger, "--set", "block=4096", "-q"
        )
    used = processes.shoal("audit", "--ledger", ledger, "-q", env=ONE_THREAD)
    verify = processes.shoal("ledger", "verify", ledger, "-q", env=ONE_THREAD)
    more = _call("series", policy, "crp", SMALL, 5, ledger)["seconds"]
    found.figures += [
        Figure(
            f"shoal audit --ledger, {MANY} releases of {million:,}", "CPU s", (used.seconds,), 60.0
        ),
        Figure("the same, peak memory", "MB", (used.peak / 1e6,)),
        Figure("shoal ledger verify of the same", "CPU s", (verify.seconds,)),
        Figure(
            f"crp, {SMALL:,} more in this ledger, and again, after imports",
            "CPU s",
            tuple(more[1:]),
        ),
    ]


def _adult(found: Result, folder: Path, asked: Asked) -> None:
    asked.say("republish: loss on Adult")
    frame = adult.records(asked.rows, [*adult.EIGHT, "income"])
    frame.write_csv(folder / "adult.csv")
    policy = folder / "adult.json"
    policy.write_text(json.dumps(adult.declared(adult.policy(adult.EIGHT, K), frame)))
    losses = {}
    for cluster in ("paper", *CLUSTERS):
        ledger = folder / f"adult-{cluster}"
        processes.shoal(
            "republish",
            folder / "adult.csv",
            "-p",
            policy,
            "--ledger",
            ledger,
            "--set",
            f"cluster={cluster}",
            "--set",
            "block=0",
            "-q",
        )
        losses[cluster] = 100 * _certificate(ledger, 1)["utility"]["gcp"]
    best = min(CLUSTERS, key=lambda cluster: losses[cluster])
    processes.shoal(
        "publish",
        folder / "adult.csv",
        "-p",
        policy,
        "--method",
        best,
        "-o",
        folder / "once.csv",
        "-q",
    )
    once = json.loads((folder / "once.csv.certificate.json").read_text())["utility"]["gcp"]
    found.figures += [
        Figure("gcp on Adult, 8 quasi-identifiers, crp", "%", (losses["paper"],), GCP_OF_PAPER),
        *(
            Figure(f"gcp on Adult, crp with cluster={cluster}", "%", (losses[cluster],))
            for cluster in CLUSTERS
        ),
        Figure(f"gcp on Adult, the best of these ({best})", "%", (losses[best],), BEST_OTHER),
        Figure(
            f"the same over `shoal publish` by {best}", "times", (losses[best] / (100 * once),), 1.0
        ),
    ]
    found.notes.append(
        "Adult: numbers over their range, categories by falling frequency, as in the benchmark of"
        " quality, where the best method for tables is found. The target of the best clustering is"
        " greedy k-member on this table in one harness of this project, 4.87 %."
    )


def _kills(found: Result, folder: Path, policy: Path, asked: Asked) -> None:
    kills = KILLS if asked.rows is None else 3
    asked.say(f"republish: {kills} kills")
    told = _call("kills", policy, folder / "killed", kills)
    found.figures += [
        Figure(
            f"of {kills} kills at random instants, ledgers that did not verify",
            "ledgers",
            (told["damaged"],),
            0,
        ),
        Figure(
            "people published twice or lost after them",
            "people",
            (told["twice"] + told["lost"],),
            0,
        ),
    ]
    found.notes.append(
        f"{told['during']} of the kills met the process at work; the others came after its end."
    )


def _call(*arguments: Any) -> dict[str, Any]:
    return processes.script("republish_call.py", *arguments, env=ONE_THREAD).said


def _certificate(ledger: Path, release: int) -> dict[str, Any]:
    return yaml.safe_load((ledger / f"{release:04d}" / "certificate.json").read_text())
