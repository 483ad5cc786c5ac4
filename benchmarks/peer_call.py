"""One call of a peer, run by the Python of an environment that has the peer and nothing of ours.

python peer_call.py NAME TABLE.csv GROUPS.json K SENSITIVE NUMBERS,... CATEGORIES,...

Writes the published groups as [{"cells": {attribute: text}, "records": n}] and prints the CPU
seconds of the call.
"""

from __future__ import annotations

import importlib
import json
import sys
import time
import types
from importlib.metadata import version
from typing import Any


def anonypy(
    path: str, k: int, sensitive: str, numbers: list[str], categories: list[str]
) -> tuple[float, list[Any]]:
    import pandas as pd

    peer = importlib.import_module("anonypy")
    frame = pd.read_csv(path)
    for name in (*categories, sensitive):
        frame[name] = frame[name].astype("category")
    begun = time.process_time()
    published = peer.Preserver(frame, [*numbers, *categories], sensitive).anonymize_k_anonymity(k=k)
    seconds = time.process_time() - begun
    return seconds, [(row, int(row["count"])) for row in published]


def polarfrost(
    path: str, k: int, sensitive: str, numbers: list[str], categories: list[str]
) -> tuple[float, list[Any]]:
    # it imports PySpark's pandas_udf always and uses it for Spark tables only: empty modules stand
    # in
    for name in ("pyspark", "pyspark.sql", "pyspark.sql.functions"):
        sys.modules[name] = types.ModuleType(name)
    functions: Any = sys.modules["pyspark.sql.functions"]
    functions.pandas_udf = functions.PandasUDFType = None
    import polars as pl

    peer = importlib.import_module("polarfrost")
    frame = pl.read_csv(path)
    begun = time.process_time()
    published = peer.mondrian_k_anonymity(frame, [*numbers, *categories], sensitive, k, categories)
    seconds = time.process_time() - begun
    return seconds, [(row, int(row["count"])) for row in published.to_dicts()]


def _text(cell: Any) -> str:
    """A cell as text; anonypy puts each into a list of one."""
    return str(cell[0] if isinstance(cell, list) else cell)


def main(
    name: str, path: str, out: str, k: str, sensitive: str, numbers: str, categories: str
) -> None:
    quasi = numbers.split(","), categories.split(",")
    seconds, published = {"anonypy": anonypy, "polarfrost": polarfrost}[name](
        path, int(k), sensitive, *quasi
    )
    names = [*quasi[0], *quasi[1]]
    groups = [
        {"cells": {n: _text(row[n]) for n in names}, "records": records}
        for row, records in published
    ]
    with open(out, "w") as file:
        json.dump(groups, file)
    print(json.dumps({"seconds": seconds, "version": version(name)}))


if __name__ == "__main__":
    main(*sys.argv[1:])
