"""Releases that are out, as a new one is published beside them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.data.beside import ABSENT, BesideGuard, Overlap, ReleaseBeside
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError
from shoal.jobs.beside.audit import Source, numbered, stated
from shoal.jobs.beside.beside import NamedRelease, ReleaseLike, source_of_frames
from shoal.jobs.beside.sources import stripped
from shoal.privacy.beside.sharing import profiles_of


def guard_of(sources: Sequence[Source], strict: bool = False) -> BesideGuard:
    """What is asked of a table that is published beside these releases."""
    for source in sources:
        if not source.release.holds:
            raise InputError(
                f"{source.what}: does not keep its own promises, so nothing can be published safely"
                " beside it; audit it alone"
            )

    def overlap(names: Sequence[str]) -> Overlap:
        return _overlap(sources, names)

    return BesideGuard(tuple(stated(source.release) for source in sources), overlap, strict)


def guard_of_frames(
    releases: Sequence[ReleaseLike], strict: bool = False, progress: Progress = no_progress
) -> BesideGuard:
    """The same of frames and ledgers."""
    return guard_of(
        [
            source_of_frames(release, f"beside, release {number}", progress)
            for number, release in enumerate(releases, 1)
        ],
        strict,
    )


def guard_of_files(
    releases: Sequence[NamedRelease], strict: bool = False, progress: Progress = no_progress
) -> BesideGuard:
    """The same of files."""
    return guard_of(
        [release.source(f"--beside '{release.released}'", progress) for release in releases], strict
    )


def _overlap(sources: Sequence[Source], names: Sequence[str]) -> Overlap:
    """Who of these shares all classes in the releases with whom; exactly the same ones."""
    distinct, place = stripped(names)
    nobody = np.zeros(0, dtype=np.int64)
    table = Source(ReleaseBeside("table", distinct, nobody, nobody, 0), "INPUT")
    everybody = numbered([*sources, table])
    cells, _ = profiles_of(everybody.places())
    own = everybody.numbers[-1]
    there = cells >= 0
    total = np.bincount(cells[there])
    inside = np.bincount(cells[own][cells[own] >= 0], minlength=len(total))
    return Overlap(np.where(cells[own] >= 0, cells[own], ABSENT)[place], total - inside)
