"""Seeded generators of invented people, one file each; none of them holds anybody's data.

A generator is a module with `generate(n, seed) -> polars.DataFrame` and `POLICY`, the text of a
policy that fits it.
"""
