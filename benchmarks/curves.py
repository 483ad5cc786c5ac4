"""Loss against time: a table and a picture for every table of the benchmark `refinement`."""

from __future__ import annotations

import io
import re
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from shoal_papers.reproduce.drawing import RULES, STYLES

Row = dict[str, Any]
REFINED = ("rounded-partition", "lattice-peeling")
PEER = "anonypy"
# as many as there are styles; the peer takes the last one's where it was measured
DRAWN = (*REFINED, "top-down-greedy", "bottom-up", "k-member", "mdav", "mondrian")
FAR = 2.0  # times the least: what loses more is in the table alone
SIZE = (7.2, 5.6)  # inches
GREY = "#666666"
MOST_ABOVE = 1.02  # times the least of ours that the default may lose


def tables(rows: Sequence[Row]) -> Iterator[str]:
    """How far the default is from the least; for each data set its picture, and every method."""
    yield from ratios(rows)
    for data, here in _by_data(rows).items():
        ks = list(dict.fromkeys(row["k"] for row in here))
        yield f"### {data}: {here[0]['records']:,} records"
        yield ""
        shown = f"Loss against CPU seconds on {data}, one panel for each k"
        yield f"![{shown}]({file_name(data)})"
        yield ""
        yield "gcp in %, where seeds differ its least and most, and the CPU seconds in brackets;"
        yield "**bold** is the default."
        yield ""
        yield "| method | " + " | ".join(f"k = {k}" for k in ks) + " |"
        yield "|---" * (len(ks) + 1) + "|"
        for name in _names(here):
            of_k = {r["k"]: r for r in here if name in (r.get("name"), r.get("line"))}
            cells = (_cell(of_k[k]) if k in of_k else "" for k in ks)
            yield f"| {name} | " + " | ".join(cells) + " |"
        yield ""


def ratios(rows: Sequence[Row]) -> Iterator[str]:
    """The default against the least of ours on every table, and what is better where it is far."""
    defaults = [row for row in rows if row.get("is_default")]
    ks = list(dict.fromkeys(row["k"] for row in defaults))
    yield "What the default loses, over the least that any of our methods loses, `thorough` apart:"
    yield ""
    yield "| data | " + " | ".join(f"k = {k}" for k in ks) + " |"
    yield "|---" * (len(ks) + 1) + "|"
    far = []
    for data, here in _by_data(defaults).items():
        cells = []
        for default in here:
            least = least_of_ours(rows, data, default["k"])
            ratio = _median(default, "losses") / _median(least, "losses")
            is_far = round(ratio, 3) > MOST_ABOVE
            cells.append(f"**{ratio:.3f}**" if is_far else f"{ratio:.3f}")
            far += [(default, least)] if is_far else []
        yield f"| {data} | " + " | ".join(cells) + " |"
    yield ""
    if far:
        yield f"More than {MOST_ABOVE} times the least:"
        yield ""
    for default, least in far:
        less = 100 - 100 * _median(least, "losses") / _median(default, "losses")
        slow, quick = _median(least, "seconds"), _median(default, "seconds")
        yield (
            f"- {default['data']}, k = {default['k']}: {least['name']} loses {less:.2g} % less than"
            f" the default, {default['name']}, in {slow:.2g} instead of {quick:.2g} CPU s."
        )
    yield ""


def least_of_ours(rows: Sequence[Row], data: str, k: int) -> Row:
    """The row of our method that loses least there, thorough searches apart."""
    here = (row for row in rows if (row["data"], row["k"]) == (data, k) and "name" in row)
    ours = (row for row in here if row["refine"] != "thorough" and row["method"] != PEER)
    return min(ours, key=lambda row: _median(row, "losses"))


def _median(row: Row, key: str) -> float:
    return statistics.median(row[key])


def _names(rows: Sequence[Row]) -> list[str]:
    """What the table lists, the efforts of a method together, and lines last."""
    methods = list(dict.fromkeys(row["method"] for row in rows if "name" in row))
    shown = dict.fromkeys((row["method"], row["name"]) for row in rows if "name" in row)
    lines = dict.fromkeys(row["line"] for row in rows if "line" in row)
    return [name for _, name in sorted(shown, key=lambda s: methods.index(s[0]))] + [*lines]


def pictures(rows: Sequence[Row]) -> dict[str, str]:
    """SVG by file name; the same rows give the same bytes with the same Matplotlib."""
    return {file_name(data): _drawn(data, here) for data, here in _by_data(rows).items()}


def file_name(data: str) -> str:
    return f"refinement-{re.sub('[^a-z0-9]+', '-', data.lower()).strip('-')}.svg"


