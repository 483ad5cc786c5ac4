"""What attacks found as a part of a page, the same in the report, the dossier and the history."""

from __future__ import annotations

from typing import Any

from shoal.data.certificate import Certificate
from shoal.reports import charts
from shoal.reports.attacks import OPENING, bars, page_content


def attack_section(certificate: Certificate, always: bool = False) -> dict[str, Any]:
    """What `attacks.html.j2` takes. always: with its questions even where nothing was tried."""
    found = bars(certificate)
    tried = certificate.get("attacks") or {}
    return {
        "attacks": page_content(certificate, always),
        "attacks_opening": OPENING,
        "attack_bars": charts.attacks_chart(found).svg("attacks") if found else None,
        "control": tried.get("control"),
    }
