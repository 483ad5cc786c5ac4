"""(alpha, k)-anonymity: no sensitive value can be guessed with more confidence than alpha.

Wong, Li, Fu, Wang. KDD 2006, pages 754-759.
Reading: all texts that stand for no value are one value, unless they are designated.
Reading: the frequency of a value is the share of the class's subjects who have it. A subject with
several values counts in the frequency of each, so frequencies may add up to more than 1.
"""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np

from shoal.data.classes import Classes, SensitiveColumn
from shoal.data.option import parameter
from shoal.errors import InputError
from shoal.privacy.k_anonymity import BesidesK, too_few_subjects
from shoal.privacy.promise import GreatestShare, Settings, as_written
from shoal.privacy.value_counts import CountsValues, counts_of, sensitive_column, value_counts


@dataclass(frozen=True)
class AlphaKAnonymity(CountsValues, BesidesK, GreatestShare):
    """k-anonymity, and no designated value more frequent than alpha in any class.

    What is measured is the frequency; `holds` asks k as well.
    """

    model: ClassVar[str] = "alpha-k-anonymity"
    letter: ClassVar[str] = "alpha"
    source: ClassVar[str] = "Wong, Li, Fu, Wang 2006"
    definition: ClassVar[str] = (
        "Every class has at least k distinct subjects, and of these at most the share alpha has any"
        " one of the designated sensitive values (of all values where none is designated)."
    )
    too_much: ClassVar[str] = "less than the share of the most frequent value in the whole table"

    attribute: str = parameter("sensitive attribute")
    alpha: float = parameter(
        "greatest share of one value in a class", low=0.0, high=1.0, above=True
    )
    k: int = parameter("least number of distinct subjects in a class", low=2)
    values: tuple[str, ...] = parameter("designated values; none means every value", default=())

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    @property
    def designated(self) -> tuple[str, ...]:
        return self.values

    @property
    def settings(self) -> Settings:
        """The designated values are counted, not named: a certificate holds no value."""
        return {"k": self.k} | ({"designated": len(self.values)} if self.values else {})

    def least_subjects(self, several_records: bool) -> int:
        """At least 1 / alpha, since some value occurs: 1 <= alpha * people."""
        return self.k if self.values else max(self.k, ceil(1 / as_written(self.alpha)))

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        measured, is_rare = super().judge(classes)
        return measured, is_rare & (classes.people() >= self.k)

    def nearest(self, whole_table: Classes) -> list[str]:
        too_few = too_few_subjects(self.model, self.k, whole_table)
        return [*too_few, *super().nearest(whole_table)]

    def greatest(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """Subjects who have the most frequent of the designated values, and all subjects."""
        people = classes.people()
        if not self.values:
            counts = value_counts(classes, self.attribute)
            return counts.largest(counts.count), people
        column = sensitive_column(classes, self.attribute)
        counts = counts_of(classes, column)  # a designated text for no value counts alone
        is_designated = np.isin(counts.value, _places(column, self.values))
        return counts.largest(np.where(is_designated, counts.count, 0)), people


def _places(column: SensitiveColumn, labels: tuple[str, ...]) -> list[int]:
    """Places of the values that occur; a value that does not occur has nothing to hide."""
    if not column.labels and column.hierarchy is None:
        raise InputError(
            f"attribute '{column.name}': its values can't be named here; leave out 'values' to"
            " cover every value"
        )
    places = (column.code_of(label) for label in labels)
    return [place for place in places if place is not None]
