"""Lattice walk: any levels of a global recoding, and each a step coarser or finer, measured."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.advise.source import Source, read_source
from shoal.data.classes import Classes
from shoal.data.matrix import Matrix
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError
from shoal.policy.binding.table import bind
from shoal.policy.policy import Policy, PolicyLike
from shoal.privacy.promises import BoundPromises
from shoal.tables.explain import neighbourhood


class LatticeWalk:
    """A table whose levels are looked at one after the other; see `lattice_walk`."""

    def __init__(self, matrix: Matrix, whole_table: Classes, policy: Policy) -> None:
        self._matrix, self._policy = matrix, policy
        self._bound = BoundPromises(policy.build_promises(), whole_table)

    @property
    def heights(self) -> dict[str, int]:
        """The greatest level of each quasi-identifier, where it shows nothing."""
        return dict(zip(self._matrix.names, map(int, self._matrix.heights), strict=True))

    def around(self, levels: Mapping[str, int]) -> dict[str, Any]:
        """What these levels lose and whether they are safe, and each neighbour.

        As the certificate's `explanation` has it: `node` and `neighbours`. Raises InputError where
        levels are not one for every quasi-identifier, within its heights.
        """
        heights = self.heights
        if set(levels) != set(heights):
            raise InputError(f"levels: name one for each of {', '.join(heights)}")
        for name, level in levels.items():
            if not 0 <= level <= heights[name]:
                raise InputError(f"levels: '{name}' has levels from 0 to {heights[name]}")
        node = tuple(levels[name] for name in heights)
        return neighbourhood(self._matrix, self._bound, node, self._policy)


def lattice_walk(
    source: Source, policy: PolicyLike, *, progress: Progress = no_progress
) -> LatticeWalk:
    """The levels of a table under a policy of global recoding, to be looked at one by one.

    Raises InputError where the table does not fit the policy, or its method recodes each class on
    its own.
    """
    asked = Policy.of(policy)
    asked.require_global("levels: there are none to walk")
    table = read_source(source, asked, progress)
    bound, findings = bind(table, asked)
    if bound is None:
        raise InputError.from_findings(findings)
    return LatticeWalk(*bound.method_input(), bound.policy)
