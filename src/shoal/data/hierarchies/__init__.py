"""Generalization hierarchies: one array form, read from tables or made by a rule.

A maker is named in a policy by its kind, with one argument: `hierarchy: {prefix: 5}`. To add one,
write its file beside the others: a dataclass with a `kind` is found by looking.
"""

from shoal.data.hierarchies.hierarchy import Hierarchy

__all__ = ["Hierarchy"]
