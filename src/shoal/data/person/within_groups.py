"""Numbers that begin anew in every group, such as a person's number in a household: only both
together identify a person. Panels: columns of any name whose values occur once in each wave. And
parts of keys.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice
from math import prod

import numpy as np
import polars as pl

from shoal.data.column_words import NAMES, PERSONAL, mean
from shoal.data.person.candidates import (
    CROSSING,
    FEWEST_CODES,
    MOST_ROWS,
    RANK,
    Candidate,
    each,
    fewest_of_word,
    other_candidates,
    people_of,
)
from shoal.data.person.columns import (
    EXCEPTIONS,
    FEWEST,
    FULL_NAMES,
    MANY,
    MOST_WAVES,
    NEARLY_ALL,
    NEVER,
    NO_NUMBERS,
    OFTEN,
    STRONG,
    PersonColumn,
    is_value,
)
from shoal.data.person.people import People, count_up, distinct, end_sooner

MOST_KEYS = 4 * MOST_ROWS  # pairs of a group and a number that are looked at
MOST_TRIED = 12  # numbers within groups
MOST_NESTED = 6  # numbers within groups of groups
LARGEST_WITHIN = 30  # distinct numbers that members of a group have
MOST_SHOWN = 3  # columns of any name that a question lists
WAVES_SEEN = 0.5  # share of them in which each is seen
COUNTED = r"^(.*\w)( ?[-_/.:#(]+\p{L}{0,8}[1-9]?\d{1,2}\)?)$"
LETTERED = r"^(.*\d)([-_/.:# ]*\p{L}{1,8})$"
PARTED = [rf"^(?:[^-_/.:# ]+[-_/.:# ]+){{{before}}}(.*\d.*)$" for before in (1, 2, 3)]
"""Keys by parts, the first group: before a counter, as in `P001-2`, or behind one word or more."""
JOINED = r"^([^\W\d_]{0,8}(\d+))([^\W\d_].*)$"
STEMS = [JOINED] + [
    rf"^((?:[^\W_]+[\W_]+){{{before}}}([^\W_]*\d[^\W_]*))[\W_]+(.*[^\W_].*)$"
    for before in (3, 2, 1, 0)
]
"""Keys by what stands before any sign, or before letters, its last word or digits, and the rest:
`P001_1.png`, `S001R01.edf`.
"""
_DAY = r"(19|20)\d\d[-_/. ]?(0[1-9]|1[0-2])([-_/. ]?([0-2]\d|3[01]))?"
_ENDS_IN_DAY = f"{_DAY}$"
_BEGINS_WITH_DAY = rf"^\D*({_DAY}|[0-3]\d[-_/. ]?[01]\d[-_/. ]?(19|20)\d\d)(\D|$)"
_WAVES = r"^(?i)((19|20)\d\d|(t|v|w|m|y|visit|wave|time|ses|week|month|year)[-_ ]?\d{1,2})[-_/.:# ]"
"""What keys begin with that stand in several records each: a year or a visit, but no centre."""
PERSON_BY_NAME = ("civil", "person")
OF_SOMEBODY = (*PERSONAL, *NAMES, "person", "civil", "contact")
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


def begun_anew(left: Sequence[Candidate], columns: Sequence[PersonColumn]) -> list[Candidate]:
    """The likeliest number of people with a column of few values, under whatever title, that counts
    those who share it, or in each of which it seems to begin anew, or people seem to be others.
    """
    alone = [one for one in left if len(one.parts) == 1 and not one.evidence.personal]
    members = [pair for one in alone for pair in _members_of(one, columns) if _begins_anew(pair)]
    one, (number, *_) = left[0], left[0].parts
    if members or len(one.parts) > 1:
        return members[:1]
    known = [{*other.parts} for other in left]
    groups = [c for c in columns if 1 < c.seen <= MOST_WAVES and {c, number} not in known]
    # neither visits nor what says who somebody is
    groups = [c for c in groups if not c.name.is_personal and c.name.kind != "event"]
    if one.is_shown_by_blocks(columns):
        groups = [group for group in groups if _seems_to_part(one, group)]
    else:
        groups = [group for group in groups if one.differs_across(group, columns)]
    pairs = (Candidate.of(group, number) for group in groups)
    return [*islice((pair for pair in pairs if one.evidence.steady or _begins_anew(pair)), 1)]


def _seems_to_part(one: Candidate, group: PersonColumn) -> bool:
    """Whether a number seems to begin anew in each value of a column: it tells far more apart with
    it, and ends sooner in some, or each has it once, as the candidates of each year have.
    """
    rows = one.sample.rows
    keys = group.people.keys[rows]
    both = distinct(keys, one.people.keys[rows])
    if both < CROSSING * max(distinct(keys), len(one.sample.first)):
        return False
    if both == len(rows) and (group.name.kind in ("", "group") or group.name.has("year")):
        return True
    ends = one.parts[0].ends_among(rows)
    return not np.isnan(ends).any() and end_sooner(keys, ends)


def _members_of(one: Candidate, columns: Sequence[PersonColumn]) -> Iterator[Candidate]:
    """A number with each column of unknown meaning that may count those who share it, as a rank in
    a family does: records of both recur, and one has fewer values of it than any records would.
    """
    sample = one.people.sampled(MOST_ROWS)
    open_kinds = ("", "group", "number", "person")
    for member in (c for c in columns if c.name.kind in open_kinds and not c.counts_only):
        is_code = member.look.kind == "int" and not member.holds_zero
        if is_code and member not in one.parts and member.has_few(LARGEST_WITHIN):
            rows = sample[member.people.is_value[sample]]
            number, nth = one.people.keys[rows], member.people.keys[rows]
            drawn = NEARLY_ALL * distinct(number, np.random.default_rng(9).permutation(nth))
            if distinct(number) + FEWEST <= distinct(number, nth) <= min(drawn, len(rows) / OFTEN):
                yield Candidate.of(*one.parts, member)


def last_resorts(columns: Sequence[PersonColumn]) -> list[Candidate]:
    """Who may be the people where nothing else is: the last or the first names where there are no
    others, the staff where nobody else is in the table, and households and the like, whose rows may
    be visits of a household rather than its members.
    """
    names = [c for c in columns if c.name.kind in NAMES]
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
    names = [c for c in columns if c.name.kind in NAMES and c.varies]
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
    is_other = name.is_place or name.has("area", "goods", "animal", "firm")
    if is_other or name.kind not in ("group", "thing", "staff") or look.kind in NO_NUMBERS:
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
) -> Iterator[Candidate]:
    """Each number that begins anew in a group, or in the groups of larger ones, behind them;
    without repeats where every record is another one by them, so that rows are people.
    """
    refused = [one.parts for one in rejected if one.kind in ("number", "token", "event")]
    groups = [
        c
        for c in columns
        if c.may_number and (c.name.kind == "group" or c.name.is_last("session") or (c,) in refused)
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
    apart: set[PersonColumn] = set()
    for number, *within in (
        *islice(dict.fromkeys(couples), MOST_TRIED),
        *islice(nested, MOST_NESTED),
    ):
        if number in apart or (number in settled and len(within) > 1):
            continue
        found = Candidate.of(*within, number)
        is_named = len(within) > 1 or (number, *within) in named
        if not found.people.repeated:
            is_refuted = any(c.parts == (number,) and c.evidence.is_refuted for c in judged)
            is_group = is_named and not _is_in_most(found)
            if (is_group or is_refuted) and _begins_anew(found):
                apart.add(number)
                yield found
        elif found.people.repeated >= FEWEST and _is_finer(found):
            evidence = found.weigh(columns, to_confirm=True)
            if evidence.is_of_people or (evidence.is_confirmed and is_named):
                alone = Candidate(tuple(within), "group", people_of(within))
                if not alone.weigh(columns).is_confirmed:
                    settled.update([number] if is_named else [])
                    yield found
            elif is_named and not evidence.personal and _begins_anew(found):
                has_many = people_of(within).distinct >= MANY
                found.anew = has_many and not _is_in_most(found)
                if found.anew or number.has_values(fewest_of_word(number)):
                    yield found


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
    if not column.varies or column.counts_only or not is_number:
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
    rows, group = together.people.first, people_of(within)
    rows = rows[group.some(-(-len(rows) // MOST_KEYS))[rows]]
    parts = number.texts_among(rows).str.extract_groups(r"^\s*(\D*?)(\d+)\s*$")
    begin, end = parts.struct.unnest()
    is_one = begin.drop_nulls().n_unique() == 1  # as `P` in `P001`
    return is_one and count_up(group.keys[rows], end.cast(pl.Float64, strict=False).fill_null(0))


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
    pairs = [Candidate.of(*one.parts, other) for other in related]
    found = [pair for pair in pairs if not one.lies_in(pair)]
    if not found and one.kind in PERSON_BY_NAME:
        named = [c for c in others if c.name.has("person", "relation") and not c.counts_only]
        few = [c for c in named if c.may_number and not c.holds_zero and c.has_few(LARGEST_WITHIN)]
        pairs = [Candidate.of(*one.parts, member) for member in few]
        found = [pair for pair in pairs if _is_finer(pair) and _begins_anew(pair)]
    return found[:1]


def shown_by_codes(columns: Sequence[PersonColumn], happens: bool) -> list[Candidate]:
    """The columns that may show who recurs, those with most values first. happens: whether records
    are of what happens; else others may be marks, measures or remarks.
    """
    shown = (c for c in columns if c.may_show_who())
    codes = (c for c in shown if happens or (c.look.token and c.again >= c.seen) or c.leaves_out())
    return sorted(each(codes, "evidence"), key=lambda one: -one.people.distinct)[:MOST_SHOWN]


# Parts of keys that number people, where the keys themselves differ in each record.


def in_keys(columns: Sequence[PersonColumn], telling: Sequence[PersonColumn]) -> list[Candidate]:
    """Parts of keys that number people, and what a group may have given to them."""
    found = parts_of_keys([c for c in telling if not c.repeats(FEWEST)], telling)
    given = issued(columns, is_beside_key=True) if found else []
    return found + [one for one in given if one.is_doubtful(telling)]


def parts_of_keys(keys: Iterable[PersonColumn], telling: Sequence[PersonColumn]) -> list[Candidate]:
    """What repeats in the different values of keys: what stands before any sign, as `P001` does in
    `P001_1.png`, or behind a year, as in `2021-P001`, unless other columns contradict it.

    Where numbers do not show it by themselves, other columns have to confirm it.
    """
    found = (_part_of(key, telling) for key in keys if _may_have_parts(key))
    return [one for one in found if one is not None]


def _may_have_parts(column: PersonColumn) -> bool:
    # a point parts the number of a person, too
    is_form = column.look.kind in ("text", "span") or column.name.numbers_people
    is_of_nobody = is_of_no_person(column) and not column.name.ends("issued")
    if not is_form or is_of_nobody or column.look.token in STRONG:
        return False
    parted = column.some.str.contains("|".join([COUNTED, LETTERED, PARTED[0], JOINED]))
    return bool(parted.sum() > NEARLY_ALL * len(parted))


def _part_of(column: PersonColumn, telling: Sequence[PersonColumn]) -> Candidate | None:
    """The people whom a part of a column's values numbers, if one does."""
    values = column.texts.unique(maintain_order=True)
    is_again = column.repeats(FEWEST)
    looks = {**dict.fromkeys(STEMS, _by_stem), COUNTED: _before_counter}
    looks |= {LETTERED: _before_counter, **dict.fromkeys(PARTED, _behind_waves)}
    for part, look in looks.items():
        people, is_seen = look(values, part)
        # what stands behind a centre may be its people, and others in each
        fitting = values.str.contains(_WAVES if is_again and part in PARTED else part).sum()
        if not people.repeat_seldom(FEWEST) or fitting < NEARLY_ALL * len(values):
            continue
        one = Candidate((column,), "part", _by_part(column.texts, part), part=part)
        found = one.weigh(telling)
        is_shown = found.is_of_people or (found.crossing and not found.personal)
        if is_shown or (is_seen and not found.is_contradicted):
            return one
    return None


