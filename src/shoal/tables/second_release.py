"""Publish a part of a table exactly as the whole was, for comparison; nothing is written."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from shoal.data.attack_scene import Replay
from shoal.data.classes import Classes, Population
from shoal.data.encoding import EncodedTable, encode_populations
from shoal.data.release import PublishedColumn, label_classes, read_columns
from shoal.data.schema import Role
from shoal.data.sensitive import encode_sensitive_columns
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.policy import registry
from shoal.policy.binding.table import BoundTable
from shoal.policy.plug_ins import INSTALL
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.protocols import Promises
from shoal.recoding.recode import find_classes, recoding_of_whole_table


def republisher(
    table: Table, encoded: EncodedTable, problem: Problem
) -> Callable[[np.ndarray], tuple[tuple[PublishedColumn, ...], np.ndarray, int]]:
    """Publishes some rows of a table under its policy, with its method, parameters and seed.

    Domains, orders and hierarchies stay those of the whole table. Returns the cells, the class of
    each row and how many there are; raises InfeasibleError.
    """

    schema = problem.schema
    only_quasi = replace(schema, attributes=schema.with_role(Role.QUASI))

    def publish_rows(rows: np.ndarray) -> tuple[tuple[PublishedColumn, ...], np.ndarray, int]:
        bound = _part(table, encoded, problem, rows)
        classes, _ = find_classes(*bound.method_input(), problem)
        recoding = recoding_of_whole_table(classes, bound.encoded, schema.render)
        frame = pl.DataFrame(
            [
                recoding.column(j, attribute, schema.render)
                for j, attribute in enumerate(bound.encoded.attributes)
            ]
        )
        columns, unreadable = read_columns(Table(frame), only_quasi)
        InputError.raise_for(unreadable)
        labels, count = label_classes(columns, recoding.suppressed)
        return columns, labels, count

    return publish_rows


def _part(table: Table, encoded: EncodedTable, problem: Problem, rows: np.ndarray) -> BoundTable:
    """Some rows of a bound table; everything that only the data tells stays that of the whole."""
    part, schema = encoded.take(rows), problem.schema
    names = [a.name for a in schema.sensitive]
    smaller = Table(pl.DataFrame([table.frame[name].gather(rows) for name in names]))
    sensitive, strange = encode_sensitive_columns(smaller, schema, problem.earlier)
    populations, wrong = encode_populations(problem.tables.populations, schema, encoded)
    InputError.raise_for([*strange, *wrong])
    label = None
    if schema.label is not None:
        label = table.column(schema.label).codes[rows]
    everyone = np.zeros(len(rows), dtype=np.int32)
    whole = Classes(everyone, 1, part.subjects, sensitive)
    return BoundTable(problem, part, whole, label, populations)


# Whether a method would leave records in one class, whoever of them had which sensitive value.


NOT_INSTALLED = f"its method is not installed; {INSTALL}"
NO_ACCOUNT = "no account of what this method would have done otherwise"
WHOLE_TABLE = "a promise compares classes with the whole table"


def replay_of(
    table: Table, encoded: EncodedTable, rows: np.ndarray | None, problem: Problem
) -> tuple[Replay | None, str]:
    """How the policy's method decides about a class alone; else None and why.

    rows: the original's row of every published record, None where they are the same.
    """
    if registry.is_missing(problem.method_name):
        return None, NOT_INSTALLED
    promises = problem.promises
    if not decides_locally(problem, encoded):
        return None, NO_ACCOUNT
    if any(p.compares_with_table or p.whole_table or p.population or p.of_sample for p in promises):
        return None, WHOLE_TABLE
    sensitive, strange = encode_sensitive_columns(table, problem.schema, problem.earlier)
    if strange:
        return None, NO_ACCOUNT
    method = problem.build_method()
    rng = np.random.default_rng(problem.seed)
    k = problem.required_k or 1

    def originals(published: np.ndarray) -> np.ndarray:
        return published if rows is None else rows[published]

    def candidates(published: np.ndarray) -> list[np.ndarray]:
        asked = _Refusing(k)
        # in the scale of the whole table
        matrix = encoded.take(np.sort(originals(published))).matrix()
        method.partition(matrix, asked, rng)
        return asked.candidates

    def stays_whole(published: np.ndarray, name: str, assigned: np.ndarray) -> np.ndarray:
        chosen = originals(published)
        order = np.argsort(chosen)  # as the method sees them
        ways, people = assigned.shape
        columns = {
            other: replace(column, codes=np.tile(column.codes[chosen[order]], ways))
            for other, column in sensitive.items()
        }
        dealt = sensitive[name].codes[chosen[assigned[:, order]]].ravel()
        columns[name] = replace(sensitive[name], codes=dealt)
        everyone = np.zeros(ways * people, dtype=np.int32)
        bound = BoundPromises(promises, Classes(everyone, 1, None, columns))
        whole = np.ones(ways, dtype=bool)
        for parts in candidates(published):
            count = int(parts.max()) + 1
            labels = (np.arange(ways)[:, None] * count + parts).ravel().astype(np.int32)
            whole &= ~bound.holds(labels, ways * count).reshape(ways, count).all(axis=1)
        return whole

    return Replay(lambda published: bool(candidates(published)), stays_whole), ""


def decides_locally(problem: Problem, encoded: EncodedTable) -> bool:
    """Whether the method cuts a class by its own records alone, whatever was cut before."""
    if encoded.subjects is not None or encoded.suppressed.any():
        return False
    method = problem.build_method()
    has_trees = any(a.attribute.hierarchy is not None for a in encoded.attributes)
    says = getattr(method, "decides_locally", None)
    return says is not None and bool(says(has_trees))


class _Refusing(Promises):
    """Refuses every cut, so that a method shows all that it would try on a class."""

    needs_more_than_k = True

    def __init__(self, k: int) -> None:
        self.k = k
        self.candidates: list[np.ndarray] = []

    def holds(
        self,
        labels: np.ndarray,
        count: int,
        quasi: Mapping[str, np.ndarray] | None = None,
        population: Mapping[str, Population] | None = None,
    ) -> np.ndarray:
        if count:  # a method that has nothing left to try may ask about no class
            self.candidates.append(np.array(labels))
        return np.zeros(count, dtype=bool)

    def restricted_to(self, kept: np.ndarray) -> Any:
        return self
