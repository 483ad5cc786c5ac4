"""A policy's promises, asked about clusters of a stream."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.schema import Schema
from shoal.data.sensitive import encode_sensitive
from shoal.data.stream import NEW, Arrivals, Emissions
from shoal.data.table import Column, Table, as_text, encode_text
from shoal.errors import InputError
from shoal.privacy.promise import Promise

MOST_MEMBERS = 100_000
"""A cluster whose members must be known for another one to join takes no more than this."""

Sensitive = Callable[[np.ndarray], pl.DataFrame]
"""`sensitive(seq)`: the sensitive cells of records that are held."""


class Measures:
    """Promises, measured on clusters or classes of a stream.

    t-closeness compares with the reference: a stream has no whole table. Its values are then those that the
    reference shows. To a reader, clusters with the same cells are one class: what both keep, their union
    keeps, unless they share people. So where people have several records, only promises are taken that
    every further member leaves intact.
    """

    def __init__(self, models: list[Any], schema: Schema, reference: Table | None) -> None:
        """Raises InputError with every promise that no stream, or none of this kind, can keep."""
        self.models, self._schema = models, schema
        self._columns: dict[str, SensitiveColumn] = {}
        self._cells: dict[str, pl.Enum] = {}
        self._table: Classes | None = None
        findings = [finding for model in models for finding in _not_for_streams(model, schema, reference is not None)]
        if findings:
            raise InputError.from_findings(findings)
        close = [model for model in models if model.model == "t-closeness"]
        if close and reference is not None:
            self._refer_to(reference, {name for model in close for name in model.attributes})
        self._checks = {id(model): self._check(model) for model in models}

    def _refer_to(self, reference: Table, names: set[str]) -> None:
        """Values of these attributes are counted as in the reference, and in no other place."""
        sensitive = {}
        for name in names:
            column = reference.column(name)
            every_cell = Column(name, np.arange(len(column.cells)), column.cells)
            coded, found = encode_sensitive(self._schema[name], every_cell, self._schema)
            if coded is None:
                raise InputError.from_findings(found)
            sensitive[name] = replace(coded, codes=coded.codes[column.codes])
            self._columns[name], self._cells[name] = coded, pl.Enum(column.cells)
        subjects = None
        if self._schema.subject is not None:
            subjects = reference.column(self._schema.subject.name).codes.astype(np.int32)
        self._table = Classes(np.zeros(reference.records, np.int32), 1, subjects, sensitive)

    def _check(self, model: Any) -> Callable[[Classes], np.ndarray]:
        return model.holds if model.model != "t-closeness" else model.against(self._table)

    def unknown(self, name: str, cells: pl.Series) -> np.ndarray:
        """Which cells of a sensitive attribute the reference that they are compared with does not show; (n,) bool."""
        if name not in self._cells:
            return np.zeros(len(cells), dtype=bool)
        return as_text(cells).cast(self._cells[name], strict=False).is_null().to_numpy()

    def classes(self, people: np.ndarray, cells: pl.DataFrame, labels: np.ndarray, count: int) -> Classes:
        """Clusters as promises measure them. cells: the sensitive columns."""
        sensitive: dict[str, SensitiveColumn] = {}
        for attribute in self._schema.sensitive:
            name = attribute.name
            if name in self._cells:
                place = as_text(cells[name]).cast(self._cells[name]).to_physical().to_numpy()
                sensitive[name] = replace(self._columns[name], codes=self._columns[name].codes[place])
                continue
            column, found = encode_sensitive(attribute, encode_text(cells[name]), self._schema)
            if column is None:
                raise InputError.from_findings(found)
            sensitive[name] = column
        numbers = np.unique(people, return_inverse=True)[1].astype(np.int32)
        return Classes(labels, count, numbers, sensitive)

    def closeness(self, model: Any, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """How far each class lies from the reference, and whether that is close enough; (count,) float64 and bool."""
        return model.judge_against(self._table, classes)

    def holds(self, model: Any, classes: Classes) -> np.ndarray:
        """Whether a promise holds in every class; (count,) bool."""
        return self._checks[id(model)](classes)


class BoundToStream:
    """Promises about clusters, each measured on its own members.

    k: the largest number of subjects that some promise can't do without. Promises that every further
    member leaves intact (k, distinct values) are asked when a cluster is made; for the others the
    members of every cluster that may be used again are remembered, and asked again with whoever joins.
    """

    def __init__(self, measures: Measures, sensitive: Sensitive) -> None:
        self._measures, self._sensitive = measures, sensitive
        models = self._models = measures.models
        self.k = max([2, *(int(model.least_subjects(True)) for model in models)])
        self.beyond_k = not all(model.counts_people_only for model in models)
        self._recheck = [model for model in models if not model.counts_people_only and not _only_grows(model)]
        self._members: dict[int, tuple[np.ndarray, pl.DataFrame]] = {}

    def hold(self, records: Arrivals, labels: np.ndarray, count: int) -> np.ndarray:
        """For each new cluster, whether every promise holds; (count,) bool."""
        kept = labels >= 0
        part = records.part(kept)
        return self._hold(part.people, self._sensitive(part.seq), labels[kept], count, self._models)

    def may_join(self, records: Arrivals, clusters: np.ndarray) -> np.ndarray:
        """Which records may join: for each cluster all that ask, or none of them."""
        allowed = np.ones(len(records), dtype=bool)
        if not self._recheck:
            return allowed
        for number in np.unique(clusters).tolist():
            asks = clusters == number
            people, cells = self._with(number, records.people[asks], self._sensitive(records.seq[asks]))
            fits = len(people) <= MOST_MEMBERS
            fits = fits and self._hold(people, cells, np.zeros(len(people), np.int32), 1, self._recheck)[0]
            allowed[asks] = fits
            if fits:
                self._members[number] = people, cells
        return allowed

    def settle(self, decided: Emissions) -> None:
        """Remembers who is in the clusters that were made and may be used again; forgets the others."""
        if not self._recheck:
            return
        live = set(decided.live.tolist())
        self._members = {number: members for number, members in self._members.items() if number in live}
        new = decided.kind == NEW
        for number in live & set(decided.made.tolist()):
            rows = new & (decided.cluster == number)
            self._members[number] = self._with(number, decided.people[rows], self._sensitive(decided.seq[rows]))

    def _with(self, number: int, people: np.ndarray, cells: pl.DataFrame) -> tuple[np.ndarray, pl.DataFrame]:
        if number not in self._members:
            return people, cells
        before, known = self._members[number]
        return np.concatenate([before, people]), pl.concat([known, cells])

    def _hold(
        self, people: np.ndarray, cells: pl.DataFrame, labels: np.ndarray, count: int, models: list[Any]
    ) -> np.ndarray:
        classes = self._measures.classes(people, cells, labels, count)
        result = np.bincount(labels, minlength=count) > 0
        for model in models:
            result &= self._measures.holds(model, classes)
        return result

    def snapshot(self) -> dict[str, Any]:
        """Members of the clusters that may be used again: one row each, with the cluster and the person."""
        if not self._members:
            return {}
        parts = [
            cells.with_columns(pl.Series("\0cluster", [number] * len(people)), pl.Series("\0person", people))
            for number, (people, cells) in self._members.items()
        ]
        return {"members": pl.concat(parts)}

    def restore(self, state: dict[str, Any]) -> None:
        """The members as they were."""
        self._members = {}
        if "members" in state:
            for (number,), part in (
                state["members"].partition_by("\0cluster", as_dict=True, maintain_order=True).items()
            ):
                self._members[int(number)] = part["\0person"].to_numpy(), part.drop("\0cluster", "\0person")


def _only_grows(model: Any) -> bool:
    """Whether one more member never breaks it: it counts different values, not shares."""
    counts_values = model.model in ("p-sensitive-k-anonymity", "k-l-diversity")
    return counts_values or getattr(model, "kind", "") == "distinct"


def _not_for_streams(model: Any, schema: Schema, has_reference: bool) -> list[str]:
    """Why a promise can't be kept while a table is still growing; nothing where it can."""
    name = f"promise '{model.model}'"
    if not model.monotone or getattr(model, "whole_table", False):
        return [f"{name}: is about a table as a whole, and a stream is never whole; leave it out"]
    if model.model == "t-closeness" and has_reference and not model.joint:
        pass  # compared with the reference, it is a promise about shares like others
    elif getattr(model, "against", None) is not None and type(model).against is not Promise.against:
        return [f"{name}: compares every class with the whole table, and a stream has none; leave it out"]
    if getattr(model, "population", ""):
        return [f"{name}: compares classes with a population, which is not offered for streams; leave it out"]
    if schema.subject is None or model.counts_people_only or _only_grows(model):
        return []
    return [f"{name}: clusters may show the same cells and share people, and their union then break what each keeps; "
            "ask for distinct values in a stream with a subject column"]  # fmt: skip
