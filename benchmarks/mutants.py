"""make mutants: which small changes of the auditor's code would no test notice?

python benchmarks/mutants.py [--sample N] [--seed S] [--keep] [PATTERN ...]

mutmut changes one operator, number, argument or name at a time ("a mutant"), in the functions that
pyproject.toml lists, and runs the tests that reach the changed function. A mutant that fails a test
is killed; one that passes them all has survived. Only kills raise the score: a mutant that ran out
of time or crashed is counted apart, as is one that no test reaches.

Changes of wording are left out, as tests do not fix the wording of messages: a text of several
words, what an error is raised with, and the names that parameters are refused under.

--sample N draws N of each room at random (the others of a smaller room are all tried); the
intervals are Wilson's, of 95 %.

The report with the diff of every mutant that was not killed goes to mutants/report.txt. `--keep`
uses the folder mutants/ of an earlier run, which is quicker, but only right for the same tests.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import fnmatch
import json
import os
import random
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from functools import cache
from math import sqrt
from pathlib import Path
from time import monotonic

from mutmut.stats import status_by_exit_code

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "mutants"

GENERATE = """
import sys
from pathlib import Path
from mutmut import __main__ as mutmut
mutmut.set_mutant_under_test("mutant_generation")
Path("mutants").mkdir(exist_ok=True)
mutmut.copy_src_dir()
mutmut.copy_also_copy_files()
mutmut.setup_source_paths()
mutmut.create_mutants(int(sys.argv[1]))
"""
"""What `mutmut run` does first; there is no command for it alone (mutmut 3.8.1)."""

QUICK = {
    "SHOAL_SAME_EXAMPLES": "1",
    "SHOAL_EXAMPLES": "25",
    # one thread each: several mutants run side by side
    "POLARS_MAX_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}

CHECKS = {"whole", "decimal", "names", "one_name", "choice"}
"""Functions of privacy/promise.py whose first two arguments appear in their message only."""

NOT_KILLED = ("survived", "no tests", "timeout", "segfault", "suspicious", "not checked")


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parsed(arguments)
    os.chdir(ROOT)
    os.environ.update(QUICK)
    started = monotonic()
    if not asked.keep:
        shutil.rmtree(FOLDER, ignore_errors=True)
    print("generating mutants", flush=True)
    generate = [sys.executable, "-c", GENERATE, str(asked.processes)]
    subprocess.run(generate, check=True, stdout=subprocess.DEVNULL)
    names = sorted(name for name in all_mutants() if _matches(name, asked.patterns))
    chosen: list[str] = []
    wording = 0
    for room in sorted({_room(name) for name in names}):
        inside = [name for name in names if _room(name) == room]
        found, others = drawn(inside, asked.sample, asked.seed)
        chosen += found
        wording += others
    whole = asked.sample is None and not asked.patterns
    _run([] if whole else chosen, asked.processes)
    report = _report(names, chosen, wording, asked, (monotonic() - started) / 60)
    (FOLDER / "report.txt").write_text(report + "\n\n" + _diffs(chosen))
    print(f"{report}\n\nthe mutants that were not killed: mutants/report.txt")


def all_mutants() -> dict[str, int | None]:
    """The exit code of the tests for every mutant, None where they have not run."""
    found: dict[str, int | None] = {}
    for path in sorted(FOLDER.rglob("*.py.meta")):
        found |= json.loads(path.read_text())["exit_code_by_key"]
    return found


def drawn(names: Sequence[str], sample: int | None, seed: int) -> tuple[list[str], int]:
    """A sample of the mutants that change more than wording, and how many others were drawn."""
    order = list(names)
    random.Random(seed).shuffle(order)
    chosen: list[str] = []
    wording = 0
    for name in order:
        if sample is not None and len(chosen) == sample:
            break
        if is_wording(name):
            wording += 1
        else:
            chosen.append(name)
    return chosen, wording


def is_wording(name: str) -> bool:
    """Whether a mutant and its original differ only in what people read."""
    original, mutant = _both(name)
    return _without_wording(original) == _without_wording(mutant)


def interval(kills: int, of: int) -> tuple[float, float]:
    """Wilson's 95 % interval of a share."""
    z = 1.96
    share = kills / of
    middle = share + z * z / (2 * of)
    half = z * sqrt(share * (1 - share) / of + z * z / (4 * of * of))
    return (middle - half) / (1 + z * z / of), (middle + half) / (1 + z * z / of)


