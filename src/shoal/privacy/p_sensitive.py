"""p-sensitive k-anonymity: every confidential attribute takes several values in each class.

Truta, Vinay. ICDE Workshops 2006, page 94.
Reading: all texts that stand for no value are one value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.privacy.k_anonymity import fewest as fewest_people
from shoal.privacy.k_anonymity import least_people, too_few_subjects
from shoal.privacy.parameters import names, whole
from shoal.privacy.promise import Judgement, Promise
from shoal.privacy.value_counts import value_counts


@dataclass(frozen=True)
class PSensitiveKAnonymity(Promise):
    """k-anonymity, and at least p different values of each listed attribute in every class.

    What is measured is the number of values, of the attribute that has the fewest; `holds` asks k
    as well.
    """

    model: ClassVar[str] = "p-sensitive-k-anonymity"
    source: ClassVar[str] = "Truta, Vinay 2006"
    definition: ClassVar[str] = (
        "Every class has at least k distinct subjects and at least p different values of each"
        " listed attribute."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True

    attributes: tuple[str, ...] = field(metadata={"help": "sensitive attributes, each on its own"})
    p: int = field(metadata={"help": "least number of different values in a class", "low": 1})
    k: int = field(metadata={"help": "least number of distinct subjects in a class", "low": 2})

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", names(self.model, "attributes", self.attributes))
        object.__setattr__(self, "p", whole(self.model, "p", self.p, 1))
        object.__setattr__(self, "k", whole(self.model, "k", self.k, 2))

    @property
    def asked(self) -> float:
        return self.p

    @property
    def survives_additions(self) -> bool:
        return True

    @property
    def settings(self) -> dict[str, Any]:
        return {"k": self.k}

    def least_subjects(self, several_records: bool) -> int:
        """p values need p subjects, unless one subject may bring several values."""
        return self.k if several_records else max(self.k, self.p)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        fewest = fewest_values(classes, self.attributes)
        return fewest.astype(np.float64), (fewest >= self.p) & (classes.people() >= self.k)

    def part(self, classes: Classes, table: Classes) -> Judgement:
        return self._judgement(*self.judge(classes), least_people(classes))

    def total(self, parts: Sequence[Judgement]) -> dict[str, Any]:
        return super().total(parts) | {"k_measured": fewest_people(parts)}

    def nearest(self, whole_table: Classes) -> list[str]:
        findings = too_few_subjects(self.model, self.k, whole_table)
        return findings + too_few_values(self.model, self.attributes, "p", self.p, whole_table)


def fewest_values(classes: Classes, attributes: tuple[str, ...]) -> np.ndarray:
    """Different values of the attribute that has the fewest, in every class; (count,) int64."""
    fewest: np.ndarray = np.min(
        [value_counts(classes, name).distinct for name in attributes], axis=0
    )
    return fewest


def too_few_values(
    model: str, attributes: tuple[str, ...], letter: str, asked: int, whole_table: Classes
) -> list[str]:
    """A finding for every attribute with fewer different values in the table than asked."""
    distinct = {name: int(value_counts(whole_table, name).distinct[0]) for name in attributes}
    return [
        f"promise '{model}' on '{name}': {letter} = {asked} asked, {most} different values in the"
        f" table; the nearest that holds is {letter} = {most}"
        for name, most in distinct.items()
        if most < asked
    ]
