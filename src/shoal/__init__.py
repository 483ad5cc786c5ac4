"""Shoal: publish personal data so that every person hides among at least k - 1 others, and prove
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.data.certificate import Certificate
    from shoal.data.hierarchies.hierarchy import Hierarchy
    from shoal.jobs.advise.check import check
    from shoal.jobs.advise.compare import Comparison, compare
    from shoal.jobs.advise.methods import methods
    from shoal.jobs.advise.propose import propose
    from shoal.jobs.advise.sample import sample
    from shoal.jobs.audit.audit import audit
    from shoal.jobs.fuse.fuse import fuse
    from shoal.jobs.publish.publish import Publication, publish
    from shoal.jobs.republish.export import ledger_table, verify_ledger
    from shoal.jobs.republish.history import LedgerAudit, audit_ledger
    from shoal.jobs.republish.republish import Republication, republish
    from shoal.jobs.republish.what_if import Prospect, what_if
    from shoal.jobs.stream.stream import Stream, stream
    from shoal.policy.policy import Policy

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
    "Comparison": "shoal.jobs.advise.compare",
    "Hierarchy": "shoal.data.hierarchies.hierarchy",
    "LedgerAudit": "shoal.jobs.republish.history",
    "Policy": "shoal.policy.policy",
    "Prospect": "shoal.jobs.republish.what_if",
    "Publication": "shoal.jobs.publish.publish",
    "Republication": "shoal.jobs.republish.republish",
    "Stream": "shoal.jobs.stream.stream",
    "audit": "shoal.jobs.audit.audit",
    "audit_ledger": "shoal.jobs.republish.history",
    "check": "shoal.jobs.advise.check",
    "compare": "shoal.jobs.advise.compare",
    "ledger_table": "shoal.jobs.republish.export",
    "fuse": "shoal.jobs.fuse.fuse",
    "methods": "shoal.jobs.advise.methods",
    "propose": "shoal.jobs.advise.propose",
    "publish": "shoal.jobs.publish.publish",
    "republish": "shoal.jobs.republish.republish",
    "sample": "shoal.jobs.advise.sample",
    "stream": "shoal.jobs.stream.stream",
    "verify_ledger": "shoal.jobs.republish.export",
    "what_if": "shoal.jobs.republish.what_if",
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
