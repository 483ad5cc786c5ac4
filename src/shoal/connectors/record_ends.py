"""Where the records of comma-separated text end, which of them are none, and which lines repeat.

The grammar is RFC 4180's: a cell that begins with a quote ends with the next quote that is not
doubled. A quote inside another cell is a character like any other. A record of several lines must
be whole: every quoted cell ends before a separator or the end of a line, and there are as many
cells as columns. Else a quote was left open, and its first line alone is the broken record: the
next line begins another one.
"""

import hashlib
from collections.abc import Collection, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.connectors.dialect import mapped
from shoal.data.numba_kernels import inner, outer, uncompiled_up_to
from shoal.data.table import HEAD
from shoal.errors import InputError, library_errors_as

WHOLE, ODD, BROKEN, BLANK, RAGGED = range(5)
QUOTE = 34
BREAK = 10
RETURN = 13


@uncompiled_up_to(lambda text, *_: len(text))
@outer
def ends_of(
    text: np.ndarray,
    separator: int,
    columns: int,
    most_lines: int,
    at_end: bool,
    ends: np.ndarray,
    kinds: np.ndarray,
    cells: np.ndarray,
) -> int:
    """Fills in where each record ends (after its line break), what it is, and how many cells it
    has.

    text: (n,) uint8, beginning with a record. separator: its byte. most_lines: lines that a record
    may have.
    at_end: whether nothing follows, so that the last line needs no break. ends, cells: (m,) int64,
    kinds: (m,) int8, with room for every line. Kinds: WHOLE; ODD, whole but with a quote in a cell
    that does not begin with one, or text after a closing quote; BROKEN; BLANK; RAGGED, a line of
    more or fewer cells.
    Returns how many records were found; the text after the last end may still grow.
    """
    n = len(text)
    count = 0
    at = 0
    while at < n:
        end, lines, found, is_odd, is_open = _one(text, at, separator, most_lines)
        if end < 0 and not is_open and at_end:
            end = n
        if is_open or (end >= 0 and lines > 1 and (is_odd or found != columns)):
            # a quote that was left open, unless more text may still close it
            if is_open and lines <= most_lines and not at_end:
                return count
            end = _line_end(text, at)
            kinds[count] = BROKEN
        elif end < 0:
            return count
        elif _is_blank(text, at, end):
            kinds[count] = BLANK
        elif found != columns:
            kinds[count] = RAGGED
        else:
            kinds[count] = ODD if is_odd else WHOLE
        ends[count] = end
        cells[count] = found
        count += 1
        at = end
    return count


@uncompiled_up_to(lambda text, *_: len(text))
@outer
def stray_quotes(text: np.ndarray, separator: int, rows: np.ndarray) -> int:
    """How many records have a quote that opens or closes no cell: a lone one in a cell that does
    not begin with it, one before more text, or one that is left open at the end.

    Parsers read such records differently, some as one with the next. rows: (m,) int64, is filled
    with the numbers of the first of them, from 0.
    """
    count, row, last = 0, 0, -1
    fresh, quoted, closed, is_lone = True, False, False, False
    n = len(text)
    for i in range(n):
        byte = text[i]
        if quoted:
            if byte == QUOTE:
                quoted, closed = False, True
            continue
        if not (fresh or closed) and byte > QUOTE and byte != separator:
            continue  # most bytes are letters or digits within a cell
        is_stray = False
        # not `in`: what searches a tuple takes long to load
        if byte == separator or byte == BREAK:  # noqa: SIM109
            is_stray = is_lone
            fresh, closed, is_lone = True, False, False
        elif byte == QUOTE:
            if fresh or closed:  # behind a closing quote, it was a doubled one
                quoted = True
            else:
                is_lone = not is_lone
            fresh, closed = False, False
        else:
            is_end = byte == RETURN and (i + 1 == n or text[i + 1] == BREAK)
            is_stray = closed and not is_end
            fresh = False
        if is_stray and last != row:
            if count < len(rows):
                rows[count] = row
            count, last = count + 1, row
        if byte == BREAK:
            row += 1
    if (is_lone or quoted) and last != row:
        if count < len(rows):
            rows[count] = row
        count += 1
    return count


