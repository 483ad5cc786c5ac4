"""Whether a method would leave records in one class, whoever of them had which sensitive value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from shoal.data.attack_scene import Replay
from shoal.data.classes import Classes, Population
from shoal.data.encoding import EncodedTable
from shoal.data.matrix import Matrix
from shoal.data.schema import Schema
from shoal.data.sensitive import encode_sensitive_columns
from shoal.data.table import Table
from shoal.policy import comparators, registry
from shoal.policy.policy import Policy
from shoal.privacy.promises import BoundPromises
from shoal.protocols import Promises

NOT_INSTALLED = f"its method is not installed; {comparators.INSTALL}"
NO_ACCOUNT = "no account of what this method would have done otherwise"
WHOLE_TABLE = "a promise compares classes with the whole table"


def replay_of(
    table: Table, schema: Schema, encoded: EncodedTable, rows: np.ndarray | None, policy: Policy
) -> tuple[Replay | None, str]:
    """How the policy's method decides about a class alone; else None and why.

    rows: the original's row of every published record, None where they are the same.
    """
    if registry.is_missing(policy.method_name):
        return None, NOT_INSTALLED
    promises = policy.build_promises()
    if not decides_locally(policy, encoded):
        return None, NO_ACCOUNT
    if any(p.compares_with_table or p.whole_table or p.population for p in promises):
        return None, WHOLE_TABLE
    sensitive, strange = encode_sensitive_columns(table, schema, policy.earlier)
    if strange:
        return None, NO_ACCOUNT
    method = policy.build_method("publish")
    rng = np.random.default_rng(policy.model.seed)
    k = policy.required_k or 1

    def originals(published: np.ndarray) -> np.ndarray:
        return published if rows is None else rows[published]

    def candidates(published: np.ndarray) -> list[np.ndarray]:
        asked = _Refusing(k)
        method.partition(_part(encoded, np.sort(originals(published))), asked, rng)
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


def decides_locally(policy: Policy, encoded: EncodedTable) -> bool:
    """Whether the method cuts a class by its own records alone, whatever was cut before."""
    if encoded.subjects is not None or encoded.suppressed.any():
        return False
    method = policy.build_method("publish")
    has_trees = any(a.attribute.hierarchy is not None for a in encoded.attributes)
    says = getattr(method, "decides_locally", None)
    return says is not None and bool(says(has_trees))


def _part(encoded: EncodedTable, rows: np.ndarray) -> Matrix:
    """The matrix of some rows, in the scale of the whole table."""
    attributes = tuple(replace(a, codes=a.codes[rows]) for a in encoded.attributes)
    return EncodedTable(attributes, None, encoded.suppressed[rows]).matrix()


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
