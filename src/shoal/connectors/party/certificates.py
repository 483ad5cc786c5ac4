"""Keys and certificates of parties: made, named by their hash, and checked before anybody waits.

A certificate that gRPC would not take is found here, on this machine, where a message can say which
file is wrong. On the wire it only looks like a party that can't be reached.
"""

from __future__ import annotations

import datetime
import hashlib
import ssl
from typing import Any

from shoal.errors import InputError, MissingExtraError

_MAKE = "'shoal party init' makes one, and all make a new agreement"
_DAYS = 825  # that a certificate is valid


def fingerprint_of(certificate: bytes, file: str = "") -> str:
    """SHA-256 of a certificate (PEM) in its binary form; raises InputError where it is none."""
    try:
        binary = ssl.PEM_cert_to_DER_cert(certificate.decode())
    except ValueError:
        raise InputError(
            f"certificate '{file}': is not a certificate (PEM); take the .crt file that 'shoal"
            " party init' wrote"
        ) from None
    return "sha256:" + hashlib.sha256(binary).hexdigest()


def certificate_findings(certificate: bytes, name: str, file: str) -> list[str]:
    """What keeps this certificate (PEM) from being the party's today; one line each."""
    x509, _, ec = _cryptography()
    where = f"party '{name}', certificate '{file}'"
    try:
        known = x509.load_pem_x509_certificate(certificate)
        key = known.public_key()
        names = known.extensions.get_extension_for_class(x509.SubjectAlternativeName)
        named = names.value.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        named = []
    except Exception:  # of many kinds, from the parser of another project
        return [f"{where}: is not a certificate (PEM); {_MAKE}"]
    findings = []
    now = datetime.datetime.now(datetime.UTC)
    if now > known.not_valid_after_utc:
        findings.append(f"{where}: expired on {known.not_valid_after_utc:%Y-%m-%d}; {_MAKE}")
    if now < known.not_valid_before_utc:
        findings.append(
            f"{where}: is not valid before {known.not_valid_before_utc:%Y-%m-%d}; check this"
            " machine's clock"
        )
    if name not in named:
        findings.append(f"{where}: is not made for this name; {_MAKE}")
    if not (isinstance(key, ec.EllipticCurvePublicKey) and key.curve.name == "secp256r1"):
        findings.append(f"{where}: does not have a P-256 key; {_MAKE}")
    return findings


def key_finding(key: bytes, certificate: bytes, name: str, file: str) -> str | None:
    """What keeps this private key (PEM) from being that of the certificate; None for nothing."""
    x509, serialization, _ = _cryptography()
    where = f"party '{name}', key '{file}'"
    way_out = f"take the one that 'shoal party init {name}' wrote beside the certificate"
    try:
        private = serialization.load_pem_private_key(key, password=None)
    except Exception:  # of many kinds, from the parser of another project
        return f"{where}: is not a private key (PEM, without a password); {way_out}"
    if private.public_key() != x509.load_pem_x509_certificate(certificate).public_key():
        return f"{where}: is not the key of this party's certificate; {way_out}"
    return None


def make_keys(name: str) -> tuple[bytes, bytes]:
    """A fresh private key and a self-signed certificate for that name (PEM)."""
    x509, serialization, ec = _cryptography()
    from cryptography.hazmat.primitives import hashes
    from cryptography.x509.oid import NameOID

    key = ec.generate_private_key(ec.SECP256R1())
    named = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(named)
        .issuer_name(named)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=_DAYS))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return private, certificate.public_bytes(serialization.Encoding.PEM)


def _cryptography() -> tuple[Any, Any, Any]:
    """The modules x509, serialization and ec."""
    try:
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    except ImportError:
        raise MissingExtraError.of("keys and certificates need cryptography", "fuse") from None
    return x509, serialization, ec
