"""A table's columns, as the question who is one person asks for them, each read once at most; and
whose numbers and codes repeat as those of people do, whatever their names are.

kind        how cells are written: time, fraction, whole (with .0), span, negative, int, text, empty
token       a way of writing that is made to tell many apart: addresses, hashes, long numbers;
            fullname: phrases such as names are; people: names, by what many people are called
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from math import inf
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.column_words import DATE, PERSONAL, ColumnName, fold, meanings, name_of
from shoal.data.person.people import ANEW, FEW_VALUES, MOST_TO_A_NUMBER, People
from shoal.data.person_names import bare, names_of, unsigned
from shoal.data.table import Table, as_text, encode_text

MOST_CELLS = 1_000
FEW_CELLS = 2_000  # different values among some rows, up to which a column is encoded in a blink
NEARLY_ALL = 0.9
FEWEST = 10  # distinct values, and repeats, below which a name must say more
EXCEPTIONS = 1.02  # times as many, where only errors differ
MANY = 20  # distinct values of a column that nothing else speaks for
MOST_OF_RUNNING = 30  # records of one whom a running number stands for
MANY_ROWS = 200_000  # that show how many records each number has
MOST_OF_ONE = 100  # records of one, up to which words and measures may be of people
MOSTLY = 0.7  # share of people who recur, where a number stands for people
MOST_EXACT = 1 << 53  # among floating-point numbers
MOST_WAVES = 60  # of a panel, or questions, or trials
OFTEN = 1.5  # records of each of somebody, on average
ROUND = 0.4  # share of multiples of five from which numbers are rounded
NO_VALUE = ("", "?", "*", "NA", "N/A", "n/a", "NULL", "null", "None", "nan", "NaN", "-")
SIGNS = ("?", "*", "-")
"""Those that people type, and no program writes into cells that hold nothing."""
BLANKS = "".join(map(chr, range(33)))
UNMISTAKABLE = ("mail", "phone", "long", "national")
"""Tokens that hold signs of a range or of a fraction, and are neither."""
STRONG = (*UNMISTAKABLE, "mac", "uuid", "hex", "ip", "digits")
FULL_NAMES = ("fullname", "people")
NO_NUMBERS = ("time", "fraction", "span", "negative", "empty")
"""Kinds that number nobody."""
NEVER = (*PERSONAL, "first", "last", "thing", "staff", "group")
"""Kinds of names that number nobody."""

_DAY = re.compile(r"(19|20)\d\d(0[1-9]|1[0-2])([0-2]\d|3[01])$")
_FRACTION = re.compile(r"[+-]?\d*[.,]\d+([eE][+-]?\d+)?$")
_WHOLE = re.compile(r"-?\d+([.,]0+)?$")
_INT = re.compile(r"[+-]?\d+$")
_GROUPED = re.compile(r"[1-9]\d{0,2}([.,]\d{3})+$")
_PAIR = re.compile(r"(\d{1,4})[.:](\d{1,3})$")
# in brackets behind words, people are numbered
_SPAN = re.compile(r"(?!\s*[^\W\d_]{2}).*[\[\](~<>]")
_BAND = re.compile(r"(0|[1-9]\d*) ?- ?(0|[1-9]\d*)$")
_TOKENS = {
    "mail": re.compile(r"([^<>]*<)?[^@\s]+@[^@\s.]+(\.[^@\s.]+)+$"),
    "phone": re.compile(r"\+?[\d ]*\(\d+\)[\d ./-]{5,}$|(?=(\D*\d){9})\+?\d{2,4}( \d{2,4})+$"),
    "long": re.compile(r"\d{5,10}\.1\d{9}$|\d([.,]\d+)?E\+?1[1-9]$", re.IGNORECASE),
    "national": re.compile(
        r"[a-z]{0,2}\d{7,9}[a-z]{1,2}$|[a-z]{1,2}\d{6}\([\da]\)$", re.IGNORECASE
    ),
    "mac": re.compile(r"([0-9a-f]{2}[:-]){5}[0-9a-f]{2,}$", re.IGNORECASE),
    "uuid": re.compile(r"[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$", re.IGNORECASE),
    "hex": re.compile(r"(?=.*\d)([0-9a-f]{8,64}|[\da-z+/]{20,}={0,2})$", re.IGNORECASE),
    "ip": re.compile(
        r"(\d{1,3}\.){3}\d{1,3}(:\d+)?$|(?=[\da-f:]*::|([\da-f]*:){7})[\da-f:.]+$", re.IGNORECASE
    ),
    "prefix": re.compile(r"[^\W\d_]{1,8}[-_/ .:]?\d{2,}([-_/.]\d+)*$"),
    "parted": re.compile(r"\d+([-/. ]\d+)+$"),
    "fullname": re.compile(r"[^\W\d_]\S+,? [^\W\d_]\S+( [^\W\d_]\S+){0,3}$"),
}
_NO_NAME = r"^[\p{Latin}\P{L}]*$|(^|\s)\p{Ll}"
"""Texts in Latin letters, where names that many people bear are known, and with words in small
letters, as no name of a person has.
"""
_PHRASE = r"^\D*\w \w\D*$|\p{L}{4,} \w|\w \p{L}{4,}"  # as plates of vehicles are not
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")  # longer than what joins names, as `de` does
LEAST_BORNE = 0.2  # share of full names with a part that many people bear
MOST_ALIKE_IN_NAMES = 1 / 3  # share of full names with the same part; of streets, most have one
_SECONDS = (946_684_800, 2_051_222_400)  # 2000 to 2034, as seconds since 1970
LEAST_DIGITS, LEAST_ZEROS = 7, 3  # lengths of numbers that are made to tell apart
LEAST_CODE = 4  # digits that all of some numbers have, as counts hardly ever do
LONGEST_MEASURE = 15  # signs of a negative number; longer ones are hashes


class Look(NamedTuple):
    """How a column's cells are written. token: empty where they are not made to name anything."""

    kind: str
    token: str = ""


