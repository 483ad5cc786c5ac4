"""Figures as SVG: the same rows give the same bytes."""

from __future__ import annotations

import io
from textwrap import fill
from typing import Any

from shoal_papers.reproduce.paper import Figure, View

# Okabe and Ito's colours, a grey and a wine red, which the colour-blind can distinguish; markers
# work in grey
STYLES = (
    ("#0072B2", "o", "-"),
    ("#D55E00", "s", "--"),
    ("#009E73", "^", "-."),
    ("#CC79A7", "D", ":"),
    ("#E69F00", "v", "-"),
    ("#56B4E9", "P", "--"),
    ("#000000", "x", "-."),
    ("#7F7F7F", "*", ":"),
    ("#882255", "h", "-"),
)
MOST = 7
"""Curves of a figure at most: more can't be told apart."""

NOTE_WIDTH = 110  # letters that fit below the narrower figure
BOLD = 2.0  # the paper's own method, which comes first
RULES: Any = {
    "svg.hashsalt": "shoal",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 9.0,
}


def draw(figure: Figure, view: View, note: str) -> str:
    """The figure's curves, with the spread of repeats where it has one; `note` names the data
    below.
    """
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(RULES):
        width = 6.8 if figure.has_legend_beside else 5.2
        canvas = Canvas(figsize=(width, 3.9), layout="constrained")
        axes = canvas.subplots()
        for i, (curve, points) in enumerate(figure.points(view).items()):
            colour, marker, line = STYLES[figure.styles.get(curve, i)]
            axes.errorbar(
                list(points),
                list(points.values()),
                yerr=_spread(figure, view, curve),
                label=curve,
                color=colour,
                marker=marker,
                linestyle=line,
                linewidth=1.2 if i else BOLD,
                markersize=4.5,
                capsize=2,
                elinewidth=0.8,
            )
        axes.set(title=figure.title, xlabel=figure.x_label, ylabel=figure.y_label)
        axes.set_yscale("log" if figure.is_log else "linear")
        if figure.has_log_x:
            axes.set_xscale("log")
        axes.grid(color="#dddddd", linewidth=0.6)
        if figure.has_legend_beside:
            canvas.legend(fontsize=8, loc="outside right upper")
        else:
            axes.legend(fontsize=8)
        canvas.supxlabel(fill(note, NOTE_WIDTH), fontsize=6.5, color="#555555")
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": "shoal"})
    return text.getvalue()


def _spread(figure: Figure, view: View, curve: str) -> list[list[float]] | None:
    """How far the repeats lie below and above each point."""
    if figure.low is None or figure.high is None:
        return None
    middle, low, high = (
        list(view.points(curve, column, figure.x).values())
        for column in (figure.y, figure.low, figure.high)
    )
    return [
        [m - a for m, a in zip(middle, low, strict=True)],
        [b - m for m, b in zip(middle, high, strict=True)],
    ]
