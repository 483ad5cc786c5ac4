"""Who recurs without a number that shows it: people whose records agree on a profile or on their
names.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from shoal.data.person.candidates import CROSSING, MOST_ROWS, Candidate
from shoal.data.person.columns import PersonColumn
from shoal.data.person.people import People, agree_beyond_neighbours, agree_by_years


def profiles_of(columns: Iterable[PersonColumn]) -> list[tuple[PersonColumn, ...]]:
    """The columns that describe a person together, the most first."""
    told = [c for c in columns if c.varies and not c.name.is_of_other]
    # birth and age hang together, as places do
    births = [c for c in told if c.name.kind in ("birth", "age")]
    places = [c for c in told if c.name.is_place]
    birth, place = ([max(some, key=lambda c: c.seen)] if some else [] for some in (births, places))
    person = [*birth, *(c for c in told if c.name.kind == "sex")]
    kept = [c for c in told if c.name.kind == "keep" or c.name.has("body")]
    named = [c for c in told if c.is_name and person][:1]
    profiles = dict.fromkeys((*person, *more) for more in (place, kept, named, []))
    return sorted(filter(None, profiles), key=len, reverse=True)


def recurring(columns: Sequence[PersonColumn], rows: np.ndarray) -> tuple[PersonColumn, ...]:
    """The columns by which people recur in these rows, if they do. rows: one record of each number,
    or all records where nothing numbers people.

    All rows are counted: of some, drawn by their numbers, hardly two would be of one person. Those
    who grow older from one record to the next recur by the rest of a profile.
    """
    profiles = profiles_of(columns)
    found = next((profile for profile in profiles if recur(profile, rows)), ())
    waves = [c for c in columns if c.says_when]
    return found or next((rest for one in profiles if (rest := _older(one, rows, waves))), ())


def recur(profile: Sequence[PersonColumn], rows: np.ndarray) -> bool:
    """Whether records of one birth, or of one value of what tells most apart, agree on the rest of
    a profile far more often than records of neighbouring births.

    Who hangs together without recurring, as newborns and their mothers do by age and sex, does so
    among neighbours, too; a person's own records agree, however many others have their birth.
    """
    has_values = np.logical_and.reduce([c.people.is_value[rows] for c in profile])
    rows = rows if has_values.all() else rows[has_values]
    first = max(profile, key=lambda c: (c.name.kind in ("birth", "age"), c.seen))
    others = [c.people.among(rows) for c in profile if c is not first]
    tried = [(first.ranks_among(rows), others)] if others else []
    if first.name.kind == "birth":
        year, day = first.birthdays_among(rows)
        tried.append((day, [year, *others]))
    return len(rows) > 0 and any(
        agree_beyond_neighbours(one, People.together(rest).keys) for one, rest in tried
    )


def _older(
    profile: Sequence[PersonColumn], rows: np.ndarray, waves: Sequence[PersonColumn]
) -> tuple[PersonColumn, ...]:
    """The rest of a profile but for an age, if people recur by it who grow older: records of
    neighbouring ages agree on it rather than those of one age, or those of one birth do, by the age
    and the year or number of a wave, or by two years, of which either may be said.
    """
    first, *others = profile
    # children's height grows, too
    rest = tuple(c for c in others if not c.name.has("body"))
    if first.name.kind not in ("birth", "age") or all(c.name.kind == "sex" for c in rest):
        return ()
    alike = People.together([c.people.among(rows) for c in rest])
    some = alike.sampled(4 * MOST_ROWS)  # all records of those who agree
    rows, keys = rows[some], alike.keys[some]
    ages = first.numbers_among(rows)
    births = [wave.years_among(rows) - ages for wave in waves if first.name.kind == "age"]
    tried = [(ages, True), (ages / 2, True), *((one, False) for one in (ages / 4, *births))]
    is_found = any(agree_by_years(years, keys, grow) for years, grow in tried)
    return rest if is_found else ()


def by_name(columns: Sequence[PersonColumn]) -> Candidate | None:
    """First and last name, with the birth if there is one, or initials and the birth, which tells
    them apart; None where they are not of one person.

    Two columns count where people recur by them.
    """
    varied = {c.name.kind: c for c in reversed(columns) if c.varies}
    first, birth = varied.get("first"), varied.get("birth")
    last = varied.get("last") or varied.get("name")
    if last is None or (first is None and birth is None):
        return None
    tried = [(first, last, birth), (first, last) if first else (last, birth)]
    for parts in (tuple(filter(None, some)) for some in tried):
        found = Candidate.together(*parts)
        if first is None and found.people.distinct < CROSSING * last.people.distinct:
            continue
        if not found.people.repeated or found.weigh(columns).is_contradicted:
            continue
        if len(parts) > 2 or recur(parts, np.arange(len(found.people.keys))):
            return found
    return None
