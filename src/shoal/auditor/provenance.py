"""What made a certificate, and when; never on which machine, by whom or in which folder."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path

from shoal.errors import InputError

EPOCH = "SOURCE_DATE_EPOCH"
BUILT_WITH = ("numpy", "polars", "numba")


def date(environment: Mapping[str, str] = os.environ) -> str:
    """The time in UTC, to the second; SOURCE_DATE_EPOCH wins, so that builds can be repeated."""
    given = environment.get(EPOCH)
    if given is None:
        moment = datetime.now(UTC)
    else:
        try:
            moment = datetime.fromtimestamp(int(given), UTC)
        except (ValueError, OverflowError, OSError):
            raise InputError(
                f"{EPOCH}: is not a number of seconds since 1970; correct it, or unset it"
            ) from None
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def build() -> dict[str, str | None]:
    """The versions that computed it; and what of Shoal itself is installed."""
    versions = {name: _version(name) for name in BUILT_WITH}
    return {"python": platform.python_version(), **versions, "wheel_sha256": _wheel()}


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _wheel() -> str | None:
    """The hash of the list of installed files with their hashes; None in a clone."""
    try:
        installed = distribution("shoal")
    except PackageNotFoundError:
        return None
    record = installed.read_text("RECORD")
    here = Path(__file__).resolve()
    place = Path(str(installed.locate_file("shoal"))).resolve()
    if record is None or place not in here.parents or "shoal/version.py," not in record:
        return None
    return sha256(record.encode()).hexdigest()
