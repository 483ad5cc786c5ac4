"""Growing tables of wearers, as the re-publication paper measures them.

Tables that *grow* by the paper's 1,500 records, increments of every *size*, real people who
*return* with each increment, and *impact* factors that are not 1: all is read from releases that
were written to a ledger, so that leaks and losses are those of what the world would have seen.
*Mixed* tables are clustered by several distances, and *movement* asks whose a published window is.
"""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import polars as pl

from shoal.connectors.ledger import DATA, Ledger
from shoal.connectors.ledger.private import Identities
from shoal.ledgers.republish import republish_file
from shoal.policy.policy import Policy
from shoal_papers.reproduce import axial_windows, mixed_bench, returning_bench, wearer_tables
from shoal_papers.reproduce.mixed_bench import MixedTable
from shoal_papers.reproduce.paper import DataSet, Setting
from shoal_papers.reproduce.wearer_tables import INVENTED, QUASI, WINDOWS, WearerTables

GROWTH, SIZE, RETURN = "growth", "size", "return"
IMPACT, MIXED, MOVEMENT = "impact", "mixed", "movement"
RECORDS, INCREMENTS, REPEATS = 1500, 6, 3
QUICK_RECORDS, QUICK_INCREMENTS = 150, 2
MONTHS, QUICK_MONTHS, ATTENDANCE = 12, 3, 0.9
IMPACT_TABLES, QUICK_MIXED = 3, 500


@dataclass(frozen=True)
class RepublicationBench:
    """Publishes the tables under each setting once and keeps what every release showed."""

    tables: WearerTables
    mixed: MixedTable
    records: int
    increments: int
    months: int
    repeats: int
    _chains: dict[tuple[Any, ...], list[dict[str, Any]]] = field(
        default_factory=dict, repr=False, compare=False
    )

    @property
    def data(self) -> DataSet:
        return self.tables.data

    def measure(self, setting: Setting) -> dict[str, Any]:
        experiment = setting["experiment"]
        if experiment == SIZE:
            return self._by_size(setting)
        if experiment == IMPACT:
            return self._impact(setting)
        if experiment == MIXED:
            return self.mixed.measure(setting, self.increments + 1)
        if experiment == MOVEMENT:
            known, later = self.tables.increments(WINDOWS, max(self.records, setting["size"]), 2)
            return axial_windows.named(known.head(setting["size"]), later)
        key = tuple(value for name, value in setting.items() if name in CHAIN)
        if key not in self._chains:
            chain = self._growth if experiment == GROWTH else self._return
            self._chains[key] = chain(setting)
        return self._chains[key][setting["increments"]]

    def _growth(self, setting: Setting) -> list[dict[str, Any]]:
        """A row for each release; the first runs of a kernel, which compile it, are not timed."""
        tables = self.tables.increments(setting["data"], self.records, self.increments + 1)
        policy = _policy(tables, setting)
        _published(tables[:2], policy)
        runs = [_published(tables, policy) for _ in range(self.repeats)]
        rows = runs[0]
        for place, row in enumerate(rows):
            seconds = [run[place]["seconds"] for run in runs]
            row |= {
                "seconds": statistics.median(seconds),
                "seconds_least": min(seconds),
                "seconds_most": max(seconds),
            }
        return rows

    def _by_size(self, setting: Setting) -> dict[str, Any]:
        """The row after the last increment, so that each of them counts alike; not timed."""
        domain = setting["domain"]
        tables = self.tables.increments(
            setting["data"], setting["size"], self.increments + 1, domain
        )
        row = _published(tables, _policy(tables, setting, domain))[-1]
        del row["seconds"]
        # on the scale of domain 1, whatever the scale is called
        return row | {"tables": len(tables), "gcp_in_units": domain * row["gcp"]}

    def _impact(self, setting: Setting) -> dict[str, Any]:
        """What is lost, in all and on one attribute, whose impact factor is not 1."""
        own = setting["attribute"]
        tables = self.tables.increments(INVENTED, self.records, IMPACT_TABLES)
        weights = {own: setting["factor"]}
        policy = wearer_tables.policy_of(tables[0].columns, setting["k"], weights=weights)
        found: list[dict[str, float]] = []
        with tempfile.TemporaryDirectory(prefix="shoal-reproduce-") as folder:
            increment = Path(folder) / "increment.csv"
            for table in tables:
                table.write_csv(increment)
                done = republish_file(
                    str(increment), policy.with_method("crp", {}), Path(folder) / "ledger"
                )
                assert done.certificate is not None
                columns = {column["name"]: column for column in done.certificate["columns"]}
                found.append({name: cast(float, columns[name]["loss"]) for name in QUASI})
        return {
            "gcp": statistics.mean(statistics.mean(losses.values()) for losses in found),
            "own_loss": statistics.mean(losses[own] for losses in found),
        }

    def _return(self, setting: Setting) -> list[dict[str, Any]]:
        return returning_bench.published(
            self.tables.months(self.months, ATTENDANCE),
            setting["method"],
            _pairs(setting),
            setting["k"],
            setting["returning"],
            setting["over_time"],
        )


