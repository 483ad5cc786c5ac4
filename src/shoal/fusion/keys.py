"""The keys of the parties of a fusion."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shoal.connectors.party.certificates import (
    certificate_findings,
    key_finding,
    make_keys,
)
from shoal.connectors.party.tls import Identity
from shoal.errors import InputError
from shoal.fusion.outputs import make_folder
from shoal.policy.agreement import Agreement


@dataclass(frozen=True)
class Keys:
    """Where a party's private key and certificate are stored."""

    key: Path
    certificate: Path

    @classmethod
    def of(cls, name: str, folder: Path) -> Keys:
        return cls(folder / f"{name}.key", folder / f"{name}.crt")

    def make(self, name: str) -> None:
        """Writes fresh keys; raises InputError where some exist, which must not be lost."""
        for path in (self.key, self.certificate):
            if path.exists():
                raise InputError(
                    f"'{path}': already exists; a new key would invalidate the signed agreement"
                )
        private, public = make_keys(name)
        make_folder(self.key.parent, "keys")
        descriptor = os.open(self.key, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(private)
        self.certificate.write_bytes(public)

    def identity(self, name: str, agreement: Agreement) -> Identity:
        """The party as the others know it.

        Raises InputError with every finding about its key and about all parties' certificates.
        """
        peer = agreement.peer(name)
        try:
            key = self.key.read_bytes()
            own = self.certificate.read_bytes()
        except OSError as failed:
            raise InputError(
                f"party '{name}': key '{self.key}' can't be read ({failed.strerror}); 'shoal party"
                " init' makes it"
            ) from None
        if own != peer.certificate:
            raise InputError(
                f"party '{name}': the agreement has another certificate than '{self.certificate}';"
                " make a new agreement"
            )
        findings = [
            finding
            for other in agreement.participants
            for finding in certificate_findings(
                agreement.peer(other).certificate, other, str(agreement.party(other).certificate)
            )
        ]
        unfit = None if findings else key_finding(key, own, name, str(self.key))
        if findings or unfit is not None:
            raise InputError.from_findings([*findings, *([unfit] if unfit else [])])
        return Identity(name, peer.address, own, key)
