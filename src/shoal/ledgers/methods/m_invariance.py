"""m-invariance: people may leave and change; all their classes show the same sensitive values.

Xiao, Tao. m-invariance: towards privacy preserving re-publication of dynamic datasets. SIGMOD 2007.
Sections 4 and 5.
Promise: the classes of a person show one set of at least m sensitive values in all releases, its
signature, each value equally often, so that somebody who knows when a person was in the table finds
the value with probability 1 / m at most.
Promise: every class holds k people, invented records not counted.
Paper: bucket, signature, counterfeit      Here: bucket, signature, invented record
Steps: divide, balance, assign, split.
Reading: the paper's classes hold one record of each value. With k above the size of a signature no
such class keeps k, so here a class holds `rows` records of each value; the bound 1 / m is the same.
Reading: an update is a person who stays with other values. The signature stays; a new sensitive
value outside it is refused, since a comparison of releases would reveal both.
Reading: several texts for no value are one value, so a new signature has at most one of them; which
one it is stays, since classes that show different ones have nothing in common.
Reading: new records are taken for new buckets from the values that most of them have, so that as
many as possible are placed; those that no bucket takes wait.
Ours, not the paper's: `refine` lets records change places between classes while the squared error
falls. With `exchange` both have the same sensitive value; people who were published stay with their
signature, new ones go anywhere. With `regroup` new records of different values change places, too,
between classes that hold new records alone, one of each value: such a class then has another
signature of as many values, rather one that many classes have. Neither changes how many people a
class has, or how often it shows each of its values.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.option import parameter
from shoal.data.partition import Matrix
from shoal.errors import ANOTHER_LEDGER, InfeasibleError, InputError
from shoal.ledgers.kernels import exchange_values
from shoal.protocols import Promises, Republisher
from shoal.search.clustering import points_of

EXCHANGE, REGROUP = "exchange", "regroup"


@dataclass
class Bucket:
    """Records that share a signature, by each of its values; -1 stands for an invented one."""

    records: dict[int, list[int]]

    @property
    def rows(self) -> int:
        """Records of the most frequent value."""
        return max(len(members) for members in self.records.values())

    @property
    def people(self) -> int:
        return sum(len(members) for members in self.records.values())


@dataclass(frozen=True)
class MInvariance(Republisher):
    """Signatures that stay. Draws no random number."""

    name: ClassVar[str] = "m-invariance"
    paper: ClassVar[str] = (
        "Xiao, Tao. m-invariance: towards privacy preserving re-publication of dynamic datasets."
        " SIGMOD 2007."
    )
    covers: ClassVar[str] = "table"
    needs: ClassVar[str] = "originals"
    guards: ClassVar[str] = "signatures"
    changes: ClassVar[bool] = True
    remedy: ClassVar[str] = "Nearest safe way: a lower m, or more records."

    m: int = parameter("least number of sensitive values that a class shows", default=2, low=2)
    refine: str = parameter(
        "afterwards exchange records between classes, so that less is lost (ours): of the same"
        " sensitive value; regroup: between new classes also of others",
        default="none",
        choices=("none", EXCHANGE, REGROUP),
    )

    def publish(
        self, increment: Matrix, view: LedgerView, promises: Promises, rng: np.random.Generator
    ) -> Placement:
        """Classes by signature of the table's records; new ones that fit nowhere wait."""
        self._check(view)
        rows = -(-promises.k // self.m)  # of each value, so that a class of m values holds k people
        waiting = _by_value(view, np.flatnonzero(~view.earlier), increment)
        buckets = _divided(view, increment)
        for signature in sorted(buckets):
            _balance(buckets[signature], waiting, promises.k)
        _assign(buckets, waiting, self.m, rows, view.no_value)
        labels = np.full(increment.records, -1, dtype=np.int32)
        counterfeits: list[tuple[int, int]] = []
        signatures: list[tuple[int, ...]] = []
        for signature in sorted(buckets):
            for by_value in _split(buckets[signature], increment, promises.k):
                c = len(signatures)
                for value, members in by_value.items():
                    labels[[i for i in members if i >= 0]] = c
                    counterfeits += [(c, value)] * members.count(-1)
                signatures.append(signature)
        placement = Placement(
            labels, len(signatures), np.array(counterfeits, dtype=np.int32).reshape(-1, 2)
        )
        if self.refine != "none" and signatures:
            _exchange(placement, signatures, self.refine == REGROUP, view, increment)
        return placement

    def _check(self, view: LedgerView) -> None:
        few = sum(
            _values_shown(view.signatures[s], view) < self.m
            for s in np.unique(view.signature[view.earlier]).tolist()
        )
        if few:
            raise InputError(
                f"method '{self.name}': classes of the last release that show fewer than m ="
                f" {self.m} sensitive values: {few}; lower m, or {ANOTHER_LEDGER}"
            )


def _values_shown(signature: tuple[int, ...], view: LedgerView) -> int:
    """The inverse of the share of its most frequent value, all texts for no value being one."""
    return len(signature) // max(1, len(view.no_value & {*signature}))


def _divided(view: LedgerView, matrix: Matrix) -> dict[tuple[int, ...], Bucket]:
    """Step 1: the records that stay, by signature."""
    buckets: dict[tuple[int, ...], Bucket] = {}
    for s in np.unique(view.signature[view.earlier]).tolist():
        signature = view.signatures[s]
        members = np.flatnonzero(view.earlier & (view.signature == s))
        by_value = _by_value(view, members, matrix)
        buckets[signature] = Bucket({value: by_value.get(value, []) for value in signature})
    return buckets


def _balance(bucket: Bucket, waiting: dict[int, list[int]], k: int) -> None:
    """Step 2: new records of the rarer values join; invented ones fill what is still missing.

    Where fewer than k people stayed, more new records of all values join.
    """
    rows = bucket.rows
    while True:
        for value, members in bucket.records.items():
            short = rows - len(members)
            members += waiting.get(value, [])[:short]
            waiting[value] = waiting.get(value, [])[short:]
        if bucket.people >= k:
            return
        if not any(waiting.get(value) for value in bucket.records):
            raise InfeasibleError(
                f"m-invariance: too few people of one signature stayed, {bucket.people} where"
                f" k = {k}, and no new record can join them; delete them, too, or add records with"
                " their sensitive values"
            )
        rows += 1


def _assign(
    buckets: dict[tuple[int, ...], Bucket],
    waiting: dict[int, list[int]],
    m: int,
    rows: int,
    no_value: frozenset[int],
) -> None:
    """Step 3: new buckets, or larger ones, of `rows` records of each of the m commonest values.

    no_value: of these, at most the commonest.
    """
    while True:
        fitting = [value for value in sorted(waiting) if len(waiting[value]) >= rows]
        fitting.sort(key=lambda value: (-len(waiting[value]), value))
        absent = [value for value in fitting if value in no_value]
        fitting = [value for value in fitting if value not in absent[1:]]
        if len(fitting) < m:
            return
        chosen = tuple(sorted(fitting[:m]))
        bucket = buckets.setdefault(chosen, Bucket({value: [] for value in chosen}))
        for value in chosen:
            bucket.records[value] += waiting[value][:rows]
            waiting[value] = waiting[value][rows:]


def _split(bucket: Bucket, matrix: Matrix, k: int) -> list[dict[int, list[int]]]:
    """Step 4: classes with equally many records of each value, near in the quasi-identifiers.

    Cut in halves along the widest attribute, as long as both halves hold k people. -1 is an
    invented record.
    """
    rows = bucket.rows
    whole = {
        value: members + [-1] * (rows - len(members)) for value, members in bucket.records.items()
    }
    finished, open_parts = [], [whole]
    while open_parts:
        part = open_parts.pop()
        halves = _halves(part, matrix, k)
        if halves is None:
            finished.append(part)
        else:
            open_parts += reversed(halves)
    return finished


def _halves(
    part: dict[int, list[int]], matrix: Matrix, k: int
) -> tuple[dict[int, list[int]], dict[int, list[int]]] | None:
    half = len(next(iter(part.values()))) // 2
    real = _real_records(part)
    if not half or len(real) < 2 * k:
        return None
    codes = matrix.codes[real].astype(np.int64)
    for j in np.argsort(-_widths(codes, matrix), kind="stable").tolist():
        # invented records have no code, and come last
        order = {i: (i < 0, int(matrix.codes[i, j]), i) for i in (*real, -1)}
        ordered = {value: sorted(members, key=order.__getitem__) for value, members in part.items()}
        low = {value: members[:half] for value, members in ordered.items()}
        high = {value: members[half:] for value, members in ordered.items()}
        if min(len(_real_records(low)), len(_real_records(high))) >= k:
            return low, high
    return None


def _exchange(
    placement: Placement,
    signatures: list[tuple[int, ...]],
    regroups: bool,
    view: LedgerView,
    matrix: Matrix,
) -> None:
    """Records change places between classes, in the labels of the placement.

    signatures: the values that each class shows.
    """
    points = points_of(matrix, "range")
    widest = points[int(points.var(axis=1).argmax())]
    placed = np.flatnonzero(placement.labels >= 0)
    placed = placed[np.argsort(widest[placed], kind="stable")]  # near records in near rows
    labels = placement.labels[placed]
    shown = np.full((len(signatures), max(map(len, signatures))), -1, dtype=np.int32)
    for c, signature in enumerate(signatures):
        shown[c, : len(signature)] = signature
    may_regroup = np.zeros(len(shown), dtype=bool)
    if regroups:
        may_regroup = _holds_one_record_of_each(placement, shown, view)
    exchange_values.exchange(
        np.ascontiguousarray(points[:, placed].T),
        view.sensitive[placed],
        labels,
        view.earlier[placed],
        shown,
        may_regroup,
    )
    placement.labels[placed] = labels


def _holds_one_record_of_each(
    placement: Placement, shown: np.ndarray, view: LedgerView
) -> np.ndarray:
    """Which classes do, of each value that they show, none of which stands for no value; (classes,)
    bool. shown: (classes, most) int32, values, -1 behind the last.
    """
    of_each = np.bincount(placement.labels[placement.labels >= 0], minlength=placement.count)
    is_one = (of_each == (shown >= 0).sum(axis=1)) & ~np.isin(shown, [*view.no_value]).any(axis=1)
    is_one[placement.counterfeits[:, 0]] = False
    return is_one


def _real_records(part: dict[int, list[int]]) -> list[int]:
    return [i for members in part.values() for i in members if i >= 0]


def _widths(codes: np.ndarray, matrix: Matrix) -> np.ndarray:
    """How wide records lie on each attribute, as a share of it; (d,)."""
    spans = codes.max(axis=0) - codes.min(axis=0)
    return np.array(
        [
            span / max(matrix.leaves(j) - 1, 1) if matrix.is_tree(j) else span * matrix.scale[j]
            for j, span in enumerate(spans.tolist())
        ]
    )


def _by_value(view: LedgerView, records: np.ndarray, matrix: Matrix) -> dict[int, list[int]]:
    """Records by sensitive value, each list in the order of the quasi-identifiers."""
    order = records[np.lexsort(matrix.codes[records].T[::-1])] if len(records) else records
    by_value: dict[int, list[int]] = {}
    for i in order.tolist():
        by_value.setdefault(int(view.sensitive[i]), []).append(i)
    return by_value