CHAIN = ("experiment", "data", "method", "parameters", "k", "returning", "over_time")
"""What settings of one chain of releases have in common."""


def _pairs(setting: Setting) -> dict[str, str]:
    return dict(pair.split("=") for pair in setting["parameters"].split(",") if pair)


def _policy(tables: Sequence[pl.DataFrame], setting: Setting, domain: int = 1) -> Policy:
    asked = wearer_tables.policy_of(tables[0].columns, setting["k"], domain)
    return asked.with_method(setting["method"], _pairs(setting))


def _published(tables: Sequence[pl.DataFrame], policy: Policy) -> list[dict[str, Any]]:
    """What a fresh ledger shows after each of these increments."""
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="shoal-reproduce-") as folder:
        ledger, increment = Ledger(Path(folder) / "ledger"), Path(folder) / "increment.csv"
        lost = 0.0
        alike = pl.DataFrame()
        cells: dict[int, tuple[str, ...]] = {}
        for table in tables:
            table.write_csv(increment)
            done = republish_file(str(increment), policy, ledger.path, allow_leaks=True)
            assert done.certificate is not None
            assert done.release is not None
            certificate = done.certificate
            frame = pl.read_csv(ledger.folder(done.release) / DATA, infer_schema=False)
            # the whole table's: an increment adds its own, a table takes the place of all before
            own = certificate["utility"]["gcp"] * certificate["records"]["out"]
            adds = certificate["covers"] == "increment"
            lost = lost + own if adds else own
            alike = pl.concat([alike, classes_of(frame)]) if adds and rows else classes_of(frame)
            before, cells = cells, cells | _cells(frame, ledger, done.release)
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
                    **{name: alike[name].mean() for name in alike.columns},
                    "seconds": certificate["seconds"]["method"],
                }
            )
    return rows


def classes_of(frame: pl.DataFrame) -> pl.DataFrame:
    """How alike the records of each class are: 1 where the name of the column is true of it.

    frame: a release, every cell as text. no_width: all its intervals are one value.
    """
    body = pl.col("body") if "body" in frame.columns else pl.int_range(pl.len())
    classes = frame.group_by(QUASI, maintain_order=True).agg(
        one_activity=(pl.col("activity").n_unique() == 1).cast(pl.Float64),
        one_body=(body.n_unique() == 1).cast(pl.Float64),
    )
    wide = pl.any_horizontal(pl.col(name).str.starts_with("[") for name in QUASI)
    return classes.select((~wide).cast(pl.Float64).alias("no_width"), "one_activity", "one_body")


def _cells(frame: pl.DataFrame, ledger: Ledger, release: int) -> dict[int, tuple[str, ...]]:
    """The published quasi-identifiers of every record of a release, by record number."""
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
    """The bundled generator and the real wearers; quick, made-up ones alone."""
    records, increments = (QUICK_RECORDS, QUICK_INCREMENTS) if quick else (RECORDS, INCREMENTS)
    tables = wearer_tables.read(data, quick, records, increments)
    mixed = mixed_bench.made_up(QUICK_MIXED) if quick else mixed_bench.read(data)
    months, repeats = (QUICK_MONTHS, 1) if quick else (MONTHS, REPEATS)
    return RepublicationBench(tables, mixed, records, increments, months, repeats)
