"""Measures what was published; shares no search and no loop with the methods."""
