"""Which fields of a dossier are answered, and what the others lack."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from pydantic import BaseModel

from shoal.auditor.dossier.context import Context
from shoal.auditor.dossier.risk import Roles
from shoal.data.certificate import Certificate

CERTIFICATE = "certificate."
OPTIONAL = frozenset({"comment"})
NEEDED = {
    "certificate.attacks": "no attack was tried on the release",
    "initial_risk": "give the original with --original",
}


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
            return "" if self.initial is not None else NEEDED[field]
        value: Any = self.context
        for key in field.split("."):
            value = getattr(value, key)
        return _lacks(value, self.today)

    def threshold(self) -> dict[str, Any]:
        """What is accepted, and whether the residual risk is within it; None where unknown."""
        accepted = self.context.threshold
        return {
            name: {
                "accepted": limit,
                "residual": self.residual[name],
                "within": None
                if limit is None or (risk := self.residual[name]) is None
                else risk <= limit,
            }
            for name, limit in (("max", accepted.max), ("mean", accepted.mean))
        } | {"why": accepted.why}

    def _lacks_in_certificate(self, field: str) -> str:
        value: Any = self.certificate
        for key in field.removeprefix(CERTIFICATE).split("."):
            if isinstance(value, list):
                value = [part.get(key) for part in value if isinstance(part, Mapping)]
                value = [part for part in value if part is not None]
            else:
                value = value.get(key) if isinstance(value, Mapping) else None
        if value in (None, [], {}, ""):
            return NEEDED.get(field, "the certificate does not state it")
        return ""

    def _lacks_of_attributes(self) -> str:
        rated = self.context.attributes
        if not self.roles.known:
            return "" if rated else "empty"
        lacking = [
            name
            for name in self.roles.quasi
            if name not in rated or _lacks(rated[name], self.today)
        ]
        return f"a reason or a rating is missing for {', '.join(lacking)}" if lacking else ""

    def _lacks_of_threshold(self) -> str:
        accepted, found = self.context.threshold, self.threshold()
        if accepted.max is None and accepted.mean is None:
            return "lacks max or mean"
        if not accepted.why:
            return "lacks why"
        above = [name for name in ("max", "mean") if found[name]["within"] is False]
        return f"the residual risk is above its {' and '.join(above)}" if above else ""

    def _lacks_of_sign_off(self) -> str:
        if not self.context.sign_off:
            return "nobody has decided"
        if any(entry.decision == "reject" for entry in self.context.sign_off):
            return "somebody has rejected it"
        return next(filter(None, (_lacks(e, None) for e in self.context.sign_off)), "")


_SPECIAL = {
    "attributes": Answers._lacks_of_attributes,
    "threshold": Answers._lacks_of_threshold,
    "sign_off": Answers._lacks_of_sign_off,
}


def _lacks(value: Any, today: date | None) -> str:
    """What a value of the context lacks. today: the day before which a date is over."""
    if isinstance(value, BaseModel):
        parts = {key: _lacks(getattr(value, key), today) for key in type(value).model_fields}
        empty = [key for key, lack in parts.items() if lack == "empty" and key not in OPTIONAL]
        if len(empty) == len(parts):
            return "empty"
        over = [f"{key} {lack}" for key, lack in parts.items() if lack not in ("", "empty")]
        return "; ".join([*([f"lacks {', '.join(empty)}"] if empty else []), *over])
    if isinstance(value, date):
        return "is over" if today is not None and value < today else ""
    return "" if value not in (None, "", [], {}) and str(value).strip() else "empty"