def parts_of(texts: pl.Series, pattern: str) -> pl.Series:
    """What the first group of a pattern finds in each; the whole text where it does not fit."""
    found = texts.str.extract(pattern)
    return found.zip_with(found.is_not_null(), texts)


def _by_part(texts: pl.Series, pattern: str) -> People:
    """The records by what the first group of a pattern finds in their keys."""
    return People(parts_of(texts, pattern).hash().to_numpy(), is_value(texts))


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
    people = _by_part(texts, pattern)
    return people, people.records >= OFTEN * people.distinct


def _before_counter(texts: pl.Series, pattern: str) -> tuple[People, bool]:
    """The records by what the first group of a pattern finds in their keys, and whether its second
    one counts them up: 1, 2, 3 or a, b, c, of which the first is most frequent.
    """
    parts = pl.DataFrame({"of": parts_of(texts, pattern), "nth": texts.str.extract(pattern, 2)})
    counts = parts.drop_nulls().group_by("nth").len().sort("len", "nth", descending=[True, False])
    ranks = parts.join(counts.with_row_index("rank", 1), on="nth")
    is_counter = len(ranks) * EXCEPTIONS >= len(texts) and count_up(ranks["of"], ranks["rank"])
    return _by_part(texts, pattern), is_counter


def _behind_waves(texts: pl.Series, pattern: str) -> tuple[People, bool]:
    """The records by what stands behind the first part of their keys, as `P001` in `2021-P001` and
    `T1_P001`; and whether that is one of a few waves, in which some are left out, or all have as
    many: numbers of what happened, or of a site's people, are given one after the other.
    """
    of, people = parts_of(texts, pattern), _by_part(texts, pattern)
    if people.records < OFTEN * people.distinct:
        return people, False
    parts = pl.DataFrame({"of": of, "key": texts, "number": of.str.extract(r"^\D*(\d+)$")})
    waves = pl.col("key").str.strip_suffix(pl.col("of")).rank("dense")
    parts = parts.select(waves.alias("wave"), pl.col("number").cast(pl.Float64, strict=False))
    is_few = parts["wave"].n_unique() <= MOST_WAVES
    if not is_few or parts["number"].has_nulls():
        return people, is_few and bool(of.str.contains(r"\p{L}").all())
    greatest = parts.group_by("wave").max()["number"].to_numpy()
    is_of_all = len(parts) < NEARLY_ALL * greatest.sum() or len(np.unique(greatest)) == 1
    return people, is_of_all and not end_sooner(*(parts[c].to_numpy() for c in parts.columns))
