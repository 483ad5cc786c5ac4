"""k-anonymity: everybody hides among at least k - 1 others.

Sweeney. International Journal of Uncertainty, Fuzziness and Knowledge-Based Systems
10(5):557-570, 2002; Samarati. IEEE TKDE 13(6):1010-1027, 2001.
Reading: k counts distinct subjects, not records.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.certificate_shape import PromiseReport
from shoal.data.classes import Classes, Sizes
from shoal.data.numbers import alike
from shoal.data.option import parameter
from shoal.errors import InputError
from shoal.privacy.promise import Judgement, Promise


@dataclass(frozen=True)
class KAnonymity(Promise):
    """At least k distinct subjects share every published combination of the quasi-identifiers.

    With `attributes`, only these are combined. Where the published cells are not known yet (while
    partitioning), the classes themselves are measured: equal cells of all quasi-identifiers are
    equal cells of some of them, so that is sound and at most stricter.
    """

    model: ClassVar[str] = "k-anonymity"
    letter: ClassVar[str] = "k"
    source: ClassVar[str] = "Samarati 2001; Sweeney 2002"
    definition: ClassVar[str] = (
        "Every combination of published quasi-identifiers that occurs is shared by at least k"
        " people."
    )
    monotone: ClassVar[bool] = True
    higher_is_better: ClassVar[bool] = True
    counts_people_only: ClassVar[bool] = True

    k: int = parameter("least number of distinct subjects in a class", low=2)
    attributes: tuple[str, ...] = parameter(
        "quasi-identifiers to combine; none means all", default=()
    )

    @property
    def sensitive(self) -> tuple[str, ...]:
        return ()

    def least_subjects(self, several_records: bool) -> int:
        return self.k

    def judge(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        people, _ = self._people(classes)
        return people.astype(np.float64), people >= self.k

    @property
    def groups_by(self) -> tuple[str, ...]:
        return self.attributes

    def part(self, classes: Classes, table: Classes) -> Judgement:
        """With the groups of people that are alike in its own attributes."""
        people, groups = self._people(classes)
        sizes = Sizes.of(groups)
        return self._judgement(people.astype(np.float64), people >= self.k, sizes)

    def total(self, parts: Sequence[Judgement]) -> PromiseReport:
        """With how many people are alike, and the chance to pick one out."""
        sizes = Sizes.joined(part.more for part in parts)
        return super().total(parts) | {
            "classes": sizes.stated,
            "risk": {
                "max": 1 / sizes.least if sizes.least else None,
                "mean": sizes.count / float(sizes.total) if sizes.count else None,
            },
        }

    def _people(self, classes: Classes) -> tuple[np.ndarray, np.ndarray]:
        """Of every class, the fewest people who share its cells; and how many share each cells."""
        if not self.attributes or not classes.quasi:
            return classes.people(), classes.people()
        of_record, sharing = _people_by_cells(classes, self._cells(classes))
        least = np.full(classes.count, np.iinfo(np.int64).max)
        np.minimum.at(least, classes.labels[classes.labels >= 0], sharing[of_record])
        return np.where(least == np.iinfo(np.int64).max, 0, least), sharing

    def nearest(self, whole_table: Classes) -> list[str]:
        return too_few_subjects(self.model, self.k, whole_table)

    def _cells(self, classes: Classes) -> list[np.ndarray]:
        InputError.raise_for(
            f"promise '{self.model}': attribute '{name}' is not a quasi-identifier; correct the"
            " policy"
            for name in self.attributes
            if name not in classes.quasi
        )
        return [classes.quasi[name] for name in self.attributes]


class BesidesK(Promise):
    """A promise that asks k as well, and states the people of the smallest class."""

    def part(self, classes: Classes, table: Classes) -> Judgement:
        least = int(classes.people().min()) if classes.count else None
        return self._judgement(*self.judge(classes), least)

    def total(self, parts: Sequence[Judgement]) -> PromiseReport:
        known = [part.more for part in parts if part.more is not None]
        return super().total(parts) | {"k_measured": min(known, default=None)}


def too_few_subjects(model: str, k: int, whole_table: Classes) -> list[str]:
    """A finding where even the whole table has fewer than k subjects."""
    people = int(whole_table.people()[0])
    if people >= k:
        return []
    remedy = (
        f"the nearest that holds is k = {people}" if people >= 2 else "no k holds for fewer than 2"
    )
    subjects = "1 subject" if people == 1 else f"{people} subjects"
    return [f"promise '{model}': k = {k} asked, {subjects} in the table; {remedy}"]


def _people_by_cells(classes: Classes, cells: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """The group of each record that is in a class, and how many subjects share its cells."""
    kept = np.flatnonzero(classes.labels >= 0)
    labels = alike((codes[kept] for codes in cells), len(kept)).astype(np.int32)
    subjects = None if classes.subjects is None else classes.subjects[kept]
    return labels, Classes(labels, int(labels.max(initial=-1)) + 1, subjects).people()
