"""Sign: put a name under a certificate, and by it under the release that the certificate names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shoal.connectors import files
from shoal.connectors.outputs import certificate_path
from shoal.connectors.signatures import Signer
from shoal.data.certificate import Certificate
from shoal.errors import InputError, PromiseError


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
    """Signs the certificate of a release, if it is that file's and every promise holds in it.

    Returns the path of the signature. Raises InputError, or PromiseError where a promise does not
    hold.
    """
    if not Path(path).exists():
        raise InputError(f"file '{path}': is not there; check its name")
    beside = Path(certificate_path(path))
    if not beside.exists():
        raise InputError(
            f"file '{path}': has no certificate beside it, '{beside.name}'; only that is signed, so"
            " fetch it with the release"
        )
    certificate = Certificate.load(beside)
    check_holds(certificate, certificate_path(path))
    try:
        digest = files.file_sha256(path)
    except OSError as failed:
        raise InputError(
            f"file '{path}': can't be read ({failed.strerror}); check its name and permissions"
        ) from None
    output = certificate.get("output")
    if not isinstance(output, Mapping) or digest != output.get("sha256"):
        raise InputError(
            f"file '{path}': is not the one that its certificate names; fetch both again, or audit"
            " the file"
        )
    return signer.sign(Path(certificate_path(path)))
