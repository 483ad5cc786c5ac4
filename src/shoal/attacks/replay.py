"""Which values a class that was left whole can hold, if its method would have cut any others.

Wong and others. Minimality attack in privacy preserving data publishing. VLDB 2007: here by asking
the method itself, class by class.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod
from typing import Any

import numpy as np

from shoal.attacks.intervals import mean_of
from shoal.data.attack_scene import AttackScene, Replay

MOST_CLASSES = 50
MOST_ASKED = 1_000  # classes about which the method is asked whether k alone would cut them
MOST_ASSIGNMENTS = 5_000  # of which every one is tried
DRAWN = 200
FEWEST_ACCEPTED = 30  # of drawn assignments, so that a posterior means anything


def replay(scene: AttackScene, number: int) -> dict[str, Any]:
    """By sensitive attribute: how many ways to deal out a class's values its method rules out."""
    made, k = scene.recoding, scene.required_k
    if made.replay is None or k is None:
        return {"excluded": None, "why": made.no_replay}
    rng = scene.rng(number)
    labels = np.flatnonzero(scene.release.boxes.people >= 2 * k)
    by_class = np.argsort(scene.release.labels, kind="stable")
    starts = np.searchsorted(
        scene.release.labels[by_class], np.arange(scene.release.boxes.count + 1)
    )
    chosen: list[np.ndarray] = []
    stopped = 0
    for label in rng.permutation(labels)[:MOST_ASKED]:
        rows = by_class[starts[label] : starts[label + 1]]
        if made.replay.would_cut(rows):
            chosen.append(rows)
        else:
            stopped += 1
        if len(chosen) == MOST_CLASSES:
            break
    found: dict[str, Any] = {}
    for name, column in scene.release.sensitive.items():
        tried = [_replayed(made.replay, rows, name, column.codes[rows], rng) for rows in chosen]
        found[name] = _summary([t for t in tried if t is not None], len(tried))
        found[name]["stopped_by_k"] = stopped
    return found


@dataclass(frozen=True)
class _Outcome:
    """One class: share of assignments that are ruled out, gain in posterior, pairs; None where too
    few assignments are left to tell.
    """

    excluded: float
    posterior: float | None
    pairs: float | None


def _replayed(
    hook: Replay, rows: np.ndarray, name: str, values: np.ndarray, rng: np.random.Generator
) -> _Outcome | None:
    """None where the method would not have left the class whole even with its true values."""
    own = np.arange(len(rows))[None]
    if not hook.stays_whole(rows, name, own)[0]:
        return None
    assigned, is_all = _assignments(values, rng)
    accepted = hook.stays_whole(rows, name, assigned)
    kept = int(accepted.sum())
    excluded = 1 - kept / len(assigned)
    if not kept or not (is_all or kept >= FEWEST_ACCEPTED):
        return _Outcome(excluded, None, None)
    dealt = values[assigned[accepted]]
    # as many draws without the condition: few draws mimic learning
    free = values[assigned if is_all else assigned[:kept]]
    gain = float((dealt == values).mean() - (free == values).mean())
    return _Outcome(excluded, gain, _certain_pairs(dealt, values))


def _assignments(values: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, bool]:
    """Ways to deal the values out, each as whose value everybody gets; whether these are all."""
    distinct, counts = np.unique(values, return_counts=True)
    ways = factorial(len(values)) // prod(factorial(c) for c in counts.tolist())
    if ways > MOST_ASSIGNMENTS:
        return np.array([rng.permutation(len(values)) for _ in range(DRAWN)]), False
    owners = [np.flatnonzero(values == value).tolist() for value in distinct]
    return np.array(list(_dealt(owners, list(range(len(values))), {}))), True


def _dealt(owners: list[list[int]], free: list[int], given: dict[int, int]) -> Iterator[list[int]]:
    """Every way to give the first value's people to some free places, then the others."""
    if not owners:
        yield [given[place] for place in sorted(given)]
        return
    for places in combinations(free, len(owners[0])):
        now = given | dict(zip(places, owners[0], strict=True))
        yield from _dealt(owners[1:], [place for place in free if place not in now], now)


def _certain_pairs(dealt: np.ndarray, values: np.ndarray) -> float:
    """Share of ordered pairs of people where knowing one's value leaves one for the other."""
    people = len(values)
    if people < 2:
        return 0.0
    certain = 0
    for i in range(people):
        left = dealt[dealt[:, i] == values[i]]
        one = (left == left[:1]).all(axis=0) if len(left) else np.zeros(people, dtype=bool)
        certain += int(one.sum()) - int(one[i])
    return certain / (people * (people - 1))


def _summary(outcomes: list[_Outcome], tried: int) -> dict[str, Any]:
    posterior = [o.posterior for o in outcomes if o.posterior is not None]
    pairs = [o.pairs for o in outcomes if o.pairs is not None]
    return {
        "excluded": mean_of(np.array([o.excluded for o in outcomes])),
        "posterior_right": float(np.mean(posterior)) if posterior else None,
        "pairs": float(np.mean(pairs)) if pairs else None,
        "replayed": len(outcomes),
        "not_replayed": tried - len(outcomes),
    }
