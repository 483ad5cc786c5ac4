"""The method of a release whose policy names none: its certificate says which one it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.connectors import files
from shoal.connectors.outputs import certificate_beside, certificate_path
from shoal.data.certificate import Certificate
from shoal.errors import InputError
from shoal.policy.policy import Policy


def with_stated_method(policy: Policy, released_path: str) -> Policy:
    """The same policy; where it names no method, with the one that published the file.

    That is what the certificate beside the file says, if it is about this very file. Where it is
    not, or where a plan was applied, the policy stays as it is.
    """
    beside = None if policy.model.method is not None else certificate_beside(released_path)
    if beside is None:
        return policy
    try:
        certificate = Certificate.parsed(beside, certificate_path(released_path))
        method = _method_of(certificate, files.table_sha256(released_path))
        if method is None:
            return policy
        stated = policy.with_method(str(method["name"]), method["parameters"])
        stated.build_method("publish")
    except (InputError, OSError):
        return policy  # a method or a parameter that is not known here
    return stated


def _method_of(certificate: Certificate, sha256: str) -> Mapping[str, Any] | None:
    """The method and its parameters, if the certificate is of a publication of these bytes."""
    output, method = certificate.get("output"), certificate.get("method")
    if certificate.get("verb") != "publish" or "plan" in certificate:
        return None
    if not isinstance(output, Mapping) or output.get("sha256") != sha256:
        return None
    if not isinstance(method, Mapping) or not isinstance(method.get("parameters"), Mapping):
        return None
    return method if isinstance(method.get("name"), str) else None
