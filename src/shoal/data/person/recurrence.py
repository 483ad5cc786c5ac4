"""Who recurs without a number that shows it: people whose records agree on a profile or on their
names more often than by chance.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from shoal.data.person.candidates import COMMON, CROSSING, MOST_ROWS, STEADY, Candidate
from shoal.data.person.columns import FEWEST, MANY, MOST_WAVES, OFTEN, PersonColumn
from shoal.data.person.people import FEWEST_AGAIN, MOST_KEYS, NEARLY_CONSTANT, People, distinct
from shoal.data.room import blocks

BIRTHDAY = ("birth", "time")  # kinds of a name and of cells
STEPS = (1, 2, 3, 5)  # years from one wave to the next
MOST_RANKED = 2_000_000  # records whose births are compared, so that memory has an end
RECURRING = 0.05  # share of the pairs of one birth that are of one person, where people recur
FAR = 3  # times as many such pairs as by chance, where even fewer are enough
AGAIN = 0.04  # other records of the same person, for each record; twins make fewer
SIGNIFICANT = 3.5  # standard deviations
UNKNOWN = 5  # times as many records as neighbours have, from which a birth may be unknown


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
    profiles = dict.fromkeys((*person, *more) for more in ([*place, *kept], place, kept, named, []))
    return sorted(filter(None, profiles), key=len, reverse=True)


def full_profiles_of(columns: Iterable[PersonColumn]) -> list[tuple[PersonColumn, ...]]:
    """Those of which records that differ are of different people, as by a year of birth alone they
    need not be: several columns, or a birth to the day.
    """
    profiles = profiles_of(columns)
    return [p for p in profiles if len(p) > 1 or (p[0].name.kind, p[0].look.kind) == BIRTHDAY]


def recurring(columns: Sequence[PersonColumn], rows: np.ndarray) -> tuple[PersonColumn, ...]:
    """The columns by which people recur in these rows, if they do. rows: one record of each number,
    or all records where nothing numbers people.

    All rows are counted: of some, drawn by their numbers, hardly two would be of one person. Those
    who grow older from one record to the next recur by the rest of a profile.
    """
    profiles = profiles_of(columns)
    found = next((profile for profile in profiles if recur(profile, rows)), ())
    waves = [c for c in columns if says_when(c)]
    return found or next((rest for one in profiles if (rest := _older(one, rows, waves))), ())


def says_when(column: PersonColumn) -> bool:
    """Whether it may say in which year or wave a record was made."""
    is_named = column.name.has("wave", "year") and column.seen <= MOST_WAVES
    is_other = column.varies and not column.name.is_personal
    return is_other and (is_named or column.look.kind == "time")


def recur(profile: Sequence[PersonColumn], rows: np.ndarray) -> bool:
    """Whether records of one birth, or of one value of what tells most apart, agree on the rest of
    a profile far more often than records of neighbouring births.

    Who hangs together without recurring, as newborns and their mothers do by age and sex, does so
    among neighbours, too; a person's own records agree, however many others have their birth.
    """
    first = max(profile, key=lambda c: (c.name.kind in ("birth", "age"), c.seen))
    rows, ranks = middle_births(first, rows)
    has_values = np.logical_and.reduce([c.people.is_value[rows] for c in profile])
    rows, ranks = rows[has_values], ranks[has_values]
    others = [c.people.among(rows) for c in profile if c is not first]
    tried = [(ranks, others)] if others else []
    if first.name.kind == "birth":
        year, day = first.birthdays_among(rows)
        tried.append((day, [year, *others]))
    return len(rows) > 0 and any(
        agree_beyond_neighbours(one, People.together(rest).keys) for one, rest in tried
    )


def middle_births(column: PersonColumn, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows with a birth, and its rank; of very many, the births around the middle one, whole."""
    if not (has_birth := column.people.is_value[rows]).all():
        rows = rows[has_birth]
    ranks = column.ranks_among(rows)
    if len(rows) <= MOST_RANKED:
        return rows, ranks
    counted = (np.bincount(ranks[part], minlength=ranks.max() + 1) for part in blocks(len(rows)))
    first, last = np.searchsorted(
        np.cumsum(sum(counted)), (len(rows) + np.array([-MOST_RANKED, MOST_RANKED])) // 2
    )
    kept = np.flatnonzero((ranks >= first - 1) & (ranks <= last + 1))  # with their neighbours
    return rows[kept], ranks[kept]


