"""Audit releases beside one another: who remains when all that is shown of them is intersected.

read each > number people and classes through > intersect > report counts, never who
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any, Final, Literal, cast

import numpy as np
import polars as pl
from pydantic import Field

from shoal.auditor.audit import AuditResult
from shoal.auditor.sharing import KnownPeople, Links, fitting, people_who_fit, together
from shoal.data.certificate_shape import KNOWN_DATES, BesideReport, OtherRelease
from shoal.data.person_names import person_name, refuse_spelling, taken_for_others
from shoal.data.progress import Progress, no_progress
from shoal.data.schema import Schema
from shoal.data.truth import Truth
from shoal.errors import InputError
from shoal.policy.model import _Strict

PRESENCE: Final = "presence"
OWN: Final = "own"
DEFAULT_K = 2


class Question(_Strict):
    """What is asked of several releases together.

    attacker: `presence` knows who is in which release, `own` only that one person is. same: names
    of one attribute that never changes, each a text such as `disease=diagnosis`; without any, all
    sensitive attributes of the same name. k, l: instead of the least that the policies ask.
    """

    attacker: Literal["presence", "own"] = PRESENCE
    same: tuple[str, ...] = ()
    k: int | None = Field(default=None, ge=1)
    l: int | None = Field(default=None, ge=1)


@dataclass(frozen=True)
class ShownValues:
    """The values of one attribute that each class shows.

    classes, codes: (m,) int64, a class and the place in `texts` of a value that it shows.
    texts: the distinct values as they are compared; all that stand for none are empty.
    """

    classes: np.ndarray
    codes: np.ndarray
    texts: tuple[str, ...]


def _nobody() -> np.ndarray:
    return np.zeros(0, dtype=np.int64)


@dataclass(frozen=True)
class ReleaseBeside:
    """Who is in which class of a release, and what else is asked or known of it.

    what: its name in findings. kind: `table`, `stream` or `ledger`. subjects: the name of each
        person, or where `token` is not None what that makes of it. people, labels: (m,) int64, the
        place of a person in `subjects` and a class 0..count-1 that the person is in, in any order;
        withheld rows are left out.
    values: by attribute that is not a quasi-identifier. sensitive: which of them are.
    k, least_values: what its policy asks, the latter by sensitive attribute.
    holds: whether it keeps its own promises. sha256: of its file, or of a ledger its last hash.
    audited: what its own audit found; None for a ledger.
    taken: of a ledger, how many of distinct names are its people under another spelling alone.
    together: the columns that name its people together, none where one does; None if not known.
    unjudged: by sensitive column of linked tables, whether its policy promises of it what can't be
        asked of classes that are intersected. has_exact_gaps: whether a known date tells more than
        classes do, which can't be intersected either.
    """

    what: str
    kind: str
    subjects: tuple[str, ...]
    people: np.ndarray = field(default_factory=_nobody)
    labels: np.ndarray = field(default_factory=_nobody)
    count: int = 0
    values: Mapping[str, ShownValues] = field(default_factory=dict)
    sensitive: tuple[str, ...] = ()
    k: int | None = None
    least_values: Mapping[str, int] = field(default_factory=dict)
    holds: bool = True
    sha256: str | None = None
    audited: AuditResult | None = None
    token: Callable[[str], str] | None = None
    taken: Callable[[pl.Series], int] | None = None
    together: tuple[str, ...] | None = None
    unjudged: Mapping[str, bool] = field(default_factory=dict)
    has_exact_gaps: bool = False

    @property
    def stated(self) -> OtherRelease:
        """What a certificate says of it."""
        return {
            "kind": self.kind,
            "sha256": self.sha256,
            "people": len(np.unique(self.people)),
            "classes": self.count,
            "holds": self.holds,
        }


@dataclass(frozen=True)
class Numbered:
    """All releases with people and classes numbered through.

    numbers: for each release, (subjects,) int64, the same number for a person in all of them.
    """

    releases: Sequence[ReleaseBeside]
    numbers: list[np.ndarray]
    people: int

    @cached_property
    def first(self) -> np.ndarray:
        """(releases + 1,) where the classes of each release begin."""
        return np.concatenate(([0], np.cumsum([release.count for release in self.releases])))

    @property
    def classes(self) -> int:
        return int(self.first[-1])

    def places(self) -> Links:
        """People and their classes."""
        return together(
            Links.of(number[release.people], release.labels, self.people, release.count)
            for release, number in zip(self.releases, self.numbers, strict=True)
        )

    def known(self) -> list[KnownPeople]:
        """The originals, and whose their rows are; raises InputError for a ledger."""
        known = []
        for release, number in zip(self.releases, self.numbers, strict=True):
            if release.audited is None or release.audited.truth is None:
                raise InputError(
                    f"{release.what}: is a ledger, which keeps no original, so who fits its classes"
                    " is not known; leave out 'own'"
                )
            truth, schema = release.audited.truth, release.audited.problem.schema
            _, person = people_of(truth, schema)
            known.append(KnownPeople(truth, schema, number[person], release.what))
        return known

    def fits(self, known: Sequence[KnownPeople]) -> Links:
        """People and the classes that they fit. known: the originals, and others after them."""
        shown = [each.audited.release for each in self.releases if each.audited is not None]
        return people_who_fit(shown, known, self.people)

    def joint(self, attacker: str) -> "Joint":
        """What all of them together tell such an attacker."""
        owner = np.repeat(np.arange(len(self.releases)), np.diff(self.first))
        fits = self.fits(self.known()) if attacker == OWN else None
        return Joint(self.places(), owner, len(self.releases), fits)


def people_of(truth: Truth, schema: Schema) -> tuple[tuple[str, ...], np.ndarray]:
    """The distinct names in an original, and which of them each record holds."""
    if schema.subject is None:
        raise InputError("beside: the policy names no 'subject'; give a column this role")
    named = truth.original.column(schema.subject.name)
    names, place = stripped(named.cells)
    return names, place[named.codes]


def stripped(cells: Iterable[str]) -> tuple[tuple[str, ...], np.ndarray]:
    """Distinct names as they are compared, and which of them each cell holds."""
    place: dict[str, int] = {}
    number = [place.setdefault(person_name(cell), len(place)) for cell in cells]
    return tuple(place), np.array(number, dtype=np.int64)


def audit_together(
    releases: Sequence[ReleaseBeside], question: Question, progress: Progress = no_progress
) -> BesideReport:
    """The `beside` part of a certificate: how few remain over all of these releases.

    Raises InputError where people can't be found again, and for an attribute in question that
    fewer than two of them show.
    """
    if len(releases) < 2:
        raise InputError("beside: one release has nothing beside it; name another")
    progress("finding people in several releases")
    everybody = numbered(releases)
    attributes = _attributes(everybody, question)
    progress("intersecting their classes")
    joint = everybody.joint(question.attacker)
    asked = [release.k for release in releases if release.k is not None]
    found = joint.report(question.k or min(asked, default=DEFAULT_K), attributes)
    unjudged = list(_unjudged(releases))
    are_safe = found["holds"] and all(release.holds for release in releases)
    stated = {"attacker": question.attacker, "releases": [one.stated for one in releases], **found}
    stated |= {"unjudged": unjudged} if unjudged else {}
    return cast(BesideReport, stated | {"holds": are_safe and not unjudged})


def _unjudged(releases: Sequence[ReleaseBeside]) -> Iterator[str]:
    """What several releases show, and nobody judges together though a promise is about it."""
    if any(release.has_exact_gaps for release in releases):
        yield KNOWN_DATES
    for name in dict.fromkeys(name for release in releases for name in release.unjudged):
        shown = [one for one in releases if name in one.unjudged or name in one.values]
        if len(shown) > 1 and any(release.unjudged.get(name) for release in shown):
            yield name


def numbered(releases: Sequence[ReleaseBeside]) -> Numbered:
    """These releases with people and classes numbered through; raises InputError.

    A ledger knows people by keyed tokens, which two ledgers make of a name in different ways.
    """
    ledgers = [release for release in releases if release.token is not None]
    if len(ledgers) > 1:
        raise InputError(
            f"{ledgers[1].what}: two ledgers hide the names of people by keys of their own, so"
            " nobody can be found again; audit tables or streams beside one ledger"
        )
    check_spelling(releases)
    number_of: dict[str, int] = {}
    for release in releases:
        for name in release.subjects if release.token is None else ():
            number_of.setdefault(name, len(number_of))
    people, numbers = len(number_of), []
    for release in releases:
        known, strangers = number_of, 0
        if release.token is not None:
            known = {release.token(name): number for name, number in number_of.items()}
            strangers = len(release.subjects)
        own = [known.get(name, people + i) for i, name in enumerate(release.subjects)]
        numbers.append(np.array(own, dtype=np.int64))
        people += strangers
    return Numbered(releases, numbers, people)


# Attributes that never change


def _attributes(everybody: Numbered, question: Question) -> "list[Attribute]":
    releases = everybody.releases
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
                f"others, same: {'='.join(group)} is shown by fewer than two releases; name an"
                " attribute that two of them show, as A=B where its names differ"
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


def _attribute(everybody: Numbered, named: Mapping[int, str], l: int | None) -> "Attribute":
    """One attribute of several releases, its values matched by their text."""
    shown, asked = [], []
    for index, name in named.items():
        release = everybody.releases[index]
        shown.append((release.values[name], int(everybody.first[index])))
        if name in release.least_values:
            asked.append(release.least_values[name])
    values, _ = matched(shown, everybody.classes)
    return Attribute(named, l if l is not None else min(asked, default=None), values)


def matched(
    shown: Sequence[tuple[ShownValues, int]], classes: int
) -> tuple[Links, tuple[str, ...]]:
    """Which values all these classes show, matched by their text; and the texts.

    shown: each with where its classes begin. classes: how many there are in all.
    """
    place: dict[str, int] = {}
    items, labels = [], []
    for values, first in shown:
        own = [place.setdefault(text, len(place)) for text in values.texts]
        items.append(np.array(own, dtype=np.int64)[values.codes])
        labels.append(values.classes + first)
    links = Links.of(np.concatenate(items), np.concatenate(labels), len(place), classes)
    return links, tuple(place)


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

    def judged(self, releases: Sequence[int]) -> np.ndarray:
        """The people who are in two or more of these releases."""
        return np.flatnonzero(self.present[:, list(releases)].sum(axis=1) > 1)

    def remaining(self, releases: Sequence[int]) -> np.ndarray:
        """|C(p)| of everybody over these releases; (people,) int64."""
        kept = np.isin(self.release_of, list(releases))
        places = self.places.of_classes(kept)
        return fitting(places, places if self.fits is None else self.fits.of_classes(kept))

    def people_row(self, releases: Sequence[int], k: int) -> dict[str, int | None]:
        """How many people of these releases remain among fewer than k, counts only."""
        return counted(self.remaining(releases)[self.judged(releases)], k)

    def values_row(self, attribute: Attribute) -> Mapping[str, Any]:
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

    def report(self, k: int, attributes: Sequence[Attribute]) -> Mapping[str, Any]:
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


def counted(remaining: np.ndarray, k: int) -> dict[str, int | None]:
    """How many people are left among fewer than k. remaining: for each, among how many."""
    return {
        "people": len(remaining),
        "below_k": int((remaining < k).sum()),
        "alone": int((remaining < 2).sum()),
        "least": int(remaining.min()) if len(remaining) else None,
    }


# Ids of people that differ in their spelling alone: joint audits would take them for others.


def check_spelling(releases: Sequence[ReleaseBeside]) -> None:
    """Raises InputError where ids of other columns or spellings would pass for other people."""
    for first, second in combinations([one for one in releases if one.together is not None], 2):
        if first.together != second.together:
            raise InputError(
                f"{second.what}: its people are named by other columns together than those of"
                f" {first.what}, and would be taken for others; name the columns of 'subject' alike"
            )
    named = [release for release in releases if release.token is None]
    for first, second in combinations(named, 2):
        taken = taken_for_others(_column(second.subjects), _column(first.subjects))
        refuse_spelling(first.what, second.what, taken)
    for ledger in releases:
        if ledger.taken is not None:
            for other in named:
                refuse_spelling(ledger.what, other.what, ledger.taken(_column(other.subjects)))


def _column(names: Iterable[str]) -> pl.Series:
    return pl.Series(list(names), dtype=pl.String)
