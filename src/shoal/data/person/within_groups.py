"""Numbers that begin anew in every group, such as a person's number in a household: only both
together identify a person. And panels: columns of any name whose values occur once in each wave.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import prod

import numpy as np
import polars as pl

from shoal.data.column_words import PERSONAL, mean, meanings
from shoal.data.person.candidates import (
    CROSSING,
    FEWEST,
    FEWEST_CODES,
    MANY,
    MOST_ROWS,
    MOST_TO_A_NUMBER,
    NEVER,
    Candidate,
    counts_only,
    fewest_of_word,
    other_candidates,
    people_of,
)
from shoal.data.person.columns import (
    ANEW,
    COUNTED,
    EXCEPTIONS,
    LETTERED,
    NEARLY_ALL,
    NO_NUMBERS,
    PARTED,
    STEMS,
    STRONG,
    People,
    PersonColumn,
    distinct,
    is_value,
    parts_of,
)

MOST_KEYS = 4 * MOST_ROWS  # pairs of a group and a number that are looked at
MOST_TRIED = 12  # numbers within groups
MOST_NESTED = 6  # numbers within groups of groups
LARGEST_WITHIN = 30  # distinct numbers that members of a group have
MOST_WAVES = 60  # of a panel, or questions, or trials
MOST_OF_RUNNING = 30  # records of one whom a running number stands for
MOST_SHOWN = 3  # columns of any name that a question lists
WAVES_SEEN = 0.5  # share of them in which each is seen
_DAY = r"(19|20)\d\d[-_/. ]?(0[1-9]|1[0-2])([-_/. ]?([0-2]\d|3[01]))?"
_ENDS_IN_DAY = f"{_DAY}$"
_BEGINS_WITH_DAY = rf"^\D*({_DAY}|[0-3]\d[-_/. ]?[01]\d[-_/. ]?(19|20)\d\d)(\D|$)"
OFTEN = 1.5  # records of each of whom keys begin with, on average
PERSON_BY_NAME = ("civil", "person")
OF_SOMEBODY = (*PERSONAL, *"person civil contact name first last".split())
"""Kinds of columns that are of the people of a table, whoever serves them."""


def followed(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Columns whose values recur, once in each wave; by chance, many would occur twice in one. A
    wave is one of the few values of a column, or one pair of values of two columns.
    """
    waves = [c for c in columns if _may_be_wave(c)]
    spans = [*combinations(waves, 1), *combinations(waves, 2)]
    units = [one for one in other_candidates(columns, ()) if not _is_of_no_person(one.parts[0])]
    return [one for one in units if _is_seen_once_in_each(one, spans)]


def parts_of_keys(columns: Sequence[PersonColumn]) -> Iterator[Candidate]:
    """What repeats in keys that number every record: what stands before any sign, as `P001` does in
    `P001_1.png`, or behind a year, as in `2021-P001`, unless other columns contradict it.

    Where numbers do not show it by themselves, other columns have to confirm it.
    """
    looks = {**dict.fromkeys(STEMS, _by_stem), COUNTED: _before_counter}
    looks |= {LETTERED: _before_counter, PARTED: _behind_first}
    for column in columns:
        is_key = column.is_parted and column.look.kind in ("text", "span")
        is_of_nobody = _is_of_no_person(column) and not column.name.ends("issued")
        if not is_key or is_of_nobody or column.look.token in STRONG or column.repeats(FEWEST):
            continue
        for part, look in looks.items():
            people, is_seen = look(column.texts, part)
            if not FEWEST <= people.repeated < MOST_TO_A_NUMBER * people.distinct:
                continue
            one = Candidate((column,), "part", people, part=part)
            found = one.weigh(columns)
            is_shown = found.is_of_people or (found.crossing and not found.personal)
            if is_shown or (is_seen and not found.is_contradicted):
                yield one
                break


