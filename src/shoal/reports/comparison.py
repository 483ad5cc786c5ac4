"""The comparison as a page that can be handed on: what loses least, curves over k, and the whole
table.

As every report it needs nothing but itself and shows no value of the data: figures are measures of
releases, names are those of methods and attributes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from markupsafe import Markup
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from shoal.jobs.advise.compare import Comparison, Row
from shoal.reports import charts
from shoal.reports.comparison_table import columns, faults, percent, reasons
from shoal.reports.pages import render_template, write_page
from shoal.version import VERSION

# Okabe and Ito's colours where they can be read on white and on black alike, the page's ink, and an
# ochre. Colours, markers and dashes go round in cycles of different lengths: no two of 84 curves
# are alike.
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", charts.INK, "#a6761d")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (6, 1.5, 1.2, 1.5)))
NEAR = 0.045  # ticks nearer than this share of the axis would write over one another


@dataclass(frozen=True)
class Curves:
    """One chart over k, a curve for every method. value: of a row that has a release."""

    key: str
    title: str
    axis: str
    caption: str
    value: Callable[[Row], float | None]
    is_log: bool = False
    bound: Callable[[int], float] | None = None


def _crowd(row: Row) -> float | None:
    """Discernibility, in multiples of k records for every record."""
    discernibility = row.score("discernibility")
    if discernibility is None or row.certificate is None:
        return None
    return discernibility / row.certificate["records"]["out"] / row.k


def _mean_risk(row: Row) -> float | None:
    risk = row.score("prosecutor_mean")
    return None if risk is None else 100 * risk


CHARTS = (
    Curves(
        "gcp",
        "Loss over k",
        "detail lost (gcp), %",
        "How much of its attribute's domain a published cell leaves open, on average: 0 % is the"
        " original.",
        lambda row: 100 * row.loss,
    ),
    Curves(
        "discernibility",
        "Discernibility over k",
        "discernibility / (records × k)",
        "How many records look like a record on average, as a multiple of k. 1 is the best possible"
        " where nobody has two records; uneven classes and suppressed records cost more.",
        _crowd,
    ),
    Curves(
        "risk",
        "Risk over k",
        "mean risk to be named, %",
        "The chance to pick a person's record out of its class, on average over all people. The"
        " dotted line is 1 / k, the most that k allows anybody.",
        _mean_risk,
        is_log=True,
        bound=lambda k: 100 / k,
    ),
    Curves(
        "seconds",
        "Time over k",
        "CPU seconds of the method",
        "One run of the method alone, compiled before. Another machine takes another time; the"
        " order tends to stay.",
        lambda row: row.seconds,
        is_log=True,
    ),
)


def write_comparison(comparison: Comparison, path: Path) -> None:
    """The page, written whole or not at all."""
    write_page(render(comparison), path)


def render(comparison: Comparison) -> str:
    """The page; the same for the same measures."""
    return render_template("compare.html.j2", _content(comparison))


def _content(comparison: Comparison) -> dict[str, Any]:
    shown = columns(comparison)
    return {
        "shoal": VERSION,
        "comparison": comparison,
        "columns": shown,
        "groups": [
            (k, [_line(row, shown) for row in comparison.rows if row.k == k]) for k in comparison.ks
        ],
        "best": [_best(comparison, k) for k in comparison.ks],
        "curves": [
            (curves.caption, _chart(curves, comparison)) for curves in CHARTS if comparison.releases
        ],
        "faults": faults(comparison),
        "reasons": reasons(comparison),
        "methods": {row.label: row for row in comparison.rows},
        "command": _command(comparison),
    }


def _line(row: Row, shown: list[Any]) -> dict[str, Any]:
    figures = [] if row.certificate is None else [column.text(row) for column in shown]
    return {"label": row.label, "reason": row.reason, "holds": row.holds, "figures": figures}


def _best(comparison: Comparison, k: int) -> dict[str, Any]:
    """The least loss at this k, the next, and the fastest."""
    ranked = comparison.ranked(k)
    quick = sorted(ranked, key=lambda row: row.seconds or 0.0)
    return {
        "k": k,
        "least": [f"{row.label}, {percent(row.score('gcp'))}" for row in ranked[:2]],
        "fastest": [f"{row.label}, {row.seconds:.3f} s" for row in quick[:1]],
    }


def _command(comparison: Comparison) -> str:
    methods, ks = ",".join(comparison.methods), ",".join(map(str, comparison.ks))
    return f"shoal compare INPUT -p POLICY --methods {methods} --ks {ks} --seed {comparison.seed}"


# Curves


def _chart(curves: Curves, comparison: Comparison) -> Markup:
    ncols = 1 if max(map(len, comparison.methods)) > charts.MOST_LETTERS else 2
    ks = tuple(k for k in comparison.ks if any(row.k == k for row in comparison.releases))
    lines = -(-(len(comparison.methods) + (curves.bound is not None)) // ncols)

    def draw(axes: Axes) -> None:
        if curves.bound is not None:
            axes.plot(
                ks,
                [curves.bound(k) for k in ks],
                color=charts.MUTED,
                linewidth=1,
                linestyle=":",
                label="1 / k",
            )
        for i, method in enumerate(comparison.methods):
            points = _points(curves, comparison, method)
            axes.plot(
                list(points),
                list(points.values()),
                label=method,
                linewidth=1.5,
                markersize=4.5,
                clip_on=False,
                **_style(i),
            )
        _scale(axes, curves, ks)
        figure = axes.get_figure()
        assert isinstance(figure, Figure)
        figure.legend(
            loc="outside lower left",
            ncols=ncols,
            borderpad=0.2,
            handlelength=2.8,
            labelcolor=charts.INK,
        )

    return charts.drawn(
        curves.key, curves.title, _told(curves, comparison), 2.7 + 0.19 * lines, draw
    )


def _points(curves: Curves, comparison: Comparison, method: str) -> dict[int, float]:
    """The figure at every k at which the method has a release; a logarithm leaves zeros out."""
    found = {row.k: curves.value(row) for row in comparison.releases if row.label == method}
    return {
        k: v
        for k, v in found.items()
        if v is not None and np.isfinite(v) and (v > 0 or not curves.is_log)
    }


def _style(i: int) -> dict[str, Any]:
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKERS[i % len(MARKERS)],
        "linestyle": DASHES[i % len(DASHES)],
    }


def _scale(axes: Axes, curves: Curves, ks: tuple[int, ...]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(_apart(ks))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda k, _: f"{k:,.0f}"))
    axes.set_xlim(ks[0] / 1.08, ks[-1] * 1.08)
    axes.set_xlabel("k")
    axes.set_ylabel(curves.axis)
    if curves.is_log:
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(bottom=0)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.grid(axis="y")


def _apart(ks: tuple[int, ...]) -> list[int]:
    """The ks whose numbers fit side by side, the first always."""
    least = NEAR * np.log(ks[-1] / ks[0])
    kept = [ks[0]]
    for k in ks[1:]:
        if np.log(k / kept[-1]) >= least:
            kept.append(k)
    return kept


def _told(curves: Curves, comparison: Comparison) -> str:
    """The chart in words: every method at the least and the greatest k that it reaches."""
    parts = []
    for method in comparison.methods:
        points = list(_points(curves, comparison, method).items())
        ends = [f"{value:,.4g} at k = {k}" for k, value in points[:1] + points[1:][-1:]]
        parts.append(f"{method}: {' and '.join(ends) or 'nothing'}")
    return f"{curves.axis}; " + "; ".join(parts)
