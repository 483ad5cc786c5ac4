"""Several releases about the same people, judged together."""
