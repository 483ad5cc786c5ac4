"""Signatures of certificates: plain Ed25519 over the bytes of the file, keys in PEM.

    FILE.certificate.json       names the hash of FILE, so signing it signs the release too
    FILE.certificate.json.sig   64 raw bytes; OpenSSL and every other tool can check them
    NAME.pem, NAME.pub.pem      the private key (PKCS#8, its owner's alone) and the public key

Needs the extra `sign`.
"""

import base64
import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.connectors.ledger.layout import CERTIFICATE, Chain, sha256_of
from shoal.connectors.linked_tables import place_of_one
from shoal.connectors.outputs import certificate_beside, signature_path
from shoal.data.certificate import Certificate
from shoal.data.regular_files import path_text, readable, require_regular
from shoal.errors import InputError, MissingExtraError

SIGNATURE_BYTES = 64
OTHERS = 0o077  # rights that nobody but the owner of a private key may have
PRIME = 2**255 - 19
OF_ORDER_8 = 0x5FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
"""The smaller y of the four points of order 8; the other is PRIME less it."""

Ask = Callable[[str], str | None]
"""Asks for the passphrase of a key, by its name; None where nobody can be asked."""


@dataclass(frozen=True)
class Proof:
    """A certificate's file, read once: what is parsed, hashed and signed are the same bytes."""

    path: Path
    content: bytes

    @classmethod
    def of(cls, released: str, certificate: str | Path | None = None) -> "Proof":
        """The one that is named, else the one beside the release; raises InputError."""
        beside = place_of_one(released)
        named = beside.certificate if certificate is None else certificate
        path = Path(path_text(named, "certificate"))
        content = certificate_beside(beside) if certificate is None else None
        return cls(path, Certificate.read(path) if content is None else content)

    @cached_property
    def certificate(self) -> Certificate:
        """What it states; raises InputError where it is none."""
        return Certificate.parsed(self.content, self.path)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    @property
    def of_its_ledger(self) -> set[str]:
        """The hashes of the certificates of the ledger in which this one lies; else none."""
        ledger = Chain(self.path.resolve().parent.parent)
        numbers = ledger.releases() if self.certificate.get("ledger") and ledger.exists else []
        return {sha256_of(ledger.folder(number) / CERTIFICATE) for number in numbers}


@dataclass(frozen=True)
class PublicKey:
    """A key that signatures are checked with, and the name of the file that it was read from."""

    name: str
    key: Any

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self.key)

    def accepts(self, signature: bytes, content: bytes) -> bool:
        from cryptography.exceptions import InvalidSignature

        try:
            self.key.verify(signature, content)
        except InvalidSignature:
            return False
        return True


@dataclass(frozen=True)
class Signer:
    """An opened private key."""

    key: Any

    @property
    def fingerprint(self) -> str:
        return _fingerprint(self.key.public_key())

    def sign(self, path: str | Path, content: bytes | None = None) -> str:
        """Signs the bytes of a file; returns the path of the signature beside it.

        content: the bytes, where they were read already.
        """
        with readable(f"certificate '{path}'"):
            content = Path(path).read_bytes() if content is None else content
        signature = signature_path(path)
        with files.atomic_write(signature) as draft:
            draft.write_bytes(self.key.sign(content))
        return signature


def check_new(name: str) -> None:
    """Raises InputError where a key of this name exists, before anybody types a passphrase."""
    _library()
    if name.rpartition("/")[2] == "":
        raise InputError(f"key '{name}': has no name; write 'shoal sign --new-key NAME'")
    if name.endswith(".pem"):
        stem = name.removesuffix(".pem").removesuffix(".pub")
        raise InputError(
            f"key '{name}': .pem is added to the name; write 'shoal sign --new-key {stem}'"
        )
    for path in _paths(name):
        if path.exists() or path.is_symlink():
            raise InputError(
                f"key '{path}': exists already; name another one, a key is never overwritten"
            )


def new_key(name: str, passphrase: str | None) -> str:
    """Writes NAME.pem and NAME.pub.pem, never over an existing file; returns the fingerprint.

    passphrase: None for a key without one.
    """
    check_new(name)
    ed25519, serialization, _ = _library()
    private_path, public_path = _paths(name)
    key = ed25519.Ed25519PrivateKey.generate()
    pem, public_format = serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    protection = serialization.NoEncryption()
    try:
        if passphrase is not None:
            protection = serialization.BestAvailableEncryption(passphrase.encode())
        private = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, protection)
    except ValueError:
        raise InputError(
            f"key '{name}': the passphrase is longer than 1,023 bytes, or not Unicode; take another"
        ) from None
    public = key.public_key().public_bytes(pem, public_format)
    _create(private_path, private, 0o600)
    try:
        _create(public_path, public, 0o644)
    except InputError:
        private_path.unlink()
        raise
    return _fingerprint(key.public_key())


