"""Joining ids without showing them: which people are in all tables, in an order that says nothing.

Private set intersection by commutative masking (Agrawal, Evfimievski, Srikant. Information sharing across private
databases. SIGMOD 2003) in the prime-order group of Ed25519, by PyNaCl.
Promise: an id becomes a point of the group by hashing, every party multiplies it by its secret number, and the order
of doing so makes no difference. Equal ids are equal points in the end, and without all secrets nobody can tell which
id a point is: not even who guesses ids, for a guess must be masked by every party. Sorted, the points that are in all
tables give the same pseudo-random order of the rows to everybody.
Traps: a hash times the base point could be guessed through, and X25519 shows a bit of every id by the curve it lands
on, so points are made by Elligator on halves of a SHA-512, added, in the prime-order subgroup. PyNaCl refuses points
outside of it. Who sees all masked sets learns which of its own people are in which other table: that is the collector,
one fixed party.
"""

from __future__ import annotations

import hashlib
import secrets
import unicodedata
from collections.abc import Sequence

import numpy as np

from shoal.errors import InputError, MissingExtraError, PartyError

POINT = 32
CHUNK = 4096
_HASH = b"shoal id join 1"


def normalized(identity: str) -> str:
    """The same text for every way to write an id: compatibility form of Unicode, no blanks around."""
    return unicodedata.normalize("NFKC", identity).strip()


def check_ids(cells: Sequence[str], column: str, party: str) -> list[str]:
    """The normalized ids; raises InputError where somebody has none, or two records."""
    ids = [normalized(cell) for cell in cells]
    empty = sum(not identity for identity in ids)
    repeated = len(ids) - len(set(ids))
    findings = []
    if empty:
        findings.append(
            f"party '{party}': column '{column}' names nobody in {empty} records; every record needs its id"
        )
    if repeated:
        findings.append(
            f"party '{party}': column '{column}' repeats {repeated} ids; a fused table has one record to a person"
        )
    if findings:
        raise InputError.from_findings(findings)
    return ids


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
        halves = nacl.crypto_core_ed25519_from_uniform(digest[:32]), nacl.crypto_core_ed25519_from_uniform(digest[32:])
        points.append(nacl.crypto_scalarmult_ed25519_noclamp(secret, nacl.crypto_core_ed25519_add(*halves)))
    return b"".join(points)


def masked_again(points: bytes, secret: bytes) -> bytes:
    """Other parties' points, masked by one more secret; raises PartyError where one is no point of the group."""
    nacl = _nacl()
    try:
        return b"".join(
            nacl.crypto_scalarmult_ed25519_noclamp(secret, points[i : i + POINT]) for i in range(0, len(points), POINT)
        )
    except (nacl_errors().CryptoError, ValueError, TypeError):
        raise PartyError("another party: sent what is no masked id; run the same version everywhere") from None


def common_points(sets: Sequence[bytes]) -> bytes:
    """The points that are in every set, sorted."""
    common = set.intersection(*(set(split(points)) for points in sets))
    return b"".join(sorted(common))


def split(points: bytes) -> list[bytes]:
    """The single points of a list."""
    return [points[i : i + POINT] for i in range(0, len(points), POINT)]


def rows_in_order(own: bytes, common: bytes) -> np.ndarray:
    """The row of the own table behind each common point, in their order; raises PartyError where one is not own."""
    place = {point: row for row, point in enumerate(split(own))}
    try:
        return np.array([place[point] for point in split(common)], dtype=np.int64)
    except KeyError:
        raise PartyError("another party: claims people in common who are not in this table; the run ends") from None


def nacl_errors():  # type: ignore[no-untyped-def]
    """PyNaCl's errors."""
    import nacl.exceptions

    return nacl.exceptions


def _nacl():  # type: ignore[no-untyped-def]
    try:
        import nacl.bindings
    except ImportError:
        raise MissingExtraError(
            "joining ids needs PyNaCl, which is not installed; run: pip install 'shoal[fuse]'"
        ) from None
    return nacl.bindings
