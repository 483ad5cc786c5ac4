"""One table published once, measured for a paper: on the classes found and on what readers see.

Two classes whose published cells are equal are one class to a reader, so every count is taken on
both sides. Seconds are CPU seconds of the method alone, after a small run that compiles it.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from shoal.auditor.measure import measure
from shoal.data.classes import Classes
from shoal.data.encoding import EncodedTable
from shoal.data.numba_kernels import always
from shoal.data.partition import Matrix, Partition
from shoal.data.recoding import Recoding
from shoal.data.release import Release
from shoal.data.schema import Role, Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.errors import PromiseError
from shoal.policy.binding.table import bound_table
from shoal.policy.policy import Policy
from shoal.policy.problem import Problem
from shoal.privacy.promises import BoundPromises
from shoal.utility.class_sizes import Discernibility
from shoal.utility.classification import Classification

WARM_UP = 300  # records
PATIENCE = 20.0  # CPU seconds, after which nothing is repeated any more


@dataclass(frozen=True)
class OneTable:
    """A table under a policy whose method and k still change."""

    table: Table
    policy: Policy
    _warm: set[str] = field(default_factory=set, repr=False, compare=False)

    def measure(
        self, k: int, method: str, settings: dict[str, Any], repeats: int
    ) -> dict[str, Any]:
        """Classes, DM, CM and loss of one release, and the seconds it took to find."""
        policy = self.policy.with_k(k).with_method(method, settings)
        self._warm_up(policy)
        partition, seconds = self._timed(policy, repeats)
        return {
            **self._of_partition(partition),
            **self._of_release(policy, partition),
            **spread_of(seconds),
        }

    def measure_time(
        self, k: int, method: str, settings: dict[str, Any], repeats: int
    ) -> dict[str, Any]:
        """Records and classes, and the seconds it took to find them; nothing is published."""
        policy = self.policy.with_k(k).with_method(method, settings)
        self._warm_up(policy)
        partition, seconds = self._timed(policy, repeats)
        return {"records": len(partition.labels), "classes": partition.count, **spread_of(seconds)}

    @cached_property
    def _bound(self) -> tuple[Schema, EncodedTable]:
        bound = bound_table(self.table, self.policy)
        return bound.schema, bound.encoded

    @cached_property
    def _matrix(self) -> Matrix:
        return self._bound[1].matrix()

    def _warm_up(self, policy: Policy) -> None:
        """Runs the method on some records, so that nothing compiles while time is taken."""
        asked = f"{policy.method_name} {policy.method_settings}"
        if asked not in self._warm:
            few = replace(self._matrix, codes=self._matrix.codes[:WARM_UP].copy())
            with always(compiled=True):
                _partition(few, policy.with_k(2))
            self._warm.add(asked)

    def _timed(self, policy: Policy, repeats: int) -> tuple[Partition, list[float]]:
        seconds: list[float] = []
        while len(seconds) < repeats and sum(seconds) < PATIENCE:
            started = time.process_time()
            partition = _partition(self._matrix, policy)
            seconds.append(time.process_time() - started)
        return partition, seconds

    def _of_partition(self, partition: Partition) -> dict[str, Any]:
        schema, _ = self._bound
        label = None if schema.label is None else self.table.column(schema.label).codes
        release = Release((), Classes(partition.labels, partition.count), label=label)
        sizes = partition.sizes()
        return {
            "records": len(partition.labels),
            "classes": partition.count,
            "smallest": int(sizes.min()),
            "largest": int(sizes.max()),
            "dm": Discernibility().score(release),
            "cm": Classification().score(release),
        }

    def _of_release(self, policy: Policy, partition: Partition) -> dict[str, Any]:
        """The same on the published cells; raises PromiseError where they break a promise."""
        schema, encoded = self._bound
        recoding = Recoding.of(partition.labels, partition.count, encoded.attributes)
        columns = [
            recoding.column(j, attribute, schema.render)
            for j, attribute in enumerate(encoded.attributes)
        ]
        columns += [self.table.frame[a.name] for a in schema.with_role(Role.PLAIN, Role.SENSITIVE)]
        certificate = measure(
            Table(pl.DataFrame(columns)), Problem(schema, policy), Truth(self.table, encoded)
        ).certificate
        if not certificate.holds:
            raise PromiseError(
                f"method '{policy.method_name}': its release does not keep the policy; nothing is"
                " measured"
            )
        return {
            "published_classes": certificate["classes"]["count"],
            "published_dm": certificate["utility"]["discernibility"],
            "published_cm": certificate["utility"]["classification"],
            "gcp": certificate["utility"]["gcp"],
        }


def _partition(matrix: Matrix, policy: Policy) -> Partition:
    whole_table = Classes(np.zeros(matrix.records, dtype=np.int32), 1)
    promises = BoundPromises(policy.build_promises(), whole_table)
    return policy.build_method("publish").partition(
        matrix, promises, np.random.default_rng(policy.model.seed)
    )


def spread_of(seconds: list[float]) -> dict[str, Any]:
    """Median and range; the digits that a clock can tell."""
    return {
        "seconds": round(float(np.median(seconds)), 5),
        "seconds_least": round(min(seconds), 5),
        "seconds_most": round(max(seconds), 5),
        "repeats": len(seconds),
    }
