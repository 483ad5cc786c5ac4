"""Subject share: nobody owns too many of the records of a class.

Ours, after what the literature on repeated appearances asks of groups: that people are about
equally frequent. A class of k people of whom one owns nearly every record is nearly that person's
own record: k counts people, and says nothing of this.
"""

from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np

from shoal.data.classes import Classes
from shoal.data.option import parameter
from shoal.privacy.promise import GreatestShare, as_written


@dataclass(frozen=True)
class SubjectShare(GreatestShare):
    """Of the records of a class, no subject owns more than a share; a union of classes that hold
    holds, also where they share subjects.
    """

    model: ClassVar[str] = "subject-share"
    letter: ClassVar[str] = "share"
    source: ClassVar[str] = "ours"
    definition: ClassVar[str] = (
        "In every class, no subject owns more than this share of the records."
    )
    too_much: ClassVar[str] = "and somebody owns more of the whole table"
    attributes: ClassVar[tuple[str, ...]] = ()

    share: float = parameter(
        "greatest share of a class that one subject owns", low=0.0, high=1.0, above=True
    )

    def least_subjects(self, several_records: bool) -> int:
        """Whoever owns most owns at least 1 / people of the records."""
        return ceil(1 / as_written(self.share))

    def greatest(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """The records of whoever owns most of each class, and all of its records."""
        if classes.subjects is None:
            return np.minimum(classes.sizes, 1), classes.sizes
        kept = classes.labels >= 0
        pairs, owned = np.unique(
            classes.labels[kept].astype(np.int64) << 32 | classes.subjects[kept], return_counts=True
        )
        most = np.zeros(classes.count, dtype=np.int64)
        np.maximum.at(most, pairs >> 32, owned)
        return most, classes.sizes
