"""Report of a stream: what it promised, and how it went over time, on one page that needs nothing
but itself.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import yaml
from markupsafe import Markup
from matplotlib.axes import Axes

from shoal.data.certificate import Certificate
from shoal.data.stream import KINDS
from shoal.policy.policy import Policy
from shoal.reports import charts
from shoal.reports.in_short import in_short
from shoal.reports.pages import render_template, verdict_state, write_page


def write_report(certificate: Certificate, history: np.ndarray, policy: Policy, path: Path) -> None:
    """The page as a file, whole or not at all. history: as `StreamCounters.history_array`."""
    content = {
        "certificate": certificate,
        "state": verdict_state(certificate),
        "lines": in_short(certificate),
        "charts": over_time(history),
        "policy": yaml.safe_dump(
            policy.model.model_dump(exclude_unset=True, mode="json"), sort_keys=False
        ),
    }
    write_page(render_template("stream.html.j2", content), path)


def over_time(history: np.ndarray) -> list[tuple[str, Markup]]:
    """Loss, delay, use of earlier clusters and size of new ones, each against records that have
    left.
    """
    if not len(history):
        return []
    kinds = dict(zip(KINDS, history[:, : len(KINDS)].T, strict=True))
    loss, delay, made = history[:, len(KINDS) :].T
    decided = history[:, : len(KINDS)].sum(axis=1)
    published = kinds["new"] + kinds["reuse"] + kinds["suppress"]
    left = np.cumsum(decided)
    return [
        (
            "Information loss (gcp), percent",
            _curve("loss", "Loss", left, 100 * _ratio(loss, published)),
        ),
        (
            "Delay, records that arrived while one waited",
            _curve("delay", "Delay", left, _ratio(delay, decided)),
        ),
        (
            "Records published under earlier clusters, percent",
            _curve(
                "reuse", "Use of earlier clusters", left, 100 * _ratio(kinds["reuse"], published)
            ),
        ),
        (
            "Records in a new cluster",
            _curve("sizes", "Size of new clusters", left, _ratio(kinds["new"], made)),
        ),
    ]


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _curve(key: str, title: str, left: np.ndarray, values: np.ndarray) -> Markup:
    known = ~np.isnan(values)

    def draw(axes: Axes) -> None:
        axes.plot(
            left[known], values[known], color=charts.AFTER, linewidth=1.4, marker="o", markersize=2
        )
        axes.set_xlabel("records that have left")
        axes.set_ylim(bottom=0)
        axes.grid(True)

    description = "nothing"
    if known.any():
        description = (
            f"from {values[known][0]:.3g} to {values[known][-1]:.3g}, at most"
            f" {values[known].max():.3g}"
        )
    return charts.drawn(f"stream-{key}", title, f"{title} over time: {description}", 2.1, draw)
