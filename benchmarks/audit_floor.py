"""The floor under an audit: Polars reads the release as text and counts classes, values in classes,
and records of each.

python audit_floor.py RELEASED.csv SENSITIVE QUASI,...
"""

from __future__ import annotations

import sys

import polars as pl

if __name__ == "__main__":
    released, sensitive, quasi = sys.argv[1], sys.argv[2], sys.argv[3].split(",")
    counts = pl.read_csv(released, infer_schema=False).group_by([*quasi, sensitive]).len()
    classes = counts.group_by(quasi).agg(
        pl.col("len").sum().alias("records"), pl.len().alias("values")
    )
    print(classes.height, classes["records"].min(), classes["values"].min())
