"""Where outputs go: a certificate beside its release, both or neither."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def certificate_path(output_path: str) -> str:
    return f"{output_path}.certificate.json"


@contextmanager
def remove_uncommitted_certificate(output_path: str) -> Iterator[None]:
    """Where the release can't take its place after all, its certificate does not stay alone."""
    proof = Path(certificate_path(output_path))
    before = proof.stat().st_ino if proof.exists() else None
    try:
        yield
    except BaseException:
        if proof.exists() and proof.stat().st_ino != before:
            proof.unlink()
        raise
