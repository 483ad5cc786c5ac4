"""Rows that count as people and may be nobody: totals, notes, and spare rows of a form.

Rows without any value are left out as the table is read. In these, something stands that describes
nobody: a usual sign for no value, a person's name alone, or what all such rows repeat.
"""

import re
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from typing import NamedTuple

import numpy as np
import polars as pl

from shoal.data.column_words import NAMES, fold, forms_of, meanings, name_of
from shoal.data.language import inflected
from shoal.data.numbers import Parts, computed_of_those_above, parse_numbers
from shoal.data.person.people import (
    ANY_TEST,
    MOST_WORDS,
    Telling,
    by_names,
    is_test,
    mixed,
    shared_by_several,
)
from shoal.data.person_names import MOST_NOTES, OFTEN_NOBODY, Described, people_of, values_lacking
from shoal.data.schema import REMOVED
from shoal.data.table import Column, Table, Texts, encode_text
from shoal.data.warnings import ROWS_APART, ReleaseWarning
from shoal.policy.model import PolicyModel
from shoal.policy.proposal.cells import ColumnCells

_TOTAL, _STATISTIC, _ALL, _PERSON = (
    rf"(?i)(^|[\W_])({'|'.join(sorted(meanings()[one]))})([\W_]|$)"
    for one in ("total", "statistic", "all", "person")
)
_COUNT_BEHIND = re.compile(r"(?<!\s)\s*[:(=](\s*n\s*=)?[\s\d.,]*\)?$", re.IGNORECASE)
_IS_WORD = re.compile(r"[^\W\d_]{2}").search
_INITIALS = re.compile(r"\W*[A-Za-z]\W*[A-Za-z]\W*")
_NO_NAME = f"{_TOTAL}|{_PERSON}|{ANY_TEST}"
_FOR_LIFE = (*NAMES, "sex", "birth")
_OF_A_PERSON = (*_FOR_LIFE, "age")
NEARLY_ALL = 0.9
_ZERO = r"^0([.,]0*)?$"
_NUMBER = re.compile(r"[-+]?[\d.,' ]*\d([eE][-+]?\d+)?\s?%?")
MOST_LAST, MOST_COMPUTED = 20, 10
"""Rows at the end of a table among which statistics stand, and that may be computed of others."""
MOST_HEADS, MANY_BELOW, MOST_BELOW = 3, 20, 1_000
"""First rows that may say in other words what columns are, and rows that are compared."""
TAKE_OUT = "take out of the data what is nobody, then publish"
_APART = "{} [row looks|rows look] like {} and [counts as a person|count as people]; "
_TEST = "[a record|records] of a test, of nobody or of several people under one name"
_VACANT = "[a vacant post|vacant posts] without a name, sex, birth or age"
_SPARE = (
    "{} [person has|people have] no value in any column that a release shows, but what such rows"
    f" repeat, as subtotals and spare rows of a form do, and [counts|count] towards k; {TAKE_OUT}"
)
_NOTE = r"\p{L}.*[ :=]"
MOST_TESTS = 0.1
"""The share of texts that are called tests among ordinary ones."""
FEWEST_LACKING, MOST_PARTS = 2, 10_000
"""Values that a row lacks that may be a sum or a mean of others, and such rows."""
CHANCE = 0.01
"""The chance that all these people give one answer, below which a form was filled in beforehand."""


