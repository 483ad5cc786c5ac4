"""A release as it would be published, row by row; not yet written or measured."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
import polars as pl

from shoal.auditor.ledger.release_view import ReleaseReading, parts_of, table_as_of
from shoal.connectors.ledger.private import Identities
from shoal.data.classes import Classes
from shoal.data.findings import counted_records
from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.partition import Matrix, Partition
from shoal.data.person_names import same_value
from shoal.data.row_order import published_order
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.ledgers.increment import CandidateRecords, Terms
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable, bound_table
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.protocols import Partitioner
from shoal.recoding.recode import recode


@dataclass(frozen=True)
class PlannedRelease:
    """The rows of a release, and what the owner knows of them.

    identities: who stands behind each row, every record numbered.
    originals: the records that the private part keeps of it, in the order of its real rows.
    truth: what the owner knows of the rows that `known` counts, None for all of them.
    counterfeits: how many rows of each published class are invented; None where the method
    invents none.
    panel: what the certificate says of people who come again; None with methods that publish
    everybody once.
    """

    frame: pl.DataFrame
    problem: Problem
    identities: Identities
    originals: pl.DataFrame
    truth: Truth
    seconds: float = 0.0
    known: np.ndarray | None = None
    counterfeits: pl.DataFrame | None = None
    panel: Mapping[str, Any] | None = None


def current_table(terms: Terms) -> ReleaseReading:
    """The whole published table as of the last release."""
    ledger = terms.ledger
    number = ledger.releases()[-1]
    identities = Identities.joined(
        [Identities.read(ledger.step_of(part)) for part in parts_of(ledger, number)]
    )
    return ReleaseReading.of(table_as_of(ledger, number), identities, terms.policy)


# Where a method places the records of the next release, and what it may know of earlier ones.


def place(
    matrix: Matrix, view: LedgerView, whole_table: Classes, terms: Terms
) -> tuple[Placement, float]:
    """The class of every record by the method, -1 where it waits; and the seconds it took."""
    promises = BoundPromises(terms.policy.build_promises(), whole_table)
    began = time.process_time()
    rng = np.random.default_rng(terms.policy.model.seed)
    placed = terms.method.publish(matrix, view, promises, rng)
    return placed, time.process_time() - began


def partition_table(
    method: str, matrix: Matrix, promises: Any, rng: np.random.Generator
) -> Partition:
    """The classes of a method for tables, with its default parameters."""
    implementation = cast(type[Partitioner], registry.method(method, "publish").implementation)
    return implementation().partition(matrix, promises, rng)


def view_of_records(
    candidates: CandidateRecords, bound: BoundTable, terms: Terms
) -> tuple[LedgerView, list[str] | None]:
    """What a method may know of earlier releases, and the text of each sensitive value.

    The texts, which codes stand for, only where the method guards signatures.
    """
    is_placed = ~bound.encoded.suppressed
    records = candidates.records[is_placed]
    view = LedgerView(
        earlier=records >= 0, waited=candidates.waited[is_placed], partition=partition_table
    )
    if terms.method.guards != "signatures":
        return view, None
    (name,) = terms.policy.model.sensitive
    column = candidates.table.column(name)
    current = current_table(terms) if view.earlier.any() else None
    shown = [] if current is None else current.frame[name].fill_null("").to_list()
    every_text = sorted({*column.cells, *shown})
    text_of: dict[str, str] = {}  # of several ways to write a value, one
    for text in every_text:
        text_of.setdefault(same_value(text), text)
    place, texts = {value: i for i, value in enumerate(text_of)}, list(text_of.values())
    code = {text: place[same_value(text)] for text in every_text}
    signature_of = {} if current is None else _signatures(current, [code[text] for text in shown])
    signatures = tuple(sorted(set(signature_of.values())))
    index = {signature: i for i, signature in enumerate(signatures)}
    cells = np.array([code[cell] for cell in column.cells], dtype=np.int32)
    view = replace(
        view,
        signature=np.array(
            [index[signature_of[r]] if r in signature_of else -1 for r in records.tolist()],
            dtype=np.int32,
        ),
        signatures=signatures,
        sensitive=cells[column.codes][is_placed],
        values=len(texts),
        no_value=frozenset(place[one] for one in terms.policy.no_values & place.keys()),
    )
    _refuse_unshown(view, candidates.rows[is_placed], terms.method.name)
    return view, texts


def _refuse_unshown(view: LedgerView, rows: np.ndarray, method: str) -> None:
    """Raises InputError where an update gives a value that the person's class did not show."""
    signatures = [set(signature) for signature in view.signatures]
    earlier = np.flatnonzero(view.earlier).tolist()
    outside = [i for i in earlier if view.sensitive[i] not in signatures[view.signature[i]]]
    if outside:
        what = (
            f"method '{method}': updates of the sensitive value to one that the person's class did"
            " not show"
        )
        remedy = "a comparison of releases would reveal both, so leave them out"
        raise InputError(counted_records(what, rows[outside], remedy))


def _signatures(current: ReleaseReading, values: list[int]) -> dict[int, tuple[int, ...]]:
    """By record number, the values that its class shows. values: the one of each row."""
    labels, shown = current.release.classes.labels.tolist(), dict[int, set[int]]()
    for label, value in zip(labels, values, strict=True):
        shown.setdefault(label, set()).add(value)
    of_class = {label: tuple(sorted(values)) for label, values in shown.items()}
    records = current.identities.records.tolist()
    return {r: of_class[label] for r, label in zip(records, labels, strict=True) if r >= 0}


# The rows of a planned release: the cells of classes, and rows that a method invents.


def recoded(
    candidates: CandidateRecords,
    bound: BoundTable,
    kept: np.ndarray,
    placed: Placement,
    terms: Terms,
    values: list[str] | None = None,
) -> PlannedRelease:
    """The rows of the records that are kept and of invented ones, in the order that the policy asks
    for.

    kept: (n,) bool. values: the text of each sensitive value, where the method invents rows.
    """
    policy = terms.policy
    if not kept.all():
        candidates = candidates.only(kept)
        bound = bound_table(candidates.table, policy)
    partition = Partition(placed.labels[placed.labels >= 0], placed.count)
    in_input_order = replace(bound.schema, render=replace(bound.schema.render, order="input"))
    # a method that invents rows suppresses none, and classes are whole only with those rows
    identities = candidates.identities()
    found = recode(
        candidates.table,
        replace(bound, asked=replace(bound.asked, schema=in_input_order)),
        partition,
        judged=values is None,
        merging=False,  # earlier releases tell which records may be together
        typed=False,
    )
    frame = found.frame
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
        bound.asked,
        identities.take(order).numbered(terms.ledger.last_step().records),
        originals=candidates.table.frame[real],
        truth=replace(found.truth, rows=real),
        known=None if is_real.all() else np.flatnonzero(is_real),
        counterfeits=counterfeits,
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
    more = len(models)
    people = Identities(np.full(more, -1), identities.subjects[models], np.ones(more, dtype=bool))
    return pl.concat([frame, invented]), Identities.joined([identities, people])


def counterfeits_by_class(frame: pl.DataFrame, real: int, schema: Schema) -> pl.DataFrame:
    """The cells of each class that has invented rows, and how many. real: rows that are not."""
    quasi = [attribute.name for attribute in schema.quasi]
    text = frame[real:].select(pl.col(quasi).cast(pl.String))
    return text.group_by(quasi).agg(pl.len().alias("counterfeits")).sort(quasi)
