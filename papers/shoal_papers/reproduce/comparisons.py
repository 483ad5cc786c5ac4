"""How often FADS, as printed, and CASTLE compare a record with a record or with a cluster.

Seconds measure a program, comparisons an algorithm. Counted are: a record that is to leave, with
each published cluster that might cover it; the record that a cluster begins with, with each record
that is left; a record that is left over, with each new cluster; an arrival, with each candidate
cluster; and a candidate that is too small, with each other one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np

from shoal.streams.kernels import candidates, nearest_clusters
from shoal.streams.methods.castle import CastlePublisher

METHODS = ("fads", "castle")

Call = Callable[..., Any]
Counted = Callable[..., tuple[Any, int]]
"""Makes a call, and counts the comparisons in it."""


def _covering(call: Call, values: np.ndarray, *rest: np.ndarray) -> tuple[Any, int]:
    clusters = len(rest[2])
    return call(values, *rest), len(values) * clusters


def _nearest(call: Call, *arguments: Any) -> tuple[Any, int]:
    labels, clusters = found = call(*arguments)
    k = arguments[4]
    return found, clusters * (len(labels) - 1) - k * clusters * (clusters - 1) // 2


def _join(call: Call, *arguments: Any) -> tuple[Any, int]:
    labels, clusters = arguments[3:5]
    left_over = int((labels < 0).sum())
    return call(*arguments), left_over * clusters


def _covering_alone(call: Call, publisher: CastlePublisher, *one: Any) -> tuple[Any, int]:
    return call(publisher, *one), len(publisher._reusable)


def _merging(call: Call, publisher: CastlePublisher, *cluster: Any) -> tuple[Any, int]:
    candidates_now = int((publisher._held["born"] >= 0).sum())
    return call(publisher, *cluster), candidates_now - 1


def _arriving(call: Call, at: int, rules: np.ndarray, *rest: Any) -> tuple[Any, int]:
    """Each arrival meets the candidates that there are; those begun on the way, from their second
    record on.
    """
    _, arrivals, *_, ids, links, _, counts, _ = rest
    born, begun = counts[2], rules[candidates.BEGUN]
    alive = int((born >= 0).sum())
    end, begun_now = found = call(at, rules, *rest)
    met = (end - at) * alive
    for cluster in np.flatnonzero(born >= begun) if begun_now > begun else ():
        first = ids[1][links[0] == cluster].min()
        met += int(arrivals[candidates.SEQ, end - 1] - first)
    return found, met


CALLS: tuple[tuple[Any, str, Counted], ...] = (
    (nearest_clusters, "covering", _covering),
    (nearest_clusters, "nearest", _nearest),
    (nearest_clusters, "join", _join),
    (candidates, "arrive", _arriving),
    (CastlePublisher, "_covering", _covering_alone),
    (CastlePublisher, "_nearest", _merging),
)


@contextmanager
def counting() -> Iterator[list[int]]:
    """The comparisons that are made meanwhile, call by call, where every record is its own
    person.
    """
    made: list[int] = []

    def counted(call: Call, count: Counted) -> Call:
        def counts(*arguments: Any) -> Any:
            found, comparisons = count(call, *arguments)
            made.append(comparisons)
            return found

        return counts

    with ExitStack() as stack:
        for owner, name, count in CALLS:
            stack.enter_context(patch.object(owner, name, counted(getattr(owner, name), count)))
        yield made
