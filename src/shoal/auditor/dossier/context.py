"""The context of a release: what its owner knows and no certificate can measure."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date as Day
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

import polars as pl
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from shoal.auditor.stream_trace import read_source
from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.language import capitalised
from shoal.data.person_names import names_of
from shoal.data.regular_files import readable
from shoal.data.schema import REMOVED, Fields
from shoal.data.table import as_text
from shoal.errors import InputError
from shoal.policy.binding.files import PolicyTables
from shoal.policy.checked import findings_in
from shoal.policy.loading import read_mapping

_KEYS = "'shoal dossier --schema' lists its keys"

Text = str | None
Share = Annotated[float | None, Field(ge=0, le=1)]
Grade = Literal["low", "medium", "high"] | None


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Controller(_Part):
    """Who answers for the release."""

    name: Text = Field(default=None, title="name")
    contact: Text = Field(default=None, title="contact")


class Recipient(_Part):
    """Who gets it, and what they could do."""

    who: Text = Field(default=None, title="who")
    kind: Literal["public", "restricted", "enclave"] | None = Field(
        default=None, title="kind of release"
    )
    knowledge: Text = Field(default=None, title="what they know")
    motive: Text = Field(default=None, title="motive")
    capacity: Text = Field(default=None, title="means")


class Controls(_Part):
    """What keeps recipients from doing it."""

    agreement: Text = Field(default=None, title="agreement")
    no_reidentification: Text = Field(default=None, title="ban on re-identification")
    security: Text = Field(default=None, title="security")
    access: Text = Field(default=None, title="access")
    onward: Text = Field(default=None, title="passing it on")
    retention: Text = Field(default=None, title="retention")


class Minimisation(_Part):
    """Why it is not less."""

    who: Text = Field(default=None, title="people")
    what: Text = Field(default=None, title="columns")
    when: Text = Field(default=None, title="time")
    where: Text = Field(default=None, title="places")
    how: Text = Field(default=None, title="detail")


class Rating(_Part):
    """How a column could single somebody out, and why it is published all the same."""

    why: Text = Field(default=None, title="reason")
    replicable: Grade = Field(default=None, title="stays the same")
    available: Grade = Field(default=None, title="others have it")
    distinguishing: Grade = Field(default=None, title="sets people apart")


RATINGS = ("replicable", "available", "distinguishing")


class Threshold(_Part):
    """The greatest risk to be found that is accepted."""

    max: Share = Field(default=None, title="greatest risk")
    mean: Share = Field(default=None, title="mean risk")
    why: Text = Field(default=None, title="reason")


class Utility(_Part):
    """What the data is for."""

    needs: Text = Field(default=None, title="needs")
    outcome: Text = Field(default=None, title="outcome")


class Incident(_Part):
    """Whom to notify when somebody was found, and what is done then."""

    contact: Text = Field(default=None, title="contact")
    plan: Text = Field(default=None, title="plan")


class Expert(_Part):
    """Who judged it."""

    name: Text = Field(default=None, title="name")
    qualification: Text = Field(default=None, title="qualification")
    opinion: Text = Field(default=None, title="opinion")
    valid_until: Day | None = Field(default=None, title="valid until")


class NationalGrade(_Part):
    """The grade of GB/T 42460."""

    level: Text = Field(default=None, title="level")
    why: Text = Field(default=None, title="reason")


class SignOff(_Part):
    """One decision."""

    name: Text = Field(default=None, title="name")
    role: Text = Field(default=None, title="role")
    date: Day | None = Field(default=None, title="date")
    decision: Literal["accept", "reject"] | None = Field(default=None, title="decision")
    release: Text = Field(default=None, title="SHA-256 of the release")
    comment: Text = Field(default=None, title="comment")


class Context(_Part):
    """A context file."""

    version: Literal[1]
    title: Text = Field(default=None, title="title")
    controller: Controller = Field(default=Controller(), title="controller")
    recipient: Recipient = Field(default=Recipient(), title="recipient")
    purpose: Text = Field(default=None, title="purpose")
    legal_basis: Text = Field(default=None, title="legal basis")
    transparency: Text = Field(default=None, title="what the people concerned are informed of")
    harms: Text = Field(default=None, title="possible harms")
    conditions: Text = Field(default=None, title="conditions")
    controls: Controls = Field(default=Controls(), title="controls at the recipient")
    minimisation: Minimisation = Field(default=Minimisation(), title="data minimisation")
    attributes: dict[str, Rating] = Field(
        default_factory=dict, title="reason and rating of every column"
    )
    threshold: Threshold = Field(default=Threshold(), title="accepted risk")
    other_releases: Literal["none-known"] | list[str] | None = Field(
        default=None, title="other releases"
    )
    not_judged: Text = Field(
        default=None, title="why other releases could not be judged with this one"
    )
    accepted: dict[str, Text] = Field(
        default_factory=dict, title="what is accepted although it is grave"
    )
    utility: Utility = Field(default=Utility(), title="utility")
    incident: Incident = Field(default=Incident(), title="incidents")
    expert: Expert = Field(default=Expert(), title="expert")
    grade: NationalGrade = Field(default=NationalGrade(), title="grade (GB/T 42460)")
    review_by: Day | None = Field(default=None, title="review by")
    review_triggers: list[str] = Field(
        default_factory=list, title="what would bring the review forward"
    )
    sign_off: list[SignOff] = Field(default_factory=list, title="sign-off")

    @field_validator("accepted")
    @classmethod
    def _of_sentences(cls, accepted: dict[str, Text]) -> dict[str, Text]:
        return {as_point(sentence): words for sentence, words in accepted.items()}

    @property
    def rejections(self) -> list[str]:
        """Who has rejected the release."""
        rejected = [one for one in self.sign_off if one.decision == "reject"]
        return [
            f"rejected by {one.name or 'somebody'}, {one.role or 'role open'}" for one in rejected
        ]


def as_point(sentence: str) -> str:
    """A sentence as points are named and compared: with a capital, without a final full stop."""
    return capitalised(sentence.strip().rstrip("."))


def words_of(field: str) -> str:
    """What a key of the context is called: 'controls' is 'controls at the recipient'."""
    first, _, part = field.partition(".")
    title = Context.model_fields[first].title
    if not part:
        return str(title)
    return f"{title}: {parts_of(first)[part]}"


def parts_of(field: str) -> dict[str, str]:
    """The keys of one part of the context, each with what it is called; none of a single value."""
    part = Context.model_fields[field].annotation
    if not isinstance(part, type) or not issubclass(part, _Part):
        return {}
    return _titles(part)


def _titles(part: type[BaseModel]) -> dict[str, str]:
    return {key: str(known.title) for key, known in part.model_fields.items()}


def text_fields() -> list[str]:
    """Every key that takes one answer, in order: `purpose`, `controller.name`."""
    others = ("version", "attributes", "other_releases", "accepted", "sign_off")
    return [
        f"{key}.{part}" if part else key
        for key in Context.model_fields
        if key not in others
        for part in parts_of(key) or [""]
    ]


OPTIONAL = frozenset({"comment", "release"})


def lack_of(value: Any, today: Day | None) -> str:
    """What a value of the context lacks. today: the day before which a date is over."""
    if isinstance(value, BaseModel):
        parts = {key: lack_of(getattr(value, key), today) for key in type(value).model_fields}
        named = _titles(type(value))
        empty = [
            named[key] for key, lack in parts.items() if lack == "empty" and key not in OPTIONAL
        ]
        if len(empty) == len(parts):
            return "empty"
        over = [f"{named[key]} {lack}" for key, lack in parts.items() if lack not in ("", "empty")]
        return "; ".join([*([f"lacks {', '.join(empty)}"] if empty else []), *over])
    if isinstance(value, Day):
        return "is over" if today is not None and value < today else ""
    return "" if value not in (None, "", [], {}) and str(value).strip() else "empty"


ContextLike: TypeAlias = str | Path | dict[str, Any]
"""A file, or its content."""

SHOWN = {
    "interval": "ranges",
    "span": "ranges in their order",
    "node": "groups of its hierarchy",
    "value-or-nothing": "whole or *",
    "as-is": "as it is",
    "mean": "means",
    "median": "medians",
    "mode": "the most frequent value",
    "mean-and-interval": "means and ranges",
    "pseudonym": "a pseudonym",
    "derived": "computed",
    "removed": "removed",
}
"""What a column shows, by its technique."""


def read_context(given: ContextLike) -> Context:
    """A context from a YAML, JSON or TOML file, or its content; raises InputError, all findings."""
    content = given if isinstance(given, dict) else read_mapping(given, "context")
    present = {key: value for key, value in content.items() if value is not None}
    try:
        return Context.model_validate(present)
    except ValidationError as invalid:
        raise InputError.from_findings(
            findings_in(invalid, present, Context, "context", _KEYS)
        ) from None


def template() -> str:
    """An empty context file, with comments."""
    return Path(__file__).with_name("context.yaml").read_text("utf-8")


def json_schema() -> str:
    """The JSON Schema of a context file."""
    return json.dumps(Context.model_json_schema() | {"title": "Context of a release"}, indent=2)


# What is read of a dossier that was written.

UNMATCHED = "unmatched"
"""The kind of an accepted sentence that matches no finding."""


def accepted_in_words(dossier: Mapping[str, Any]) -> dict[str, str]:
    """What was found and is accepted, and in which words. dossier: as its JSON has it."""
    unmatched = {one["about"] for one in dossier["open"] if one["kind"] == UNMATCHED}
    return {
        sentence: words
        for sentence, words in dossier["context"]["accepted"].items()
        if words and sentence not in unmatched
    }


def signed_off_by(dossier: Mapping[str, Any]) -> list[str]:
    """Who has accepted the release; nobody while that is open. dossier: as its JSON has it."""
    is_open = any(one["about"] == "sign_off" for one in dossier["open"])
    signed = [] if is_open else dossier["context"]["sign_off"]
    names = (f"{e['name']}, {e['date']}" for e in signed if e["decision"] == "accept")
    return list(dict.fromkeys(names))


def is_dossier(path: str) -> bool:
    """Whether a file begins as a dossier's JSON does."""
    place = Path(path)
    if place.suffix.lower() != ".json" or not place.is_file():
        return False
    with readable(f"dossier '{path}'"), place.open("rb") as file:
        return b'"shoal.dossier/' in file.read(100)


