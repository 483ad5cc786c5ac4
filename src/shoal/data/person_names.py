"""Names of people, such as the numbers of patients, and sensitive values, as they are compared."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial, reduce
from itertools import accumulate, chain, combinations, islice, product
from operator import add
from typing import Literal, NamedTuple

import numpy as np
import polars as pl

from shoal.data.language import inflected
from shoal.data.room import IN_MEMORY, Room, blocks
from shoal.data.table import FEW, Column, as_text, encode_text, places_in
from shoal.data.warnings import EMPTY_ROWS, ROWS_APART, WRITTEN_ALIKE, ReleaseWarning
from shoal.errors import InputError

UNSEEN = (
    "[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u202a-\u202e\u2060-\u206f\u2800\u3164\ufdd0-\ufdef\ufe00-\ufe0f\ufeff\uffa0"
    "\ufff0-\ufffb\U00013430-\U0001343f\U00016fe4\U0001bca0-\U0001bca3\U0001d159"
    "\U0001d173-\U0001d17a\U000e0000-\U000effff"
    + "".join(
        f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
    )
    + "]"
)
"""Signs that nobody sees: marks of direction and of notation, spaces of no width, fillers, tags,
controls, and what is no character.
"""

BLANKS = (
    "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007"
    "\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)
"""What Python takes for blanks; Polars knows fewer, and both must find the same people."""

SHORT = 500  # signs of a text in which Python sorts marks in a blink

_UNSEEN = re.compile(UNSEEN)
_LENGTH = re.compile(r"(\d{1,9}):")
_PLAIN = "^([!-~]+( [!-~]+)*)?$"
"""Texts of which nothing but capitals is compared otherwise than it is written."""
_GROUPED = r"^(\+\d+|\+?\d{1,3}([,'\u2019 ]\d{3})+)(\.0+)?$"
"""Numbers with a plus or with marks of thousands."""
_UNLIKE_ITS_NAME = "[^ -~]|^ | $"
"""Texts that may be written otherwise than the person is named."""

OFTEN_NOBODY = (
    *("?", "-", "--", ".", "na", "n/a", "#n/a", "null", "#null!", "nil", "none", "nan", "nat"),
    *("missing", "unknown", "unbekannt", "k.a.", "inconnu", "desconocido", "sconosciuto"),
    *("\\n", "<na>", "#nv", "#n/v", "n.a.", "(blank)", "(leer)", "[null]"),
)


def person_name(cell: str) -> str:
    """A person's name as it is compared: in Unicode's compatibility form, without signs that nobody
    sees and without blanks around it.

    Two ways to write the same signs make nobody another person.
    """
    if not (cell.isascii() and cell.isprintable()):
        if "Cn" in map(unicodedata.category, cell):  # may be a sign that only Polars knows
            return str(names_of(pl.Series([cell]))[0])
        cell = normal_form("NFKC", _UNSEEN.sub("", cell))
    return cell.strip(BLANKS)


def normal_form(form: Literal["NFKC", "NFKD"], text: str) -> str:
    """A text in one of Unicode's forms, in time that grows with its length: Python alone sorts a
    run of marks above one letter in time that grows with its square.
    """
    if len(text) <= SHORT:
        return unicodedata.normalize(form, text)
    return str(pl.Series([text]).str.normalize(form)[0])


def same_value(cell: str) -> str:
    """A value as promises compare it: a person's name, whatever its case and runs of blanks."""
    folded = person_name(cell).casefold()
    folded = folded.replace("i\u0307", "i").replace("\u0131", "i")  # capitals of Turkish
    return " ".join((folded if folded.isascii() else person_name(folded)).split())


def same_values(cells: Sequence[str]) -> list[str]:
    """Each cell's `same_value`."""
    if len(cells) <= FEW:
        return [*map(same_value, cells)]
    found: list[str] = same_texts(pl.Series(cells, dtype=pl.String)).to_list()
    return found


def same_texts(texts: pl.Series) -> pl.Series:
    """Each text's `same_value`; plain ones are taken all at once."""
    odd = (~texts.str.contains(_PLAIN)).arg_true()
    found = texts.str.to_lowercase()
    if not len(odd):
        return found
    return found.scatter(odd, [*map(same_value, texts.gather(odd).to_list())])


