"""A published release of a ledger as an audit reads it, and who stands behind its rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.auditor.measure import measure
from shoal.auditor.reading import read_release
from shoal.connectors import files
from shoal.connectors.ledger import DATA, Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.data.certificate import Certificate
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.errors import InputError, LedgerError
from shoal.policy.binding.table import bind_release
from shoal.policy.policy import Policy
from shoal.utility.gcp import ColumnFigures


def rows_of_release(
    ledger: Ledger, number: int, policy: Policy
) -> tuple[pl.DataFrame, Identities | None]:
    """The rows of a release, and whose they are; None without a private part."""
    path = ledger.folder(number) / DATA
    frame = files.read_as(path, ".csv", policy.audited_columns).frame
    if not ledger.steps():
        return frame, None
    identities = Identities.read(ledger.step_of(number))
    if len(identities.records) != frame.height:
        raise LedgerError(
            f"release {number:04d}: the private part has a different number of rows; restore it"
        )
    return frame, identities


@dataclass(frozen=True)
class ReleaseReading:
    """A published release as an audit reads it; the private part tells who is who."""

    frame: pl.DataFrame
    identities: Identities | None
    certificate: Certificate
    release: Release
    figures: ColumnFigures
    schema: Schema

    @property
    def is_real(self) -> np.ndarray:
        """(n,) bool; all rows but invented ones, which only the owner can tell."""
        return (
            np.ones(self.frame.height, dtype=bool)
            if self.identities is None
            else self.identities.is_real
        )


def read_as_published(
    frame: pl.DataFrame, identities: Identities | None, policy: Policy
) -> ReleaseReading:
    """A published release, measured; people are counted where the private part knows them."""
    subject = policy.subject
    if subject is not None and identities is not None and identities.subjects is not None:
        frame = frame.with_columns(pl.Series(subject, identities.subjects))
    table = Table(frame)
    schema, findings = bind_release(table, policy)
    if schema is None:
        raise InputError.from_findings(findings)
    return ReleaseReading(frame, identities, *measure(table, schema, policy, None), schema)


def classes_shown(release: Release) -> tuple[np.ndarray, int]:
    """The class of each row, and how many there are, where nobody is suppressed.

    People who show the mark everywhere are in a class like everybody else.
    """
    labels, count = release.classes.labels, release.classes.count
    starred = labels < 0
    return (np.where(starred, count, labels), count + 1) if starred.any() else (labels, count)


def release_as_shown(frame: pl.DataFrame, policy: Policy) -> Release:
    """A release as it was published, without its measures."""
    table = Table(frame)
    schema, findings = bind_release(table, policy)
    if schema is None:
        raise InputError.from_findings(findings)
    return read_release(table, schema, policy, None)