# How easily people could be found: before anything was done, and in the release.


@dataclass(frozen=True)
class Roles:
    """What the columns of a release are for. known: whether anything tells it. as_they_are: those
    published so, sensitive or plain. of_stream: whether a stream published it.
    """

    known: bool
    published: tuple[str, ...] = ()
    quasi: tuple[str, ...] = ()
    subject: tuple[str, ...] = ()
    as_they_are: tuple[str, ...] = ()
    of_stream: bool = False

    @classmethod
    def of(cls, certificate: Certificate, tables: PolicyTables | None) -> "Roles":
        """From the policy, and from a certificate that lists its columns."""
        columns = certificate.get("columns")
        if columns is None and tables is None:
            return cls(False)
        roles = {c["name"]: (c["role"], c["technique"] != "removed") for c in columns or ()}
        declared = {} if tables is None else tables.model.attributes
        people = [] if tables is None else tables.model.subject_columns
        roles |= {
            name: ("subject" if name in people else a.role, True) for name, a in declared.items()
        }
        kept = {name: role for name, (role, is_kept) in roles.items() if is_kept}
        return cls(
            True,
            tuple(name for name, role in kept.items() if role not in REMOVED),
            tuple(name for name, (role, _) in roles.items() if role == "quasi"),
            tuple(name for name, (role, _) in roles.items() if role == "subject"),
            tuple(name for name, role in kept.items() if role in ("sensitive", "plain")),
            certificate.get("verb") == "stream",
        )


