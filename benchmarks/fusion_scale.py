"""Fusion at size: every party a process of its own, from its file to the release, ids joined, all
audited.

python fusion_scale.py FOLDER ROWS K JOINING     writes the owners' tables, keys and the agreement
"""

from __future__ import annotations

import json
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

TITLE = "Fusion at size"
CLAIM = (
    "Three owners of Adult's complete training records, resampled, and 1 % more people each whom"
    " the others don't know (QID7): `shoal party` for each, over mutual TLS on loopback with MPyC,"
    " from CSV files to the audited release. 10 million with ids keyed for a trusted helper, 1"
    " million with masked ids."
)
SIZES = ((10_000_000, 1000, "keyed"), (1_000_000, 1000, "masked"))
STEPS = ("scoring", "instructions")


def measure(asked: Any) -> Any:
    from measure import Figure, Result, settings

    figures: list[Any] = []
    for rows, k, joining in SIZES:
        rows = asked.rows or rows
        asked.say(f"fusion_scale: {rows:,} records, {joining} ids")
        figures += _figures(rows, joining, _run(rows, k, joining), Figure)
    return Result(
        "fusion_scale",
        TITLE,
        CLAIM,
        settings(asked, rows=[rows for rows, _, _ in SIZES], k=1000, seed=1),
        figures,
        notes=[
            (
                "One run; the runs of a figure are the parties. Seconds of the clock, but 'CPU'"
                " where it says so: with four parties on two cores they wait for each other."
            ),
            (
                "Per touched record: CPU of scoring and instructions, as the party's certificate"
                " tells it, over the records under every node that was tried, once for each QID"
                " with its attribute."
            ),
            (
                "Masking is linear in the ids: 10 million of them would take each of three owners"
                " ten times the CPU shown for 1 million, on all cores."
            ),
        ],
    )


def _run(rows: int, k: int, joining: str) -> dict[str, Any]:
    """CPU, peak memory and the account of every party."""
    import processes

    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as place:
        folder = Path(place)
        processes.script("fusion_scale.py", folder, rows, k, joining)
        names = json.loads((folder / "names.json").read_text())

        def take_part(name: str) -> Any:
            output = ["-o", folder / f"{name}.csv", "--json"] if name != "helper" else []
            return processes.shoal(
                "party",
                name,
                folder / "parties.json",
                "--keys",
                folder,
                "--folder",
                folder / name,
                "-q",
                *output,
            )

        with ThreadPoolExecutor(len(names)) as parties:
            used = dict(zip(names, parties.map(take_part, names), strict=True))
    return used


def _figures(rows: int, joining: str, used: dict[str, Any], figure: Any) -> list[Any]:
    owners = [name for name in used if name != "helper"]
    told = {name: json.loads(used[name].output)["fusion"] for name in owners}
    assert all(account["people"] == rows for account in told.values())
    size = f"{rows:,} records"
    steps = tuple(
        sum(t["processor"][phase] for phase in STEPS) / t["touched"] * 1e9 for t in told.values()
    )
    found = [
        figure(f"{size}, {joining} ids: a party's steps", "CPU ns a touched record", steps, 60),
        figure(
            f"{size}: seconds from agreed ids to table",
            "s",
            tuple(_after_join(t) for t in told.values()),
        ),
        figure(
            f"{size}, {joining} ids: peak memory of an owner, from file to release",
            "GB",
            tuple(used[name].peak / 1e9 for name in owners),
            2,
        ),
        figure(
            f"{size}, {joining} ids: join", "s", tuple(t["seconds"]["join"] for t in told.values())
        ),
        figure(
            f"{size}, {joining} ids: an owner in all",
            "CPU us a record",
            tuple(used[n].seconds / rows * 1e6 for n in owners),
        ),
    ]
    if "helper" in used:
        found.append(
            figure(f"{size}: peak memory of the helper", "GB", (used["helper"].peak / 1e9,), 2)
        )
    return found


def _after_join(told: dict[str, Any]) -> float:
    return float(sum(told["seconds"].values()) - told["seconds"]["join"])


def prepare(folder: Path, rows: int, k: int, joining: str) -> None:
    """Tables in orders of their own, with 1 % strangers each; keys; and the agreement."""
    import numpy as np
    import polars as pl

    from shoal.fusion.fuse import free_ports
    from shoal.fusion.request import Keys
    from shoal_papers.reproduce.fusion_bench import NAMES, TOP7, bench

    joint = bench(None, False).joint
    rng = np.random.default_rng(1)
    picked = rng.integers(0, joint.train.height, rows)
    parties: list[dict[str, Any]] = []
    for number, (name, owned) in enumerate(zip(NAMES, joint.owners[3], strict=True)):
        more = rng.integers(0, joint.train.height, rows // 100)
        ids = np.concatenate([np.arange(rows), rows + number * len(more) + np.arange(len(more))])
        columns = [*owned, *([joint.label] if number == 0 else [])]
        order = rng.permutation(len(ids))
        own = joint.train.select(columns)[np.concatenate([picked, more])[order]]
        own.insert_column(0, pl.Series("person", 10_000_000 + ids[order])).write_csv(
            folder / f"{name}.table.csv"
        )
        parties.append(
            {
                "name": name,
                "table": f"{name}.table.csv",
                "attributes": {a: joint.attributes[a] for a in owned},
            }
        )
    helper = [{"name": "helper"}] if joining == "keyed" else []
    for party, port in zip([*parties, *helper], free_ports(len(parties + helper)), strict=True):
        Keys.of(party["name"], folder).make(party["name"])
        party |= {"address": f"127.0.0.1:{port}", "certificate": f"{party['name']}.crt"}
    content = {
        "version": 1,
        "join": "person",
        "label": {"attribute": joint.label, "shared": True},
        "parties": parties,
        "promises": [{"model": "k-anonymity", "attributes": list(TOP7), "k": k}],
        "joining": {"name": joining, "helper_is_trusted": joining == "keyed"},
        **({"helper": helper[0]} if helper else {}),
    }
    (folder / "parties.json").write_text(json.dumps(content))
    (folder / "names.json").write_text(json.dumps([party["name"] for party in [*parties, *helper]]))


if __name__ == "__main__":
    prepare(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), sys.argv[4])
