"""A release as it would be published, row by row; not yet written or measured."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import polars as pl

from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.jobs.publish.recode import shuffled_order
from shoal.jobs.republish.identities import Identities
from shoal.jobs.republish.increment import DeferredRecords
from shoal.jobs.republish.panel_files import PlannedPanel

NO_ROOM = "no class has room for them yet"


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
