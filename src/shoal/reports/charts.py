"""Charts: what is drawn, in the units of its axes, and as inline SVG for pages.

In a page: no font, script or file from elsewhere, the same bytes for the same figures.
Colours are CSS variables of the page, so that charts follow it into dark mode and print. Before and
after differ in lightness as well as in hue.
"""

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from unicodedata import east_asian_width

import numpy as np
from numpy.typing import ArrayLike

from shoal.data.certificate_shape import SampleReport
from shoal.data.language import gettext, printable
from shoal.data.single_ends import step_of
from shoal.privacy.reidentification import BINS

WIDTH, LETTER = 340.0, 10.0  # of a chart, and the height of its letters, in points
TOP, BOTTOM = 18.0, 30.0  # its room above and below the axes
LEGEND_LINE = 13.0  # from one line of its legend to the next
NARROW, BROAD = frozenset("fijlrt.,:;'|!()[] "), frozenset("mwMW@%…")
MOST_LETTERS = 24
MOST_BARS = 40  # of class sizes
ORIGINAL, RELEASE = gettext("original"), gettext("release")

Numbers: TypeAlias = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class Axis:
    """An axis between two numbers. ticks: what is written at which number.

    has_grid: lines cross the chart at the ticks.
    """

    label: str
    low: float
    high: float
    ticks: Mapping[float, str]
    has_grid: bool = True
    is_log: bool = False

    def shares(self, numbers: np.ndarray) -> np.ndarray:
        """How far along the axis the numbers are: 0 at its low end, 1 at its high end."""
        scale = np.log if self.is_log else np.positive
        low, high = scale(self.low), scale(self.high)
        return (scale(numbers) - low) / (high - low)

    def number_at(self, share: float) -> float:
        """The number so far along the axis."""
        if self.is_log:
            return self.low * (self.high / self.low) ** share
        return self.low + share * (self.high - self.low)


def round_axis(
    label: str, low: float, high: float, most: int, *, whole: bool = False, has_grid: bool = True
) -> Axis:
    """An axis with ticks at round numbers: as many steps as have room, at most `most`."""
    ticks: dict[float, str] = {}
    for parts in range(most, 0, -1):
        step = max(step_of(20 * (high - low) / parts), 1.0 if whole else 0.0)
        first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
        ticks = {i * step: f"{i * step:,.10g}" for i in range(first, last + 1)}
        if sum(map(text_width, ticks.values())) < 0.6 * WIDTH:
            break
    return Axis(label, low, high, ticks, has_grid)


def axis_up_to(label: str, highest: float, *, whole: bool = False, most: int = 6) -> Axis:
    """An axis from 0 to a little above the highest number."""
    return round_axis(label, 0.0, 1.05 * highest or 1.0, most, whole=whole)


@dataclass(frozen=True)
class Shape:
    """Lines, or areas where the line has no width.

    points: (parts, corners, 2) float64 in the units of the axes. colour: a variable of the page, or
    as #rrggbb. name: in the legend, if any. marker: at every corner.
    """

    points: np.ndarray
    colour: str
    name: str = ""
    width: float = 0.0
    is_dashed: bool = False
    opacity: float = 1.0
    marker: str = ""


@dataclass(frozen=True)
class Text:
    """Words at a place in the units of the axes, moved by points to the right and down.

    The middle of the lines is at the place, as is their start, middle or end, as anchor says.
    """

    x: float
    y: float
    words: str
    right: float = 0.0
    down: float = 0.0
    colour: str = "ink"
    anchor: str = "start"
    is_turned: bool = False


