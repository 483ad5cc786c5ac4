"""Who pays most: how unevenly the loss of a release falls on its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from shoal.data.release import Release

NEARLY_ALL = 0.8  # of a column's domain: readers learn next to nothing


@dataclass(frozen=True)
class WhoPays:
    """Mean share of detail that rows lose; suppressed rows lose all of it.

    tenth: of the tenth of the rows that lose most. half: of the half that loses least. worst: of
    the group that loses most, suppressed rows aside. rows: in that group. columns: of which it
    shows next to nothing.
    """

    tenth: float
    half: float
    worst: float
    rows: int
    columns: tuple[str, ...]


def who_pays(release: Release) -> WhoPays | None:
    """How unevenly the loss falls; None where a cell's width is unknown, or of nothing."""
    if not release.columns:
        return None
    widths = np.stack([column.widths[column.codes] for column in release.columns])
    loss = widths.mean(axis=0)
    if not loss.size or np.isnan(loss).any():
        return None
    if release.starred is not None:
        loss = np.where(release.starred, 1.0, loss)
    rising = np.sort(loss)
    shown = loss if release.starred is None else np.where(release.starred, -1.0, loss)
    at = int(np.argmax(shown))
    same = np.ones(loss.size, dtype=bool)
    for column in release.columns:
        same &= column.codes == column.codes[at]
    wide = zip(release.columns, widths[:, at], strict=True)
    return WhoPays(
        tenth=float(rising[-max(loss.size // 10, 1) :].mean()),
        half=float(rising[: max(loss.size // 2, 1)].mean()),
        worst=float(max(shown[at], 0.0)),
        rows=int(same.sum()) if shown[at] >= 0 else 0,
        columns=tuple(column.name for column, width in wide if width >= NEARLY_ALL),
    )
