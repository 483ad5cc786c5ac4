"""Verify: whether a file is the one that its certificate speaks of, and whether that still holds.

Needs nothing but the two files. Every further file that is given (the policy, the original, keys to
trust) lets it check more; what it can't check it names.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from shoal.connectors import files
from shoal.connectors.outputs import certificate_path
from shoal.connectors.signatures import SIGNATURE_BYTES, read_trusted, signature_path
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.jobs.audit.audit import audit_table
from shoal.policy.digest import policy_sha256
from shoal.policy.policy import Policy

CLOSE = 1e-9  # relative; sums in another order differ by less
RELEASED_IN_PARTS = ("stream", "republish")  # their rows can't be matched with an original's


@dataclass(frozen=True)
class Check:
    """What one check found. ok: None where it could not be made."""

    name: str
    ok: bool | None
    text: str

    @property
    def mark(self) -> str:
        return "--" if self.ok is None else "ok" if self.ok else "FAIL"

    def __str__(self) -> str:
        return f"{self.mark:<4} {self.name}: {self.text}"


def verify(
    path: str | Path,
    certificate: str | Path | None = None,
    policy: Policy | str | Path | dict[str, Any] | None = None,
    *,
    original: str | Path | None = None,
    trust: Sequence[str | Path] = (),
    progress: Progress = no_progress,
) -> list[Check]:
    """Every check of a released file against its certificate, in order; good if none is False.

    certificate: by default PATH.certificate.json. policy: the promises are measured again.
    original: its hash is compared, and people are counted. trust: public keys, or folders of them;
    one of them must have signed. Raises InputError where a file can't be read, MissingExtraError
    where trust is given and the extra `sign` is missing.
    """
    path = str(path)
    proof = Path(certificate_path(path) if certificate is None else certificate)
    stated = _Stated(Certificate.load(proof))
    policy = None if policy is None else Policy.of(policy)
    keys = read_trusted(trust) if trust else []
    if path == files.STANDARD:
        raise InputError("file '-': standard input can't be verified; name a file")
    files.format_of(path)
    progress("reading the release")
    digest = _digest(path)
    table, unreadable = _read(path, policy)
    checks = [
        _file(stated, digest),
        _columns(stated, table, unreadable),
        _rows(stated, table, unreadable),
        _promises(stated),
        _policy(stated, policy),
    ]
    progress("measuring the promises")
    checks.append(_measured_again(stated, table, unreadable, policy, original))
    checks.append(_input(stated, original))
    checks.append(_signature(proof, keys))
    return checks


@dataclass(frozen=True)
class _Stated:
    """What a certificate states; None for what it does not."""

    certificate: Certificate

    @property
    def schema(self) -> str:
        return str(self.certificate["schema"]).rpartition("/")[2]

    @property
    def promises(self) -> list[Mapping[str, Any]]:
        found = self.certificate.get("promises")
        if isinstance(found, list) and all(isinstance(promise, Mapping) for promise in found):
            return found
        return []

    def at(self, *keys: str) -> Any:
        """What stands below these keys."""
        value: Any = self.certificate
        for key in keys:
            value = value.get(key) if isinstance(value, Mapping) else None
        return value

    def lacks(self, name: str) -> Check:
        return Check(name, None, f"a certificate of schema {self.schema} names none")


def _digest(path: str | Path) -> str:
    try:
        return files.file_sha256(path)
    except OSError as failed:
        raise InputError(
            f"file '{path}': can't be read ({failed.strerror}); check its name and permissions"
        ) from None


def _read(path: str, policy: Policy | None) -> tuple[Table | None, str]:
    """The released table; or why it can't be read, which a damaged file may be the cause of."""
    try:
        columns = () if policy is None else policy.audited_columns
        return Table(files.read(path, columns, allow_empty=True).frame), ""
    except InputError as unfit:
        return None, str(unfit.args[0])


def _file(stated: _Stated, digest: str) -> Check:
    known = stated.at("output", "sha256")
    if known is None:
        return Check("file", False, "the certificate names none; certify the file with an audit")
    if known != digest:
        return Check("file", False, "is not the one certified")
    return Check("file", True, f"is the one certified, SHA-256 {digest}")


def _columns(stated: _Stated, table: Table | None, unreadable: str) -> Check:
    described = stated.at("columns")
    if not isinstance(described, list):
        return stated.lacks("columns")
    if table is None:
        return Check("columns", False, unreadable)
    known = [
        column.get("name")
        for column in described
        if isinstance(column, Mapping) and column.get("technique") != "removed"
    ]
    if known != table.names:
        return Check("columns", False, "are not those certified")
    return Check("columns", True, f"{len(known)}, as certified")


def _rows(stated: _Stated, table: Table | None, unreadable: str) -> Check:
    known = stated.at("records", "out")
    if table is None:
        return Check("rows", False, unreadable)
    if known != table.records:
        return Check("rows", False, f"{table.records} in the file, {known} certified")
    return Check("rows", True, f"{known}, as certified")


