"""Several releases about the same people: how few of them remain when all are read together."""
