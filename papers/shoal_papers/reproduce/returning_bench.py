"""What months of returning wearers show: real people, each with one record in most months.

The attacker intersects the classes of one person over all releases: whoever has fewer than k people
in every class of theirs can be told apart by more than k-anonymity allows.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import polars as pl

from shoal.connectors.ledger import DATA, Ledger
from shoal.ledgers.republish import republish_file
from shoal_papers.reproduce.wearer_tables import QUASI, policy_of

AS_PEOPLE, AS_NEWCOMERS = "people", "newcomers"
"""Whether those who return are distinguished from people who come for the first time."""

Box = tuple[Any, ...]


def published(
    months: Sequence[pl.DataFrame],
    method: str,
    parameters: dict[str, str],
    k: int,
    returning: str,
    over_time: str,
) -> list[dict[str, Any]]:
    """What a fresh ledger shows after each of these months."""
    columns = [name for name in months[0].columns if name != "wearer" or returning == AS_PEOPLE]
    policy = policy_of(columns, k, over_time=over_time).with_method(method, parameters)
    rows: list[dict[str, Any]] = []
    histories: dict[str, set[Box]] = {}
    with tempfile.TemporaryDirectory(prefix="shoal-reproduce-") as folder:
        ledger, increment = Ledger(Path(folder) / "ledger"), Path(folder) / "increment.csv"
        arrived = shown = 0
        for month, table in enumerate(months):
            table.select(columns).write_csv(increment)
            done = republish_file(str(increment), policy, ledger.path)
            arrived += table.height
            gcp = 0.0
            if done.release is not None:
                assert done.certificate is not None
                frame = pl.read_csv(ledger.folder(done.release) / DATA, infer_schema=False)
                for body, *box in frame.select("body", *QUASI).iter_rows():
                    histories.setdefault(body, set()).add((month, *box))
                shown += frame.height
                gcp = done.certificate["utility"]["gcp"]
            rows.append({"gcp": gcp, "published": shown / arrived, "alone": alone(histories, k)})
    return rows


def alone(histories: dict[str, set[Box]], k: int) -> int:
    """People who were in all their classes together with fewer than k, themselves included."""
    return sum(sum(own <= other for other in histories.values()) < k for own in histories.values())
