"""What becomes of a release that was measured: it keeps every promise, or it is withheld."""

from __future__ import annotations

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
