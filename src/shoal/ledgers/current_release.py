"""The published table as it is now: its rows, who stands behind them, and its classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.auditor.ledger.export import parts_of, table_as_of
from shoal.auditor.reading import read_release
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.data.classes import Classes
from shoal.data.release import PublishedColumn
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy.binding.release import bind_release
from shoal.policy.policy import Policy


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
