"""make bench: measures what the docs claim, side by side with a floor or a peer, and writes it
down.

python benchmarks/run.py [--only NAME] [--rows N] [--repeats R]

Every benchmark leaves benchmarks/results/<name>.json; README.md and the pictures beside it, and
docs/benchmarks.md, are drawn from all of them. Where one fails, the others go on, its former result
stays, and the status is 1. The whole takes about 90 minutes and 8 GB of memory on two cores.
`--rows N` tries it on smaller tables: then name other places with --results and --page, so that
committed figures stay.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import page
import summary
from measure import ROOT, Asked

NAMES = (
    "quality",
    "refinement",
    "kernel",
    "threads",
    "past_memory",
    "spark_tables",
    "ui",
    "whole_process",
    "start",
    "database",
    "audit",
    "certificate",
    "tcloseness",
    "full_domain",
    "distinct_rows",
    "one_person",
    "linked",
    "republish",
    "returning",
    "waiting",
    "m_invariance",
    "beside",
    "streams",
    "stream_trees",
    "b_castle",
    "fusion",
    "fusion_scale",
    "more_methods",
    "survey",
    "attack_cost",
    "targets",
    "peers",
)
RESULTS = ROOT / "benchmarks" / "results"
PAGE = RESULTS / "README.md"
SUMMARY = ROOT / "docs" / "benchmarks.md"


def main(arguments: Sequence[str] | None = None) -> None:
    asked = _parsed(arguments)
    asked.results.mkdir(parents=True, exist_ok=True)
    failed = [name for name in asked.only or NAMES if not _measured(name, asked)]
    asked.page.parent.mkdir(parents=True, exist_ok=True)
    results = committed(asked.results)
    asked.page.write_text(page.draw(results))
    for name, picture in page.pictures(results).items():
        (asked.page.parent / name).write_text(picture)
    if asked.page == PAGE:
        SUMMARY.write_text(summary.draw(results))
    _say(f"wrote {asked.page}")
    if failed:
        raise SystemExit(f"not measured: {', '.join(failed)}")


def _measured(name: str, asked: argparse.Namespace) -> bool:
    """Writes the result of one benchmark; False where it failed, and the others go on."""
    try:
        result = importlib.import_module(name).measure(Asked(asked.rows, asked.repeats, _say))
    except (Exception, SystemExit):
        traceback.print_exc()
        return False
    (asked.results / f"{name}.json").write_text(json.dumps(result.as_json(), indent=1) + "\n")
    return True


def committed(folder: Path) -> list[dict[str, Any]]:
    """Every result in a folder, in the order of the page."""
    paths = [folder / f"{name}.json" for name in NAMES]
    return [json.loads(path.read_text()) for path in paths if path.is_file()]


def _parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument(
        "--only", action="append", choices=NAMES, help="this one; may be given several times"
    )
    parser.add_argument("--rows", type=int, help="records, instead of each benchmark's own sizes")
    parser.add_argument("--repeats", type=int, default=3, help="runs of everything that is timed")
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder for the JSON files")
    parser.add_argument("--page", type=Path, default=PAGE, help="the page to draw")
    asked = parser.parse_args(arguments)
    if asked.rows is not None and (asked.results == RESULTS or asked.page == PAGE):
        parser.error(
            "--rows: name other places with --results and --page; the committed figures are of full"
            " size"
        )
    return asked


def _say(stage: str) -> None:
    print(stage, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
