"""Numbers that begin anew in every group, such as a person's number in a household: only both
together identify a person. And panels: columns of any name whose values occur once in each wave.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import lgamma, prod

import numpy as np
import polars as pl

from shoal.data.column_words import PERSONAL, mean
from shoal.data.person.candidates import (
    CROSSING,
    FEWEST_CODES,
    MANY,
    MOST_ROWS,
    NEVER,
    RANK,
    Candidate,
    counts_only,
    each,
    fewest_of_word,
    other_candidates,
    people_of,
)
from shoal.data.person.columns import (
    ANEW,
    EXCEPTIONS,
    FEWEST,
    FULL_NAMES,
    LEAST_ZEROS,
    MOST_TO_A_NUMBER,
    NEARLY_ALL,
    NO_NUMBERS,
    UNMISTAKABLE,
    PersonColumn,
    distinct,
)

MOST_KEYS = 4 * MOST_ROWS  # pairs of a group and a number that are looked at
MOST_TRIED = 12  # numbers within groups
MOST_NESTED = 6  # numbers within groups of groups
LARGEST_WITHIN = 30  # distinct numbers that members of a group have
MOST_WAVES = 60  # of a panel, or questions, or trials
MOST_OF_RUNNING = 30  # records of one whom a running number stands for
MOST_SHOWN = 3  # columns of any name that a question lists
WAVES_SEEN = 0.5  # share of them in which each is seen
MOST_EXACT = 1 << 53  # among floating-point numbers
ROUND = 0.4  # share of multiples of five from which numbers are rounded
UNLIKELY = -9  # logarithm of a chance of one in 10,000
PERSON_BY_NAME = ("civil", "person")
OF_SOMEBODY = (*PERSONAL, *"person civil contact name first last".split())
"""Kinds of columns that are of the people of a table, whoever serves them."""


def followed(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Columns whose values recur, once in each wave; by chance, many would occur twice in one. A
    wave is one of the few values of a column, or one pair of values of two columns.
    """
    waves = [c for c in columns if c.has_few(MOST_WAVES)]
    waves = [c for c in waves if not c.name.has("sex", "age", "birth", "group")]
    spans = [*combinations(waves, 1), *combinations(waves, 2)]
    units = [one for one in other_candidates(columns, ()) if not is_of_no_person(one.parts[0])]
    return [one for one in units if _is_seen_once_in_each(one, spans)]


def end_sooner(groups: np.ndarray, numbers: np.ndarray) -> bool:
    """Whether the greatest numbers in some groups are smaller than chance would let them be, if any
    person may be in any group.
    """
    counted = pl.DataFrame({"of": groups, "number": numbers}).group_by("of")
    found = counted.agg(pl.max("number"), pl.n_unique("number").alias("count"))
    counts = found["count"].to_list()
    ends = list(map(max, found["number"].to_list(), counts))

    def ln_choose(n: float, k: int) -> float:
        return lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1)

    pairs = zip(ends, counts, strict=True)
    chance = sum(ln_choose(end, count) - ln_choose(max(ends), count) for end, count in pairs)
    return chance < UNLIKELY - 2 * len(found)  # by chance, about -1 each


def begun_anew(left: Sequence[Candidate], columns: Sequence[PersonColumn]) -> list[Candidate]:
    """The likeliest number of people with a column of few values in each of which it seems to begin
    anew, under whatever title, where nothing else agrees on whose it is.
    """
    one, (number, *others) = left[0], left[0].parts
    if others or one.evidence.personal or one.evidence.steady:
        return []
    rows = np.flatnonzero(one.people.is_value)
    rows = np.sort(np.random.default_rng(7).permutation(rows)[:MOST_ROWS])
    ends = number.texts.gather(rows).str.extract(r"(\d+)\s*$").cast(pl.Float64, strict=False)
    known = [{*other.parts} for other in left]
    groups = [c for c in columns if c.has_few(MOST_WAVES) and {c, number} not in known]
    # neither visits nor what says who somebody is
    groups = [c for c in groups if not c.name.is_personal and c.name.kind != "event"]
    for group in groups if not ends.has_nulls() else ():
        if end_sooner(group.people.keys[rows], ends.to_numpy()):
            pair = Candidate.together(group, number)
            if _is_finer(pair) and _begins_anew(pair):
                return [pair]
    return []


