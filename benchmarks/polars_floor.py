"""The floor under a whole `shoal publish`: Polars reads the same input and writes the same output,
nothing else.

python polars_floor.py INPUT.csv PUBLISHED.arrow OUT.csv

Reads the input with types guessed as Polars does, holds it, and writes the published table as text
columns. How that table came to be in memory is not counted as CPU: the seconds of loading it are
reported, to be taken off.
"""

from __future__ import annotations

import json
import resource
import sys
import time

import polars as pl


def peak() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (
        1 if sys.platform == "darwin" else 1024
    )


if __name__ == "__main__":
    held = pl.read_csv(sys.argv[1])
    peak_reading = peak()
    begun = time.process_time()
    with open(sys.argv[2], "rb") as file:  # read, not mapped
        published = pl.read_ipc(file)
    loading = time.process_time() - begun
    assert held.height == published.height
    published.write_csv(sys.argv[3])
    print(json.dumps({"loading": loading, "peak_reading": peak_reading}))
