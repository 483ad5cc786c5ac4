"""The SHA-256 by which a certificate names the policy that it was measured against."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.errors import InputError
from shoal.policy.policy import Policy

DEFAULT_METHODS = {"stream": "fads"}
FREE = ("method", "seed", "read")
"""What may differ between the releases of one ledger, and does not belong to its policy."""

SURROUNDINGS = ("table", "frequencies")
"""The keys of `population` that name a file."""


def policy_identity(policy: Policy, verb: str) -> dict[str, Any]:
    """How a certificate names the effective policy, and the files that it was read with."""
    return {"sha256": policy_sha256(policy, verb), "files": list(_files(policy))}


def policy_sha256(policy: Policy, verb: str = "publish") -> str:
    """The hash of the effective policy: what was set, with files by content instead of by path.

    The same for YAML, JSON and TOML, for any order of keys, and wherever the files lie. What a verb
    does where the policy says nothing counts as set.
    """
    content = _content(policy, verb)
    for attribute in content.get("attributes", {}).values():
        _by_content(attribute, "hierarchy", policy)
    for promise in content.get("promises", ()):
        _by_content(promise, "population", policy)
    _by_content(content, "reference", policy)
    for kind in SURROUNDINGS:
        _by_content(content.get("population") or {}, kind, policy)
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _content(policy: Policy, verb: str) -> dict[str, Any]:
    """What is set, under a verb."""
    if verb == "republish":
        policy = policy.with_shuffled_rows()
    elif verb in DEFAULT_METHODS and policy.model.method is None:
        policy = policy.with_method(DEFAULT_METHODS[verb])
    content = policy.model.model_dump(mode="json", exclude_unset=True)
    if verb == "republish":
        content = {key: value for key, value in content.items() if key not in FREE}
    return content


def _files(policy: Policy) -> Iterator[dict[str, Any]]:
    """The files that a policy reads, each with its hash; never with its name or folder."""
    for name, attribute in policy.model.attributes.items():
        if isinstance(attribute.hierarchy, str) and attribute.hierarchy:
            yield _file(policy, attribute.hierarchy, "hierarchy", name)
    for population in policy.population_names:
        yield _file(policy, population, "population")
    for kind in SURROUNDINGS:
        around = getattr(policy.model.population, kind, None)
        if around:
            yield _file(policy, around, "population")
    if policy.model.reference:
        yield _file(policy, policy.model.reference, "reference")


def _file(policy: Policy, name: str, kind: str, attribute: str | None = None) -> dict[str, Any]:
    path = policy.base / name
    digest = _sha256(path)
    return {
        "attribute": attribute,
        "kind": kind,
        "sha256": digest,
        "bytes": path.stat().st_size,
    }


def _by_content(settings: dict[str, Any], key: str, policy: Policy) -> None:
    """Puts the hash of a file in the place of its path."""
    name = settings.get(key)
    if isinstance(name, str) and name:
        settings[key] = _sha256(policy.base / name)


def _sha256(path: Path) -> str:
    try:
        return files.file_sha256(path)
    except OSError as failed:
        raise InputError(
            f"policy: its file '{path}' can't be read ({failed.strerror}); check its name and"
            " permissions"
        ) from None
