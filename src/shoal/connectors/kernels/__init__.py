"""Compiled loops over text."""
