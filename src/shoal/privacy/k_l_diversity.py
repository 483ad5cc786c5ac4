"""(k,l)-diversity: k subjects and l different values of every listed attribute in each class.

Named by Wu, Ye, Xu, Pei (k-means++ t-closeness) among the models that grew out of k-anonymity; the
list of references that would define it is lost.
Reading, ours: at least k distinct subjects and at least l different sensitive values in every
class. So it asks what p-sensitive k-anonymity asks, under the other name. A model of the same name
for tables with transactions (Gong, Yang, Luo 2016) is another one and not meant here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.privacy.k_anonymity import fewest as fewest_people
from shoal.privacy.k_anonymity import least_people, too_few_subjects
from shoal.privacy.p_sensitive import fewest_values, too_few_values
from shoal.privacy.parameters import names, whole
from shoal.privacy.promise import Judgement, Promise


@dataclass(frozen=True)
class KLDiversity(Promise):
    """k-anonymity, and at least l different values of each listed attribute in every class.

    What is measured is the number of values, of the attribute that has the fewest; `holds` asks k
    as well.
    """

    model: ClassVar[str] = "k-l-diversity"
    source: ClassVar[str] = (
        "named in Wu, Ye, Xu, Pei (k-means++ t-closeness); its definition is lost, this is our"
        " reading"
    )
    definition: ClassVar[str] = (
        "Every class has at least k distinct subjects and at least l different values of each"
        " listed attribute (our reading of a model whose definition is lost)."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True

    attributes: tuple[str, ...] = field(metadata={"help": "sensitive attributes, each on its own"})
    k: int = field(metadata={"help": "least number of distinct subjects in a class", "low": 2})
    l: int = field(metadata={"help": "least number of different values in a class", "low": 1})

    def __post_init__(self) -> None:
        object.__setattr__(self, "attributes", names(self.model, "attributes", self.attributes))
        object.__setattr__(self, "k", whole(self.model, "k", self.k, 2))
        object.__setattr__(self, "l", whole(self.model, "l", self.l, 1))

    @property
    def asked(self) -> float:
        return self.l

    @property
    def survives_additions(self) -> bool:
        return True

    @property
    def settings(self) -> dict[str, Any]:
        return {"k": self.k}

    def least_subjects(self, several_records: bool) -> int:
        """l values need l subjects, unless one subject may bring several values."""
        return self.k if several_records else max(self.k, self.l)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        fewest = fewest_values(classes, self.attributes)
        return fewest.astype(np.float64), (fewest >= self.l) & (classes.people() >= self.k)

    def part(self, classes: Classes, table: Classes) -> Judgement:
        return self._judgement(*self.judge(classes), least_people(classes))

    def total(self, parts: Sequence[Judgement]) -> dict[str, Any]:
        return super().total(parts) | {"k_measured": fewest_people(parts)}

    def nearest(self, whole_table: Classes) -> list[str]:
        findings = too_few_subjects(self.model, self.k, whole_table)
        return findings + too_few_values(self.model, self.attributes, "l", self.l, whole_table)
