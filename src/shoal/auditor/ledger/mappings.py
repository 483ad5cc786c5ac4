"""Which rows of one release can be rows of a later one: exactly, by flows."""

from __future__ import annotations

import numpy as np

from shoal.auditor.ledger.numbering import Rows, lists_by_key, values_by_class


class Mappings:
    """All ways in which the rows of one release can be rows of a later one that holds them all.

    A row can only be a row of the same value in a class whose box meets its own. So values don't
    matter to each other, and for each the mappings are the flows from earlier classes, which must
    send all, to later ones, which have room for as many as they show.
    """

    def __init__(
        self,
        first: Rows,
        second: Rows,
        pairs: np.ndarray,
    ) -> None:
        """pairs: (m, 2) classes of the two releases whose boxes meet."""
        self._rows1 = values_by_class(*first)
        self._rows2 = values_by_class(*second)
        self._meets = lists_by_key(pairs[:, 0], pairs[:, 1])

    def most_shared(self, pairs: np.ndarray) -> np.ndarray:
        """The most records that each pair of classes, (m, 2), shares in any mapping; (m,) int64."""
        return np.array([self._most_shared(g1, g2) for g1, g2 in pairs.tolist()], dtype=np.int64)

    def _most_shared(self, g1: int, g2: int) -> int:
        total = 0
        for value, sent in self._rows1[g1].items():
            sources, room = self._of_value(value)
            for shared in range(min(sent, room.get(g2, 0)), 0, -1):
                if _all_find_room(
                    {**sources, g1: sent - shared}, {**room, g2: room[g2] - shared}, self._meets
                ):
                    total += shared
                    break
        return total

    def fewest_old(self, classes: np.ndarray) -> np.ndarray:
        """The fewest records of each of these later classes that are old in any mapping; int64."""
        return np.array([self._fewest_old(g2) for g2 in classes.tolist()], dtype=np.int64)

    def _fewest_old(self, g2: int) -> int:
        total = 0
        for value, here in self._rows2[g2].items():
            sources, room = self._of_value(value)
            total += next(
                old
                for old in range(here + 1)
                if _all_find_room(sources, {**room, g2: old}, self._meets)
            )
        return total

    def _of_value(self, value: int) -> tuple[dict[int, int], dict[int, int]]:
        """How many rows of a value each earlier class sends, and each later one has."""
        sent = {g: shown[value] for g, shown in self._rows1.items() if value in shown}
        return sent, {g: shown[value] for g, shown in self._rows2.items() if value in shown}


def _all_find_room(
    sources: dict[int, int], room: dict[int, int], meets: dict[int, list[int]]
) -> bool:
    """Whether all rows of the sources fit into the classes they meet: a flow, unit by unit."""
    placed: dict[int, dict[int, int]] = {target: {} for target in room}
    for source, many in sources.items():
        for _ in range(many):
            if not _place(source, placed, room, meets, set()):
                return False
    return True


def _place(
    source: int,
    placed: dict[int, dict[int, int]],
    room: dict[int, int],
    meets: dict[int, list[int]],
    tried: set[int],
) -> bool:
    """Place one row of a source somewhere; move others on where that makes room."""
    for target in meets.get(source, ()):
        if target not in room or target in tried:
            continue
        tried.add(target)
        inside = placed[target]
        if sum(inside.values()) < room[target]:
            inside[source] = inside.get(source, 0) + 1
            return True
        for other in [g for g, many in inside.items() if many and g != source]:
            if _place(other, placed, room, meets, tried):
                inside[other] -= 1
                inside[source] = inside.get(source, 0) + 1
                return True
    return False
