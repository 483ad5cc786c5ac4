"""The methods for tables that a method for republication may call."""

from __future__ import annotations

TABLE_METHODS = (
    "rounded-partition",
    "lattice-peeling",
    "k-member",
    "mondrian",
    "top-down-greedy",
    "mdav",
    "tcloseness",
)
"""The methods for tables that may find the classes; a view offers them by name."""
