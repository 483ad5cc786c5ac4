"""What a reader must know of a release that keeps its promises, in a sentence each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.auditor.together import is_below, together_below
from shoal.data.certificate import Certificate
from shoal.data.people import Unit, unit
from shoal.data.schema import Role, Schema
from shoal.data.warnings import OPEN_QUESTION, WITHHELD_FEW, ReleaseWarning
from shoal.policy.policy import Policy


def release_warnings(
    certificate: Certificate, withheld: int, policy: Policy, schema: Schema
) -> list[ReleaseWarning]:
    """Everything that measuring a release gives reason to say.

    withheld: the people of the records that are in no class, as far as they are known.
    """
    counted = unit(certificate)
    said = open_question_warnings(policy)
    said += withheld_few(withheld, counted, policy.build_promises(), schema)
    if certificate.holds and is_below(certificate):
        said.append(together_below(certificate, counted))
    return said


def open_question_warnings(policy: Policy) -> list[ReleaseWarning]:
    """What the policy itself still asks: its roles may not be what somebody decided."""
    return [ReleaseWarning(OPEN_QUESTION, text) for text in policy.open_questions()]


def largest_k(models: Sequence[Any]) -> int | None:
    """The largest k that some promise asks; None where none asks a k."""
    asked = (getattr(model, "k", None) for model in models)
    return max((k for k in asked if isinstance(k, int)), default=None)


def withheld_few(
    people: int, unit: Unit, models: Sequence[Any], schema: Schema
) -> list[ReleaseWarning]:
    """Where fewer are withheld than hide anywhere else."""
    k = largest_k(models)
    if not people or k is None or people >= k:
        return []
    shown = [f"'{attribute.name}'" for attribute in schema.published if _is_shown(attribute.role)]
    more = f"; {', '.join(shown)} {'is' if len(shown) == 1 else 'are'} still shown" if shown else ""
    text = (
        f"{people} {unit.of(people)} withheld, fewer than k = {k}: whoever finds no class for a"
        f" person knows it is one of them{more}"
    )
    return [ReleaseWarning(WITHHELD_FEW, text)]


def _is_shown(role: Role) -> bool:
    """Whether such a column still shows what it holds of somebody who is withheld."""
    return role not in (Role.QUASI, Role.SENSITIVE)
