"""A published table as its readers see it, read back from what was published."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from math import isfinite

import numpy as np
import polars as pl

from shoal.data import cores
from shoal.data.classes import Classes
from shoal.data.numbers import is_long, parse_numbers
from shoal.data.recoding import is_rounded
from shoal.data.room import IN_MEMORY, blocks
from shoal.data.schema import Attribute, Kind, Render, Schema, Shown
from shoal.data.table import Column, Table
from shoal.data.true_values import SquaredSum, TrueValues

_MOST_PAIRS = 1 << 22
_TABLE = 1 << 20
"""Places of a table that a processor keeps near by."""


@dataclass(frozen=True)
class PublishedColumn:
    """One quasi-identifier as published.

    codes: (n,) unsigned, which distinct cell each record shows. cells: text of each distinct cell.
    lo, hi: (cells,) float64, the span of a cell in numbers, places of the order or leaves; NaN for
        a cell that says "no value".
    widths: (cells,) float64, the normalised width of each cell in [0, 1]; NaN where it can't be
        told without the original (no declared domain, or a mean, which hides its range).
    means: (cells,) float64, the mean that each cell shows, NaN where it shows none; None where no
    cell does.
    observed_bounds: (2, cells) float64, least and greatest value behind each cell of an attribute
        that shows its means alone, NaN where the original is not at hand; None where cells say
        their spans themselves.
    ends: lo and hi of numbers as they are written, "" for none; None of other attributes.
    """

    name: str
    codes: np.ndarray
    cells: tuple[str, ...]
    lo: np.ndarray
    hi: np.ndarray
    widths: np.ndarray
    means: np.ndarray | None = None
    observed_bounds: np.ndarray | None = None
    ends: tuple[tuple[str, ...], tuple[str, ...]] | None = None

    def with_values(
        self,
        values: np.ndarray,
        codes: np.ndarray,
        width: Callable[[np.ndarray, np.ndarray], np.ndarray],
    ) -> "PublishedColumn":
        """The column with what lies behind every cell, where one value stands for all.

        values: (m,) distinct true values, NaN for none. codes: (n,) which of them each record has.
        width: of spans from a least to a greatest value, normalised.
        """
        lo, hi = np.full(len(self.cells), np.inf), np.full(len(self.cells), -np.inf)
        for rows in blocks(len(codes)):
            behind = values[codes[rows]]
            np.fmin.at(lo, self.codes[rows], behind)
            np.fmax.at(hi, self.codes[rows], behind)
        shows = np.isfinite(self.lo) & (lo <= hi)
        least, greatest = np.where(shows, np.stack([lo, hi]), np.nan)
        widths = self.widths.copy()
        widths[shows] = width(least[shows], greatest[shows])
        return replace(self, observed_bounds=np.stack([least, greatest]), widths=widths)


@dataclass(frozen=True)
class Release:
    """What was published, measured class by class.

    classes: equal published quasi-identifiers are one class; withheld records are in none.
    columns: the quasi-identifiers. required_k: the policy's k, None without a k-anonymity promise.
    label: (n,) integer class label for the classification metric, or None.
    originals: the true values of each numeric quasi-identifier, aligned with the published records;
        empty where the original is not at hand.
    starred: (n,) bool, records that show the suppression mark in every quasi-identifier; if they
        are a class, it is the last. None where those in no class are all of them.
    """

    columns: tuple[PublishedColumn, ...]
    classes: Classes
    required_k: int | None = None
    label: np.ndarray | None = None
    originals: dict[str, TrueValues] = field(default_factory=dict)
    starred: np.ndarray | None = None

    @property
    def records(self) -> int:
        return len(self.classes.labels)

    @cached_property
    def withheld(self) -> int:
        """Records that are in no class."""
        return int((self.classes.labels < 0).sum())

    @cached_property
    def suppressed(self) -> int:
        """Records that show nothing in the quasi-identifiers, be they a class or withheld."""
        return self.withheld if self.starred is None else int(self.starred.sum())

    def unrounded(self, schema: Schema) -> int:
        """Records with an interval whose ends are not as far outward as `round` says."""
        wrong = np.zeros(self.records, dtype=bool)
        for published, attribute in zip(self.columns, schema.quasi, strict=True):
            if attribute.round is None:
                continue
            ends = zip(published.lo.tolist(), published.hi.tolist(), strict=True)
            kept = [
                not (isfinite(lo) and isfinite(hi)) or is_rounded(lo, hi, attribute)
                for lo, hi in ends
            ]
            wrong |= ~np.array(kept, dtype=bool)[published.codes]
        return int(wrong.sum())

    @cached_property
    def shown(self) -> Classes:
        """The classes whose members show something: what measures of loss are about."""
        if self.starred is None or self.suppressed == self.withheld:
            return self.classes
        labels = np.where(self.starred, np.int32(-1), self.classes.labels)
        return replace(self.classes, labels=labels, count=self.classes.count - 1, population={})

    @cached_property
    def cell_counts(self) -> dict[str, np.ndarray]:
        """By attribute, how many records that show something show each cell; (cells,) int64."""
        kept = None if not self.suppressed else self.shown.labels >= 0

        def counted(column: PublishedColumn) -> np.ndarray:
            codes = column.codes if kept is None else column.codes[kept]
            return Column(column.name, codes, pl.Series(column.cells, dtype=pl.String)).counts()

        counts = cores.side_by_side(counted, self.columns, self.records)
        return {column.name: count for column, count in zip(self.columns, counts, strict=True)}

    @cached_property
    def squared_errors(self) -> dict[str, SquaredSum]:
        """By attribute of `originals`, the squared error of class means, and of the mean of all.

        A suppressed record shows nothing about itself, so it is as good as the mean of all.
        """
        if not self.originals:
            return {}
        places = self.shown.labels.astype(np.intp)
        places[places < 0] = self.shown.count
        sizes = np.append(self.shown.sizes, self.records - self.shown.sizes.sum())
        with np.errstate(over="ignore", invalid="ignore"):
            return {
                name: values.squared_error(places, sizes) for name, values in self.originals.items()
            }


def read_columns(table: Table, schema: Schema) -> tuple[tuple[PublishedColumn, ...], list[str]]:
    """The published quasi-identifiers, and findings about cells that are neither value nor span."""
    columns, findings = [], []
    table.encode(one.name for one in (*schema.quasi, *schema.sensitive) if one.name in table)
    for attribute in schema.quasi:
        column = table.column(attribute.name)
        published = read_column(attribute, column, schema)
        strange = np.isnan(published.widths) & np.isnan(published.lo) & ~_is_missing(column, schema)
        if strange.any() and not attribute.opaque:
            count = int(column.counts()[strange].sum())
            cells = "1 published cell is" if count == 1 else f"{count} published cells are"
            findings.append(
                f"attribute '{attribute.name}': {cells} neither a value, a span, a node of its"
                " hierarchy nor the suppression mark; audit with the policy that it was published"
                " under"
            )
        columns.append(published)
    return tuple(columns), findings


def read_column(attribute: Attribute, column: Column, schema: Schema) -> PublishedColumn:
    """What each distinct cell of a published column says."""
    spans, means = _parted(column.cells) if attribute.shown is Shown.BOTH else (column.cells, None)
    ends = None
    if attribute.opaque:
        lo = hi = np.full(len(column.cells), np.nan)
        whole = np.nan
    elif attribute.hierarchy is not None:
        lo, hi, whole = *tree_spans(attribute, column.cells), float(attribute.hierarchy.leaves - 1)
    elif attribute.kind is Kind.ORDINAL:
        lo, hi = _ordinal_spans(attribute, column.cells, schema.render)
        whole = float(len(attribute.order or ()) - 1)
    elif attribute.kind is Kind.NUMBER:
        ends = number_ends(spans, schema.render)
        lo, hi = map(parse_numbers, ends)
        # a range alone gives no mean, so such a column can't hold it
        if attribute.shown is not Shown.RANGE:
            alone = (lo < hi) & (True if means is None else np.isnan(means))
            lo, hi = np.where(alone, np.nan, lo), np.where(alone, np.nan, hi)
        whole = np.nan if attribute.domain is None else attribute.domain[1] - attribute.domain[0]
    else:  # a category without hierarchy, original not at hand: a cell is a value or the mark
        lo = hi = np.zeros(len(column.cells))
        whole = 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        widths = (
            np.where(hi > lo, np.minimum((hi - lo) / whole, 1.0), 0.0)  # nothing is lost beyond all
            if not np.isnan(whole)
            else np.where(hi == lo, 0.0, np.nan)
        )
    backwards = ~(np.isfinite(lo) & np.isfinite(hi) & (lo <= hi))
    lo, hi, widths = (np.where(backwards, np.nan, part) for part in (lo, hi, widths))
    missing = _is_missing(column, schema)
    lo[missing], hi[missing], widths[missing] = np.nan, np.nan, 0.0
    mark = np.array([cell == schema.render.suppressed for cell in column.cells], dtype=bool)
    lo[mark], hi[mark], widths[mark] = -np.inf, np.inf, 1.0
    observed_bounds = None
    if attribute.shown.hides_span:
        means, observed_bounds = lo, np.full((2, len(lo)), np.nan)
        widths = np.where(np.isfinite(lo), np.nan, widths)
    if means is not None:
        means = np.where(np.isfinite(lo), np.where(np.isnan(means), lo, means), np.nan)
    return PublishedColumn(
        attribute.name, column.codes, column.cells, lo, hi, widths, means, observed_bounds, ends
    )


def is_starred(columns: tuple[PublishedColumn, ...], mark: str) -> np.ndarray:
    """(n,) bool, records that show the suppression mark in every quasi-identifier."""
    records = len(columns[0].codes)
    if any(mark not in column.cells for column in columns):
        return np.zeros(records, dtype=bool)
    starred = np.ones(records, dtype=bool)
    for column in columns:
        starred &= column.codes == column.cells.index(mark)
    return starred


def is_withheld(table: Table, sensitive: Sequence[str], starred: np.ndarray, mark: str) -> bool:
    """Whether the starred records are in no class: they show no sensitive value, and others do.

    sensitive: columns of which they must show the mark, or nothing where cells are not text. Where
    every record is starred, all of them are one class.
    """
    if not starred.any() or starred.all():
        return False
    hidden = [(shows_nothing(table, name, mark), table.column(name).codes) for name in sensitive]
    return all(
        bool(is_hidden[codes[rows][starred[rows]]].all())
        for rows in blocks(table.records)
        for is_hidden, codes in hidden
    )


def shows_nothing(table: Table, name: str, mark: str) -> np.ndarray:
    """(cells,) bool, which distinct cells of a column stand for a suppressed value."""
    hidden = mark if table.is_text(name) else ""  # null, in other types
    return np.array([cell == hidden for cell in table.column(name).cells], dtype=bool)


def label_classes(
    columns: tuple[PublishedColumn, ...], left_out: np.ndarray
) -> tuple[np.ndarray, int]:
    """Class of every record, -1 where left out, and how many there are: equal cells are one.

    Classes are numbered in the order of their cells, that of the first column first.
    """
    key = np.zeros(len(left_out), dtype=np.int64)
    room = 1
    for numbers, count in _side_by_side(columns) if len(key) else ():
        if room > (1 << 62) // count:
            key, room = _dense_ranks(key, room)
            key = key.astype(np.int64)
        key *= count
        key += numbers
        room *= count
    # records that are left out get the least key of all
    key += 1
    key[left_out] = 0
    labels, count = _dense_ranks(key, room + 1)
    without = int(left_out.any())
    labels -= without
    return labels, count - without


def _side_by_side(columns: tuple[PublishedColumn, ...]) -> Iterator[tuple[np.ndarray, int]]:
    """For every few columns, what they show together, numbered in order, and how many numbers
    there are; as many columns at once as have a small table of all that they could show.
    """
    while columns:
        few, room = 1, len(columns[0].cells)
        while few < len(columns) and room * len(columns[few].cells) <= _TABLE:
            room *= len(columns[few].cells)
            few += 1
        yield _together(columns[:few], room)
        columns = columns[few:]


def _together(columns: tuple[PublishedColumn, ...], room: int) -> tuple[np.ndarray, int]:
    """What some columns show together. room: how many things they could show."""
    if len(columns) == 1:
        return columns[0].codes, room
    records = len(columns[0].codes)
    occurs = np.zeros(room, dtype=bool)
    for rows in blocks(records):
        occurs[_keys(columns, rows)] = True
    numbers = np.cumsum(occurs, dtype=np.int32)
    numbers -= 1
    found = np.empty(records, dtype=np.int32)
    for rows in blocks(records):
        IN_MEMORY.gather(numbers, _keys(columns, rows), found[rows])
    return found, int(numbers[-1]) + 1


def _keys(columns: tuple[PublishedColumn, ...], rows: slice) -> np.ndarray:
    """(rows,) int32, a number for whatever columns could show together, in order."""
    key = columns[0].codes[rows].astype(np.int32)
    for column in columns[1:]:
        key *= len(column.cells)
        key += column.codes[rows]
    return key


def _dense_ranks(key: np.ndarray, room: int) -> tuple[np.ndarray, int]:
    """(n,) int32, how many lesser keys each record's has, and how many there are; uses up the keys.

    key: (n,) int64 from 0 to room - 1.
    """
    records = len(key)
    bits = records.bit_length()
    if not records or room > 1 << (63 - bits):
        ranks = pl.Series(key).rank("dense").to_numpy().astype(np.int32) - 1
        return ranks, int(ranks.max(initial=-1)) + 1
    # with the record behind the key, all that is left is to sort numbers
    for some in blocks(records):
        key[some] <<= bits
        key[some] += np.arange(some.start, some.stop)
    key.sort()
    ranks = np.empty(records, dtype=np.int32)
    rank, before = 0, key[0] >> bits
    for some in blocks(records):
        keys = key[some] >> bits
        rank_of_each = (np.diff(keys, prepend=before) > 0).astype(np.int32)
        rank_of_each[0] += rank
        np.cumsum(rank_of_each, out=rank_of_each)
        ranks[key[some] & ((1 << bits) - 1)] = rank_of_each
        rank, before = rank_of_each[-1], keys[-1]
    return ranks, int(rank) + 1


def label_shown(
    columns: tuple[PublishedColumn, ...], starred: np.ndarray, withheld: bool
) -> tuple[np.ndarray, int]:
    """Class of every record, and how many there are. withheld: whether starred ones are in none."""
    labels, count = label_classes(columns, starred)
    if withheld or not starred.any():
        return labels, count
    # by their cells alone, whatever made them: the last class
    return np.where(starred, np.int32(count), labels), count + 1


def classes_of(
    released: Table, columns: tuple[PublishedColumn, ...], schema: Schema
) -> tuple[np.ndarray, int, np.ndarray, bool]:
    """Each record's class, how many there are, who is starred, and whether these are in none."""
    rows, mark = released.different, schema.render.suppressed
    if rows is not released:
        columns = tuple(replace(one, codes=rows.column(one.name).codes) for one in columns)
    starred = is_starred(columns, mark)
    withheld = is_withheld(rows, [a.name for a in schema.sensitive], starred, mark)
    labels, count = label_shown(columns, starred, withheld)
    return released.of_records(labels), count, released.of_records(starred), withheld


