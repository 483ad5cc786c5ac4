"""What a ledger's private part remembers of people who are published again and again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from shoal.data.panel import LIVE, Panel, PanelChange
from shoal.jobs.republish.identities import Identities, read_table, write_table
from shoal.state.ledger import Ledger

MEMBERS, GROUPS, CARRIED_VALUES = "members.parquet", "groups.parquet", "carried.parquet"
PANEL_FILES = (MEMBERS, GROUPS, CARRIED_VALUES)
"""Each step replaces them, as the waiting records."""

_TOKEN = ""  # the column of tokens: no data column has an empty name
_WORD = "rounds{}"
_BITS = 64


def _no_tokens() -> np.ndarray:
    return np.zeros(0, dtype=np.uint64)


def has_panel(ledger: Ledger) -> bool:
    """Whether the last step of a ledger remembers groups of people."""
    return (ledger.step_folder(ledger.last_step().number) / MEMBERS).exists()


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
    def read(cls, ledger: Ledger, mode: str) -> PanelState | None:
        """That of the last step; None where it has none."""
        folder = ledger.step_folder(ledger.last_step().number)
        members, groups = read_table(folder / MEMBERS), read_table(folder / GROUPS)
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
        values = read_table(folder / CARRIED_VALUES)
        tokens, records = members["token"].to_numpy(), members["record"].to_numpy()
        return cls(panel, tokens, records, None if values is None else values.drop(_TOKEN))

    def places(self, tokens: np.ndarray) -> np.ndarray:
        """(n,) int32, where each of these people stands in the panel; -1 for others."""
        if not len(self.tokens):
            return np.full(len(tokens), -1, dtype=np.int32)
        at = np.minimum(np.searchsorted(self.tokens, tokens), len(self.tokens) - 1)
        return np.where(self.tokens[at] == tokens, at, -1).astype(np.int32)

    def published(
        self, release: int, identities: Identities, founded: np.ndarray, values: pl.DataFrame | None
    ) -> PanelState:
        """The state after a release. identities: of its rows; founded: the new group of each row,
        -1 for people who have one; values: the sensitive cells of each row, where they are carried.
        """
        assert identities.subjects is not None  # checked with the policy
        rounds = _with_room(self.panel.rounds, release)
        place = self.places(identities.subjects)
        word, bit = divmod(release - 1, _BITS)
        rounds[place[place >= 0], word] |= np.uint64(1 << bit)
        new = np.flatnonzero(founded >= 0)
        fresh = np.zeros((len(new), rounds.shape[1]), dtype=np.uint64)
        fresh[:, word] = np.uint64(1 << bit)
        tokens = np.concatenate([self.tokens, identities.subjects[new]])
        order = np.argsort(tokens, kind="stable")
        panel = replace(
            self.panel,
            group=np.concatenate([self.panel.group, founded[new]])[order],
            status=np.concatenate([self.panel.status, np.full(len(new), LIVE, np.int8)])[order],
            rounds=np.concatenate([rounds, fresh])[order],
        )
        records = np.concatenate([self.records, identities.records[new]])[order]
        if values is not None:
            shown = values[new]
            values = (shown if self.values is None else pl.concat([self.values, shown]))[order]
        return PanelState(panel, tokens[order], records, values)

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


@dataclass(frozen=True)
class PlannedPanel:
    """What a planned release makes of the panel.

    founded: (n,) the new group of the person of each planned row, -1 for people who have one.
    values: the sensitive cells of each row, where they are carried.
    stated: what the certificate says of it.
    """

    before: PanelState
    change: PanelChange
    founded: np.ndarray
    values: pl.DataFrame | None
    stated: Mapping[str, Any]

    def after(self, release: int, identities: Identities) -> PanelState:
        """identities: of the planned rows, in their order, numbered."""
        state = replace(self.before, panel=self.change.after)
        return state.published(release, identities, self.founded, self.values)


def _with_room(rounds: np.ndarray, release: int) -> np.ndarray:
    """The same bits, with a word for this release."""
    missing = (release - 1) // _BITS + 1 - rounds.shape[1]
    wider = np.zeros((len(rounds), max(missing, 0)), dtype=np.uint64)
    return np.concatenate([rounds, wider], axis=1)
