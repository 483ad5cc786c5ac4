"""What becomes of a release that was measured: it keeps every promise, or it is withheld."""

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.data.certificate import Certificate
from shoal.data.certificate_shape import AcceptedReport
from shoal.data.people import Unit, span_text, unit
from shoal.data.schema import Role, Schema
from shoal.data.warnings import (
    OPEN_QUESTION,
    TOGETHER_BELOW,
    WITHHELD_FEW,
    ReleaseWarning,
    fault_sentences,
)
from shoal.errors import PromiseError
from shoal.policy.problem import Problem


def require_kept(certificate: Certificate, consequence: str, together: bool = False) -> None:
    """Raises PromiseError with every promise that a release breaks and every fault that it has.

    consequence: what the error says has become of the outputs. together: whether k must hold over
    all quasi-identifiers, too.
    """
    broken = [
        f"promise '{p['model']}' does not hold on the release: asked {p['asked']}, measured"
        f" {p['measured']}"
        for p in certificate["promises"]
        if not p["holds"]
    ]
    broken += fault_sentences(certificate)
    broken += [
        acceptance_text(row, certificate)
        for row in certificate.get("attacks", {}).get("accept", [])
        if row["holds"] is False
    ]
    beside = certificate.get("beside") or {"holds": True}
    if not beside["holds"]:
        broken.append(
            f"beside other releases: {beside['below_k']} of {beside['people']} people are left"
            f" among fewer than {beside['k']}, or what is missing is"
        )
    if broken:
        raise PromiseError(f"{broken[0]}; the release is withheld, {consequence}", broken[1:])
    if together:
        require_together_kept(certificate, consequence)


def require_together_kept(certificate: Certificate, consequence: str) -> None:
    """Raises PromiseError where k holds over some quasi-identifiers each, but not over all."""
    if is_below(certificate):
        found = certificate["together"]
        raise PromiseError(
            f"all quasi-identifiers together: k = {found['asked']} asked, {found['min']} measured,"
            f" {found['below']} of {found['people']} below; the release is withheld, {consequence}."
            " Promise k over all of them, or leave out what requires it (require_together)"
        )


REMEDIES = {
    "ends_gain": "round the ends of ranges more ('round')",
    "linkage": "raise k",
    "inference_gain": "raise k, or promise t-closeness",
    "certain": "promise l-diversity",
    "lifted": "promise beta-likeness",
    "implied": "use a method that recodes globally",
    "excluded": "use a method that does not look at sensitive values",
    "alone_after": "publish by a ledger, which compares all releases",
    "certain_after": "publish by a ledger, which compares all releases",
    "journalist": "raise k, or promise k-map",
    "marketer": "raise k",
    "membership": "promise delta-presence",
    "homogeneous": "promise l-diversity",
    "order": "leave 'order: input' out of the policy",
}
STRONGER = {
    "l-diversity": "ask for a larger l",
    "t-closeness": "ask for a smaller t",
    "beta-likeness": "ask for a smaller beta",
}
"""What helps instead where a column has the promise that would help."""


ALONE = {
    "sensitive": "raise k, coarsen its values before publishing, or drop it",
    "plain": "drop the column, or make it a quasi-identifier",
}


def acceptance_text(row: AcceptedReport, certificate: Mapping[str, Any]) -> str:
    """A threshold that an attack exceeds, and what helps; not another seed."""
    name = row["attribute"]
    if row["measure"] == "alone" and name is None:  # the worst column is judged
        columns = (certificate["attacks"].get("singling-out") or {}).get("alone", {})
        name = max(columns, key=lambda column: columns[column]["share"] or 0.0, default=None)
    helps = remedy(certificate, row["measure"], name)
    of = f" of '{name}'" if name else ""
    if row["upper"] is None:
        return f"accept '{row['measure']}'{of}: could not be measured; {helps}"
    return (
        f"accept '{row['measure']}'{of}: at most {row['at_most']}, an attack finds up to"
        f" {row['upper']}; {helps}"
    )


def remedy(certificate: Mapping[str, Any], measure: str, name: str | None) -> str:
    """What helps against an attack. measure, name: how `accept` names it and its column."""
    if measure != "alone":
        helps = REMEDIES.get(measure, "change the policy")
        for promise in certificate.get("promises") or []:
            if promise["model"] in STRONGER and name in (promise.get("attributes") or []):
                helps = helps.replace(f"promise {promise['model']}", STRONGER[promise["model"]])
        return helps
    roles = {column["name"]: column["role"] for column in certificate.get("columns") or []}
    return ALONE["sensitive" if roles.get(name) == "sensitive" else "plain"]


# All quasi-identifiers together, where promises are about some of them each.


def is_below(certificate: Mapping[str, Any]) -> bool:
    """Whether somebody hides among fewer than asked once all quasi-identifiers are known."""
    found = certificate.get("together") or {}
    asked, least = found.get("asked"), found.get("min")
    return asked is not None and least is not None and least < asked


def together_below(certificate: Mapping[str, Any], unit: Unit) -> ReleaseWarning:
    """What to say where every promise holds and `is_below`."""
    found, sizes = certificate["together"], certificate["classes"]
    few, what = found["alone"], "alone"
    if not few:
        few, what = found["below"], f"in classes of fewer than k = {found['asked']}"
    text = (
        "Every promise holds on its own columns. All quasi-identifiers together"
        f" ({', '.join(found['attributes'])}): classes of {span_text(sizes)}"
        f" {unit.of(sizes['max'])}, {few} of {found['people']} {what}; whoever knows them all can"
        " pick these out"
    )
    return ReleaseWarning(TOGETHER_BELOW, text)


# What a reader must know of a release that keeps its promises, in a sentence each.


def release_warnings(
    certificate: Certificate, withheld: int, problem: Problem
) -> list[ReleaseWarning]:
    """Everything that measuring a release gives reason to say.

    withheld: the people of the records that are in no class, as far as they are known.
    """
    counted = unit(certificate)
    said = open_question_warnings(problem.policy.open_questions())
    said += withheld_few(withheld, counted, problem.promises, problem.schema)
    if certificate.holds and is_below(certificate):
        said.append(together_below(certificate, counted))
    return said


def open_question_warnings(questions: list[str]) -> list[ReleaseWarning]:
    """What a policy itself still asks: its roles may not be what somebody decided."""
    return [ReleaseWarning(OPEN_QUESTION, text) for text in questions]


def withheld_few(
    people: int, unit: Unit, models: Sequence[Any], schema: Schema
) -> list[ReleaseWarning]:
    """Where fewer are withheld than hide anywhere else."""
    asked = (getattr(model, "k", None) for model in models)
    k = max((k for k in asked if isinstance(k, int)), default=0)
    if not 0 < people < k:
        return []
    # such a column still shows what it holds of somebody who is withheld
    shown = [f"'{a.name}'" for a in schema.published if a.role not in (Role.QUASI, Role.SENSITIVE)]
    more = f"; {', '.join(shown)} {'is' if len(shown) == 1 else 'are'} still shown" if shown else ""
    text = (
        f"{people} {unit.of(people)} withheld, fewer than k = {k}: whoever finds no class for a"
        f" person knows it is one of them{more}"
    )
    return [ReleaseWarning(WITHHELD_FEW, text)]
