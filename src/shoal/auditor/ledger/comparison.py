"""A release of the whole table beside all earlier ones: every check in turn."""

from __future__ import annotations

from shoal.auditor.ledger.cells import (
    Holds,
    departures,
    narrowed_cells,
    nestedness,
    shared_cells,
    unchanged,
)
from shoal.auditor.ledger.correspondence import correspondence
from shoal.auditor.ledger.numbering import numbered
from shoal.auditor.ledger.release_view import HistoryFinding, RecordHistory, ReleaseView
from shoal.auditor.ledger.signatures import common_values
from shoal.auditor.ledger.transition import Transition


def compare(
    past: RecordHistory, release: ReleaseView, holds: Holds, k: int, guards: str, least: int = 1
) -> list[HistoryFinding]:
    """What a release of the whole table gives away beside all earlier ones.

    `past` includes the release afterwards. k: the least people of a cell that people left.
    guards: what the release rests on; the checks of the other kind are counted and are no
    violation. least: how many sensitive values the classes of a record must have in common.
    """
    step = Transition.of(past, release, k, guards)
    finest, cells = numbered(past.cell[step.records], step.after)
    findings = [
        shared_cells("cells", step, holds, *numbered(step.before, step.after), step.last_two),
        shared_cells("all cells", step, holds, finest, cells, step.all_releases),
        departures(step),
        narrowed_cells(step),
        nestedness(step),
        unchanged(step),
        common_values(step, least),
        *correspondence(step),
    ]
    past.replace(release, release.spread(step.rows, finest), cells)
    return findings
