"""A policy meets a table, a release, a stream or a population."""
