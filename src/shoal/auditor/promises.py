"""The promises of a policy, measured on a release."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Any

import numpy as np
import polars as pl

from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, SensitiveColumn, encode_sensitive
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.table import Column, Table, as_text, encode_text
from shoal.errors import InputError
from shoal.policy.problem import Problem
from shoal.privacy.two_tables import Groups


def promise_reports(
    problem: Problem, release: Release, released: Table, measures: "Measures | Groups | None" = None
) -> list[PromiseReport]:
    """Every promise as the certificate states it; t-closeness to the reference that is declared.

    measures: as in `measure`.
    """
    models = problem.promises
    if measures is None:
        close = [model for model in models if model.model == "t-closeness"]
        if problem.reference_table is None or not close:
            return [model.report(release.classes) for model in models]
        measures = Measures(close, problem.schema, problem.reference_table)
    return [measures.report(model, release, released.frame) for model in models]


# A policy's promises, measured on classes of a stream. Shares no code with the methods.


class Measures:
    """Promises, measured on clusters or classes of a stream.

    t-closeness compares with the reference: a stream has no whole table. Its values, and where it
    is joint their combinations, are then those that the reference shows.
    """

    def __init__(self, models: Sequence[Any], schema: Schema, reference: Table | None) -> None:
        """Raises InputError with every promise that no stream, or none of this kind, can keep."""
        self.models, self._schema, self.has_subject = models, schema, schema.subject is not None
        self._columns: dict[str, SensitiveColumn] = {}
        self._cells: dict[str, pl.Enum] = {}
        self._together: list[Together] = []
        self._table: Classes | None = None
        has_reference = reference is not None
        InputError.raise_for(
            each for model in models for each in _not_for_streams(model, has_reference)
        )
        close = [model for model in models if model.model == "t-closeness"]
        if close and reference is not None:
            self._refer_to(reference, {name for model in close for name in model.attributes})
        self._checks: dict[int, Callable[[Classes], np.ndarray]] = {
            id(m): m.against(self._table) if m.model == "t-closeness" else m.holds for m in models
        }

    def _refer_to(self, reference: Table, names: set[str]) -> None:
        """Values of these attributes are counted as in the reference, and nowhere else."""
        sensitive = {}
        for name in names:
            column = reference.column(name)
            every_cell = Column(name, np.arange(len(column.texts)), column.texts)
            coded, wrong = encode_sensitive(self._schema[name], every_cell, self._schema)
            if coded is None:
                raise InputError.from_findings(wrong)
            sensitive[name] = replace(coded, codes=coded.codes[column.codes])
            self._columns[name], self._cells[name] = coded, pl.Enum(column.texts)
        subjects = None
        if self._schema.subject is not None:
            subjects = reference.column(self._schema.subject.name).codes.astype(np.int32)
        self._table = Classes(np.zeros(reference.records, np.int32), 1, subjects, sensitive)
        for model in self.models:
            if model.model == "t-closeness" and model.joint:
                self._table = model.extended(self._table)
                self._together.append(Together.of(model, self._table))

    def unknown(self, name: str, cells: pl.Series) -> np.ndarray:
        """(n,) bool, which cells of a sensitive attribute its reference does not show."""
        if name not in self._cells:
            return np.zeros(len(cells), dtype=bool)
        return as_text(cells).cast(self._cells[name], strict=False).is_null().to_numpy()

    def unknown_together(self, cells: pl.DataFrame) -> list[tuple[tuple[str, ...], np.ndarray]]:
        """Attributes compared together, and the rows whose combination the reference lacks.

        Rows with a value that it does not show at all count as shown: `unknown` names them.
        """
        unseen = []
        for asked in self._together:
            indexes = [
                as_text(cells[name]).cast(self._cells[name], strict=False).to_physical()
                for name in asked.names
            ]
            codes = [
                self._columns[name].codes[index.fill_null(0).to_numpy()]
                for name, index in zip(asked.names, indexes, strict=True)
            ]
            known = ~np.any([index.is_null().to_numpy() for index in indexes], axis=0)
            unseen.append((asked.names, known & (asked.leaf(codes) < 0)))
        return unseen

    def classes(
        self, people: np.ndarray, cells: pl.DataFrame, labels: np.ndarray, count: int
    ) -> Classes:
        """Clusters as promises measure them. cells: the sensitive columns."""
        sensitive: dict[str, SensitiveColumn] = {}
        for attribute in self._schema.sensitive:
            name = attribute.name
            if name in self._cells:
                index = as_text(cells[name]).cast(self._cells[name]).to_physical().to_numpy()
                known = self._columns[name]
                sensitive[name] = replace(known, codes=known.codes[index])
                continue
            column, wrong = encode_sensitive(attribute, encode_text(cells[name]), self._schema)
            if column is None:
                raise InputError.from_findings(wrong)
            sensitive[name] = column
        for asked in self._together:
            codes = asked.leaf([sensitive[name].codes for name in asked.names])
            sensitive[asked.column.name] = replace(asked.column, codes=codes)
        numbers = np.unique(people, return_inverse=True)[1].astype(np.int32)
        return Classes(labels, count, numbers, sensitive)

    def report(self, model: Any, release: Release, released: pl.DataFrame) -> PromiseReport:
        """A promise as a certificate states it: t-closeness to the reference, if there is one.

        released: the rows of the release. Raises InputError where they show values that the
        reference does not.
        """
        if model.model != "t-closeness":
            return model.report(release.classes)
        labels, people = release.classes.labels, release.classes.subjects
        kept = labels >= 0
        rows = released.filter(pl.Series(kept))
        subjects = np.arange(len(kept)) if people is None else people
        unseen = [name for name in model.attributes if self.unknown(name, rows[name]).any()]
        unseen += [
            " with ".join(names) for names, rows_of in self.unknown_together(rows) if rows_of.any()
        ]
        if unseen:
            raise InputError(
                f"reference: does not show every published value of '{unseen[0]}'; give the table"
                " that the stream was compared with"
            )
        classes = self.classes(subjects[kept], rows, labels[kept], release.classes.count)
        measured, holds = model.judged_against(self._table, classes)
        return model.stated(model.worst(measured), bool(holds.all())) | {"to": "reference"}

    def holds(self, model: Any, classes: Classes) -> np.ndarray:
        """Whether a promise holds in every class; (count,) bool."""
        return self._checks[id(model)](classes)


@dataclass(frozen=True)
class Together:
    """Combinations of several sensitive attributes that a reference shows.

    sizes: how many values each attribute has. keys: (c,) int64, the combinations in ascending
    order. leaves: (c,) int32, the place of each in `column`.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    keys: np.ndarray
    leaves: np.ndarray
    column: SensitiveColumn

    @classmethod
    def of(cls, model: Any, table: Classes) -> "Together":
        """The combinations in a table that was extended for this promise."""
        columns = [table.sensitive[name] for name in model.attributes]
        sizes = tuple(column.values for column in columns)
        if prod(sizes) >= 1 << 62:
            raise InputError(
                f"promise '{model.model}': too many combinations to tell apart; list fewer"
                " attributes"
            )
        (name,) = model.compared
        column = table.sensitive[name]
        keys, first = np.unique(_key([each.codes for each in columns], sizes), return_index=True)
        return cls(model.attributes, sizes, keys, column.codes[first], column)

    def leaf(self, codes: list[np.ndarray]) -> np.ndarray:
        """The place of each combination, -1 where the reference does not show it; (n,) int32."""
        key = _key(codes, self.sizes)
        at = np.minimum(np.searchsorted(self.keys, key), len(self.keys) - 1)
        return np.where(self.keys[at] == key, self.leaves[at], -1).astype(np.int32)


def _key(codes: list[np.ndarray], sizes: tuple[int, ...]) -> np.ndarray:
    key = np.zeros(len(codes[0]), dtype=np.int64)
    for column, size in zip(codes, sizes, strict=True):
        key = key * size + column
    return key


def _not_for_streams(model: Any, has_reference: bool) -> list[str]:
    """Why a promise can't be kept while a table is still growing; nothing where it can."""
    name = f"promise '{model.model}'"
    if not model.monotone or model.whole_table:
        return [f"{name}: is about a table as a whole, and a stream is never whole; leave it out"]
    is_close = model.model == "t-closeness"
    if is_close and has_reference:
        return []  # compared with the reference, it is a promise about shares like others
    if model.compares_with_table:
        remedy = "name a table to compare with (reference)" if is_close else "leave it out"
        why = "compares every class with the whole table, and a stream has none"
        return [f"{name}: {why}; {remedy}"]
    if model.of_sample:
        return [f"{name}: asks for the weights of a sample, which no stream is; leave it out"]
    if model.population:
        why = "compares classes with a population, which is not offered for streams"
        return [f"{name}: {why}; leave it out"]
    return []
