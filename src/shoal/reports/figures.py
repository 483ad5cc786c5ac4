"""Figures of Matplotlib for notebooks, of the charts that pages have."""

import sys
import warnings
from collections.abc import Sequence
from importlib import import_module
from io import BytesIO
from typing import Any

from matplotlib import style
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.collections import PolyCollection
from matplotlib.figure import Figure

from shoal.errors import InputError
from shoal.reports import distributions, pages
from shoal.reports.charts import LETTER, WIDTH, Chart, losses_chart, shortened

INCH = 72
ABOVE_LEGEND = 20  # points between axes and title, around one line of the legend
SIDE_BY_SIDE = 22  # letters of names of which two stand side by side
COLOURS = {"mark": "#b3450a", "before": "#a0a9b2", "after": "#0b62a4", "ink": "#101112"}
COLOURS |= {"grid": "#d0d1d2"}
MARKERS = {"circle": "o", "square": "s", "up": "^", "diamond": "D", "down": "v"}
MARKERS |= {"plus": "P", "cross": "X", "": ""}
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "shoal",
    "text.parse_math": False,
    "font.size": LETTER,
    "axes.spines.left": False,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": "#d0d1d2",
}


SPREAD = "The release's bars spread each published cell evenly over all values it covers."
ROUNDED = (
    "The original's stand for at least {least} people each, rounded to multiples of {least}"
    " records; fewer are not drawn, so that the two need not add up to the same."
)


class NotebookFigure(Figure):
    """A figure that a notebook shows although nobody imported pyplot."""

    is_shown = False

    def _repr_svg_(self) -> str:
        self.is_shown = True
        drawn = BytesIO()
        with style.context(["default", SETTINGS]), warnings.catch_warnings():
            # a letter that our own font lacks is the reader's font's business
            warnings.simplefilter("ignore")
            FigureCanvasSVG(self).print_svg(drawn)
        return drawn.getvalue().decode()


def _shown_below_cell(figure: NotebookFigure) -> None:
    """Shows a figure below the cell of a notebook that made it, as pyplot does, unless the cell has
    shown it: a semicolon or an assignment hides what the cell returns.
    """
    notebooks = sys.modules.get("IPython")
    shell: Any = None if notebooks is None else notebooks.get_ipython()
    if getattr(shell, "kernel", None) is None:
        return

    def after_cell() -> None:
        shell.events.unregister("post_execute", after_cell)
        if not figure.is_shown:
            import_module("IPython.display").display(figure)

    shell.events.register("post_execute", after_cell)


def figure_of_release(measured: pages.Measured, what: str) -> NotebookFigure:
    """The figure of a release that a notebook asked for: `sizes`, `columns` or `loss`."""
    found: list[Chart | None]
    losses = distributions.drawn_of(distributions.losses_of(measured))
    if what == "sizes":
        found = [distributions.sizes_chart(measured)]
    elif what == "loss":
        found = [losses_chart(losses)]
    else:
        found = [
            distributions.distribution_chart(each)
            for each in distributions.distributions_of(measured, losses)
        ]
    drawn = [chart for chart in found if chart is not None]
    if not drawn:
        raise InputError(f"plot '{what}': the release has nothing to draw; all of it is suppressed")
    figure = figure_of(drawn)
    if what == "columns":
        rounded = ROUNDED.format(least=distributions.least_shown(measured))
        figure.supxlabel(f"{SPREAD} {rounded}", fontsize=LETTER, wrap=True)
    return figure


def figure_of(charts: Sequence[Chart]) -> NotebookFigure:
    """One figure with all the charts, two in a row."""
    columns = min(len(charts), 2)
    rows = [charts[i : i + columns] for i in range(0, len(charts), columns)]
    heights = [max(chart.height for chart in row) / INCH + 0.35 for row in rows]
    size = WIDTH / INCH * columns, sum(heights)
    with style.context(["default", SETTINGS]):
        figure = NotebookFigure(figsize=size, layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
        for axes, chart in zip(grid.flat, charts, strict=False):
            _draw(axes, chart)
        for axes in grid.flat[len(charts) :]:
            axes.set_axis_off()
    _shown_below_cell(figure)
    return figure


def _draw(axes: Axes, chart: Chart) -> None:
    x, y = chart.x, chart.y
    axes.set(xlabel=x.label, ylabel=y.label)
    axes.set(xscale="log" if x.is_log else "linear", yscale="log" if y.is_log else "linear")
    axes.set(xlim=(x.low, x.high), ylim=(y.low, y.high))
    axes.minorticks_off()
    axes.set_xticks(list(x.ticks), list(x.ticks.values()))
    axes.set_yticks(list(y.ticks), list(y.ticks.values()))
    axes.xaxis.grid(x.has_grid)
    axes.yaxis.grid(y.has_grid)
    for shape in chart.shapes:
        colour = COLOURS.get(shape.colour, shape.colour)
        for part in shape.points:
            marked: Any = {"color": colour, "marker": MARKERS[shape.marker], "linestyle": ""}
            name = shape.name if shape.marker else None  # the legend shows the marker then
            axes.plot(part[:, 0], part[:, 1], label=name, **marked)
        drawn = PolyCollection(
            list(shape.points),
            closed=not shape.width,
            facecolor="none" if shape.width else colour,
            edgecolor=colour if shape.width else "none",
            linewidth=shape.width,
            linestyle="--" if shape.is_dashed else "-",
            alpha=shape.opacity,
            label="" if shape.marker else shape.name,
        )
        axes.add_collection(drawn)
    for text in chart.texts:
        axes.annotate(
            text.words,
            (text.x, text.y),
            (text.right, -text.down),
            textcoords="offset points",
            annotation_clip=False,
            color=COLOURS.get(text.colour, text.colour),
            ha="right" if text.anchor == "end" else "left",
            va="center",
        )
    names = [shape.name for shape in chart.shapes if shape.name]
    columns = 2 if max(map(len, names), default=0) <= SIDE_BY_SIDE else 1
    if names:
        place: Any = {"loc": "lower left", "bbox_to_anchor": (0, 1), "borderaxespad": 0}
        axes.legend(**place, borderpad=0.2, frameon=False, ncols=columns)
    above = ABOVE_LEGEND + 1.5 * LETTER * max(-(-len(names) // columns) - 1, 0)
    axes.set_title(shortened(chart.title), loc="left", pad=above, fontsize=LETTER)
