"""The charts of a release, for its page and for notebooks."""

from __future__ import annotations

from collections.abc import Container, Mapping

import numpy as np
from matplotlib.figure import Figure

from shoal.errors import InputError
from shoal.reports import charts
from shoal.reports.distributions import Distribution, distributions
from shoal.reports.pages import Measured
from shoal.utility.class_sizes import class_sizes
from shoal.utility.gcp import GlobalCertaintyPenalty

MOST_DRAWN = 24  # columns on one page or in one figure; the tables have all of them


def sizes_chart(measured: Measured) -> charts.Chart | None:
    """How many classes have how many people; None where there is no class."""
    sizes, counts = class_sizes(measured.release)
    if not len(sizes):
        return None
    asked, unit = measured.release.required_k, measured.unit.many
    return charts.class_sizes_chart(sizes, counts, asked, unit)


def losses_of(measured: Measured) -> dict[str, float | None]:
    """The loss (gcp) of every quasi-identifier, as the certificate has it; None if unknown."""
    return GlobalCertaintyPenalty().per_attribute(measured.release)


def drawn_of(losses: Mapping[str, float | None]) -> dict[str, float | None]:
    """Those of the quasi-identifiers that are drawn, in their order: the ones that lost most."""
    by_loss = sorted(losses, key=lambda name: -(losses[name] or 0.0))
    drawn = set(by_loss[:MOST_DRAWN])
    return {name: loss for name, loss in losses.items() if name in drawn}


def distributions_of(measured: Measured, names: Container[str]) -> tuple[Distribution, ...]:
    """These quasi-identifiers before and after, safe to show."""
    attributes = tuple(a for a in measured.schema.quasi if a.name in names)
    return distributions(measured.release, attributes, measured.policy, measured.truth)


def distribution_chart(measured: Measured, found: Distribution) -> charts.Chart | None:
    """A quasi-identifier before and after, in percent of the records; None of nothing."""
    before, after = shares(measured, found)
    if found.edges is not None and len(found.edges) > 1:
        count = len(found.edges) - 1
        shown = None if before is None else before[:count]
        return charts.intervals_chart(found.name, found.edges, shown, after[:count])
    if len(found.labels):
        return charts.labels_chart(found.name, found.labels, before, after)
    return None


def shares(measured: Measured, found: Distribution) -> tuple[np.ndarray | None, np.ndarray]:
    """(bars,) percent of the records before, if that may be shown, and after."""
    records = max(measured.release.records, 1)
    before = None if found.before is None else 100 * found.before / records
    return before, 100 * found.after / records


def figure_of_release(measured: Measured, what: str) -> Figure:
    """The figure of a release that a notebook asked for: `sizes`, `columns` or `loss`."""
    if what == "loss":
        columns = measured.certificate["columns"] or []
        losses = {one["name"]: one["loss"] for one in columns if one["role"] == "quasi"}
        drawn = [charts.losses_chart(drawn_of(losses))]
    elif what == "sizes":
        drawn = [chart for chart in [sizes_chart(measured)] if chart is not None]
    else:
        shown = distributions_of(measured, drawn_of(losses_of(measured)))
        found = [distribution_chart(measured, each) for each in shown]
        drawn = [chart for chart in found if chart is not None]
    if not drawn:
        raise InputError(f"plot '{what}': the release has nothing to draw; all of it is suppressed")
    return charts.figure_of(drawn)