def look_of(cells: Sequence[str], name: ColumnName, distinct: int) -> Look:
    """How a column is written. cells: distinct ones that hold a value, without blanks around them;
    distinct: how many there are of which these are some.
    """
    if not cells:
        return Look("empty")
    if token := _token_of(cells, UNMISTAKABLE):
        return Look("text", token)
    ints = [cell for cell in cells if _INT.match(cell)]
    fractions = _share(_FRACTION, cells)
    if _are_numbered_in_groups(cells, distinct):
        return Look("text", "parted")
    if _nearly_all(DATE, cells):
        return Look("time")
    if name.is_number and _nearly_all(_GROUPED, cells):
        return Look("int")
    if fractions >= 0.02 and fractions + len(ints) / len(cells) > NEARLY_ALL:
        return Look("whole" if all(map(_WHOLE.match, cells)) else "fraction")
    if _share(_SPAN, cells) >= 0.2 or (distinct < FEW_VALUES and _are_bands(cells)):
        return Look("span")
    if len(ints) >= 0.98 * len(cells):
        return _look_of_ints(ints, name)
    token = _token_of(cells, _TOKENS)
    if token == "fullname" and _are_of_people(cells):
        return Look("text", "people")
    return Look("text", "" if token == "fullname" and distinct <= 10 else token)


def _are_numbered_in_groups(cells: Sequence[str], distinct: int) -> bool:
    """Whether all, as `1.01` and `12:05`, count from 1 in groups, unlike decimals and times."""
    pairs = [(pair[1], int(pair[2])) for pair in map(_PAIR.match, cells) if pair]
    greatest = dict(sorted(pairs))  # of each group, the last
    is_any = len(pairs) == len(cells) and all(number for _, number in pairs)
    return is_any and len(greatest) > 1 and distinct >= max(MANY, ANEW * sum(greatest.values()))


def _are_of_people(phrases: Sequence[str]) -> bool:
    """Whether these are names of people: many are called as others are, and most have no other
    word in common, as streets do.
    """
    parts = [{*_LONG_WORD.findall(fold(one))} for one in phrases]
    known = meanings()["borne"]
    borne = sum(not known.isdisjoint(words) for words in parts)
    alike = max(Counter(word for words in parts for word in words - known).values(), default=0)
    return borne >= LEAST_BORNE * len(phrases) and alike <= MOST_ALIKE_IN_NAMES * len(phrases)


