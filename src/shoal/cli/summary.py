"""A certificate in a few lines."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from shoal.data.certificate import Certificate

if TYPE_CHECKING:
    from shoal.jobs.republish.history import LedgerAudit


def print_summary(certificate: Certificate, written: str | None = None) -> None:
    """Promises asked and measured, classes and loss, on standard error."""
    classes, records = certificate["classes"], certificate["records"]
    lines = []
    if written:
        lines.append(f"wrote {written}")
    for promise in certificate["promises"]:
        over = f" over {', '.join(promise['attributes'])}" if promise["attributes"] else ""
        over += " to the reference" if promise.get("to") == "reference" else ""
        verdict = "holds" if promise["holds"] else "DOES NOT HOLD"
        lines.append(
            f"{promise['model']}{over}: asked {promise['asked']}, measured"
            f" {_number(promise['measured'])}: {verdict}"
        )
    many = f"{records['out']} records, {records['suppressed']} suppressed"
    if classes["count"]:
        span = f"{classes['min']} to {classes['max']} {certificate['counted']}"
        lines.append(
            f"{classes['count']} class{'es' if classes['count'] > 1 else ''} of {span}, {many}"
        )
    else:
        lines.append(f"no class: {many}")
    for name, gap in certificate.get("plan", {}).get("uncovered", {}).items():
        lines.append(
            f"the plan does not cover {gap['values']} value{'s' if gap['values'] > 1 else ''} of"
            f" '{name}': {gap['records']} records suppressed"
        )
    loss = certificate["utility"]["gcp"]
    untold = (
        "can't be told from the release alone (means hide ranges, or domains follow the original);"
        " give --original"
    )
    lines.append(f"information loss (gcp) {untold if loss is None else f'{100 * loss:.2f} %'}")
    for fault, count in certificate.get("faults", {}).items():
        if count:
            lines.append(f"{count} records are {fault} against the original: DOES NOT HOLD")
    if any(2 * count > records["out"] for count in certificate.get("faults", {}).values()):
        lines.append(
            "most records differ: was the release made of that table, in that order? a stream needs"
            " its --trace"
        )
    print("\n".join(lines), file=sys.stderr)


def print_history(found: LedgerAudit) -> None:
    """What the audit of a ledger found, a line for each release and each finding, on standard
    error.
    """
    lines = [f"{finding}: DOES NOT HOLD" for finding in found.damage]
    for release in found.releases:
        broken = [
            promise["model"] for promise in release.certificate["promises"] if not promise["holds"]
        ]
        loss = release.certificate["utility"]["gcp"]
        lines.append(
            f"release {release.number:04d}: {release.certificate['records']['out']} records, "
            f"{release.certificate['classes']['count']} classes, "
            + (f"gcp {100 * loss:.2f} %, " if loss is not None else "")
            + (f"{', '.join(broken)} DOES NOT HOLD" if broken else "all promises hold")
        )
        lines += [f"  {told}" for told in release.told]
    if not found.knows_people:
        lines.append(
            "the private part is not there: rows were counted, and releases compared by their boxes"
            " alone"
        )
    if not found.damage:
        lines.append("history: holds" if found.holds else "history: DOES NOT HOLD")
    print("\n".join(lines), file=sys.stderr)


def _number(value: float | None) -> str:
    return "nothing (no class)" if value is None else f"{value:.6g}"
