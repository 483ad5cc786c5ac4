"""Releases that are out, as a new one is published beside them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.attacks.beside.audit import ATTACKERS, OWN, Numbered, Source, numbered, stated
from shoal.attacks.beside.beside import NamedRelease, ReleaseLike, source_of_frames
from shoal.attacks.beside.sharing import (
    KnownPeople,
    fitting_pairs,
    people_who_fit,
    points_of,
    profiles_of,
)
from shoal.attacks.beside.sources import stripped
from shoal.auditor.audit import AuditResult
from shoal.data.beside import ABSENT, BesideGuard, Candidates, Overlap, ReleaseBeside
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.truth import Truth
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
    places = everybody.places()
    cells, person = profiles_of(places)
    pairs = places.of_items(np.isin(np.arange(len(cells)), person))
    own = everybody.numbers[-1]
    there = cells >= 0
    total = np.bincount(cells[there])
    inside = np.bincount(cells[own][cells[own] >= 0], minlength=len(total))
    of_record = np.where(cells[own] >= 0, cells[own], ABSENT)[place]
    return Overlap(of_record, total - inside, cells[pairs.items], pairs.classes)


# Releases that are out, for an attacker who knows of one person only who is in which release.


NEW = "INPUT"


@dataclass(frozen=True)
class OwnPresenceGuard:
    """The attacker knows what everybody is like, and of one person who is in which release."""

    sources: Sequence[Source]

    def check(self) -> None:
        """Raises InputError where it can't be known who fits a class."""
        for known in numbered(self.sources).known():
            known.check()

    def candidates(self, truth: Truth, schema: Schema) -> Candidates:
        """Who fits all old classes of the people of a new table.

        truth: of a table whose people have one record each.
        """
        names, person = _people_of(truth, schema)
        nobody = np.zeros(0, dtype=np.int64)
        table = Source(ReleaseBeside("table", names, nobody, nobody, 0), NEW)
        everybody = numbered([*self.sources, table])
        own = everybody.numbers[-1][person]
        released = Numbered(self.sources, everybody.numbers[:-1], everybody.people)
        known = [*released.known(), KnownPeople(truth, schema, own, NEW)]
        known[-1].check()
        releases = [source.audited.release for source in self.sources if source.audited is not None]
        fits = people_who_fit(releases, known, everybody.people)
        places = released.places()
        profile, first = profiles_of(places)
        groups = np.where(profile[own] >= 0, np.append(first, ABSENT)[profile[own]], ABSENT)
        asked = np.zeros(everybody.people, dtype=bool)
        asked[groups[groups >= 0]] = True
        starts, people = fitting_pairs(places.of_items(asked), fits).postings
        values, whose = points_of(known, len(known) - 1, everybody.people)
        points = np.empty_like(values)
        points[whose] = values
        return Candidates(groups, starts, people, points)

    def report(
        self, k: int, certificate: Certificate, release: Release, schema: Schema, truth: Truth
    ) -> dict[str, Any]:
        """How few people fit all classes of anybody who is in this release and in another."""
        names, person = _people_of(truth, schema)
        labels = release.classes.labels
        kept = labels >= 0
        rows = truth.aligned(person)[kept], labels[kept].astype(np.int64)
        shown = ReleaseBeside("table", names, *rows, release.classes.count)
        audited = AuditResult(certificate, release, schema, truth)
        everybody = numbered([*self.sources, Source(shown, NEW, audited)])
        joint = everybody.joint(OWN)
        is_new = joint.present[:, -1]
        is_old: np.ndarray = joint.present[:, :-1].sum(axis=1) > 0
        remaining = joint.remaining(range(joint.releases))[is_new & is_old]
        there = is_old[everybody.numbers[-1]]
        below = int((remaining < k).sum())
        return {
            "k": k,
            "attacker": OWN,
            "releases": [stated(source.release) for source in self.sources],
            "people": len(remaining),
            "below_k": below,
            "alone": int((remaining < 2).sum()),
            "least": int(remaining.min()) if len(remaining) else None,
            "strict": False,
            "withheld": int(there.sum()) - len(remaining),
            "newcomers": int((~there).sum()),
            "holds": below == 0,
        }


def _people_of(truth: Truth, schema: Schema) -> tuple[tuple[str, ...], np.ndarray]:
    """The distinct names in an original, and which of them each record holds."""
    if schema.subject is None:
        raise InputError("beside: the policy names no 'subject'; give a column this role")
    named = truth.original.column(schema.subject.name)
    names, place = stripped(named.cells)
    return names, place[named.codes]
