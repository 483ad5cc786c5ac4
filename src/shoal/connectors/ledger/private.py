"""What the private part of a ledger remembers of people: who stands behind each published row, who
is published again and again, who waits, and who was ever published.
"""

from __future__ import annotations

import hashlib
import io
import os
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger import RUN, Ledger
from shoal.data.ledger_view import LIVE, Panel
from shoal.data.numbers import places_among
from shoal.data.person_names import are_spelled_otherwise, bare_names
from shoal.errors import LedgerError

# Tables of a ledger's private part, each in a file of its own.


def write_table(frame: pl.DataFrame, path: Path) -> None:
    content = io.BytesIO()
    frame.write_parquet(content)
    # a full disk is an OSError here, which it is not where Polars writes
    path.write_bytes(content.getbuffer())


def read_table(path: Path) -> pl.DataFrame | None:
    return pl.read_parquet(path) if path.exists() else None


def in_columns(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """Its columns of these names; what it lacks is empty, as columns that a policy drops may be."""
    none = pl.DataFrame(schema=dict.fromkeys(names, pl.String))
    return pl.concat([none, frame], how="diagonal").select(names)


# Who stands behind each row.


ROWS = "rows.parquet"
_COLUMNS = {"records": "record", "subjects": "subject"}
"""Of its fields, those with a name of their own in the file."""


@dataclass(frozen=True)
class Identities:
    """Who stands behind each published row.

    records: (n,) int64, the running number of each record, the same in every release; -1 where it
    has none yet or the row is invented.
    subjects: (n,) uint64 tokens, None where every record is its own person.
    invented, changed: (n,) bool; None where no row is. changed: the record is an update of what was
    published.
    """

    records: np.ndarray
    subjects: np.ndarray | None = None
    invented: np.ndarray | None = None
    changed: np.ndarray | None = None

    @classmethod
    def unknown(cls, rows: int) -> Identities:
        """Those of a release whose private part is missing."""
        return cls(np.full(rows, -1, dtype=np.int64))

    @property
    def are_known(self) -> bool:
        return bool((self.records[self.is_real] >= 0).all())

    @property
    def people(self) -> np.ndarray:
        """(n,) the token of each row's person; its number where every record is its own person."""
        return self.records if self.subjects is None else self.subjects

    @property
    def is_real(self) -> np.ndarray:
        """(n,) bool; all rows but the invented ones."""
        return np.ones(len(self.records), dtype=bool) if self.invented is None else ~self.invented

    @property
    def _known(self) -> dict[str, np.ndarray]:
        """What is known of every row, by field."""
        return {name: part for name, part in vars(self).items() if part is not None}

    @property
    def is_changed(self) -> np.ndarray:
        return np.zeros(len(self.records), dtype=bool) if self.changed is None else self.changed

    def take(self, rows: np.ndarray) -> Identities:
        return replace(self, **{name: part[rows] for name, part in self._known.items()})

    def numbered(self, following: int) -> Identities:
        """The identities, new records numbered from `following` on."""
        new = (self.records < 0) & self.is_real
        records = self.records.copy()
        records[new] = following + np.arange(int(new.sum()))
        return replace(self, records=records)

    @classmethod
    def joined(cls, parts: Sequence[Identities]) -> Identities:
        """The rows of several releases or increments, one after the other."""
        subjects = [part.subjects for part in parts if part.subjects is not None]
        return cls(
            np.concatenate([part.records for part in parts]),
            np.concatenate(subjects) if len(subjects) == len(parts) else None,
            np.concatenate([~part.is_real for part in parts]),
            np.concatenate([part.is_changed for part in parts]),
        )

    def write_rows(self, folder: Path) -> None:
        columns = {_COLUMNS.get(name, name): part for name, part in self._known.items()}
        write_table(pl.DataFrame(columns), folder / ROWS)

    @classmethod
    def read(cls, folder: Path) -> Identities:
        """Those of the release that a private step led to; LedgerError where they are lost."""
        frame = read_table(folder / ROWS)
        if frame is None:
            raise LedgerError(
                f"private step {folder.name}: {ROWS} is missing; restore the private part"
            )
        fields = {column: name for name, column in _COLUMNS.items()}
        return cls(**{fields.get(name, name): frame[name].to_numpy() for name in frame.columns})


# Whole records behind a release, which methods keep that publish the whole table anew.


ORIGINALS = "originals.parquet"
_KEY = ""  # the column of record numbers, or of tokens: no data column has an empty name


def read_originals(ledger: Ledger) -> tuple[pl.DataFrame, np.ndarray] | None:
    """The whole records behind the last release, with their numbers; None where none are kept."""
    kept = read_table(ledger.last_folder / ORIGINALS)
    return None if kept is None else (kept.drop(_KEY), kept[_KEY].to_numpy())


# Who was ever published in a ledger, and by which token each person is known there.


class KnownPeople:
    """Everybody published so far.

    In sorted runs of tokens, of each name and of each bare name, that are merged when they are of
    like size, so that looking up stays cheap, and each token is seldom written again: an increment
    writes the same however many people a ledger holds.
    """

    def __init__(self, ledger: Ledger | None = None) -> None:
        """ledger: whose people are known already; under its lock only."""
        self.runs = [] if ledger is None else list(ledger.runs().values())

    def holds(self, people: np.ndarray) -> np.ndarray:
        """Which of these tokens are known; (n,) bool."""
        known = np.zeros(len(people), dtype=bool)
        for run in self.runs:
            known |= places_among(run, people) >= 0
        return known

    def add_and_count_known(self, subjects: np.ndarray, named: NamedPeople | None = None) -> int:
        """Add these tokens; how many of them were known before. named: who may be among them."""
        people = np.unique(subjects)
        is_known = self.holds(people)
        fresh = people[~is_known]
        if named is not None:
            fresh = np.sort(np.concatenate([fresh, named.only(fresh).bare]))
        while self.runs and len(self.runs[-1]) <= len(fresh):
            fresh = np.sort(np.concatenate([self.runs.pop(), fresh]), kind="stable")
        if len(fresh):
            self.runs.append(fresh)
        return int(is_known.sum())

    def taken_for_others(self, names: pl.Series, named: NamedPeople, key: bytes) -> int:
        """How many are known under another spelling alone.

        Of people who are known, as many are spelled otherwise as there are with the bare name, less
        those who stand here under their own. names: distinct, `named` by the key.
        """
        is_known = self.holds(named.tokens)
        strange, here = named.bare[~is_known], np.sort(named.bare[is_known])
        known = sum(_times(run, strange) for run in self.runs)
        taken = known > _times(here, strange)
        others, own = names.filter(~is_known).filter(~taken), np.sort(named.tokens)

        def are_known(spelled: pl.Series) -> np.ndarray:
            tokens = _tokens(spelled, key)
            return self.holds(tokens) & (places_among(own, tokens) < 0)

        return int(taken.sum() + are_spelled_otherwise(others, are_known).sum())


def _times(ascending: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """(n,) how often each stands among ascending numbers."""
    ends = (np.searchsorted(ascending, asked, side) for side in ("right", "left"))
    return np.subtract(*ends)


_BARE = "\0"
"""Begins what the token of a bare name is made of, and no name: nobody sees it."""


@dataclass(frozen=True)
class NamedPeople:
    """The people of an increment, and those who wait.

    tokens: (n,) uint64, by which each is known. bare: (n,) uint64, those of their `bare_names`.
    """

    tokens: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    bare: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))

    @classmethod
    def of(cls, names: pl.Series, key: bytes) -> NamedPeople:
        return cls(_tokens(names, key), _tokens(_BARE + bare_names(names), key))

    def only(self, tokens: np.ndarray) -> NamedPeople:
        """Those of them who have one of these tokens."""
        rows = np.isin(self.tokens, tokens)
        return NamedPeople(self.tokens[rows], self.bare[rows])

    def joined(self, other: NamedPeople) -> NamedPeople:
        """All of both, once each."""
        tokens, first = np.unique(np.concatenate([self.tokens, other.tokens]), return_index=True)
        return NamedPeople(tokens, np.concatenate([self.bare, other.bare])[first])