def alike_values(texts: pl.Series, is_person: bool, missing_values: list[str]) -> tuple[int, int]:
    """How many of these distinct values look like another one, and how many texts these are."""
    shown = texts.filter(~texts.is_in(missing_values)) if missing_values else texts
    if is_person:  # what names one person in any case
        shown = unsigned(bare(names_of(_perhaps_alike(shown)).unique()))
    sizes = same_texts(shown).unique_counts()
    alike = sizes.filter(sizes > 1)
    return int(alike.sum()), len(alike)


def _perhaps_alike(names: pl.Series) -> pl.Series:
    """Those of many names that may differ from another one in spelling alone."""
    hashes = np.empty(len(names), dtype=np.uint64)
    for rows in blocks(len(names)):  # so that no normalized copy of all names is held
        hashes[rows] = letters_of(names[rows]).hash().to_numpy()
    ascending = np.sort(hashes)
    repeated = ascending[1:][ascending[1:] == ascending[:-1]]
    return names.filter(pl.Series(np.isin(hashes, repeated)))


def letters_of(names: pl.Series) -> pl.Series:
    """The letters and digits of names, the same for all that differ in spelling alone."""
    texts = same_texts(bare(names_of(names)))
    return texts.str.normalize("NFKD").str.replace_all(r"[\W_\pM]+", "")


_COUNTED = {
    "subject": "and each of them counts as a person",
    "household": "and each of them counts as a household",
}


def spelled_apart(
    texts: pl.Series, role: str, missing_values: list[str], is_listed: bool = False
) -> list[ReleaseWarning]:
    """A warning where a column's distinct values differ in their spelling alone; counts alone.

    is_listed: whether a hierarchy lists each of them.
    """
    what = _COUNTED.get(role)
    values, alike = alike_values(texts, what is not None, missing_values)
    if not values:
        return []
    signs = "zeros in front, '.0', marks of thousands, other signs, inner blanks"
    signs = signs if what else "blanks"
    what = what or "but records with them are taken to differ"
    if role == "sensitive":
        what = "but its hierarchy lists each" if is_listed else "and l counts them so"
    text = (
        f"attribute '{texts.name}': {values} of its values are only {alike} if capitals, {signs}"
        f" and invisible characters are left out of account, {what}; if they mean the"
        " same, write them alike in the data, then publish"
    )
    return [ReleaseWarning(WRITTEN_ALIKE, text, texts.name)]


def unlisted_values(column: Column, is_person: bool, missing_values: list[str]) -> int:
    """How many records hold a number that stands for no value, with blanks or as a decimal, or name
    a person by a text that often stands for none.
    """
    numbers = [text for text in missing_values if text.removeprefix("-").isdecimal()]
    if not (numbers or is_person):
        return 0
    cells = column.texts
    whole = cells.str.strip_chars().str.replace(r"[.,]0+$", "")
    stands_for_none = whole.is_in(numbers)
    if is_person:
        often = {*OFTEN_NOBODY, *map(str.lower, missing_values)}
        stands_for_none |= names_of(cells).str.to_lowercase().is_in(often)
    stands_for_none &= ~cells.is_in(missing_values)
    return int(column.counts()[stands_for_none.to_numpy()].sum())


def values_for_none(column: Column, missing_values: list[str]) -> int:
    """As how many values texts count of which each often stands for none; 0 where a policy lists
    all that there are. Those that it lists are one.
    """
    used = column.used
    listed = used.is_in(missing_values)
    values = same_texts(used.filter(~listed))
    often = values.filter(values.is_in(OFTEN_NOBODY)).n_unique()
    return often + bool(often and listed.any())


def values_of(column: Column) -> np.ndarray:
    """(cells,) int64, which value each text is, numbered by first occurrence."""
    values = same_texts(column.texts)
    return places_in(values.unique(maintain_order=True), values)


def as_compared(cells: pl.Series) -> pl.Series:
    """The values of a column as promises compare them."""
    column = encode_text(cells)
    return same_texts(column.texts).gather(column.codes).alias(cells.name)


