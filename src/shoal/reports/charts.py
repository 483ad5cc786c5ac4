"""Charts: inline SVG for pages, and figures for notebooks.

In a page: no font, script or file from elsewhere, the same bytes for the same figures.
Colours are CSS variables of the page, so that charts follow it into dark mode and print. Before and
after differ in lightness as well as in hue.
"""

from __future__ import annotations

import re
import textwrap
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from io import BytesIO
from itertools import pairwise
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from markupsafe import Markup, escape
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from shoal.data.language import gettext
from shoal.data.printable import printable, readable

WIDTH = 4.7
MOST_LETTERS = 24
# what is drawn in this colour takes the page's variable of that name
INK, MUTED, GRID = "#101112", "#606162", "#d0d1d2"
BEFORE, AFTER, MARK = "#a0a9b2", "#0b62a4", "#b3450a"
ORIGINAL, RELEASE = gettext("original"), gettext("release")
NAMES = ("ink", "muted", "grid", "before", "after", "mark")
VARIABLES = dict(zip((INK, MUTED, GRID, BEFORE, AFTER, MARK), NAMES, strict=True))
COLOURS = re.compile(rf"(?:{'|'.join(VARIABLES)})\b")
SETTINGS: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "shoal",
    "text.parse_math": False,
    "font.size": 9,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "text.color": INK,
    "xtick.color": GRID,
    "ytick.color": GRID,
    "xtick.labelcolor": MUTED,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
}


class NotebookFigure(Figure):
    """A figure that a notebook shows although nobody imported pyplot."""

    def _repr_svg_(self) -> str:
        drawn = BytesIO()
        with _settings():
            FigureCanvasSVG(self).print_svg(drawn)
        return drawn.getvalue().decode()


@dataclass(frozen=True)
class Chart:
    """What is drawn, for a page or for a figure. description: in words; height: in inches."""

    title: str
    description: str
    height: float
    draw: Callable[[Axes], None]

    def svg(self, key: str) -> Markup:
        """The chart as an element of a page. key: makes its ids unlike those of other charts."""
        with _settings():
            figure = Figure(figsize=(WIDTH, self.height), layout="constrained")
            canvas = FigureCanvasSVG(figure)
            figure.patch.set_alpha(0.0)
            axes = figure.subplots()
            axes.patch.set_alpha(0.0)
            self.draw(axes)
            drawn = BytesIO()
            nothing: dict[str, None] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
            canvas.print_svg(drawn, metadata=nothing)
        return _inlined(drawn.getvalue().decode(), key, self.title, self.description)


def figure_of(charts: Sequence[Chart]) -> NotebookFigure:
    """One figure with all the charts, two in a row."""
    columns = min(len(charts), 2)
    rows = [charts[i : i + columns] for i in range(0, len(charts), columns)]
    heights = [max(chart.height for chart in row) + 0.35 for row in rows]
    with _settings():
        figure = NotebookFigure(figsize=(WIDTH * columns, sum(heights)), layout="constrained")
        grid = figure.subplots(len(rows), columns, squeeze=False, height_ratios=heights)
        for axes, chart in zip(grid.flat, charts, strict=False):
            chart.draw(axes)
            axes.set_title(shortened(chart.title), loc="left", pad=18, fontsize=10)
        for axes in grid.flat[len(charts) :]:
            axes.set_axis_off()
    return figure


@contextmanager
def _settings() -> Iterator[None]:
    """Our own settings, whatever the user's are."""
    with warnings.catch_warnings(), mpl.rc_context():
        # a letter that our own font lacks is the reader's font's business
        warnings.simplefilter("ignore")
        mpl.rcdefaults()
        mpl.rcParams.update(SETTINGS)
        yield


def class_sizes_chart(sizes: np.ndarray, counts: np.ndarray, asked: int | None, unit: str) -> Chart:
    """How many classes have how many people. sizes, counts: (m,) as of `class_sizes`; unit: what is
    counted.
    """
    most = _usual_size(sizes, counts)
    usual = sizes <= most
    edges, heights = _grouped(sizes[usual], counts[usual])
    larger = int(counts[~usual].sum())

    def draw(axes: Axes) -> None:
        axes.bar(edges[:-1], heights, np.diff(edges) * 0.9, align="edge", color=AFTER)
        if asked is not None:  # a class left of the line would have too few
            axes.axvline(asked - 0.6, color=MARK, linewidth=1.4, linestyle=(0, (4, 2)))
            axes.text(
                asked - 0.6,
                axes.get_ylim()[1],
                gettext("k = {asked} asked", asked=asked),
                color=MARK,
                va="bottom",
                ha="left",
            )
            axes.set_xlim(
                left=min(asked - 0.6, float(edges[0])) - 0.02 * float(edges[-1] - edges[0])
            )
        if larger:
            axes.text(
                1,
                1,
                gettext("{larger:,} larger, up to {max:,}", larger=larger, max=sizes.max()),
                transform=axes.transAxes,
                va="bottom",
                ha="right",
            )
        axes.set_xlabel(gettext("{unit} in a class", unit=unit))
        axes.set_ylabel(gettext("classes"))
        axes.grid(axis="y")
        axes.xaxis.set_major_locator(MaxNLocator(8, integer=True, min_n_ticks=1))
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))

    description = gettext(
        "{sum:,} classes of {min:,} to {max:,} {unit}",
        sum=int(counts.sum()),
        min=int(sizes.min()),
        max=int(sizes.max()),
        unit=unit,
    )
    return Chart(gettext("Class sizes"), description, 2.5, draw)