@dataclass(frozen=True)
class Chart:
    """What is drawn, for a page or for a figure. description: in words; height: in points."""

    title: str
    description: str
    height: float
    x: Axis
    y: Axis
    shapes: Sequence[Shape]
    texts: Sequence[Text] = ()

    def on_page(self) -> tuple[list[Shape], list[Text]]:
        """All that a page draws, in points from the upper left corner; a line of text each."""
        x, y = self.x, self.y
        left = max(map(text_width, y.ticks.values()), default=0) + (20 if y.label else 7)
        right = max(map(text_width, x.ticks.values()), default=0) / 2
        marks, names, top = self._legend(left)
        extent = np.array([WIDTH - left - right, self.height - top - BOTTOM])

        def placed(points: np.ndarray) -> np.ndarray:
            shares = [x.shares(points[..., 0]), 1 - y.shares(points[..., 1])]
            return np.round(np.stack(shares, axis=-1) * extent + (left, top), 1)

        floor, middle = y.number_at(0), x.number_at(0.5)
        levels = [floor, *(y.ticks if y.has_grid else ())]
        upright = list(x.ticks if x.has_grid else ())
        shapes = [
            Shape(boxes(x.low, x.high, levels, levels)[:, :2], "grid", width=0.6),
            Shape(boxes(upright, upright, y.low, y.high)[:, 1:3], "grid", width=0.6),
            *self.shapes,
        ]
        texts = [
            *(Text(at, floor, name, 0, 9, "muted", "middle") for at, name in x.ticks.items()),
            *(Text(x.low, at, name, -5, anchor="end") for at, name in y.ticks.items()),
            Text(middle, floor, x.label, 0, 22, "muted", "middle"),
            Text(x.low, y.number_at(0.5), y.label, 10 - left, 0, "muted", "middle", True),
            *self.texts,
        ]
        shapes = [replace(shape, points=placed(shape.points)) for shape in shapes]
        places = placed(np.array([(text.x, text.y) for text in texts]))
        lines = [line for text, at in zip(texts, places, strict=True) for line in _lines(text, *at)]
        return [*shapes, *marks], [*lines, *names]

    def _legend(self, left: float) -> tuple[list[Shape], list[Text], float]:
        """The legend's marks and names on as many lines as they need; the room above the axes."""
        named = [shape for shape in self.shapes if shape.name]
        widths = [text_width(shape.name) + 30 for shape in named]
        start = max(0.0, min(left, WIDTH - sum(widths)))
        marks, names, at, down = [], [], start, 0.0
        for shape, width in zip(named, widths, strict=True):
            if at > start and at + width > WIDTH:
                at, down = start, down + LEGEND_LINE
            mark = line_of([at, at + 14], [7.0 + down, 7.0 + down])
            marks.append(replace(shape, points=mark, width=shape.width or 6.0))
            names.append(Text(at + 18, 10.5 + down, shape.name))
            at += width
        return marks, names, TOP + down


def _lines(text: Text, x: float, y: float) -> list[Text]:
    """The lines of a text, whose middle is at this point of the page before it is moved."""
    lines = text.words.split("\n")
    top = y + text.down + LETTER * (0.9 - 0.55 * len(lines))
    return [
        replace(text, x=x + text.right, y=round(top + 1.1 * LETTER * i, 1), words=line)
        for i, line in enumerate(lines)
        if line
    ]


def boxes(left: ArrayLike, right: ArrayLike, low: ArrayLike, high: ArrayLike) -> np.ndarray:
    """Rectangles between these sides; (m, 4, 2) float64, corners from low left to the right."""
    x0, x1, y0, y1 = np.broadcast_arrays(np.atleast_1d(left), right, low, high)
    return np.array([[x0, x1, x1, x0], [y0, y0, y1, y1]], dtype=np.float64).T


def line_of(x: ArrayLike, y: ArrayLike) -> np.ndarray:
    """The points of one line; (1, m, 2)."""
    return np.stack([x, y], axis=-1)[None]


def text_width(text: str) -> float:
    """Roughly how wide the longest line of a text is, in points, in a broad font."""
    return LETTER * max(sum(map(_letter_width, line)) for line in text.split("\n"))


def _letter_width(letter: str) -> float:
    if letter in BROAD or east_asian_width(letter) in "WF":
        return 1.0
    return 0.36 if letter in NARROW else 0.62


# The charts of reports


