"""Which lines of a text are different: a hash table that grows with them, not with the text.

A line is first compared with the one before it: in a release, whose rows stand in the order of what
they show, equal lines are neighbours. Places are unsigned, which Numba does not check for counting
from the end.
"""

import numpy as np

from shoal.data.numba_kernels import inlined, outer

BREAK, RETURN, QUOTE = 10, 13, 34
SPREAD = np.uint64(0x9E3779B97F4A7C15)  # 2**64 / golden ratio: the high bits of a product vary
NO_RECORD = -1
"""That a line is blank, or has a quote open at its end, so that it may be no record by itself."""


@outer
def find_lines(text, begin, ends, spans, line_of, keys, slot, shift, factors, known):
    """Numbers the different lines in the order in which they are met; returns how many there are.

    text: (n,) uint8. begin: where the first line begins; ends: (lines,) int64, where each ends.
    spans: (most, 2) int64, where each different line begins and ends; keys: (most,) uint64, of
    each. line_of: (lines,) int32, filled in with the number of each. slot: (2**(64 - shift),)
    int32, -1 in each place to begin with. factors: (2, bytes of the longest line) uint32. known:
    how many different lines there are already. Ends after `most` different ones, or with NO_RECORD.
    """
    count = known
    first = factors[0]
    second = factors[1]
    last = np.int64(-1)
    at = np.uint64(begin)
    one = np.uint64(1)
    for line in range(ends.shape[0]):
        end = np.uint64(ends[line])
        size = end - at
        if last < 0 or not _is_same(text, at, size, spans, last):
            low = np.uint32(0)
            high = np.uint32(0)
            for i in range(size):
                letter = np.uint32(text[at + i])
                low += letter * first[i]
                high += letter * second[i]
            key = (np.uint64(high) << np.uint64(32)) | np.uint64(low)
            place = np.int64((key * SPREAD) >> shift)
            last = np.int64(slot[place])
            while last >= 0 and (keys[last] != key or not _is_same(text, at, size, spans, last)):
                place += 1
                if place == slot.shape[0]:
                    place = np.int64(0)
                last = np.int64(slot[place])
            if last < 0:
                quotes = 0
                for i in range(size):
                    quotes += text[at + i] == QUOTE
                if size == 0 or text[at] == RETURN or quotes % 2 == 1:
                    return NO_RECORD
                if count == spans.shape[0]:
                    return count
                last = np.int64(count)
                slot[place] = count
                keys[count] = key
                spans[count, 0] = at
                spans[count, 1] = end
                count += 1
        line_of[line] = last
        at = end + one
    return count


@inlined
def _is_same(text, at, size, spans, other):
    begun = np.uint64(spans[other, 0])
    if np.uint64(spans[other, 1]) - begun != size:
        return False
    differs = np.uint8(0)
    for i in range(size):
        differs |= text[at + i] ^ text[begun + i]
    return differs == 0


@outer
def copy_lines(text, spans, into):
    """Writes the lines that begin and end there side by side, each with a break."""
    to = np.uint64(0)
    for number in range(spans.shape[0]):
        begun = np.uint64(spans[number, 0])
        size = np.uint64(spans[number, 1]) - begun
        for i in range(size):
            into[to + i] = text[begun + i]
        into[to + size] = BREAK
        to += size + np.uint64(1)