def _usual_size(sizes: np.ndarray, counts: np.ndarray) -> int:
    """The greatest size to draw: all of them, unless a few classes are far larger than the
    others.
    """
    usual = max(
        int(sizes[np.searchsorted(np.cumsum(counts), 0.98 * counts.sum())]), 2 * int(sizes.min())
    )
    return usual if sizes.max() > 3 * usual else int(sizes.max())


def _grouped(
    sizes: np.ndarray, counts: np.ndarray, most: int = 40
) -> tuple[np.ndarray, np.ndarray]:
    """One bar per size, or per as many neighbouring sizes as keep it to `most` bars."""
    step = -(-int(sizes.max() - sizes.min() + 1) // most)
    edges = np.arange(sizes.min(), sizes.max() + step + 1, step).astype(np.float64) - 0.45
    return edges, np.histogram(sizes, edges, weights=counts)[0]


def losses_chart(losses: dict[str, float | None]) -> Chart:
    """Loss of every quasi-identifier in percent, one bar each."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(losses), dtype=np.float64)
        shares = np.array([100 * (loss or 0.0) for loss in losses.values()])
        axes.barh(places, shares, 0.62, color=AFTER)
        for place, share, loss in zip(places, shares, losses.values(), strict=True):
            text = gettext("not known") if loss is None else f"{share:.1f} %"
            axes.text(share + 1.2, place, text, va="center", ha="left", color=INK)
        axes.set_xlim(0, 112)
        axes.set_xticks([0, 25, 50, 75, 100])
        axes.set_xlabel(gettext("% of the detail lost"))
        _name_rows(axes, list(losses))
        axes.grid(axis="x")

    known = [f"{name} {100 * loss:.1f} %" for name, loss in losses.items() if loss is not None]
    return Chart(gettext("Loss per attribute"), "; ".join(known), 0.75 + 0.27 * len(losses), draw)


def attacks_chart(
    bars: Sequence[tuple[str, Sequence[tuple[float, float, float] | None]]],
) -> Chart:
    """Members, others and chance for each attack, in percent, with whiskers.

    bars: by row the share and both ends of its interval of each group, None where there is none.
    """
    groups = (
        (gettext("in the release"), AFTER),
        (gettext("not in it"), BEFORE),
        (gettext("by chance"), MARK),
    )

    def draw(axes: Axes) -> None:
        for i, (group, colour) in enumerate(groups):
            shown = [(place, parts[i]) for place, (_, parts) in enumerate(bars)]
            rows = [[place + 0.26 * (i - 1), *part] for place, part in shown if part is not None]
            if rows:
                _whiskered(axes, np.array(rows), group, colour)
        _name_rows(axes, [name for name, _ in bars], lines=2)
        axes.set_xlim(0, 100)
        axes.set_xlabel(gettext("% of people or of trials"))
        axes.grid(axis="x")
        _legend(axes, "lower right", 1.0, ncols=3, handlelength=1.0, columnspacing=1.0)

    said = "; ".join(f"{name}: {parts[0][0]:.1f} %" for name, parts in bars if parts[0])
    return Chart(gettext("Attacks"), said, 0.9 + 0.36 * len(bars), draw)


def _whiskered(axes: Axes, rows: np.ndarray, group: str, colour: str) -> None:
    """Bars with their intervals; rows: (m, 4) place, share and both ends."""
    place, share, low, high = rows.T
    axes.barh(place, share, 0.24, color=colour, label=group)
    wide = high > low
    reach = np.stack([share - low, high - share])[:, wide]
    axes.errorbar(
        share[wide],
        place[wide],
        xerr=np.maximum(reach, 0),
        fmt="none",
        ecolor=INK,
        elinewidth=0.9,
        capsize=2,
    )


def labels_chart(
    title: str, labels: Sequence[str], before: np.ndarray | None, after: np.ndarray
) -> Chart:
    """Two bars per label, in percent of the records. before: NaN where nothing is shown."""

    def draw(axes: Axes) -> None:
        places = np.arange(len(labels), dtype=np.float64)
        if before is None:
            axes.barh(places, after, 0.6, color=AFTER)
        else:
            axes.barh(places - 0.2, np.nan_to_num(before), 0.36, color=BEFORE, label=ORIGINAL)
            axes.barh(places + 0.2, after, 0.36, color=AFTER, label=RELEASE)
            _legend(axes, "lower left", 0, ncols=2, borderpad=0.2, handlelength=1.3)
        _name_rows(axes, labels)
        axes.set_xlim(left=0)
        axes.set_xlabel(gettext("% of the records"))
        axes.grid(axis="x")

    return Chart(title, _told(labels, before, after), 0.85 + 0.29 * len(labels), draw)


def intervals_chart(
    title: str, edges: np.ndarray, before: np.ndarray | None, after: np.ndarray
) -> Chart:
    """Two stepped outlines over intervals of different widths, the area being percent of the
    records.

    edges: (m + 1,). before, after: (m,) percent in each interval; before is NaN where nothing is
    shown.
    """
    step = float(np.diff(edges).min())

    def draw(axes: Axes) -> None:
        per_step = step / np.diff(edges)
        if before is not None:
            axes.stairs(
                np.nan_to_num(before) * per_step,
                edges,
                fill=True,
                color=BEFORE,
                label=ORIGINAL,
            )
        axes.stairs(
            after * per_step,
            edges,
            color=AFTER,
            linewidth=1.7,
            baseline=None,
            label=RELEASE,
        )
        if before is not None:
            _legend(axes, "lower left", 0, ncols=2, borderpad=0.2, handlelength=1.3)
        axes.set_ylim(bottom=0)
        axes.set_xlabel(title)
        height = gettext("% of the records")
        if step != 1:
            height = gettext("% of the records per {step:,.6g}", step=step)
        axes.set_ylabel(height)
        axes.xaxis.set_major_locator(MaxNLocator(7))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.10g}"))
        axes.yaxis.set_major_locator(MaxNLocator(5))
        axes.grid(axis="y")

    labels = [
        gettext("{low:,.6g} to {high:,.6g}", low=low, high=high) for low, high in pairwise(edges)
    ]
    return Chart(title, _told(labels, before, after), 2.5, draw)


def _told(labels: Sequence[str], before: np.ndarray | None, after: np.ndarray) -> str:
    """The chart in words: the three largest bars, before and after."""
    parts = []
    for i in np.argsort(-after, kind="stable")[:3]:
        label, was = shortened(labels[i]), ""
        if before is not None and not np.isnan(before[i]):
            was = gettext("original {share:.1f} %, ", share=before[i])
        said = gettext("{label}: {was}release {share:.1f} %", label=label, was=was, share=after[i])
        parts.append(said)
    return "; ".join(parts)


def _name_rows(axes: Axes, names: Sequence[str], lines: int = 1) -> None:
    """Names at the left, the first at the top. lines: that each may take."""
    axes.set_yticks(np.arange(len(names)), [_wrapped(name, lines) for name in names])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _legend(axes: Axes, loc: Literal["lower left", "lower right"], x: float, **spaces: Any) -> None:
    """The names of what is drawn, above the axes. loc: the corner that stands at x."""
    axes.legend(loc=loc, bbox_to_anchor=(x, 1.0), borderaxespad=0, labelcolor=INK, **spaces)


def _wrapped(name: str, lines: int) -> str:
    """A name on at most these lines, cut short where they are not enough."""
    if lines == 1:
        return shortened(name)
    return textwrap.fill(printable(name), MOST_LETTERS, max_lines=lines, placeholder="…")


def shortened(text: str) -> str:
    """The text on one line of bounded length, without what can't be printed."""
    clean = printable(text)
    return clean if len(clean) <= MOST_LETTERS else clean[: MOST_LETTERS - 1] + "…"


def _inlined(svg: str, key: str, title: str, description: str) -> Markup:
    body = svg[svg.index("<svg") :]
    view = re.search(r'viewBox="([^"]+)"', body)
    assert view is not None
    body = body[body.index(">") + 1 :]
    body = re.sub(r"<metadata>.*?</metadata>", "", body, flags=re.DOTALL)
    body = re.sub(r"<!--.*?-->", "", body, flags=re.DOTALL)
    body = re.sub(r"<[^>]*>", lambda tag: _adapted(tag[0], key), body)
    body = re.sub(r"\n\s*", "\n", body)
    head = (
        f'<svg viewBox="{view[1]}" role="img" aria-labelledby="{key}-title {key}-text"><title'
        f' id="{key}-title">{escape(title)}</title><desc'
        f' id="{key}-text">{escape(description)}</desc>'
    )
    return Markup(readable(head + body.strip()))


def _adapted(tag: str, key: str) -> str:
    """A tag with ids of its own and the page's colours."""
    tag = re.sub(r'\bid="', f'id="{key}-', tag)
    tag = tag.replace("url(#", f"url(#{key}-").replace('xlink:href="#', f'href="#{key}-')
    return COLOURS.sub(lambda found: f"var(--{VARIABLES[found[0]]}, {found[0]})", tag)