def _by_stem(texts: pl.Series, pattern: str) -> tuple[People, bool]:
    """The records by what stands before a sign in their keys, if what stands behind it is a date or
    one of the few names of a person's files and samples; else of no person.

    That may be a number in itself, as in `S12-0001`, and what stands before it may end in a date or
    in the number of one of a few waves. Some keys show that, as all take long.
    """
    some = texts.sample(min(len(texts), MOST_KEYS), seed=6).str.extract_groups(pattern)
    stem, word, rest = some.struct.unnest().drop_nulls()
    are_dates = rest.str.contains(_BEGINS_WITH_DAY)
    is_other = (rest.str.contains(r"^\d+$") & ~are_dates) | stem.str.contains(_ENDS_IN_DAY)
    is_lettered = (stem + rest).str.contains(r"\p{L}")
    first = rest.str.extract(r"^([^\W_]*\d[^\W_]*)").fill_null(rest)
    are_few = first.n_unique() < MANY or 2 * rest.n_unique() <= len(rest)
    is_told = are_dates | (is_lettered & are_few)
    is_seen = (is_told & ~is_other).sum() >= NEARLY_ALL * len(some)
    if not is_seen or word.n_unique() < MANY or len(stem) - stem.n_unique() < FEWEST:
        nobody = np.zeros(len(texts), dtype=bool)
        return People(nobody.astype(np.int64), nobody), False
    people = People(parts_of(texts, pattern).hash().to_numpy(), is_value(texts))
    return people, people.records >= OFTEN * people.distinct


def _before_counter(texts: pl.Series, pattern: str) -> tuple[People, bool]:
    """The records by what the first group of a pattern finds in their keys, and whether its second
    one counts them up: 1, 2, 3 or a, b, c, of which the first is most frequent.
    """
    parts = pl.DataFrame({"of": parts_of(texts, pattern), "nth": texts.str.extract(pattern, 2)})
    counts = parts.drop_nulls().group_by("nth").len().sort("len", "nth", descending=[True, False])
    ranks = parts.join(counts.with_row_index("rank", 1), on="nth")
    greatest = ranks.group_by("of").agg(pl.max("rank"))["rank"]
    is_counter = len(ranks) >= max(ANEW * int(greatest.sum()), len(texts) / EXCEPTIONS)
    return People(parts["of"].hash().to_numpy(), is_value(texts)), is_counter


def _behind_first(texts: pl.Series, pattern: str) -> tuple[People, bool]:
    """The records by what stands behind the first part of their keys, as `P001` in `2021-P001`; and
    whether that is a year, in which some are left out, or all years have as many: numbers of what
    happened are given one after the other.
    """
    number = texts.str.extract(r"(\d+)\D*$")
    parts = pl.DataFrame({"first": texts.str.extract(r"^(\w+)"), "number": number})
    numbers = pl.col("number").cast(pl.Int64, strict=False)
    greatest = parts.group_by("first").agg(numbers.max())["number"]
    is_left_out = len(parts) < NEARLY_ALL * int(greatest.sum() or 0)
    is_year = bool(texts.str.contains(r"^(19|20)\d\d\W\p{L}").all())
    people = People(parts_of(texts, pattern).hash().to_numpy(), is_value(texts))
    return people, is_year and (is_left_out or greatest.n_unique() == 1)


