"""The context of a release: what its owner knows and no certificate can measure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import date as Day
from importlib.resources import files as resources
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from shoal.errors import InputError
from shoal.policy.consistency import findings_in
from shoal.policy.loading import read_mapping

_KEYS = "'shoal dossier --schema' lists its keys"

Text = str | None
Share = Annotated[float | None, Field(ge=0, le=1)]
Grade = Literal["low", "medium", "high"] | None


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)


class Controller(_Part):
    """Who answers for the release."""

    name: Text = None
    contact: Text = None


class Recipient(_Part):
    """Who gets it, and what they could do."""

    who: Text = None
    kind: Literal["public", "restricted", "enclave"] | None = None
    knowledge: Text = None
    motive: Text = None
    capacity: Text = None


class Controls(_Part):
    """What keeps recipients from doing it."""

    agreement: Text = None
    no_reidentification: Text = None
    security: Text = None
    access: Text = None
    onward: Text = None
    retention: Text = None


class Minimisation(_Part):
    """Why it is not less."""

    who: Text = None
    what: Text = None
    when: Text = None
    where: Text = None
    how: Text = None


class Rating(_Part):
    """How a column could single somebody out, and why it is published all the same."""

    why: Text = None
    replicable: Grade = None
    available: Grade = None
    distinguishing: Grade = None


class Threshold(_Part):
    """The greatest risk to be found that is accepted."""

    max: Share = None
    mean: Share = None
    why: Text = None


class Utility(_Part):
    """What the data is for."""

    needs: Text = None
    outcome: Text = None


class Incident(_Part):
    """Whom to notify when somebody was found, and what is done then."""

    contact: Text = None
    plan: Text = None


class Expert(_Part):
    """Who judged it."""

    name: Text = None
    qualification: Text = None
    opinion: Text = None
    valid_until: Day | None = None


class NationalGrade(_Part):
    """The grade of GB/T 42460."""

    level: Text = None
    why: Text = None


class SignOff(_Part):
    """One decision."""

    name: Text = None
    role: Text = None
    date: Day | None = None
    decision: Literal["accept", "reject"] | None = None
    comment: Text = None


class Context(_Part):
    """A context file."""

    version: Literal[1]
    controller: Controller = Controller()
    recipient: Recipient = Recipient()
    purpose: Text = None
    legal_basis: Text = None
    transparency: Text = None
    harms: Text = None
    conditions: Text = None
    controls: Controls = Controls()
    minimisation: Minimisation = Minimisation()
    attributes: dict[str, Rating] = Field(default_factory=dict)
    threshold: Threshold = Threshold()
    other_releases: Literal["none-known"] | list[str] | None = None
    accepted: dict[str, Text] = Field(default_factory=dict)
    utility: Utility = Utility()
    incident: Incident = Incident()
    expert: Expert = Expert()
    grade: NationalGrade = NationalGrade()
    review_by: Day | None = None
    review_triggers: list[str] = Field(default_factory=list)
    sign_off: list[SignOff] = Field(default_factory=list)


@dataclass(frozen=True)
class ContextFile:
    """A context and the hash of the file that it was read from."""

    context: Context
    sha256: str | None

    @property
    def content(self) -> dict[str, Any]:
        """As JSON, with every key."""
        return self.context.model_dump(mode="json")


def read_context(given: str | Path | dict[str, Any]) -> ContextFile:
    """A context from a YAML, JSON or TOML file, or its content; raises InputError, all findings."""
    if isinstance(given, dict):
        return ContextFile(_checked(given), None)
    content = read_mapping(Path(given), "context")
    return ContextFile(_checked(content), hashlib.sha256(Path(given).read_bytes()).hexdigest())


def _checked(content: dict[str, Any]) -> Context:
    present = {key: value for key, value in content.items() if value is not None}
    try:
        return Context.model_validate(present)
    except ValidationError as invalid:
        raise InputError.from_findings(
            findings_in(invalid, present, Context, "context", _KEYS)
        ) from None


def template() -> str:
    """An empty context file, with comments."""
    return (resources("shoal.auditor.dossier") / "context.yaml").read_text("utf-8")


def json_schema() -> str:
    """The JSON Schema of a context file."""
    return json.dumps(Context.model_json_schema() | {"title": "Context of a release"}, indent=2)
