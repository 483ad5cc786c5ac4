"""Shoal: publish personal data so that every person hides among at least k - 1 others, and prove it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.data.certificate import Certificate
    from shoal.data.hierarchies.hierarchy import Hierarchy
    from shoal.jobs.audit import audit
    from shoal.jobs.check import check
    from shoal.jobs.compare import Comparison, compare
    from shoal.jobs.describe import methods
    from shoal.jobs.policy import Policy
    from shoal.jobs.propose import propose
    from shoal.jobs.publish import Publication, publish
    from shoal.jobs.sample import sample
    from shoal.jobs.stream import Stream, stream

from shoal.errors import (
    CheckpointError,
    InfeasibleError,
    InputError,
    LedgerError,
    MissingExtraError,
    PartyError,
    PromiseError,
    ShoalError,
)
from shoal.version import VERSION as __version__

# Names that pull in NumPy, Polars or Numba are found when they are first asked for.
_WHERE = {
    "Certificate": "shoal.data.certificate",
    "Comparison": "shoal.jobs.compare",
    "Hierarchy": "shoal.data.hierarchies.hierarchy",
    "Policy": "shoal.jobs.policy",
    "Publication": "shoal.jobs.publish",
    "Stream": "shoal.jobs.stream",
    "audit": "shoal.jobs.audit",
    "check": "shoal.jobs.check",
    "compare": "shoal.jobs.compare",
    "methods": "shoal.jobs.describe",
    "propose": "shoal.jobs.propose",
    "publish": "shoal.jobs.publish",
    "sample": "shoal.jobs.sample",
    "stream": "shoal.jobs.stream",
}

__all__ = [
    "Certificate",
    "CheckpointError",
    "Comparison",
    "Hierarchy",
    "InfeasibleError",
    "InputError",
    "LedgerError",
    "MissingExtraError",
    "PartyError",
    "Policy",
    "PromiseError",
    "Publication",
    "ShoalError",
    "Stream",
    "__version__",
    "audit",
    "check",
    "compare",
    "methods",
    "propose",
    "publish",
    "sample",
    "stream",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'shoal' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_WHERE[name]), name)
