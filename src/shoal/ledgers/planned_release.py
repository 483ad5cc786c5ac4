"""A release as it would be published, row by row; not yet written or measured."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np
import polars as pl

from shoal.auditor.ledger.export import parts_of, table_as_of
from shoal.auditor.reading import read_release
from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.identities import Identities
from shoal.connectors.ledger.panel import PanelState
from shoal.data.classes import Classes
from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.matrix import Matrix
from shoal.data.partition import Partition
from shoal.data.person_names import same_value
from shoal.data.release import PublishedColumn
from shoal.data.row_order import published_order
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.ledgers.increment import CandidateRecords, DeferredRecords
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable, bind, bound_release
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises
from shoal.protocols import Partitioner
from shoal.recoding.recode import recode

NO_ROOM = "no class has room for them yet"


@dataclass(frozen=True)
class PlannedPanel:
    """What a planned release makes of the panel.

    state: with the groups as they are afterwards, without the new people.
    founded: (n,) the new group of the person of each planned row, -1 for people who have one.
    values: the sensitive cells of each row, where they are carried.
    stated: what the certificate says of it.
    """

    state: PanelState
    founded: np.ndarray
    values: pl.DataFrame | None
    stated: Mapping[str, Any]

    def after(self, release: int, identities: Identities) -> PanelState:
        """identities: of the planned rows, in their order, numbered."""
        assert identities.subjects is not None  # checked with the policy
        people = identities.subjects, identities.records
        return self.state.published(release, *people, self.founded, self.values)


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
        problem = bound_release(table, policy)
        release = read_release(table, problem, None)
        return cls(frame, identities, problem.schema, release.columns, release.classes)

    @property
    def labels(self) -> np.ndarray:
        return self.classes.labels


# Where a method places the records of the next release, and what it may know of earlier ones.


def bound_table(table: Table, policy: Policy) -> BoundTable:
    """The table under its policy; raises InputError with everything that is wrong with it."""
    bound, findings = bind(table, policy)
    if bound is None:
        raise InputError.from_findings(findings)
    return bound


def place(
    matrix: Matrix, view: LedgerView, whole_table: Classes, policy: Policy, method: Any
) -> tuple[Placement, float]:
    """The class of every record of the matrix, as the method finds it, -1 where it waits; and the
    seconds that this took.
    """
    promises = BoundPromises(policy.build_promises(), whole_table)
    began = time.process_time()
    placed = method.publish(matrix, view, promises, np.random.default_rng(policy.model.seed))
    return placed, time.process_time() - began


def partition_table(
    method: str, matrix: Matrix, promises: Any, rng: np.random.Generator
) -> Partition:
    """The classes of a method for tables, with its default parameters."""
    implementation = cast(type[Partitioner], registry.method(method, "publish").implementation)
    return implementation().partition(matrix, promises, rng)


def view_of_records(
    candidates: CandidateRecords, bound: BoundTable, policy: Policy, method: Any, ledger: Ledger
) -> tuple[LedgerView, list[str] | None]:
    """What a method may know of earlier releases, and the text of each sensitive value.

    The texts, which codes stand for, only where the method guards signatures.
    """
    is_placed = ~bound.encoded.suppressed
    records = candidates.records[is_placed]
    earlier = records >= 0
    if method.guards != "signatures":
        return LedgerView(earlier=earlier, partition=partition_table), None
    name = _sensitive_attribute(policy, candidates)
    column = candidates.table.column(name)
    shown = _signatures_shown(ledger, policy, name) if earlier.any() else {}
    every_text = sorted({*column.cells, *(value for values in shown.values() for value in values)})
    text_of: dict[str, str] = {}  # of several ways to write a value, one
    for text in every_text:
        text_of.setdefault(same_value(text), text)
    place, texts = {value: i for i, value in enumerate(text_of)}, list(text_of.values())
    code = {text: place[same_value(text)] for text in every_text}
    signatures, index = _numbered_signatures(shown, code)
    cells = np.array([code[cell] for cell in column.cells], dtype=np.int32)
    view = LedgerView(
        earlier=earlier,
        signature=np.array([index.get(r, -1) for r in records.tolist()], dtype=np.int32),
        signatures=signatures,
        sensitive=cells[column.codes][is_placed],
        values=len(texts),
        no_value=frozenset(place[one] for one in policy.no_values & place.keys()),
        partition=partition_table,
    )
    return view, texts


def _numbered_signatures(
    shown: Mapping[int, tuple[str, ...]], code: Mapping[str, int]
) -> tuple[tuple[tuple[int, ...], ...], dict[int, int]]:
    """Every set of values that occurs, by codes; and which of them each record has."""
    of_record = {
        record: tuple(sorted({code[value] for value in values})) for record, values in shown.items()
    }
    signatures = tuple(sorted(set(of_record.values())))
    index = {signature: i for i, signature in enumerate(signatures)}
    return signatures, {record: index[signature] for record, signature in of_record.items()}


def _sensitive_attribute(policy: Policy, candidates: CandidateRecords) -> str:
    """The one sensitive attribute; raises InputError where signatures can't guard the table."""
    roles: dict[str, list[str]] = {}
    for name, attribute in policy.model.attributes.items():
        roles.setdefault(attribute.role, []).append(name)
    findings = []
    if len(roles.get("sensitive", [])) != 1:
        findings.append(
            "policy: signatures need exactly one sensitive attribute; give the others the role"
            " 'drop'"
        )
    if "plain" in roles or policy.model.other == "plain":
        findings.append(
            "policy: a plain column would show which rows are invented; give it the role 'drop'"
        )
    if candidates.subjects is None:
        findings.append(
            "policy: signatures need a subject, by which a person is recognized in later releases"
        )
    elif len(np.unique(candidates.subjects)) < len(candidates.subjects):
        findings.append(
            "increment: some people have several records, including those that wait; signatures"
            " need one record a person"
        )
    if findings:
        raise InputError.from_findings(findings)
    return roles["sensitive"][0]