def _token_of(cells: Sequence[str], tokens: Iterable[str]) -> str:
    """The first of these tokens as which nearly all cells are written."""
    return next((one for one in tokens if _nearly_all(_TOKENS[one], cells)), "")


def _nearly_all(pattern: re.Pattern[str], cells: Sequence[str]) -> bool:
    """Whether nearly all match; the first that do not show that they are too many."""
    others = (cell for cell in cells if not pattern.match(cell))
    return all((len(cells) - n) / len(cells) >= NEARLY_ALL for n, _ in enumerate(others, 1))


def _share(pattern: re.Pattern[str], cells: Sequence[str]) -> float:
    return sum(bool(pattern.match(cell)) for cell in cells) / len(cells)


def _are_bands(cells: Sequence[str]) -> bool:
    """Whether many are written as `10-19`, from less to more, and most begin where no other does:
    in `3-14` and `3-15`, a person is numbered in a centre.
    """
    pairs = [cell for cell in cells if re.match(r"\d+ ?- ?\d+$", cell)]
    bands = [band for band in map(_BAND.match, pairs) if band and int(band[1]) <= int(band[2])]
    begins = {band[1] for band in bands}
    return len(bands) == len(pairs) >= 0.2 * len(cells) and 2 * len(begins) > len(bands)


def _look_of_ints(ints: Sequence[str], name: ColumnName) -> Look:
    numbers = [float(cell) for cell in ints]  # which takes any number of digits
    least, greatest = min(numbers), max(numbers)
    first, last = _SECONDS
    is_moment = any(first * unit <= least and greatest <= last * unit for unit in (1, 1_000))
    if is_moment and name.has("time"):
        return Look("time")
    lengths = [len(cell) for cell in ints]
    usual = max(set(lengths), key=lambda length: (lengths.count(length), -length))
    if least < 0:
        is_hash = usual > LONGEST_MEASURE or _fill_32_bits(np.array(numbers))
        return Look("int", "digits") if is_hash else Look("negative")
    if usual == 8 and name.kind != "number" and all(map(_DAY.match, ints)):
        return Look("time")
    if usual >= LEAST_DIGITS and lengths.count(usual) >= NEARLY_ALL * len(ints):
        return Look("int", "digits")
    is_one_length = usual >= LEAST_ZEROS and min(lengths) == max(lengths)
    begins_with_zero = any(cell.startswith("0") and len(cell) > 1 for cell in ints)
    return Look("int", "zeros" if is_one_length and begins_with_zero else "")


def _fill_32_bits(numbers: np.ndarray) -> bool:
    """Whether they are spread as hashes of 32 bits with a sign are: nothing is measured so."""
    quarters = np.histogram(numbers, bins=4, range=(-(2**31), 2**31))[0]
    return bool(quarters.sum() == len(numbers) and quarters.min() > len(numbers) / 8)


_NO_VALUE, _BLANK = (
    rf"^[\x00- ]*({'|'.join(map(re.escape, texts))})[\x00- ]*$"
    for texts in (NO_VALUE, sorted({*NO_VALUE} - {*SIGNS}))
)
_CELL = pl.col("cell").str
_SHOWN = {
    "zero": (pl.col("cell") == "0").any(),
    "shortest": _CELL.len_chars().min().fill_null(0),
    "longest": _CELL.len_chars().max().fill_null(0),
    "grouped": _CELL.contains(_GROUPED.pattern).all(),
    "digits": _CELL.contains(r"\d").any(),
    "codes": _CELL.extract(r"^\d*(\p{L}+)\d+\w*$").n_unique(),
    "no_name": _CELL.contains(_NO_NAME).any(),
    "phrases": _CELL.contains(_PHRASE).sum(),
    "long": _CELL.contains(r"^[\w-]{20,}$").all(),
}
"""What some cells of a column show together, asked at once."""