def class_sizes_chart(sizes: np.ndarray, counts: np.ndarray, asked: int | None, unit: str) -> Chart:
    """How many classes have how many of a unit. sizes, counts: (m,) as of `class_sizes`."""
    most = _usual_size(sizes, counts)
    usual = sizes <= most
    # one bar per size, or per as many neighbouring sizes as keep it to MOST_BARS
    step = -(-int(sizes[usual].max() - sizes.min() + 1) // MOST_BARS)
    edges = np.arange(sizes.min(), sizes[usual].max() + step + 1, step).astype(np.float64) - 0.45
    heights = np.histogram(sizes[usual], edges, weights=counts[usual])[0]
    larger = int(counts[~usual].sum())
    y = axis_up_to(gettext("classes"), heights.max(), whole=True)
    shapes = [Shape(boxes(edges[:-1], edges[:-1] + 0.9 * np.diff(edges), 0, heights), "after")]
    texts, low = [], float(edges[0])
    if asked is not None:  # a class left of the line would have too few
        at = asked - 0.6
        low = min(at, low)
        shapes.append(Shape(line_of([at, at], [0, y.high]), "mark", width=1.4, is_dashed=True))
        text = gettext("k = {asked} asked", asked=asked)
        texts.append(Text(at, y.high, text, 0, -7, "mark"))
    low -= 0.02 * (edges[-1] - low)
    x = round_axis(
        gettext("{unit} in a class", unit=unit), low, edges[-1], 8, whole=True, has_grid=False
    )
    if larger:
        text = gettext("{larger:,} larger, up to {max:,}", larger=larger, max=sizes.max())
        texts.append(Text(x.high, y.high, text, 0, -7, anchor="end"))
    description = gettext(
        "{sum:,} classes of {min:,} to {max:,} {unit}",
        sum=int(counts.sum()),
        min=int(sizes.min()),
        max=int(sizes.max()),
        unit=unit,
    )
    return Chart(gettext("Class sizes"), description, 180, x, y, shapes, texts)


def risks_chart(certificate: Mapping[str, Any]) -> Chart | None:
    """How many people have which individual risk, on a logarithmic scale, beside what is asked of
    the mean and of each person; None where no weights were known.
    """
    stated: SampleReport | None = certificate.get("individual_risk")
    if stated is None:
        return None
    edges, own, household = np.array(stated["edges"]), stated["own"], stated.get("household")
    alone, with_others = gettext("each person"), gettext("with household")
    named = {alone: own}
    shapes = [Shape(boxes(edges[:-1], edges[1:] * 0.97, 0, own["people"]), "after", alone)]
    if household is not None:
        named[with_others] = household
        stairs = line_of(np.repeat(edges, 2)[1:-1], np.repeat(household["people"], 2))
        shapes.append(Shape(stairs, "ink", with_others, width=1.4))
    ticks = {edge: f"{edge:g}" for edge in stated["edges"][::BINS]}
    x = Axis(gettext("individual risk"), edges[0], 1.0, ticks, has_grid=False, is_log=True)
    most = max(max(risks["people"]) for risks in named.values())
    y = axis_up_to(gettext("people"), most, whole=True)
    bounds = {
        "global-risk": gettext("mean, at most {asked:.3g}"),
        "individual-risk": gettext("each, at most {asked:.3g}"),
    }
    for promise in certificate["promises"]:
        name = bounds.get(promise["model"])
        if name is not None:
            at = max(promise["asked"], x.low)
            line = line_of([at, at], [0, y.high])
            is_mean = promise["model"] == "global-risk"
            name = name.format(asked=promise["asked"])
            shapes.append(Shape(line, "mark", name, width=1.4, is_dashed=is_mean))
    said = [gettext("{count:,} people", count=sum(own["people"]))]
    said += [
        gettext("{who}: {mean:.3g} on average, {max:.3g} at most", who=who, **risks)
        for who, risks in named.items()
    ]
    return Chart(gettext("Individual risk"), "; ".join(said), 180, x, y, shapes)


def _usual_size(sizes: np.ndarray, counts: np.ndarray) -> int:
    """The greatest size to draw: the greatest, unless a few classes are far larger than others."""
    most = int(sizes[np.searchsorted(np.cumsum(counts), 0.98 * counts.sum())])
    usual = max(most, 2 * int(sizes.min()))
    return usual if sizes.max() > 3 * usual else int(sizes.max())


def losses_chart(losses: dict[str, float | None]) -> Chart:
    """Loss of every quasi-identifier in percent, one bar each."""
    shares = [100 * (loss or 0.0) for loss in losses.values()]
    bars = [_bars(shares, 0.0, 0.31, "after")]
    texts = []
    for row, (share, loss) in enumerate(zip(shares, losses.values(), strict=True)):
        words = gettext("not known") if loss is None else f"{share:.1f} %"
        texts.append(Text(share, row, words, 4))
    x = Axis(gettext("% of the detail lost"), 0, 115, {at: f"{at}" for at in (0, 25, 50, 75, 100)})
    known = [f"{name} {100 * loss:.1f} %" for name, loss in losses.items() if loss is not None]
    title, height = gettext("Loss per attribute"), 54 + 20 * len(losses)
    return Chart(title, "; ".join(known), height, x, _rows(list(losses)), bars, texts)


def attacks_chart(bars: Sequence[tuple[str, Sequence[tuple[float, float, float] | None]]]) -> Chart:
    """Members, others and chance for each attack, in percent, with whiskers.

    bars: by row the share and both ends of its interval of each group, None where there is none.
    """
    groups = (
        (gettext("in the release"), "after"),
        (gettext("not in it"), "before"),
        (gettext("by chance"), "mark"),
    )
    shapes, whiskers = [], []
    for i, (group, colour) in enumerate(groups):
        shown = [parts[i] or (0.0, 0.0, 0.0) for _, parts in bars]
        if any(parts[i] is not None for _, parts in bars):
            shapes.append(_bars([part[0] for part in shown], 0.26 * (i - 1), 0.12, colour, group))
        for row, (_, low, high) in enumerate(shown):
            if high > low:
                ends, at = [low, low, low, high, high, high], row + 0.26 * (i - 1)
                whiskers.append(line_of(ends, at + 0.07 * np.array([-1, 1, 0, 0, -1, 1])))
    if whiskers:
        shapes.append(Shape(np.concatenate(whiskers), "ink", width=0.9))
    x = round_axis(gettext("% of people or of trials"), 0, 100, 5)
    y = _rows([name for name, _ in bars], lines=2)
    said = "; ".join(f"{name}: {parts[0][0]:.1f} %" for name, parts in bars if parts[0])
    return Chart(gettext("Attacks"), said, 65 + 26 * len(bars), x, y, shapes)


def labels_chart(
    title: str, labels: Sequence[str], before: np.ndarray | None, after: np.ndarray
) -> Chart:
    """Two bars per label, in percent of the records. before: NaN where nothing is shown."""
    bars = [_bars(after, 0.0, 0.3, "after")]
    if before is not None:
        bars = [
            _bars(np.nan_to_num(before), -0.2, 0.18, "before", ORIGINAL),
            _bars(after, 0.2, 0.18, "after", RELEASE),
        ]
    x = axis_up_to(gettext("% of the records"), max(shape.points.max() for shape in bars), most=7)
    return Chart(title, _told(labels, before, after), 61 + 21 * len(labels), x, _rows(labels), bars)


def _bars(lengths: Numbers, middle: float, half: float, colour: str, name: str = "") -> Shape:
    """A bar in each row. middle, half: where in its row it lies, and half its breadth."""
    rows = np.arange(len(lengths)) + middle
    return Shape(boxes(0, lengths, rows + half, rows - half), colour, name)


def _rows(names: Sequence[str], lines: int = 1) -> Axis:
    """Names from the top down. lines: that each may take."""
    ticks = {float(row): _wrapped(name, lines) for row, name in enumerate(names)}
    return Axis("", len(names) - 0.5, -0.5, ticks, has_grid=False)


def intervals_chart(
    title: str,
    labels: Sequence[str],
    edges: np.ndarray,
    before: np.ndarray | None,
    after: np.ndarray,
) -> Chart:
    """Two stepped outlines over intervals of different widths, the area being percent of the
    records.

    labels: what each interval holds. edges: (m + 1,). before, after: (m,) percent in each interval;
    before is NaN where nothing is shown.
    """
    step = float(np.diff(edges).min())
    height = gettext("% of the records")
    if step != 1:
        height = gettext("% of the records per {step:,.6g}", step=step)

    def stairs(shares: np.ndarray) -> np.ndarray:
        return np.repeat(np.nan_to_num(shares) * step / np.diff(edges), 2)

    outline = line_of(np.repeat(edges, 2)[1:-1], stairs(after))
    shapes = [Shape(outline, "after", width=1.7)]
    if before is not None:
        area = line_of(np.repeat(edges, 2), np.pad(stairs(before), 1))
        shapes = [Shape(area, "before", ORIGINAL), replace(shapes[0], name=RELEASE)]
    x = round_axis(shortened(title), edges[0], edges[-1], 7, has_grid=False)
    y = axis_up_to(height, max(shape.points[..., 1].max() for shape in shapes))
    return Chart(title, _told(labels, before, after), 180, x, y, shapes)


def curve_chart(title: str, description: str, label: str, x: Numbers, y: Numbers) -> Chart:
    """One curve over whole numbers. label: what they are; x, y: (m,)."""
    low, high = min(x, default=0), max(x, default=1)
    margin = 0.03 * (high - low) or 0.5
    over = round_axis(label, low - margin, high + margin, 8, whole=True, has_grid=False)
    curve = Shape(line_of(x, y), "after", width=1.5, marker="dot")
    return Chart(title, description, 165, over, axis_up_to("", max(y, default=0)), [curve])


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


def _wrapped(name: str, lines: int) -> str:
    """A name on at most these lines, cut short where they are not enough."""
    if lines == 1:
        return shortened(name)
    return textwrap.fill(printable(name), MOST_LETTERS, max_lines=lines, placeholder="…")


def shortened(text: str, most: int = MOST_LETTERS) -> str:
    """The text on one line of bounded length, without what can't be printed."""
    clean = printable(text)
    return clean if len(clean) <= most else clean[: most - 1] + "…"