def names_of(column: pl.Series) -> pl.Series:
    """The people that a column names."""
    texts = as_text(column)
    rows = texts.str.contains(_UNLIKE_ITS_NAME).arg_true()
    if not len(rows):
        return texts
    seen = texts.gather(rows).str.replace_all(UNSEEN, "")
    return texts.clone().scatter(rows, seen.str.normalize("NFKC").str.strip_chars(BLANKS))


def names_of_nobody(missing_values: Iterable[str]) -> list[str]:
    """The names that stand for no person: texts for no value, as names are compared."""
    return sorted({"", *map(person_name, missing_values)})


def is_nobody(column: pl.Series, missing_values: Iterable[str]) -> np.ndarray:
    """(n,) bool, whether a cell names no person."""
    nobody = names_of_nobody(missing_values)
    if len(column) <= FEW:
        return np.array([person_name(cell) in nobody for cell in as_text(column).to_list()], bool)
    return names_of(column).is_in(nobody).to_numpy()


def people_of(column: Column) -> np.ndarray:
    """(n,) the person of each record of a column that names them."""
    number: dict[str, int] = {}
    numbers = [number.setdefault(person_name(cell), len(number)) for cell in column.cells]
    if len(number) == len(column.cells):
        return column.codes
    return np.array(numbers, dtype=np.int32)[column.codes]


def named_together(
    name: str, columns: Sequence[Column], missing_values: Iterable[str], room: Room = IN_MEMORY
) -> Column:
    """The column of the people whom several columns name together: one text for the same names in
    all of them, another for any others; no text where a name is missing.

    They are `joined`, so that the text can be read in one way only.
    """
    parts, absent = [], names_of_nobody(missing_values)
    for column in columns:
        names = [person_name(cell) for cell in column.cells]
        texts = ["" if part in absent else joined([part]) for part in names]
        parts.append((column.codes, texts))
    codes, people = reduce(partial(_paired, room), parts)
    return Column(name, codes, pl.Series(name, people, pl.String))


def joined(parts: Iterable[str]) -> str:
    """Each name behind its length."""
    return "".join(f"{len(part)}:{part}" for part in parts)


def parted(name: str) -> list[str]:
    """The names that are `joined` in a text; nothing where it is none of that form."""
    parts, rest = [], name
    while (found := _LENGTH.match(rest)) and len(rest) >= (end := found.end() + int(found[1])):
        parts.append(rest[found.end() : end])
        rest = rest[end:]
    return [] if rest else parts


def _paired(
    room: Room, one: tuple[np.ndarray, list[str]], other: tuple[np.ndarray, list[str]]
) -> tuple[np.ndarray, list[str]]:
    """Codes into the sorted texts of both; no text where either has none."""
    (first, heads), (second, tails) = one, other
    pairs = np.zeros(0, dtype=np.int64)
    for rows in blocks(len(first)):
        pairs = np.union1d(pairs, first[rows].astype(np.int64) * len(tails) + second[rows])
    parts = [divmod(pair, len(tails)) for pair in pairs.tolist()]
    joined = [heads[i] and tails[j] and heads[i] + tails[j] for i, j in parts]
    texts = sorted(set(joined))
    place = {text: code for code, text in enumerate(texts)}
    code_of_pair = np.array([place[text] for text in joined], np.min_scalar_type(len(texts)))
    codes = room.array(len(first), code_of_pair.dtype)
    for rows in blocks(len(first)):
        pair = first[rows].astype(np.int64) * len(tails) + second[rows]
        codes[rows] = code_of_pair[np.searchsorted(pairs, pair)]
    return codes, texts


# Ids of people that differ in their spelling alone: people would be taken for others.


WIDEST = 12
"""Digits of a number with zeros in front that is looked for where names are hidden."""


def refuse_spelling(first: str, second: str, taken: int) -> None:
    """Raises InputError where people would be taken for others."""
    if taken:
        raise InputError(
            f"{second}: {taken} of its people are those of {first}, but for capitals, zeros in"
            " front, '.0' or marks of thousands in their ids, and would be taken for others; write"
            " the ids of all releases alike"
        )


def taken_for_others(names: pl.Series, known: pl.Series) -> int:
    """How many are known under another spelling alone; both distinct.

    Two that stand among these names side by side are two people.
    """
    strange = bare_names(names.filter(~names.is_in(known.implode())))
    absent = bare_names(known.filter(~known.is_in(names.implode())))
    return int(strange.is_in(absent.implode()).sum())


