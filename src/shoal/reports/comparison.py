"""The comparison as a page that can be handed on: what to take and why, curves over k, and the
whole table.

As every report it needs nothing but itself and shows no value of the data: figures are measures of
releases, names are those of methods and attributes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from shoal.advise import comparison
from shoal.advise.compare import compare as measure_all
from shoal.advise.comparison import Row
from shoal.data.language import gettext
from shoal.reports import charts
from shoal.reports.comparison_table import columns, faults, more_columns, percent, reasons
from shoal.reports.pages import Content, render_template, write_page
from shoal.version import VERSION

Asked = ParamSpec("Asked")
Measured = comparison.Comparison


class Comparison(comparison.Comparison):
    """Methods and values of k, measured on one table: rows, advice and a figure."""

    def plot(self) -> Figure:
        """A figure of Matplotlib: what each method loses, leaves at risk and takes, over k."""
        return charts.figure_of([chart_of(curves, self) for curves in CHARTS if self.releases])


def _drawable(measure: Callable[Asked, comparison.Comparison]) -> Callable[Asked, Comparison]:
    """A function whose comparison can be drawn."""

    @wraps(measure)
    def measured(*words: Asked.args, **more: Asked.kwargs) -> Comparison:
        found = measure(*words, **more)
        return Comparison(**{one.name: getattr(found, one.name) for one in fields(found)})

    return measured


compare = _drawable(measure_all)


def write_comparison(comparison: Measured, path: Path) -> None:
    """The page, written whole or not at all."""
    write_page(render(comparison), path)


def render(comparison: Measured) -> str:
    """The page; the same for the same measures."""
    return render_template("compare.html.j2", _content(comparison))


def _content(comparison: Measured) -> Content:
    drawn = drawn_methods(comparison)
    return {
        "shoal": VERSION,
        "comparison": comparison,
        "advice": comparison.recommendation,
        "publish": _publish(comparison),
        "tables": [columns(comparison), more_columns(comparison)],
        "ranked": {k: comparison.ranked(k) for k in comparison.ks},
        "percent": percent,
        "curves": [
            (curves.caption, chart_of(curves, comparison).svg(curves.key))
            for curves in CHARTS
            if comparison.releases
        ],
        "undrawn": comparison.methods[len(drawn) :],
        "faults": faults(comparison),
        "reasons": reasons(comparison),
        "methods": {
            label: next(row for row in comparison.rows if row.label == label)
            for label in comparison.methods
        },
        "command": _command(comparison),
    }


def _command(comparison: Measured) -> str:
    methods, ks = ",".join(comparison.methods), ",".join(map(str, comparison.ks))
    return f"shoal compare INPUT -p POLICY --methods {methods} --ks {ks} --seed {comparison.seed}"


def _publish(comparison: Measured) -> str:
    """The command that publishes what is recommended; nothing where nothing is."""
    advice = comparison.recommendation
    if advice is None:
        return ""
    name, *settings = advice.method.split(":")
    changes = "".join(f" --set {setting}" for setting in settings)
    return (
        f"shoal publish INPUT -p POLICY -o OUTPUT --k {advice.k} --method {name}{changes}"
        f" --seed {comparison.seed}"
    )


# The curves of a comparison over k: one for each of the methods that lose least.
#
# A curve is known by its colour, its marker and the name at its end, so that it can be told from
# the others on paper, too, and by readers who see few colours.


# Okabe and Ito's colours where they can be read on white and on black alike, the page's ink, a
# violet and an ochre
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", charts.INK, "#8a63d2", "#a6761d")
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
MOST_CURVES = len(COLOURS)
NEAR = 0.045  # ticks nearer than this share of the axis would write over one another
HEIGHT = 2.9  # inches of a chart
LINE = 0.066  # of a chart's height, which a line of a name takes
BESIDE = 1.07  # of the axes' width, where names begin
LETTERS = 19  # of a name on one line


@dataclass(frozen=True)
class Curves:
    """One chart over k, a curve for every method. value: of a row that has a release.

    bound: the most that k allows; what lies above is shaded.
    """

    key: str
    title: str
    axis: str
    caption: str
    value: Callable[[Row], float | None]
    is_log: bool = False
    bound: Callable[[int], float] | None = None


def _crowd(row: Row) -> float | None:
    """Discernibility, in multiples of k records for every record."""
    found = row.score("discernibility")
    return None if found is None else found / row.measured["records"]["out"] / row.k


def _mean_risk(row: Row) -> float | None:
    risk = row.score("prosecutor_mean")
    return None if risk is None else 100 * risk


CHARTS = (
    Curves(
        "gcp",
        gettext("Loss over k"),
        gettext("detail lost (gcp), %"),
        gettext(
            "How much of its attribute's domain a published cell leaves open, on average: 0 % is"
            " the original."
        ),
        lambda row: 100 * row.loss,
    ),
    Curves(
        "risk",
        gettext("Risk over k"),
        gettext("mean risk to be named, %"),
        gettext(
            "The chance to pick a person's record out of its class, on average over all people."
            " Shaded is what lies above 1 / k, the most that k allows anybody."
        ),
        _mean_risk,
        is_log=True,
        bound=lambda k: 100 / k,
    ),
    Curves(
        "discernibility",
        gettext("Discernibility over k"),
        gettext("discernibility / (records × k)"),
        gettext(
            "How many records look like a record on average, as a multiple of k. 1 is the best"
            " possible where nobody has two records; uneven classes and suppressed records cost"
            " more."
        ),
        _crowd,
    ),
    Curves(
        "seconds",
        gettext("Time over k"),
        gettext("CPU seconds of the method"),
        gettext(
            "One run of the method alone, compiled before. Another machine takes another time;"
            " the order tends to stay."
        ),
        lambda row: row.seconds,
        is_log=True,
    ),
)


def drawn_methods(comparison: Measured) -> tuple[str, ...]:
    """The methods that have a curve: those that lose least, where there are too many."""
    return comparison.methods[:MOST_CURVES]


def chart_of(curves: Curves, comparison: Measured) -> charts.Chart:
    """One chart with a curve for each of `drawn_methods`."""
    ks = tuple(k for k in comparison.ks if any(row.k == k for row in comparison.releases))
    methods = drawn_methods(comparison)
    points = {method: _points(curves, comparison, method) for method in methods}

    def draw(axes: Axes) -> None:
        for i, method in enumerate(methods):
            axes.plot(
                list(points[method]),
                list(points[method].values()),
                linewidth=1.5,
                markersize=4.5,
                clip_on=False,
                **style(i),
            )
        _scale(axes, curves, ks)
        if curves.bound is not None:
            _shade(axes, ks, [curves.bound(k) for k in ks])
        _name_curves(axes, points)

    return charts.Chart(curves.title, _told(curves, points), HEIGHT, draw)


def style(i: int) -> dict[str, Any]:
    """Colour and marker of the curve of this number."""
    return {"color": COLOURS[i % len(COLOURS)], "marker": MARKERS[i % len(MARKERS)]}


def _points(curves: Curves, comparison: Measured, method: str) -> dict[int, float]:
    """The figure at every k at which the method has a release; a logarithm leaves zeros out."""
    found = {row.k: curves.value(row) for row in comparison.releases if row.label == method}
    return {
        k: v
        for k, v in found.items()
        if v is not None and np.isfinite(v) and (v > 0 or not curves.is_log)
    }


# Names at the ends of curves


def _name_curves(axes: Axes, points: Mapping[str, Mapping[int, float]]) -> None:
    """Each name behind its curve's marker right of the axes, near the curve's last point."""
    to_share = axes.transData + axes.transAxes.inverted()
    named = [(i, name) for i, name in enumerate(points) if points[name]]
    ends = [list(points[name].items())[-1] for _, name in named]
    wanted = [float(to_share.transform(end)[1]) for end in ends]
    names = [in_lines(name) for _, name in named]
    places = apart(wanted, [LINE * len(lines) for lines in names])
    for (i, _), end, lines, place in zip(named, ends, names, places, strict=True):
        axes.annotate(
            "",
            xy=end,
            xytext=(BESIDE, place),
            textcoords="axes fraction",
            annotation_clip=False,
            arrowprops={
                "arrowstyle": "-",
                "color": style(i)["color"],
                "linewidth": 0.6,
                "shrinkA": 2,
                "shrinkB": 4,
            },
        )
        axes.plot(
            [BESIDE], [place], transform=axes.transAxes, clip_on=False, markersize=4.5, **style(i)
        )
        axes.text(
            BESIDE + 0.025,
            place,
            "\n".join(lines),
            transform=axes.transAxes,
            color=charts.INK,  # a thin letter needs more contrast than a curve
            fontsize=8,
            va="center",
            ha="left",
        )


def in_lines(name: str) -> list[str]:
    """A method and its parameters on lines short enough to stand beside a chart."""
    lines = [""]
    for part in name.replace(":", ":\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > LETTERS:
            lines.append("")
        lines[-1] += part
    return [charts.shortened(line) for line in lines]


def apart(wanted: Sequence[float], heights: Sequence[float]) -> list[float]:
    """Places nearest to those wanted at which names of these heights don't overlap.

    Neighbours that would overlap form a block, which is centred on what its names want.
    """
    order = np.argsort(wanted, kind="stable")
    blocks: list[list[int]] = []
    for i in order.tolist():
        blocks.append([i])
        while len(blocks) > 1:
            above = _bottom(blocks[-2], wanted, heights) + sum(heights[i] for i in blocks[-2])
            if above <= _bottom(blocks[-1], wanted, heights):
                break
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    places = [0.0] * len(wanted)
    for block in blocks:
        reached = _bottom(block, wanted, heights)
        for i in block:
            places[i] = reached + heights[i] / 2
            reached += heights[i]
    return places


def _bottom(block: Sequence[int], wanted: Sequence[float], heights: Sequence[float]) -> float:
    centre = sum(wanted[i] for i in block) / len(block)
    return centre - sum(heights[i] for i in block) / 2


# Axes


def _scale(axes: Axes, curves: Curves, ks: tuple[int, ...]) -> None:
    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(NullLocator())
    axes.set_xticks(_ticks(ks))
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
        axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.grid(axis="y")


def _shade(axes: Axes, ks: Sequence[int], bounds: Sequence[float]) -> None:
    """What lies above the bounds; the axis keeps its ends, but for the first bound."""
    low, high = axes.get_ylim()
    high = max(high, 1.15 * bounds[0])
    axes.fill_between(ks, bounds, high, color=charts.GRID, alpha=0.6, linewidth=0, zorder=0)
    axes.set_ylim(low, high)


def _ticks(ks: tuple[int, ...]) -> list[int]:
    """The ks whose numbers fit side by side, the first always."""
    least = NEAR * np.log(ks[-1] / ks[0])
    kept = [ks[0]]
    for k in ks[1:]:
        if np.log(k / kept[-1]) >= least:
            kept.append(k)
    return kept


def _told(curves: Curves, points: Mapping[str, Mapping[int, float]]) -> str:
    """The chart in words: every method at the least and the greatest k that it reaches."""
    parts = []
    for method, values in points.items():
        reached = list(values.items())
        ends = [
            gettext("{value:,.4g} at k = {k}", value=value, k=k)
            for k, value in reached[:1] + reached[1:][-1:]
        ]
        parts.append(f"{method}: {gettext(' and ').join(ends) or gettext('nothing')}")
    return f"{curves.axis}; " + "; ".join(parts)