def write_known(
    ledger: Ledger, identities: Identities, named: NamedPeople, folder: Path
) -> tuple[int, ...]:
    """Adds the release's people to those ever published; the steps whose runs stay in use."""
    if identities.subjects is None:
        return ()
    known = KnownPeople(ledger)
    known.add_and_count_known(identities.subjects[identities.is_real], named)
    stay = [n for n, run in ledger.runs().items() if any(run is kept for kept in known.runs)]
    if len(stay) < len(known.runs):
        known.runs[-1].astype("<u8", copy=False).tofile(folder / RUN)
    return tuple(stay)


def token_of(name: str, key: bytes) -> str:
    """64 bits of BLAKE2, in hexadecimal."""
    return hashlib.blake2b(name.encode(), digest_size=8, key=key).hexdigest()


def as_numbers(tokens: pl.Series) -> np.ndarray:
    """(n,) uint64 of sixteen hexadecimal digits each; 0 for none."""
    text = tokens.fill_null("0" * 16).to_list()
    return np.frombuffer(bytes.fromhex("".join(text)), dtype=">u8").astype(np.uint64)


def _tokens(names: pl.Series, key: bytes) -> np.ndarray:
    return as_numbers(pl.Series([token_of(name, key) for name in names], dtype=pl.String))


# People who are published again and again.


