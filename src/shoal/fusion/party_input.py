"""What an owner brings to a fusion, checked against the agreement."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.data.person_names import names_of
from shoal.data.table import Column, Table
from shoal.errors import InputError
from shoal.policy.agreement import Agreement
from shoal.policy.agreement_model import PartyModel


@dataclass(frozen=True)
class PartyInput:
    """Checked ids, the cells of quasi-identifiers by number, plain columns, perhaps the label."""

    ids: pl.Series
    cells: dict[int, np.ndarray]
    plain: dict[str, Column]
    label: Column | None

    @classmethod
    def read(cls, agreement: Agreement, name: str, table: Table) -> PartyInput:
        """What the agreement asks of this party's table; raises InputError with every finding."""
        party = agreement.party(name)
        assert isinstance(party, PartyModel)
        join = agreement.model.join
        absent = [column for column in (join, *party.attributes) if column not in table.names]
        if absent:
            listed = ", ".join(f"'{column}'" for column in absent)
            raise InputError(
                f"party '{name}': its table has no column {listed}; fix the table, or make a new"
                " agreement"
            )
        label, missing = _label_of(agreement, name, table)
        ids = checked_ids(table.frame[join], name)
        findings: list[str] = []
        cells = {}
        for j, domain in enumerate(agreement.domains):
            if domain.name in party.attributes:
                cells[j], outside = domain.cells_of(table.column(domain.name), name)
                findings += outside
        findings += missing
        if findings:
            raise InputError.from_findings(findings)
        plain = {n: table.column(n) for n, a in party.attributes.items() if a.role == "plain"}
        return cls(ids, cells, plain, label)


def _label_of(agreement: Agreement, name: str, table: Table) -> tuple[Column | None, list[str]]:
    """The label's column, None where the table has none; and a finding about records without it."""
    label = agreement.model.label.attribute
    if label not in table.names:
        return None, []
    column = table.column(label)
    if "" not in column.cells:
        return column, []
    missing = int(column.counts()[column.cells.index("")])
    finding = f"party '{name}', label '{label}': {missing} records have none; complete the data"
    return column, [finding]


def checked_ids(column: pl.Series, party: str) -> pl.Series:
    """The ids as they are compared.

    Raises InputError where a record has no id, or two records have the same.
    """
    ids = names_of(column)
    empty = int((ids == "").sum())
    repeated = ids.len() - ids.n_unique()
    findings = []
    if empty:
        findings.append(
            f"party '{party}': column '{column.name}' names nobody in {empty} records; every record"
            " needs its id"
        )
    if repeated:
        findings.append(
            f"party '{party}': column '{column.name}' repeats {repeated} ids; a fused table has one"
            " record to a person"
        )
    if findings:
        raise InputError.from_findings(findings)
    return ids
