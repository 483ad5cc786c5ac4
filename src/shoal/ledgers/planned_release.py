"""A release as it would be published, row by row; not yet written or measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.connectors.ledger.identities import Identities
from shoal.connectors.ledger.panel import PanelState
from shoal.data.panel import PanelChange
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.ledgers.increment import DeferredRecords
from shoal.recoding.recode import shuffled_order

NO_ROOM = "no class has room for them yet"


@dataclass(frozen=True)
class PlannedPanel:
    """What a planned release makes of the panel.

    founded: (n,) the new group of the person of each planned row, -1 for people who have one.
    values: the sensitive cells of each row, where they are carried.
    stated: what the certificate says of it.
    """

    before: PanelState
    change: PanelChange
    founded: np.ndarray
    values: pl.DataFrame | None
    stated: Mapping[str, Any]

    def after(self, release: int, identities: Identities) -> PanelState:
        """identities: of the planned rows, in their order, numbered."""
        assert identities.subjects is not None  # checked with the policy
        state = replace(self.before, panel=self.change.after)
        people = identities.subjects, identities.records
        return state.published(release, *people, self.founded, self.values)


@dataclass(frozen=True)
class PlannedRelease:
    """The rows of a release, and what the owner knows of them.

    identities: who stands behind each row.
    originals: the records that the private part keeps of it, in the order of its real rows.
    truth: what the owner knows of the rows that `known` counts, None for all of them.
    counterfeits: how many rows of each published class are invented; None where the method
    invents none.
    returning: people of the increment whose earlier records waited already.
    panel: what becomes of people who come again; None with methods that publish everybody once.
    """

    frame: pl.DataFrame
    schema: Schema
    identities: Identities
    originals: pl.DataFrame
    truth: Truth
    waiting: DeferredRecords = field(default_factory=DeferredRecords)
    seconds: float = 0.0
    known: np.ndarray | None = None
    counterfeits: pl.DataFrame | None = None
    returning: int = 0
    panel: PlannedPanel | None = None


def row_order(frame: pl.DataFrame, schema: Schema, seed: int) -> np.ndarray:
    """(n,) the order in which these rows are published, as the policy's `render.order` says."""
    return (
        np.arange(frame.height) if schema.render.order == "input" else shuffled_order(frame, seed)
    )
