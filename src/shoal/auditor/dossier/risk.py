"""How easily people could be found: before anything was done, and in the release."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import polars as pl

from shoal.connectors import files
from shoal.data.certificate import Certificate
from shoal.data.table import as_text
from shoal.errors import InputError
from shoal.policy.binding.files import read_original
from shoal.policy.policy import Policy


@dataclass(frozen=True)
class Roles:
    """What the columns of a release are for. known: whether anything tells it."""

    known: bool
    published: tuple[str, ...] = ()
    quasi: tuple[str, ...] = ()
    subject: str | None = None

    @classmethod
    def of(cls, certificate: Certificate, policy: Policy | None) -> Roles:
        """From the policy, and from a certificate that lists its columns."""
        columns = certificate.get("columns")
        if not isinstance(columns, list) or not all(isinstance(c, Mapping) for c in columns):
            if policy is None:
                return cls(False)
            columns = []
        listed = {
            str(c.get("name")): (str(c.get("role")), c.get("technique") != "removed")
            for c in columns
        }
        declared = {} if policy is None else policy.model.attributes
        return cls._of(listed | {name: (a.role, True) for name, a in declared.items()})

    @classmethod
    def _of(cls, roles: dict[str, tuple[str, bool]]) -> Roles:
        hidden = ("identifier", "subject", "time", "operation", "drop")
        return cls(
            True,
            tuple(name for name, (role, kept) in roles.items() if kept and role not in hidden),
            tuple(name for name, (role, _) in roles.items() if role == "quasi"),
            next((name for name, (role, _) in roles.items() if role == "subject"), None),
        )


def initial_risk(original: str, roles: Roles, policy: Policy | None = None) -> dict[str, float]:
    """The risk in the original table, by all quasi-identifiers as they stand there.

    alone: share of people whom nobody else looks like. mean, max: chance to find a person.
    policy: says how the original is written, if it is given.
    """
    if not roles.quasi:
        raise InputError(
            "dossier: the certificate doesn't name the quasi-identifiers, so the risk of the"
            " original can't be measured; give the policy with -p"
        )
    source = (
        files.read(original, roles.quasi) if policy is None else read_original(original, policy)
    )
    frame = source.frame
    absent = [name for name in roles.quasi if name not in frame.columns]
    if absent:
        raise InputError.from_findings(
            [f"original '{original}': lacks the column '{name}'" for name in absent]
        )
    keys = [as_text(frame[name]).alias(f"q{j}") for j, name in enumerate(roles.quasi)]
    if roles.subject is not None and roles.subject in frame.columns:
        person = as_text(frame[roles.subject]).str.strip_chars()
    else:
        person = pl.Series(range(frame.height))
    people = pl.DataFrame([*keys, person.alias("person")]).unique()
    sizes = people.group_by([key.name for key in keys]).len()["len"]
    total = people.height
    return {
        "alone": int((sizes == 1).sum()) / total,
        "mean": len(sizes) / total,
        "max": 1 / int(sizes.min() or 1),  # type: ignore[arg-type]
    }


def residual_risk(certificate: Certificate) -> dict[str, float | None]:
    """The risk in the release, as its certificate states it."""
    stated = certificate.get("risk")
    risk = stated if isinstance(stated, Mapping) else {}
    together = certificate.get("together")
    alone = None
    if isinstance(together, Mapping) and together.get("people"):
        alone = _number(together.get("alone"), together["people"])
    return {
        "alone": alone,
        "mean": _number(risk.get("prosecutor_mean")),
        "max": _number(risk.get("prosecutor_max")),
    }


def _number(value: Any, whole: Any = 1) -> float | None:
    both = all(isinstance(n, int | float) and not isinstance(n, bool) for n in (value, whole))
    return float(value / whole) if both and whole else None
