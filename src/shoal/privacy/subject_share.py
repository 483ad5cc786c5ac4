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
from shoal.privacy.promise import Promise, as_written, sign


@dataclass(frozen=True)
class SubjectShare(Promise):
    """Of the records of a class, no subject owns more than a share.

    A union of classes that hold holds, also where they share subjects: nobody owns more of the
    union than the larger of their shares.
    """

    model: ClassVar[str] = "subject-share"
    letter: ClassVar[str] = "share"
    source: ClassVar[str] = "ours"
    definition: ClassVar[str] = (
        "In every class, no subject owns more than this share of the records."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = False
    attributes: ClassVar[tuple[str, ...]] = ()

    share: float = parameter(
        "greatest share of a class that one subject owns", low=0.0, high=1.0, above=True
    )

    def least_subjects(self, several_records: bool) -> int:
        """Whoever owns most owns at least 1 / people of the records."""
        return ceil(1 / as_written(self.share))

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        most, records = _most(classes), classes.sizes
        with np.errstate(invalid="ignore"):
            measured = np.where(records > 0, most / records, np.nan)
        return measured, (sign(most, records, as_written(self.share)) <= 0) & (records > 0)

    def nearest(self, whole_table: Classes) -> list[str]:
        most, records = int(_most(whole_table)[0]), int(whole_table.sizes[0])
        if not records or most <= as_written(self.share) * records:
            return []
        least = -(-most * 10**6 // records) / 10**6
        return [
            f"promise '{self.model}': share = {self.share} asked, and somebody owns more of the"
            f" whole table; the nearest that holds is share = {least}"
        ]


def _most(classes: Classes) -> np.ndarray:
    """Records of whoever owns most of each class, (count,) int64."""
    kept = classes.labels >= 0
    most = np.zeros(classes.count, dtype=np.int64)
    if classes.subjects is None:
        return np.minimum(classes.sizes, 1)
    pairs, owned = np.unique(
        classes.labels[kept].astype(np.int64) << 32 | classes.subjects[kept], return_counts=True
    )
    np.maximum.at(most, pairs >> 32, owned)
    return most
