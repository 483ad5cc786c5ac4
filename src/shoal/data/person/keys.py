"""Parts of keys that number people, where the keys themselves differ in each record."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from shoal.data.person.candidates import MANY, Candidate
from shoal.data.person.columns import (
    ANEW,
    COUNTED,
    EXCEPTIONS,
    FEWEST,
    JOINED,
    LETTERED,
    NEARLY_ALL,
    PARTED,
    STRONG,
    People,
    PersonColumn,
    is_value,
    parts_of,
)
from shoal.data.person.within_groups import (
    MOST_KEYS,
    MOST_WAVES,
    end_sooner,
    is_doubtful,
    is_of_no_person,
    issued,
)

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
OFTEN = 1.5  # records of each of whom keys begin with, on average


def in_keys(columns: Sequence[PersonColumn], telling: Sequence[PersonColumn]) -> list[Candidate]:
    """Parts of keys that number people, and what a group may have given to them."""
    found = [*_parts_of_keys(telling)]
    given = issued(columns, is_beside_key=True) if found else []
    return found + [one for one in given if is_doubtful(one, telling)]


def _parts_of_keys(columns: Sequence[PersonColumn]) -> Iterator[Candidate]:
    """What repeats in keys that number every record: what stands before any sign, as `P001` does in
    `P001_1.png`, or behind a year, as in `2021-P001`, unless other columns contradict it.

    Where numbers do not show it by themselves, other columns have to confirm it.
    """
    looks = {**dict.fromkeys(STEMS, _by_stem), COUNTED: _before_counter}
    looks |= {LETTERED: _before_counter, **dict.fromkeys(PARTED, _behind_waves)}
    for column in columns:
        is_key = column.is_parted and column.look.kind in ("text", "span")
        is_of_nobody = is_of_no_person(column) and not column.name.ends("issued")
        if not is_key or is_of_nobody or column.look.token in STRONG or column.repeats(FEWEST):
            continue
        for part, look in looks.items():
            people, is_seen = look(column.texts, part)
            if not people.repeat_seldom(FEWEST):
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


def _behind_waves(texts: pl.Series, pattern: str) -> tuple[People, bool]:
    """The records by what stands behind the first part of their keys, as `P001` in `2021-P001` and
    `T1_P001`; and whether that is one of a few waves, in which some are left out, or all have as
    many: numbers of what happened, or of a site's people, are given one after the other.
    """
    of = parts_of(texts, pattern)
    people = People(of.hash().to_numpy(), is_value(texts))
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
