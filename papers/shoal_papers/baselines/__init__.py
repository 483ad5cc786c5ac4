"""The comparators of Shoal's papers: one paper, one file, brought by entry points."""
