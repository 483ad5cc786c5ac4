"""Dossier: one file for whoever decides on a release - what was measured, what its owner answers,
and what is still open.

Never says that a release meets a law: that is for people to decide.
"""

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any

import yaml

from shoal.auditor import description
from shoal.auditor.checks import GRAVE_FINDING, OTHER_RELEASES, Check
from shoal.auditor.dossier.context import (
    RATINGS,
    UNMATCHED,
    Context,
    ContextLike,
    Rating,
    Roles,
    as_point,
    initial_risk,
    is_within,
    lack_of,
    parts_of,
    read_context,
    residual_risk,
    words_of,
)
from shoal.auditor.linked.labels import initial_linked_risk
from shoal.auditor.signatures import Proof
from shoal.auditor.verdict import NONE_ON_LINKED, unjudged_limits, what_fails
from shoal.auditor.verify import FAILS, require_there, verify_by
from shoal.data.certificate import Certificate
from shoal.data.option import suggestion
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import file_sha256, path_text
from shoal.data.warnings import GRAVE, OPEN
from shoal.errors import InputError, PromiseError
from shoal.policy.policy import Policy, PolicyLike
from shoal.policy.problem import LinkedProblem
from shoal.version import VERSION

# Profiles: what a standard or law asks of a release, clause by clause. They are data, not code.


PROFILES, SUFFIX = Path(__file__).with_name("profiles"), ".yaml"
DEFAULT = "gdpr"


@dataclass(frozen=True)
class Clause:
    """One clause, and the fields of a dossier that speak to it."""

    clause: str
    about: str
    fields: tuple[str, ...]


@dataclass(frozen=True)
class Profile:
    """One standard or law. document, date: what its clauses are of; how they map is ours."""

    name: str
    title: str
    document: str
    date: str
    clauses: tuple[Clause, ...]


def profile_names() -> list[str]:
    """The profiles that are here."""
    names = [entry.name for entry in PROFILES.iterdir() if entry.name.endswith(SUFFIX)]
    return sorted(name.removesuffix(SUFFIX) for name in names)


def read_profiles(names: Sequence[str]) -> list[Profile]:
    """The profiles of these names, `DEFAULT` where none is named; raises InputError."""
    known = profile_names()
    InputError.raise_for(
        f"profile '{name}': unknown; {suggestion(name, known)}choose one of {', '.join(known)}"
        for name in names
        if name not in known
    )
    profiles = []
    for name in dict.fromkeys(names or [DEFAULT]):
        content = yaml.safe_load((PROFILES / f"{name}{SUFFIX}").read_text("utf-8"))
        clauses = tuple(
            Clause(str(entry["clause"]), str(entry["about"]), tuple(entry["fields"]))
            for entry in content["clauses"]
        )
        profiles.append(
            Profile(name, content["title"], content["document"], content["date"], clauses)
        )
    return profiles


SCHEMA = "shoal.dossier/1"
ANSWERED = "answered"
REJECTED, QUESTION = "rejected", "question"
NOT_ACCEPTABLE = (FAILS, REJECTED, UNMATCHED, QUESTION)
"""Points that no words close."""

NOT_JUDGED = "Not judged together with"
"""How a point about other releases begins."""

Point = Mapping[str, Any]
"""What is open: its kind, what it is about, its text, and the clauses that ask for it."""