def _older(
    profile: Sequence[PersonColumn], rows: np.ndarray, waves: Sequence[PersonColumn]
) -> tuple[PersonColumn, ...]:
    """The rest of a profile but for an age, if people recur by it who grow older: records of one
    birth, by the age and the year or number of a wave, agree on it, or those whose ages are some
    years apart do rather than those of one age, or those of four years, as a birth may be off by
    one.
    """
    first, *others = profile
    if first.name.kind not in ("birth", "age") or not others:
        return ()

    def agree(rest: Sequence[PersonColumn], is_born: bool) -> bool:
        alike = People.together([c.people.among(rows) for c in rest])
        some = alike.sampled(4 * MOST_ROWS)  # all records of those who agree
        ages, keys = first.numbers_among(rows[some]), alike.keys[some]
        if is_born:
            births = (wave.years_among(rows[some]) - ages for wave in waves)
            return any(agree_by_years(years, keys, grow=False) for years in births)
        tried = [(ages / step, True) for step in STEPS] + [(ages / 4, False)]
        return alike.distinct >= FEWEST and any(agree_by_years(y, keys, grow) for y, grow in tried)

    if first.name.kind == "age" and agree(others, is_born=True):
        return tuple(others)
    # children's height grows, too
    rest = tuple(c for c in others if not c.name.has("body"))
    is_told = any(c.name.kind != "sex" for c in rest)
    return rest if is_told and agree(rest, is_born=False) else ()


def in_turns(columns: Sequence[PersonColumn]) -> tuple[PersonColumn, ...]:
    """The columns that change only where another one begins anew, as those of who stands in several
    rows one below another, by eyes or times, if age or birth and all else that is personal do.
    """
    for turn in columns:
        begins = begins_of_turns(turn)
        if not begins.any():
            continue
        steady = [c for c in columns if c is not turn and _changes_at(begins, c.people.keys)]
        personal = [c for c in columns if c is not turn and c.name.is_personal]
        births = [c.people.keys[begins] for c in personal if c.name.kind in ("birth", "age")]
        if {*personal} <= {*steady} and any(not _go_round(ages) for ages in births):
            return tuple(steady)
    return ()


def begins_of_turns(column: PersonColumn) -> np.ndarray:
    """(n,) bool, the rows where a few values that follow one another always in the same order begin
    anew, as `left, right, left, right` does; none of a column of others.
    """
    keys, values = column.people.keys, column.people.first
    none = np.zeros(len(keys), dtype=bool)
    if not column.has_few(MOST_WAVES) or column.lacking:
        return none
    place = np.zeros(column.people.room, dtype=np.int64)
    place[keys[values]] = np.arange(len(values))
    for some in (keys[:1_000], keys):  # most columns show by the first that they are others
        places = place[some]
        begins = places == 0
        if not (begins[1:] | (np.diff(places) == 1)).all():
            return none
    return begins if MANY <= begins.sum() <= len(keys) / OFTEN else none


def _go_round(values: np.ndarray) -> bool:
    """Whether nearly each repeats and is followed by the same one, as in tables of all groups."""
    seen = OFTEN * distinct(values)
    return distinct(values[1:], values[:-1]) < seen < len(values)


def _changes_at(begins: np.ndarray, keys: np.ndarray) -> bool:
    """Whether values change only at the rows where something begins, and mostly there."""
    is_same = keys[1:] == keys[:-1]
    within, between = is_same[~begins[1:]].mean(), is_same[begins[1:]].mean()
    return bool(between <= COMMON and within - between >= STEADY * (1 - between))


def full_names_recur(column: PersonColumn) -> bool:
    """Whether records of one last word of full names have the same first ones more often than by
    chance, as people do who recur, and namesakes do not.
    """
    firsts, lasts = (
        column.texts.str.extract_groups(r"^(.*\S)\s+(\S+)$").struct.unnest().drop_nulls()
    )
    ranks = lasts.rank("dense").to_numpy().astype(np.int64) - 1
    return len(ranks) > 0 and agree_beyond_neighbours(ranks, firsts.hash().to_numpy())


