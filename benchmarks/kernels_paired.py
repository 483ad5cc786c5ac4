"""Compiled kernels before and after a change, turn by turn: run time and compile time.

python kernels_paired.py BASE [--only NAME] [--pairs N] [--compiles N] [--results FILE.json]

BASE is a checkout of an older commit; what it is compared with is the checkout that this file is
in. Each case runs one command of the program over the same input in a process of either checkout,
alternately, and adds up the CPU time of the kernels alone. A pair of runs shares its moment, so the
median of their ratios stands even where the machine is shared. Compile time is that of
`shoal publish` with an empty cache, less the same with a full one. Both have to publish the same
bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
TITLE = "Kernels before and after"
CLAIM = (
    "CPU seconds of the kernels in one command over Adult (complete training records, or as many as"
    " each case says), after over before, turn by turn in processes of either checkout; and what"
    " `shoal publish` compiles on its first run."
)
SEED = 1
RUN_TARGET, COMPILE_TARGET = 1.03, 1.0
QUASI = ("workclass", "education", "marital-status", "race", "sex", "native-country")
SENSITIVE = ("hours-per-week", "capital-gain")


@dataclass(frozen=True)
class Case:
    """One command to time.

    trees: hierarchies rather than orders. people: records of each person, 0 without a subject
    column. t: that of t-closeness on two attributes, None without. more: other keys of the policy.
    """

    name: str
    method: dict[str, Any]
    rows: int = 30_162
    k: int = 10
    verb: str = "publish"
    trees: bool = False
    people: int = 0
    t: float | None = None
    more: dict[str, Any] = field(default_factory=dict)


def _cases() -> Iterator[Case]:
    """A case for each kernel, on orders and on hierarchies where it looks at both."""
    for on in ("orders", "trees"):
        of = partial(_case, on)
        yield of("rounded-partition", 100_000, preset="paper")
        yield of("rounded-partition", 20_000, refine="none")
        yield of("rounded-partition", 4_000)
        yield of("rounded-partition", 20_000, {"people": 2})
        yield of("mondrian", 100_000, trees="order")
        yield of("mondrian-relaxed", 100_000)
        yield of("mondrian-relaxed", 50_000, {"people": 2})
        yield of("top-down-greedy", 10_000)
        yield of("top-down-greedy", 10_000, {"people": 2})
        yield of("bottom-up", 2_500)
        yield of("k-member", 2_500)
        yield of("lattice-peeling", 10_000, {"k": 20}, vectors=2000)
        yield of("crp", 10_000, {"verb": "republish", "people": 1}, leftovers="least-loss")
        yield of("k-pprp", 10_000, {"verb": "republish", "people": 1})
        yield of("castle", 10_000, {"verb": "stream", "people": 2}, delta=2000)
        yield of("faanst", 10_000, {"verb": "stream", "people": 2}, delta=2000)
        yield of("fads", 10_000, {"verb": "stream", "people": 2}, delta=2000)
        yield of("fads-tuple", 5_000, {"verb": "stream", "people": 2}, delta=1000)
        yield of("mdav", 20_000)
        yield of("tcloseness", 5_000, {"t": 0.2})
    tree: dict[str, Any] = {"trees": True, "k": 10}
    yield Case("mondrian children", {"name": "mondrian", "trees": "children"}, 100_000, **tree)
    yield Case("full-domain trees", {"name": "full-domain"}, 100_000, **tree)
    yield Case("tds trees", {"name": "tds"}, 100_000, **tree, more={"label": "income"})
    yield Case("oka orders", {"name": "oka"}, 8_000)
    for name, rows in (
        ("tcloseness-fcm", 1_500),
        ("tcloseness-k-first", 3_000),
        ("tcloseness-kmeanspp", 3_000),
        ("tcloseness-merge", 8_000),
        ("tcloseness-t-first", 8_000),
    ):
        yield Case(f"{name} orders", {"name": name}, rows, t=0.2)


def _case(
    on: str, method: str, rows: int, case: dict[str, Any] | None = None, **parameters: Any
) -> Case:
    words = [method, *(str(value) for value in parameters.values()), on]
    if case and "people" in case:
        words.append("people")
    given = {"name": method, **parameters}
    return Case(" ".join(words), given, rows, trees=on == "trees", **(case or {}))


CASES = tuple(_cases())


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("base", type=Path, help="a checkout of the commit to compare with")
    parser.add_argument("--only", action="append", help="cases whose name contains this")
    parser.add_argument("--pairs", type=int, default=9, help="pairs of runs of each case")
    parser.add_argument("--compiles", type=int, default=3, help="pairs of first runs; 0 for none")
    parser.add_argument("--results", type=Path, help="a JSON file to write what was found to")
    asked = parser.parse_args(arguments)
    result = measure(asked)
    if asked.results:
        asked.results.write_text(json.dumps(result.as_json(), indent=1) + "\n")


def measure(asked: argparse.Namespace) -> Any:
    from measure import Asked, Figure, Result, ratios, settings

    figures = []
    with tempfile.TemporaryDirectory(prefix="shoal-bench-") as folder:
        for case in CASES:
            if asked.only and not any(part in case.name for part in asked.only):
                continue
            before, after = _alternately(case, asked, Path(folder))
            figures.append(Figure(case.name, "times", ratios(after, before), RUN_TARGET))
            print(
                f"{case.name:45} {min(before):8.4f} s  least {min(after) / min(before):5.3f}"
                f"  median {figures[-1].median:5.3f}",
                flush=True,
            )
        if asked.compiles:
            before, after = _compile_times(asked, Path(folder))
            name = "first run of publish: compiling"
            figures.append(Figure(name, "times", ratios(after, before), COMPILE_TARGET))
            print(f"{name:45} {min(before):8.4f} s  median {figures[-1].median:5.3f}", flush=True)
    found = settings(Asked(None, asked.pairs), base=_commit(asked.base), seed=SEED)
    return Result("kernels_paired", TITLE, CLAIM, found, figures)


def _commit(checkout: Path) -> str:
    command = ["git", "-C", str(checkout), "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _alternately(
    case: Case, asked: argparse.Namespace, folder: Path
) -> tuple[list[float], list[float]]:
    """The kernels' CPU seconds in each run before, and in the run after that followed or led it."""
    seconds: tuple[list[float], list[float]] = ([], [])
    with ExitStack() as stack:
        commands = _prepared(case, folder)
        workers = [
            stack.enter_context(_worker(root, folder, commands))
            for root in (asked.base.resolve(), HERE.parents[1])
        ]
        digests = [run()["digest"] for run in workers]
        if digests[0] != digests[1]:
            raise SystemExit(f"{case.name}: the two checkouts publish different bytes")
        for pair in range(asked.pairs):
            for which in (0, 1) if pair % 2 else (1, 0):
                seconds[which].append(workers[which]()["kernels"])
    return seconds