def _promises(stated: _Stated) -> Check:
    """Whether the certificate says that all is kept, as it would of itself."""
    if not stated.promises:
        return Check("promises", False, "the certificate states none")
    broken = [str(p.get("model")) for p in stated.promises if p.get("holds") is not True]
    if broken:
        return Check("promises", False, f"{', '.join(broken)} did not hold when it was measured")
    faults = stated.at("faults")
    if not isinstance(faults, Mapping | None):
        return Check("promises", False, "the certificate states faults that can't be read")
    faults = faults or {}
    found = [name for name, count in faults.items() if count != 0]
    if found:
        return Check("promises", False, f"the certificate states faults: {', '.join(found)}")
    return Check("promises", True, f"{len(stated.promises)} of {len(stated.promises)} held")


def _policy(stated: _Stated, policy: Policy | None) -> Check:
    known = stated.at("policy", "sha256")
    if known is None:
        return stated.lacks("policy")
    if policy is None:
        return Check("policy", None, "not given; name it with --policy")
    if known != policy_sha256(policy):
        return Check("policy", False, "is not the one certified, or an option overrode it")
    return Check("policy", True, f"is the one certified, SHA-256 {known}")


def _measured_again(
    stated: _Stated,
    table: Table | None,
    unreadable: str,
    policy: Policy | None,
    original: str | Path | None,
) -> Check:
    """Whether an audit of the file finds what the certificate states."""
    name = "measured again"
    if policy is None:
        return Check(name, None, "needs the policy; name it with --policy")
    if table is None:
        return Check(name, False, unreadable)
    verb = stated.at("verb")
    # a forged certificate must not talk anyone out of the comparison that they ask for
    unmeasured = None if original is None else False
    if verb == "republish":
        return Check(
            name,
            unmeasured,
            "a ledger's releases are measured together; run 'shoal audit --ledger'",
        )
    matched = original is not None and verb not in RELEASED_IN_PARTS
    try:
        source = Table(files.read(str(original), policy.audited_columns).frame) if matched else None
        found = audit_table(table, policy, source).certificate
    except InputError as unfit:
        return Check(name, False, str(unfit.args[0]))
    return _compared(stated, found, original is not None)


def _compared(stated: _Stated, found: Certificate, has_original: bool) -> Check:
    """Compares two lists of promises, by what each asks."""
    name = "measured again"
    unmeasured = False if has_original else None
    before = {_asked(promise): promise for promise in stated.promises}
    if len(before) < len(stated.promises):
        return Check(name, False, "the certificate states a promise twice")
    again = {_asked(promise): promise for promise in found["promises"]}
    if set(before) != set(again):
        return Check(name, False, "the policy asks for other promises than the certificate states")
    if found["counted"] != stated.at("counted"):
        remedy = (
            "the release alone names none, and its rows can't be matched with the original"
            if has_original
            else "name the original with --original"
        )
        return Check(name, unmeasured, f"people can't be counted; {remedy}")
    if any(before[key].get("to") != again[key].get("to") for key in before):
        return Check(
            name,
            unmeasured,
            "was measured to a reference; name it in the policy, under 'reference'",
        )
    other = [key for key in before if not _same(before[key], again[key])]
    if other:
        models = ", ".join(str(before[key]["model"]) for key in other)
        return Check(name, False, f"{models}: an audit finds another value than the certificate")
    if not found.holds:
        return Check(name, False, "an audit finds faults against the original")
    return Check(name, True, "an audit finds the same")


def _asked(promise: Mapping[str, Any]) -> str:
    """What a promise asks, without what was found."""
    found = ("holds", "to", "classes", "risk")
    return json.dumps(
        {key: value for key, value in promise.items() if key not in found and not _is_measure(key)},
        sort_keys=True,
    )


def _is_measure(key: str) -> bool:
    return key.startswith("measured") or key.endswith("_measured")


def _same(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether what was measured is the same twice."""
    keys = {"holds", *filter(_is_measure, {*one, *other})}
    return all(_close(one.get(key), other.get(key)) for key in keys)


def _close(one: Any, other: Any) -> bool:
    numbers = (int, float)
    if isinstance(one, bool) or not isinstance(one, numbers) or not isinstance(other, numbers):
        return bool(one == other)
    try:
        return math.isclose(one, other, rel_tol=CLOSE, abs_tol=CLOSE)
    except OverflowError:  # a whole number beyond all floats
        return False


def _input(stated: _Stated, original: str | Path | None) -> Check:
    known = stated.at("input", "sha256")
    digest = None if original is None else _digest(original)
    if known is None:
        return Check("input", None, "the certificate names none")
    if digest is None:
        return Check("input", None, "needs the original; name it with --original")
    if known != digest:
        return Check("input", False, "the original is not the one certified")
    return Check("input", True, f"the original is the one certified, SHA-256 {digest}")


def _signature(proof: Path, keys: Sequence[Any]) -> Check:
    name = "signature"
    signature = _bytes_of(Path(signature_path(proof)))
    if not keys:
        is_there = "there is none" if signature is None else "not checked; name a key with --trust"
        return Check(name, None, is_there)
    if signature is None:
        return Check(name, False, "--trust asks for one, there is none")
    content = _bytes_of(proof)
    for key in keys:
        if len(signature) == SIGNATURE_BYTES and content and key.accepts(signature, content):
            return Check(name, True, f"by the key in {key.name}, {key.fingerprint}")
    return Check(name, False, "is by none of the keys that --trust names")


def _bytes_of(path: Path) -> bytes | None:
    """The content of a file; None where there is none. Raises InputError where it can't be read."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as failed:
        raise InputError(
            f"file '{path}': can't be read ({failed.strerror}); check its name and permissions"
        ) from None
