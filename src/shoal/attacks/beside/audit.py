"""Audit releases beside one another: who remains when all that is shown of them is intersected.

read each > number people and classes through > intersect > report counts, never who
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from shoal.attacks.beside.sharing import (
    ABSENT,
    KnownPeople,
    Links,
    by_pattern,
    fitting,
    people_who_fit,
)
from shoal.auditor.audit import AuditResult
from shoal.data.beside import ReleaseBeside
from shoal.data.person_names import person_name
from shoal.data.progress import Progress, no_progress
from shoal.errors import InputError

PRESENCE, OWN = "presence", "own"
ATTACKERS = (PRESENCE, OWN)
DEFAULT_K = 2


@dataclass(frozen=True)
class BesideQuestion:
    """The options of an audit of several releases together.

    attacker: `presence` knows who is in which release, `own` only that one person is. same: names
    of one attribute that never changes, each a text such as `disease=diagnosis`; without any, all
    sensitive attributes of the same name. k, l: instead of the least that the policies ask.
    """

    attacker: str = PRESENCE
    same: tuple[str, ...] = ()
    k: int | None = None
    l: int | None = None

    def check(self) -> None:
        """Raises InputError for what no audit can answer."""
        if self.attacker not in ATTACKERS:
            raise InputError(
                f"attacker '{self.attacker}': is unknown; choose one of {', '.join(ATTACKERS)}"
            )
        for name, number in (("k", self.k), ("l", self.l)):
            if number is not None and number < 1:
                raise InputError(f"{name}: must be 1 or more; give how many must remain")


@dataclass(frozen=True)
class Source:
    """One of several releases. audited: what its own audit found; None for a ledger."""

    release: ReleaseBeside
    what: str
    audited: AuditResult | None = None


@dataclass(frozen=True)
class Numbered:
    """All releases with people and classes numbered through.

    numbers: for each release, (subjects,) int64. first: where its classes begin.
    """

    sources: Sequence[Source]
    numbers: list[np.ndarray]
    people: int
    first: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        counts = [source.release.count for source in self.sources]
        object.__setattr__(self, "first", np.concatenate(([0], np.cumsum(counts))))

    @property
    def classes(self) -> int:
        return int(self.first[-1])

    def places(self) -> Links:
        """People and their classes."""
        items = [
            number[source.release.people]
            for source, number in zip(self.sources, self.numbers, strict=True)
        ]
        labels = [
            source.release.labels + start
            for source, start in zip(self.sources, self.first, strict=False)
        ]
        return Links.of(np.concatenate(items), np.concatenate(labels), self.people, self.classes)

    def known(self) -> list[KnownPeople]:
        """The originals, and whose their rows are; raises InputError for a ledger."""
        known = []
        for source, number in zip(self.sources, self.numbers, strict=True):
            if source.audited is None or source.audited.truth is None:
                raise InputError(
                    f"{source.what}: is a ledger, which keeps no original, so who fits its classes"
                    " is not known; leave out 'own'"
                )
            truth, schema = source.audited.truth, source.audited.schema
            named = truth.original.column(str(_subject(source.audited)))
            place = {name: i for i, name in enumerate(source.release.subjects)}
            own = np.array([place[person_name(cell)] for cell in named.cells], dtype=np.int64)
            known.append(KnownPeople(truth, schema, number[own[named.codes]], source.what))
        return known

    def fits(self) -> Links:
        """People and the classes that they fit."""
        known = self.known()
        releases = [source.audited.release for source in self.sources if source.audited is not None]
        return people_who_fit(releases, known, self.people)

    def joint(self, attacker: str) -> Joint:
        """What all of them together tell such an attacker."""
        owner = np.repeat(np.arange(len(self.sources)), np.diff(self.first))
        fits = self.fits() if attacker == OWN else None
        return Joint(self.places(), owner, len(self.sources), fits)


def _subject(audited: AuditResult) -> str | None:
    return None if audited.schema.subject is None else audited.schema.subject.name


def audit_sources(
    sources: Sequence[Source], question: BesideQuestion, progress: Progress = no_progress
) -> dict[str, Any]:
    """The `beside` part of a certificate: how few remain over all of these releases.

    Raises InputError where people can't be found again, and for an attribute in question that
    fewer than two of them show.
    """
    question.check()
    if len(sources) < 2:
        raise InputError("beside: one release has nothing beside it; name another")
    progress("finding people in several releases")
    everybody = numbered(sources)
    attributes = _attributes(everybody, question)
    progress("intersecting their classes")
    joint = everybody.joint(question.attacker)
    asked = [source.release.k for source in sources if source.release.k is not None]
    k = question.k or min(asked, default=DEFAULT_K)
    found = joint.report(k, attributes)
    holds = [source.release.holds for source in sources]
    return {
        "attacker": question.attacker,
        "releases": [stated(source.release) for source in sources],
        **found,
        "holds": found["holds"] and all(holds),
    }


def stated(release: ReleaseBeside) -> dict[str, Any]:
    return {
        "kind": release.kind,
        "sha256": release.sha256,
        "people": len(np.unique(release.people)),
        "classes": release.count,
        "holds": release.holds,
    }


def numbered(sources: Sequence[Source]) -> Numbered:
    """These releases with people and classes numbered through; raises InputError."""
    return Numbered(sources, *_numbers(sources))


def _numbers(sources: Sequence[Source]) -> tuple[list[np.ndarray], int]:
    """A number for each person, the same in all releases; and how many people there are.

    A ledger knows people by keyed tokens, which two ledgers make of a name in different ways.
    """
    ledgers = [source for source in sources if source.release.token is not None]
    if len(ledgers) > 1:
        raise InputError(
            f"{ledgers[1].what}: two ledgers hide the names of people by keys of their own, so"
            " nobody can be found again; audit tables or streams beside one ledger"
        )
    number_of: dict[str, int] = {}
    numbers: dict[int, np.ndarray] = {}
    for index, source in enumerate(sources):
        if source.release.token is None:
            numbers[index] = np.array(
                [number_of.setdefault(name, len(number_of)) for name in source.release.subjects],
                dtype=np.int64,
            )
    check_spelling([(source.what, source.release) for source in sources])
    people = len(number_of)
    for index, source in enumerate(sources):
        token = source.release.token
        if token is not None:
            known = {token(name): number for name, number in number_of.items()}
            strangers = people + np.arange(len(source.release.subjects))
            numbers[index] = np.array(
                [
                    known.get(name, stranger)
                    for name, stranger in zip(
                        source.release.subjects, strangers.tolist(), strict=True
                    )
                ],
                dtype=np.int64,
            )
            people += len(source.release.subjects)
    return [numbers[index] for index in range(len(sources))], people


# Attributes that never change


def _attributes(everybody: Numbered, question: BesideQuestion) -> list[Attribute]:
    releases = [source.release for source in everybody.sources]
    if question.same:
        groups = [tuple(name.strip() for name in text.split("=")) for text in question.same]
    else:
        names = dict.fromkeys(name for release in releases for name in release.sensitive)
        groups = [(name,) for name in names]
    found = []
    for group in groups:
        named = _names(group, releases, is_asked=bool(question.same))
        if len(named) > 1:
            found.append(_attribute(everybody, named, question.l))
        elif question.same:
            raise InputError(
                f"--same {'='.join(group)}: is shown by fewer than two releases; name an attribute"
                " that two of them show, as A=B where its names differ"
            )
    return found


def _names(
    group: Sequence[str], releases: Sequence[ReleaseBeside], is_asked: bool
) -> dict[int, str]:
    """By release, what the attribute is called there. is_asked: even if it is not sensitive."""
    named = {}
    for index, release in enumerate(releases):
        shown = release.values if is_asked else release.sensitive
        own = [name for name in group if name in shown and name in release.values]
        if own:
            named[index] = own[0]
    return named


def _attribute(everybody: Numbered, named: Mapping[int, str], l: int | None) -> Attribute:
    """One attribute of several releases, its values matched by their text."""
    place: dict[str, int] = {}
    items, classes, asked = [], [], []
    for index, name in named.items():
        release = everybody.sources[index].release
        shown = release.values[name]
        own = [place.setdefault(text, len(place)) for text in shown.texts]
        items.append(np.array(own, dtype=np.int64)[shown.codes])
        classes.append(shown.classes + everybody.first[index])
        if name in release.least_values:
            asked.append(release.least_values[name])
    values = Links.of(np.concatenate(items), np.concatenate(classes), len(place), everybody.classes)
    return Attribute(named, l if l is not None else min(asked, default=None), values)


# Whether several releases about the same people are safe together.
#
# Promise: everybody who is in two or more of them stays among at least k people, C(p), and among
# at least l values, V(p), when all classes that they are in are intersected. Whoever is in one
# release only is as safe as that release. A further release never enlarges C(p) or V(p). Reading:
# what the attacker knows of absence is not used; whoever is in at least the same classes counts.
# A person with several records is in several classes, and all of them are intersected.


@dataclass(frozen=True)
class Attribute:
    """An attribute that several releases show, and that never changes.

    names: by release, its name there. asked: least number of values, None where nobody asks.
    values: which value each class shows, the classes numbered through all releases.
    """

    names: Mapping[int, str]
    asked: int | None
    values: Links


@dataclass(frozen=True)
class Joint:
    """Everybody's classes in all releases, which are numbered through.

    places: people and their classes. release_of: (classes,) the release of each class.
    fits: people and the classes that they fit by what is known of them; None where the attacker
    knows who is in which release, so that only members fit.
    """

    places: Links
    release_of: np.ndarray
    releases: int
    fits: Links | None = None

    @cached_property
    def present(self) -> np.ndarray:
        """(people, releases) bool, who is in a class of which release."""
        present = np.zeros((self.places.item_count, self.releases), dtype=bool)
        present[self.places.items, self.release_of[self.places.classes]] = True
        return present

    @cached_property
    def _labels(self) -> np.ndarray | None:
        """(people, releases) the class of each, None where somebody is in several of one."""
        release = self.release_of[self.places.classes]
        if int(self.present.sum()) < len(release):
            return None
        labels = np.full(self.present.shape, ABSENT, dtype=np.int64)
        labels[self.places.items, release] = self.places.classes
        return labels

    def judged(self, releases: Sequence[int]) -> np.ndarray:
        """The people who are in two or more of these releases."""
        return np.flatnonzero(self.present[:, list(releases)].sum(axis=1) > 1)

    def remaining(self, releases: Sequence[int]) -> np.ndarray:
        """|C(p)| of everybody over these releases; (people,) int64."""
        chosen = list(releases)
        if self.fits is None and self._labels is not None:
            counted = by_pattern(self._labels[:, chosen])
            if counted is not None:
                return counted
        kept = np.isin(self.release_of, chosen)
        places = self.places.of_classes(kept)
        return fitting(places, places if self.fits is None else self.fits.of_classes(kept))

    def people_row(self, releases: Sequence[int], k: int) -> dict[str, Any]:
        """How many people of these releases remain among fewer than k, counts only."""
        people = self.judged(releases)
        remaining = self.remaining(releases)[people]
        return {
            "people": len(people),
            "below_k": int((remaining < k).sum()),
            "alone": int((remaining < 2).sum()),
            "least": int(remaining.min()) if len(people) else None,
        }

    def values_row(self, attribute: Attribute) -> dict[str, Any]:
        """How many people's value of an attribute is certain, or among fewer than asked.

        Where classes show no common value at all, the attribute is not one that never changes.
        """
        releases = sorted(attribute.names)
        people = self.judged(releases)
        places = self.places.of_classes(np.isin(self.release_of, releases))
        remaining = fitting(places, attribute.values)[people]
        asked = attribute.asked
        return {
            "names": [attribute.names[release] for release in releases],
            "releases": [release + 1 for release in releases],
            "people": len(people),
            "asked": asked,
            "below": None if asked is None else int((remaining < asked).sum()),
            "certain": int((remaining == 1).sum()),
            "none": int((remaining == 0).sum()),
            "least": int(remaining.min()) if len(people) else None,
        }

    def report(self, k: int, attributes: Sequence[Attribute]) -> dict[str, Any]:
        """All of it, as a certificate states it; counts, and never who."""
        everything = range(self.releases)
        pairs = combinations(everything, 2)
        whole = self.people_row(everything, k)
        values = [self.values_row(attribute) for attribute in attributes]
        return {
            "k": k,
            **whole,
            "attributes": values,
            "pairs": [
                {"releases": [one + 1, other + 1], **self.people_row((one, other), k)}
                for one, other in (pairs if self.releases > 2 else ())
            ],
            "holds": whole["below_k"] == 0 and not any(row["below"] for row in values),
        }


# Ids of people that differ in their spelling alone: joint audits would take them for others.


WIDEST = 12
"""Digits of a number with zeros in front that is looked for where names are hidden."""

Named = tuple[str, ReleaseBeside]


def check_spelling(releases: Sequence[Named]) -> None:
    """Raises InputError where people are taken for others, as ids are written otherwise.

    releases: what each is called in findings, and itself.
    """
    named = [one for one in releases if one[1].token is None]
    for (first, ours), (second, theirs) in combinations(named, 2):
        _refuse(first, second, *_of_tables(set(ours.subjects), set(theirs.subjects)))
    for ledger, hidden in releases:
        for other, release in named if hidden.token is not None else ():
            _refuse(ledger, other, *_of_ledger(hidden, set(release.subjects)))


def _refuse(first: str, second: str, taken: int, allowed: int) -> None:
    if taken > allowed:
        raise InputError(
            f"{second}: {taken} of its people are those of {first}, but for capitals, zeros in"
            " front or '.0' in their ids, and would be taken for others; write the ids of all"
            " releases alike"
        )


def _of_tables(ours: set[str], theirs: set[str]) -> tuple[int, int]:
    """How many are taken for others, and for how many of them the spelling is not the cause."""
    alike = ours & theirs
    bare = {_bare(name) for name in ours - alike} & {_bare(name) for name in theirs - alike}
    return len(bare), len(alike) if _tells_apart(ours) or _tells_apart(theirs) else 0


def _of_ledger(ledger: ReleaseBeside, names: set[str]) -> tuple[int, int]:
    """The same of people whose names are hidden, and those of a table."""
    assert ledger.token is not None
    token, known = ledger.token, set(ledger.subjects)
    strange = [name for name in names if token(name) not in known]
    taken = sum(any(token(other) in known for other in _spellings(name)) for name in strange)
    return taken, len(names) - len(strange) if _tells_apart(names) else 0


def _tells_apart(names: set[str]) -> bool:
    """Whether one release has several people whose ids differ in nothing else."""
    return len({_bare(name) for name in names}) < len(names)


def _bare(name: str) -> str:
    return re.sub(r"(?<=\d)\.0+$", "", name.casefold()).lstrip("0")


def _spellings(name: str) -> Iterator[str]:
    """Other ways to write an id."""
    bare = _bare(name)
    yield from (bare, bare.upper(), bare.capitalize(), f"{bare}.0", name.lower(), name.upper())
    if bare.isdigit():
        yield from (bare.zfill(width) for width in range(len(bare) + 1, WIDEST + 1))
