"""What a release kept of its original that tells whose rows are whose: keys, and the order of rows.

Rows that stand where they stood fit their original's cells; by how many rows, or people with their
rows, fit more often than chance explains, this is found whatever made the release.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from shoal.auditor.linked.labels import view_of
from shoal.auditor.linked.matching import TRIED
from shoal.auditor.linked.reading import LinkedRelease, ReleasedTable, is_beyond_chance
from shoal.data.linked import LinkedRows, LinkedTables, places_of
from shoal.data.numbers import run_entries
from shoal.data.person_names import names_of
from shoal.data.release import spans_cover
from shoal.data.schema import Role
from shoal.data.truth import as_values
from shoal.data.warnings import GRAVE, ReleaseWarning

DRAWN = 30  # times that blocks are paired by chance
DIGESTS = {32: "md5", 40: "sha1", 64: "sha256"}
"""By their number of hexadecimal digits."""


@dataclass(frozen=True)
class _Blocks:
    """Rows that stand together, in their order. starts: (blocks + 1,) where each begins in rows."""

    rows: np.ndarray
    starts: np.ndarray

    @classmethod
    def of_one(cls, rows: np.ndarray) -> "_Blocks":
        return cls(rows, np.arange(len(rows) + 1))

    @classmethod
    def by(cls, owner: np.ndarray, source: np.ndarray) -> "_Blocks":
        """The rows of each owner, by the first of them. source: where each row stands."""
        first = np.full(owner.max(initial=-1) + 1, len(source))
        np.minimum.at(first, owner, source)
        rows = np.lexsort((source, first[owner]))
        begins = np.flatnonzero(np.diff(first[owner[rows]], prepend=-1))
        return cls(rows, np.append(begins, len(rows)))

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.starts)


def kept_of_original(
    release: LinkedRelease, original: LinkedTables, rng: np.random.Generator
) -> Iterator[tuple[str, int, ReleaseWarning]]:
    """What of the original tells whose rows are whose, with its kind of fault and how often: keys,
    and the order of whole tables.
    """
    truth = view_of(original)
    for name, shown in release.tables.items():
        if shown.declared.separator is not None:
            continue
        own, key, fits = original.rows[name], shown.declared.key, _Fits(release, original, name)
        if key is not None and key in shown.table.names:
            for what, rows, others in _paired_by_keys(shown, own, key):
                if count := fits.beyond_chance(_Blocks.of_one(rows), _Blocks.of_one(others), rng):
                    said = _told(name, f"keys in column '{key}' {what}", "draw new ones")
                    yield "kept_keys", count, said
                    break
        if shown.rows == own.count:
            place = np.arange(shown.rows) if shown.table.source is None else shown.table.source
            blocks = _together(release.view.path(name), place, truth.path(name), own.source)
            if fits.beyond_chance(*blocks, rng):
                yield "kept_order", 1, _told(name, "rows stand in the order", "shuffle them")


def _paired_by_keys(
    shown: ReleasedTable, own: LinkedRows, key: str
) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Rows of a release, and those of its original that are theirs if its keys were not drawn: as
    they were, hashed without a secret, or in an order of the original, such as numbered anew.
    """
    new, old = names_of(shown.table.frame[key]), names_of(own.table.frame[key])
    for what, keys in _kept_or_hashed(new, old):
        place = places_of(keys, new)
        rows = np.flatnonzero(place >= 0)
        yield what, rows, place[rows]
    if len(new) == len(old):
        for order in (np.argsort(own.source), old.arg_sort().to_numpy(), _by_size(old)):
            for others in (order, order[::-1]):
                yield "ascend or descend with rows or keys", _by_size(new), others


def _kept_or_hashed(new: pl.Series, old: pl.Series) -> Iterator[tuple[str, pl.Series]]:
    """Keys that a release may have made of those of its original, and what they would be."""
    yield "are those", old
    digits = int(new.str.len_chars().max() or 0)  # type: ignore[arg-type]
    if name := DIGESTS.get(digits):
        hashed = [hashlib.new(name, text.encode()).hexdigest() for text in old.to_list()]
        yield f"are {name} digests of those", pl.Series(hashed, dtype=pl.String)


def _by_size(keys: pl.Series) -> np.ndarray:
    """The order of keys by length, then as text: whole numbers stand by size, with a word before
    them, too.
    """
    frame = pl.DataFrame({"size": keys.str.len_chars(), "key": keys})
    return frame.select(pl.arg_sort_by("size", "key")).to_series().to_numpy()


def _together(
    shown: list[np.ndarray], place: np.ndarray, own: list[np.ndarray], source: np.ndarray
) -> tuple[_Blocks, _Blocks]:
    """The rows of a release and of its original in what may be shuffled: a row, or all rows that
    hang from one where these stand together, as their order says nothing of whose they are.

    shown, own: as `View.path`. place, source: where each row stands in its file.
    """
    for owner, of_original in zip(shown, own, strict=True):
        found = _Blocks.by(owner, place), _Blocks.by(of_original, source)
        if np.array_equal(place[found[0].rows], np.sort(place)):
            break
    return found


def _told(table: str, what: str, way_out: str) -> ReleaseWarning:
    text = f"table '{table}': {what} of the original, which tells whose rows are whose; {way_out}"
    return ReleaseWarning("linked-tables", text, severity=GRAVE)


class _Fits:
    """Which published rows of a table may be which of the original, by all their cells."""

    def __init__(self, release: LinkedRelease, original: LinkedTables, name: str) -> None:
        shown, own = release.tables[name], original.rows[name]
        self.spans = list(zip(shown.columns, own.true_values.values(), strict=True))
        self.texts = [
            as_values(a, shown.table, own.table)
            for a in own.about.schema.published
            if a.role in (Role.SENSITIVE, Role.PLAIN) and a.name in shown.table.names
        ]

    def beyond_chance(self, shown: _Blocks, own: _Blocks, rng: np.random.Generator) -> int:
        """How many blocks fit those of the original, the first the first; 0 where blocks in any
        other order would.
        """
        tried = rng.permutation(min(shown.count, own.count))[:TRIED]
        drawn = [self._fitting(shown, tried, own, rng.permutation(tried)) for _ in range(DRAWN)]
        most = np.mean(drawn) + 4 * np.std(drawn) / np.sqrt(DRAWN) + 1 / DRAWN
        found = self._fitting(shown, tried, own, tried)
        chance = np.full(len(tried), most / max(len(tried), 1))
        return int(found) if is_beyond_chance(found, chance) else 0

    def _fitting(self, shown: _Blocks, these: np.ndarray, own: _Blocks, those: np.ndarray) -> float:
        """How many blocks fit others, each by the share of its rows that do, in their order."""
        sizes = np.stack([shown.sizes[these], own.sizes[those]])
        both = sizes.min(axis=0)
        block, place = run_entries(shown.starts[these], both)
        rows = shown.rows[place]
        others = own.rows[run_entries(own.starts[those], both)[1]]
        fits = np.ones(len(rows), dtype=bool)  # which rows may be which of the original
        for column, values in self.spans:
            codes = column.codes[rows]
            fits &= spans_cover(column.lo[codes], column.hi[codes], values[others])
        for text, of_original in self.texts:
            fits &= (text.gather(rows) == of_original.gather(others)).to_numpy()
        return float((np.bincount(block, fits, len(both)) / sizes.max(axis=0)).sum())