def are_spelled_otherwise(
    names: pl.Series, are_known: Callable[[pl.Series], np.ndarray]
) -> np.ndarray:
    """(n,) bool, which of these strangers somebody is who is known by a hash of the exact name.

    Finds the usual spellings alone: ledgers of earlier versions keep no bare names. are_known: (n,)
    bool, whether somebody of exactly each name is known and none of `names`.
    """
    taken = np.zeros(len(names), dtype=bool)
    for spelled in _spellings(names):
        rows = np.flatnonzero(~taken)
        taken[rows] = are_known(spelled.gather(rows))
    return taken


def bare_names(names: pl.Series) -> pl.Series:
    """Names without capitals, zeros in front and `.0`; of several columns, of each."""
    rows = names.str.contains(f"^{_LENGTH.pattern}").arg_true()
    parts = [_columns_in(name) for name in names.gather(rows).to_list()]
    found = iter(bare(pl.Series([*chain.from_iterable(parts)], dtype=pl.String)))
    each = [[*islice(found, len(part))] for part in parts]
    return bare(names).scatter(rows, [joined(part) if part[1:] else part[0] for part in each])


def _columns_in(name: str) -> list[str]:
    """The names that are `joined` in it where they are several; else the name itself."""
    parts = parted(name)
    return parts if len(parts) > 1 else [name]


_BARE = (
    pl.col("name")
    .str.to_lowercase()
    .str.replace(r"(\d)\.0+$", "${1}")
    .str.strip_chars_start("0")
    .replace("", "0")
)


def bare(names: pl.Series) -> pl.Series:
    """Names of one column without capitals, zeros in front, `.0`, a plus and marks of thousands, in
    the digits 0 to 9.
    """
    odd = names.filter(names.str.contains("[^ -~]"))
    if len(odd):  # 'ß' has two capitals, and Turkish has two kinds of 'i'
        plain = {"I\u0307": "I", "\u0130": "I", "\u1e9e": "SS"}
        digits = odd.str.extract_all(r"[\p{Nd}--[0-9]]").explode().drop_nulls().unique()
        plain |= {digit: str(unicodedata.decimal(digit)) for digit in digits}
        names = names.str.to_uppercase().str.replace_many(plain)
    rows = names.str.contains(_GROUPED).arg_true()
    if len(rows):
        names = names.clone().scatter(rows, names.gather(rows).str.replace_all(r"[+,'\u2019 ]", ""))
    return names.alias("name").to_frame().select(_BARE).to_series()


def unsigned(names: pl.Series) -> pl.Series:
    """Names without signs and blanks where one with fewer of them, or others in their places, is
    among these: `123-45` beside `12345` or `123 45`, but not `12-345`, as a centre's second person.
    """
    rows = names.str.replace_all(r"[\W_]+", "").is_duplicated().arg_true()
    texts = names.gather(rows).to_list()
    parts = [re.split(r"[\W_]+", text) for text in texts]
    wholes = ["".join(part) for part in parts]
    cuts = [(*accumulate(map(len, part[:-1])),) for part in parts]
    fewest: dict[str, tuple[int, ...]] = {}
    for whole, cut in sorted(zip(wholes, cuts, strict=True), key=lambda one: (len(one[1]), one)):
        fewest.setdefault(whole, cut)
    found = [
        whole if whole and {*cut} >= {*fewest[whole]} else text
        for text, whole, cut in zip(texts, wholes, cuts, strict=True)
    ]
    return names.clone().scatter(rows, found)


def _columns_of(names: pl.Series) -> list[pl.Series]:
    """The columns whose names are `joined` in each of these; the names themselves where none is."""
    if names.str.contains(f"^{_LENGTH.pattern}").all():
        rows = [parted(name) for name in names.to_list()]
        if len({len(row) for row in rows}) == 1:
            return [pl.Series(part, dtype=pl.String) for part in zip(*rows, strict=True)] or [names]
    return [names]


def _joined_columns(columns: Sequence[pl.Series]) -> pl.Series:
    """Each record's names as they are `joined`; a column by itself as it is."""
    if len(columns) == 1:
        return columns[0]
    sized = [column.str.len_chars().cast(pl.String) + ":" + column for column in columns]
    return reduce(add, sized)