def _is_missing(column: Column, schema: Schema) -> np.ndarray:
    return np.array([cell in schema.missing_values for cell in column.cells], dtype=bool)


def tree_spans(attribute: Attribute, cells: tuple[str, ...]) -> tuple[np.ndarray, np.ndarray]:
    """First and last leaf of each published label, float64; NaN where the hierarchy lacks it."""
    tree = attribute.hierarchy
    assert tree is not None
    nodes = np.array([tree.node_of_label(cell) for cell in cells], dtype=np.int64)
    known = nodes >= 0
    lo = np.where(known, tree.first[nodes], np.nan)
    return lo, np.where(known, tree.last[nodes], np.nan)


def _ordinal_spans(
    attribute: Attribute, cells: tuple[str, ...], render: Render
) -> tuple[np.ndarray, np.ndarray]:
    index_of = {label: float(i) for i, label in enumerate(attribute.order or ())}
    head, middle, tail = render.parts
    longest = 2 * max(map(len, index_of), default=0) + len(head + middle + tail)
    spans = np.full((len(cells), 2), np.nan)
    for i, cell in enumerate(cells):
        if cell in index_of:
            spans[i] = index_of[cell]
        elif len(cell) <= longest and cell.startswith(head) and cell.endswith(tail):
            inside = cell[len(head) : len(cell) - len(tail)]
            # a label may hold the text that parts the two ends: the right parting has a label on
            # both sides
            for parting in re.finditer(f"(?={re.escape(middle)})", inside):
                lo, hi = inside[: parting.start()], inside[parting.start() + len(middle) :]
                if lo in index_of and hi in index_of:
                    spans[i] = index_of[lo], index_of[hi]
    return spans[:, 0], spans[:, 1]


