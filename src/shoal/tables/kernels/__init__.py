"""Compiled loops of methods that publish tables."""
