"""Measures what was published; shares no code with the methods."""