def _parted(cells: tuple[str, ...]) -> tuple[tuple[str, ...], np.ndarray]:
    """Cells of a mean, a blank and a span, as spans and means; NaN where there is no mean."""
    parts = [cell.split(" ", 1) for cell in cells]
    means = parse_numbers(
        tuple(part[0] if len(part) == 2 and part[1].strip() else "" for part in parts)
    )
    spans = (
        cell if np.isnan(mean) else part[1]
        for cell, part, mean in zip(cells, parts, means, strict=True)
    )
    return tuple(spans), means


def number_ends(
    cells: tuple[str, ...], render: Render, after_means: bool = False
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The two ends of each cell as they are written, "" where it is neither number nor span.

    after_means: whether a span may follow its mean.
    """
    is_value = ~np.isnan(parse_numbers(cells))
    head, middle, tail = render.parts
    if not any(middle in cell for cell in cells):
        alone = tuple(cell if is_one else "" for cell, is_one in zip(cells, is_value, strict=True))
        return alone, alone
    digits = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
    number, mean = rf"\s*({digits})\s*", f"(?:{digits} )?" if after_means else ""
    pattern = f"^{mean}{re.escape(head)}{number}{re.escape(middle)}{number}{re.escape(tail)}$"
    text = pl.Series(cells, dtype=pl.String)
    ends = text.str.extract_groups(pattern).struct.unnest()
    lo, hi = (
        tuple(text.zip_with(pl.Series(is_value), ends[name].fill_null("")).to_list())
        for name in ends.columns
    )
    return lo, hi


def covers(published: PublishedColumn, values: np.ndarray, codes: np.ndarray) -> np.ndarray:
    """Whether each record's published cell covers its true value; (n,) bool.

    values: (m,) float64, the number, order or leaf of each distinct value of the original, NaN for
    none. codes: (n,) which of them each record has.
    """
    if len(values) * len(published.cells) <= _MOST_PAIRS:
        # every pair is judged once, and each record looks its own up
        pairs = spans_cover(published.lo, published.hi, values[:, None]).ravel()
        covered = np.empty(len(codes), dtype=bool)
        for rows in blocks(len(codes)):
            pair = codes[rows].astype(np.int32)
            pair *= np.int32(len(published.cells))
            pair += published.codes[rows]
            IN_MEMORY.gather(pairs, pair, covered[rows])
        return covered
    return spans_cover(published.lo[published.codes], published.hi[published.codes], values[codes])


def digits_deny(
    published: PublishedColumn, texts: Sequence[str], codes: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    """(n,) bool, true numbers that lie outside their cell by digits that floats round off.

    texts: of each distinct value. codes: (n,) which of them a record has. asked: (n,) bool, the
    records that are judged; those whose floats lie within their cell.
    """
    denied = np.zeros(len(codes), dtype=bool)
    if published.ends is None:
        return denied
    long_cell, long_value = is_long(published.ends[0]) | is_long(published.ends[1]), is_long(texts)
    if not (long_cell.any() or long_value.any()):
        return denied
    rows = np.flatnonzero(asked & (long_cell[published.codes] | long_value[codes]))
    pairs = codes[rows].astype(np.int64) * len(published.cells) + published.codes[rows]
    distinct, place = np.unique(pairs, return_inverse=True)
    outside = np.zeros(len(distinct), dtype=bool)
    for i, pair in enumerate(distinct.tolist()):
        value, cell = divmod(pair, len(published.cells))
        lo, hi = (end[cell] for end in published.ends)
        if lo and hi:  # else the mark, which covers everything
            outside[i] = not Decimal(lo) <= Decimal(texts[value]) <= Decimal(hi)
    denied[rows] = outside[place]
    return denied


def spans_cover(lo: np.ndarray, hi: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Whether a span as in `PublishedColumn` covers a value, elementwise; the mark covers NaN."""
    neither = np.isnan(values) & (np.isnan(lo) | np.isneginf(lo))
    return neither | ((lo <= values) & (values <= hi))