def _signatures_shown(ledger: Ledger, policy: Policy, name: str) -> dict[int, tuple[str, ...]]:
    """By record number, the sensitive values that its class shows in the last release."""
    current = CurrentRelease.of(ledger, policy)
    labels = current.labels.tolist()
    values_of_class: dict[int, set[str]] = {}
    for label, value in zip(labels, current.frame[name].fill_null("").to_list(), strict=True):
        values_of_class.setdefault(label, set()).add(value)
    signatures = {label: tuple(sorted(values)) for label, values in values_of_class.items()}
    records = current.identities.records.tolist()
    return {r: signatures[label] for r, label in zip(records, labels, strict=True) if r >= 0}


# The rows of a planned release: the cells of classes, and rows that a method invents.


def recoded(
    candidates: CandidateRecords,
    bound: BoundTable,
    placed: Placement,
    values: list[str] | None,
    policy: Policy,
) -> PlannedRelease:
    """The rows of all these records and of invented ones, in the order that the policy asks for.

    values: the text of each sensitive value, where the method invents rows.
    """
    partition = Partition(placed.labels[placed.labels >= 0], placed.count)
    in_input_order = replace(bound.schema, render=replace(bound.schema.render, order="input"))
    # a method that invents rows suppresses none, and classes are whole only with those rows
    found = recode(
        candidates.table,
        replace(bound, asked=replace(bound.asked, schema=in_input_order)),
        partition,
        judged=values is None,
        merging=False,  # earlier releases tell which records may be together
        typed=False,
    )
    frame, identities = found.frame, candidates.identities()
    records = frame.height
    counterfeits = None
    if values is not None:
        frame, identities = with_counterfeits(
            frame, identities, placed, partition, values, bound.schema
        )
        counterfeits = counterfeits_by_class(frame, records, bound.schema)
    order = published_order(frame, policy.quasi, bound.schema.render)
    is_real = order < records
    real = order[is_real]
    return PlannedRelease(
        frame[order],
        bound.schema,
        identities.take(order),
        originals=candidates.table.frame[real],
        truth=replace(found.truth, rows=real),
        known=None if is_real.all() else np.flatnonzero(is_real),
        counterfeits=counterfeits,
        returning=candidates.returning,
    )


# Invented rows, which fill classes that lack a sensitive value.


def with_counterfeits(
    frame: pl.DataFrame,
    identities: Identities,
    placed: Placement,
    partition: Partition,
    values: list[str],
    schema: Schema,
) -> tuple[pl.DataFrame, Identities]:
    """The rows of the table and behind them the invented ones, which show what their class shows.

    Each bears the token of a member of its class, so that it never counts as a person of its own.
    """
    assert identities.subjects is not None  # signatures need a subject
    member = np.zeros(partition.count, dtype=np.int64)
    member[partition.labels] = np.arange(len(partition.labels))
    models = member[placed.counterfeits[:, 0]]
    invented = frame[models].with_columns(
        pl.Series(attribute.name, [values[v] for v in placed.counterfeits[:, 1].tolist()])
        for attribute in schema.sensitive
    )
    invented = invented.with_columns(
        pl.col(name).cast(dtype) for name, dtype in frame.schema.items()
    )
    real, more = len(identities.records), len(models)
    return pl.concat([frame, invented]), Identities(
        records=np.concatenate([identities.records, np.full(more, -1, dtype=np.int64)]),
        subjects=np.concatenate([identities.subjects, identities.subjects[models]]),
        invented=np.arange(real + more) >= real,
        changed=np.concatenate([identities.is_changed, np.zeros(more, dtype=bool)]),
    )


def counterfeits_by_class(frame: pl.DataFrame, real: int, schema: Schema) -> pl.DataFrame:
    """The cells of each class that has invented rows, and how many. real: rows that are not."""
    quasi = [attribute.name for attribute in schema.quasi]
    text = frame[real:].select(pl.col(quasi).cast(pl.String))
    return text.group_by(quasi).agg(pl.len().alias("counterfeits")).sort(quasi)
