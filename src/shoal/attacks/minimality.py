"""Minimality: what a release tells because its method made nothing coarser than it had to.

Knows the release, the policy and the method. Wong and others. Minimality attack in privacy
preserving data publishing. VLDB 2007; Cohen. Attacks on deidentification's defenses. USENIX
Security 2022.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from math import factorial, prod
from typing import ClassVar

import numpy as np

from shoal.attacks.counts import counted, mean_of, people_in
from shoal.data.attack_scene import AttackScene, Axis, Boxes, Findings, Replay
from shoal.data.classes import people_with
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.protocols import Attack


@dataclass(frozen=True)
class Minimality(Attack):
    """What tight cells, an optimal level or an uncut class say about the people behind them."""

    name: ClassVar[str] = "minimality"
    number: ClassVar[int] = 5
    needs: ClassVar[tuple[str, ...]] = ("alignment",)

    def run(self, scene: AttackScene) -> Findings:
        """Tightness for every release; the other two parts where the method is understood."""
        least, again = optimality(scene), replay(scene, self.number)
        return {**tightness(scene), "optimality": least, "replay": again}


def tightness(scene: AttackScene) -> Findings:
    """What tight cells imply about members, of all generalized cells; null where some is false."""
    boxes = scene.release.boxes
    implied = refuted = cells = 0
    for j, axis in enumerate(boxes.axes):
        wide = boxes.sizes[:, j] >= 2
        cells += int(boxes.people[wide].sum())
        parts = _halves(axis.tree, boxes, j) if axis.tree is not None else _ends(boxes, j)
        for said in parts:
            implied += len(said[0])
            refuted += int((~_somebody(scene, j, said)).sum())
    found: Findings = {"implied": None, "false": refuted}
    if refuted:
        why = "ranges are wider than the values in them, so their ends need not be anybody's value"
        return found | {"why": why}
    return found | {"implied": counted(implied, cells)}


Statement = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Classes, and the span of places that some member of each has."""


def _ends(boxes: Boxes, j: int) -> list[Statement]:
    """A member at either end of an interval."""
    label = np.flatnonzero((boxes.sizes[:, j] >= 2) & ~boxes.is_marked()[:, j])
    lo, hi = boxes.lo[label, j], boxes.hi[label, j]
    return [(label, lo, lo), (label, hi, hi)]


def _halves(tree: Hierarchy, boxes: Boxes, j: int) -> list[Statement]:
    """A member under either child of a node that has two."""
    wide = (boxes.sizes[:, j] >= 2) & ~(boxes.is_marked()[:, j] & boxes.axes[j].has_missing)
    label = np.flatnonzero(wide)
    lo = boxes.lo[label, j]
    node = tree.covering(lo, np.minimum(boxes.hi[label, j], tree.leaves - 1))
    child = np.flatnonzero(tree.parent >= 0)
    children = np.bincount(tree.parent[child], minlength=len(tree.parent))
    has_two = children[node] == 2
    label, lo, node = label[has_two], lo[has_two], node[has_two]
    # the first of two children begins where its parent does, the second after it
    middle = np.zeros(len(tree.parent), dtype=np.int32)
    np.maximum.at(middle, tree.parent[child], tree.first[child])
    return [(label, lo, middle[node] - 1), (label, middle[node], tree.last[node])]


def _somebody(scene: AttackScene, j: int, said: Statement) -> np.ndarray:
    """(m,) bool, whether some record of each class lies in its span."""
    labels, (label, lo, hi) = scene.release.labels, said
    first = np.full(scene.release.boxes.count, 1, dtype=np.int64)
    last = np.zeros(scene.release.boxes.count, dtype=np.int64)
    first[label], last[label] = lo, hi
    kept = labels >= 0
    place = scene.people.points[kept, j]
    inside = (first[labels[kept]] <= place) & (place <= last[labels[kept]])
    return np.isin(label, labels[kept][inside])


# What a proven optimum of full-domain generalization says about the classes that it left whole.
#
# One level lower on an attribute would have put too many records into parts of fewer than k
# people, or the search would have gone there. Where other classes can't account for all of them,
# a class surely has such a part.


NO_ACCOUNT = "no account of what this method would have done otherwise"
METHOD = "full-domain"


