"""The page of figures: one table per benchmark, in plain words, the target beside each figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import curves

HEAD = "Made by `make bench`; edit nothing here."
VERDICT = {True: "kept", False: "**missed**", None: ""}


def draw(results: Sequence[dict[str, Any]]) -> str:
    """Markdown, whatever the results were made with; the same results give the same text."""
    lines = [f"<!-- {HEAD} -->", "", "# What was measured", ""]
    lines += _summary(results)
    for result in results:
        lines += [f"## {result['title']}", "", result["claim"], ""]
        if result["figures"]:
            lines += _figures(result["figures"])
        if result["name"] == "refinement":
            lines += curves.tables(result["rows"])
        elif result["name"] == "more_methods":
            lines += _beside_prototypes(result["rows"])
        elif result["rows"]:
            lines += _losses(result["rows"])
        lines += [
            *(f"- {note}" for note in result["notes"]),
            "",
            _provenance(result["settings"]),
            "",
        ]
    return "\n".join(lines).rstrip() + "\n"


def pictures(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """The pictures that the page shows, SVG by file name."""
    rows = [row for result in results if result["name"] == "refinement" for row in result["rows"]]
    return curves.pictures(rows)


def _summary(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield from missed(results)
    yield "Every median is of the runs named below its table; *least to most* is their spread."
    yield ""


def missed(results: Sequence[dict[str, Any]]) -> Iterator[str]:
    """How many targets are kept, and each that is not."""
    judged = [(r, f) for r in results for f in r["figures"] if "target" in f]
    missed = [(r, f) for r, f in judged if not f["kept"]]
    yield f"Of {len(judged)} targets {len(judged) - len(missed)} are kept and {len(missed)} missed:"
    yield ""
    for result, figure in missed:
        yield f"- *{result['title']}*: {figure['what']}: {median(figure)} ({target(figure)})"
    yield ""


def _figures(figures: Sequence[dict[str, Any]]) -> Iterator[str]:
    yield "| figure | median | least to most | target | |"
    yield "|---|---|---|---|---|"
    for figure in figures:
        spread = (
            ""
            if len(figure["runs"]) == 1
            else f"{number(figure['least'])} to {number(figure['most'])}"
        )
        yield (
            f"| {figure['what']} | {median(figure)} | {spread} "
            f"| {target(figure)} | {VERDICT[figure.get('kept')]} |"
        )
    yield ""


def median(figure: dict[str, Any]) -> str:
    """The median, in as many digits as tell it from a target that it misses."""
    median, unit = figure["median"], figure["unit"]
    looks_kept = figure.get("kept") is False and number(median) == number(figure["target"])
    return f"{median:.4g} {unit}" if looks_kept else _value(median, unit)


def target(figure: dict[str, Any]) -> str:
    return (
        ""
        if "target" not in figure
        else f"{figure['sense']} {_value(figure['target'], figure['unit'])}"
    )


def _losses(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """For each kind of values a table of every method at every k."""
    for values in dict.fromkeys(row["values"] for row in rows):
        chosen = [row for row in rows if row["values"] == values]
        ks = list(dict.fromkeys(row["k"] for row in chosen))
        yield (
            f"### By method, {values} values"
            if values == "ordered"
            else f"### By method, over {values}"
        )
        yield ""
        yield "| method | " + " | ".join(f"gcp %, k = {k}" for k in ks) + " |"
        yield "|---" * (len(ks) + 1) + "|"
        for method in dict.fromkeys(row["method"] for row in chosen):
            of_k = {row["k"]: row for row in chosen if row["method"] == method}
            yield (
                f"| {method} | "
                + " | ".join(number(of_k[k]["gcp"]) if k in of_k else "" for k in ks)
                + " |"
            )
        yield ""
        yield "| method | k | classes made | classes told apart | DM | CM | CPU s of the method |"
        yield "|---|---|---|---|---|---|---|"
        for row in chosen:
            yield (
                f"| {row['method']} | {row['k']} | {row['classes_made']:,} |"
                f" {row['classes_published']:,} | {row['dm']:,} | {row['cm']:,} |"
                f" {number(row['method_seconds'])} |"
            )
        yield ""


def _beside_prototypes(rows: Sequence[dict[str, Any]]) -> Iterator[str]:
    """What was measured beside the figures that prototypes gave, where they gave any."""
    yield "| figure | prototype | mean | least to most | apart |"
    yield "|---|---|---|---|---|"
    for row in rows:
        spread = f"{row['least']:.3g} to {row['most']:.3g}" if len(row["runs"]) > 1 else ""
        known = row["prototype"] is not None
        before, apart = (f"{row['prototype']:.4g}", f"{row['apart']:+.0%}") if known else ("", "")
        yield f"| {row['what']} | {before} | {row['measured']:.4g} | {spread} | {apart} |"
    yield ""


def _provenance(settings: dict[str, Any]) -> str:
    versions = ", ".join(
        f"{name} {settings[name]}" for name in ("shoal", "python", "numba", "numpy", "polars")
    )
    changed = " and changes not committed" if settings["uncommitted_source"] else ""
    seeds = f"seeds {settings['seeds']}" if "seeds" in settings else f"seed {settings['seed']}"
    return (
        f"Measured at commit {settings['commit']}{changed}; {versions}; {settings['cpu']},"
        f" {settings['machine']}. Repeats: {settings['repeats']}; {seeds}; data: {settings['data']}"
        f" (sha256 {settings['data_sha256']}...)."
    )


def _value(value: float, unit: str) -> str:
    return f"{number(value)} {unit}"


def number(value: float) -> str:
    """Three significant digits, no more; counts in full."""
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
