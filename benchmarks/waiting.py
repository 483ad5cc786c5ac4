"""Small increments: what priced waiting saves of the loss, and how long records wait for it."""

from __future__ import annotations

import numpy as np
from measure import Asked, Figure, Result, settings

from shoal.data.ledger_view import LedgerView
from shoal.data.partition import Matrix, Partition
from shoal.errors import InfeasibleError
from shoal.ledgers.methods.crp import Crp
from shoal.ledgers.planned_release import partition_table
from shoal.samples import wearables
from shoal.search.segments import losses_of
from shoal.testing import OnlyK

TITLE = "Small increments"
CLAIM = (
    "gcp of all that `crp` with `cluster=rounded-partition` publishes of increments of a few"
    " invented wearers, k = 10, at once and by `waiting=priced`, with the mean number of"
    " increments that a record then waits. No target."
)
K, SEED = 10, 1
# records of an increment, and how many increments
SERIES = ((5, 200), (15, 150), (30, 120), (60, 80), (150, 50), (600, 20))
DOMAINS = {"age": (10, 100), "height": (130, 220), "weight": (30, 220)}


def measure(asked: Asked) -> Result:
    told = settings(asked, k=K, seed=SEED, rows=[records for records, _ in SERIES])
    found = Result("waiting", TITLE, CLAIM, told | {"data": "none; the wearers are invented"})
    at_once = Crp(cluster="rounded-partition")
    priced = Crp(cluster="rounded-partition", waiting="priced")
    for records, increments in SERIES:
        asked.say(f"waiting: {increments} increments of {records}")
        increments = increments if asked.rows is None else 10
        for name, method in (("at once", at_once), ("priced", priced)):
            loss, waited = _published(records, increments, method)
            what = f"increments of {records}, {name}"
            found.figures.append(Figure(f"gcp, {what}", "%", (100 * loss,)))
            found.figures.append(Figure(f"mean wait, {what}", "increments", (waited,)))
    return found


def _published(records: int, increments: int, method: Crp) -> tuple[float, float]:
    """Mean loss and mean wait of what is published of a series."""
    pool = wearables.generate(records * increments, SEED).select(list(DOMAINS)).to_numpy()
    pool = pool - np.array([low for low, _ in DOMAINS.values()])
    widths = [float(high - low) for low, high in DOMAINS.values()]
    codes, waited = pool[:0], np.zeros(0, dtype=np.int32)
    lost = published = waits = 0.0
    for turn in range(increments):
        codes = np.concatenate([codes, pool[turn * records : (turn + 1) * records]])
        waited = np.concatenate([waited, np.zeros(records, dtype=np.int32)])
        matrix = Matrix.from_columns(codes, list(widths))
        view = LedgerView(waited=waited, arrivals=float(records), partition=partition_table)
        try:
            placed = method.publish(matrix, view, OnlyK(matrix, K), np.random.default_rng(SEED))
            labels = placed.labels
        except InfeasibleError:
            labels = np.full(len(codes), -1, dtype=np.int32)
        out = labels >= 0
        classes = Partition.of(labels)
        lost += float(losses_of(matrix, classes)[classes.labels[out]].sum()) / len(DOMAINS)
        published += int(out.sum())
        waits += int(waited[out].sum())
        codes, waited = codes[~out], waited[~out] + np.int32(1)
    return lost / max(published, 1), waits / max(published, 1)
