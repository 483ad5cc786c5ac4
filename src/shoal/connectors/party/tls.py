"""Keys, certificates, and gRPC over mutual TLS 1.3 with the certificates that the agreement names.

Certificates have P-256 keys, and for TLS 1.2 only suites for RSA keys are enabled, so a handshake
below TLS 1.3 cannot succeed.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent import futures
from dataclasses import dataclass
from typing import Any

from shoal.connectors.party.certificates import fingerprint_of
from shoal.errors import MissingExtraError, PartyError

# gRPC reads both when it is loaded
os.environ["GRPC_SSL_CIPHER_SUITES"] = "ECDHE-RSA-AES128-GCM-SHA256"
os.environ.setdefault("GRPC_VERBOSITY", "NONE")
_OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.so_reuseport", 0))
_RECONNECT = (
    ("grpc.initial_reconnect_backoff_ms", 50),
    ("grpc.max_reconnect_backoff_ms", 500),
)
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
    """The address where a party listens, and its channels to the others.

    most: bytes of a message, beyond which its channel breaks.
    """

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
        """The answer of another party to one call."""
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
        """Closes all channels at once."""
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
    try:
        import grpc
    except ImportError:
        raise MissingExtraError.of("talking to other parties needs gRPC", "fuse") from None
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
