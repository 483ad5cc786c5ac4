"""One table from several owners."""
