"""Compiled loops of the audit."""