def _all_at_once(text: np.ndarray, _: np.ndarray, separator: int) -> bool:
    """Finds what `opens_or_closes` does, by whole arrays."""
    quotes = np.flatnonzero(text == QUOTE)
    if len(quotes) % 2:
        return False
    # what begins and ends the text begins and ends a cell
    ended = np.pad(text, (1, 2), constant_values=BREAK)
    opens, closes = quotes[::2], quotes[1::2]
    after = ended[closes + 2]
    after[(after == RETURN) & (ended[closes + 3] == BREAK)] = BREAK
    parts = np.array([separator, BREAK, QUOTE], dtype=np.uint8)
    is_doubled = np.append(-2, closes)[: len(opens)] == opens - 1
    is_led = np.isin(ended[opens], parts[:2]) | is_doubled
    return bool(is_led.all() and np.isin(after, parts).all())


@uncompiled_up_to(lambda text, *_: len(text) // 100, _all_at_once)
@outer
def opens_or_closes(text: np.ndarray, words: np.ndarray, separator: int) -> bool:
    """Whether every quote opens or closes a cell, or is doubled within one that is quoted: then no
    quote is stray. Several times as fast as looking for stray ones, since only quotes are visited.

    words: (n // 8,) uint64, the same text by eight bytes, the first of them lowest.
    """
    n = len(text)
    quoted = False
    closed = np.int64(-2)  # where the last quoted cell was closed
    for word in range((n + 7) // 8):
        marks = _quotes_of(words[word]) if word < len(words) else _last_quotes(text, 8 * word)
        while marks:
            lowest = marks & (~marks + np.uint64(1))
            marks ^= lowest
            at = 8 * word + _byte_of(lowest)
            if quoted:
                quoted, closed = False, at
                after = text[at + 1] if at + 1 < n else BREAK
                if after == RETURN and (at + 2 == n or text[at + 2] == BREAK):
                    after = BREAK
                if after not in (separator, BREAK, QUOTE):
                    return False
            else:
                if at > 0 and closed != at - 1 and text[at - 1] not in (separator, BREAK):
                    return False
                quoted = True
    return not quoted


@inner
def _quotes_of(word: np.uint64) -> np.uint64:
    """The highest bit of every byte that is a quote: those that are 0 after a comparison."""
    low = np.uint64(0x7F7F7F7F7F7F7F7F)
    differs = word ^ np.uint64(0x2222222222222222)
    return ~((((differs & low) + low) | differs) | low)


@inner
def _last_quotes(text: np.ndarray, start: int) -> np.uint64:
    """The highest bit of every quote among the bytes behind the last whole word."""
    marks = np.uint64(0)
    for i in range(start, len(text)):
        if text[i] == QUOTE:
            marks |= np.uint64(0x80) << np.uint64(8 * (i - start))
    return marks


@inner
def _byte_of(mark: np.uint64) -> np.int64:
    """Which byte of a word has its highest bit set, the only one of the word: a multiplication
    moves that number to the top.
    """
    numbers = np.uint64(0x0001020304050607)
    return np.int64(((mark >> np.uint64(7)) * numbers) >> np.uint64(56))


@inner
def _one(
    text: np.ndarray, start: int, separator: int, most_lines: int
) -> tuple[int, int, int, bool, bool]:
    """A record: its end (-1 if none yet), its lines and cells, whether it is odd, or in quotes."""
    n = len(text)
    i = start
    lines = 1
    found = 1
    fresh = True
    quoted = False
    closed = False
    is_odd = False
    while i < n:
        byte = text[i]
        if quoted:
            if byte == QUOTE:
                if i + 1 < n and text[i + 1] == QUOTE:  # doubled: it stands for one
                    i += 1
                else:
                    quoted = False
                    closed = True
            elif byte == BREAK:
                lines += 1
                if lines > most_lines:
                    return -1, lines, found, is_odd, True
        elif byte == separator:
            found += 1
            fresh = True
            closed = False
        elif byte == BREAK:
            return i + 1, lines, found, is_odd, False
        elif byte == QUOTE and fresh:
            quoted = True
            fresh = False
        else:
            is_odd = is_odd or byte == QUOTE or (closed and byte != RETURN)
            fresh = False
        i += 1
    return -1, lines, found, is_odd, quoted


@inner
def _line_end(text: np.ndarray, start: int) -> int:
    i = start
    while i < len(text) and text[i] != BREAK:
        i += 1
    return min(i + 1, len(text))


@inner
def _is_blank(text: np.ndarray, start: int, end: int) -> bool:
    i = start
    while i < end and (text[i] == BREAK or text[i] == RETURN):
        i += 1
    return i == end


# A large text file in pieces of whole records, hashed as it is read.
#
# A record ends at a line break outside quotes, and a break is outside quotes where the text
# before it has an even number of them: RFC 4180 doubles every quote inside a quoted cell. That is
# how Polars parts records, too, so that the records of all pieces are those of the whole file.


PIECE = 32 << 20
"""Bytes of a piece, as far as records allow."""

LONGEST = 256 << 20
"""A piece without the end of a record may grow so far before it is refused."""

_BREAK, _QUOTE = b"\n", b'"'


class Pieces:
    """The pieces of a file, read once; `sha256` is that of the whole file once all were read.

    path: what the file is called, where its content lies elsewhere. head: the first record, its
    break included, which names the columns. Every piece after it holds whole records; only the very
    last may lack its break.
    """

    def __init__(
        self, content: str | Path, piece: int = PIECE, longest: int = LONGEST, path: str = ""
    ) -> None:
        self.head = b""
        self.content, self.path = Path(content), path or str(content)
        self._piece, self._longest = piece, max(longest, piece)
        self._hash = hashlib.sha256()

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def __iter__(self) -> Iterator[bytes]:
        """The records behind the first; raises InputError where none ends within `longest`."""
        rest = b""
        with open(self.content, "rb") as file:
            while read := file.read(self._piece):
                self._hash.update(read)
                text = rest + read
                end = last_end(text)
                if not end and len(text) > self._longest:
                    raise InputError(
                        f"file '{self.path}': holds a record of more than"
                        f" {self._longest >> 20} MB; a quote may be left open"
                    )
                whole, rest = self._without_head(text[:end]), text[end:]
                if whole:
                    yield whole
        if rest := self._without_head(rest):
            yield rest

    def _without_head(self, text: bytes) -> bytes:
        """The text behind the first record, which is kept apart."""
        if self.head or not text:
            return text
        end = first_end(text) or len(text)
        self.head = text[:end]
        return text[end:]


def last_end(text: bytes) -> int:
    """Where the last whole record of a text ends that begins with a record; 0 without one."""
    is_odd = text.count(_QUOTE) % 2
    end, at = len(text), text.rfind(_BREAK)
    while at >= 0:
        is_odd ^= text.count(_QUOTE, at, end) % 2  # now of the text before this break
        if not is_odd:
            return at + 1
        # up to the quote before it, every break is inside the same cell
        end = text.rfind(_QUOTE, 0, at)
        is_odd, at = 0, text.rfind(_BREAK, 0, end)
    return 0


def first_end(text: bytes) -> int:
    """Where the first record of a text ends; 0 where it does not."""
    is_odd, begun = 0, 0
    at = text.find(_BREAK)
    while at >= 0:
        is_odd ^= text.count(_QUOTE, begun, at) % 2
        if not is_odd:
            return at + 1
        begun = text.find(_QUOTE, at)  # up to there, every break is inside the same cell
        at = text.find(_BREAK, begun) if begun >= 0 else -1
    return 0


# Text whose lines repeat: each different line is parsed once, however often it stands there.


LEAST_TEXT = 1 << 24
"""Bytes of a text below which it is parsed as soon."""
CHUNK = 1 << 20
"""Bytes that are looked at at once; the names of the columns must end in the first of them."""
LONGEST_LINE = 1 << 12
"""Bytes of the longest line."""
MOST_LINES = 1 << 24
"""Different lines that are known, however long a text of short lines is: they take 500 MB."""
MOST_DIFFERENT = 0.3
"""The share of the first lines that may differ: more are parsed as soon as they are told apart."""


class DistinctLines(NamedTuple):
    """The names and each different line of a text.

    different: how many lines there are of them. line_of: (lines,) int32, which of them each is.
    """

    content: bytes
    different: int
    line_of: np.ndarray


def distinct_lines(content: bytes | Path) -> DistinctLines | None:
    """The different lines of a text that begins with the names of its columns.

    None where it is short, where few lines repeat, or where a line may be no record by itself.
    """
    if _size(content) < LEAST_TEXT:
        return None
    text = mapped(content)
    head = bytes(text[:CHUNK])
    first = head.split(b"\n")
    begin = first_end(head)
    if not begin or len(set(first)) > MOST_DIFFERENT * len(first):
        return None
    return lines_of(np.frombuffer(text, dtype=np.uint8), begin)


def _size(content: bytes | Path) -> int:
    return len(content) if isinstance(content, bytes) else content.stat().st_size


def of_few_values(
    content: bytes | Path, separator: str, header: list[str], names: Collection[str]
) -> list[str]:
    """Those of some columns whose first cells repeat; of others categories cost more than texts."""
    found = [name for name in header if name in names]
    if _size(content) < LEAST_TEXT:
        return found
    with suppress(InputError), library_errors_as("is not a table"):  # said by who reads all of it
        head = pl.read_csv(content, separator=separator, infer_schema=False, n_rows=HEAD)
        if head.columns == header:
            return [name for name in found if head[name].n_unique() <= head.height // 2]
    return found


def lines_of(text: np.ndarray, begin: int) -> DistinctLines | None:
    """The different lines of a text, (n,) uint8, whose records begin there; None as above."""
    from shoal.connectors.kernels import lines  # compiled for long texts alone

    factors = np.random.default_rng(0).integers(1 << 32, size=(2, LONGEST_LINE), dtype=np.uint32)
    found: list[np.ndarray] = []
    known, at = 0, begin
    while at < len(text):
        ends = at + np.flatnonzero(text[at : at + CHUNK] == lines.BREAK)
        if at + CHUNK >= len(text) and text[-1] != lines.BREAK:
            ends = np.append(ends, len(text))
        if not len(ends) or int(np.diff(ends, prepend=at - 1).max()) > LONGEST_LINE:
            return None
        if not found:
            lines_left = (len(text) - at) * len(ends) // int(ends[-1] + 1 - at)
            most = min(lines_left // 2 + len(ends) + 1, MOST_LINES)
            spans, keys = np.empty((most, 2), dtype=np.int64), np.empty(most, dtype=np.uint64)
            bits = (2 * most).bit_length()
            slot = np.full(1 << bits, -1, dtype=np.int32)
        line_of = np.empty(len(ends), dtype=np.int32)
        shift = np.uint64(64 - bits)
        known = lines.find_lines(text, at, ends, spans, line_of, keys, slot, shift, factors, known)
        found.append(line_of)
        at = int(ends[-1]) + 1
        if known in (lines.NO_RECORD, most):
            return None
    spans = spans[:known]
    size = int((spans[:, 1] - spans[:, 0]).sum()) + known
    copied = np.empty(begin + size, dtype=np.uint8)
    copied[:begin] = text[:begin]
    lines.copy_lines(text, spans, copied[begin:])
    return DistinctLines(copied.tobytes(), known, np.concatenate(found))