def _spellings(names: pl.Series) -> Iterator[pl.Series]:
    """Ways to write all ids; of several columns, one for all of them, and any for each two."""
    columns = _columns_of(names)
    ways = [[column, *_spellings_of_one(column)] for column in columns]
    yield from map(_joined_columns, zip(*ways, strict=True))
    different = [list({tuple(way): way for way in of_one}.values()) for of_one in ways]
    for pair in combinations(range(len(columns)), 2):
        places = enumerate(columns)
        some = [different[place] if place in pair else [column] for place, column in places]
        yield from map(_joined_columns, product(*some))


def _spellings_of_one(names: pl.Series) -> Iterator[pl.Series]:
    lower = bare(names)
    upper = lower.str.to_uppercase()
    yield from (lower, upper, upper.str.head(1) + lower.str.slice(1), lower + ".0")
    yield from (names.str.to_lowercase(), names.str.to_uppercase())
    is_number = lower.str.contains(r"^\d+$")
    for width in range(2, WIDEST + 1):
        yield lower.str.zfill(width).zip_with(is_number, names)


# Rows without any value.


def rows_of_nobody(frame: pl.DataFrame, missing_values: Sequence[str]) -> np.ndarray:
    """The places, ascending, of rows that have no value in any column."""
    empty = np.arange(frame.height)
    for name in frame.columns:
        cells = frame[name] if len(empty) == frame.height else frame[name].gather(empty)
        empty = empty[is_nobody(cells, missing_values)]
        if not len(empty):
            break
    return empty


class Described(NamedTuple):
    """A column, and which of its cells stand for no value, listed or not; (cells,) bool."""

    column: Column
    is_none: np.ndarray

    @classmethod
    def of(cls, column: Column, missing_values: Iterable[str]) -> "Described":
        signs = {*OFTEN_NOBODY, *map(str.lower, names_of_nobody(missing_values))}
        names = names_of(column.texts).str.to_lowercase()
        return cls(column, names.is_in([*signs]).to_numpy())


def values_lacking(columns: Sequence[Described]) -> np.ndarray:
    """(n,) in how many of these columns each row has no value."""
    records = len(columns[0].column.codes) if columns else 0
    found = np.zeros(records, dtype=np.min_scalar_type(len(columns)))
    for one in columns:
        for rows in blocks(records) if one.is_none.any() else ():
            found[rows] += one.is_none[one.column.codes[rows]]
    return found


def without_nobody(
    frame: pl.DataFrame, missing_values: Sequence[str] = (), silent: Sequence[str] = ()
) -> tuple[pl.DataFrame, tuple[ReleaseWarning, ...]]:
    """The rows that have a value in some column: others are nobody, as a spreadsheet saves rows
    whose cells were cleared. silent: columns that don't count, such as a counter of rows.
    """
    empty = rows_of_nobody(frame.drop(silent), missing_values)
    if not len(empty):
        return frame, ()
    kept = np.ones(frame.height, dtype=bool)
    kept[empty] = False
    below = int(kept[empty[0] :].sum())
    return frame.filter(pl.Series(kept)), nobody(len(empty), below, bool(silent))


MOST_NOTES = 100
"""Rows below an empty one that may be totals and notes; of more, it only parts the table."""


def nobody(empty: int, below: int, has_silent: bool = False) -> tuple[ReleaseWarning, ...]:
    """What there is to say of rows without any value, and of rows below one. has_silent: whether
    some columns don't count.
    """
    said = []
    if empty:
        but = ", removed columns aside," if has_silent else ""
        why = "nothing would be published of [it|them]" if has_silent else "such rows are nobody"
        text = (
            f"{{}} [row has|rows have] no value{but} and [is|are] left out: {why}, and messages and"
            " traces number the rows below without them"
        )
        said.append(ReleaseWarning(EMPTY_ROWS, inflected(text, empty)))
    if 0 < below <= MOST_NOTES:
        text = (
            "{} [row stands|rows stand] below a row without any value, as totals and notes do, and"
            " [is|are] taken for data about people; take out of the data what is none, then publish"
        )
        said.append(ReleaseWarning(ROWS_APART, inflected(text, below)))
    return tuple(said)
