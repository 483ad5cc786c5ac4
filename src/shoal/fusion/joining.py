"""Joining ids without showing them: who is in all tables, in an order that says nothing.

Private set intersection by commutative masking (Agrawal, Evfimievski, Srikant. Information sharing
across private databases. SIGMOD 2003) in the prime-order group of Ed25519, by PyNaCl.
Promise: an id is hashed to a point of the group, every party multiplies it by its secret number,
and the order of doing so makes no difference. In the end equal ids are equal points. Without all
secrets nobody can tell which id a point is, not even by guessing ids, since a guess must be masked
by every party. Sorted, the points that are in all tables give all parties the same pseudo-random
order of the rows.
Traps: a hash times the base point could be found by guessing ids, and X25519 shows a bit of every
id by the curve it lands on. So points are made by Elligator on halves of a SHA-512, added, in the
prime-order subgroup; PyNaCl refuses points outside of it. A party that sees all masked sets learns
which of its own people are in which other table: that is the collector, one fixed party.

Keyed ids are the fast alternative where a helper is trusted: the owners share a key that the helper
does not have, and the helper compares HMAC-SHA-256 of the ids. It learns how many people any two
tables have in common; together with one owner, everything.

Either way an id becomes 32 bytes, here called its point. Arrays of points are (n,) of dtype S32.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from shoal.errors import MissingExtraError, PartyError

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
        halves = (
            nacl.crypto_core_ed25519_from_uniform(digest[:32]),
            nacl.crypto_core_ed25519_from_uniform(digest[32:]),
        )
        points.append(
            nacl.crypto_scalarmult_ed25519_noclamp(secret, nacl.crypto_core_ed25519_add(*halves))
        )
    return b"".join(points)


def masked_again(points: bytes, secret: bytes) -> bytes:
    """Other parties' points, masked by one more secret.

    Raises PartyError where one is not a point of the group.
    """
    nacl = _nacl()
    try:
        return b"".join(
            nacl.crypto_scalarmult_ed25519_noclamp(secret, points[i : i + POINT])
            for i in range(0, len(points), POINT)
        )
    except (nacl_errors().CryptoError, ValueError, TypeError):
        raise PartyError(
            "another party: sent something that is not a masked id; run the same version everywhere"
        ) from None


def keyed_ids(ids: Sequence[str], agreement: bytes, key: bytes) -> bytes:
    """The points of the ids under a key that the owners share; 32 bytes each, in order."""
    return b"".join(
        hmac.digest(key, _HASH + agreement + identity.encode(), "sha256") for identity in ids
    )


def points_of(content: bytes | bytearray) -> np.ndarray:
    """The single points of a list; raises PartyError where the last one is incomplete."""
    if len(content) % POINT:
        raise PartyError(
            "another party: sent something that is not a list of masked ids; run the same version"
            " everywhere"
        )
    return np.frombuffer(content, dtype=f"S{POINT}")


def distinct_points(points: np.ndarray) -> np.ndarray:
    """The points of one set, ascending; raises PartyError for one that is in it twice."""
    points = np.sort(points)
    if (points[1:] == points[:-1]).any():
        raise PartyError("another party: names a person twice; the run ends")
    return points


def common_points(sets: Iterable[np.ndarray]) -> np.ndarray:
    """The points that are in every set of distinct ones, ascending as the sets are."""
    common: np.ndarray | None = None
    for points in sets:
        common = points if common is None else common[_are_in(common, points)]
    assert common is not None
    return common


def _are_in(points: np.ndarray, ascending: np.ndarray) -> np.ndarray:
    """Which points are among others; (n,) bool."""
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
        raise PartyError(
            "another party: names people in common twice or in another order; the run ends"
        )
    order = np.argsort(own)
    rows = np.empty(len(common), dtype=np.int64)
    for start in range(0, len(common), _BLOCK):
        block = common[start : start + _BLOCK]
        if not len(own):
            raise _not_in_common()
        nearest = np.searchsorted(own, block, sorter=order)
        block_rows = order[np.minimum(nearest, len(own) - 1)]
        if (own[block_rows] != block).any():
            raise _not_in_common()
        rows[start : start + _BLOCK] = block_rows
    return rows


def _not_in_common() -> PartyError:
    return PartyError(
        "another party: claims people in common who are not in this table; the run ends"
    )


def nacl_errors() -> Any:
    """PyNaCl's errors."""
    import nacl.exceptions

    return nacl.exceptions


def _nacl() -> Any:
    try:
        import nacl.bindings
    except ImportError:
        raise MissingExtraError.of("joining ids needs PyNaCl", "fuse") from None
    return nacl.bindings
