"""Which partition a key belongs in, as Kafka's clients compute it from the key's bytes.

murmur2: what Java's producers do, and librdkafka's `murmur2` and `murmur2_random`.
crc32: librdkafka's own (`consistent`, `consistent_random`), so the default of Python's and C#'s
clients.
"""

from __future__ import annotations

import zlib

import numpy as np

PARTITIONERS = ("murmur2", "crc32")
_SEED = np.uint32(0x9747B28C)
_FACTOR = np.uint32(0x5BD1E995)


def partitions_of(keys: list[bytes], count: int, partitioner: str) -> np.ndarray:
    """(n,) int64, the partition of each key in a topic of `count` partitions."""
    if partitioner == "crc32":
        hashed = np.array([zlib.crc32(key) for key in keys], dtype=np.int64)
    else:
        hashed = (murmur2(keys) & np.uint32(0x7FFFFFFF)).astype(np.int64)
    return hashed % count


def murmur2(keys: list[bytes]) -> np.ndarray:
    """(n,) uint32, MurmurHash2 with Kafka's seed."""
    hashed = np.zeros(len(keys), dtype=np.uint32)
    lengths = np.array([len(key) for key in keys], dtype=np.int64)
    for length in np.unique(lengths).tolist():
        alike = np.flatnonzero(lengths == length)
        joined = b"".join([keys[at] for at in alike.tolist()])
        hashed[alike] = _of_one_length(
            np.frombuffer(joined, dtype=np.uint8).reshape(len(alike), length)
        )
    return hashed


def _of_one_length(keys: np.ndarray) -> np.ndarray:
    """keys: (n, length) uint8. The arithmetic is unsigned 32-bit and wraps around."""
    length = keys.shape[1]
    whole = length - length % 4
    words = np.ascontiguousarray(keys[:, :whole]).view("<u4").astype(np.uint32)
    found = np.full(len(keys), _SEED ^ np.uint32(length), dtype=np.uint32)
    for word in words.T:
        mixed = word * _FACTOR
        mixed ^= mixed >> np.uint32(24)
        found = (found * _FACTOR) ^ (mixed * _FACTOR)
    if whole < length:
        for place in range(length - whole - 1, -1, -1):
            found ^= keys[:, whole + place].astype(np.uint32) << np.uint32(8 * place)
        found *= _FACTOR
    found ^= found >> np.uint32(13)
    found *= _FACTOR
    found ^= found >> np.uint32(15)
    return found
