"""Hash tables of 64-bit keys, with open addressing: where a key's search begins."""

import numpy as np

from shoal.data.numba_kernels import inner

SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: the high bits of a product vary
FEWEST_BITS = 4


@inner
def bits_for(keys):
    """The table of 2**bits places that this number of keys fills by half at most."""
    bits = FEWEST_BITS
    while (1 << bits) < 2 * keys:
        bits += 1
    return bits


@inner
def place_of(key, shift):
    """The place of a key in a table of 2**(64 - shift) places."""
    return np.int64((key * SPREAD) >> shift)
