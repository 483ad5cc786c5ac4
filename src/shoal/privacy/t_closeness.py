"""t-closeness: the sensitive values of a class are distributed as in the whole table.

Li, Li, Venkatasubramanian. ICDE 2007; several attributes, the worst counts: Wang, Zhu, Chen, Chang.
Journal of Computer Science and Technology 33(6):1231-1242, 2018.
Reading: the whole table is every record that is in a class; suppressed records are in none. A
distribution weighs (subject, value) pairs: a subject counts once for each different value it has
there, so neither many equal records nor a large class outweigh anybody.
Joint, ours: the combinations of all listed attributes are the values, and `data.joint` says how far
apart they are. A class that is close so is as close on each attribute alone, where every subject
has one record.
Reading: of a growing table no source says whether a class is compared with its release or with all
that is published; see `reference`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.data.closeness import Closeness
from shoal.data.joint import joint_column
from shoal.errors import InputError
from shoal.privacy import exact
from shoal.privacy.earth_mover import Distance, distance_to
from shoal.privacy.exact import NEARLY, sign
from shoal.privacy.parameters import as_written, choice, decimal, names
from shoal.privacy.promise import Promise
from shoal.privacy.value_counts import (
    ValueCounts,
    sensitive_column,
    table_frequencies,
    value_counts,
)

RELEASE, TABLE = "release", "table"


@dataclass(frozen=True)
class TCloseness(Promise):
    """Every class lies at most t from the whole table, on each attribute.

    The distance is the earth mover's, over the distance that each attribute declares: equal,
    ordered or hierarchical. It is convex in the class, so a union of classes is no farther than the
    farther of them, and everybody in one class is at distance 0.
    """

    model: ClassVar[str] = "t-closeness"
    source: ClassVar[str] = "Li, Li, Venkatasubramanian 2007"
    definition: ClassVar[str] = (
        "In every class and for every listed attribute, the earth mover's distance between the"
        " values of the class and those of the whole table is at most t; with joint, between their"
        " combinations of values."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False

    attributes: tuple[str, ...] = field(metadata={"help": "sensitive attributes; the worst counts"})
    t: float = field(
        metadata={
            "help": "greatest distance of a class from the whole table",
            "low": 0.0,
            "high": 1.0,
        }
    )
    joint: bool = field(
        default=False,
        metadata={"help": "whether combinations of the attributes' values are compared"},
    )
    reference: str = field(
        default=RELEASE,
        metadata={
            "help": (
                "in a ledger, what a class is compared with: its release, or the whole published"
                " table as of it"
            ),
            "choices": (RELEASE, TABLE),
        },
    )

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", names(self.model, "attributes", self.attributes))
        object.__setattr__(self, "t", decimal(self.model, "t", self.t, 0.0, 1.0))
        if self.joint and len(self.attributes) < 2:
            raise InputError(
                f"promise '{self.model}': joint needs two attributes at least; list them, or leave"
                " it out"
            )
        choice(self.model, "reference", self.reference, (RELEASE, TABLE))
        if self.joint and self.reference == TABLE:
            raise InputError(
                f"promise '{self.model}': joint can't be compared with a whole ledger; leave out"
                " joint or reference"
            )

    @property
    def asked(self) -> float:
        return self.t

    @property
    def settings(self) -> dict[str, Any]:
        return ({"joint": True} if self.joint else {}) | (
            {"reference": TABLE} if self.reference == TABLE else {}
        )

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        classes = self.extended(classes)
        return self._judge(classes, self._distances(classes))

    def judge_against(self, table: Classes, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """As `judge`, compared with another table whose values have the same codes."""
        return self._judge(classes, self._distances(table))

    def against(self, table: Classes) -> Callable[[Classes], np.ndarray]:
        distances = self._distances(table)
        return lambda classes: self._judge(classes, distances)[1]

    def extended(self, table: Classes) -> Classes:
        """The same with combinations of values as a sensitive column, where they are compared."""
        if not self.joint:
            return table
        columns = [sensitive_column(table, attribute) for attribute in self.attributes]
        name = self.compared[0]
        return replace(
            table,
            sensitive={**table.sensitive, name: joint_column(name, columns, table.labels >= 0)},
        )

    def closeness(self, table: Classes) -> tuple[Closeness, ...]:
        """What is asked of each attribute, for methods that build classes towards it."""
        return tuple(
            Closeness(sensitive_column(table, name), self._frequencies(table, name), self.t)
            for name in self.compared
        )

    def _frequencies(self, table: Classes, name: str) -> np.ndarray:
        """How often each value counts in what classes are compared with; (values,) int64."""
        earlier = sensitive_column(table, name).earlier
        own = table_frequencies(table, name)
        return own if self.reference == RELEASE or earlier is None else own + earlier

    @property
    def compared(self) -> tuple[str, ...]:
        """The sensitive columns whose distributions are compared."""
        return (" and ".join(self.attributes) + " together",) if self.joint else self.attributes

    def _distances(self, table: Classes) -> dict[str, Distance]:
        """To the distribution of every attribute among all records that are in a class."""
        return {
            asked.column.name: distance_to(asked.column, asked.frequencies)
            for asked in self.closeness(table)
        }

    def _judge(
        self, classes: Classes, distances: Mapping[str, Distance]
    ) -> tuple[np.ndarray, np.ndarray]:
        measured, holds = np.zeros(classes.count), np.ones(classes.count, dtype=bool)
        for name in self.compared:
            distance, close = _compare(
                value_counts(classes, name), distances[name], as_written(self.t)
            )
            measured, holds = np.maximum(measured, distance), holds & close
        return measured, holds


def _compare(counts: ValueCounts, distance: Distance, t: Fraction) -> tuple[np.ndarray, np.ndarray]:
    """Distance of every class, NaN where it has no record, and whether it is at most t, exactly."""
    size = counts.total()
    occupied = size > 0
    whole = float(distance.pairs) * float(distance.span)
    fits = 4.0 * whole * float(size.max(initial=0)) < exact.ROOM
    cost = distance.cost(counts, np.int64 if fits else np.float64)
    with np.errstate(invalid="ignore", divide="ignore"):
        measured = np.where(occupied, cost / (whole * size), np.nan)
    if fits:
        return measured, occupied & (sign(cost, size * (distance.pairs * distance.span), t) <= 0)
    holds = measured <= float(t)
    near = np.flatnonzero(np.abs(measured - float(t)) <= NEARLY)
    cost_exactly = distance.cost(counts.only(near), object)
    holds[near] = (
        sign(cost_exactly, size[near].astype(object) * (distance.pairs * distance.span), t) <= 0
    )
    return measured, holds
