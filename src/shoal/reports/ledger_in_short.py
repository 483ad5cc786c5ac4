"""A ledger in the five lines of `in_short`: its published table, and what comparing tells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.auditor.ledger.history import LedgerAudit, ReleaseAudit
from shoal.data.certificate import Certificate
from shoal.data.people import unit
from shoal.reports.in_short import CLOSENESS, Line, in_short
from shoal.reports.measured import number_text

# checks of how many share the classes of several releases
SHARED_CELLS = (
    "cells",
    "all cells",
    "atoms",
)


def ledger_in_short(found: LedgerAudit) -> list[Line]:
    """The five lines of all releases; none where nothing was measured."""
    if not found.releases:
        return []
    more = {
        "Published": _came_in(found.releases),
        "Protected": _compared(found.releases),
        "Not promised": _left_among_few(found.releases),
        "Open": _unknown_people(found),
    }
    return [
        Line(line.about, f"{line.says} {more[line.about]}" if more.get(line.about) else line.says)
        for line in in_short(published_table(found.releases))
    ]


def published_table(releases: Sequence[ReleaseAudit]) -> Certificate:
    """The table that is published as of the last release, under the worst of every promise.

    It is the last whole table, and every increment since.
    """
    whole = [i for i, release in enumerate(releases) if release.certificate["covers"] == "table"]
    parts = [release.certificate for release in releases[whole[-1] if whole else 0 :]]
    last = parts[-1]
    records = {
        key: sum(part["records"][key] for part in parts)
        for key in ("out", "suppressed", "withheld")
    }
    warnings = {w.text: w.report() for r in releases for w in r.certificate.warnings}
    return last.extended(
        records=records | {"in": None},
        subjects=_people(parts),
        promises=[
            _worst([release.certificate["promises"][i] for release in releases])
            for i in range(len(last["promises"]))
        ],
        together=None,
        utility=last["utility"] | {"gcp": _mean(parts, [p["utility"]["gcp"] for p in parts])},
        columns=_columns(parts),
        warnings=list(warnings.values()),
    )


def _people(parts: Sequence[Certificate]) -> int:
    """How many people are published; those who come again count once."""
    panel = parts[-1].get("panel")
    return sum(part["subjects"] for part in parts) if panel is None else int(panel["people"])


def _worst(promises: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """One promise in all releases: where it fails, else where least is left of it."""
    broken = [promise for promise in promises if not promise["holds"]]
    known = [promise for promise in promises if promise["measured"] is not None]
    if broken or not known:
        return (broken or promises)[0]
    choose = max if known[0]["model"] == CLOSENESS else min
    return choose(known, key=lambda promise: promise["measured"])


def _columns(parts: Sequence[Certificate]) -> list[dict[str, Any]]:
    """The columns of the last part, with their losses over all."""
    losses = [{c["name"]: c["loss"] for c in part.get("columns") or []} for part in parts]
    return [
        dict(column) | {"loss": _mean(parts, [mine.get(column["name"]) for mine in losses])}
        for column in parts[-1].get("columns") or []
    ]


def _mean(parts: Sequence[Certificate], numbers: Sequence[float | None]) -> float | None:
    """The mean over records; None where one part has none."""
    weights = [part["records"]["out"] for part in parts]
    known = [number for number in numbers if number is not None]
    if len(known) < len(parts) or not sum(weights):
        return None
    return sum(w * n for w, n in zip(weights, known, strict=True)) / sum(weights)


def _came_in(releases: Sequence[ReleaseAudit]) -> str:
    came = f"Published in {len(releases)} release{'s' if len(releases) > 1 else ''}."
    invented = (releases[-1].certificate.get("counterfeits") or {}).get("records")
    if not invented:
        return came
    return f"{came} Invented, so that groups are full: {number_text(invented)} of the records."


def _compared(releases: Sequence[ReleaseAudit]) -> str:
    if any(release.violations for release in releases):
        return "Not kept: the releases together reveal more than each by itself."
    if len(releases) == 1:
        return ""
    return "Every check of the releases against one another holds."


def _left_among_few(releases: Sequence[ReleaseAudit]) -> str:
    """What methods that guard signatures leave open: who shares a whole history of classes."""
    few = [
        finding.people or 0
        for release in releases
        for finding in release.findings
        if finding.check in SHARED_CELLS and not finding.is_violation
    ]
    if not any(few):
        return ""
    most, counted = max(few), unit(releases[-1].certificate)
    return (
        f"Whoever compares the releases leaves {number_text(most)} {counted.of(most)} in a group"
        " that is smaller than was asked."
    )


def _unknown_people(found: LedgerAudit) -> str:
    if found.knows_people:
        return ""
    return (
        "The private part was missing, so the releases were compared by their boxes alone, as an"
        " attacker would."
    )