def last_resorts(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Who may be the people where nothing else is: the last or the first names where there are no
    others, the staff where nobody else is in the table, and households and the like, whose rows may
    be visits of a household rather than its members.
    """
    names = [c for c in columns if c.name.kind in ("first", "last", "name")]
    parts = [c for c in names if c.name.kind != "name" and c.look.kind == "text" and names == [c]]
    groups = [c for c in columns if c.name.kind == "group" and c.name.has("smallest")]
    found = each(groups, "evidence") + each(parts, "name")
    found = [one for one in found if one.people.distinct >= MANY]
    found = [one for one in found if one.people.repeat_seldom(MANY)]
    is_of_others = any(mean(column.name.words, "sensitive") for column in columns)
    if is_of_others or any(column.name.kind in OF_SOMEBODY for column in columns):
        return found
    staff = [c for c in columns if c.name.kind == "staff" and c.look.kind not in NO_NUMBERS]
    return found + each((c for c in staff if c.may_be_several), "evidence")


def issued(columns: Sequence[PersonColumn], is_beside_key: bool = False) -> list[Candidate]:
    """Numbers that a group may have given to people, as a `Hospital Number` is, and random ones
    under any title, unless records of one have other names, or a person's number that is more than
    a counter of the records. is_beside_key: of which a part may number people, too.
    """
    if not is_beside_key and not all(_is_counter(c.parts[0]) for c in of_every_record(columns)):
        return []
    found = each(filter(_may_be_issued, columns), "number")
    names = [c for c in columns if c.name.kind in ("first", "last", "name") and c.varies]
    many = [one for one in found if one.people.distinct > MANY and one.people.repeated >= FEWEST]
    return [
        one
        for one in many
        if all(
            people_of((*one.parts, name)).distinct <= CROSSING * one.people.distinct
            for name in names
        )
    ]


def beside_own(left: list[Candidate], columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Those that are not events, cards and others of people, where each record has one of its own:
    a number, beside which a mere ID may yet say who they are, or a name.
    """
    own = [c for c in columns if not c.again and c.people.distinct == len(c.people.keys)]
    numbers = [c.name for c in own if c.name.kind in PERSON_BY_NAME and c.name.numbers_people]
    if any(name.is_number and not name.is_weak for name in numbers):
        mere = [one for one in left if one.parts[0].name.is_mere_id]
        left = [one for one in left if RANK[one.kind] <= RANK["name"] or one in mere]
        left += of_every_record(columns) if mere else []
    named = {c.name.kind for c in own if c.look.token in FULL_NAMES}
    if not named.isdisjoint(("person", "name", "staff")):
        # of few words, it may be a school subject, or who uses what
        left = [
            one
            for one in left
            if not (one.is_weak and one.parts[0].lacks_digits and not one.parts[0].has_values(MANY))
        ]
    if not named.isdisjoint(("person", "name")):
        left = [one for one in left if one.kind != "name"]
    return left


def is_doubtful(one: Candidate, telling: Sequence[PersonColumn]) -> bool:
    """Whether nothing says that records of one value are of several people."""
    found = one.weigh(telling)
    return not found.personal or (one.kind in ("name", "number") and found.is_confirmed)


def of_every_record(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """What is named for people and differs in each record."""
    named = [c for c in columns if c.name.kind in PERSON_BY_NAME and not c.again]
    return each((c for c in named if not c.repeats() and not c.blank), "person")


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


def is_of_no_person(column: PersonColumn) -> bool:
    return column.name.kind in NEVER or column.name.has("animal", "firm")


def _is_seen_once_in_each(unit: Candidate, spans: Iterable[Sequence[PersonColumn]]) -> bool:
    units, records = unit.people.distinct, unit.people.records
    if units < MANY or records < 2 * units:
        return False
    rows = unit.people.sampled(MOST_ROWS)  # of whole units
    for span in spans:
        room = units * prod(column.people.distinct for column in span)
        if unit.parts[0] not in span and WAVES_SEEN * room <= records <= room:
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
    refused = [one.parts for one in rejected if one.kind in ("number", "token", "event")]
    groups = [
        c
        for c in columns
        if c.may_number and (c.name.kind == "group" or c.name.is_stay or (c,) in refused)
    ]
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
            is_refuted = any(c.parts == (number,) and c.evidence.is_refuted for c in judged)
            is_group = is_named and not _is_in_most(found)
            if (is_group or is_refuted) and _begins_anew(found):
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
    small = [c for c in groups if c.look.kind == "int" and c.has_few(LARGEST_WITHIN)]
    return [(n, g) for n in (*numbers, *small) for g in groups if n is not g]


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
    """A number that a family may share, with who each is to its holder, or with another number of
    few values, by its name a person's, too, that counts those who share it.

    Births, ages and sexes would differ within a family; what else is kept for life may not.
    """
    own = [c for c in columns if c.title in one.evidence.personal and c.name.kind != "keep"]
    if own and one.evidence.is_confirmed:
        return []
    others = [c for c in columns if c not in one.parts]
    related = [c for c in others if c.name.has("relation") and not c.name.is_personal]
    pairs = [Candidate.together(*one.parts, other) for other in related]
    found = [pair for pair in pairs if not one.lies_in(pair)]
    if not found and one.kind in PERSON_BY_NAME:
        named = [c for c in others if c.name.has("person", "relation") and not counts_only(c)]
        few = [c for c in named if c.may_number and not c.holds_zero and c.has_few(LARGEST_WITHIN)]
        pairs = [Candidate.together(*one.parts, member) for member in few]
        found = [pair for pair in pairs if _is_finer(pair) and _begins_anew(pair)]
    return found[:1]


def shown_by_codes(columns: Sequence[PersonColumn], happens: bool) -> list[Candidate]:
    """The columns that may show who recurs, those with most values first. happens: whether records
    are of what happens; else others may be marks, measures or remarks.
    """
    codes = (c for c in columns if happens or (c.look.token and c.again >= c.seen) or leaves_out(c))
    shown = each(filter(_may_show_who, codes), "evidence")
    return sorted(shown, key=lambda one: -one.people.distinct)[:MOST_SHOWN]


def runs_over_people(column: PersonColumn) -> bool:
    """Whether it is a running number from 1 or 101 on, or leaves out some, and nearly all who have
    one have a few records.
    """
    if column.name.kind not in ("", "number") or not _are_of_few(column):
        return False
    numbers = column.numbers_among(column.people.first)
    least, greatest = np.nanmin(numbers), np.nanmax(numbers)
    is_running = least % 100 == 1 and NEARLY_ALL * (greatest - least) < len(numbers)
    return bool(is_running or leaves_out(column))


def _are_of_few(column: PersonColumn) -> bool:
    """Whether it holds whole numbers that nearly all have a few records, as people do."""
    is_whole = column.may_number and column.look.kind == "int"
    if column.name.has("amount") or column.name.is_count or not (is_whole or column.is_grouped):
        return False
    # how often some rows hold a value that they hold at all, if this many records do
    least, most = (n * column.share / (1 - (1 - column.share) ** n) for n in (2, MOST_OF_RUNNING))
    held = 1 + column.again / max(column.seen, 1)
    if column.seen <= MANY or not least <= held <= most:
        return False
    counts = column.people.counts()
    return bool(np.mean((counts > 1) & (counts <= MOST_OF_RUNNING)) >= NEARLY_ALL)


def leaves_out(column: PersonColumn) -> bool:
    """Whether its numbers repeat as those of people do and leave out far more between them than a
    measure that repeats as often would; what is mostly round is a price.
    """
    if not _are_of_few(column):
        return False
    numbers = column.numbers_among(column.people.first) * (1000 if column.is_grouped else 1)
    numbers = np.sort(numbers[np.abs(numbers) < MOST_EXACT].round().astype(np.int64))
    if len(numbers) <= MANY:
        return False
    steps = np.diff(numbers)[len(numbers) // 10 : -len(numbers) // 10]
    by_chance = max(2 * np.exp(-np.median(column.people.counts())), 1 - NEARLY_ALL)
    left_out = np.mean(steps > np.gcd.reduce(steps))
    return bool(left_out > by_chance and np.mean(numbers % 5 == 0) < ROUND)


def _may_show_who(column: PersonColumn) -> bool:
    """Whether its values repeat as those of people do and look like codes, not like a measure:
    single words, or numbers of one length.
    """
    written, token = column.look
    is_known = column.name.kind in NEVER and token not in ("phone", "mail")
    is_known = is_known or column.name.has("amount") or column.name.is_count
    # numbers of two digits are ages and measures, too
    is_number = column.length >= LEAST_ZEROS or (column.length and leaves_out(column))
    is_code = written == "text" or token or is_number
    is_name = token == "fullname" and column.may_be_names
    is_code = is_code and (is_name or token in UNMISTAKABLE or not column.is_of_phrases)
    if is_known or written in NO_NUMBERS or not is_code:
        return False
    return column.seen >= MANY and MANY <= column.again < MOST_TO_A_NUMBER * column.seen
