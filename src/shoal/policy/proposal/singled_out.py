"""How many people the quasi-identifiers single out: alone, in pairs, all together.

A person is singled out by some columns if one of their records holds values there that no other
person's record holds. More columns single out the same people and maybe more, so that what a
column adds to all others is a difference of two counts.

Each value of each column has a random number of 64 bits; the exclusive or over some columns stands
for a record's values there. Of people who have several records, the last bits are kept for their
number. So few records are taken to be alike by chance that no share shows it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from shoal.data.progress import Progress, no_progress

WORST_PAIRS = 3
LONGEST_ORDER = 8
ENOUGH = 0.95  # share of all whom all columns single out, at which an order ends


@dataclass(frozen=True)
class Shares:
    """Shares of the people. alone: whom a column singles out by itself. adds: whom all single out
    and all others don't. together: whom all single out.
    """

    alone: dict[str, float]
    adds: dict[str, float]
    together: float


@dataclass(frozen=True)
class Order:
    """pairs: the worst ones, with the share that they single out. steps: columns, each the one that
    adds most to those before it, with the share that all up to it single out.
    """

    pairs: tuple[tuple[str, str, float], ...]
    steps: tuple[tuple[str, float], ...]


class SinglingOut:
    """Counts over a table's records.

    names: of the columns. codes: (n,) of each, which value a record holds. people: (n,) whose
    record it is, numbered densely; None where each is its own person's.
    """

    def __init__(
        self, names: Sequence[str], codes: Sequence[np.ndarray], people: np.ndarray | None = None
    ) -> None:
        self._names = list(names)
        self._keys = [_keys(number, column) for number, column in enumerate(codes)]
        self._distinct = [int(column.max(initial=0)) + 1 for column in codes]
        self._people = people
        records = len(codes[0]) if len(codes) else 0
        self._count = records if people is None else int(people.max(initial=-1)) + 1

    def shares(self, progress: Progress = no_progress) -> Shares:
        """By column, and all together."""
        if not self._keys or not self._count:
            return Shares({}, {}, 0.0)
        every = np.bitwise_xor.reduce(self._keys, axis=0)
        together = self._share(every)
        alone, adds = {}, {}
        for number, (name, keys) in enumerate(zip(self._names, self._keys, strict=True), 1):
            progress(f"counting who is alone, column {number} of {len(self._names)}")
            alone[name] = self._share(keys)
            adds[name] = together - self._share(every ^ keys)
        return Shares(alone, adds, together)

    def order(self, progress: Progress = no_progress) -> Order:
        """The worst pairs, and the order in which columns single out most."""
        return Order(self._worst_pairs(progress), self._greedy(progress))

    def _worst_pairs(self, progress: Progress) -> tuple[tuple[str, str, float], ...]:
        pairs = list(combinations(range(len(self._keys)), 2))
        # no pair singles out more people than it has combinations of values
        most = {(a, b): self._distinct[a] * self._distinct[b] for a, b in pairs}
        worst: list[tuple[float, int, int]] = []
        for a, b in sorted(pairs, key=lambda pair: -most[pair]):
            if len(worst) == WORST_PAIRS and most[a, b] < -worst[-1][0] * self._count:
                break
            progress(f"counting who is alone in pairs, column {a + 1} of {len(self._names)}")
            worst.append((-self._share(self._keys[a] ^ self._keys[b]), a, b))
            worst = sorted(worst)[:WORST_PAIRS]
        return tuple((self._names[a], self._names[b], -share) for share, a, b in worst if share)

    def _greedy(self, progress: Progress) -> tuple[tuple[str, float], ...]:
        if not self._keys or not self._count:
            return ()
        together = self._share(np.bitwise_xor.reduce(self._keys, axis=0))
        steps: list[tuple[str, float]] = []
        chosen = np.zeros_like(self._keys[0])
        left = dict(enumerate(self._names))
        while left and len(steps) < LONGEST_ORDER:
            progress(f"ordering columns by whom they single out, step {len(steps) + 1}")
            gains = {i: self._share(chosen ^ self._keys[i]) for i in left}
            # where none gains yet, the one with most values is nearest to it
            best = max(gains, key=lambda i: (gains[i], self._distinct[i]))
            steps.append((left.pop(best), gains[best]))
            chosen = chosen ^ self._keys[best]
            if gains[best] >= ENOUGH * together:
                break
        return tuple(steps) if steps and steps[-1][1] else ()

    def _share(self, keys: np.ndarray) -> float:
        return singled_out(keys, self._people) / self._count


def singled_out(keys: np.ndarray, people: np.ndarray | None = None) -> int:
    """How many people have a key that nobody else has. keys: (n,) uint64. people: as above."""
    if people is None:
        ordered = np.sort(keys)
        begins = np.append(np.append(True, ordered[1:] != ordered[:-1]), True)
        return int((begins[1:] & begins[:-1]).sum())
    # the person in the last bits of the key: sorted once, each key's first and last person show
    # whether there is but one
    bits = np.uint64(int(people.max(initial=0)).bit_length())
    whose = (np.uint64(1) << bits) - np.uint64(1)
    ordered = np.sort((keys & ~whose) | people.astype(np.uint64))
    key, person = ordered & ~whose, ordered & whose
    begins = np.append(True, key[1:] != key[:-1])
    first, last = person[begins], person[np.append(begins[1:], True)]
    return int((np.bincount(first[first == last].astype(np.int64)) > 0).sum())


def share_text(share: float) -> str:
    """A share in percent."""
    if share in (0, 1):
        return f"{100 * share:.0f} %"
    return "below 0.1 %" if share < 0.001 else f"{min(100 * share, 99.9):.1f} %"


def _keys(number: int, codes: np.ndarray) -> np.ndarray:
    """(n,) uint64, a random number for each value of a column (Steele and others, SplitMix64)."""
    values = np.arange(int(codes.max(initial=0)) + 1, dtype=np.uint64)
    z = (values + np.uint64(number << 40)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: np.ndarray = (z ^ (z >> np.uint64(31)))[codes]
    return mixed
