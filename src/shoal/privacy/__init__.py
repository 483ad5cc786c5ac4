"""Promises, each measured on what was published; shares no search and no loop with the methods."""
