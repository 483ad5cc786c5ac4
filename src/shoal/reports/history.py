"""Pages of what goes on over time: the history of a ledger, and a stream.

As every report they need nothing but themselves and show no value of the data.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import yaml

from shoal.auditor.ledger.history import LedgerAudit, ReleaseAudit
from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import UNITS, UNKNOWN, unit
from shoal.data.language import gettext
from shoal.data.stream import KINDS
from shoal.policy.model import PolicyModel
from shoal.reports import attacks, charts, pages
from shoal.reports.in_short import in_short, ledger_in_short, published_table
from shoal.version import VERSION

CHECKS = {
    "atoms": gettext("People who share all their classes and absences: k people."),
    "company": gettext("People who were in every class that a person was in: k people."),
    "records": gettext("Nobody has several rows in one release."),
    "known people": gettext("Nobody of an increment is in an earlier release."),
    "cells": gettext(
        "People who share both classes of two releases: k people who keep every promise."
    ),
    "all cells": gettext("People who share all classes so far: k people who keep every promise."),
    "departures": gettext("People who left a class together: k people."),
    "specificity": gettext("No cell is narrower than it was (the paper's measure of a leak)."),
    "nestedness": gettext(
        "Classes that lie in no single earlier class (safe refinement would have none;"
        " breaks nothing)."
    ),
    "unchanged": gettext("A record that is not an update shows what it showed before."),
    "signatures": gettext("All classes of a person have at least m sensitive values in common."),
    "frequencies": gettext("No sensitive value has more than one row in m of a class."),
    "forward and cross": gettext("Two classes of a person have at least k records in common."),
    "backward": gettext("At least k records of a new person's class can be new."),
    "boxes": gettext(
        "Without knowing who is who: classes that meet share no or at least k records."
    ),
}


def write_history_report(found: LedgerAudit, path: Path) -> None:
    """The page, written whole or not at all."""
    pages.write_page(pages.render_template("history.html.j2", _content(found)), path)


def _content(found: LedgerAudit) -> pages.Content:
    checks = {finding.check for release in found.releases for finding in release.findings}
    table = published_table(found.releases) if found.releases else None
    holds = "green" if table is None else table.light
    return {
        "light": holds if found.holds else "red",
        "grave": [] if table is None else table.grave,
        "shoal": VERSION,
        "found": found,
        "lines": ledger_in_short(found),
        "unit": unit(found.releases[0].certificate) if found.releases else UNITS[UNKNOWN],
        "releases": [
            (release, release.certificate, {one.check: one for one in release.findings})
            for release in found.releases
        ],
        "checks": {check: CHECKS[check] for check in CHECKS if check in checks},
        "broken": [str(one) for release in found.releases for one in release.violations],
        "charts": list(_charts(found.releases)) if len(found.releases) > 1 else [],
        **attacks.attack_section(found.attacked or Certificate({})),
    }


def _charts(releases: Sequence[ReleaseAudit]) -> list[tuple[str, charts.Chart]]:
    """Growth, loss and classes over the releases."""
    stated = [release.certificate for release in releases]
    table: list[int] = []
    for one in stated:
        is_whole = one["covers"] == "table" or not table
        table.append(one["records"]["out"] + (0 if is_whole else table[-1]))
    losses = [one["utility"]["gcp"] for one in stated]
    drawn = {
        gettext("Records of the whole table"): table,
        gettext("Detail lost in each release (gcp), %"): (
            [] if None in losses else [100 * loss for loss in losses]
        ),
        gettext("People in a class, on average"): [one["classes"]["mean"] for one in stated],
    }
    numbers = np.array([release.number for release in releases])
    return [
        (title, _curve(title, gettext("release"), numbers, np.array(values, dtype=np.float64)))
        for title, values in drawn.items()
        if values and None not in values
    ]


# A stream: what it promised, and how it went.


def write_report(
    certificate: Certificate, history: np.ndarray, model: PolicyModel, path: Path
) -> None:
    """The page as a file, whole or not at all. history: as `StreamCounters.history_array`."""
    content = {
        "certificate": certificate,
        "lines": in_short(certificate),
        "charts": over_time(history),
        "policy": yaml.safe_dump(
            model.model_dump(exclude_unset=True, mode="json"), sort_keys=False
        ),
    }
    pages.write_page(pages.render_template("stream.html.j2", content), path)


def over_time(history: np.ndarray) -> list[tuple[str, charts.Chart]]:
    """Loss, delay, use of earlier clusters and size of new ones, by records that have left."""
    if not len(history):
        return []
    kinds = dict(zip(KINDS, history[:, : len(KINDS)].T, strict=True))
    loss, delay, made = history[:, len(KINDS) :].T
    decided = history[:, : len(KINDS)].sum(axis=1)
    published = kinds["new"] + kinds["reuse"] + kinds["suppress"]
    left = np.cumsum(decided)
    lost, reused = 100 * _ratio(loss, published), 100 * _ratio(kinds["reuse"], published)
    waited, size = _ratio(delay, decided), _ratio(kinds["new"], made)
    drawn = {
        gettext("Information loss (gcp), percent"): (gettext("Loss"), lost),
        gettext("Delay, records that arrived while one waited"): (gettext("Delay"), waited),
        gettext("Records published under earlier clusters, percent"): (
            gettext("Use of earlier clusters"),
            reused,
        ),
        gettext("Records in a new cluster"): (gettext("Size of new clusters"), size),
    }
    over = gettext("records that have left")
    return [(said, _curve(title, over, left, values)) for said, (title, values) in drawn.items()]


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(below > 0, above / below, np.nan)


def _curve(title: str, over: str, at: np.ndarray, values: np.ndarray) -> charts.Chart:
    """A curve of what is known. over: what is counted along its axis."""
    known = ~np.isnan(values)
    at, values = at[known], values[known]
    said = gettext("nothing")
    if len(values):
        said = gettext(
            "from {first:,.4g} to {last:,.4g}, at most {max:,.4g}, over {over} {start:,.0f} to"
            " {end:,.0f}",
            first=values[0],
            last=values[-1],
            max=values.max(),
            over=over,
            start=at[0],
            end=at[-1],
        )
    return charts.curve_chart(title, f"{title}: {said}", over, at, values)
