"""One call of a peer, run by the Python of an environment that has the peer and nothing of ours.

python peer_call.py NAME TABLE.csv GROUPS.json K SENSITIVE NUMBERS,... CATEGORIES,... HIERARCHIES

HIERARCHIES: a folder with a file of ARX's form for every attribute. Writes the published groups as
[{"cells": {attribute: text}, "records": n}] and prints the CPU seconds of the call.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
import time
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

SUPPRESSED = 5  # % of the records that anjana may leave out


@dataclass(frozen=True)
class Call:
    """What a peer is asked."""

    path: str
    k: int
    sensitive: str
    numbers: list[str]
    categories: list[str]
    hierarchies: Path

    @property
    def quasi(self) -> list[str]:
        return [*self.numbers, *self.categories]


def anonypy(asked: Call) -> tuple[float, list[Any]]:
    import pandas as pd

    peer = importlib.import_module("anonypy")
    frame = pd.read_csv(asked.path)
    for name in (*asked.categories, asked.sensitive):
        frame[name] = frame[name].astype("category")
    begun = time.process_time()
    published = peer.Preserver(frame, asked.quasi, asked.sensitive).anonymize_k_anonymity(k=asked.k)
    seconds = time.process_time() - begun
    return seconds, [(row, int(row["count"])) for row in published]


def polarfrost(asked: Call) -> tuple[float, list[Any]]:
    # it imports PySpark's pandas_udf always and uses it for Spark tables only: empty modules stand
    # in
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.functions"):
        sys.modules[name] = types.ModuleType(name)
    functions: Any = sys.modules["pyspark.sql.functions"]
    functions.pandas_udf = functions.PandasUDFType = None
    import polars as pl

    peer = importlib.import_module("polarfrost")
    frame = pl.read_csv(asked.path)
    begun = time.process_time()
    published = peer.mondrian_k_anonymity(
        frame, asked.quasi, asked.sensitive, asked.k, asked.categories
    )
    seconds = time.process_time() - begun
    return seconds, [(row, int(row["count"])) for row in published.to_dicts()]


def lighthouse(asked: Call) -> tuple[float, list[Any]]:
    """Core Mondrian. Categories are numbers by frequency; it publishes the means of its classes,
    and what their members had is what they are scored by.
    """
    import pandas as pd

    peer = importlib.import_module("project_lighthouse_anonymize.wrappers.k_anonymize")
    warnings.simplefilter("ignore")
    frame = pd.read_csv(asked.path)
    numbers = frame[asked.numbers].astype(float)
    for name in asked.categories:
        places = {label: i for i, label in enumerate(frame[name].value_counts().index)}
        numbers[name] = frame[name].map(places).astype(float)
    numbers["id"] = range(len(frame))
    begun = time.process_time()
    published, _, _ = peer.k_anonymize(
        logging.getLogger("quiet"), numbers, asked.quasi, asked.k, {}, "id", parallelism=None
    )
    seconds = time.process_time() - begun
    groups = []
    for _, members in published.groupby(asked.quasi)["id"]:
        own = frame.iloc[members]
        cells = {name: f"{own[name].min()}-{own[name].max()}" for name in asked.numbers}
        cells |= {name: ",".join(sorted(set(own[name]))) for name in asked.categories}
        groups.append((cells, len(own)))
    return seconds, groups


def anjana(asked: Call) -> tuple[float, list[Any]]:
    """Global recoding over hierarchies, which may leave records out."""
    import pandas as pd

    peer = importlib.import_module("anjana.anonymity")
    frame = pd.read_csv(asked.path, dtype=str)
    levels = {}
    for name in asked.quasi:
        path = asked.hierarchies / f"{name}.csv"
        rows = pd.read_csv(path, sep=";", header=None, dtype=str, keep_default_na=False)
        levels[name] = {level: rows[level].to_numpy() for level in rows}
    begun = time.process_time()
    published = peer.k_anonymity(frame, [], asked.quasi, asked.k, SUPPRESSED, levels)
    seconds = time.process_time() - begun
    counts = published.groupby(asked.quasi).size()
    return seconds, [
        (dict(zip(asked.quasi, cells, strict=True)), int(records))
        for cells, records in counts.items()
    ]


PEERS: dict[str, Callable[[Call], tuple[float, list[Any]]]] = {
    "anonypy": anonypy,
    "polarfrost": polarfrost,
    "project-lighthouse-anonymize": lighthouse,
    "anjana": anjana,
}


def _text(cell: Any) -> str:
    """A cell as text; anonypy puts each into a list of one."""
    return str(cell[0] if isinstance(cell, list) else cell)


def main(
    name: str,
    path: str,
    out: str,
    k: str,
    sensitive: str,
    numbers: str,
    categories: str,
    hierarchies: str,
) -> None:
    asked = Call(
        path, int(k), sensitive, numbers.split(","), categories.split(","), Path(hierarchies)
    )
    seconds, published = PEERS[name](asked)
    groups = [
        {"cells": {n: _text(row[n]) for n in asked.quasi}, "records": records}
        for row, records in published
    ]
    with open(out, "w") as file:
        json.dump(groups, file)
    print(json.dumps({"seconds": seconds, "version": version(name)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
