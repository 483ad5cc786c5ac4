"""Records that wait in the private part of a ledger."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import polars as pl

from shoal.connectors.ledger import Ledger
from shoal.connectors.ledger.panel import PanelState
from shoal.connectors.ledger.private_tables import read_table, write_table

PENDING, WAITED, ARRIVALS = "pending.parquet", "waited.parquet", "arrivals.parquet"


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
        folder = ledger.step_folder(ledger.last_step().number)
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

    def after(self, deadline: int, arrivals: tuple[int, ...]) -> DeferredRecords:
        """The same once this increment is over: who waited so long before leaves."""
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
