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
from shoal.privacy.promise import GreatestShare
from shoal.privacy.value_counts import counts_of, sensitive_column


@dataclass(frozen=True)
class HolderShare(GreatestShare):
    """Of the members of a class, at most a share has any one value in some record."""

    model: ClassVar[str] = "holder-share"
    letter: ClassVar[str] = "share"
    source: ClassVar[str] = "ours"
    definition: ClassVar[str] = (
        "In every class, no value of the sensitive attribute belongs to more than this share of the"
        " subjects, in whichever of their records."
    )
    too_much: ClassVar[str] = "and more of all people have one value"

    attribute: str = parameter("sensitive attribute")
    share: float = parameter(
        "greatest share of a class that has one value", low=0.0, high=1.0, above=True
    )

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    def greatest(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """The members with the most frequent value of each class, and all of its members."""
        column = sensitive_column(classes, self.attribute).with_missing_as_one()
        counts = counts_of(classes, column)
        is_value = counts.value < column.values - bool(column.missing)
        return counts.largest(np.where(is_value, counts.count, 0)), classes.people()
