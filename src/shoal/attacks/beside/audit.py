"""Audit releases beside one another: who remains when all that is shown of them is intersected.

read each > number people and classes through > intersect > report counts, never who
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from shoal.attacks.beside.judging import Attribute, Joint
from shoal.attacks.beside.own_presence import KnownPeople, people_who_fit
from shoal.attacks.beside.sharing import Links
from shoal.attacks.beside.spelling import check_spelling
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
