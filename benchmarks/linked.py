"""Linked tables: what people with all of their rows cost, and what rows taken for people betray.

python linked.py tables FOLDER PEOPLE    invented people with three visits each on average
python linked.py publish FOLDER POLICY OUT
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import adult
import numpy as np
import polars as pl
import processes
from inputs import policy_file
from measure import ONE_THREAD, Asked, Figure, Result, load, settings

import shoal

TITLE = "Linked tables"
CLAIM = (
    "Diabetes-130: 71,518 patients (race, gender, age) with 101,766 encounters (admission type,"
    " source, days), known: all. Loss: widths of all published cells, 1 for each cell of a withheld"
    " row, by all quasi cells. Time: CPU seconds of `bundles` alone, kernels compiled before, and"
    " of the whole `publish`, which reads the release back and measures it. Beside it, the"
    " encounters published as if each were a person, their patient's key kept. Then invented people"
    " with three visits each, k = 10."
)
DATA = adult.DATA / "diabetes130" / "diabetic_data.csv.gz"
K, KS = 10, {5: 0.096, 10: 0.145, 20: 0.21}
PEOPLE = ["race", "gender", "age"]
ROWS = ["admission_type_id", "admission_source_id", "time_in_hospital"]
QUASI = {
    **{name: {"role": "quasi"} for name in (*PEOPLE, *ROWS)},
    "age": {"role": "quasi", "type": "number", "domain": [0, 90]},
    "time_in_hospital": {"role": "quasi", "type": "number", "domain": [1, 14]},
}


def policy(k: int) -> dict[str, Any]:
    return {
        "version": 1,
        "attributes": {"patient": {"role": "subject"}, **{name: QUASI[name] for name in PEOPLE}},
        "tables": {
            "visits": {
                "parent": {"people": "patient"},
                "attributes": {name: QUASI[name] for name in ROWS},
            }
        },
        "promises": [{"model": "k-anonymity", "k": k}],
        "method": {"name": "bundles"},
    }


def measure(asked: Asked) -> Result:
    figures = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as name:
        folder = Path(name)
        visits = diabetes().head(asked.rows or 200_000)
        write(visits, folder / "in")
        publish(folder, 5)  # compiles
        for k, target in KS.items():
            asked.say(f"linked: Diabetes-130, k = {k}")
            runs = [publish(folder, k) for _ in range(asked.repeats)]
            figures += _figures(f"k = {k}", runs, None if asked.rows else target)
        asked.say("linked: encounters as people")
        figures.append(Figure(f"people below k = {K}, rows as people", "%", (below(visits),)))
        people = asked.rows or 1_000_000
        asked.say(f"linked: {people:,} invented people")
        processes.script("linked.py", "tables", folder / "in", people)
        usage = run(folder, policy_file(folder / "invented.json", policy(K)))
        words = f"{people:,} people, {3 * people:,} rows"
        figures += [
            Figure(f"{words}: publish", "CPU s", (usage.seconds,), None if asked.rows else 180.0),
            Figure(f"{words}: bundles alone", "CPU s", (usage.said["method"],)),
            Figure(f"{words}: memory", "GB", (usage.peak / 1e9,), None if asked.rows else 4.0),
        ]
    told = settings(asked, rows=asked.rows or 101_766, k=list(KS), seed=0, threads=1)
    told |= {"data": "Diabetes-130", "data_sha256": sha256(DATA.read_bytes()).hexdigest()[:16]}
    return Result("linked", TITLE, CLAIM, told, figures, notes=[load()])


def _figures(words: str, runs: list[dict[str, float]], target: float | None) -> list[Figure]:
    def of(name: str) -> tuple[float, ...]:
        return tuple(run[name] for run in runs)

    is_asked = target is not None
    return [
        Figure(f"{words}: loss", "of 1", of("loss"), target),
        Figure(f"{words}: rows withheld", "%", of("withheld"), 0.5 if is_asked else None)
        if words == f"k = {K}"
        else Figure(f"{words}: rows withheld", "%", of("withheld")),
        Figure(f"{words}: bundles alone", "CPU s", of("method"), 10.0 if is_asked else None),
        Figure(f"{words}: publish", "CPU s", of("publish")),
    ]


def diabetes() -> pl.DataFrame:
    """The encounters with their patients' columns, in the order of their numbers."""
    table = pl.read_csv(adult.DATA / "diabetes130" / "diabetic_data.csv.gz", infer_schema_length=0)
    return table.sort(pl.col("encounter_id").cast(int)).select(
        pl.col("patient_nbr").alias("patient"),
        "race",
        "gender",
        pl.col("age").str.extract(r"\[(\d+)"),
        *ROWS,
    )


def write(visits: pl.DataFrame, folder: Path) -> None:
    """Two tables; of a patient, what the first encounter says."""
    folder.mkdir(exist_ok=True)
    people = visits.unique("patient", keep="first", maintain_order=True)
    people.select("patient", *PEOPLE).write_csv(folder / "people.csv")
    visits.select("patient", *ROWS).write_csv(folder / "visits.csv")


def tables(folder: str, people: str) -> None:
    rng, n = np.random.default_rng(7), int(people)
    visits = np.repeat(np.arange(n), 1 + rng.poisson(2, n))
    frame = pl.DataFrame(
        {
            "patient": visits,
            "race": rng.choice(6, n)[visits],
            "gender": rng.choice(["f", "m"], n)[visits],
            "age": rng.integers(0, 91, n)[visits],
            "admission_type_id": rng.choice(8, len(visits)),
            "admission_source_id": rng.choice(17, len(visits)),
            "time_in_hospital": np.minimum(rng.geometric(0.25, len(visits)), 14),
        }
    )
    write(frame, Path(folder))


def publish(folder: Path, k: int) -> dict[str, float]:
    return run(folder, policy_file(folder / f"{k}.json", policy(k))).said


def run(folder: Path, policy: Path) -> processes.Usage:
    with tempfile.TemporaryDirectory(dir=folder) as name:
        call = ("linked.py", "publish", folder / "in", policy, Path(name) / "out")
        return processes.script(*call, env=ONE_THREAD)


def publish_once(folder: str, policy: str, out: str) -> None:
    certificate = shoal.publish(folder, shoal.Policy.load(policy), output=out).certificate
    (visits,) = (table for table in certificate["tables"] if table["name"] == "visits")
    found = {
        "loss": certificate["linked"]["bundle_loss"],
        "withheld": 100 * visits["rows"]["withheld"] / visits["rows"]["in"],
        "method": certificate["seconds"]["method"],
        "publish": certificate["seconds"]["total"],
    }
    print(json.dumps(found))


def below(visits: pl.DataFrame) -> float:
    """% of people of whom fewer than K show the same rows, where each row was a person."""
    columns = [*PEOPLE, *ROWS]
    asked: dict[str, Any] = {"quasi": {name: {} for name in columns}, "plain": ["patient"], "k": K}
    rows = shoal.publish(visits, **asked).data
    shown = rows.select("patient", pl.concat_str(pl.col(columns).cast(pl.String), separator="|"))
    people = shown.group_by("patient").agg(pl.last().sort().str.join("\n"))
    alike = people.select(pl.len().over(pl.last())).to_series()
    return 100.0 * float((alike < K).to_numpy().mean())


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"tables": tables, "publish": publish_once}
    commands[sys.argv[1]](*sys.argv[2:])
