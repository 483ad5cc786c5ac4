"""A table of people, column by column, each column as codes into its distinct values.

Everything Shoal asks of a column - is it a number, is it in the hierarchy, which value is least -
is answered for the distinct values, once, and carried to the records by their codes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import polars as pl

from shoal.data import cores
from shoal.data.room import IN_MEMORY, Room, blocks

HEAD = 1000
"""Texts that show whether those of a column repeat."""

MOST_KEPT = 100_000
"""Rows that a finding is kept of."""
FEW, FEW_ROWS = 200, 1_000
"""Texts that Python takes in sooner than Polars, and rows that it encodes sooner."""


@dataclass(frozen=True)
class Column:
    """One column: distinct texts in sorted order, and which of them each record holds.

    codes: (n,) unsigned. texts: the distinct texts, sorted; a missing value (null) reads as "".
    was_number: whether the column came as numbers, not as text. source: as in `Table`.
    """

    name: str
    codes: np.ndarray
    texts: pl.Series
    was_number: bool = False
    source: np.ndarray | None = None

    @cached_property
    def cells(self) -> tuple[str, ...]:
        """The distinct texts for Python; where there may be very many, ask Polars: `texts`."""
        return tuple(self.texts.to_list())

    def counts(self) -> np.ndarray:
        """Records per distinct text, (cells,) int64; read-only."""
        return self._counts

    @cached_property
    def _counts(self) -> np.ndarray:
        counts = np.zeros(len(self.texts), dtype=np.int64)
        if len(counts) > len(self.codes) // 8:  # a table for each block would cost more
            counts += np.bincount(self.codes, minlength=len(counts))
        else:  # block by block, so that no wider copy of all codes is made
            for rows in blocks(len(self.codes)):
                counts += np.bincount(self.codes[rows], minlength=len(counts))
        counts.flags.writeable = False
        return counts

    @property
    def used(self) -> pl.Series:
        """The distinct texts that some record holds."""
        return self.texts.filter(self.counts() > 0).alias(self.name)

    def joined(self, other: Column) -> Column:
        """The records of both, one after the other."""
        texts = pl.concat([self.texts, other.texts]).unique().sort()
        parts = [places_in(texts, c.texts)[c.codes] for c in (self, other)]
        return Column(self.name, np.concatenate(parts), texts, self.was_number)

    def rows_of(self, cells: np.ndarray, most: int = MOST_KEPT) -> np.ndarray:
        """The first 0-based rows that hold one of these cells. cells: (cells,) bool."""
        if self.source is not None:
            return np.sort(self.source[cells[self.codes]])[:most]
        found = np.zeros(0, dtype=np.int64)
        for rows in blocks(len(self.codes)):
            found = np.append(found, rows.start + np.flatnonzero(cells[self.codes[rows]]))[:most]
            if len(found) == most:
                break
        return found


@dataclass(frozen=True)
class Table:
    """A frame of n records whose columns are read as text, each encoded once, when asked for.

    source: (n,) int64, the row of the input that each record was; None where they are in its order.
    """

    frame: pl.DataFrame
    _columns: dict[str, Column] = field(default_factory=dict, repr=False, compare=False)
    source: np.ndarray | None = field(default=None, repr=False, compare=False)

    @property
    def records(self) -> int:
        return self.frame.height

    @cached_property
    def names(self) -> list[str]:
        return self.frame.columns

    @property
    def room(self) -> Room:
        """Where what is made of its records finds a place."""
        return IN_MEMORY

    @property
    def different(self) -> Table:
        """Each different record once, where that is known; else the table itself."""
        return self

    def of_records(self, of_different: np.ndarray) -> np.ndarray:
        """What is known of each different record, of all records; (n,)."""
        return of_different

    def series(self, name: str) -> pl.Series:
        """The cells of a column, of the type that it came in."""
        return self.frame.get_column(name)

    def dtype(self, name: str) -> pl.DataType:
        """The type that a column came in."""
        return self.series(name).dtype

    def is_text(self, name: str) -> bool:
        """Whether the suppression mark can stand in a column."""
        return self.dtype(name) in (pl.String, pl.Categorical, pl.Enum)

    def cells_of(self, name: str, rows: slice) -> pl.Series:
        """The cells of some records as text."""
        if name not in self.coded:
            return as_text(self.series(name)[rows])
        column = self.column(name)
        return column.texts.gather(column.codes[rows])

    def with_column(self, column: Column) -> Table:
        """The table with one more column, of text."""
        cells = column.texts.gather(column.codes).alias(column.name)
        return Table(self.frame.with_columns(cells), {**self._columns, column.name: column})

    def without(self, names: Sequence[str]) -> Table:
        """The table without the cells of these columns; what was encoded of them stays known."""
        return Table(self.frame.drop(names), self._columns)

    def column(self, name: str) -> Column:
        if name not in self._columns:
            self._columns[name] = replace(encode_text(self.series(name)), source=self.source)
        return self._columns[name]

    def encode(self, names: Iterable[str]) -> None:
        """Encodes those of these columns that are categories, several at once.

        Others are encoded when they are asked for, by Polars, which uses all cores for each.
        """
        types = self.frame.schema  # which Polars makes anew for all columns when it is asked
        new = [n for n in names if n not in self._columns and types[n] == pl.Categorical]
        encoded = cores.side_by_side(lambda n: encode_text(self.series(n)), new, self.records)
        self._columns.update(zip(new, encoded, strict=True))

    @property
    def coded(self) -> Collection[str]:
        """The columns that are encoded already."""
        return self._columns.keys()

    def __contains__(self, name: str) -> bool:
        """Whether the cells of a column are known, or how often each text occurs in it."""
        return name in self._columns or name in self.names

    def holds(self, name: str, text: str) -> bool:
        """Whether a cell of a column is this text."""
        texts = self.column(name).texts if name in self.coded else as_text(self.series(name))
        if len(texts) <= FEW:
            return text in texts.to_list()
        return bool((texts == text).any())

    @property
    def rows_of_names(self) -> np.ndarray:
        """The rows, ascending, that repeat the names of all columns."""
        rows = None
        if len(self.names) > 1 and all(map(self.is_text, self.names)):
            for name in self.names:
                rows = self._rows_with(name, name, rows)
                if not len(rows):
                    break
        return np.arange(0) if rows is None else rows

    def _rows_with(self, name: str, text: str, rows: np.ndarray | None) -> np.ndarray:
        """Those of these rows, or of all, that hold a text in a column, but for blanks."""
        if name in self.coded:
            column = self.column(name)
            cells = np.flatnonzero((column.texts.str.strip_chars() == text.strip()).to_numpy())
            codes = column.codes if rows is None else column.codes[rows]
            found = np.flatnonzero(np.isin(codes, cells)) if len(cells) else cells
        else:
            texts = self.series(name) if rows is None else self.series(name).gather(rows)
            are_alike = texts.cast(pl.String).str.strip_chars() == text.strip()
            found = np.flatnonzero(are_alike.fill_null(False).to_numpy())
        return found if rows is None else rows[found]

    def distinct(self, name: str) -> int:
        """How many different texts a column holds."""
        if name in self.coded:
            return len(self.column(name).texts)
        return self._as_compared(name).n_unique()

    def follows(self, name: str, source: str) -> bool:
        """Whether records that agree in one column agree in the other, too."""
        both = pl.DataFrame([as_text(self.series(column)) for column in (source, name)])
        return both.n_unique() == both[source].n_unique()

    def distinct_and_alone(self, name: str) -> tuple[int, float | None]:
        """`distinct`, and the share of records that no other agrees with in a column; None without
        any record.
        """
        if name in self.coded:
            repeats = self.column(name).counts()
        else:
            repeats = self._as_compared(name).unique_counts().to_numpy()
        records = int(repeats.sum())
        return len(repeats), float((repeats == 1).sum()) / records if records else None

    def texts(self, name: str) -> tuple[pl.Series, np.ndarray]:
        """The distinct texts of a column, in any order, and how many records hold each."""
        if name in self.coded:
            column = self.column(name)
            return column.texts, column.counts()
        # each value is written as text once, however many records have it
        counts = self.series(name).alias("value").value_counts(name="records")
        return as_text(counts["value"]), counts["records"].to_numpy()

    def _as_compared(self, name: str) -> pl.Series:
        """A column in which missing and empty text are the same, as when it is encoded."""
        series = self.series(name)
        return series.fill_null("") if series.dtype == pl.String else series

    def codes_of(self, name: str | None) -> np.ndarray | None:
        """(n,) which text of a column each record holds; None where there is no such column."""
        return None if name is None or name not in self.names else self.column(name).codes


class RepeatedTable(Table):
    """A table whose records repeat: each different one is held once, and what is asked of all of
    them is put together when it is asked for.

    row_of: (n,) int32, which of them each record is.
    """

    def __init__(self, rows: Table, row_of: np.ndarray) -> None:
        vars(self).update(_columns={}, names=rows.names, _rows=rows, _row_of=row_of)

    _rows: Table
    _row_of: np.ndarray

    @cached_property
    def frame(self) -> pl.DataFrame:
        return self._rows.frame[self._row_of]

    @property
    def records(self) -> int:
        return len(self._row_of)

    @property
    def different(self) -> Table:
        return self._rows

    def of_records(self, of_different: np.ndarray) -> np.ndarray:
        return self.room.gather(of_different, self._row_of)

    def series(self, name: str) -> pl.Series:
        return self._rows.series(name).gather(self._row_of)

    def dtype(self, name: str) -> pl.DataType:
        return self._rows.dtype(name)

    def column(self, name: str) -> Column:
        if name not in self._columns:
            column = self._rows.column(name)
            self._columns[name] = replace(column, codes=self.of_records(column.codes))
        return self._columns[name]

    def encode(self, names: Iterable[str]) -> None:
        self._rows.encode(names)

    def without(self, names: Sequence[str]) -> Table:
        return RepeatedTable(self._rows.without(names), self._row_of)

    @property
    def coded(self) -> Collection[str]:
        """All columns, since those of the different records are soon encoded."""
        return {*self.names, *self._rows.coded}

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def follows(self, name: str, source: str) -> bool:
        return self._rows.follows(name, source)


def encode_text(series: pl.Series) -> Column:
    """Codes into the sorted distinct texts; the same for any order of the rows and any machine."""
    if len(series) <= FEW_ROWS:
        return _encode_few(as_text(series), series.dtype.is_numeric())
    if series.dtype == pl.Categorical and not series.null_count():
        return _encode_categories(series)
    text, was_number = as_text(series), series.dtype.is_numeric()
    hashes = text.hash().to_numpy()
    if len(np.unique(hashes[:HEAD])) > HEAD // 2:
        column = _encode_many(text, hashes, was_number)
        if column is not None:
            return column
    cells = text.unique().sort()
    codes = text.cast(pl.Enum(cells)).to_physical().to_numpy()
    return Column(series.name, codes, cells, was_number)


def _encode_many(text: pl.Series, hashes: np.ndarray, was_number: bool) -> Column | None:
    """Codes of texts that hardly repeat: numbers are sorted sooner than texts. None where two texts
    have one hash.
    """
    _, first, place = np.unique(hashes, return_index=True, return_inverse=True)
    cells = text.gather(first).sort()
    codes = np.argsort(cells.hash().to_numpy()).astype(np.uint32)[place]
    is_exact = bool((cells.gather(codes) == text).all())
    return Column(text.name, codes, cells, was_number) if is_exact else None


def places_in(
    texts: pl.Series | Sequence[str], asked: pl.Series | np.ndarray | Sequence[str]
) -> np.ndarray:
    """(asked,) int32, the place of each among these distinct texts, -1 where it is none of them."""
    given = asked if isinstance(asked, pl.Series) else pl.Series(list(asked), dtype=pl.String)
    if isinstance(texts, pl.Series) and texts.equals(given):
        return np.arange(len(given), dtype=np.int32)
    places = given.cast(pl.String).cast(pl.Enum(texts), strict=False).to_physical().cast(pl.Int32)
    return (places.fill_null(-1) if places.null_count() else places).to_numpy()


def _encode_few(text: pl.Series, was_number: bool) -> Column:
    """Codes of few texts, for which Polars takes longer to start than Python to finish."""
    texts = text.to_list()
    cells = sorted(set(texts))  # by code point, which is the order of Polars' bytes
    index_of = {cell: index for index, cell in enumerate(cells)}
    dtype = np.min_scalar_type(max(len(cells) - 1, 0))
    codes = np.array([index_of[cell] for cell in texts], dtype)
    return Column(text.name, codes, pl.Series(text.name, cells, pl.String), was_number)


def _encode_categories(series: pl.Series) -> Column:
    """Codes of categories, whose own numbers depend on what was read before."""
    # chunk by chunk, as it was read: no second copy of the whole column
    numbers = [chunk.to_numpy() for chunk in series.to_physical().get_chunks()]
    seen, texts = _distinct(series, numbers)
    order = texts.arg_sort().to_numpy()
    dtype = np.min_scalar_type(max(len(order) - 1, 0))
    index_of = np.zeros(int(seen.max()) + 1, dtype=dtype)
    index_of[seen[order]] = np.arange(len(order), dtype=dtype)
    codes, begun = np.empty(len(series), dtype=dtype), 0
    for chunk in numbers:
        IN_MEMORY.gather(index_of, chunk, codes[begun : begun + len(chunk)])
        begun += len(chunk)
    return Column(series.name, codes, texts.gather(order))


def _distinct(series: pl.Series, numbers: list[np.ndarray]) -> tuple[np.ndarray, pl.Series]:
    """The distinct categories, as numbers and as texts; `unique` would sort every cell."""
    seen = np.zeros(1 + max(int(chunk.max()) for chunk in numbers if len(chunk)), dtype=bool)
    rows, begun = [], 0
    for chunk in numbers:
        known = IN_MEMORY.gather(seen, chunk)
        if not known.all():
            fresh = np.flatnonzero(~known)
            rows.append(begun + fresh[np.unique(chunk[fresh], return_index=True)[1]])
            seen[chunk] = True
        begun += len(chunk)
    distinct = series.gather(np.concatenate(rows))
    return distinct.to_physical().to_numpy(), distinct.cast(pl.String)


def names_like_patterns(names: Sequence[str], where: str = "") -> list[str]:
    """Names that the table library takes for patterns of names, and so for other columns."""
    return [
        f"{where}column {number}: its name is '*', or runs from '^' to '$', and would be read as a"
        " pattern of names; rename it"
        for number, name in enumerate(names, 1)
        if name == "*" or (name.startswith("^") and name.endswith("$"))
    ]


def cell_texts(series: pl.Series) -> pl.Series:
    """The cells as text, null where they are; a fraction of a second only if it is not zero."""
    text = series if series.dtype == pl.String else series.cast(pl.String)
    return text.str.replace(r"\.0+(\D|$)", "${1}") if series.dtype == pl.Datetime else text


def as_text(series: pl.Series) -> pl.Series:
    text = cell_texts(series)
    return text.fill_null("") if text.null_count() else text


def with_decimals(texts: Iterable[str]) -> list[str]:
    """These texts, and the whole numbers among them also as floats are written: -9 and -9.0."""
    listed = [*texts]
    whole = [text.removesuffix(".0") for text in listed]
    whole = [number for number in whole if number.removeprefix("-").isdecimal()]
    return [*dict.fromkeys([*listed, *whole, *(f"{number}.0" for number in whole)])]


def texts_of(frame: pl.DataFrame) -> pl.DataFrame:
    """All columns as text, without a value where there is none."""
    text = frame.with_columns(map(cell_texts, frame))
    return text.with_columns(pl.when(pl.all() != "").then(pl.all()))


@dataclass(frozen=True, eq=False)
class Texts:
    """A column: its texts, without blanks around them, and (n,) which of them a row holds."""

    title: str
    texts: pl.Series
    codes: np.ndarray

    @classmethod
    def of(cls, table: Table, title: str) -> Texts:
        if title in table.coded:
            column = table.column(title)
            return cls(title, column.texts.str.strip_chars(), column.codes)
        texts = as_text(table.frame[title]).str.strip_chars()
        return cls(title, texts, np.arange(len(texts)))

    @cached_property
    def without_marks(self) -> pl.Series:
        """Its texts without accents and quotes inside words, as lists of words hold them."""
        rows = self.texts.str.contains("[^ -~]").arg_true()
        if not len(rows):
            return self.texts
        plain = self.texts.gather(rows).str.normalize("NFKD")
        plain = plain.str.replace_all(r"[\p{M}\"\u05f4]", "").str.to_lowercase()
        return self.texts.clone().scatter(rows, plain.str.replace_many(["ß", "ς"], ["ss", "σ"]))

    def rows_called(self, is_called: pl.Series) -> np.ndarray:
        """(n,) bool, the rows of some texts."""
        return is_called.to_numpy()[self.codes]

    def call_alike(self, rows: np.ndarray) -> bool:
        """Whether these rows alone hold one text, beside others of which most differ, as names."""
        texts = self.texts.gather(self.codes)
        called = texts.gather(rows).unique()
        is_alone = len(called) == 1 and (texts == called[0]).sum() == len(rows) > 1
        return bool(is_alone and 2 * texts.n_unique() > len(texts))
