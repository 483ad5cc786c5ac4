"""Keys, certificates, and gRPC over mutual TLS 1.3 with the certificates that the agreement names.

Certificates have P-256 keys, and for TLS 1.2 only suites for RSA keys are enabled, so a handshake
below TLS 1.3 cannot succeed.
"""

import datetime
import hashlib
import os
import socket
import ssl
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Any

from shoal.errors import InputError, PartyError, of_extra

# gRPC reads both when it is loaded
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES128-GCM-SHA256"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
_OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0))
_RECONNECT = (("grpc.initial_reconnect_backoff_ms", 50), ("grpc.max_reconnect_backoff_ms", 500))
_SERVICE = "/shoal.Party/"
_MOST = (1 << 31) - 1  # bytes of a message, as far as gRPC counts
_CALL_TIMEOUT = 3  # seconds


@dataclass(frozen=True)
class Peer:
    """Another party: where it listens, and its certificate."""

    name: str
    address: str
    certificate: bytes

    @property
    def fingerprint(self) -> str:
        return fingerprint_of(self.certificate)


@dataclass(frozen=True)
class Identity:
    """This party: its name, where it listens, its certificate and private key (PEM)."""

    name: str
    address: str
    certificate: bytes
    key: bytes


class Endpoint:
    """Where a party listens, and its channels to others. most: bytes of a message they take."""

    def __init__(self, identity: Identity, peers: Sequence[Peer], most: int) -> None:
        self.grpc = _grpc()
        self.rpc_error: type[Exception] = self.grpc.RpcError
        self._identity = identity
        self._peers = {peer.name: peer for peer in peers}
        self._channels: dict[str, Any] = {}
        self._server: Any = None
        self._options = (*_OPTIONS, ("grpc.max_receive_message_length", min(most, _MOST)))

    def serve(
        self,
        calls: Mapping[str, Callable[[bytes, Any], bytes]],
        streams: Mapping[str, Callable[[Iterator[bytes], Any], bytes]],
    ) -> None:
        """Listens, and opens the channels; raises PartyError where the address is taken."""
        grpc = self.grpc
        handlers = {name: grpc.unary_unary_rpc_method_handler(hear) for name, hear in calls.items()}
        for name, hear in streams.items():
            handlers[name] = grpc.stream_unary_rpc_method_handler(hear)
        service = grpc.method_handlers_generic_handler(_SERVICE.strip("/"), handlers)
        threads = futures.ThreadPoolExecutor(4 * len(self._peers) + 4)
        self._server = grpc.server(threads, [service], options=self._options)
        credentials = grpc.ssl_server_credentials(
            [(self._identity.key, self._identity.certificate)],
            root_certificates=b"".join(peer.certificate for peer in self._peers.values()),
            require_client_auth=True,
        )
        try:
            port = self._server.add_secure_port(self._identity.address, credentials)
        except RuntimeError:
            port = 0
        if not port:
            raise PartyError(
                f"address '{self._identity.address}': can't be listened on"
                f" ({_why_not(self._identity.address)}); free it or agree on another one"
            )
        self._channels = {name: self._channel(peer) for name, peer in self._peers.items()}
        self._server.start()

    def call(self, name: str, method: str, packed: bytes) -> bytes:
        metadata = (("party", self._identity.name),)
        return self._channels[name].unary_unary(_SERVICE + method)(
            packed, timeout=_CALL_TIMEOUT, metadata=metadata
        )

    def stream(self, name: str, method: str, frames: Iterator[bytes], session: str) -> Any:
        """A stream of messages to another party, as gRPC's future of its end."""
        metadata = (("party", self._identity.name), ("session", session))
        return (
            self._channels[name].stream_unary(_SERVICE + method).future(frames, metadata=metadata)
        )

    def caller(self, context: Any) -> str:
        """The name of the party that calls, whose certificate must be the one agreed for it."""
        name = dict(context.invocation_metadata()).get("party", "")
        certificate = context.auth_context().get("x509_pem_cert", [b""])[0]
        if (
            name not in self._peers
            or not certificate
            or fingerprint_of(certificate) != self._peers[name].fingerprint
        ):
            context.abort(
                self.grpc.StatusCode.UNAUTHENTICATED,
                "the certificate is not the one agreed for this name",
            )
        return name

    def why_unreached(self, name: str, failed: Any) -> str:
        """What a failed call to another party says about it, in words."""
        details = str(failed.details())
        address = self._peers[name].address
        if failed.code() == self.grpc.StatusCode.UNAUTHENTICATED:
            return "it has another certificate for this party"
        if "Connection refused" in details:
            return f"nobody listens at {address}"
        if "CERTIFICATE" in details or "handshake" in details:
            return (
                f"who listens at {address} does not have the agreed certificate, or not for its"
                " name"
            )
        return f"no answer from {address}"

    def close(self) -> None:
        for channel in self._channels.values():
            channel.close()
        self._server.stop(0.2)

    def _channel(self, peer: Peer) -> Any:
        credentials = self.grpc.ssl_channel_credentials(
            peer.certificate, self._identity.key, self._identity.certificate
        )
        named = (("grpc.ssl_target_name_override", peer.name), *self._options, *_RECONNECT)
        return self.grpc.secure_channel(peer.address, credentials, options=named)


def _grpc() -> Any:
    with of_extra("talking to other parties needs gRPC", "fuse"):
        import grpc
    return grpc


def _why_not(address: str) -> str:
    """Why nobody can listen at an address; its certificate and key are known to be right."""
    host, _, port = address.rpartition(":")
    try:
        where = socket.getaddrinfo(host.strip("[]"), int(port), type=socket.SOCK_STREAM)[0]
        with socket.socket(where[0], where[1]) as tried:
            tried.bind(where[4])
    except OSError as failed:
        return failed.strerror or "no such address"
    except (ValueError, OverflowError):
        return "it is not HOST:PORT"
    return "gRPC refuses it"


# Keys and certificates of parties: made, named by their hash, and checked before anybody waits.
#
# A certificate that gRPC would not take is found here, on this machine, where a message can say
# which file is wrong. On the wire it only looks like a party that can't be reached.


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
    with of_extra("keys and certificates need cryptography", "fuse"):
        from cryptography import x509
        from cryptography.hazmat.primitives import serialization
        from cryptography.hazmat.primitives.asymmetric import ec
    return x509, serialization, ec
