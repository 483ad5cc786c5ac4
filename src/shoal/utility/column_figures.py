"""What a release did to each of its columns, in figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from shoal.data.release import Release
from shoal.data.single_ends import shares_of_ends, single_ends
from shoal.data.truth import Truth
from shoal.utility.gcp import GlobalCertaintyPenalty


@dataclass(frozen=True)
class ColumnFigures:
    """By name: what quasi-identifiers lost, and the share of ends that are one person's own."""

    losses: Mapping[str, float | None]
    single_ends: Mapping[str, float]

    @classmethod
    def of(cls, release: Release, truth: Truth | None) -> ColumnFigures:
        ends = {} if truth is None else shares_of_ends([single_ends(release, truth)])
        return cls(GlobalCertaintyPenalty().per_attribute(release), ends)
