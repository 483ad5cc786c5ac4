"""What becomes of a release that was measured: it keeps every promise, or it is withheld."""

from __future__ import annotations

from shoal.data.certificate import Certificate
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
    broken += [
        f"{count} published records are {fault}"
        for fault, count in certificate.get("faults", {}).items()
        if count
    ]
    if broken:
        raise PromiseError(f"{broken[0]}; the release is withheld, {consequence}", broken[1:])
