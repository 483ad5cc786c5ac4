"""The stable door for whoever writes plug-ins: all that one needs, from one place.

What is named here keeps its name and meaning from version to version; anything else inside Shoal
may move. `docs/extending.md` writes a plug-in for every socket.
"""

import importlib
from typing import TYPE_CHECKING, Any

from shoal.data.attack_scene import AttackScene
from shoal.data.classes import Classes, Closeness, Population, SensitiveColumn
from shoal.data.hierarchies.hierarchy import Hierarchy
from shoal.data.ledger_view import LedgerView, Placement
from shoal.data.linked import BundleRows, Bundles, Templates
from shoal.data.partition import Cut, Matrix, Partition
from shoal.data.release import Release
from shoal.data.stream import (
    DROP,
    HOLD,
    NEW,
    REUSE,
    SUPPRESS,
    Arrivals,
    Emissions,
    Piece,
    Space,
    State,
)
from shoal.errors import InfeasibleError, InputError
from shoal.privacy.promise import Promise, as_written, sign
from shoal.privacy.value_counts import ValueCounts, sensitive_column, value_counts
from shoal.protocols import (
    AnonymityRequirement,
    Attack,
    Bucketizer,
    BundlePromises,
    Bundler,
    HierarchyMaker,
    Metric,
    Partitioner,
    PrivacyModel,
    Promises,
    PromiseTerms,
    Recoder,
    Renderer,
    Republisher,
    Sink,
    Source,
    StreamMethod,
    StreamPromises,
    StreamPublisher,
)

if TYPE_CHECKING:
    from shoal.testing import (
        OnlyK,
        check_attack,
        check_hierarchy_maker,
        check_metric,
        check_partitioner,
        check_promise,
        check_recoder,
        check_stream_method,
        promises_on,
        sensitive_columns,
        small_classes,
        small_matrices,
        small_releases,
        small_scenes,
    )

__all__ = [
    "DROP",
    "HOLD",
    "NEW",
    "REUSE",
    "SUPPRESS",
    "AnonymityRequirement",
    "Arrivals",
    "Attack",
    "AttackScene",
    "Bucketizer",
    "BundlePromises",
    "BundleRows",
    "Bundler",
    "Bundles",
    "Classes",
    "Closeness",
    "Cut",
    "Emissions",
    "Hierarchy",
    "HierarchyMaker",
    "InfeasibleError",
    "InputError",
    "LedgerView",
    "Matrix",
    "Metric",
    "OnlyK",
    "Partition",
    "Partitioner",
    "Piece",
    "Placement",
    "Population",
    "PrivacyModel",
    "Promise",
    "PromiseTerms",
    "Promises",
    "Recoder",
    "Release",
    "Renderer",
    "Republisher",
    "SensitiveColumn",
    "Sink",
    "Source",
    "Space",
    "State",
    "StreamMethod",
    "StreamPromises",
    "StreamPublisher",
    "Templates",
    "ValueCounts",
    "as_written",
    "check_attack",
    "check_hierarchy_maker",
    "check_metric",
    "check_partitioner",
    "check_promise",
    "check_recoder",
    "check_stream_method",
    "promises_on",
    "sensitive_column",
    "sensitive_columns",
    "sign",
    "small_classes",
    "small_matrices",
    "small_releases",
    "small_scenes",
    "value_counts",
]


def __getattr__(name: str) -> Any:
    """The battery, which compiles kernels: it is imported only by those who test with it."""
    if name not in __all__:
        raise AttributeError(f"module 'shoal.extend' has no attribute '{name}'")
    return getattr(importlib.import_module("shoal.testing"), name)


def __dir__() -> list[str]:
    return __all__
