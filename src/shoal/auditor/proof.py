"""A certificate's file, read once: what is parsed, hashed and signed are the same bytes."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from shoal.connectors.outputs import certificate_beside, certificate_path
from shoal.data.certificate import Certificate


@dataclass(frozen=True)
class Proof:
    """The certificate of a release, and where it lies."""

    path: Path
    content: bytes

    @classmethod
    def of(cls, released: str, certificate: str | Path | None = None) -> Proof:
        """The one that is named, else the one beside the release; raises InputError."""
        path = Path(certificate_path(released) if certificate is None else certificate)
        content = certificate_beside(released) if certificate is None else None
        return cls(path, Certificate.read(path) if content is None else content)

    @cached_property
    def certificate(self) -> Certificate:
        """What it states; raises InputError where it is none."""
        return Certificate.parsed(self.content, self.path)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()
