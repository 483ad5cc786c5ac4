"""The comparison as a page that can be handed on: what to take and why, curves over k, and the
whole table.

As every report it needs nothing but itself and shows no value of the data: figures are measures of
releases, names are those of methods and attributes.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec

import numpy as np

from shoal.advise import comparison
from shoal.advise.compare import compare as measure_all
from shoal.advise.comparison import Row, percent
from shoal.data import notebook
from shoal.data.language import gettext
from shoal.errors import InputError
from shoal.reports import charts, comparison_table, pages
from shoal.version import VERSION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Asked = ParamSpec("Asked")
Measured = comparison.Comparison


class Comparison(comparison.Comparison):
    """Methods and values of k, measured on one table: rows, advice and a figure."""

    def __repr__(self) -> str:
        """The table of `shoal compare`."""
        return comparison_table.as_text(self)

    def _repr_html_(self) -> str:
        """The table and its notes, for a notebook."""
        heads, *rows = comparison_table.table_of(self)
        below = [notebook.sentence(f"{note}.") for note in comparison_table.notes(self)]
        return notebook.section(notebook.table(heads, rows), *below)

    def plot(self) -> "Figure":
        """A figure of Matplotlib: what each method loses, leaves at risk and takes, over k.

        Raises InputError where no method has a release to draw.
        """
        from shoal.reports.figures import figure_of  # which few comparisons need

        if not self.releases:
            raise InputError("plot: no method has a release to draw; the table says why")
        return figure_of([chart_of(curves, self) for curves in CHARTS if self.releases])


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
    pages.write_page(render(comparison), path)


def render(comparison: Measured) -> str:
    """The page; the same for the same measures."""
    return pages.render_template("compare.html.j2", _content(comparison))


def _content(comparison: Measured) -> pages.Content:
    return {
        "shoal": VERSION,
        "comparison": comparison,
        "advice": comparison.recommendation,
        "publish": _publish(comparison),
        "tables": [comparison_table.columns(comparison), comparison_table.more_columns(comparison)],
        "ranked": {k: comparison.ranked(k) for k in comparison.ks},
        "percent": percent,
        "curves": [
            (curves.caption, chart_of(curves, comparison))
            for curves in CHARTS
            if comparison.releases
        ],
        "undrawn": comparison.methods[MOST_CURVES:],
        "faults": comparison_table.faults(comparison),
        "reasons": comparison_table.reasons(comparison),
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
    k = f" --k {advice.k}" if advice.k > 1 else ""  # 1 is the policy as it is
    return (
        f"shoal publish INPUT -p POLICY -o OUTPUT{k} --method {name}{changes}"
        f" --seed {comparison.seed}"
    )


# The curves of a comparison over k: one for each of the methods that lose least.
#
# A curve is known by its colour and its marker, so that it can be distinguished on paper,
# too, and by readers who see few colours.


# Okabe and Ito's colours where they can be read on white and on black alike, the page's ink, a
# violet and an ochre
COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "ink", "#8a63d2", "#a6761d")
MARKERS = ("circle", "square", "up", "diamond", "down", "plus", "cross")
MOST_CURVES = len(COLOURS)
MOST_TICKS = 9  # of a logarithmic axis
NEAR = 0.045  # ticks nearer than this share of the axis would write over one another
HEIGHT = 215  # points of a chart
LETTERS = 48  # of a name


@dataclass(frozen=True)
class Curves:
    """One chart over k, a curve for every method. value: of a row that has a release.

    bound: the most that k allows; what lies above is shaded.
    """

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
        gettext("Loss over k"),
        gettext("detail lost (gcp), %"),
        gettext(
            "How much of its attribute's domain a published cell leaves open, on average: 0 % is"
            " the original."
        ),
        lambda row: 100 * row.loss,
    ),
    Curves(
        gettext("Risk over k"),
        gettext("prosecutor mean, % (grey: above 1/k)"),
        gettext(
            "The chance to pick a person out of the people of a class, on average over all people."
            " Shaded is what lies above 1 / k, the most that k allows anybody."
        ),
        _mean_risk,
        is_log=True,
        bound=lambda k: 100 / k,
    ),
    Curves(
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


def chart_of(curves: Curves, comparison: Measured) -> charts.Chart:
    """One chart with a curve for each method: those that lose least, where there are too many."""
    ks = tuple(k for k in comparison.ks if any(row.k == k for row in comparison.releases))
    methods = comparison.methods[:MOST_CURVES]
    points = {method: _points(curves, comparison, method) for method in methods}
    ticks = {float(k): f"{k:,}" for k in _ticks(ks)}
    x = charts.Axis("k", ks[0] / 1.08, ks[-1] * 1.08, ticks, has_grid=False, is_log=True)
    bounds = [] if curves.bound is None else [curves.bound(k) for k in ks]
    shown = [value for found in points.values() for value in found.values()] + bounds[:1]
    up_to = charts.axis_up_to(curves.axis, max(shown, default=0))
    y = _log_axis(curves.axis, shown) if curves.is_log else up_to
    shapes = []
    if bounds:  # what lies above them is shaded
        above = charts.line_of([*ks, ks[-1], ks[0]], [*bounds, y.high, y.high])
        shapes.append(charts.Shape(above, "grid", opacity=0.5))
    for colour, marker, (method, found) in zip(COLOURS, MARKERS, points.items(), strict=False):
        curve = charts.line_of([*found], [*found.values()])
        name = charts.shortened(method, LETTERS) if found else ""
        shapes.append(charts.Shape(curve, colour, name, width=1.5, marker=marker))
    height = HEIGHT + charts.LEGEND_LINE * (len(points) - 1)
    return charts.Chart(curves.title, _told(curves, points), height, x, y, shapes)


def _points(curves: Curves, comparison: Measured, method: str) -> dict[int, float]:
    """The figure at every k at which the method has a release; a logarithm leaves zeros out."""
    found = {row.k: curves.value(row) for row in comparison.releases if row.label == method}
    known = {k: v for k, v in found.items() if v is not None and np.isfinite(v)}
    return {k: v for k, v in known.items() if v > 0 or not curves.is_log}


# Axes


def _log_axis(label: str, shown: Sequence[float]) -> charts.Axis:
    """A logarithmic axis from a round number below what is shown to one above it."""
    low, high = min(shown, default=1) / 1.01, max(shown, default=1) * 1.01
    powers = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    ticks = [float(factor * power) for power in powers for factor in (1, 2, 5)]
    ticks = ticks[bisect_right(ticks, low) - 1 : bisect_left(ticks, high) + 1]
    step = 1 if len(ticks) <= MOST_TICKS else 3
    named = {at: f"{at:,.6g}" for at in ticks[::step]}
    return charts.Axis(label, ticks[0], ticks[-1], named, is_log=True)


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