class _Silenced(ast.NodeTransformer):
    """Empties texts of several words and what errors are raised with."""

    def visit_Constant(self, node: ast.Constant) -> ast.Constant:
        if isinstance(node.value, str) and " " in node.value:
            return ast.Constant("")
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in CHECKS:
            node.args[:2] = [ast.Constant("") for _ in node.args[:2]]
        return self.generic_visit(node)

    def visit_Raise(self, node: ast.Raise) -> ast.Raise:
        if isinstance(node.exc, ast.Call):
            return ast.Raise(node.exc.func, None)
        return node


def _without_wording(source: str) -> str:
    return ast.dump(_Silenced().visit(ast.parse(source)))


def _both(name: str) -> tuple[str, str]:
    """The source of a function before and after a mutation, both under the function's own name."""
    module, _, mangled = name.rpartition(".")
    functions = _functions(module)
    plain = mangled.rpartition("__mutmut_")[0]
    return functions[f"{plain}__mutmut_orig"], functions[mangled]


@cache
def _functions(module: str) -> dict[str, str]:
    path = FOLDER / "src" / Path(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    found = {}
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef) and "__mutmut_" in node.name:
            mangled = node.name
            node.name = mangled.rpartition("__mutmut_")[0].rpartition("ǁ")[2].removeprefix("x_")
            found[mangled] = ast.unparse(node)
    return found


def _run(names: Sequence[str], processes: int) -> None:
    print("running tests; progress is in mutants/log.txt", flush=True)
    mutmut = Path(sys.executable).with_name("mutmut")
    command = [str(mutmut), "run", "--max-children", str(processes), *names]
    subprocess.run(command, check=True, stdout=(FOLDER / "log.txt").open("w"))


def _report(
    names: Sequence[str],
    chosen: Sequence[str],
    wording: int,
    asked: argparse.Namespace,
    minutes: float,
) -> str:
    codes = all_mutants()
    commit = subprocess.run(
        ["git", "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    ).stdout.strip()
    lines = [
        f"commit {commit}, {len(names)} mutants, seed {asked.seed},"
        f" {len(chosen)} tried, {wording} of wording left out, {minutes:.0f} minutes"
    ]
    for room in sorted({_room(name) for name in chosen}):
        inside = [name for name in chosen if _room(name) == room]
        count = Counter(status_by_exit_code[codes[name]] for name in inside)
        low, high = interval(count["killed"], len(inside))
        others = ", ".join(f"{count[status]} {status}" for status in NOT_KILLED if count[status])
        lines.append(
            f"{room}: {count['killed']} of {len(inside)} killed,"
            f" {count['killed'] / len(inside):.1%} ({low:.1%} to {high:.1%}); {others}"
        )
    return "\n".join(lines)


def _room(name: str) -> str:
    """The part of the source that a mutant is in: privacy, utility, data, auditor or attacks."""
    return name.split(".")[1]


def _diffs(chosen: Sequence[str]) -> str:
    codes = all_mutants()
    blocks = []
    for name in sorted(chosen):
        status = status_by_exit_code[codes[name]]
        if status in NOT_KILLED:
            before, after = (source.splitlines() for source in _both(name))
            changes = list(difflib.unified_diff(before, after, lineterm="", n=1))[2:]
            blocks.append("\n".join([f"{name}: {status}", *changes]))
    return "\n\n".join(blocks)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return not patterns or any(fnmatch.fnmatch(name, pattern) for pattern in patterns)


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sample", type=int, help="mutants to draw of each room")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--keep", action="store_true", help="use what an earlier run left")
    parser.add_argument("patterns", nargs="*", metavar="PATTERN", help="shoal.privacy.promise.*")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    main()
