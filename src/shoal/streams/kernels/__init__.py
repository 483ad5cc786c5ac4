"""Compiled loops of methods that publish streams."""
