"""Warnings of a certificate, for the person at the terminal; a quiet command shows them, too."""

from __future__ import annotations

import sys

from shoal.data.certificate import Certificate
from shoal.data.printable import printable


def show_warnings(certificate: Certificate) -> None:
    """A line each on standard error."""
    for warning in certificate.warnings:
        print(f"shoal: {printable(warning.text)}", file=sys.stderr)
