"""What several releases of a growing table give away together."""
