"""What a certificate says beside its measurements: when, by what, under which policy, on what."""

from __future__ import annotations

from typing import Any

from shoal.data.certificate import Certificate
from shoal.data.release import Release
from shoal.data.schema import Schema
from shoal.data.table import Table
from shoal.data.truth import Truth
from shoal.jobs.audit.columns import measured_columns
from shoal.jobs.audit.provenance import build, date
from shoal.policy.digest import policy_identity
from shoal.policy.policy import Policy


def described(
    certificate: Certificate,
    released: Table,
    release: Release,
    schema: Schema,
    policy: Policy,
    truth: Truth | None,
) -> Certificate:
    """The certificate of a release, with its columns and with what made it.

    The certificate must name its verb already.
    """
    columns = measured_columns(released, release, schema, policy, truth)
    return certificate.extended(**provenance(certificate["verb"], policy), columns=columns)


def provenance(verb: str, policy: Policy) -> dict[str, Any]:
    """The keys that say what made a certificate."""
    return {
        "date": date(),
        "build": build(),
        "policy": policy_identity(policy, verb),
    }
