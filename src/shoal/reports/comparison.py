"""The comparison as a page that can be handed on: what to take and why, curves over k, and the
whole table.

As every report it needs nothing but itself and shows no value of the data: figures are measures of
releases, names are those of methods and attributes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from shoal.advise.comparison import Comparison, Row
from shoal.reports.comparison_curves import CHARTS, chart_of, drawn_methods
from shoal.reports.comparison_table import columns, faults, more_columns, percent, reasons
from shoal.reports.pages import render_template, write_page
from shoal.version import VERSION


def write_comparison(comparison: Comparison, path: Path) -> None:
    """The page, written whole or not at all."""
    write_page(render(comparison), path)


def render(comparison: Comparison) -> str:
    """The page; the same for the same measures."""
    return render_template("compare.html.j2", _content(comparison))


def _content(comparison: Comparison) -> dict[str, Any]:
    main, more = columns(comparison), more_columns(comparison)
    drawn = drawn_methods(comparison)
    return {
        "shoal": VERSION,
        "comparison": comparison,
        "advice": comparison.recommendation,
        "publish": _publish(comparison),
        "tables": [_table(comparison, figures) for figures in (main, more)],
        "best": [_best(comparison, k) for k in comparison.ks],
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


def _table(comparison: Comparison, shown: list[Any]) -> dict[str, Any]:
    """The rows by k, with these columns."""
    groups = [
        (k, [_line(row, shown, comparison) for row in comparison.rows if row.k == k])
        for k in comparison.ks
    ]
    return {"columns": shown, "groups": groups}


def _line(row: Row, shown: list[Any], comparison: Comparison) -> dict[str, Any]:
    figures = [] if row.certificate is None else [column.text(row) for column in shown]
    advice = comparison.recommendation
    is_advised = advice is not None and (row.label, row.k) == (advice.method, advice.k)
    return {
        "label": row.label,
        "reason": row.reason,
        "figures": figures,
        "is_advised": is_advised,
    }


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


def _publish(comparison: Comparison) -> str:
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
