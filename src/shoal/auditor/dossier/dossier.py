"""Dossier: one file for whoever decides on a release - what was measured, what its owner answers,
and what is still open.

Never says that a release meets a law: that is for people to decide.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from shoal.auditor.checks import Check
from shoal.auditor.dossier.answers import Answers
from shoal.auditor.dossier.context import ContextFile, read_context
from shoal.auditor.dossier.profiles import Profile, read_profiles
from shoal.auditor.dossier.risk import Roles, initial_risk, residual_risk
from shoal.auditor.proof import Proof
from shoal.auditor.verify import require_there, verify_by
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.regular_files import path_text
from shoal.errors import InputError, PromiseError
from shoal.policy.policy import Policy
from shoal.version import VERSION

SCHEMA = "shoal.dossier/1"
OPEN, ANSWERED = "open", "answered"


@dataclass(frozen=True)
class Dossier:
    """What is known about a release. content: as dossier.json has it."""

    content: dict[str, Any]
    checks: tuple[Check, ...]
    profiles: tuple[Profile, ...]

    @property
    def open(self) -> list[dict[str, Any]]:
        """The fields that some clause asks for and that are not answered yet."""
        return [clause for clause in self.content["clauses"] if clause["state"] == OPEN]

    def to_json(self) -> str:
        return json.dumps(self.content, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def build_dossier(
    released: str | Path,
    certificate: str | Path | None = None,
    *,
    context: str | Path | dict[str, Any],
    policy: Policy | str | Path | dict[str, Any] | None = None,
    original: str | Path | None = None,
    profiles: Sequence[str] = (),
    trust: Sequence[str | Path] = (),
    progress: Progress = no_progress,
) -> Dossier:
    """The dossier of a released file.

    profiles: whose clauses are listed, by default all. original: tells the initial risk. Raises
    PromiseError where the file fails `verify`, InputError where something can't be read.
    """
    released = path_text(released, "released")
    source = None if original is None else path_text(original, "original")
    asked = read_profiles(profiles)
    answered = read_context(context)
    require_there(released)
    proof = Proof.of(released, certificate)
    stated = proof.certificate
    policy = None if policy is None else Policy.of(policy)
    checks = verify_by(released, proof, policy, source, trust, progress)
    _require_verified(released, checks)
    roles = Roles.of(stated, policy)
    _require_known(answered, roles)
    progress("measuring the risk")
    initial = None if source is None else initial_risk(source, roles, policy)
    residual = residual_risk(stated)
    today = _today()
    answers = Answers(stated, answered.context, initial, residual, roles, today)
    content = {
        "schema": SCHEMA,
        "shoal": VERSION,
        "date": today.isoformat(),
        "released": {"name": Path(released).name, "sha256": stated["output"]["sha256"]},
        "certificate": dict(stated),
        "certificate_sha256": proof.sha256,
        "context": answered.content,
        "context_sha256": answered.sha256,
        "other_certificates": _other_certificates(answered, context),
        "checks": [{"name": c.name, "ok": c.ok, "text": c.text} for c in checks],
        "initial_risk": initial,
        "residual_risk": residual,
        "threshold": answers.threshold(),
        "clauses": _clauses(asked, answers),
    }
    return Dossier(content, tuple(checks), tuple(asked))


def _require_verified(released: str | Path, checks: Sequence[Check]) -> None:
    failed = [f"{check.name}: {check.text}" for check in checks if check.ok is False]
    if failed:
        raise PromiseError(
            f"release '{released}': fails verify, {failed[0]}; no dossier was written", failed[1:]
        )


def _require_known(answered: ContextFile, roles: Roles) -> None:
    """Attributes that the context rates must be columns, or a rating would be lost by a typo."""
    if not roles.known:
        return
    strange = sorted(set(answered.context.attributes) - set(roles.published))
    if strange:
        raise InputError.from_findings(
            [
                f"context, attributes: '{name}' is not a published column; correct its name"
                for name in strange
            ]
        )


def _other_certificates(
    answered: ContextFile, context: str | Path | dict[str, Any]
) -> list[dict[str, Any]]:
    """The certificates of other releases that the context names, by their hashes."""
    named = answered.context.other_releases
    if not isinstance(named, list):
        return []
    base = Path() if isinstance(context, dict) else Path(context).parent
    found = []
    for name in named:
        other = Proof(base / name, Certificate.read(base / name))
        output = other.certificate.get("output")
        released = output.get("sha256") if isinstance(output, Mapping) else None
        found.append({"certificate_sha256": other.sha256, "released_sha256": released})
    return found


def _clauses(profiles: Sequence[Profile], answers: Answers) -> list[dict[str, Any]]:
    listed = []
    for profile in profiles:
        for clause in profile.clauses:
            for field in clause.fields:
                lacks = answers.lacks(field)
                listed.append(
                    {
                        "profile": profile.name,
                        "clause": clause.clause,
                        "field": field,
                        "state": OPEN if lacks else ANSWERED,
                        "lacks": lacks or None,
                    }
                )
    return listed


def _today() -> date:
    """The day, in UTC; SOURCE_DATE_EPOCH wins."""
    epoch = os.environ.get("SOURCE_DATE_EPOCH", "")
    now = datetime.fromtimestamp(int(epoch), UTC) if epoch.isdigit() else datetime.now(UTC)
    return now.date()
