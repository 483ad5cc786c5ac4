"""Full-domain search beside ARX's published times: Adult and Cup with ARX's hierarchies, and 1.2
million records.

python full_domain.py RECORDS FILE            Adult resampled, encoded, into a file
python full_domain.py FILE SUPPRESSION        one search on it, in a process of its own
"""

from __future__ import annotations

import json
import pickle
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import adult
import numpy as np
import polars as pl
import processes
from measure import Asked, Figure, Result, settings

import shoal
from shoal.data.classes import Classes
from shoal.data.partition import Matrix
from shoal.data.table import Table
from shoal.policy.binding.table import bound_table
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.promises import BoundPromises
from shoal.tables.methods.full_domain import FullDomain
from shoal_papers.baselines.datafly import Datafly
from shoal_papers.baselines.incognito import Incognito

TITLE = "Full-domain search"
CLAIM = (
    "5-anonymity over ARX's own hierarchies: Adult, 30,162 complete records x 9, and Cup, 63,441 x"
    " 8, all columns quasi-identifiers. CPU seconds of the search alone, after the table is"
    " encoded, with a proof that no levels score less. ARX's published times are those of its"
    " authors' desktop machine of 2014; ARX was not run here."
)
NINE = (
    "sex",
    "age",
    "race",
    "marital-status",
    "education",
    "native-country",
    "workclass",
    "occupation",
    "salary-class",
)
CUP = ("ZIP", "AGE", "GENDER", "INCOME", "STATE", "RAMNTALL", "NGIFTALL", "MINRAMNT")
PLAIN_SECONDS, SUPPRESSED_SECONDS, PER_RECORD, MEMORY = 0.3, 3.0, 10.0, 3.0
MILLIONS = 1_200_000
ARX = {("Adult", 0.0): 0.027, ("Adult", 1.0): 1.16, ("Cup", 0.0): 0.029, ("Cup", 1.0): 29.9}


@dataclass(frozen=True)
class Given:
    """A table, encoded, and what is promised of it."""

    matrix: Matrix
    promises: BoundPromises


def measure(asked: Asked) -> Result:
    given = of_adult(adult.records(asked.rows))
    figures = [*_searches(asked, "Adult", given, True), *_baselines(asked, given)]
    figures += _searches(asked, "Cup", of_cup(asked.rows), False)
    figures += _millions(asked, figures)
    return Result(
        "full_domain",
        TITLE,
        CLAIM,
        settings(asked, rows=asked.rows or given.matrix.records, k=5, seed=0),
        figures,
        notes=[
            (
                "Suppressed up to 100 %: all nodes keep the promise, so only their score tells them"
                " apart."
            ),
            (
                f"The {MILLIONS:,} records are Adult's, drawn with replacement, ages shaken by up"
                " to 3 years; they run in a process of their own. Memory is the peak above what"
                " was there before the search, and the encoded table itself, by the size of the"
                " encoded table (9 x 4 bytes a record)."
            ),
        ],
    )


def _searches(asked: Asked, name: str, given: Given, targets: bool) -> Iterator[Figure]:
    wanted = {0.0: PLAIN_SECONDS, 1.0: SUPPRESSED_SECONDS} if targets else {}
    for share in (0.0, 1.0):
        asked.say(f"full-domain: {name}, suppression up to {share:.0%}")
        search(given, share)
        runs = [search(given, share) for _ in range(asked.repeats)]
        found, seconds = runs[0][0], tuple(run[1] for run in runs)
        assert found["proven"]
        what = f"{name}, suppression up to {share:.0%}"
        yield Figure(f"{what}: search", "CPU s", seconds, wanted.get(share))
        yield Figure(f"{what}: ARX, as published", "s", (ARX[name, share],))
        yield Figure(f"{what}: nodes looked at of {found['nodes']:,}", "nodes", (found["judged"],))
        yield Figure(
            f"{what}: score (loss, {found['suppressed']:,} suppressed)", "share", (found["score"],)
        )


