"""The keys of the parties of a fusion."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from shoal.connectors.party.tls import Identity, make_keys
from shoal.errors import InputError


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
        descriptor = os.open(self.key, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(private)
        self.certificate.write_bytes(public)

    def identity(self, name: str, address: str, certificate: bytes) -> Identity:
        """The party as the others know it; raises InputError if its key or certificate is wrong."""
        try:
            key = self.key.read_bytes()
            own = self.certificate.read_bytes()
        except OSError as failed:
            raise InputError(
                f"party '{name}': key '{self.key}' can't be read ({failed.strerror}); 'shoal party"
                " init' makes it"
            ) from None
        if own != certificate:
            raise InputError(
                f"party '{name}': the agreement has another certificate than '{self.certificate}';"
                " agree anew"
            )
        return Identity(name, address, own, key)
