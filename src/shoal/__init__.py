"""Publish personal data so that everyone hides among at least k - 1 others, and verify it."""

from shoal.version import VERSION as __version__

# What users may rely on, by the module that defines it. A module is imported when one of its names
# is first used: most of them bring NumPy, Polars or Numba with them.
_PUBLIC = {
    "shoal.advise.attacker_view": ("attacker_view", "attacker_views"),
    "shoal.advise.check": ("check",),
    "shoal.advise.comparison": ("Recommendation",),
    "shoal.advise.estimate": ("Estimate", "estimate"),
    "shoal.advise.marginal": ("LatticeWalk", "Marginal", "lattice_walk", "marginal"),
    "shoal.advise.methods": ("methods",),
    "shoal.advise.profile": ("Profile", "profile"),
    "shoal.advise.matching": ("HierarchyMatch", "match_hierarchies"),
    "shoal.advise.propose": ("Proposal", "propose", "propose_policy"),
    "shoal.advise.risk": ("Risk", "risk"),
    "shoal.advise.views": ("AttackerView",),
    "shoal.attacks.beside.others": ("OtherRelease", "audit"),
    "shoal.attacks.run.attack": ("audit_ledger",),
    "shoal.auditor.checks": ("Check",),
    "shoal.auditor.ledger.release_view": ("ledger_table", "verify_ledger"),
    "shoal.auditor.ledger.history": ("LedgerAudit",),
    "shoal.auditor.release_frame": ("ReleaseFrame", "read_release"),
    "shoal.auditor.verify": ("verify",),
    "shoal.data.certificate": ("Certificate",),
    "shoal.data.hierarchies.hierarchy": ("Hierarchy",),
    "shoal.data.warnings": ("ReleaseWarning",),
    "shoal.errors": (
        "CheckpointError",
        "InfeasibleError",
        "InputError",
        "LedgerError",
        "MissingExtraError",
        "PartyError",
        "PromiseError",
        "ShoalError",
    ),
    "shoal.ledgers.republish": ("Republication", "republish"),
    "shoal.ledgers.what_if": ("Prospect", "Rehearsal", "rehearse", "what_if"),
    "shoal.policy.policy": ("Policy",),
    "shoal.reports.comparison": ("Comparison", "compare"),
    "shoal.reports.dossier": ("dossier",),
    "shoal.reports.publication": ("Publication", "fuse", "publish"),
    "shoal.samples": ("sample",),
    "shoal.streams.stream": ("Stream", "stream", "stream_file"),
    "shoal.streams.stream_status": ("StreamStatus", "stream_status"),
    "shoal.tables.attack": ("attack",),
    "shoal.tables.from_files": ("audit_file", "publish_file"),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]

# Type checkers read no dictionary, so they get the same as imports; a test compares the two. Not
# `from typing import TYPE_CHECKING`, which would take longer than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from shoal.advise.attacker_view import attacker_view as attacker_view
    from shoal.advise.attacker_view import attacker_views as attacker_views
    from shoal.advise.check import check as check
    from shoal.advise.comparison import Recommendation as Recommendation
    from shoal.advise.estimate import Estimate as Estimate
    from shoal.advise.estimate import estimate as estimate
    from shoal.advise.marginal import LatticeWalk as LatticeWalk
    from shoal.advise.marginal import Marginal as Marginal
    from shoal.advise.marginal import lattice_walk as lattice_walk
    from shoal.advise.marginal import marginal as marginal
    from shoal.advise.matching import HierarchyMatch as HierarchyMatch
    from shoal.advise.matching import match_hierarchies as match_hierarchies
    from shoal.advise.methods import methods as methods
    from shoal.advise.profile import Profile as Profile
    from shoal.advise.profile import profile as profile
    from shoal.advise.propose import Proposal as Proposal
    from shoal.advise.propose import propose as propose
    from shoal.advise.propose import propose_policy as propose_policy
    from shoal.advise.risk import Risk as Risk
    from shoal.advise.risk import risk as risk
    from shoal.advise.views import AttackerView as AttackerView
    from shoal.attacks.beside.others import OtherRelease as OtherRelease
    from shoal.attacks.beside.others import audit as audit
    from shoal.attacks.run.attack import audit_ledger as audit_ledger
    from shoal.auditor.checks import Check as Check
    from shoal.auditor.ledger.history import LedgerAudit as LedgerAudit
    from shoal.auditor.ledger.release_view import ledger_table as ledger_table
    from shoal.auditor.ledger.release_view import verify_ledger as verify_ledger
    from shoal.auditor.release_frame import ReleaseFrame as ReleaseFrame
    from shoal.auditor.release_frame import read_release as read_release
    from shoal.auditor.verify import verify as verify
    from shoal.data.certificate import Certificate as Certificate
    from shoal.data.hierarchies.hierarchy import Hierarchy as Hierarchy
    from shoal.data.warnings import ReleaseWarning as ReleaseWarning
    from shoal.errors import CheckpointError as CheckpointError
    from shoal.errors import InfeasibleError as InfeasibleError
    from shoal.errors import InputError as InputError
    from shoal.errors import LedgerError as LedgerError
    from shoal.errors import MissingExtraError as MissingExtraError
    from shoal.errors import PartyError as PartyError
    from shoal.errors import PromiseError as PromiseError
    from shoal.errors import ShoalError as ShoalError
    from shoal.ledgers.republish import Republication as Republication
    from shoal.ledgers.republish import republish as republish
    from shoal.ledgers.what_if import Prospect as Prospect
    from shoal.ledgers.what_if import Rehearsal as Rehearsal
    from shoal.ledgers.what_if import rehearse as rehearse
    from shoal.ledgers.what_if import what_if as what_if
    from shoal.policy.policy import Policy as Policy
    from shoal.reports.comparison import Comparison as Comparison
    from shoal.reports.comparison import compare as compare
    from shoal.reports.dossier import dossier as dossier
    from shoal.reports.publication import Publication as Publication
    from shoal.reports.publication import fuse as fuse
    from shoal.reports.publication import publish as publish
    from shoal.samples import sample as sample
    from shoal.streams.stream import Stream as Stream
    from shoal.streams.stream import stream as stream
    from shoal.streams.stream import stream_file as stream_file
    from shoal.streams.stream_status import StreamStatus as StreamStatus
    from shoal.streams.stream_status import stream_status as stream_status
    from shoal.tables.attack import attack as attack
    from shoal.tables.from_files import audit_file as audit_file
    from shoal.tables.from_files import publish_file as publish_file

if not TYPE_CHECKING:  # else a type checker accepts every misspelt name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'shoal' has no attribute '{name}'")
        import importlib

        importlib.import_module("shoal.data.progress").in_python = True
        found = getattr(importlib.import_module(_MODULE_OF[name]), name)
        if isinstance(found, type):
            return found
        return importlib.import_module("shoal.policy.from_columns").knowing_its_keywords(found)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
