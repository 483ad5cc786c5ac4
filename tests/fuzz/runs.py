"""Runs of many cases: what they came to, and the first failing case of each kind, made small."""

from __future__ import annotations

import json
import shutil
import tempfile
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from fuzz import fresh, fusions, ledgers, streams, tables, two_tables, worlds
from fuzz.cells import Table
from fuzz.draw import Case
from fuzz.outcome import Outcome, write_files
from fuzz.shrink import shrunk
from shoal.data import cores

KINDS = {
    "tables": tables,
    "fresh": fresh,
    "pairs": two_tables,
    "worlds": worlds,
    "streams": streams,
    "ledgers": ledgers,
    "fusions": fusions,
}
MODULE_OF = {kind.removesuffix("s"): module for kind, module in KINDS.items()}
MEMORY = Path("/dev/shm")


@dataclass
class Tally:
    """What many cases came to. failing: by kind of problem, where its first case was saved."""

    cases: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    counts: Counter[str] = field(default_factory=Counter)
    problems: Counter[str] = field(default_factory=Counter)
    failing: dict[str, str] = field(default_factory=dict)

    def add(self, other: Tally) -> None:
        self.cases += other.cases
        self.statuses += other.statuses
        self.counts += other.counts
        self.problems += other.problems
        self.failing = {**other.failing, **self.failing}


def run_case(case: Case, seed: str) -> Outcome:
    """One case in a folder of its own; what it raises is a problem, too."""
    where = str(MEMORY) if MEMORY.is_dir() else None
    with cores.using(1), tempfile.TemporaryDirectory(prefix="shoal-fuzz-", dir=where) as folder:
        try:
            return MODULE_OF[case.kind].run(case, Path(folder), Random(seed))
        except Exception as crash:
            last = traceback.extract_tb(crash.__traceback__)[-1]
            kind = f"crash: {type(crash).__name__} in {Path(last.filename).name}"
            return Outcome("crashed", [(kind, traceback.format_exc())])


def draw_case(kind: str, seed: str, method: str | None = None) -> Case:
    return KINDS[kind].draw_case(Random(seed), method)


def run_many(kind: str, seed: str, numbers: range, failures: Path | None) -> Tally:
    """The cases of these numbers. failures: the folder in which failing ones are saved."""
    tally = Tally()
    for number in numbers:
        name = f"{seed} {number}"
        case = draw_case(kind, name)
        outcome = run_case(case, name)
        tally.cases += 1
        tally.statuses[outcome.status] += 1
        tally.counts += outcome.counts
        for problem, text in outcome.problems:
            tally.problems[problem] += 1
            if failures is not None and problem not in tally.failing:
                tally.failing[problem] = save(case, name, problem, text, failures)
    return tally


def save(case: Case, seed: str, problem: str, text: str, failures: Path) -> str:
    """Writes a failing case, made small, as a folder that `python -m fuzz FOLDER` runs again."""
    name = "".join(c if c.isalnum() else "-" for c in problem)[:80]
    folder = failures / name
    if folder.exists():
        return str(folder)
    small = shrunk(case, lambda other: fails(other, seed, problem))
    folder.mkdir(parents=True)
    write_files(small, folder)
    content = {"kind": small.kind, "seed": seed, "parts": small.parts, "files": [*small.files]}
    (folder / "case.json").write_text(json.dumps(content) + "\n")
    (folder / "problem.txt").write_text(f"{problem}\n{text}\n")
    return str(folder)


def fails(case: Case, seed: str, problem: str) -> bool:
    return any(kind == problem for kind, _ in run_case(case, seed).problems)


def load(folder: Path) -> tuple[Case, str]:
    """A case that was saved, and the seed that it is spoilt with."""
    content = json.loads((folder / "case.json").read_text())
    files = {name: _text(folder / name) for name in content["files"]}
    policy = json.loads(_text(folder / "policy.json"))
    table = Table.read(_text(folder / "table.csv"))
    return Case(content["kind"], policy, table, files, tuple(content["parts"])), content["seed"]


def _text(path: Path) -> str:
    with open(path, encoding="utf-8", newline="") as file:
        return file.read()


def forget(failures: Path) -> None:
    """Removes the cases that an earlier run saved."""
    if failures.is_dir():
        shutil.rmtree(failures)
