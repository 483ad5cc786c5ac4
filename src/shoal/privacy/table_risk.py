"""The risk in a table as it stands: how many people look like how many, by what others could know.

Everything is counted, in people. What a column gives away is measured by leaving it out: one
counting for each column, never one for each set of columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.data.progress import Progress, no_progress, tell
from shoal.privacy.lone_people import row_keys, singled_out, smallest_sets, together

SCHEMA = "shoal.risk/1"


@dataclass(frozen=True)
class Risk:
    """Who hides among how many in a table, by its quasi-identifiers; no value of it.

    unit: `people`, or `records` where each is taken to be a person. k: the policy's, None without
    one. sets: people by the size of the set they hide in, ascending; of a person's records, the
    most exposed one counts. alone: people whom a column singles out by itself. without: lone people
    who remain if a column were not known. if_known: lone people if others knew a column that is
    harmless by its role, too.
    """

    rows: int
    people: int
    unit: str
    quasi: tuple[str, ...]
    k: int | None
    sets: Mapping[int, int]
    alone: Mapping[str, int]
    without: Mapping[str, int]
    if_known: Mapping[str, int]

    @property
    def lone(self) -> int:
        """People whom nobody else looks like."""
        return self.sets.get(1, 0)

    def below(self, k: int) -> int:
        """People who hide among fewer than k, themselves counted."""
        return sum(people for size, people in self.sets.items() if size < k)

    def hidden(self, k: int) -> int:
        """People who hide among k or more already."""
        return self.people - self.below(k)

    def most_classes(self, k: int) -> int:
        """More classes of k people than this no release can have."""
        return self.people // k

    def to_dict(self) -> dict[str, Any]:
        """All figures, as JSON can hold them."""
        asked = (
            {}
            if self.k is None
            else {"below_k": self.below(self.k), "most_classes": self.most_classes(self.k)}
        )
        return {
            "schema": SCHEMA,
            "rows": self.rows,
            "people": self.people,
            "unit": self.unit,
            "quasi": list(self.quasi),
            "k": self.k,
            "lone": self.lone,
            **asked,
            "sets": [{"size": size, "people": people} for size, people in self.sets.items()],
            "columns": {
                name: {"alone": self.alone[name], "without": self.without[name]}
                for name in self.quasi
            },
            "if_known": dict(self.if_known),
        }


def table_risk(
    quasi: Mapping[str, np.ndarray],
    plain: Mapping[str, np.ndarray],
    people: np.ndarray | None,
    k: int | None = None,
    progress: Progress = no_progress,
) -> Risk:
    """The risk of records by what others could know of them.

    quasi, plain: by column, (n,) codes, equal for values that look the same. people: (n,) whose
    record it is, numbered densely; None where each is its own person's.
    """
    records = len(next(iter({**quasi, **plain}.values()), ()))
    keys = row_keys({**quasi, **plain}, records)
    known = {name: keys[name] for name in quasi}
    every = together(known, records)
    progress("counting who hides among how many")
    sizes, counts = np.unique(smallest_sets(every, people), return_counts=True)
    alone, without, if_known = {}, {}, {}
    for number, (name, own) in enumerate(known.items(), 1):
        stage = f"counting who is alone, column {number} of {len(known)}"
        tell(progress, stage, number - 1, len(known) + len(plain))
        alone[name] = singled_out(own, people)
        without[name] = singled_out(every ^ own, people)
    for number, name in enumerate(plain, 1):
        stage = f"counting who would be alone, harmless column {number} of {len(plain)}"
        tell(progress, stage, len(known) + number - 1, len(known) + len(plain))
        if_known[name] = singled_out(every ^ keys[name], people)
    return Risk(
        records,
        int(counts.sum()),
        "records" if people is None else "people",
        tuple(quasi),
        k,
        dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        alone,
        without,
        if_known,
    )
