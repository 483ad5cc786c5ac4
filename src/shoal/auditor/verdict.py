"""What becomes of a release that was measured: it keeps every promise, or it is withheld."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.auditor.together import is_below
from shoal.data.certificate import Certificate
from shoal.data.fault_words import fault_sentences
from shoal.errors import PromiseError


def require_kept(certificate: Certificate, consequence: str) -> None:
    """Raises PromiseError with every promise that a release breaks and every fault that it has.

    consequence: what the error says has become of the outputs.
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


def require_together_kept(certificate: Certificate, consequence: str) -> None:
    """Raises PromiseError where k holds over some quasi-identifiers each, but not over all."""
    if is_below(certificate):
        found = certificate["together"]
        raise PromiseError(
            f"all quasi-identifiers together: k = {found['asked']} asked, {found['min']} measured,"
            f" {found['below']} of {found['people']} below; the release is withheld, {consequence}."
            " Promise k over all of them, or leave out --require-together"
        )


REMEDIES = {
    "ends_gain": "move interval ends to round numbers ('round'), as 'snap' shows",
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
}


ALONE = {
    "sensitive": "raise k, coarsen its values before publishing, or drop it",
    "plain": "drop the column, or make it a quasi-identifier",
}


def acceptance_text(row: Mapping[str, Any], certificate: Mapping[str, Any]) -> str:
    """A threshold that an attack exceeds, and what helps; not another seed."""
    name = row["attribute"]
    if row["measure"] == "alone":
        name, remedy = _alone(name, certificate)
    else:
        remedy = REMEDIES.get(row["measure"], "change the policy")
    of = f" of '{name}'" if name else ""
    if row["upper"] is None:
        return f"accept '{row['measure']}'{of}: could not be measured; {remedy}"
    return (
        f"accept '{row['measure']}'{of}: at most {row['at_most']}, an attack finds up to"
        f" {row['upper']}; {remedy}"
    )


def _alone(name: str | None, certificate: Mapping[str, Any]) -> tuple[str | None, str]:
    """The column that is judged, without a name the worst one, and what helps for its role."""
    columns = (certificate["attacks"].get("singling-out") or {}).get("alone", {})
    if name is None:
        name = max(columns, key=lambda column: columns[column]["share"] or 0.0, default=None)
    roles = {column["name"]: column["role"] for column in certificate.get("columns") or []}
    return name, ALONE["sensitive" if roles.get(name) == "sensitive" else "plain"]
