"""docs/benchmarks.md: what a reader wants of all results, on one page; a missed target first."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import curves
import page
import peers

Results = dict[str, dict[str, Any]]
HEAD = (
    "`make bench` measured every figure beside a floor, a peer or a target. All figures, with their"
    " commits, data, seeds and spread, are in `benchmarks/results/README.md`. CPU seconds are user"
    " and system together; brackets hold the least and the most of several runs."
)
PEERS = (
    "Adult, eight quasi-identifiers, k = 10, one call on a table in memory. Loss is scored alike,"
    " from what each tool published. *Spans* reach from the first to the last of a set of"
    " categories by frequency; *sets* count its categories, which flatters them."
)
PICTURES = ("Adult, ordered", "Adult, hierarchies", "Census income", "Taxi")
# the figures shown of each benchmark: those whose names match
SPEED = {
    "whole_process": "income: shoal publish$|over Polars, CPU|Parquet to Parquet",
    "past_memory": "within 700 MB, peak",
    "streams": "shoal stream, CSV to CSV",
    "targets": "Adult, a later run$|README sample( with --report)?$|warmup|quasi-identifiers$",
}
CLOSENESS = {"targets": "t-closeness|1,000,000 records, t = [0-9.]+$"}
SEARCH = {"targets": "default: (search|gcp)|default, gcp|refine=(full|thorough)"}


def draw(results: Sequence[dict[str, Any]]) -> str:
    by_name = {result["name"]: result for result in results}
    machine = by_name["targets"]["settings"]
    lines = [
        f"<!-- {page.HEAD} -->",
        "",
        "# What was measured",
        "",
        HEAD,
        "",
        f"Machine: {machine['cpu']}, {machine['machine']}.",
        "",
        "## Targets that were missed",
        "",
        *page.missed(results),
        "## Beside other tools",
        "",
        *_peers(by_name["peers"]),
        "## Loss against time",
        "",
        *_curves(by_name["refinement"]),
        *_chosen(by_name, SEARCH),
        "## t-closeness",
        "",
        "Occupation sensitive, beside seven quasi-identifiers of Adult, k = 10, whole processes.",
        "",
        *_chosen(by_name, CLOSENESS),
        "## Speed and memory",
        "",
        *_chosen(by_name, SPEED),
    ]
    return "\n".join(lines).rstrip() + "\n"


def _peers(result: dict[str, Any]) -> Iterator[str]:
    """Every tool on Adult, scored alike."""
    found = {figure["what"]: figure for figure in result["figures"]}

    def cell(what: str) -> str:
        return _shown(found[what]) if what in found else ""

    yield PEERS
    yield ""
    yield "|tool|loss, spans|loss, sets|CPU s|records left out|"
    yield "|---|---|---|---|---|"
    for name, table in (
        ("Shoal, default", "shoal, Adult"),
        ("Shoal, `full-domain` over hierarchies", "shoal, Adult, full-domain over hierarchies"),
    ):
        yield f"|{name}|{cell(f'{table}, gcp')}||{cell(f'{table}, first call of a process')}||"
    for peer in peers.PEERS:
        name = f"{peer.name} {peer.pinned}"
        how = "over hierarchies" if peer.over_trees else "as spans"
        losses = cell(f"{name}, Adult, gcp {how}"), cell(f"{name}, Adult, gcp as sets")
        seconds, left_out = cell(f"{name}, Adult"), cell(f"{name}, records left out")
        yield "|" + "|".join((name, *losses, seconds, left_out)) + "|"
    yield ""
    yield from (note for note in result["notes"] if "ARX 3.9.2" in note)
    yield ""


def _curves(result: dict[str, Any]) -> Iterator[str]:
    over = [figure["median"] for figure in result["figures"] if figure["unit"] == "times"]
    yield f"The default loses at most {max(over):.3f} times what the best of our methods does,"
    yield "`thorough` apart, on six tables and at four k."
    yield ""
    for data in PICTURES:
        shown = f"Loss against CPU seconds on {data}"
        yield f"![{shown}](../benchmarks/results/{curves.file_name(data)})"
        yield ""


def _chosen(by_name: Results, names: dict[str, str]) -> Iterator[str]:
    yield "|what|measured|target|"
    yield "|---|---|---|"
    for name, pattern in names.items():
        for figure in by_name[name]["figures"]:
            if re.search(pattern, figure["what"]):
                yield f"|{figure['what']}|{_shown(figure)}|{page.target(figure)}|"
    yield ""


def _shown(figure: dict[str, Any]) -> str:
    """The median, and in brackets how far the runs lie apart."""
    least, most = page.number(figure["least"]), page.number(figure["most"])
    apart = "" if least == most else f" ({least} to {most})"
    return f"{page.median(figure)}{apart}"
