"""Class sizes: how many classes of each size a release has."""

import numpy as np

from shoal.data.release import Release


def class_sizes(release: Release) -> tuple[np.ndarray, np.ndarray]:
    """The sizes that occur, ascending, and how many classes have each; both (m,) int64.

    Sizes are distinct subjects; suppressed records are in no class.
    """
    counts = np.bincount(release.classes.people())
    sizes = np.flatnonzero(counts)
    return sizes, counts[sizes]