MEMBERS, GROUPS, CARRIED_VALUES = "members.parquet", "groups.parquet", "carried.parquet"
_WORD = "rounds{}"
_BITS = 64


@dataclass(frozen=True)
class PanelState:
    """A panel with its people.

    tokens: (m,) uint64, rising. records: (m,) int64, the running number of each, in all releases.
    values: the sensitive cells that each showed, in the panel's order; None where none are carried.
    """

    panel: Panel
    tokens: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.uint64))
    records: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    values: pl.DataFrame | None = None

    @classmethod
    def read(cls, step: Path, mode: str) -> PanelState | None:
        """That of a private step; None where it has none."""
        members, groups = read_table(step / MEMBERS), read_table(step / GROUPS)
        if members is None or groups is None:
            return None
        words = [name for name in members.columns if name.startswith(_WORD.format(""))]
        rounds = np.stack([members[word].to_numpy() for word in words], axis=1)
        panel = Panel(
            mode,
            members["group"].to_numpy(),
            members["status"].to_numpy(),
            rounds,
            groups["silent"].to_numpy(),
            groups["loss"].to_numpy(),
        )
        values = read_table(step / CARRIED_VALUES)
        tokens, records = members["token"].to_numpy(), members["record"].to_numpy()
        return cls(panel, tokens, records, None if values is None else values.drop(_KEY))

    def places(self, tokens: np.ndarray) -> np.ndarray:
        """(n,) int32, where each of these people stands in the panel; -1 for others."""
        return places_among(self.tokens, tokens).astype(np.int32)

    def published(
        self,
        release: int,
        tokens: np.ndarray,
        records: np.ndarray,
        founded: np.ndarray,
        values: pl.DataFrame | None,
    ) -> PanelState:
        """The state after a release. tokens, records: the person and number of each of its rows;
        founded: the new group of each, -1 for people who have one; values: the sensitive cells of
        each, where they are carried.
        """
        rounds = _with_room(self.panel.rounds, release)
        place = self.places(tokens)
        word, bit = divmod(release - 1, _BITS)
        rounds[place[place >= 0], word] |= np.uint64(1 << bit)
        new = np.flatnonzero(founded >= 0)
        fresh = np.zeros((len(new), rounds.shape[1]), dtype=np.uint64)
        fresh[:, word] = np.uint64(1 << bit)
        people = np.concatenate([self.tokens, tokens[new]])
        order = np.argsort(people, kind="stable")
        panel = replace(
            self.panel,
            group=np.concatenate([self.panel.group, founded[new]])[order],
            status=np.concatenate([self.panel.status, np.full(len(new), LIVE, np.int8)])[order],
            rounds=np.concatenate([rounds, fresh])[order],
        )
        numbers = np.concatenate([self.records, records[new]])[order]
        if values is not None:
            shown = values[new]
            values = (shown if self.values is None else pl.concat([self.values, shown]))[order]
        return PanelState(panel, people[order], numbers, values)

    def write(self, folder: Path) -> None:
        panel = self.panel
        words = {_WORD.format(w): panel.rounds[:, w] for w in range(panel.rounds.shape[1])}
        members = {
            "token": self.tokens,
            "record": self.records,
            "group": panel.group,
            "status": panel.status,
            **words,
        }
        write_table(pl.DataFrame(members), folder / MEMBERS)
        write_table(pl.DataFrame({"silent": panel.silent, "loss": panel.loss}), folder / GROUPS)
        if self.values is not None:
            tokens = pl.Series(_KEY, self.tokens)
            write_table(self.values.with_columns(tokens), folder / CARRIED_VALUES)


def _with_room(rounds: np.ndarray, release: int) -> np.ndarray:
    """The bits of all rounds, with a word for this release."""
    missing = (release - 1) // _BITS + 1 - rounds.shape[1]
    wider = np.zeros((len(rounds), max(missing, 0)), dtype=np.uint64)
    return np.concatenate([rounds, wider], axis=1)