def by_name(columns: Sequence[PersonColumn]) -> Candidate | None:
    """First and last name, with the birth if there is one, or initials and the birth, which tells
    them apart; None where they are not of one person.

    Two columns, and a year of birth beside them, count where people recur by them.
    """
    varied = {c.name.kind: c for c in reversed(columns) if c.varies}
    first, birth = varied.get("first"), varied.get("birth")
    last = varied.get("last") or varied.get("name")
    if last is None or (first is None and birth is None):
        return None
    tried = [(first, last, birth), (first, last) if first else (last, birth)]
    for parts in (tuple(filter(None, some)) for some in tried):
        found = Candidate.of(*parts)
        if first is None and found.people.distinct < CROSSING * last.people.distinct:
            continue
        if not found.people.repeated or found.weigh(columns).is_contradicted:
            continue
        tells_apart = len(parts) > 2 and birth is not None and birth.look.kind == "time"
        if tells_apart or recur(parts, np.arange(len(found.people.keys))):
            return found
    return None


def agree_by_years(years: np.ndarray, keys: np.ndarray, grow: bool) -> bool:
    """Whether records of one year have one key more often than those of neighbouring years; where
    people grow, less often. years: (n,) float64, of which those that are none are left out.
    """
    is_year = np.abs(years) < MOST_KEYS
    ranks = np.floor(years[is_year]).astype(np.int64)
    return len(ranks) > 0 and agree_beyond_neighbours(ranks - ranks.min(), keys[is_year], grow)


def agree_beyond_neighbours(ranks: np.ndarray, keys: np.ndarray, swap: bool = False) -> bool:
    """Whether records of one rank have one key more often than records of neighbouring ranks, or
    these more often than those.

    ranks, keys: (n,) of each record. swap: whether it is the neighbours that agree. A rank of far
    more records than its neighbours may stand for an unknown birth, and is left out.
    """
    is_dense = keys.max() < len(keys)
    key = keys.astype(np.int64) if is_dense else np.unique(keys, return_inverse=True)[1]
    width = int(key.max()) + 1
    # a cell holds the records of one rank and one key
    key += np.multiply(ranks, width, dtype=np.int64)
    cells, held = _counted(key, (int(ranks.max()) + 1) * width)
    of_cell = np.unique(cells // width, return_inverse=True)[1]
    records = np.bincount(of_cell, held).astype(np.int64)
    beside = _at_neighbours(np.arange(len(records)), records, 1)
    is_judged = (records > 1) & (records <= UNKNOWN * beside)
    alike = _at_neighbours(of_cell * width + cells % width, held, width)
    kept = is_judged[of_cell]
    if not kept.any():
        return False
    held, of_cell, alike = held[kept], of_cell[kept], alike[kept]
    records, beside = records[of_cell], beside[of_cell]
    own, near = (held - 1) / (records - 1), alike / beside
    agree, chance = (float(np.average(shares, weights=held)) for shares in (own, near))
    again = float((held * (own - near) * (records - 1)).sum())
    if swap:  # as some siblings do, too, who are a year apart
        agree, chance, again = chance, agree, -again / 3
    # by how much it varies: by pairs, and where many pairs share a record, by records
    by_pairs = max(chance * (1 - chance), 1 / len(keys))
    by_pairs *= float((held * (2 / (records - 1) + 1 / beside)).sum())
    moved = 2 * own - near
    moved -= np.bincount(of_cell, held * moved)[of_cell] / records
    by_records = float((held * (1 + records / beside) * moved**2).sum()) / 2
    beyond = agree - chance
    is_chance = beyond * held.sum() < SIGNIFICANT * max(by_pairs, by_records) ** 0.5
    is_far = beyond >= min(RECURRING * (1 - chance), (FAR - 1 - swap) * chance)
    is_often = again >= max(FEWEST_AGAIN, AGAIN * len(keys))
    return chance <= NEARLY_CONSTANT and is_often and is_far and not is_chance


def _counted(numbers: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct numbers, ascending, and how often each occurs. room: above all of them."""
    if room > len(numbers):
        return np.unique(numbers, return_counts=True)
    counts = np.bincount(numbers)
    return np.flatnonzero(counts), counts[counts > 0]


def _at_neighbours(places: np.ndarray, counts: np.ndarray, step: int) -> np.ndarray:
    """What is counted a step before and behind each place. places: ascending."""
    found = np.zeros(len(places), dtype=np.int64)
    for wanted in (places - step, places + step):
        at = np.minimum(np.searchsorted(places, wanted), len(places) - 1)
        found += np.where(places[at] == wanted, counts[at], 0)
    return found
