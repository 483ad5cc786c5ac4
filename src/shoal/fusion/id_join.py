"""The join of a fusion: which rows are people whom all tables have, in an order all agree on.

Ids pass in chunks, each journaled by the channel before it counts as sent or received, so that a
party that was killed masks no chunk twice. The masking is done by as many processes as there are
cores. In memory are only the party's own points, at the collector those of one other party at a
time, and a few chunks on their way.
"""

import hashlib
import hmac
import os
import secrets
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial, reduce
from multiprocessing import connection, get_context, parent_process
from threading import Thread
from typing import Any

import numpy as np
import polars as pl

from shoal.data.cores import available
from shoal.errors import InfeasibleError, MissingExtraError
from shoal.fusion.conversation import Conversation
from shoal.fusion.ground import unfit
from shoal.fusion.wire.link import PartyLink
from shoal.fusion.wire.messages import MessageKind, refused, said_by

_MANY_IDS = 20_000  # from here on, more processes pay
_REPORTS = 10  # how often progress is shown while a set of ids is masked
_SECRET = b"K"  # journal: this party's secret number
_KEY = b"H"  # journal: the key that the first owner made for all ids
Work = Callable[[Any], bytes]
Chunks = Callable[..., Iterator[Any]]  # all, or those from a number on


class IdJoin:
    """One party's part in the join."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation
        self._name = conversation.name
        self._agreement = conversation.agreement
        self._link = conversation.link
        self._owners = conversation.agreement.owners
        self._progress = conversation.progress

    def rows(self, ids: pl.Series, sizes: Mapping[str, int]) -> np.ndarray:
        """The row of the own table behind every row of the joint one, (people,) int64.

        sizes: how many records each owner has. Raises InfeasibleError where the tables have too few
        people in common.
        """
        secret = self._conversation.remember(_SECRET, fresh_secret)  # the same after a break
        rng = np.random.default_rng(list(hashlib.sha256(b"order" + secret).digest()))
        own_order = rng.permutation(len(ids))
        chunks = partial(_chunks, ids, own_order)
        with _workers(sum(sizes.values())) as workers:
            if self._agreement.model.joining.name == "keyed":
                points = self._keyed(chunks, len(ids), workers)
            else:
                points = self._through_all(chunks, sizes, secret, workers)
        self._progress("joining: comparing")
        common = self._common(points, sizes)
        if len(common) < self._agreement.least_common:
            raise InfeasibleError(
                f"the tables have fewer than {self._agreement.least_common} people in common; lower"
                " k or 'minimum' if the agreement allows, or bring tables about the same people"
            )
        with said_by(self._agreement.collector, MessageKind.COMMON):
            return own_order[rows_in_order(points, common)]

    def help(self) -> None:
        """The helper's part where ids are keyed: it compares what it can't read."""
        self._compare(None, {})

    def _keyed(self, chunks: Chunks, records: int, workers: Executor | None) -> np.ndarray:
        """Own ids under the key of all owners, which the first one makes."""
        self._progress("joining: keying the ids")
        key = self._conversation.said(
            self._owners[0],
            MessageKind.KEY,
            lambda: self._conversation.remember(_KEY, lambda: os.urandom(32)),
        )
        work = partial(keyed_ids, agreement=self._agreement.hash, key=bytes(key))
        return _in_one(_each(work, chunks(), workers), records)

    def _through_all(
        self, own: Chunks, sizes: Mapping[str, int], secret: bytes, workers: Executor | None
    ) -> np.ndarray:
        """Own ids masked by all owners; meanwhile this party masks those of the others."""
        position = self._owners.index(self._name)
        before = self._owners[position - 1]
        after = self._owners[(position + 1) % len(self._owners)]
        work = partial(masked_ids, agreement=self._agreement.hash, secret=secret)
        records = sizes[self._name]
        if len(self._owners) == 1:
            return _in_one(_each(work, own(), workers), records)
        self._pass_on(after, work, own, records, "masking the ids", workers)
        again = partial(masked_again, secret=secret)
        for hop in range(1, len(self._owners)):
            stage = f"masking again what {before} sent (set {hop} of {len(self._owners) - 1})"
            size = sizes[self._owners[position - hop]]
            passing = partial(_passing, self._link, before, size)
            self._pass_on(after, again, passing, size, stage, workers)
        return _in_one(_passing(self._link, before, records), records)

    def _pass_on(
        self, to: str, work: Work, chunks: Chunks, points: int, stage: str, workers: Executor | None
    ) -> None:
        """Sends `work` of every chunk; what an earlier run has sent is not made again."""
        before, count = self._owners[self._owners.index(self._name) - 1], _count(points)
        first = min(self._link.sent_before(to), count)
        fresh = _each(work, chunks(first), workers)
        for i in range(count):
            tenths = i * _REPORTS // count
            if tenths != (i - 1) * _REPORTS // count:
                self._progress(f"joining: {stage}, {tenths * 100 // _REPORTS} %")
            with said_by(before, MessageKind.MASKED):
                chunk = b"" if i < first else next(fresh)
            self._link.send(to, MessageKind.MASKED, chunk)
        next(fresh, None)  # where all were sent before, their sources still count as received

    def _common(self, points: np.ndarray, sizes: Mapping[str, int]) -> np.ndarray:
        """The points that all owners have, as the collector finds them."""
        collector = self._agreement.collector
        if self._name == collector:
            return self._compare(points, sizes)
        self._link.send(collector, MessageKind.GATHERED, points.view(np.uint8).data)
        return points_of(self._link.receive(collector, MessageKind.COMMON))

    def _compare(self, own: np.ndarray | None, sizes: Mapping[str, int]) -> np.ndarray:
        """What all sets have, sent to the owners; an empty list if too few people are in common."""
        # made one after another, so that no more than two are in memory
        sets = (self._set(owner, own, sizes.get(owner)) for owner in self._owners)
        common = common_points(sets)
        if len(common) < self._agreement.least_common:
            common = common[:0]
        self._conversation.send_to_owners(MessageKind.COMMON, common.view(np.uint8).data)
        return common

    def _set(self, owner: str, own: np.ndarray | None, size: int | None) -> np.ndarray:
        """The points of one owner, checked. own: this party's; a helper has none, nor `size`."""
        with said_by(owner, MessageKind.GATHERED):
            if own is not None and owner == self._name:
                return distinct_points(own.copy())
            points = points_of(self._link.receive(owner, MessageKind.GATHERED))
            if len(points) != (len(points) if size is None else size):
                raise refused(owner, MessageKind.GATHERED, "has more or fewer ids than records")
            return distinct_points(points)


