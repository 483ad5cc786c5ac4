"""Growing tables of invented wearers, as the re-publication paper measures them.

A setting names the method, its parameters, k and how many increments have followed the first table.
Everything is read from releases that were written to a ledger, so that leaks and losses are those
of what the world would have seen.
"""

from __future__ import annotations

import hashlib
import io
import statistics
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import polars as pl
import yaml

from shoal.jobs.republish.identities import Identities
from shoal.jobs.republish.republish import republish_file
from shoal.policy.policy import Policy
from shoal.reproduce.paper import DataSet, Setting
from shoal.samples import wearables
from shoal.state.ledger import DATA, Ledger

RECORDS, INCREMENTS, REPEATS = 1500, 6, 3
QUICK_RECORDS, QUICK_INCREMENTS = 150, 2
QUASI = ("age", "height", "weight")


@dataclass(frozen=True)
class RepublicationBench:
    """Publishes the tables under each setting once and keeps what every release showed."""

    data: DataSet
    tables: tuple[pl.DataFrame, ...]
    repeats: int
    _chains: dict[tuple[Any, ...], list[dict[str, Any]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    def measure(self, setting: Setting) -> dict[str, Any]:
        asked = (setting["method"], setting["parameters"], setting["k"])
        if asked not in self._chains:
            self._chains[asked] = self._chain(*asked)
        return self._chains[asked][setting["increments"]]

    def _chain(self, method: str, parameters: str, k: int) -> list[dict[str, Any]]:
        """A row for each release; the first runs of a kernel, which compile it, are not timed."""
        pairs = dict(pair.split("=") for pair in parameters.split(",") if pair)
        policy = (
            Policy.from_dict(yaml.safe_load(wearables.POLICY)).with_k(k).with_method(method, pairs)
        )
        _published(self.tables[:2], policy)
        runs = [_published(self.tables, policy) for _ in range(self.repeats)]
        rows = runs[0]
        for place, row in enumerate(rows):
            seconds = [run[place]["seconds"] for run in runs]
            row |= {
                "seconds": statistics.median(seconds),
                "seconds_least": min(seconds),
                "seconds_most": max(seconds),
            }
        return rows


def _published(tables: tuple[pl.DataFrame, ...], policy: Policy) -> list[dict[str, Any]]:
    """What a fresh ledger shows after each of these increments."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="shoal-reproduce-") as folder:
        ledger, increment = Ledger(Path(folder) / "ledger"), Path(folder) / "increment.csv"
        lost = 0.0
        cells: dict[int, tuple[str, ...]] = {}
        for table in tables:
            table.write_csv(increment)
            done = republish_file(str(increment), policy, ledger.path, allow_leaks=True)
            assert done.certificate is not None
            assert done.release is not None
            certificate = done.certificate
            # the whole table's loss: an increment adds its own, a table takes the place of all
            # before
            own = certificate["utility"]["gcp"] * certificate["records"]["out"]
            lost = lost + own if certificate["covers"] == "increment" else own
            before, cells = cells, cells | _cells(ledger, done.release)
            found = {finding["check"]: finding for finding in certificate["history"]["findings"]}
            leak, small = found.get("specificity", {}), found.get("all cells", {})
            rows.append(
                {
                    "records": len(cells),
                    "classes": certificate["classes"]["count"],
                    "leaks": leak.get("records", 0),
                    "leaking_cells": leak.get("cells", 0),
                    "people_in_small_cells": small.get("people", 0),
                    "operations": _operations(before, cells),
                    "gcp": lost / len(cells),
                    "seconds": certificate["seconds"]["method"],
                }
            )
    return rows


def _cells(ledger: Ledger, release: int) -> dict[int, tuple[str, ...]]:
    """The published quasi-identifiers of every record of a release, by record number."""
    frame = pl.read_csv(ledger.folder(release) / DATA, infer_schema=False)
    records = Identities.read(ledger.step_of(release)).records
    return dict(zip(records.tolist(), frame.select(QUASI).rows(), strict=True))


def _operations(before: dict[int, tuple[str, ...]], after: dict[int, tuple[str, ...]]) -> int:
    """Cells that the step coarsened anew: not a single value, and not what was published
    already.
    """
    nothing = ("",) * len(QUASI)
    return sum(
        cell != old and cell.startswith("[")
        for record, cells in after.items()
        for cell, old in zip(cells, before.get(record, nothing), strict=True)
    )


def bench(data: Path | None, quick: bool) -> RepublicationBench:
    """The bundled generator, whatever folder of data sets there is: the paper's own set is not
    named.
    """
    records, increments = (QUICK_RECORDS, QUICK_INCREMENTS) if quick else (RECORDS, INCREMENTS)
    tables = tuple(wearables.generate(records, seed) for seed in range(1, increments + 2))
    text = io.BytesIO()
    for table in tables:
        table.write_csv(text)
    words = f"invented wearers (shoal sample wearables), {records} and {increments} times {records}"
    digest = hashlib.sha256(text.getvalue()).hexdigest()
    return RepublicationBench(
        DataSet(words, sum(t.height for t in tables), digest), tables, 1 if quick else REPEATS
    )
