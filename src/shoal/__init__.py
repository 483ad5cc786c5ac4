"""Shoal: publish personal data so that everyone hides among at least k - 1 others, and prove it."""

from __future__ import annotations

from shoal.version import VERSION as __version__

# What users may rely on, by the module that defines it. A module is imported when one of its names
# is first used: most of them bring NumPy, Polars or Numba with them.
_PUBLIC = {
    "shoal.data.certificate": ("Certificate",),
    "shoal.data.hierarchies.hierarchy": ("Hierarchy",),
    "shoal.data.run_cost": ("Estimate",),
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
    "shoal.jobs.advise.attacker_view": ("attacker_view", "attacker_views"),
    "shoal.jobs.advise.check": ("check",),
    "shoal.jobs.advise.compare": ("compare",),
    "shoal.jobs.advise.comparison": ("Comparison",),
    "shoal.jobs.advise.estimate": ("estimate",),
    "shoal.jobs.advise.lattice_walk": ("LatticeWalk", "lattice_walk"),
    "shoal.jobs.advise.marginal": ("marginal",),
    "shoal.jobs.advise.match_hierarchies": ("match_hierarchies",),
    "shoal.jobs.advise.methods": ("methods",),
    "shoal.policy.proposal.proposal": ("Proposal",),
    "shoal.jobs.advise.propose": ("propose", "propose_policy"),
    "shoal.jobs.advise.profile": ("profile",),
    "shoal.jobs.advise.recommendation": ("Recommendation",),
    "shoal.jobs.advise.risk": ("risk",),
    "shoal.samples": ("sample",),
    "shoal.jobs.audit.audit": ("audit",),
    "shoal.jobs.audit.checks": ("Check",),
    "shoal.jobs.audit.release_frame": ("ReleaseFrame", "read_release"),
    "shoal.jobs.audit.verify": ("verify",),
    "shoal.jobs.beside.beside": ("BesideAudit", "audit_beside"),
    "shoal.jobs.publish.attack": ("attack",),
    "shoal.jobs.publish.from_files": ("audit_file", "publish_file"),
    "shoal.jobs.republish.attack": ("audit_ledger",),
    "shoal.jobs.republish.export": ("ledger_table", "verify_ledger"),
    "shoal.jobs.republish.history": ("LedgerAudit",),
    "shoal.jobs.republish.rehearsal": ("Rehearsal", "rehearse"),
    "shoal.jobs.republish.republish": ("Republication", "republish"),
    "shoal.jobs.republish.what_if": ("Prospect", "what_if"),
    "shoal.jobs.stream.attack": ("attack_stream",),
    "shoal.jobs.stream.from_files": ("stream_file",),
    "shoal.jobs.stream.stream": ("Stream", "stream"),
    "shoal.policy.policy": ("Policy",),
    "shoal.policy.proposal.matching": ("HierarchyMatch",),
    "shoal.policy.proposal.profile": ("Profile",),
    "shoal.privacy.attacker_view": ("AttackerView",),
    "shoal.privacy.table_risk": ("Risk",),
    "shoal.reports.dossier": ("dossier",),
    "shoal.reports.publication": ("Publication", "fuse", "publish"),
    "shoal.state.stream_status": ("StreamStatus", "stream_status"),
    "shoal.utility.marginal": ("Marginal",),
}
_MODULE_OF = {name: module for module, names in _PUBLIC.items() for name in names}

__all__ = ["__version__", *sorted(_MODULE_OF)]

