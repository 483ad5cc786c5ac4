"""A release described for catalogues and pipelines: one description, written in five forms."""
