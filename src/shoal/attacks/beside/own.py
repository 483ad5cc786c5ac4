"""Releases that are out, for an attacker who knows of one person only who is in which release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from shoal.attacks.beside.audit import OWN, Numbered, Source, numbered, stated
from shoal.attacks.beside.own_presence import KnownPeople, people_who_fit, points_of
from shoal.attacks.beside.sharing import fitting_pairs, profiles_of
from shoal.attacks.beside.sources import stripped
from shoal.auditor.audit import AuditResult
from shoal.data.beside import ABSENT, Candidates, ReleaseBeside
from shoal.data.certificate import Certificate
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.errors import InputError

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