# Type checkers read no dictionary, so they get the same as imports; a test compares the two. Not
# `from typing import TYPE_CHECKING`, which would take longer than everything else here.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from shoal.data.certificate import Certificate as Certificate
    from shoal.data.hierarchies.hierarchy import Hierarchy as Hierarchy
    from shoal.data.run_cost import Estimate as Estimate
    from shoal.data.warnings import ReleaseWarning as ReleaseWarning
    from shoal.errors import CheckpointError as CheckpointError
    from shoal.errors import InfeasibleError as InfeasibleError
    from shoal.errors import InputError as InputError
    from shoal.errors import LedgerError as LedgerError
    from shoal.errors import MissingExtraError as MissingExtraError
    from shoal.errors import PartyError as PartyError
    from shoal.errors import PromiseError as PromiseError
    from shoal.errors import ShoalError as ShoalError
    from shoal.jobs.advise.attacker_view import attacker_view as attacker_view
    from shoal.jobs.advise.attacker_view import attacker_views as attacker_views
    from shoal.jobs.advise.check import check as check
    from shoal.jobs.advise.compare import compare as compare
    from shoal.jobs.advise.comparison import Comparison as Comparison
    from shoal.jobs.advise.estimate import estimate as estimate
    from shoal.jobs.advise.lattice_walk import LatticeWalk as LatticeWalk
    from shoal.jobs.advise.lattice_walk import lattice_walk as lattice_walk
    from shoal.jobs.advise.marginal import marginal as marginal
    from shoal.jobs.advise.match_hierarchies import match_hierarchies as match_hierarchies
    from shoal.jobs.advise.methods import methods as methods
    from shoal.jobs.advise.profile import profile as profile
    from shoal.jobs.advise.propose import propose as propose
    from shoal.jobs.advise.propose import propose_policy as propose_policy
    from shoal.jobs.advise.recommendation import Recommendation as Recommendation
    from shoal.jobs.advise.risk import risk as risk
    from shoal.jobs.audit.audit import audit as audit
    from shoal.jobs.audit.checks import Check as Check
    from shoal.jobs.audit.release_frame import ReleaseFrame as ReleaseFrame
    from shoal.jobs.audit.release_frame import read_release as read_release
    from shoal.jobs.audit.verify import verify as verify
    from shoal.jobs.beside.beside import BesideAudit as BesideAudit
    from shoal.jobs.beside.beside import audit_beside as audit_beside
    from shoal.jobs.publish.attack import attack as attack
    from shoal.jobs.publish.from_files import audit_file as audit_file
    from shoal.jobs.publish.from_files import publish_file as publish_file
    from shoal.jobs.republish.attack import audit_ledger as audit_ledger
    from shoal.jobs.republish.export import ledger_table as ledger_table
    from shoal.jobs.republish.export import verify_ledger as verify_ledger
    from shoal.jobs.republish.history import LedgerAudit as LedgerAudit
    from shoal.jobs.republish.rehearsal import Rehearsal as Rehearsal
    from shoal.jobs.republish.rehearsal import rehearse as rehearse
    from shoal.jobs.republish.republish import Republication as Republication
    from shoal.jobs.republish.republish import republish as republish
    from shoal.jobs.republish.what_if import Prospect as Prospect
    from shoal.jobs.republish.what_if import what_if as what_if
    from shoal.jobs.stream.attack import attack_stream as attack_stream
    from shoal.jobs.stream.from_files import stream_file as stream_file
    from shoal.jobs.stream.stream import Stream as Stream
    from shoal.jobs.stream.stream import stream as stream
    from shoal.policy.policy import Policy as Policy
    from shoal.policy.proposal.matching import HierarchyMatch as HierarchyMatch
    from shoal.policy.proposal.profile import Profile as Profile
    from shoal.policy.proposal.proposal import Proposal as Proposal
    from shoal.privacy.attacker_view import AttackerView as AttackerView
    from shoal.privacy.table_risk import Risk as Risk
    from shoal.reports.dossier import dossier as dossier
    from shoal.reports.publication import Publication as Publication
    from shoal.reports.publication import fuse as fuse
    from shoal.reports.publication import publish as publish
    from shoal.samples import sample as sample
    from shoal.state.stream_status import StreamStatus as StreamStatus
    from shoal.state.stream_status import stream_status as stream_status
    from shoal.utility.marginal import Marginal as Marginal

if not TYPE_CHECKING:  # else a type checker accepts every misspelt name

    def __getattr__(name: str) -> object:
        if name not in _MODULE_OF:
            raise AttributeError(f"module 'shoal' has no attribute '{name}'")
        import importlib

        return getattr(importlib.import_module(_MODULE_OF[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
