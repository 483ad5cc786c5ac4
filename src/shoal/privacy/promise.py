"""What every promise of this folder answers, whatever it measures."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import Field, dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.data.closeness import Closeness

INPUT = "input"
"""Compared with all records of the input, the suppressed ones, too."""


@dataclass(frozen=True)
class Judgement:
    """What a promise found on some of the classes of a release; judgements add up.

    worst: the measured value that decides among them, None where there is no class. holds: whether
    it holds in all of them. more: what else the promise adds up.
    """

    worst: float | None
    holds: bool
    more: Any = None


class Promise(ABC):
    """A privacy model with its parameters; a frozen dataclass derives from it.

    `judge` and `asked` are what a promise must say; the rest has a default that is right for a
    promise about each class alone. A class without records keeps no promise: whoever splits off
    nobody has not hidden anybody.
    """

    model: ClassVar[str]
    source: ClassVar[str]
    definition: ClassVar[str]
    monotone: ClassVar[bool]
    """Whether a union of classes that hold always holds, for classes that share no subject."""

    higher_is_better: ClassVar[bool]
    counts_people_only: ClassVar[bool] = False
    """Whether nothing is asked but `least_subjects` in every class."""

    whole_table: ClassVar[bool] = False
    """Whether it is about the release as a whole, so that no class keeps or breaks it alone.

    Then `monotone` means that merging classes of a release that holds gives one that holds.
    """

    population: str = ""
    """The table of the population that classes are compared with; none for most promises."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    if TYPE_CHECKING:  # a field or a property of each promise; one here would hide the fields

        @property
        def attributes(self) -> tuple[str, ...]:
            """The attributes that the promise is about, as a certificate lists them."""

    @abstractmethod
    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """Measured value and whether it holds, for every class; (count,) float64 and bool."""

    @property
    @abstractmethod
    def asked(self) -> float:
        """The threshold, in the unit of `measure`."""

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive attributes whose values it needs."""
        return self.attributes

    @property
    def designated(self) -> tuple[str, ...]:
        """The sensitive values that it protects; empty where it protects all of them."""
        return ()

    @property
    def parameters(self) -> dict[str, Any]:
        """Every parameter by name, defaults included."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    @property
    def settings(self) -> dict[str, Any]:
        """Parameters that a certificate states besides `asked`."""
        return {}

    @property
    def compares_with_table(self) -> bool:
        """Whether it compares a class with the whole table, as `against` says."""
        return type(self).against is not Promise.against

    @property
    def survives_additions(self) -> bool:
        """Whether one more member never breaks it in a class: it counts, and compares no shares."""
        return self.counts_people_only

    @property
    def compares_with_input(self) -> bool:
        """Whether suppressed records count in what a class is compared with."""
        return False

    def measure(self, classes: Classes) -> np.ndarray:
        """The measured value of every class, (count,) float64."""
        return self.judge(classes)[0]

    def holds(self, classes: Classes) -> np.ndarray:
        """Whether the promise holds in every class, compared exactly; (count,) bool."""
        return self.judge(classes)[1]

    def extended(self, table: Classes) -> Classes:
        """The table with whatever else about its records the promise compares."""
        return table

    def against(self, table: Classes) -> Callable[[Classes], np.ndarray]:
        """`holds` for classes of a part of this `extended` table, compared with the whole."""
        return self.holds

    def judged_against(self, table: Classes, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """As `judge`, for some of the classes of a table; compared with the whole of it."""
        return self.judge(classes)

    def closeness(self, table: Classes) -> tuple[Closeness, ...]:
        """The terms for each attribute, for methods that build classes towards it."""
        return ()

    def least_subjects(self, several_records: bool) -> int:
        """The number of subjects that no class can do without.

        several_records: whether a subject may have several records, and so several sensitive
        values.
        """
        return 1

    def enough_subjects(self, several_records: bool) -> int:
        """Subjects in every class that are enough for a promise about the whole.

        For methods that can't ask it.
        """
        return self.least_subjects(several_records)

    def nearest(self, whole_table: Classes) -> list[str]:
        """Why the promise fails even when the whole table is one class, and what would hold."""
        return []

    def nearest_among(self, people: int) -> list[str]:
        """Why it fails with so many people in the whole population; empty where it may hold."""
        return []

    def worst(self, measured: np.ndarray) -> float | None:
        """The measured value that decides; None where there is no class."""
        known = measured[~np.isnan(measured)]
        if not len(known):
            return None
        number = float(known.min() if self.higher_is_better else known.max())
        return int(number) if isinstance(self.asked, int) and number.is_integer() else number

    @property
    def works_in_parts(self) -> bool:
        """Whether `part` and `total` tell what `report` does where no table is held as a whole."""
        alone = not self.population and not self.compares_with_input
        return alone and type(self).report is Promise.report

    @property
    def groups_by(self) -> tuple[str, ...]:
        """The quasi-identifiers whose equal cells make its classes; none means all."""
        return ()

    def part(self, classes: Classes, table: Classes) -> Judgement:
        """What it finds on some of the classes of a table; each class is in one part, whole."""
        return self._judgement(*self.judged_against(table, classes))

    def total(self, parts: Sequence[Judgement]) -> dict[str, Any]:
        """The promise as a certificate states it, by the judgements on all parts, in any order."""
        known = [part.worst for part in parts if part.worst is not None]
        return self._stated(
            self.worst(np.array(known, dtype=np.float64)), all(part.holds for part in parts)
        )

    def report(self, classes: Classes) -> dict[str, Any]:
        """The promise as a certificate states it."""
        return self.total([self.part(classes, classes)])

    def _judgement(self, measured: np.ndarray, holds: np.ndarray, more: Any = None) -> Judgement:
        return Judgement(self.worst(measured), bool(holds.all()), more)

    def _stated(self, measured: float | None, holds: bool) -> dict[str, Any]:
        """What was judged, as a certificate states it."""
        return {
            "model": self.model,
            "attributes": list(self.attributes),
            **self.settings,
            "asked": self.asked,
            "measured": measured,
            "holds": holds,
        }
