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
    from shoal.jobs.fuse import fuse
    from shoal.jobs.history import LedgerAudit, audit_ledger
    from shoal.jobs.ledger import ledger_table, verify_ledger
    from shoal.jobs.policy import Policy
    from shoal.jobs.propose import propose
    from shoal.jobs.publish import Publication, publish
    from shoal.jobs.republish import Republication, republish
    from shoal.jobs.sample import sample
    from shoal.jobs.stream import Stream, stream
    from shoal.jobs.what_if import Prospect, what_if

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
    "LedgerAudit": "shoal.jobs.history",
    "Policy": "shoal.jobs.policy",
    "Prospect": "shoal.jobs.what_if",
    "Publication": "shoal.jobs.publish",
    "Republication": "shoal.jobs.republish",
    "Stream": "shoal.jobs.stream",
    "audit": "shoal.jobs.audit",
    "audit_ledger": "shoal.jobs.history",
    "check": "shoal.jobs.check",
    "compare": "shoal.jobs.compare",
    "ledger_table": "shoal.jobs.ledger",
    "fuse": "shoal.jobs.fuse",
    "methods": "shoal.jobs.describe",
    "propose": "shoal.jobs.propose",
    "publish": "shoal.jobs.publish",
    "republish": "shoal.jobs.republish",
    "sample": "shoal.jobs.sample",
    "stream": "shoal.jobs.stream",
    "verify_ledger": "shoal.jobs.ledger",
    "what_if": "shoal.jobs.what_if",
}

__all__ = [
    "Certificate",
    "CheckpointError",
    "Comparison",
    "Hierarchy",
    "InfeasibleError",
    "InputError",
    "LedgerAudit",
    "LedgerError",
    "MissingExtraError",
    "PartyError",
    "Policy",
    "PromiseError",
    "Prospect",
    "Publication",
    "Republication",
    "ShoalError",
    "Stream",
    "__version__",
    "audit",
    "audit_ledger",
    "check",
    "compare",
    "fuse",
    "ledger_table",
    "methods",
    "propose",
    "publish",
    "republish",
    "sample",
    "stream",
    "verify_ledger",
    "what_if",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module 'shoal' has no attribute '{name}'")
    import importlib

    return getattr(importlib.import_module(_WHERE[name]), name)
