"""Sign: put a name under a certificate, and by it under the release that the certificate names."""

from __future__ import annotations

from pathlib import Path

from shoal.auditor.proof import Proof
from shoal.auditor.signatures import Signer
from shoal.auditor.verify import verify_by
from shoal.connectors.database.address import is_address
from shoal.connectors.outputs import certificate_path
from shoal.data.certificate import Certificate
from shoal.errors import InputError, PromiseError

FILE, SIGNATURE = "file", "signature"


def check_holds(certificate: Certificate, path: str) -> None:
    """Raises PromiseError where a certificate says that something does not hold: nobody signs that.

    path: what the message names.
    """
    if certificate.is_kept:
        return
    raise PromiseError(
        f"certificate '{path}': states a promise that does not hold, or faults; nothing is signed,"
        " publish a release that holds"
    )


def sign_file(path: str, signer: Signer) -> str:
    """Signs the certificate of a release, if it is that file's, every promise holds in it and
    nothing in the two files denies it.

    Returns the path of the signature. Raises InputError, or PromiseError where a promise does not
    hold or `verify` of the two files fails.
    """
    if is_address(path):
        raise InputError(
            f"table '{path}': its certificate is in the database; write one to a file and sign"
            " that: 'shoal audit ... -o FILE --sign KEY'"
        )
    if not Path(path).exists():
        raise InputError(f"file '{path}': is not there; check its name")
    beside = Path(certificate_path(path))
    if not beside.exists():
        raise InputError(
            f"file '{path}': has no certificate beside it, '{beside.name}'; only that is signed, so"
            " fetch it with the release"
        )
    proof = Proof.of(path)
    check_holds(proof.certificate, str(proof.path))
    checks = verify_by(path, proof)
    failed = [check for check in checks if check.ok is False and check.name != SIGNATURE]
    if any(check.name == FILE for check in failed):
        raise InputError(
            f"file '{path}': is not the one that its certificate names; fetch both again, or audit"
            " the file"
        )
    if failed:
        found = [f"{check.name}: {check.text}" for check in failed]
        raise PromiseError(f"file '{path}': fails verify, {found[0]}; nothing is signed", found[1:])
    return signer.sign(proof.path, proof.content)
