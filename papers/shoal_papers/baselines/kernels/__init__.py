"""Compiled loops of the comparators alone; compiled, and kept on disk, as Shoal's own."""

from pathlib import Path

from shoal.kernels import ensure_cache_place

ensure_cache_place(Path(__file__).parent)
