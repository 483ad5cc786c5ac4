"""Several tables about the same people, published together."""
