"""Releases that are out, as a new one is published beside them: whom nothing could protect, and
whether the new classes keep everybody among k.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from shoal.attacks.beside import audit
from shoal.attacks.beside.audit import Numbered, ReleaseBeside
from shoal.attacks.beside.others import Others, OthersLike
from shoal.attacks.run.request import AttackRequest
from shoal.auditor.audit import AuditResult
from shoal.auditor.sharing import ABSENT, KnownPeople, fitting_pairs, points_of, profiles_of
from shoal.data.certificate_shape import BesideReport
from shoal.data.numbers import alike
from shoal.data.progress import Progress, no_progress
from shoal.data.schema import Schema
from shoal.data.table import Column
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.policy import Policy

NEW = "INPUT"


@dataclass(frozen=True)
class Candidates:
    """Of whom an attacker thinks who knows the people of a new table by what they are like.

    groups: (n,) int64, equal where records' people share all classes in the releases that are out;
        ABSENT for newcomers.
    starts, people: who fits all classes of a group: `people[starts[group] : starts[group + 1]]`.
    points: (people, d) float64, what is known of everybody on the quasi-identifiers of the table.
    """

    groups: np.ndarray
    starts: np.ndarray
    people: np.ndarray
    points: np.ndarray


@dataclass(frozen=True)
class BesideGuard:
    """Releases that are out, beside which a table is to be published, and against whom.

    attacker: `presence` knows who is in which release, `own` what everybody is like, and of one
    person who is in which. strict: whether what is learned of those who are missing counts, too.
    """

    releases: Sequence[ReleaseBeside]
    attacker: str = audit.PRESENCE
    strict: bool = False

    @property
    def is_own(self) -> bool:
        return self.attacker == audit.OWN

    def candidates(self, truth: Truth, schema: Schema) -> Candidates:
        """Who fits all old classes of the people of a new table; raises InputError where that can't
        be known.

        truth: of a table whose people have one record each.
        """
        names, person = audit.people_of(truth, schema)
        everybody = audit.numbered([*self.releases, ReleaseBeside(NEW, "table", names)])
        own = everybody.numbers[-1][person]
        released = Numbered(self.releases, everybody.numbers[:-1], everybody.people)
        known = [*released.known(), KnownPeople(truth, schema, own, NEW)]
        known[-1].check()
        fits = released.fits(known)
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

    def report(self, k: int, audited: AuditResult) -> BesideReport:
        """How few people fit all classes of anybody who is in this release and in another: the last
        check of what is to be published, as a certificate states it.
        """
        assert audited.truth is not None
        names, person = audit.people_of(audited.truth, audited.problem.schema)
        classes = audited.release.classes
        kept = classes.labels >= 0
        rows = audited.truth.aligned(person)[kept], classes.labels[kept].astype(np.int64)
        shown = ReleaseBeside(NEW, "table", names, *rows, classes.count, audited=audited)
        everybody = audit.numbered([*self.releases, shown])
        joint = everybody.joint(audit.OWN)
        is_new = joint.present[:, -1]
        is_old: np.ndarray = joint.present[:, :-1].sum(axis=1) > 0
        remaining = joint.remaining(range(joint.releases))[is_new & is_old]
        there = is_old[everybody.numbers[-1]]
        return self.stated(k, remaining, int(there.sum()) - len(remaining), int((~there).sum()))

    def stated(self, k: int, remaining: np.ndarray, withheld: int, newcomers: int) -> BesideReport:
        """As a certificate states it. remaining: for each who is left, among how many people."""
        found = audit.counted(remaining, k)
        asked = {"k": k, "attacker": self.attacker}
        stated = {**asked, "releases": [release.stated for release in self.releases], **found}
        stated |= {"strict": self.strict, "withheld": withheld, "newcomers": newcomers}
        return cast(BesideReport, stated | {"holds": found["below_k"] == 0})


def guard_of(
    others: OthersLike, policy: Policy, request: AttackRequest, progress: Progress = no_progress
) -> tuple[BesideGuard | None, AttackRequest]:
    """The conditions for a table that is published beside these releases, and the attacks with
    those of them that attacks can use; raises InputError.
    """
    asked = Others.of(others)
    if asked.k is not None or asked.l is not None:
        raise InputError(
            "others: k and l are asked by audits; a release that is published keeps those of its"
            " policy, so leave them out"
        )
    read, request = asked.read(policy, request, progress)
    for release in read:
        if not release.holds:
            raise InputError(
                f"{release.what}: does not keep its own promises, so nothing can be published"
                " safely beside it; audit it alone"
            )
    if not read:
        return None, request
    audit.check_spelling([*read, ReleaseBeside(NEW, "table", (), together=policy.model.together)])
    guard = BesideGuard(read, asked.attacker, asked.strict)
    for known in audit.numbered(read).known() if guard.is_own else ():
        known.check()  # or it can't be known who fits a class
    return guard, request


@dataclass(frozen=True)
class OldCells:
    """The people of a new table by their classes in the releases that are out.

    cells: (n,) int64, equal where people share all classes in the releases that are out; ABSENT for
        newcomers. elsewhere: (cells,) int64, people of each who are not in the table.
    of_cell, of_class: (m,) int64, a cell and one of the old classes that its people are in, which
        `strict` is about; several where they have several records, or are in several releases.
    """

    guard: BesideGuard
    k: int
    cells: np.ndarray
    elsewhere: np.ndarray
    of_cell: np.ndarray
    of_class: np.ndarray

    @classmethod
    def of(cls, guard: BesideGuard, k: int, named: Column) -> "OldCells":
        """Of a table's records. named: the column of their subjects."""
        distinct, place = audit.stripped(named.cells)
        everybody = audit.numbered([*guard.releases, ReleaseBeside(NEW, "table", distinct)])
        places = everybody.places()
        cells, person = profiles_of(places)
        pairs = places.of_items(np.isin(np.arange(len(cells)), person))
        own = cells[everybody.numbers[-1]]
        total = np.bincount(cells[cells >= 0])
        inside = np.bincount(own[own >= 0], minlength=len(total))
        of_record = np.where(own >= 0, own, ABSENT)[place][named.codes]
        return cls(guard, k, of_record, total - inside, cells[pairs.items], pairs.classes)

    def taken(self, kept: np.ndarray) -> "OldCells":
        """The cells of some of the records, (n,) bool; the others count as being elsewhere."""
        gone = self.cells[~kept & (self.cells >= 0)]
        more = np.bincount(gone, minlength=len(self.elsewhere))
        return replace(self, cells=self.cells[kept], elsewhere=self.elsewhere + more)

    def unsafe(self, rng: np.random.Generator) -> np.ndarray:
        """(n,) bool, the records that step 1 withholds."""
        known = self.cells >= 0
        sizes = np.bincount(self.cells[known], minlength=len(self.elsewhere))
        withheld = known & (sizes < self.k)[self.cells]
        if not self.guard.strict:
            return withheld
        for cell in np.flatnonzero(
            (sizes >= self.k) & (self.elsewhere > 0) & (self.elsewhere < self.k)
        ).tolist():
            self._withhold(withheld, self.cells == cell, int(self.elsewhere[cell]), rng)
        self._withhold_by_class(withheld, rng)
        newcomers = np.flatnonzero(self.cells == ABSENT)
        if len(newcomers) < self.k:
            withheld[newcomers] = True
        return withheld

    def _withhold(
        self, withheld: np.ndarray, members: np.ndarray, absent: int, rng: np.random.Generator
    ) -> None:
        """Withholds members until k are absent, or all where fewer than k would be left."""
        rows, more = np.flatnonzero(members & ~withheld), self.k - absent
        if len(rows) - more >= self.k:
            rows = rng.choice(rows, more, replace=False)
        withheld[rows] = True

    def _withhold_by_class(self, withheld: np.ndarray, rng: np.random.Generator) -> None:
        """Withholds members of old classes, of which cells are parts, and of cells with few."""
        while True:
            present, absent = self._people(~withheld)
            few = (present > 0) & ((present < self.k) | ((absent > 0) & (absent < self.k)))
            by_class = self._by_class(absent)
            missing = (by_class > 0) & (by_class < self.k) & (self._by_class(present) > 0)
            known = self.cells >= 0
            if few.any():
                cell = int(np.argmax(few))
                gone = int(absent[cell]) if present[cell] >= self.k else 0
                self._withhold(withheld, self.cells == cell, gone, rng)
            elif missing.any():
                number = int(np.argmax(missing))
                inside = np.isin(self.cells, self.of_cell[self.of_class == number])
                self._withhold(withheld, known & inside, int(by_class[number]), rng)
            else:
                break

    def _by_class(self, people: np.ndarray) -> np.ndarray:
        """(classes,) float64, the people of each old class, from those of each cell."""
        return np.bincount(self.of_class, weights=people[self.of_cell])

    def _people(self, shown: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(cells,) each, the people who are shown and those who are not. shown: (n,) bool."""
        known, cells = self.cells >= 0, len(self.elsewhere)
        present = np.bincount(self.cells[known & shown], minlength=cells)
        return present, self.elsewhere + np.bincount(self.cells[known & ~shown], minlength=cells)

    def report(self, labels: np.ndarray) -> BesideReport:
        """The last check, as a certificate states it: the people of each cell, and who is left.

        labels: (n,) published class of each record, -1 where it is in none.
        """
        both = (labels >= 0) & (self.cells >= 0)
        cell = alike([labels[both], self.cells[both]], int(both.sum()))
        remaining = np.bincount(cell)[cell]
        withheld = int(((labels < 0) & (self.cells >= 0)).sum())
        newcomers = int((self.cells == ABSENT).sum())
        found = self.guard.stated(self.k, remaining, withheld, newcomers)
        guards = not self.guard.strict or self._guards_differences(labels)
        return found | {"holds": found["holds"] and guards}

    def _guards_differences(self, labels: np.ndarray) -> bool:
        """Whether the members of each old class who are not published are none or k, those who
        share several of them too, and newcomers of each class.
        """
        present, absent = self._people(labels >= 0)
        groups = [(present, absent), (self._by_class(present), self._by_class(absent))]
        new = np.bincount(labels[(labels >= 0) & (self.cells == ABSENT)], minlength=1)
        few_absent = any(((a > 0) & (gone > 0) & (gone < self.k)).any() for a, gone in groups)
        return not few_absent and not ((new > 0) & (new < self.k)).any()

    def report_of(self, audited: AuditResult) -> BesideReport:
        """What is to be published beside the others, in the order of its records."""
        assert audited.truth is not None
        published = replace(self, cells=audited.truth.aligned(self.cells))
        return published.report(audited.release.classes.labels)
