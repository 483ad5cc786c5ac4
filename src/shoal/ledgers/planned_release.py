"""A release as it would be published, row by row; not yet written or measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.ledger.export import parts_of, table_as_of
from shoal.auditor.reading import read_release
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.connectors.ledger.panel import PanelState
from shoal.data.classes import Classes
from shoal.data.ledger_view import PanelChange
from shoal.data.release import PublishedColumn
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.ledgers.increment import DeferredRecords
from shoal.policy.binding.table import bind_release
from shoal.policy.policy import Policy
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


# The published table as it is now: its rows, who stands behind them, and its classes.


@dataclass(frozen=True)
class CurrentRelease:
    """The whole table as of the last release. frame: its rows as text."""

    frame: pl.DataFrame
    identities: Identities
    schema: Schema
    columns: tuple[PublishedColumn, ...]
    classes: Classes

    @classmethod
    def of(cls, ledger: Ledger, policy: Policy) -> CurrentRelease:
        number = ledger.releases()[-1]
        frame = table_as_of(ledger, number)
        identities = Identities.joined(
            [Identities.read(ledger.step_of(part)) for part in parts_of(ledger, number)]
        )
        if policy.subject is not None and identities.subjects is not None:
            frame = frame.with_columns(pl.Series(policy.subject, identities.subjects))
        table = Table(frame)
        schema, findings = bind_release(table, policy)
        if schema is None:
            raise InputError.from_findings(findings)
        release = read_release(table, schema, policy, None)
        return cls(frame, identities, schema, release.columns, release.classes)

    @property
    def labels(self) -> np.ndarray:
        return self.classes.labels