@dataclass(frozen=True)
class Dossier:
    """What is known about a release. content: as dossier.json has it."""

    content: Mapping[str, Any]
    checks: tuple[Check, ...]
    profiles: tuple[Profile, ...]

    @property
    def open(self) -> list[Point]:
        """What is still to be decided: what fails, findings, then what is not answered."""
        return list(self.content["open"])

    def decided(self, more: Sequence[Point], known: Collection[str]) -> "Dossier":
        """With more findings, and without those that are accepted in words; what is accepted and
        was not found is open. known: sentences of further findings, which nobody must accept.
        """
        accepted = self.content["context"]["accepted"]
        points = [*(one for one in self.open if one["kind"] != QUESTION), *more]
        sentences = {one["text"] for one in points if one["kind"] not in NOT_ACCEPTABLE}
        left = [
            one for one in points if one["kind"] in NOT_ACCEPTABLE or not accepted.get(one["text"])
        ]
        left += [
            _point(UNMATCHED, sentence, f"accepted, but matches no finding: {sentence}")
            for sentence, words in accepted.items()
            if words and sentence not in {*sentences, *map(as_point, known)}
        ]
        left += [one for one in self.open if one["kind"] == QUESTION]
        return replace(self, content={**self.content, "open": left})

    def to_json(self) -> str:
        return json.dumps(self.content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def build_dossier(
    released: str | Path,
    certificate: str | Path | None = None,
    *,
    context: ContextLike,
    policy: PolicyLike | None = None,
    original: str | Path | None = None,
    trace: str | Path | None = None,
    profiles: Sequence[str] = (),
    trust: Sequence[str | Path] = (),
    progress: Progress = no_progress,
) -> Dossier:
    """The dossier of a released file, with all that was found as if nothing were accepted.

    profiles: whose clauses are listed, by default those of `gdpr`. original: tells the initial
    risk, and with the trace counts people. Raises PromiseError where the file fails `verify`,
    InputError where something can't be read.
    """
    released = path_text(released, "released")
    source = None if original is None else path_text(original, "original")
    asked = read_profiles(profiles)
    answered = read_context(context)
    require_there(released)
    proof = Proof.of(released, certificate)
    stated = proof.certificate
    policy = None if policy is None else Policy.of(policy)
    traced = None if trace is None else path_text(trace, "trace")
    checks = verify_by(released, proof, policy, source, trust, progress, traced)
    checks = [check for check in checks if check.name != GRAVE_FINDING]  # they are open points
    # what several releases tell together is an open point, too: its dossier is red
    failed = [
        f"{check.name}: {check.said}"
        for check in checks
        if check.ok is False and check.name != OTHER_RELEASES
    ]
    if failed:
        raise PromiseError(
            f"release '{released}': fails verify, {failed[0]}; no dossier was written", failed[1:]
        )
    tables = None if policy is None else policy.tables
    roles = Roles.of(stated, tables)
    if roles.known:  # else a rating would be lost by a typo
        InputError.raise_for(
            f"context, attributes: '{name}' is not a published column; correct its name"
            for name in sorted({*answered.attributes} - {*roles.published})
        )
    progress("measuring the risk")
    initial = None
    if source is not None and policy is not None and policy.model.is_linked:
        initial = initial_linked_risk(source, LinkedProblem(policy))
    elif source is not None:
        initial = initial_risk(source, roles, tables, policy.fields if policy else None)
    residual, today = residual_risk(stated), _today()
    answers = Answers(stated, answered, initial, residual, roles, today)
    clauses = _clauses(asked, answers)
    others = _other_certificates(answered, context)
    content = {
        "schema": SCHEMA,
        "shoal": VERSION,
        "date": today.isoformat(),
        "released": {"name": Path(released).name, "sha256": stated["output"]["sha256"]},
        "certificate": dict(stated),
        "certificate_sha256": proof.sha256,
        "context": answered.model_dump(mode="json"),
        "context_sha256": None if isinstance(context, dict) else file_sha256(context),
        "other_certificates": others,
        "checks": [check.report() for check in checks],
        "initial_risk": initial,
        "residual_risk": residual,
        "threshold": answers.threshold(),
        "clauses": clauses,
        "open": [
            *(_point(FAILS, "certificate", text) for text in what_fails(stated)),
            *(_point(REJECTED, "sign_off", text) for text in answered.rejections),
            *(
                _point(severity, one.code, one.text)
                for severity in (GRAVE, OPEN)
                for one in stated.warnings
                if one.severity == severity
            ),
            *(_point(OPEN, "accept", text) for text in unjudged_limits(stated)),
            *_known_to_others(roles, answered),
            *_not_judged_together(proof, answered, others),
            *_open_questions(clauses, asked, answers.other_sign_off()),
        ],
    }
    return Dossier(content, tuple(checks), tuple(asked))


def _point(kind: str, about: str, text: str, clauses: Sequence[str] = ()) -> Point:
    return {"kind": kind, "about": about, "text": as_point(text), "clauses": [*clauses]}


def unanswered(certificate: Certificate, context: Context, profile: str) -> dict[str, str]:
    """What a profile asks for and is not answered whole, be it measured or said, but for the risk
    before a release: by field, what the answer lacks.
    """
    residual, roles = residual_risk(certificate), Roles.of(certificate, None)
    answers = Answers(certificate, context, None, residual, roles, _today())
    lacks = {field: answers.lacks(field) for field in asked_fields(profile)}
    return {field: lack for field, lack in lacks.items() if lack}


def asked_fields(profile: str) -> list[str]:
    """The fields that a profile asks for, but for the risk before a release."""
    (asking,) = read_profiles([profile])
    fields = dict.fromkeys(field for clause in asking.clauses for field in clause.fields)
    return [field for field in fields if field != "initial_risk"]


def _other_certificates(answered: Context, context: ContextLike) -> list[dict[str, str | None]]:
    """The certificates of other releases that the context names, by their hashes."""
    named = answered.other_releases
    if not isinstance(named, list):
        return []
    base = Path() if isinstance(context, dict) else Path(context).parent
    found = []
    for name in named:
        other = Proof(base / name, Certificate.read(base / name))
        released = (other.certificate.get("output") or {}).get("sha256")
        found.append({"certificate_sha256": other.sha256, "released_sha256": released})
    return found


def _clauses(profiles: Sequence[Profile], answers: "Answers") -> list[dict[str, str | None]]:
    return [
        {
            "profile": profile.name,
            "clause": clause.clause,
            "field": field,
            "state": OPEN if (lacks := answers.lacks(field)) else ANSWERED,
            "lacks": lacks or None,
        }
        for profile in profiles
        for clause in profile.clauses
        for field in clause.fields
    ]


def _known_to_others(roles: Roles, context: Context) -> Iterator[Point]:
    """Columns that are published as they are, of which the owner says that others have them."""
    for name in roles.as_they_are:
        if context.attributes.get(name, Rating()).available == "high":
            text = (
                f"'{name}' is published as it is, though rated as one that others have; make it a"
                " quasi-identifier, or drop it"
            )
            yield _point(OPEN, "attributes", text)


def _not_judged_together(
    proof: Proof, context: Context, others: Sequence[Mapping[str, str | None]]
) -> Iterator[Point]:
    """Other releases that are named, and that the certificate was not judged beside.

    What nobody judged is no better than what fails: no words accept it before the context says why
    it could not be judged.
    """
    named, certificate = context.other_releases, proof.certificate
    judged = {one.get("sha256") for one in (certificate.get("beside") or {}).get("releases", [])}
    if not isinstance(named, list):
        if judged:
            text = "names none, though the certificate was judged with some; name them"
            yield _point(OPEN, "other_releases", f"other_releases: {text}")
        return
    judged |= proof.of_its_ledger  # by its history
    left = [  # another ledger is known by its last certificate
        name
        for name, hashes in zip(named, others, strict=True)
        if judged.isdisjoint(filter(None, hashes.values()))
    ]
    if left:
        text = f"{NOT_JUDGED} {', '.join(left)}"
        if context.not_judged:
            yield _point(GRAVE, "other_releases", f"{text}: {context.not_judged}")
            return
        ways = (
            "name the release in a file with 'shoal audit --others', and give the dossier that"
            " certificate; or state in 'not_judged' why that is impossible"
        )
        if certificate.get("linked"):
            ways = "no audit of linked tables does that; say in 'not_judged' why both go out"
        if certificate.get("ledger"):
            ways = "'shoal audit --ledger --others' judges both; say in 'not_judged' what it found"
        yield _point(FAILS, "other_releases", f"{text}; {ways}")


def _open_questions(
    clauses: Sequence[Mapping[str, Any]], profiles: Sequence[Profile], other_sign_off: str
) -> Iterator[Point]:
    """What is not answered, field by field, with the clauses that ask for it; `other_sign_off`
    is open whoever asks.
    """
    titles = {profile.name: profile.title.partition(",")[0] for profile in profiles}
    lacking = [one for one in clauses if one["state"] == OPEN]
    of_others = {"sign_off": other_sign_off} if other_sign_off else {}
    for field, lacks in (of_others | {one["field"]: one["lacks"] for one in lacking}).items():
        asking = [one for one in lacking if one["field"] == field]
        asked = [f"{titles[one['profile']]} {one['clause']}" for one in asking]
        text = f"{field_words(field)}: {lacks}"
        yield _point(QUESTION, field, text, asked)


def _today() -> date:
    """The day, in UTC, of certificates that are made now."""
    return date.fromisoformat(description.date()[:10])


# Which fields of a dossier are answered, and what the others lack.


CERTIFICATE = "certificate."
ATTACKS = "certificate.attacks"
ORIGINAL = "give the original with --original"
MEASURED = {
    "initial_risk": "risk before",
    "certificate.columns": "what became of every column",
    "certificate.columns.loss": "loss of every column",
    "certificate.promises": "promises",
    "certificate.people": "who is one person",
    "certificate.risk": "risk in the release",
    "certificate.together": "all quasi-identifiers together",
    "certificate.method": "method",
    "certificate.policy": "policy",
    "certificate.build": "versions of the software",
    "certificate.output.sha256": "hash of the file",
    ATTACKS: "what attacks found",
}


def field_words(field: str) -> str:
    """What a field of a dossier is called."""
    if field in MEASURED:
        return MEASURED[field]
    if field.startswith(ATTACKS):
        return f"attack: {field.rpartition('.')[2].replace('-', ' ')}"
    return words_of(field)


@dataclass(frozen=True)
class Answers:
    """What certificate, context and measures say about a release."""

    certificate: Certificate
    context: Context
    initial: dict[str, float] | None
    residual: dict[str, float | None]
    roles: Roles
    today: date

    def lacks(self, field: str) -> str:
        """What an answer to this field lacks, in words; empty where it is answered."""
        if field in _SPECIAL:
            return _SPECIAL[field](self)
        if field.startswith(CERTIFICATE):
            return self._lacks_in_certificate(field)
        if field == "initial_risk":
            return ORIGINAL if self.initial is None else ""
        value: Any = self.context
        for key in field.split("."):
            value = getattr(value, key)
        return lack_of(value, self.today)

    def threshold(self) -> Mapping[str, Any]:
        """What is accepted, and whether the residual risk is within it; None where unknown."""
        accepted, counted = self.context.threshold, self.certificate.get("counted")
        return {
            name: {
                "accepted": limit,
                "residual": self.residual[name],
                "within": is_within(self.residual[name], limit, counted),
            }
            for name, limit in (("max", accepted.max), ("mean", accepted.mean))
        } | {"why": accepted.why}

    def _lacks_in_certificate(self, field: str) -> str:
        value: Any = self.certificate
        path = f"{ATTACKS}.seed" if field == ATTACKS else field  # unjudged limits are no attack
        for key in path.removeprefix(CERTIFICATE).split("."):
            if isinstance(value, list):
                value = [part.get(key) for part in value if isinstance(part, Mapping)]
                value = [part for part in value if part is not None]
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        if field.startswith(ATTACKS):  # with nothing to infer, inference finds nothing
            return self._lacks_of_attacks(field) if value is None else ""
        return "the certificate does not state it" if value in (None, [], {}, "") else ""

    def _lacks_of_attacks(self, field: str) -> str:
        """Of linked tables, matching people tries to link records, and no attack does more."""
        linked = self.certificate.get("linked") or {}
        if linked and field not in (ATTACKS, f"{ATTACKS}.linkability"):
            return NONE_ON_LINKED
        return "" if linked.get("matching") else "was not tried on the release"

    def _lacks_of_attributes(self) -> str:
        rated = self.context.attributes
        if not self.roles.known:
            return "" if rated else "empty"
        names = (*self.roles.quasi, *self.roles.as_they_are)
        columns = {name: rated.get(name, Rating()) for name in names}
        lacking = {
            what: [
                name
                for name, own in columns.items()
                if any(lack_of(getattr(own, key), self.today) for key in keys)
            ]
            for what, keys in (("a reason is missing", ["why"]), ("a rating is missing", RATINGS))
        }
        return "; ".join(f"{what} ({', '.join(named)})" for what, named in lacking.items() if named)

    def _lacks_of_threshold(self) -> str:
        found, named = self.threshold(), parts_of("threshold")
        asked = [name for name in ("max", "mean") if found[name]["accepted"] is not None]
        if not asked:
            return "how much is not stated"
        if not found["why"]:
            return "the reason is missing"
        if above := [named[name] for name in asked if found[name]["within"] is False]:
            return f"the release is above the {' and the '.join(above)}"
        unknown = [named[name] for name in asked if found[name]["within"] is None]
        why = ", as rows were counted" if self.certificate.get("counted") == "rows" else ""
        return f"not known of people: the {' and the '.join(unknown)}{why}" if unknown else ""

    def _lacks_of_sign_off(self) -> str:
        if not self.context.sign_off:
            return "nobody has decided"
        lacks = filter(None, (lack_of(e, None) for e in self.context.sign_off))
        return next(lacks, self.other_sign_off())

    def other_sign_off(self) -> str:
        """Whose sign-off is of another release, by the hash that it names, or by its date."""
        certified, own = self.certificate.get("date"), self.certificate.get("output") or {}
        # where somebody signs, it may be twelve hours earlier than in UTC
        first = certified and (datetime.fromisoformat(certified) - timedelta(hours=12)).date()
        for one in self.context.sign_off:
            whose = f"that of {one.name or 'somebody'}"
            if one.release is not None and one.release.lower() != own.get("sha256"):
                return f"{whose} names another release"
            if first and one.date and one.date < first:
                return (
                    f"{whose} is dated {one.date}, before the certificate of {str(certified)[:10]}"
                )
        return ""


_SPECIAL = {
    "attributes": Answers._lacks_of_attributes,
    "threshold": Answers._lacks_of_threshold,
    "sign_off": Answers._lacks_of_sign_off,
}