def spare_rows(table: Table, model: PolicyModel) -> list[ReleaseWarning]:
    """A warning where rows are totals, notes, a second line of names or vacant posts, and one where
    people have no value that a release shows, but what all of them repeat and others seldom hold.
    """
    if not table.records or not {*model.audited_columns} <= {*table.names}:
        return []
    described = cache(lambda name: Described.of(table.column(name), model.no_names))
    apart, tests = _rows_apart(table, model, described)
    said = [*_said_of(len(apart), "a total, a note or a second line of names")]
    for name, count in tests.items():
        said += _said_of(count, _TEST, name)
    titles = sorted(table.names, key=lambda title: title not in table.coded)
    vacant = np.setdiff1d(_vacant(titles, partial(Texts.of, table), model, described), apart)
    if len(vacant):
        said += _said_of(_people_only_in(vacant, table, model), _VACANT)
    known = [*map(described, model.quasi)]
    if not any(one.is_none.any() for one in known):
        return said
    known = [one for one in known if _tells_apart(one.column)]
    rows = np.flatnonzero(values_lacking(known) > len(known) // 2)
    if not len(rows):
        return said
    roles = {name: one.role for name, one in model.attributes.items()}
    more = [n for n in table.names if roles.get(n, model.other) in ("sensitive", "plain")]
    columns = known + [one for one in map(described, more) if _tells_apart(one.column)]
    rows = rows[values_lacking(columns)[rows] > len(columns) // 2]
    alike = np.setdiff1d(_alike(rows, columns), np.union1d(apart, vacant))
    if people := _people_only_in(alike, table, model):
        said.append(ReleaseWarning(ROWS_APART, inflected(_SPARE, people)))
    return said


def _said_of(rows: int, call: str, name: str | None = None) -> Iterator[ReleaseWarning]:
    """A warning where some rows do not look like a person, in a column or in several."""
    if rows:
        where = "" if name is None else f"attribute '{name}': "
        text = where + inflected(_APART.format("{}", call), rows) + TAKE_OUT
        yield ReleaseWarning(ROWS_APART, text, name)


def _tests(column: Texts, model: PolicyModel) -> tuple[list[int], list[int]]:
    """The codes of what a column calls tests, vacancies, guests and the like, if it calls few so;
    of people, also a word among numbers, if more rows hold it than usual ones. And those of them
    that may be surnames: vacancies and guests.
    """
    texts = column.texts
    some = column.without_marks.str.contains(ANY_TEST).arg_true().to_list()
    is_few, most = len(some) <= MOST_NOTES and not is_test(column.title), MOST_TESTS * len(texts)
    called = [one for one in some if is_few and is_test(texts[one])]
    called = called if len(called) <= most else []
    initials = [one for one in called if _INITIALS.fullmatch(texts[one])]
    if initials and texts.str.contains(f"^{_INITIALS.pattern}$").sum() > most:  # as others have
        called = [one for one in called if one not in initials]
    guests = [one for one in called if re.sub(r"\W", "", fold(texts[one])) in meanings()["nobody"]]
    is_person = column.title in model.subject_columns
    if not (is_person or name_of(column.title).is_mere_id):
        return called, guests
    small = texts.str.to_lowercase()
    named = texts.str.contains(r"^\P{Nd}*\p{L}") & ~small.is_in(OFTEN_NOBODY)
    if is_person:
        is_word = named & ~small.is_in([*map(str.lower, model.no_names)])
        words = (is_word & ~texts.str.contains(r"\p{Nd}")).arg_true().to_list()
        rows = np.bincount(column.codes, minlength=len(texts))
        often = [one for one in words if rows[one] >= 2 * rows.mean()]
        called += often if len(words) <= min(MOST_WORDS, most) else []
    if 0 < named.sum() <= min(MOST_WORDS, most):
        is_usual = texts.str.contains(r"^\d+$").sum() >= NEARLY_ALL * len(texts)
        called += named.arg_true().to_list() if is_usual else []
    return called, guests


def _shared(column: Texts, told: Telling, model: PolicyModel) -> list[int]:
    """The codes of what stands for several people in a column of them; words only where it alone
    names people, and others recur: else they may be namesakes.
    """
    found = shared_by_several(column.codes, told).tolist()
    recur = found and np.count_nonzero(np.bincount(column.codes) > 1) > len(found)
    may_be_words = recur and len(model.subject_columns) == 1
    signs = {*OFTEN_NOBODY, *map(str.lower, model.no_names)}
    named = [code for code in found if column.texts[code].lower() not in signs]
    return [code for code in named if may_be_words or re.search(r"\d", column.texts[code])]


def _rows_apart(
    table: Table, model: PolicyModel, described: Callable[[str], Described]
) -> tuple[np.ndarray, Mapping[str, int]]:
    """The rows, ascending, of totals and notes, and those that repeat the names of columns; and by
    column, how many it calls tests.
    """
    named, by_name, together = by_names(table, _NO_NAME)
    no_names = model.no_names
    audited = [*map(described, model.audited_columns)]
    half, lacking = (len(audited) + 1) // 2, values_lacking(audited)
    lacking_rows = [np.flatnonzero(lacking >= least) for least in (1, half, 1)]
    empty = np.flatnonzero(lacking >= len(audited) - 1) if lacking.any() else np.arange(0)
    empty = empty if len(empty) <= MOST_NOTES else empty[:0]
    bare = np.flatnonzero(lacking > len(audited) // 2)
    if len(bare) > MOST_HEADS or (bare[:1] != table.records - len(bare)).any():
        bare = bare[:0]  # not the last few of all
    # the columns that name rows: those of people, and others that a release does not show
    of_role = (name for name, one in model.attributes.items() if one.role in REMOVED)
    removed = {*model.subject_columns, *of_role}
    telling = [t for t in table.names if t in model.quasi or name_of(t).kind in _OF_A_PERSON]

    def told(rows: np.ndarray, beside: str) -> Iterator[tuple[np.ndarray, bool]]:
        for title in (one for one in telling if one != beside):
            is_for_life = name_of(title).kind in _FOR_LIFE
            if title in table.coded:
                yield table.column(title).codes[rows], is_for_life
            else:
                yield encode_text(table.series(title).gather(rows)).codes, is_for_life

    tests: dict[str, int] = {}
    some = np.flatnonzero(lacking >= min(half, FEWEST_LACKING))
    some = some if len(some) <= MOST_PARTS else lacking_rows[1]
    lacking_of = mixed(*(one.is_none[one.column.codes[some]] for one in audited))
    parts = Parts.of(some, lacking_of, table.records)
    sums = np.zeros(len(some), dtype=np.int64)
    names, nil, odd_nil = (np.zeros(table.records, dtype=np.int32) for _ in range(3))
    # the sum of 1 for each note and 2 for each other value; the greatest of 1 for 0, 2 for others
    noted, zeros = (np.zeros(len(rows), dtype=np.int64) for rows in (empty, bare))
    found, last, heads, below = [empty[:0]], [], [], list[_Below]()
    for column in (Texts.of(table, title) for title in table.names):
        is_removed = column.title in removed
        if (is_name := column.texts == column.title.strip()).any():
            names += column.rows_called(is_name)
        is_nil = column.texts.str.contains(_ZERO)
        if is_nil.any() and not is_removed:
            are_nil = column.rows_called(is_nil)
            nil += are_nil
            # zeros among words
            is_odd = column.texts.str.contains(f"^(?:{_NUMBER.pattern})$").sum() == is_nil.sum()
            odd_nil += are_nil if is_odd and are_nil.sum() <= MOST_HEADS else 0
        found += (rows[~named[rows]] for rows in _totals(column, lacking_rows, is_removed))
        heads.append(_head_cells(column, no_names))
        if is_removed:
            called, guests = (np.isin(column.codes, codes) for codes in _tests(column, model))
            if column.title == by_name:
                called |= together
            if column.title in model.subject_columns:
                several = _shared(column, partial(told, beside=column.title), model)
                called |= np.isin(column.codes, several)
            tests[column.title] = int((called & ~(named & guests)).sum())
        elif len(sums):
            sums += parts.computed_in(column.texts, column.codes)
        ends = column.texts.gather(column.codes[: -MOST_LAST - 1 : -1]).to_list()
        ends = ["" if text in no_names else text for text in ends]
        last.append(_last_cells(column, ends, is_removed))
        below.append(_Below.of(column, ends[:MOST_COMPUTED]))
        if len(bare) or len(empty):
            is_value = (~column.texts.is_in(["", *no_names])).to_numpy()
            is_note = column.texts.str.contains(_NOTE) & column.texts.is_unique()
            noted += (is_value * np.where(is_note.to_numpy(), 1, 2))[column.codes[empty]]
            weights = np.where(is_nil.to_numpy(), 1, 2 * is_value)
            zeros = np.maximum(zeros, weights[column.codes[bare]])
        if len(bare):
            found.append(bare[_are_unlike(column, bare, no_names)])
    found.append(table.records - 1 - np.arange(_statistics(zip(*last, strict=True))))
    found += [table.records - 1 - _computed_rows(below), bare[zeros == 1], empty[noted == 1]]
    found.append(np.flatnonzero([*map(_is_head, zip(*heads, strict=True))]))
    found.append(np.flatnonzero((odd_nil > 1) & (nil == len({*table.names} - removed))))
    found += [np.flatnonzero(names > 1), parts.computed(sums)]
    return np.unique(np.concatenate(found)), tests


def _head_cells(column: Texts, no_names: Container[str]) -> list[str]:
    """How each of the first cells stands to those below: `alike`, `other`, `text` over numbers or
    JSON over anything, `open` over words of any kind, `most` or, of few, `high` if no number is
    greater, `lacking` if hardly another one is empty, or empty.
    """
    texts = column.texts.gather(column.codes[: MOST_HEADS + MOST_BELOW]).to_list()
    below = [one for one in texts[MOST_HEADS:] if one not in no_names]
    counts = Counter(below)
    forms = map(re.compile, (_NUMBER.pattern, r".*\d.*", r"\S+", r"\{.*"))
    fitting = (sum(counts[one] for one in counts if form.fullmatch(one)) for form in forms)
    are_numbers, have_digits, are_words, are_json = (
        number >= 0.9 * (len(below) + 1) for number in fitting
    )
    numbers = parse_numbers([*counts]) if are_numbers else np.zeros(0)

    def stands(cell: str) -> str:
        # a word that is proposed as a sign for no value may name a unit
        is_none = cell in no_names and not (_IS_WORD(cell) and texts.count(cell) == 1)
        if is_none and len(below) >= NEARLY_ALL * len(texts[MOST_HEADS:]):
            return "lacking"
        if is_none or len(below) < MANY_BELOW:
            return ""
        if are_numbers and parse_numbers([cell])[0] >= np.fmax.reduce(numbers):
            return "most" if 2 * len(counts) >= MANY_BELOW else "high"
        if cell in counts or not re.search(r"[^\W\d_]", cell):
            return "alike"
        if are_numbers or (cell.startswith("{") and not are_json):
            return "text"
        is_other = (have_digits and not re.search(r"\d", cell)) or (are_words and " " in cell)
        if is_other or 2 * len(counts) <= len(below):
            return "other"
        return "alike" if have_digits else "open"

    return [stands(cell) for cell in texts[:MOST_HEADS]]


def _is_head(cells: Sequence[str]) -> bool:
    """Whether the cells of a row are all unlike those below, and one at least is sure to be; or say
    what can be reached at most, of nobody who is named as those below are.
    """
    is_text = "text" in cells and {"most", "high"}.isdisjoint(cells)
    is_unlike = is_text and cells.count("text") + cells.count("other") > 1
    is_most = min(cells.count("most"), cells.count("lacking")) > 1
    return "alike" not in cells and (is_unlike or is_most)


def _totals(column: Texts, lacking: Sequence[np.ndarray], is_removed: bool) -> Iterator[np.ndarray]:
    """The rows that a column calls a total, alone or of another of its values, where it names
    people, the call is the only one or all such rows lack a value; and those that it calls all, if
    they lack one, or a count or a mean of another value, if they lack half of all. lacking: the
    rows that lack one, half and one.
    """
    plain, words = column.without_marks, (_TOTAL, _STATISTIC, _ALL)
    is_any = plain.str.contains("|".join(words)).any()
    for word, needed in zip(words, lacking, strict=True) if is_any else ():
        some = plain.str.contains(word).arg_true().to_list()
        values = plain.str.to_lowercase().str.replace_all(r"[\W_]+", " ") if some else plain
        for cell in some if len(some) <= MOST_NOTES else []:
            rows = np.flatnonzero(column.codes == cell)
            is_sure = word is _TOTAL and (is_removed or len(rows) == 1)
            is_sure &= len(plain[cell].strip(" .:")) > 1  # a letter may be an initial, too
            if (is_sure or np.isin(rows, needed).all()) and _is_total(plain[cell], values):
                yield rows


def _is_total(text: str, values: pl.Series) -> bool:
    """Whether a text is a word for totals, or another one of these values with such a word or with
    one for a statistic; a count may stand behind it, and a word for a group beside it.
    """
    known = meanings()
    total, beside = known["total"] | known["all"], known["beside_total"] | known["group"]
    words = re.findall(r"[^\W_]+", _COUNT_BEHIND.sub("", text).lower())
    rest = [word for word in words if word not in total | known["statistic"]]
    joined = next((i for i, word in enumerate(rest) if word not in beside), len(rest))
    is_alone = joined == len(rest) and (bool(rest) or not total.isdisjoint(words))
    named = [" ".join(rest[i:]) for i in range(joined + 1)[:10] if rest[i:]]
    return len(rest) < len(words) and (is_alone or values.is_in(named).any())


def _last_cells(column: Texts, cells: Sequence[str], is_label: bool) -> list[str]:
    """What each of the last cells of a column is: `number`, `text`, empty, or a word for a
    `statistic` that no other row holds; a `label` where the column names the rows.
    """
    known = meanings()["total"] | meanings()["statistic"]

    def what(cell: str) -> str:
        word = fold(re.sub(r"[\W_]", "", cell.replace("%", "percent")))
        if word in known and column.rows_called(column.texts == cell).sum() == 1:
            return "label" if is_label else "statistic"
        return "number" if _NUMBER.fullmatch(cell) else "text" if cell else ""

    return [*map(what, cells)]


def _statistics(rows: Iterable[Sequence[str]]) -> int:
    """How many of the last rows are called `SD`, `Min`, `N` and the like by their first text, while
    most other cells are numbers; one alone is not enough but in a column that names the rows.
    """
    calls: list[str] = []
    for row in rows:
        texts = [cell for cell in row if cell not in ("", "number")]
        if texts[:1] not in (["statistic"], ["label"]) or row.count("number") < len(texts):
            break
        calls += texts[:1]
    return len(calls) if calls[1:] or "label" in calls else 0


class _Below(NamedTuple):
    """The last cells of a column, the last one first, and what is computed of the cells above.

    is_empty, is_number: (last,) bool, whether it is empty as few are, and one of numbers. is_odd:
    (last, last) bool, by row where those below the data begin and by row, whether the cell is a sum
    of those above that is beyond all of them, or their mean or number, which none of them is.
    is_end: (last, last) bool, whether it is the least or greatest of them.
    """

    is_empty: np.ndarray
    is_number: np.ndarray
    is_odd: np.ndarray
    is_end: np.ndarray

    @classmethod
    def of(cls, column: Texts, last: Sequence[str]) -> "_Below":
        cells, filled = parse_numbers(last), int(column.rows_called(column.texts != "").sum())
        is_usual = filled >= NEARLY_ALL * len(column.codes)
        is_empty = np.array([is_usual and not text for text in last])
        none = np.zeros((len(last), len(last)), dtype=bool)
        nothing = cls(is_empty, np.zeros(len(last), dtype=bool), none, none)
        if np.isnan(cells).all():
            return nothing
        numbers = parse_numbers(column.texts)[column.codes]
        if np.isfinite(numbers).sum() < NEARLY_ALL * filled:
            return nothing
        digits = [len(one.partition(".")[2]) for one in last]
        is_odd, is_end = computed_of_those_above(cells, digits, numbers)
        return cls(is_empty, np.isfinite(cells), is_odd, is_end)


def _computed_rows(columns: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """Which of the last rows, the last one being 0, are computed of those above: most of their
    numbers are sums, means or counts, of two columns or where most other cells are empty; or all
    are the least or greatest where other cells are empty. Others count below such a row.

    columns: of each, whether its last cells are empty as few are, which are numbers, and what
    `computed_of_those_above` says of them.
    """
    empty, numbers, odd, end = (np.sum(one, axis=0) for one in zip(*columns, strict=True))
    is_bare = 2 * empty > len(columns) - 1
    is_odd = ((odd > 1) | ((odd > 0) & is_bare)) & (2 * odd > numbers)
    is_end = (end > 1) & (end == numbers)
    texts = len(columns) - numbers
    begun = np.flatnonzero(np.diagonal(is_odd | (is_end & (empty > 1) & (empty >= texts - 1))))
    first = begun[-1] if len(begun) else -1
    return np.flatnonzero((is_odd | is_end)[first, : first + 1])


def _are_unlike(column: Texts, rows: np.ndarray, no_names: Iterable[str]) -> np.ndarray:
    """(rows,) bool, which of the last rows hold a text that is not a number, in a form that no row
    above them has.
    """
    forms = forms_of(column.texts)
    cells = column.texts.gather(column.codes[rows])
    known = forms.gather(column.codes[: rows[0]]).unique().implode()
    is_unlike = ~forms.gather(column.codes[rows]).is_in(known) & ~cells.is_in(["", *no_names])
    return (is_unlike & ~cells.str.contains(f"^(?:{_NUMBER.pattern})$")).to_numpy()


def _alike(rows: np.ndarray, columns: Sequence[Described]) -> np.ndarray:
    """Those of these rows that are alike whenever the same columns are empty, though not by chance,
    or empty in all.
    """
    if not len(rows):
        return rows
    codes = [one.column.codes[rows].astype(np.int64) + 1 for one in columns]
    empty = [one.is_none[one.column.codes[rows]] for one in columns]
    held = mixed(*(np.where(none, 0, code) for none, code in zip(empty, codes, strict=True)))
    _, first, form, sizes = np.unique(
        mixed(*empty), return_index=True, return_inverse=True, return_counts=True
    )
    is_alike = np.bincount(form, held != held[first][form]) == 0
    for number in np.flatnonzero(is_alike):
        row, size = rows[first[number]], int(sizes[number])
        filled = [one for one, none in zip(columns, empty, strict=True) if not none[first[number]]]
        share = min((_share_of(one, row, size) for one in filled), default=0.0)
        repeats = size - 1 if filled else 1  # the first of them may hold any value
        is_alike[number] = share**repeats < CHANCE
    return rows[is_alike[form]]


def _vacant(
    titles: Sequence[str],
    texts_of: Callable[[str], Texts],
    model: PolicyModel,
    described: Callable[[str], Described],
) -> np.ndarray:
    """The few rows, ascending, that lack all that tells of a person, which others have, and hold
    most of what the release shows besides; where nobody is named, all lack one thing more.
    """
    kinds = {title: name_of(title) for title in titles}
    others = [title for title in titles if title not in model.audited_columns]
    titles = [t for t, one in kinds.items() if one.kind in _OF_A_PERSON and not one.is_of_other]
    own: list[Described] = []
    for column in map(texts_of, titles):
        own.append(Described.of(Column(column.title, column.codes, column.texts), model.no_names))
        if not own[-1].is_none.any():
            return np.zeros(0, dtype=np.int64)
    lacking = values_lacking(own)
    rows, most = np.flatnonzero(lacking == len(own)), (1 - NEARLY_ALL) * len(lacking)
    if len(own) < 2 or not np.count_nonzero(lacking) / 2 < len(rows) <= most:
        return rows[:0]
    more = [described(title) for title in model.audited_columns if title not in titles]
    is_named = any(kinds[title].kind in NAMES for title in titles)
    is_named = is_named or any(_lack_alone(rows, one) for one in more)
    if not is_named and not any(texts_of(title).call_alike(rows) for title in others):
        return rows[:0]
    shown = [one for one in more if one.column.name in model.quasi]
    return np.setdiff1d(rows, np.flatnonzero(values_lacking(shown) >= (len(shown) + 1) // 2))


def _lack_alone(rows: np.ndarray, one: Described) -> bool:
    """Whether all of these rows, and fewer others, have no value in a column."""
    lacking = int(one.column.counts()[one.is_none].sum())
    return lacking < 2 * len(rows) and bool(one.is_none[one.column.codes[rows]].all())


def _people_only_in(rows: np.ndarray, table: Table, model: PolicyModel) -> int:
    """How many people have no other rows."""
    name = model.person or next(iter(model.subject_columns), None)
    if name is None or not len(rows):
        return len(rows)
    people = people_of(table.column(name))
    of_rows = np.bincount(people[rows], minlength=int(people.max()) + 1)
    return int(((of_rows > 0) & (of_rows == np.bincount(people))).sum())


def _tells_apart(column: Column) -> bool:
    """Whether it says something of some records, unlike a number of each or one text of all."""
    if len(column.cells) == len(column.codes):
        return not ColumnCells.of(column).counts_records
    return len(column.cells) > 1


def _share_of(one: Described, row: int, besides: int) -> float:
    """Of the others with a value, the share that holds what this row holds."""
    counts, cell = one.column.counts(), one.column.codes[row]
    filled = int(counts[~one.is_none].sum())
    return float(counts[cell] - besides + 1) / (filled - besides + 1)
