"""What p-sensitive k-anonymity and (k,l)-diversity share: people and values in every class."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.privacy.k_anonymity import fewest as fewest_people
from shoal.privacy.k_anonymity import least_people, too_few_subjects
from shoal.privacy.parameters import names, whole
from shoal.privacy.promise import Judgement, Promise
from shoal.privacy.value_counts import value_counts


class DifferentValues(Promise, ABC):
    """k-anonymity, and several different values of each listed attribute in every class.

    What is measured is the number of values, of the attribute that has the fewest; `holds` asks k
    as well. letter: the field that says how many values are asked.
    """

    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True
    letter: ClassVar[str]

    attributes: tuple[str, ...]
    k: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", names(self.model, "attributes", self.attributes))
        object.__setattr__(self, self.letter, whole(self.model, self.letter, self._values, 1))
        object.__setattr__(self, "k", whole(self.model, "k", self.k, 2))

    @property
    def _values(self) -> int:
        values: int = getattr(self, self.letter)
        return values

    @property
    def asked(self) -> float:
        return self._values

    @property
    def survives_additions(self) -> bool:
        return True

    @property
    def settings(self) -> dict[str, Any]:
        return {"k": self.k}

    def least_subjects(self, several_records: bool) -> int:
        """So many values need as many subjects, unless one subject may bring several values."""
        return self.k if several_records else max(self.k, self._values)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        fewest: np.ndarray = np.min(
            [value_counts(classes, name).distinct for name in self.attributes], axis=0
        )
        return fewest.astype(np.float64), (fewest >= self._values) & (classes.people() >= self.k)

    def part(self, classes: Classes, table: Classes) -> Judgement:
        return self._judgement(*self.judge(classes), least_people(classes))

    def total(self, parts: Sequence[Judgement]) -> dict[str, Any]:
        return super().total(parts) | {"k_measured": fewest_people(parts)}

    def nearest(self, whole_table: Classes) -> list[str]:
        return [
            *too_few_subjects(self.model, self.k, whole_table),
            *self._too_few_values(whole_table),
        ]

    def _too_few_values(self, whole_table: Classes) -> list[str]:
        """A finding for every attribute with fewer different values in the table than asked."""
        letter, asked = self.letter, self._values
        distinct = {
            name: int(value_counts(whole_table, name).distinct[0]) for name in self.attributes
        }
        return [
            f"promise '{self.model}' on '{name}': {letter} = {asked} asked, {most} different values"
            f" in the table; the nearest that holds is {letter} = {most}"
            for name, most in distinct.items()
            if most < asked
        ]