def _prepared(case: Case, folder: Path) -> list[list[str]]:
    """Writes the input and the policy of a case; the commands to run."""
    import adult

    frame = adult.resampled(case.rows, SEED)
    attributes: dict[str, Any] = {"age": {"role": "quasi", "type": "number", "domain": [17, 90]}}
    for name in QUASI:
        path = adult.DATA / "adult" / "hierarchies_arx" / f"{name}.csv"
        kind = {"hierarchy": str(path)} if case.trees else {"order": _by_frequency(frame, name)}
        attributes[name] = {"role": "quasi", **kind}
    promises: list[dict[str, Any]] = [{"model": "k-anonymity", "k": case.k}]
    kept = ["age", *QUASI, "income"]
    attributes["income"] = {"role": "plain"}
    if case.t is not None:
        kept += SENSITIVE
        attributes |= {
            name: {"role": "sensitive", "type": "number", "domain": [0, 99_999]}
            for name in SENSITIVE
        }
        promises.append({"model": "t-closeness", "attributes": list(SENSITIVE), "t": case.t})
    if case.people:
        import polars as pl

        frame = frame.with_columns(who=pl.int_range(pl.len()) % max(case.rows // case.people, 1))
        kept.append("who")
        attributes["who"] = {"role": "subject"}
    policy = {"version": 1, "attributes": attributes, "promises": promises, "seed": SEED}
    path = folder / "policy.json"
    path.write_text(json.dumps({**policy, "method": case.method, **case.more}))
    source = folder / "in.csv"
    frame.select(kept).write_csv(source)
    if case.verb != "republish":
        return [[case.verb, str(source), "-p", str(path), "-o", "out.csv", "-q"]]
    halves = [folder / "first.csv", folder / "second.csv"]
    middle = case.rows // 2
    for half, part in zip(halves, (slice(middle), slice(middle, None)), strict=True):
        frame.select(kept)[part].write_csv(half)
    return [
        ["republish", str(half), "-p", str(path), "--ledger", "ledger", "--allow-leaks", "-q"]
        for half in halves
    ]


def _by_frequency(frame: Any, name: str) -> list[str]:
    counts = frame[name].value_counts().sort(["count", name], descending=[True, False])
    return counts[name].to_list()


@contextmanager
def _worker(
    checkout: Path, folder: Path, commands: list[list[str]]
) -> Iterator[Callable[[], dict[str, Any]]]:
    """A process of a checkout that has run these commands once; a function that runs them again."""
    process = subprocess.Popen(
        [sys.executable, str(HERE), "worker", json.dumps(commands)],
        env=_environment(checkout),
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    asks, answers = process.stdin, process.stdout

    def run() -> dict[str, Any]:
        print(file=asks, flush=True)
        answer = answers.readline()
        if not answer:
            raise SystemExit(f"{checkout}: could not run {commands}")
        return json.loads(answer)

    try:
        yield run
    finally:
        process.stdin.close()
        process.wait()


def _environment(checkout: Path) -> dict[str, str]:
    from measure import ONE_THREAD

    return {**os.environ, **ONE_THREAD, "PYTHONPATH": str(checkout / "src")}


def worker(commands: list[list[str]]) -> None:
    """Runs the commands for every line that comes in; the first time to compile, then timed."""
    from shoal.cli.main import status_of

    answers = sys.stdout
    sys.stdout = sys.stderr
    seconds: list[float] = []
    for turn, _ in enumerate(sys.stdin):
        seconds.clear()
        with tempfile.TemporaryDirectory(dir=".") as folder:
            before = Path.cwd()
            os.chdir(folder)
            for command in commands:
                if (status := status_of(command)) != 0:
                    raise SystemExit(f"status {status}: {command}")
            digest = _digest(Path())
            os.chdir(before)
        if turn == 0:
            _time_kernels(seconds)
        print(json.dumps({"kernels": sum(seconds), "digest": digest}), file=answers, flush=True)


def _digest(folder: Path) -> str:
    """Of the released tables; certificates tell the time, ledgers hold random names."""
    paths = [path for path in folder.rglob("*.csv") if path.name in ("out.csv", "data.csv")]
    return hashlib.sha256(b"".join(path.read_bytes() for path in sorted(paths))).hexdigest()


def _time_kernels(seconds: list[float]) -> None:
    """From now on every call of a kernel from Python adds its CPU time; all are compiled by now."""
    from shoal.data.numba_kernels import LateKernel

    def timed(kernel: LateKernel) -> Callable[..., Any]:
        def call(*arguments: Any) -> Any:
            begun = time.thread_time()
            answer = kernel(*arguments)
            seconds.append(time.thread_time() - begun)
            return answer

        return call

    wrapped: dict[int, Callable[..., Any]] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("shoal."):
            for key, value in list(vars(module).items()):
                if isinstance(value, LateKernel):
                    setattr(module, key, wrapped.setdefault(id(value), timed(value)))


def _compile_times(asked: argparse.Namespace, folder: Path) -> tuple[list[float], list[float]]:
    """CPU seconds that the first run of `shoal publish` compiles, before and after."""
    import processes

    command = _prepared(Case("first run", {"name": "rounded-partition"}, 1000), folder)[0]
    command[command.index("out.csv")] = str(folder / "out.csv")
    command.append("--replace")
    seconds: tuple[list[float], list[float]] = ([], [])
    for turn in range(asked.compiles):
        order = ((0, asked.base.resolve()), (1, HERE.parents[1]))
        for which, checkout in order if turn % 2 else order[::-1]:
            with tempfile.TemporaryDirectory(prefix="shoal-cache-") as cache:
                environment = _environment(checkout) | {"NUMBA_CACHE_DIR": cache}
                first, second = (
                    processes.run([*processes.SHOAL, *command], env=environment).seconds
                    for _ in range(2)
                )
            seconds[which].append(first - second)
    return seconds


if __name__ == "__main__":
    if sys.argv[1:2] == ["worker"]:
        worker(json.loads(sys.argv[2]))
    else:
        main()
