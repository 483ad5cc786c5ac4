"""Holder share: no sensitive value belongs to too many of the members of a class.

Ours, for people with several records. Values that differ by record hide in different records of a
class, so each of them may be diverse while every member has the same value in one of them: whoever
knows a person's class then knows that the person has it.
Reading: a text for no value is none that anybody has.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.data.option import parameter
from shoal.privacy.promise import Promise, as_written, sign
from shoal.privacy.value_counts import counts_of, sensitive_column


@dataclass(frozen=True)
class HolderShare(Promise):
    """Of the members of a class, at most a share has any one value in some record.

    A union of classes that hold holds: the share of a value is at most the largest of theirs.
    """

    model: ClassVar[str] = "holder-share"
    letter: ClassVar[str] = "share"
    source: ClassVar[str] = "ours"
    definition: ClassVar[str] = (
        "In every class, no value of the sensitive attribute belongs to more than this share of the"
        " subjects, in whichever of their records."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False

    attribute: str = parameter("sensitive attribute")
    share: float = parameter(
        "greatest share of a class that has one value", low=0.0, high=1.0, above=True
    )

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        people, holders = classes.people(), self._holders(classes)
        with np.errstate(invalid="ignore"):
            measured = np.where(people > 0, holders / people, np.nan)
        return measured, (sign(holders, people, as_written(self.share)) <= 0) & (people > 0)

    def nearest(self, whole_table: Classes) -> list[str]:
        people, holders = int(whole_table.people()[0]), int(self._holders(whole_table)[0])
        if not people or holders <= as_written(self.share) * people:
            return []
        least = -(-holders * 10**6 // people) / 10**6
        return [
            f"promise '{self.model}' on '{self.attribute}': share = {self.share} asked, and more of"
            f" all people have one value; the nearest that holds is share = {least}"
        ]

    def _holders(self, classes: Classes) -> np.ndarray:
        """The members with the most frequent value of each class, (count,) int64."""
        column = sensitive_column(classes, self.attribute).with_missing_as_one()
        counts = counts_of(classes, column)
        is_value = counts.value < column.values - bool(column.missing)
        return counts.largest(np.where(is_value, counts.count, 0))
