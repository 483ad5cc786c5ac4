"""What a ledger's private part remembers of people who are published again and again."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger.private_tables import read_table, write_table
from shoal.data.panel import LIVE, Panel

MEMBERS, GROUPS, CARRIED_VALUES = "members.parquet", "groups.parquet", "carried.parquet"
PANEL_FILES = (MEMBERS, GROUPS, CARRIED_VALUES)
"""Each step replaces them, as the waiting records."""

_TOKEN = ""  # the column of tokens: no data column has an empty name
_WORD = "rounds{}"
_BITS = 64


def _no_tokens() -> np.ndarray:
    return np.zeros(0, dtype=np.uint64)


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
    tokens: np.ndarray = field(default_factory=_no_tokens)
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
        if not len(self.tokens):
            return np.full(len(tokens), -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self.tokens, tokens), len(self.tokens) - 1)
        return np.where(self.tokens[at] == tokens, at, -1).astype(np.int32)

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
    """The same bits, with a word for this release."""
    missing = (release - 1) // _BITS + 1 - rounds.shape[1]
    wider = np.zeros((len(rounds), max(missing, 0)), dtype=np.uint64)
    return np.concatenate([rounds, wider], axis=1)
