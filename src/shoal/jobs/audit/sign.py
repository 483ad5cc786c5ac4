"""Sign: put a name under a certificate, and by it under the release that the certificate names."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from shoal.connectors import files
from shoal.connectors.outputs import certificate_path
from shoal.connectors.signatures import Signer
from shoal.data.certificate import Certificate
from shoal.errors import InputError


def sign_file(path: str, signer: Signer) -> str:
    """Signs the certificate of a release, if it is the certificate of that file.

    Returns the path of the signature. Raises InputError.
    """
    certificate = Certificate.load(certificate_path(path))
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
