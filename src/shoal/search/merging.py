"""Classes that are too far from the whole table merge until each is close enough.

Soria-Comas, Domingo-Ferrer, Sanchez, Martinez. t-closeness through microaggregation: strict privacy
with enhanced utility preservation. IEEE TKDE 27(11):3098-3110, 2015. Algorithm 1, its second half.
"""

from __future__ import annotations

import numpy as np

from shoal.data.partition import Partition
from shoal.search.kernels import merge_far
from shoal.search.targets import Targets


def merged(points: np.ndarray, labels: np.ndarray, targets: Targets) -> Partition:
    """The classes after merging the farthest with its nearest until all are close enough."""
    classes = int(labels.max()) + 1
    return Partition.of(merge_far.merge_far(points, labels, classes, *targets.arrays))