def optimality(scene: AttackScene) -> Findings:
    """People in classes that surely have a part below k a level lower; null if that is unknown."""
    made, k = scene.recoding, scene.required_k
    rounds = made.parameters.get("rounds", 0)
    # by the same rule of who is suppressed, which is all that is used here
    is_least = made.statistics.get("every_node", made.statistics.get("proven"))
    if made.method != METHOD or rounds or not is_least or k is None:
        return {"forced": None, "why": NO_ACCOUNT}
    boxes = scene.release.boxes
    room = (made.suppression_limit or 0) - int(made.statistics["suppressed"])
    forced, skipped = np.zeros(boxes.count, dtype=bool), []
    for j, axis in enumerate(boxes.axes):
        level = made.statistics["levels"].get(axis.name, 0)
        if not level or axis.tree is None:
            continue
        if axis.has_missing or _in_small_parts(scene, j, level, k) <= room:
            skipped.append(axis.name)  # something else than k stood against it
            continue
        caps = most_in_small_parts(boxes.people, _children(boxes, j, level), k)
        forced |= (caps.sum() - caps <= room) & (caps > 0)
    release = scene.release
    people = people_in(release, forced[release.labels])
    return {"forced": counted(people, people_in(release)), "skipped": skipped}


def most_in_small_parts(people: np.ndarray, parts: np.ndarray, k: int) -> np.ndarray:
    """(classes,) how many of a class's people can at most stand in parts of fewer than k."""
    caps = np.where(people <= parts * (k - 1), people, (parts - 1) * (k - 1))
    return np.where(parts == 1, 0, caps)


def _children(boxes: Boxes, j: int, level: int) -> np.ndarray:
    """(classes,) into how many parts a class's cell falls one level lower."""
    above = _ancestors(boxes.axes[j], level - 1)
    begins = np.concatenate([[0], np.cumsum(above[1:] != above[:-1])])
    return begins[np.minimum(boxes.hi[:, j], len(above) - 1)] - begins[boxes.lo[:, j]] + 1


def _in_small_parts(scene: AttackScene, j: int, level: int, k: int) -> int:
    """Records that would stand in parts of fewer than k people one level lower."""
    above = _ancestors(scene.release.boxes.axes[j], level - 1)
    kept = scene.release.labels >= 0
    label = scene.release.labels[kept].astype(np.int64)
    keys = label * (int(above.max()) + 1) + above[scene.people.points[kept, j]]
    shared = None if scene.release.subjects is None else scene.release.subjects[kept]
    parts, people = people_with(keys, shared)
    return int(np.isin(keys, parts[people < k]).sum())


def _ancestors(axis: Axis, level: int) -> np.ndarray:
    assert axis.tree is not None
    return axis.tree.ancestors_at(level)


# Which values a class that was left whole can hold, if its method would have cut any others.
#
# Wong and others. Minimality attack in privacy preserving data publishing. VLDB 2007: here by
# asking the method itself, class by class.


MOST_CLASSES = 50
MOST_ASKED = 1_000  # classes about which the method is asked whether k alone would cut them
MOST_ASSIGNMENTS = 5_000  # of which every one is tried
DRAWN = 200
FEWEST_ACCEPTED = 30  # of drawn assignments, so that a posterior means anything


def replay(scene: AttackScene, number: int) -> Findings:
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
    found: Findings = {}
    for name, column in scene.release.sensitive.items():
        tried = [_replayed(made.replay, rows, name, column.codes[rows], rng) for rows in chosen]
        found[name] = _summary([t for t in tried if t is not None], len(tried))
        found[name]["stopped_by_k"] = stopped
    return found


@dataclass(frozen=True)
class _Outcome:
    """One class: share of assignments ruled out, gain in posterior, pairs; None of too few."""

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


def _summary(outcomes: list[_Outcome], tried: int) -> Findings:
    posterior = [o.posterior for o in outcomes if o.posterior is not None]
    pairs = [o.pairs for o in outcomes if o.pairs is not None]
    return {
        "excluded": mean_of(np.array([o.excluded for o in outcomes])),
        "posterior_right": float(np.mean(posterior)) if posterior else None,
        "pairs": float(np.mean(pairs)) if pairs else None,
        "replayed": len(outcomes),
        "not_replayed": tried - len(outcomes),
    }