def _by_data(rows: Sequence[Row]) -> dict[str, list[Row]]:
    names = dict.fromkeys(row["data"] for row in rows)
    return {name: [row for row in rows if row["data"] == name] for name in names}


def _cell(row: Row) -> str:
    if "line" in row:
        error = f" ± {row['error']:.2g}" if "error" in row else ""
        return f"{row['loss']:.3g}{error}"
    loss, least, most = (f"{f(row['losses']):.4g}" for f in (statistics.median, min, max))
    spread = "" if least == most else f", {least} to {most}"
    text = f"{loss}{spread} ({statistics.median(row['seconds']):.2g})"
    return f"**{text}**" if row["is_default"] else text


def _drawn(data: str, rows: Sequence[Row]) -> str:
    import matplotlib
    from matplotlib.figure import Figure as Canvas

    ks = dict.fromkeys(row["k"] for row in rows if "name" in row)
    styles = _styles(rows)
    with matplotlib.rc_context(RULES):
        canvas = Canvas(figsize=SIZE, layout="constrained")
        panels = canvas.subplots(2, 2).flat
        known: dict[str, Any] = {}
        for axes, k in zip(panels, ks, strict=False):
            here = [row for row in rows if row["k"] == k]
            known |= _panel(axes, [row for row in here if "name" in row], styles)
            _lines(axes, [row for row in here if "line" in row])
            axes.set_title(f"{data}, k = {k}", fontsize=9)
            axes.set_xlabel("CPU seconds of the method", fontsize=8)
            axes.set_ylabel("information loss (gcp), %", fontsize=8)
        named = {name: known[name] for name in [*styles, "default"] if name in known}
        canvas.legend(named.values(), named.keys(), loc="outside upper center", ncols=4, fontsize=8)
        text = io.StringIO()
        canvas.savefig(text, format="svg", metadata={"Date": None, "Creator": "shoal"})
    return _compact(text.getvalue())


def _compact(svg: str) -> str:
    """The same picture in half the bytes."""
    svg = re.sub(r"<!--.*?-->|<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"font-family: [^;\"]*", "font-family: sans-serif", svg)
    svg = re.sub(r'<g id="[^"]*">', "<g>", svg)
    svg = re.sub(r"(\.\d\d)\d+(?=[^<>]*>)", r"\1", svg)  # in attributes, not in labels
    return re.sub(r"\s*\n\s*", "\n", svg)


def _styles(rows: Sequence[Row]) -> dict[str, tuple[str, str, str]]:
    """How each method is drawn that comes near the least at some k."""
    methods = [row for row in rows if "name" in row]
    least = {
        row["k"]: min(_median(r, "losses") for r in methods if r["k"] == row["k"])
        for row in methods
    }
    near = {row["method"] for row in methods if _median(row, "losses") <= FAR * least[row["k"]]}
    names = (*DRAWN[:-1], PEER if PEER in near else DRAWN[-1])
    return {name: style for name, style in zip(names, STYLES, strict=False) if name in near}


def _panel(axes: Any, rows: Sequence[Row], styles: dict[str, Any]) -> dict[str, Any]:
    """Draws the methods at one k; what the legend shows, by name."""
    from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

    known = {}
    least = min(min(row["losses"]) for row in rows)
    for method, (colour, marker, line) in styles.items():
        points = [row for row in rows if row["method"] == method]
        points = [row for row in points if min(row["losses"]) <= FAR * least]
        if not points:
            continue
        x, y = ([_median(row, key) for row in points] for key in ("seconds", "losses"))
        look = {"linestyle": line if method in REFINED else "", "linewidth": 1.2, "markersize": 4.5}
        (known[method],) = axes.plot(x, y, color=colour, marker=marker, **look)
    for row in (row for row in rows if row["is_default"]):
        place = _median(row, "seconds"), _median(row, "losses")
        (known["default"],) = axes.plot(
            *place, "o", markersize=11, markerfacecolor="none", color="#000000", linestyle=""
        )
    axes.set_xscale("log")
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.tick_params(labelsize=8)
    axes.grid(color="#dddddd", linewidth=0.6)
    return known


def _lines(axes: Any, rows: Sequence[Row]) -> None:
    """The sharpest bound, which comes last, and figures without a time, as lines with a name."""
    bounds = [row for row in rows if row["line"].startswith("lower bound")]
    for row in (row for row in rows if row not in bounds[:-1]):
        axes.axhline(row["loss"], color=GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.annotate(
            row["line"],
            (1, row["loss"]),
            xycoords=("axes fraction", "data"),
            xytext=(-2, 1.5),
            textcoords="offset points",
            ha="right",
            fontsize=6.5,
            color=GREY,
        )