class PersonColumn:
    """A column by its name and cells. rows: some rows, whose cells show how it is written.

    seen: different values among these rows; some: of them, without blanks around them. again:
    records among them beyond the first of each. share: of all records, these rows. lacking: share
    of these rows that are empty, as merged cells are; no sign for no value is typed.
    """

    def __init__(self, table: Table, title: str, rows: np.ndarray) -> None:
        self._table = table
        self.title = title
        self.name: ColumnName = name_of(title)
        texts = self.texts_among(rows)
        has_value = is_value(texts)
        held = texts.filter(pl.Series(has_value)).unique().sort()
        self._nobody = self.name.nobody_among(held)
        self.blank = 0 if has_value.all() else int(texts.str.contains(_BLANK).sum())
        if self._nobody:
            has_value, held = self._is_somebody(texts), held.filter(~held.is_in(self._nobody))
        self._held = held
        self.seen = len(held)
        self.again = int(has_value.sum()) - self.seen
        self.share = len(rows) / max(table.records, 1)
        self.lacking = self.blank / max(len(rows), 1)
        every = max(-(-len(held) // MOST_CELLS), 1)
        self.some = some = held.gather_every(every).str.strip_chars(BLANKS)
        self.look: Look = look_of(some.to_list(), self.name, self.seen)
        shown = some.alias("cell").to_frame().select(**_SHOWN).to_struct("shown").item()
        if self.name.kind in (*PERSONAL, "first", "last") and shown["codes"] > MANY:
            self.name = name_of("code")  # whose title tells of what it is made
        self.holds_zero: bool = shown["zero"]
        self.length = shown["shortest"] if shown["shortest"] == shown["longest"] else 0  # 0: differ
        self.is_grouped: bool = shown["grouped"]
        self.lacks_digits = not shown["digits"]
        self.may_be_names = not shown["no_name"]
        self.is_of_phrases = 2 * shown["phrases"] > len(some)
        is_long = shown["long"] and self.length > 0
        self.is_random = self.look.token in ("uuid", "hex") or (is_long and not self.lacks_digits)

    @property
    def varies(self) -> bool:
        """Whether it has two values at least."""
        return self.seen > 1

    @property
    def may_number(self) -> bool:
        """Whether it is neither a measure nor named for what describes a person."""
        name = self.name
        describes = name.kind in (*PERSONAL, "first", "last") or name.has("body") or name.is_place
        return self.varies and self.look.kind in ("int", "text", "whole") and not describes

    def has_values(self, least: int) -> bool:
        """Whether at least this number of values differ; counted where some rows can't tell."""
        return self.seen >= least or self.people.distinct >= least

    @property
    def counts_only(self) -> bool:
        """Whether it is named as a count, and not written as what tells people apart."""
        name = self.name
        is_code = self.length >= LEAST_CODE and self.has_values(MANY)
        if not name.is_count or self.look.token or self.look.kind == "text" or is_code:
            return False
        # `No.` and one more word name a number rather than count
        is_number = name.words[0] == "no" and len(name.words) == 2
        fewest = MANY if self.holds_zero else 1 if is_number else FEWEST
        return not (name.may_number_one and self.has_values(fewest))

    def has_few(self, most: int) -> bool:
        """Whether it has two values or more, up to this number."""
        return self.varies and not self.has_values(most + 1)

    @property
    def may_be_several(self) -> bool:
        """Whether some values, of which some repeat, may be people."""
        return self.has_values(FEWEST) and self.repeats(FEWEST)

    def repeats(self, least: int = 1) -> bool:
        """Whether at least this number of records repeat a value; counted where rows can't tell."""
        return self.again >= least or self.people.repeated >= least

    @cached_property
    def people(self) -> People:
        """The records by the value that they hold here, however it is spelled."""
        if self.seen <= FEW_CELLS or self.title in self._table.coded:
            codes = self._table.column(self.title).codes
            different, number = np.unique(self._keys(self._cells), return_inverse=True)
            number = number.astype(np.min_scalar_type(len(different)))
            return People(number[codes], self._is_somebody(self._cells)[codes], len(different))
        return People(self._keys(self.texts), self._is_somebody(self.texts))

    @property
    def is_name(self) -> bool:
        """Whether it is named for names, or holds full names of people under an unknown title."""
        return self.name.kind == "name" or (self.look.token == "people" and not self.name.kind)

    @cached_property
    def texts(self) -> pl.Series:
        """What all records hold."""
        return self.texts_among(slice(None))

    def _is_somebody(self, texts: pl.Series) -> np.ndarray:
        """(n,) bool, which of these texts stand for a value, and not for nobody as `-1` may."""
        found = is_value(texts)
        return found & ~texts.is_in(self._nobody).to_numpy() if self._nobody else found

    def _keys(self, texts: pl.Series) -> np.ndarray:
        """Whole numbers, equal for what may be spellings of one person; where some rows show two of
        nobody, only for what is written alike.
        """
        has_spellings = bare(names_of(self._held)).n_unique() < len(self._held)
        return (bare(names_of(texts)) if has_spellings else texts).hash().to_numpy()

    @property
    def is_signed_in_ways(self) -> bool:
        """Whether some of its values differ in signs and blanks alone."""
        names = bare(names_of(self._held)).unique()
        return unsigned(names).n_unique() < len(names)

    def numbers_among(self, rows: np.ndarray) -> np.ndarray:
        """(rows,) float64, not a number where they hold none."""
        if self.title in self._table.coded:
            return self._numbers[self._table.column(self.title).codes[rows]]
        return _numbers_in(self.texts_among(rows))

    def years_among(self, rows: np.ndarray) -> np.ndarray:
        """(rows,) float64, the years, or else the first numbers, in what some rows hold."""
        texts = self.texts_among(rows)
        years = texts.str.extract(r"((?:19|20)\d\d)").fill_null(texts.str.extract(r"(\d+)"))
        return _numbers_in(years.fill_null(""))

    def ends_among(self, rows: np.ndarray) -> np.ndarray:
        """(rows,) float64, the numbers at the ends of what some rows hold, if any."""
        return _numbers_in(self.texts_among(rows).str.extract(r"(\d+)\s*$").fill_null(""))

    def ranks_among(self, rows: np.ndarray) -> np.ndarray:
        """(rows,) the place of what some rows hold among all values, by number or else by text."""
        column = self._table.column(self.title)
        numbers = self._cells.str.strip_chars(BLANKS).cast(pl.Float64, strict=False).fill_null(0)
        ranks = np.empty(len(numbers), dtype=np.int32)
        ranks[np.argsort(numbers.to_numpy(), kind="stable")] = np.arange(len(numbers))
        return ranks[column.codes[rows]]

    def birthdays_among(self, rows: np.ndarray) -> tuple[People, np.ndarray]:
        """Some rows by the year of birth that they hold, and (rows,) what they say of the day."""
        codes = self._table.column(self.title).codes[rows]
        year = encode_text(self._cells.str.extract(r"(\d{4})", 1).fill_null(""))
        day = encode_text(self._cells.str.replace(r"\d{4}", ""))
        years = People(year.codes[codes], np.ones(len(codes), dtype=bool), len(year.texts))
        return years, day.codes[codes].astype(np.int64)

    @cached_property
    def _cells(self) -> pl.Series:
        """The texts of an encoded column by their codes."""
        return self._table.column(self.title).texts

    @cached_property
    def _numbers(self) -> np.ndarray:
        return _numbers_in(self._cells)

    def texts_among(self, rows: np.ndarray | slice) -> pl.Series:
        """What some rows hold."""
        if self.title in self._table.coded:
            return self._cells.gather(self._table.column(self.title).codes[rows])
        return as_text(self._table.frame[self.title][rows])

    def may_be_of_people(self) -> bool:
        """Whether nearly all values have several records under a title that says of nothing else,
        and are running numbers, numbers with gaps or codes, as measures are not. Words and what may
        be a measure have few records each.
        """
        name, (written, token) = self.name, self.look
        if name.kind == "group" and name.ends("smallest"):
            return self.may_number and self.has_values(MANY) and self.repeats(FEWEST)
        if name.kind not in ("", "number") or name.has("measure", "body") or self.counts_only:
            return False
        if written == "text" and not self.is_grouped:
            is_code = token not in FULL_NAMES and not self.is_of_phrases
            is_of_one_form = token or (self.length and not self.lacks_digits)
            return is_code and self._nearly_all_repeat(inf if is_of_one_form else MOST_OF_ONE)
        is_of_any = self.runs_over_people(inf)
        return is_of_any and (self._nearly_all_repeat(MOST_OF_ONE) or not self._is_measured())

    def _is_measured(self) -> bool:
        """Whether neighbouring numbers have about as many records, as those of a measure have."""
        rows = np.flatnonzero(self.people.is_value)
        numbers = self.numbers_among(rows[:: len(rows) // MANY_ROWS + 1])
        counted = pl.Series("number", numbers).value_counts().sort("number")
        counts = counted["count"].to_numpy().astype(np.int64)
        return bool(np.mean(np.diff(counts) ** 2) < np.var(counts))  # by chance, twice as much

    def runs_over_people(self, most: float = MOST_OF_RUNNING) -> bool:
        """Whether it is a running number from 1 or 101 on, or leaves out some, and nearly all who
        have one have a few records, up to this number.
        """
        if self.name.kind not in ("", "number") or not self._are_of_few(most):
            return False
        numbers = self.numbers_among(self.people.first)
        least, greatest = np.nanmin(numbers), np.nanmax(numbers)
        is_running = least % 100 == 1 and NEARLY_ALL * (greatest - least) < len(numbers)
        return bool(is_running or self.leaves_out(most))

    def _are_of_few(self, most: float = MOST_OF_RUNNING) -> bool:
        """Whether it holds whole numbers that nearly all have a few records, as people do."""
        is_whole = self.may_number and self.look.kind == "int"
        is_number = is_whole or self.is_grouped
        return is_number and not self.name.has("amount") and self._nearly_all_repeat(most)

    def _nearly_all_repeat(self, most: float) -> bool:
        """Whether nearly all of its many values have several records, up to this number."""
        if self.seen <= MANY:
            return False
        # how often some rows hold a value that they hold at all, if this many records do
        low, high = (n * self.share / (1 - (1 - self.share) ** n) for n in (2, most))
        if not low <= 1 + self.again / self.seen <= high:
            return False
        counts = self.people.counts()
        return bool(np.mean((counts > 1) & (counts <= most)) >= MOSTLY)

    def leaves_out(self, most: float = MOST_OF_RUNNING) -> bool:
        """Whether its numbers repeat as those of people do and leave out far more between them than
        a measure that repeats as often would; what is mostly round is a price.
        """
        if self.counts_only or not self._are_of_few(most):
            return False
        numbers = self.numbers_among(self.people.first) * (1000 if self.is_grouped else 1)
        numbers = np.sort(numbers[np.abs(numbers) < MOST_EXACT].round().astype(np.int64))
        if len(numbers) <= MANY:
            return False
        steps = np.diff(numbers)[len(numbers) // 10 : -len(numbers) // 10]
        by_chance = max(2 * np.exp(-np.median(self.people.counts())), 1 - NEARLY_ALL)
        left_out = np.mean(steps > np.gcd.reduce(steps))
        return bool(left_out > by_chance and np.mean(numbers % 5 == 0) < ROUND)

    def may_show_who(self) -> bool:
        """Whether its values repeat as those of people do and look like codes, not like a measure:
        single words, or numbers of one length.
        """
        written, token = self.look
        is_known = self.name.kind in NEVER and token not in ("phone", "mail")
        is_known = is_known or self.name.has("amount", "measure") or self.counts_only
        # numbers of two digits are ages and measures, too
        is_number = self.length >= LEAST_ZEROS or (self.length and self.leaves_out())
        is_code = written == "text" or token or is_number
        is_name = token == "fullname" and self.may_be_names
        is_code = is_code and (is_name or token in UNMISTAKABLE or not self.is_of_phrases)
        if is_known or written in NO_NUMBERS or not is_code:
            return False
        return self.seen >= MANY and MANY <= self.again < MOST_TO_A_NUMBER * self.seen


def _numbers_in(texts: pl.Series) -> np.ndarray:
    """(n,) float64, not a number where a text is none."""
    plain = texts.str.strip_chars(BLANKS).str.replace(",", ".")
    return plain.cast(pl.Float64, strict=False).fill_null(np.nan).to_numpy()


def is_value(texts: pl.Series) -> np.ndarray:
    """(n,) bool, which of these texts stand for a value, but for blanks around them."""
    return (~texts.str.contains(_NO_VALUE)).to_numpy()
