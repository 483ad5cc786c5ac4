"""The evidence of a release, by the questions of a standard or a law."""
