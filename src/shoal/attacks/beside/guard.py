"""Releases that are out, as a new one is published beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from shoal.attacks.beside.audit import ATTACKERS, OWN, Source, numbered, stated
from shoal.attacks.beside.beside import NamedRelease, ReleaseLike, source_of_frames
from shoal.attacks.beside.own import OwnPresenceGuard
from shoal.attacks.beside.sharing import profiles_of
from shoal.attacks.beside.sources import stripped
from shoal.data.beside import ABSENT, BesideGuard, Overlap, ReleaseBeside
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError


@dataclass(frozen=True)
class Against:
    """What a table is guarded against beside other releases.

    attacker: `presence` knows who is in which release, `own` only that one person is; None is the
    first. strict: whether what is learned of those who are missing from the table counts, too.
    """

    attacker: str | None = None
    strict: bool = False

    def check(self) -> None:
        """Raises InputError for what can't be asked."""
        if self.attacker not in (None, *ATTACKERS):
            raise InputError(
                f"attacker '{self.attacker}': is unknown; choose one of {', '.join(ATTACKERS)}"
            )
        if self.strict and self.attacker == OWN:
            raise InputError(
                "strict: is about who knows which people are missing, and attacker 'own' does not;"
                " leave out one of them"
            )


PRESENCE_KNOWN = Against()


def guard_of(sources: Sequence[Source], against: Against = PRESENCE_KNOWN) -> BesideGuard:
    """The conditions for a table that is published beside these releases."""
    against.check()
    for source in sources:
        if not source.release.holds:
            raise InputError(
                f"{source.what}: does not keep its own promises, so nothing can be published safely"
                " beside it; audit it alone"
            )
    own = None
    if against.attacker == OWN:
        own = OwnPresenceGuard(sources)
        own.check()

    def overlap(names: Sequence[str]) -> Overlap:
        return _overlap(sources, names)

    out = tuple(stated(source.release) for source in sources)
    return BesideGuard(out, overlap, against.strict, own)


def guard_of_frames(
    releases: Sequence[ReleaseLike],
    against: Against = PRESENCE_KNOWN,
    progress: Progress = no_progress,
) -> BesideGuard:
    """The same of frames and ledgers."""
    against.check()
    return guard_of(
        [
            source_of_frames(release, f"beside, release {number}", progress)
            for number, release in enumerate(releases, 1)
        ],
        against,
    )


def guard_of_files(
    releases: Sequence[NamedRelease],
    against: Against = PRESENCE_KNOWN,
    progress: Progress = no_progress,
) -> BesideGuard:
    """The same of files."""
    against.check()
    return guard_of(
        [release.source(f"--beside '{release.released}'", progress) for release in releases],
        against,
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