def last_resorts(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Who may be the people where nothing else is: the last or the first names where there are no
    others, the staff where nobody else is in the table, and households and the like, whose rows may
    be visits of a household rather than its members.
    """
    names = [c for c in columns if c.name.kind in ("first", "last", "name")]
    parts = [c for c in names if c.name.kind != "name" and c.look.kind == "text"]
    named = [Candidate((c,), "name", c.people) for c in parts if names == [c]]
    groups = [c for c in columns if c.name.kind == "group" and c.name.has("smallest")]
    found = [Candidate((c,), "evidence", c.people) for c in groups] + named
    seldom = [
        one
        for one in found
        if one.people.distinct >= MANY
        and MANY <= one.people.repeated < MOST_TO_A_NUMBER * one.people.distinct
    ]
    return seldom + _staff_alone(columns)


def issued(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Numbers that a group may have given to people, as a `Hospital Number` is, and random ones
    under any title, unless records of one have other names, or a person's number that is more than
    a counter of the records.
    """
    if not all(_is_counter(one.parts[0]) for one in of_every_record(columns)):
        return []
    found = [Candidate((c,), "number", c.people) for c in columns if _may_be_issued(c)]
    names = [c for c in columns if c.name.kind in ("first", "last", "name") and c.varies]
    return [
        one
        for one in found
        if one.people.distinct > MANY and one.people.repeated >= FEWEST
        if not any(_differs_within(name, one) for name in names)
    ]


def of_every_record(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """What is named for people and differs in each record."""
    named = [c for c in columns if c.name.kind in PERSON_BY_NAME and not c.again]
    return [Candidate((c,), "person", c.people) for c in named if not c.repeats() and not c.blank]


def _is_counter(column: PersonColumn) -> bool:
    """Whether its cells end in numbers of which each is by one above another."""
    ends = column.texts.str.extract(r"(\d+)\D*$").cast(pl.Int64, strict=False).sort()
    return not ends.has_nulls() and bool((ends.diff().drop_nulls() == 1).all())


def _may_be_issued(column: PersonColumn) -> bool:
    name, look = column.name, column.look
    if name.kind not in ("group", "thing", "staff") or look.kind in NO_NUMBERS:
        return False
    if name.is_place or name.has("area", "goods", "animal", "firm"):
        return False
    is_group = name.kind == "group" and name.says_number
    is_thing = name.ends("issued") and bool(name.says_number or look.token)
    return column.is_random or is_group or is_thing


def _differs_within(column: PersonColumn, one: Candidate) -> bool:
    """Whether records of one value hold different ones of a column."""
    both = Candidate.together(*one.parts, column).people.distinct
    return both > CROSSING * one.people.distinct


def _staff_alone(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """The staff, where no column says anything of anybody else, such as of the sick."""
    kinds = {column.name.kind for column in columns}
    is_of_others = any(mean(column.name.words, "sensitive") for column in columns)
    if is_of_others or not kinds.isdisjoint(OF_SOMEBODY):
        return []
    staff = [c for c in columns if c.name.kind == "staff" and c.look.kind not in NO_NUMBERS]
    return [
        Candidate((c,), "evidence", c.people)
        for c in staff
        if c.has_values(FEWEST) and c.repeats(FEWEST)
    ]


def _is_of_no_person(column: PersonColumn) -> bool:
    return column.name.kind in NEVER or column.name.has("animal", "firm")


def _may_be_wave(column: PersonColumn) -> bool:
    is_few = column.varies and not column.has_values(MOST_WAVES + 1)
    return is_few and not column.name.has("sex", "age", "birth", "group")


def _is_seen_once_in_each(unit: Candidate, spans: Iterable[Sequence[PersonColumn]]) -> bool:
    units, records = unit.people.distinct, unit.people.records
    if units < MANY or records < 2 * units:
        return False
    rows = unit.people.sampled(MOST_ROWS)  # of whole units
    for span in spans:
        room = units * prod(column.people.distinct for column in span)
        if unit.parts[0] in span or not WAVES_SEEN * room <= records <= room:
            continue
        keys = [column.people.keys[rows] for column in (unit.parts[0], *span)]
        if distinct(*keys) * EXCEPTIONS >= len(rows):
            return True
    return False


def within_groups(
    columns: Sequence[PersonColumn], kept: Sequence[Candidate], rejected: Sequence[Candidate]
) -> Iterator[tuple[PersonColumn, Candidate | None]]:
    """Each number that begins anew in a group, or in the groups of larger ones, with all of them
    together; with None where every record is another one by them, so that rows are people.
    """
    groups = [column for column in columns if _is_group(column, rejected)]
    sure = [one.parts for one in kept if one.evidence.is_confirmed]
    judged = [*rejected, *kept]
    numbers = [c for c in columns if (c,) not in sure and _may_be_within(c, judged)]
    couples = [(n, g) for n in numbers for g in groups if n is not g]
    nested = ((n, *two) for n in numbers for two in combinations(groups, 2) if n not in two)
    named = {*couples}
    if not sure and any(column.name.is_personal for column in columns):
        couples += _unnamed_couples(columns, numbers)
    settled: set[PersonColumn] = set()
    for number, *within in (
        *islice(dict.fromkeys(couples), MOST_TRIED),
        *islice(nested, MOST_NESTED),
    ):
        if number in settled and len(within) > 1:
            continue
        found = Candidate.together(*within, number)
        is_named = len(within) > 1 or (number, *within) in named
        if not found.people.repeated:
            if is_named and not _is_in_most(found) and _begins_anew(found):
                settled.add(number)
                yield number, None
        elif found.people.repeated >= FEWEST and _is_finer(found):
            evidence = found.weigh(columns, to_confirm=True)
            if evidence.is_of_people or (evidence.is_confirmed and is_named):
                alone = Candidate(tuple(within), "group", people_of(within))
                if not alone.weigh(columns).is_confirmed:
                    settled.update([number] if is_named else [])
                    yield number, found
            elif is_named and not evidence.personal and _begins_anew(found):
                has_many = people_of(within).distinct >= MANY
                found.anew = has_many and not _is_in_most(found)
                if found.anew or number.has_values(fewest_of_word(number)):
                    yield number, found


def fewer_first(left: Sequence[Candidate]) -> list[Candidate]:
    """Each number before its pair with a group in which it may begin anew, as it counts nobody
    twice; behind it where that is clear.
    """
    ordered = list(left)
    for pair in reversed(left):
        number = next((one for one in ordered if one.parts == pair.parts[-1:]), pair)
        if number is not pair and pair.anew is not None:
            ordered.remove(number)
            ordered.insert(ordered.index(pair) + pair.anew, number)
    return ordered


def _is_finer(together: Candidate) -> bool:
    """Whether it tells far more apart than without any one of its columns."""
    least = together.people.distinct / CROSSING
    fewer = combinations(together.parts, len(together.parts) - 1)
    return all(people_of(parts).distinct <= least for parts in fewer)


def _unnamed_couples(
    columns: Sequence[PersonColumn], numbers: Sequence[PersonColumn]
) -> list[tuple[PersonColumn, PersonColumn]]:
    """Numbers, and small whole ones of any name, within whatever else repeats."""
    groups = [c for c in columns if c.may_number and c.repeats(FEWEST)]
    small = [c for c in groups if c.look.kind == "int" and not c.has_values(LARGEST_WITHIN + 1)]
    return [(n, g) for n in (*numbers, *small) for g in groups if n is not g]


def _is_group(column: PersonColumn, rejected: Sequence[Candidate]) -> bool:
    refused = [one.parts for one in rejected if one.kind in ("number", "token", "event")]
    is_stay = not meanings()["session"].isdisjoint(column.name.words[-1:])
    is_group = column.name.kind == "group" or is_stay or (column,) in refused
    return column.may_number and is_group


def _may_be_within(column: PersonColumn, judged: Sequence[Candidate]) -> bool:
    """Whether it may number the members of a group."""
    kind = column.name.kind
    if kind not in ("person", "number", "event") or column.look.kind not in ("int", "text"):
        return False
    is_number = kind != "event" or (column.name.is_number and column.has_values(3))
    if not column.varies or counts_only(column) or not is_number:
        return False
    if column.holds_zero and not column.has_values(FEWEST_CODES + 1):
        return False  # what begins anew begins with 1
    is_open = any(one.parts == (column,) and not one.evidence.is_confirmed for one in judged)
    return is_open or not column.has_values(LARGEST_WITHIN + 1)


def _is_in_most(together: Candidate) -> bool:
    """Whether its number has as many values as there are groups, or each in nearly every group, as
    where people take part in every arm of a trial; members of households have few numbers.
    """
    *within, number = together.parts
    groups, numbers = people_of(within).distinct, number.people.distinct
    is_full = together.people.distinct * EXCEPTIONS >= groups * numbers
    return numbers >= groups or (is_full and numbers > 2)


def _begins_anew(together: Candidate) -> bool:
    """Whether a number counts 1, 2, 3 within most values of a group."""
    *within, number = together.parts
    if number.look.kind not in ("int", "text"):
        return False
    rows, group = together.people.first, people_of(within)
    rows = rows[group.some(-(-len(rows) // MOST_KEYS))[rows]]
    groups = np.unique(group.keys[rows], return_inverse=True)[1]
    greatest = np.zeros(int(groups.max(initial=0)) + 1)
    parts = number.texts.gather(rows).str.extract_groups(r"^\s*(\D*?)(\d+)\s*$")
    begin, end = parts.struct.unnest()
    np.maximum.at(greatest, groups, end.cast(pl.Float64, strict=False).fill_null(-1).to_numpy())
    is_one = begin.drop_nulls().n_unique() == 1  # as `P` in `P001`
    return bool(len(rows) >= ANEW * greatest.sum() and is_one)


def shared_by_families(one: Candidate, columns: Sequence[PersonColumn]) -> list[Candidate]:
    """A number that a family may share, with who each is to its holder.

    Births, ages and sexes would differ within a family; what else is kept for life may not.
    """
    own = [c for c in columns if c.title in one.evidence.personal and c.name.kind != "keep"]
    if own and one.evidence.is_confirmed:
        return []
    related = [c for c in columns if c.name.has("relation") and not c.name.is_personal]
    others = [c for c in related if c not in one.parts]
    pairs = [Candidate.together(*one.parts, other) for other in others]
    return [pair for pair in pairs if not one.lies_in(pair)][:1]


def shown_by_codes(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """The columns that may show who recurs, those with most values first."""
    shown = [Candidate((c,), "evidence", c.people) for c in columns if _may_show_who(c)]
    return sorted(shown, key=lambda one: -one.people.distinct)[:MOST_SHOWN]


def runs_over_people(column: PersonColumn) -> bool:
    """Whether it is a running number from 1 or 101 on of whom nearly all have a few records."""
    is_known = column.name.kind not in ("", "number") or column.name.has("amount")
    if is_known or column.name.is_count or not column.may_number or column.look.kind != "int":
        return False
    if not MANY < column.seen <= column.again:
        return False
    counts, numbers = column.people.counts(), column.numbers_among(column.people.first)
    least, greatest = np.nanmin(numbers), np.nanmax(numbers)
    is_running = least % 100 == 1 and NEARLY_ALL * (greatest - least) < len(counts)
    are_few = np.mean((counts > 1) & (counts <= MOST_OF_RUNNING)) >= NEARLY_ALL
    return bool(is_running and are_few)


def _may_show_who(column: PersonColumn) -> bool:
    """Whether its values repeat as those of people do and look like codes, not like a measure:
    single words, or numbers of one length.
    """
    written, token = column.look
    is_known = column.name.kind in NEVER and token not in ("phone", "mail")
    is_known = is_known or column.name.has("amount") or column.name.is_count
    is_code = written == "text" or token or column.is_of_one_length
    is_name = token == "fullname" and column.may_be_names
    is_code = is_code and (is_name or not column.is_of_phrases)
    if is_known or written in NO_NUMBERS or not is_code:
        return False
    return column.seen >= MANY and MANY <= column.again < MOST_TO_A_NUMBER * column.seen
