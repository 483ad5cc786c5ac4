"""`python -m fuzz`: random tables, streams and ledgers; `python -m fuzz FOLDER`: one again.

Ends with status 1 where publish, an audit, `verify` and the checker disagree, or something breaks.
"""

import argparse
import gc
import multiprocessing
import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

from fuzz.runs import KINDS, Tally, forget, load, run_case, run_many

# tables to one of each
SHARE = {
    "tables": 1,
    "fresh": 4,
    "pairs": 10,
    "worlds": 4,
    "streams": 10,
    "ledgers": 40,
    "fusions": 400,
}
gc.set_threshold(100_000, 50, 50)  # small tables leave little behind; also in spawned workers
BATCH = {
    "tables": 50,
    "fresh": 20,
    "pairs": 50,
    "worlds": 20,
    "streams": 10,
    "ledgers": 5,
    "fusions": 1,
}


def main() -> int:
    asked = _arguments()
    if asked.case is not None:
        return _one(asked.case)
    seed = asked.seed or secrets.token_hex(4)
    forget(asked.failures)
    print(f"seed {seed}, {asked.cores} processes; failing cases go to {asked.failures}", flush=True)
    worst = 0
    for kind in KINDS:
        count = getattr(asked, kind) or asked.share * asked.tables // SHARE[kind]
        if count:
            worst = max(worst, _many(kind, seed, count, asked.cores, asked.failures))
    return worst


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument("case", nargs="?", type=Path, help="a saved case, to be run again")
    for kind in KINDS:
        parser.add_argument(f"--{kind}", type=int, default=0, metavar="N")
    parser.add_argument(
        "--share", action="store_true", help="also streams, ledgers, fusions, by their share"
    )
    parser.add_argument("--seed", default="")
    parser.add_argument("--cores", type=int, default=1, help="processes at a time")
    parser.add_argument("--failures", type=Path, default=Path("fuzz-failures"))
    return parser.parse_args()


def _one(folder: Path) -> int:
    outcome = run_case(*load(folder))
    print(f"{outcome.status}; {len(outcome.problems)} problems")
    for kind, text in outcome.problems:
        print(f"{kind}: {text}")
    return 1 if outcome.problems else 0


def _many(kind: str, seed: str, count: int, cores: int, failures: Path) -> int:
    started, tally, shown = time.monotonic(), Tally(), 0.0
    for part in _parts(kind, seed, count, cores, failures):
        tally.add(part)
        now = time.monotonic() - started
        if now - shown > 10 or tally.cases == count:
            shown = now
            rate = tally.cases / max(now, 1e-9)
            found = sum(tally.problems.values())
            print(f"{kind}: {tally.cases} of {count}, {rate:.1f}/s, {found} problems", flush=True)
    print("  " + ", ".join(f"{n} {status}" for status, n in tally.statuses.most_common()))
    for name, times in sorted(tally.counts.items()):
        print(f"  {times:8} {name}")
    for problem, times in tally.problems.most_common():
        print(f"  PROBLEM {times:6} {problem}\n          {tally.failing.get(problem, '')}")
    return 1 if tally.problems else 0


def _parts(kind: str, seed: str, count: int, cores: int, failures: Path) -> Iterator[Tally]:
    batches = [range(a, min(a + BATCH[kind], count)) for a in range(0, count, BATCH[kind])]
    if cores <= 1:
        for numbers in batches:
            yield run_many(kind, seed, numbers, failures)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(cores, mp_context=context) as pool:
        work = [pool.submit(run_many, kind, seed, numbers, failures) for numbers in batches]
        for done in as_completed(work):
            yield done.result()


if __name__ == "__main__":
    sys.exit(main())
