"""Promises, each measured on what was published; shares no code with the algorithms."""
