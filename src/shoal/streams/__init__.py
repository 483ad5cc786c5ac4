"""Endless streams: read, gathered into clusters, measured, and published exactly once."""
