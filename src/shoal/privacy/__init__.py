"""Promises, each measured on what was published; shares no code with the algorithms."""

from __future__ import annotations

from shoal.privacy.alpha_k import AlphaKAnonymity
from shoal.privacy.beta_likeness import BetaLikeness
from shoal.privacy.class_sizes import AverageRisk, PopulationUniqueness, SampleUniqueness
from shoal.privacy.delta_disclosure import DeltaDisclosure
from shoal.privacy.feasibility import nearest_feasible
from shoal.privacy.k_anonymity import KAnonymity
from shoal.privacy.k_l_diversity import KLDiversity
from shoal.privacy.l_diversity import LDiversity
from shoal.privacy.p_sensitive import PSensitiveKAnonymity
from shoal.privacy.population import DeltaPresence, KMap
from shoal.privacy.promise import Promise
from shoal.privacy.promises import BoundPromises
from shoal.privacy.subject_share import SubjectShare
from shoal.privacy.t_closeness import TCloseness

MODELS: dict[str, type[Promise]] = {
    model.model: model
    for model in (
        KAnonymity,
        LDiversity,
        TCloseness,
        AlphaKAnonymity,
        PSensitiveKAnonymity,
        KLDiversity,
        BetaLikeness,
        DeltaDisclosure,
        SubjectShare,
        KMap,
        DeltaPresence,
        AverageRisk,
        SampleUniqueness,
        PopulationUniqueness,
    )
}
"""Every promise of this folder by the name that policies use."""

__all__ = [
    "MODELS",
    "AlphaKAnonymity",
    "AverageRisk",
    "BetaLikeness",
    "BoundPromises",
    "DeltaDisclosure",
    "DeltaPresence",
    "KAnonymity",
    "KLDiversity",
    "KMap",
    "LDiversity",
    "PSensitiveKAnonymity",
    "PopulationUniqueness",
    "Promise",
    "SampleUniqueness",
    "SubjectShare",
    "TCloseness",
    "nearest_feasible",
]
