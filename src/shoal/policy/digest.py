"""The SHA-256 by which a certificate names the policy that it was measured against."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shoal.connectors import files
from shoal.errors import InputError
from shoal.policy.policy import Policy


def policy_sha256(policy: Policy) -> str:
    """The hash of the effective policy: what was set, with files by content instead of by path.

    The same for YAML, JSON and TOML, for any order of keys, and wherever the files lie.
    """
    content = policy.model.model_dump(mode="json", exclude_unset=True)
    for attribute in content.get("attributes", {}).values():
        _by_content(attribute, "hierarchy", policy)
    for promise in content.get("promises", ()):
        _by_content(promise, "population", policy)
    _by_content(content, "reference", policy)
    text = json.dumps(content, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def _by_content(settings: dict[str, Any], key: str, policy: Policy) -> None:
    """Puts the hash of a file in the place of its path."""
    name = settings.get(key)
    if not isinstance(name, str) or not name:
        return
    path = policy.base / name
    try:
        settings[key] = files.file_sha256(path)
    except OSError as failed:
        raise InputError(
            f"policy: its file '{path}' can't be read ({failed.strerror}); check its name and"
            " permissions"
        ) from None