def _chunks(ids: pl.Series, order: np.ndarray, first: int = 0) -> Iterator[list[str]]:
    """Ids in an order, a chunk at a time, without the first ones."""
    for start in range(first * CHUNK, len(order), CHUNK):
        yield ids.gather(order[start : start + CHUNK]).to_list()


def _in_one(chunks: Iterable[bytes], count: int) -> np.ndarray:
    """The points of all chunks, (count,)."""
    points = np.empty(count, dtype=f"S{POINT}")
    for i, chunk in enumerate(chunks):
        points[i * CHUNK : (i + 1) * CHUNK] = points_of(chunk)
    return points


def _passing(link: PartyLink, sender: str, points: int, first: int = 0) -> Iterator[bytes]:
    """Chunks of points as they come from a party; the first ones are received, too, and left out.

    Raises PartyError for one of wrong length.
    """
    for i in range(_count(points)):
        chunk = link.receive(sender, MessageKind.MASKED)
        if len(chunk) != POINT * min(CHUNK, points - i * CHUNK):
            raise refused(sender, MessageKind.MASKED, "has more or fewer ids than agreed")
        if i >= first:
            yield bytes(chunk)


def _count(points: int) -> int:
    return -(-points // CHUNK)


def _each(work: Work, chunks: Iterable[Any], workers: Executor | None) -> Iterator[bytes]:
    """`work` of every chunk, in order; with workers, few chunks ahead of what is asked for."""
    if workers is None:
        yield from map(work, chunks)
        return
    waiting: deque[Future[bytes]] = deque()
    for chunk in chunks:
        waiting.append(workers.submit(work, chunk))
        if len(waiting) > 2 * available():
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


@contextmanager
def _workers(ids: int) -> Iterator[Executor | None]:
    """Processes for masking, where there are many ids and several cores."""
    if ids < _MANY_IDS or available() == 1:
        yield None
        return
    with ProcessPoolExecutor(
        available(), mp_context=get_context("spawn"), initializer=_die_with_party
    ) as workers:
        yield workers


def _die_with_party() -> None:
    """Ends this process when the party's is killed and can't do it itself."""
    party = parent_process()
    if party is not None:
        Thread(target=lambda: (connection.wait([party.sentinel]), os._exit(1)), daemon=True).start()


# Joining ids without showing them: who is in all tables, in an order that says nothing.
#
# Private set intersection by commutative masking (Agrawal, Evfimievski, Srikant. Information
# sharing across private databases. SIGMOD 2003) in the prime-order group of Ed25519, by PyNaCl.
# Promise: an id is hashed to a point of the group, every party multiplies it by its secret
# number, and the order of doing so makes no difference. In the end equal ids are equal points.
# Without all secrets nobody can tell which id a point is, not even by guessing ids, since a guess
# must be masked by every party. Sorted, the points that are in all tables give all parties the
# same pseudo-random order of the rows. Traps: a hash times the base point could be found by
# guessing ids, and X25519 shows a bit of every id by the curve it lands on. So points are made by
# Elligator on halves of a SHA-512, added, in the prime-order subgroup; PyNaCl refuses points
# outside of it. A party that sees all masked sets learns which of its own people are in which
# other table: that is the collector, one fixed party.
#
# Keyed ids are the fast alternative where a helper is trusted: the owners share a key that the
# helper does not have, and the helper compares HMAC-SHA-256 of the ids. It learns how many people
# any two tables have in common; together with one owner, everything.
#
# Either way an id becomes 32 bytes, here called its point. Arrays of points are (n,) of dtype
# S32.


POINT = 32
CHUNK = 4096
_HASH = b"shoal id join 1"
_BLOCK = 1 << 20


def fresh_secret() -> bytes:
    """A secret number below the order of the group, not 0."""
    nacl = _nacl()
    while True:
        secret = nacl.crypto_core_ed25519_scalar_reduce(secrets.token_bytes(64))
        if any(secret):
            return bytes(secret)


def masked_ids(ids: Sequence[str], agreement: bytes, secret: bytes) -> bytes:
    """The points of the ids, masked by one secret; 32 bytes each, in order."""
    nacl = _nacl()
    points = []
    for identity in ids:
        digest = hashlib.sha512(_HASH + agreement + identity.encode()).digest()
        halves = map(nacl.crypto_core_ed25519_from_uniform, (digest[:32], digest[32:]))
        point = nacl.crypto_core_ed25519_add(*halves)
        points.append(nacl.crypto_scalarmult_ed25519_noclamp(secret, point))
    return b"".join(points)


def masked_again(points: bytes, secret: bytes) -> bytes:
    """Other parties' points, masked once more; raises PartyError where one is no point."""
    nacl = _nacl()
    from nacl.exceptions import CryptoError

    try:
        return b"".join(
            nacl.crypto_scalarmult_ed25519_noclamp(secret, points[i : i + POINT])
            for i in range(0, len(points), POINT)
        )
    except (CryptoError, ValueError, TypeError):
        raise unfit("sent something that is not a masked id") from None


def keyed_ids(ids: Sequence[str], agreement: bytes, key: bytes) -> bytes:
    """The points of the ids under a key that the owners share; 32 bytes each, in order."""
    return b"".join(
        hmac.digest(key, _HASH + agreement + identity.encode(), "sha256") for identity in ids
    )


def points_of(content: bytes | bytearray) -> np.ndarray:
    """The single points of a list; raises PartyError where the last one is incomplete."""
    if len(content) % POINT:
        raise unfit("sent something that is not a list of masked ids")
    return np.frombuffer(content, dtype=f"S{POINT}")


def distinct_points(points: np.ndarray) -> np.ndarray:
    """The points of one set, sorted in place; raises PartyError for one that is in it twice."""
    points.sort()
    if (points[1:] == points[:-1]).any():
        raise unfit("names a person twice", "the run ends")
    return points


def common_points(sets: Iterable[np.ndarray]) -> np.ndarray:
    """The points that are in every set of distinct ones, ascending as the sets are."""
    return reduce(lambda common, points: common[_are_in(common, points)], sets)


def _are_in(points: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    is_in = np.zeros(len(points), dtype=bool)
    for start in range(0, len(points) if len(ascending) else 0, _BLOCK):
        block = points[start : start + _BLOCK]
        nearest = np.minimum(np.searchsorted(ascending, block), len(ascending) - 1)
        is_in[start : start + _BLOCK] = ascending[nearest] == block
    return is_in


def rows_in_order(own: np.ndarray, common: np.ndarray) -> np.ndarray:
    """The row of the own table behind each common point, (common,) int64.

    Raises PartyError where one is not own, or where they don't ascend, since then a person could
    count twice.
    """
    if (common[1:] <= common[:-1]).any():
        raise unfit("names people in common twice or in another order", "the run ends")
    order = np.argsort(own)
    rows = np.empty(len(common), dtype=np.int64)
    for start in range(0, len(common), _BLOCK):
        block = common[start : start + _BLOCK]
        nearest = np.searchsorted(own, block, sorter=order)
        block_rows = order[np.minimum(nearest, len(own) - 1)] if len(own) else nearest
        if not len(own) or (own[block_rows] != block).any():
            raise unfit("claims people in common who are not in this table", "the run ends")
        rows[start : start + _BLOCK] = block_rows
    return rows


def _nacl() -> Any:
    try:
        import nacl.bindings
    except ImportError:
        raise MissingExtraError.of("joining ids needs PyNaCl", "fuse") from None
    return nacl.bindings
