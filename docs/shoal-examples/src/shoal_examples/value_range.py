"""Value range: the sensitive numbers of a class do not lie close together.

Zhang, Koudas, Srivastava, Yu. ICDE 2007, where it is the e of (k, e)-anonymity.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.extend import Classes, InputError, Promise, sensitive_column


@dataclass(frozen=True)
class ValueRange(Promise):
    """The greatest and the least value of a class differ by at least `least`."""

    model: ClassVar[str] = "value-range"
    letter: ClassVar[str] = "least"  # the parameter that is the threshold
    source: ClassVar[str] = "Zhang, Koudas, Srivastava, Yu 2007"
    definition: ClassVar[str] = (
        "In every class, the greatest and the least value of the attribute differ by at least this"
        " much."
    )
    monotone: ClassVar[bool] = True  # a union of classes spans at least what each of them spans
    higher_is_better: ClassVar[bool] = True

    attribute: str = field(metadata={"help": "numeric sensitive attribute"})
    least: float = field(metadata={"help": "least difference within a class", "low": 0.0})

    @property
    def attributes(self) -> tuple[str, ...]:
        return (self.attribute,)

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        column = sensitive_column(classes, self.attribute)
        if column.numbers is None:
            raise InputError(
                f"promise '{self.model}': attribute '{self.attribute}' must be of type number"
            )
        numbers = column.numbers[column.codes]
        known = (classes.labels >= 0) & np.isfinite(numbers)  # a missing number is infinite
        least, greatest = np.full(classes.count, np.inf), np.full(classes.count, -np.inf)
        np.minimum.at(least, classes.labels[known], numbers[known])
        np.maximum.at(greatest, classes.labels[known], numbers[known])
        measured = np.where(classes.sizes > 0, np.maximum(greatest - least, 0.0), np.nan)
        return measured, measured >= self.least
