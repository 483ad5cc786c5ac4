"""What a ledger's private part remembers of people who are published again and again."""

from __future__ import annotations

import io
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger import Ledger
from shoal.data.ledger_view import LIVE, Panel
from shoal.data.numbers import places_among

# Tables of a ledger's private part, each in a file of its own.


def write_table(frame: pl.DataFrame, path: Path) -> None:
    content = io.BytesIO()
    frame.write_parquet(content)
    # a full disk is an OSError here, which it is not where Polars writes
    path.write_bytes(content.getbuffer())


def read_table(path: Path) -> pl.DataFrame | None:
    return pl.read_parquet(path) if path.exists() else None


MEMBERS, GROUPS, CARRIED_VALUES = "members.parquet", "groups.parquet", "carried.parquet"
PANEL_FILES = (MEMBERS, GROUPS, CARRIED_VALUES)
"""Each step replaces them, as the waiting records."""

_TOKEN = ""  # the column of tokens: no data column has an empty name
_WORD = "rounds{}"
_BITS = 64


def has_panel(step: Path) -> bool:
    """Whether a private step remembers groups of people."""
    return (step / MEMBERS).exists()


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
        return cls(panel, tokens, records, None if values is None else values.drop(_TOKEN))

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
            tokens = pl.Series(_TOKEN, self.tokens)
            write_table(self.values.with_columns(tokens), folder / CARRIED_VALUES)


def _with_room(rounds: np.ndarray, release: int) -> np.ndarray:
    """The bits of all rounds, with a word for this release."""
    missing = (release - 1) // _BITS + 1 - rounds.shape[1]
    wider = np.zeros((len(rounds), max(missing, 0)), dtype=np.uint64)
    return np.concatenate([rounds, wider], axis=1)


# Records that wait in the private part of a ledger.


PENDING, WAITED, ARRIVALS = "pending.parquet", "waited.parquet", "arrivals.parquet"
LAST_INCREMENTS = 4
"""Increments by which it is judged how many records the next one has."""


@dataclass(frozen=True)
class DeferredRecords:
    """Records that wait for a later release, and why.

    returning: people of the increment whose earlier records wait already. panel: of people who come
    again; None with methods that publish everybody once.
    waited: (n,) int32, how many increments each has waited through. arrivals: records of the last
    increments, where that matters. left_out: records that waited too long, and are gone.
    """

    frame: pl.DataFrame | None = None
    reasons: tuple[str, ...] = ()
    returning: int = 0
    panel: PanelState | None = None
    waited: np.ndarray | None = None
    arrivals: tuple[int, ...] = ()
    left_out: int = 0

    @classmethod
    def of(cls, ledger: Ledger) -> DeferredRecords:
        """Those of the last step."""
        folder = ledger.last_folder
        waited, arrivals = read_table(folder / WAITED), read_table(folder / ARRIVALS)
        return cls(
            read_table(folder / PENDING),
            waited=None if waited is None else waited["waited"].to_numpy(),
            arrivals=() if arrivals is None else tuple(arrivals["records"].to_list()),
        )

    @property
    def records(self) -> int:
        return 0 if self.frame is None else self.frame.height

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
        if self.arrivals:
            waited = pl.DataFrame({"waited": self.increments_waited})
            write_table(waited, folder / WAITED)
            write_table(pl.DataFrame({"records": self.arrivals}), folder / ARRIVALS)
