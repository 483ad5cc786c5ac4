"""Compiled loops of the comparators alone; compiled, and kept on disk, as Shoal's own."""