# Records that wait in the private part of a ledger.


PENDING, WAITED, ARRIVALS = "pending.parquet", "waited.parquet", "arrivals.parquet"
NAMED = "named.parquet"
LAST_INCREMENTS = 4
"""Increments by which it is judged how many records the next one has."""


@dataclass(frozen=True)
class DeferredRecords:
    """Records that wait for a later release, and why.

    returning: people of the increment whose earlier records wait already. panel: of people who come
    again; None with methods that publish everybody once.
    waited: (n,) int32, how many increments each has waited through. arrivals: records of the last
    increments, where that matters. left_out: records that waited too long, and are gone.
    named: of the last increment and of those who waited before; earlier versions kept none.
    """

    frame: pl.DataFrame | None = None
    reasons: tuple[str, ...] = ()
    returning: int = 0
    panel: PanelState | None = None
    waited: np.ndarray | None = None
    arrivals: tuple[int, ...] = ()
    left_out: int = 0
    named: NamedPeople = field(default_factory=NamedPeople)

    @classmethod
    def of(cls, ledger: Ledger) -> DeferredRecords:
        """Those of the last step."""
        folder = ledger.last_folder
        waited, arrivals = read_table(folder / WAITED), read_table(folder / ARRIVALS)
        named = read_table(folder / NAMED)
        columns = () if named is None else (column.to_numpy() for column in named)
        return cls(
            read_table(folder / PENDING),
            waited=None if waited is None else waited["waited"].to_numpy(),
            arrivals=() if arrivals is None else tuple(arrivals["records"].to_list()),
            named=NamedPeople(*columns),
        )

    @property
    def records(self) -> int:
        return 0 if self.frame is None else self.frame.height

    def frame_like(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The records in the columns of a frame; no rows where none wait."""
        return frame.clear() if self.frame is None else in_columns(self.frame, frame.columns)

    @property
    def increments_waited(self) -> np.ndarray:
        """(n,) int32; 0 where it was not counted."""
        return np.zeros(self.records, dtype=np.int32) if self.waited is None else self.waited

    def arrivals_with(self, now: int) -> tuple[int, ...]:
        """The records of this increment and of the last three before it."""
        return (*self.arrivals, now)[-LAST_INCREMENTS:]

    def after(self, deadline: int, arrivals: tuple[int, ...]) -> DeferredRecords:
        """Who still waits once this increment is over: whoever waited to the deadline leaves."""
        stays = self.increments_waited < deadline
        return replace(
            self,
            frame=None if self.frame is None else self.frame.filter(stays),
            waited=self.increments_waited[stays] + np.int32(1),
            arrivals=arrivals,
            left_out=int((~stays).sum()),
        )

    def write_pending(self, folder: Path) -> None:
        if self.frame is not None and self.frame.height:
            write_table(self.frame, folder / PENDING)
            write_table(pl.DataFrame(vars(self.named)), folder / NAMED)
        if self.arrivals:
            write_table(pl.DataFrame({"waited": self.increments_waited}), folder / WAITED)
            write_table(pl.DataFrame({"records": self.arrivals}), folder / ARRIVALS)


REPLACED = (PENDING, NAMED, ORIGINALS, WAITED, ARRIVALS, MEMBERS, GROUPS, CARRIED_VALUES)
"""Each step has its own, and those of the step before are removed: whole records are kept only
while they wait, and by methods that publish the whole table anew.
"""


def write_private_state(
    ledger: Ledger,
    waiting: DeferredRecords,
    identities: Identities | None,
    originals: pl.DataFrame | None,
    folder: Path,
) -> tuple[int, ...]:
    """Writes what the private part keeps of a step; the earlier steps whose runs stay in use.

    identities: None where nothing is published. originals: the whole records behind the real rows
    of the release; None where the method needs none.
    """
    waiting.write_pending(folder)
    if waiting.panel is not None:
        waiting.panel.write(folder)
    if identities is None:
        if (ledger.last_folder / ORIGINALS).exists():  # they stay as they were
            os.link(ledger.last_folder / ORIGINALS, folder / ORIGINALS)
        return tuple(number for number, _ in ledger.last_step().runs)
    identities.write_rows(folder)
    if originals is not None:
        numbers = pl.Series(_KEY, identities.records[identities.is_real])
        write_table(originals.with_columns(numbers), folder / ORIGINALS)
    return write_known(ledger, identities, waiting.named, folder)