def initial_risk(
    original: str, roles: Roles, own: PolicyTables | None = None, fields: Fields | None = None
) -> dict[str, float]:
    """The risk in the original table, by all quasi-identifiers as they stand there.

    alone: share of people whom nobody else looks like. mean, max: chance to find a person; the mean
    is over all classes that each is in, as in a release.
    own: the tables of the policy, which says how the original is written, if it is given. fields:
    what it says of a stream's records, of which those that can't be read were set aside.
    """
    if not roles.quasi:
        raise InputError(
            "dossier: the certificate doesn't name the quasi-identifiers, so the risk of the"
            " original can't be measured; give the policy with -p"
        )
    if roles.of_stream and Path(original).is_file():
        frame = read_source(original, fields or Fields()).frame
    elif own is not None:
        frame = own.read_original(original).frame
    else:
        frame = files.read(original, roles.quasi).frame
    InputError.raise_for(
        f"original '{original}': lacks the column '{name}'"
        for name in roles.quasi
        if name not in frame.columns
    )
    keys = [as_text(frame[name]).alias(f"q{j}") for j, name in enumerate(roles.quasi)]
    if roles.subject and {*roles.subject} <= {*frame.columns}:
        names = [names_of(frame[n]).alias(f"p{j}") for j, n in enumerate(roles.subject)]
    else:
        names = [pl.Series("person", range(frame.height))]
    cells, who = [key.name for key in keys], [name.name for name in names]
    places = pl.DataFrame([*keys, *names]).unique().with_columns(alike=pl.len().over(cells))
    fewest = places.group_by(who).agg(pl.col("alike").min())["alike"]
    return {
        "alone": int((fewest == 1).sum()) / len(fewest),
        "mean": places.n_unique(cells) / places.height,
        "max": 1 / int(fewest.min() or 1),  # type: ignore[arg-type]
    }


def residual_risk(certificate: Certificate) -> dict[str, float | None]:
    """The risk in the release, as its certificate states it."""
    risk, together = certificate.get("risk") or {}, certificate.get("together") or {}
    people = together.get("people")
    return {
        "alone": together["alone"] / people if people else None,
        "mean": risk.get("prosecutor_mean"),
        "max": risk.get("prosecutor_max"),
    }


def is_within(risk: float | None, limit: float | None, counted: str | None) -> bool | None:
    """Whether a risk is accepted; None where it is unknown, or that of rows, which is less."""
    if risk is None or limit is None or (counted == "rows" and risk <= limit):
        return None
    return risk <= limit
