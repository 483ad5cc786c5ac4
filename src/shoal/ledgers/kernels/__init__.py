"""Compiled loops of methods that publish growing tables."""
