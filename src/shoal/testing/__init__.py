"""The contract battery: what whatever is plugged in must keep, for those who write it.

    from shoal.testing import check_partitioner, small_matrices
    for matrix in small_matrices():
        check_partitioner(MyMethod(), matrix, k=3)

A check raises AssertionError that names what was broken. There is one for every socket.
"""

from shoal.testing.judges import (
    check_attack,
    check_hierarchy_maker,
    check_metric,
    check_promise,
    small_classes,
    small_releases,
    small_scenes,
)
from shoal.testing.methods import (
    OnlyK,
    cells_of,
    check_partition,
    check_partitioner,
    check_recoder,
    check_stream_method,
    promises_on,
    sensitive_columns,
    small_matrices,
)

__all__ = [
    "OnlyK",
    "cells_of",
    "check_attack",
    "check_hierarchy_maker",
    "check_metric",
    "check_partition",
    "check_partitioner",
    "check_promise",
    "check_recoder",
    "check_stream_method",
    "promises_on",
    "sensitive_columns",
    "small_classes",
    "small_matrices",
    "small_releases",
    "small_scenes",
]
