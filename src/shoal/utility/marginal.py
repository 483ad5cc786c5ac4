"""What each quasi-identifier costs: its own loss, and that of the others with and without it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from shoal.data.numbers import exact_sum
from shoal.data.release import Release
from shoal.utility.gcp import GlobalCertaintyPenalty

SCHEMA = "shoal.marginal/1"


@dataclass(frozen=True)
class ColumnPrice:
    """A quasi-identifier of a release. Losses are means of cell widths (gcp), None where a width
    can't be told.

    exact: share of records that show its true value. others: loss of the other columns in this
    release; others_without: in a release of the same table without this column. why_not: why there
    is none.
    """

    name: str
    loss: float | None
    exact: float
    others: float | None
    others_without: float | None
    why_not: str | None = None


@dataclass(frozen=True)
class SmallerK:
    """The release with one person fewer in each class. loss: None where there is none."""

    k: int
    loss: float | None


@dataclass(frozen=True)
class Marginal:
    """What every quasi-identifier costs, the column that loses most first.

    loss: of the release. smaller_k: None where the policy promises no k above 2.
    """

    method: str
    k: int | None
    loss: float | None
    columns: tuple[ColumnPrice, ...]
    smaller_k: SmallerK | None

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON can hold them."""
        return {"schema": SCHEMA, **asdict(self)}


def column_losses(release: Release) -> dict[str, float | None]:
    """The loss of every quasi-identifier by itself."""
    return GlobalCertaintyPenalty().per_attribute(release)


def mean_loss(losses: Mapping[str, float | None], but: str | None = None) -> float | None:
    """The mean over the columns but one; None where there is no other, or one is not known."""
    kept = [loss for name, loss in losses.items() if name != but]
    known = [loss for loss in kept if loss is not None]
    return exact_sum(known) / len(known) if known and len(known) == len(kept) else None


def exact_shares(release: Release) -> dict[str, float]:
    """By quasi-identifier, the share of records that show one value, or that there is none."""
    shares = {}
    for column in release.columns:
        shown = release.cell_counts[column.name]
        is_exact = column.widths == 0
        shares[column.name] = float(shown[is_exact].sum()) / max(release.records, 1)
    return shares