def _baselines(asked: Asked, given: Given) -> Iterator[Figure]:
    for method in (Datafly(0.0), Incognito()):
        asked.say(f"full-domain: {method.name} on Adult")
        started = time.process_time()
        cut = method.cut(given.matrix, given.promises, np.random.default_rng(0))
        yield Figure(
            f"Adult, no suppression: {method.name}", "CPU s", (time.process_time() - started,)
        )
        yield Figure(
            f"Adult, no suppression: {method.name}'s score",
            "share",
            (cut.search_statistics["score"],),
        )


def _millions(asked: Asked, figures: list[Figure]) -> Iterator[Figure]:
    records, small = asked.rows or MILLIONS, asked.rows or 30_162
    with TemporaryDirectory(prefix="shoal-bench-") as folder:
        encoded = Path(folder) / "encoded"
        processes.script("full_domain.py", records, encoded)
        used = {
            share: processes.script("full_domain.py", encoded, share).said for share in (0.0, 1.0)
        }
    for share, found in used.items():
        alone = next(
            f.median for f in figures if f.what == f"Adult, suppression up to {share:.0%}: search"
        )
        over = found["seconds"] / records / alone * small
        what = f"{records:,} records x 9, suppression up to {share:.0%}"
        yield Figure(f"{what}: search", "CPU s", (found["seconds"],))
        yield Figure(f"{what}: time per record over Adult's", "times", (over,), PER_RECORD)
        yield Figure(f"{what}: memory over the encoded table", "times", (found["memory"],), MEMORY)


def search(given: Given, share: float) -> tuple[dict[str, Any], float]:
    """What the search says of itself, and its CPU seconds."""
    started = time.process_time()
    cut = FullDomain(suppression=share).cut(given.matrix, given.promises, np.random.default_rng(0))
    return dict(cut.search_statistics), time.process_time() - started


def of_adult(frame: pl.DataFrame) -> Given:
    """ARX's nine columns."""
    folder = adult.DATA / "adult" / "hierarchies_arx"
    return _given(
        frame.rename({"income": "salary-class"}).select(NINE),
        {n: folder / f"{n}.csv" for n in NINE},
    )


def of_cup(rows: int | None) -> Given:
    folder = adult.DATA / "cup"
    frame = pl.read_csv(folder / "cup.csv.gz", separator=";", infer_schema=False).select(CUP)
    trees = {name: next((folder / "hierarchies").glob(f"*{name}*")) for name in CUP}
    return _given(frame.head(rows or frame.height), trees)


def _given(frame: pl.DataFrame, hierarchies: dict[str, Path]) -> Given:
    attributes = {
        name: {"role": "quasi", "hierarchy": str(path)} for name, path in hierarchies.items()
    }
    promises = [{"model": "k-anonymity", "k": 5}]
    policy = shoal.Policy.from_dict({"version": 1, "attributes": attributes, "promises": promises})
    matrix, whole_table = bound_table(Table(frame), policy).method_input()
    return Given(matrix, BoundPromises(policy.build_promises(), whole_table))


def one_search(file: str, share: str) -> dict[str, float]:
    """CPU seconds, and memory over the encoded table."""
    matrix: Matrix = pickle.loads(Path(file).read_bytes())
    few = replace(matrix, codes=matrix.codes[:1_000])
    search(Given(few, _five(few)), float(share))  # compiles
    given = Given(matrix, _five(matrix))
    before = _memory("VmRSS")
    _forget_the_peak()
    _, seconds = search(given, float(share))
    encoded = matrix.codes.nbytes
    return {"seconds": seconds, "memory": (_memory("VmHWM") - before + encoded) / encoded}


def _five(matrix: Matrix) -> BoundPromises:
    return BoundPromises([KAnonymity(5)], Classes(np.zeros(matrix.records, dtype=np.int32), 1))


def _memory(key: str) -> float:
    """Bytes of resident memory now (VmRSS) or at most (VmHWM); Linux alone tells."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024.0 * int(next(line for line in lines if line.startswith(key)).split()[1])


def _forget_the_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


if __name__ == "__main__":
    if sys.argv[1].isdecimal():
        Path(sys.argv[2]).write_bytes(
            pickle.dumps(of_adult(adult.resampled(int(sys.argv[1]))).matrix)
        )
    else:
        print(json.dumps(one_search(*sys.argv[1:])))