def open_key(path: str | Path, ask: Ask) -> Signer:
    """The private key in a file; raises InputError where it can't be used or isn't kept private."""
    ed25519, serialization, unsupported = _library()
    require_regular(path, "key")
    with readable(f"key '{path}'"), open(path, "rb") as file:
        mode = os.fstat(file.fileno()).st_mode & 0o777
        content = file.read()
    if b"PUBLIC KEY-----" in content:
        raise InputError(f"key '{path}': is a public key; give the private one that it belongs to")
    if os.name == "posix" and mode & OTHERS:
        raise InputError(
            f"key '{path}': can be read by others (mode {mode:04o}); run 'chmod 600 {path}'"
        )
    load = serialization.load_pem_private_key
    try:
        key = load(content, None)
    except TypeError:  # it has a passphrase
        passphrase = ask(str(path))
        if passphrase is None:
            raise InputError(
                f"key '{path}': has a passphrase, and there is no terminal to ask for it; set"
                " SHOAL_KEY_PASSPHRASE"
            ) from None
        try:
            key = load(content, passphrase.encode())
        except (ValueError, TypeError):
            given = "SHOAL_KEY_PASSPHRASE" in os.environ
            again = "correct SHOAL_KEY_PASSPHRASE" if given else "type it again"
            raise InputError(f"key '{path}': the passphrase is wrong; {again}") from None
    except (ValueError, unsupported):
        key = None
    if not isinstance(key, ed25519.Ed25519PrivateKey):
        raise InputError(
            f"key '{path}': is not an Ed25519 private key in PEM; make one with 'shoal sign"
            " --new-key NAME'"
        )
    return Signer(key)


def read_trusted(paths: Sequence[str | Path]) -> list[PublicKey]:
    """The public keys in files and in folders of *.pub.pem; raises InputError where one is not a
    key.
    """
    ed25519, serialization, unsupported = _library()
    found: list[Path] = []
    for path in map(Path, paths):
        inside = sorted(path.glob("*.pub.pem")) if path.is_dir() else [path]
        if not inside:
            raise InputError(f"--trust '{path}': holds no *.pub.pem; name a public key")
        found += inside
    keys = []
    for path in found:
        require_regular(path, "key")
        key = None
        with readable(f"key '{path}'"), suppress(ValueError, unsupported):
            key = serialization.load_pem_public_key(path.read_bytes())
        if not isinstance(key, ed25519.Ed25519PublicKey):
            raise InputError(
                f"key '{path}': is not an Ed25519 public key in PEM; 'shoal sign --new-key NAME'"
                " writes one to NAME.pub.pem"
            )
        if _is_of_small_order(key):
            raise InputError(f"key '{path}': accepts signatures that need no key; take another")
        keys.append(PublicKey(path.name, key))
    return keys


def _is_of_small_order(key: Any) -> bool:
    """Whether a public key is one of the eight points that one fixed signature suits.

    Their y is 0, 1, -1 or that of order 8, in any encoding (RFC 8032, sections 5.1.3 and 8;
    Chalkias, Garillot, Nikolaenko. Taming the many EdDSAs. SSR 2020). OpenSSL takes them.
    """
    y = int.from_bytes(key.public_bytes_raw(), "little") % 2**255 % PRIME
    return min(y, PRIME - y) in (0, 1, OF_ORDER_8)


def _paths(name: str) -> tuple[Path, Path]:
    return Path(f"{name}.pem"), Path(f"{name}.pub.pem")


def _create(path: Path, content: bytes, mode: int) -> None:
    """Writes a file that must not exist, whole or not at all."""
    try:
        handle = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode)
    except OSError as failed:
        raise InputError(
            f"key '{path}': can't be written ({failed.strerror}); name a file in a folder that"
            " exists and is writable"
        ) from None
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
    except OSError as failed:
        with suppress(FileNotFoundError):
            path.unlink()
        raise InputError(
            f"key '{path}': writing failed ({failed.strerror}); free some space or name another"
            " place"
        ) from None


def _fingerprint(key: Any) -> str:
    """What `openssl pkey -pubin -outform DER | openssl dgst -sha256 -binary | base64` prints."""
    _, serialization, _ = _library()
    der = key.public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return f"SHA256:{base64.b64encode(hashlib.sha256(der).digest()).decode()}"


def _library() -> tuple[Any, Any, type[Exception]]:
    """Of `cryptography`, Ed25519, the forms of keys, and what is raised for unknown ones."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ed25519
    except ImportError:
        raise MissingExtraError.of("signing needs cryptography", "sign") from None
    return ed25519, serialization, UnsupportedAlgorithm
