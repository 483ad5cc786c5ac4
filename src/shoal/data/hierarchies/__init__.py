"""Generalization hierarchies: one array form, read from tables or made by a rule."""
