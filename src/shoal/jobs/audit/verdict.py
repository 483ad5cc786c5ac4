"""What becomes of a release that was measured: it keeps every promise, or it is withheld."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.data.certificate import Certificate
from shoal.data.fault_words import fault_sentences
from shoal.errors import PromiseError
from shoal.jobs.audit.together import is_below


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
        acceptance_text(row)
        for row in certificate.get("attacks", {}).get("accept", [])
        if row["holds"] is False
    ]
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
    "ends_gain": "move interval ends to a grid, as 'snap' shows",
    "alone": "drop the column, or make it sensitive or a quasi-identifier",
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


def acceptance_text(row: Mapping[str, Any]) -> str:
    """A threshold that an attack exceeds, and what helps; not another seed."""
    of = f" of '{row['attribute']}'" if row["attribute"] else ""
    remedy = REMEDIES.get(row["measure"], "change the policy")
    if row["upper"] is None:
        return f"accept '{row['measure']}'{of}: could not be measured; {remedy}"
    return (
        f"accept '{row['measure']}'{of}: at most {row['at_most']}, an attack finds up to"
        f" {row['upper']}; {remedy}"
    )
