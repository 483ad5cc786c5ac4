"""In a row: neighbours on the first quasi-identifier share a class once it has all it needs."""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np

from shoal.extend import InfeasibleError, Matrix, Partition, Partitioner, Promises


@dataclass(frozen=True)
class InARow(Partitioner):
    """Short runs of neighbours; the other quasi-identifiers are ignored."""

    name: ClassVar[str] = "in-a-row"
    paper: ClassVar[str] = "none; an example from Shoal's documentation"

    times: int = field(default=1, metadata={"help": "people in a class, in units of k", "low": 1})

    def partition(self, matrix: Matrix, promises: Promises, rng: np.random.Generator) -> Partition:
        """Classes of at least k people and, for l-diversity, l different values."""
        if matrix.people < promises.k:
            raise InfeasibleError(
                f"the table has {matrix.people} subjects, fewer than k = {promises.k}"
            )
        people = np.arange(matrix.records) if matrix.subjects is None else matrix.subjects
        needed = [(people, promises.k * self.times)]
        for terms in promises.terms:
            if terms.model == "l-diversity":
                (attribute,) = terms.sensitive
                needed.append((promises.sensitive[attribute].codes, terms.parameters["l"]))
        labels = np.empty(matrix.records, dtype=np.int32)
        members: list[int] = []
        count = 0
        for record in np.argsort(matrix.codes[:, 0], kind="stable").tolist():
            members.append(record)
            if all(len(np.unique(codes[members])) >= least for codes, least in needed):
                labels[members] = count
                members, count = [], count + 1
        labels[members] = max(count - 1, 0)  # whoever is left joins the last class
        return Partition.of(labels)
