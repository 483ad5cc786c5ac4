"""Verify: whether a file is the one that its certificate speaks of, and whether that still holds.

Needs nothing but the two files. Every further file that is given (the policy, the original, keys to
trust) lets it check more; what it can't check it names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.binding.files import read_as_written
from shoal.connectors import files
from shoal.connectors.dialect import Reading, codec_of
from shoal.connectors.outputs import certificate_path
from shoal.connectors.signatures import SIGNATURE_BYTES, read_trusted, signature_path
from shoal.data.certificate import Certificate
from shoal.data.fault_words import fault_sentence
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InputError
from shoal.jobs.audit.checks import Check, Stated
from shoal.jobs.audit.measured_again import measured_again
from shoal.policy.digest import policy_sha256
from shoal.policy.policy import Policy

FUSION = "fuse"


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

    certificate: by default PATH.certificate.json. policy: the promises are measured again; of a
    fusion, that of its agreement.
    original: its hash is compared, and people are counted. trust: public keys, or folders of them;
    one of them must have signed. Raises InputError where a file can't be read, MissingExtraError
    where trust is given and the extra `sign` is missing.
    """
    path = str(path)
    _require_there(path)
    proof = Path(certificate_path(path) if certificate is None else certificate)
    stated = Stated(Certificate.load(proof))
    policy = None if policy is None else Policy.of(policy)
    keys = read_trusted(trust) if trust else []
    if path == files.STANDARD:
        raise InputError("file '-': standard input can't be verified; name a file")
    files.format_of(path)
    progress("reading the release")
    digest = _digest(path)
    table, unreadable = _read(path, policy, stated)
    checks = [
        _file(stated, digest),
        _columns(stated, table, unreadable),
        _rows(stated, table, unreadable),
        _promises(stated, policy),
        _policy(stated, policy),
    ]
    progress("measuring the promises")
    checks.append(measured_again(stated, table, unreadable, policy, original))
    checks.append(_input(stated, original))
    checks.append(_signature(proof, keys))
    return checks


def _require_there(path: str) -> None:
    if path != files.STANDARD and not Path(path).exists():
        raise InputError(f"file '{path}': is not there; check its name")


def _digest(path: str | Path) -> str:
    try:
        return files.table_sha256(path)
    except OSError as failed:
        raise InputError(
            f"file '{path}': can't be read ({failed.strerror}); check its name and permissions"
        ) from None


def _read(path: str, policy: Policy | None, stated: Stated) -> tuple[Table | None, str]:
    """The released table; or why it can't be read, which a damaged file may be the cause of."""
    try:
        if policy is None:
            reading = _stated_reading(stated)
            return Table(files.read(path, allow_empty=True, reading=reading).frame), ""
        return Table(read_as_written(path, policy, allow_empty=True).frame), ""
    except InputError as unfit:
        return None, str(unfit.args[0])


def _stated_reading(stated: Stated) -> Reading:
    """How the certificate says that the file is written."""
    encoding = stated.at("output", "dialect", "encoding")
    delimiter = stated.at("output", "dialect", "delimiter")
    is_known = isinstance(encoding, str) and codec_of(encoding) is not None
    is_sign = isinstance(delimiter, str) and len(delimiter) == 1 and delimiter not in '"\r\n'
    return Reading(encoding if is_known else None, delimiter if is_sign else None)


def _file(stated: Stated, digest: str) -> Check:
    known = stated.at("output", "sha256")
    if known is None:
        return Check("file", False, "the certificate names none; certify the file with an audit")
    if known != digest:
        return Check("file", False, "is not the one certified")
    return Check("file", True, f"is the one certified, SHA-256 {digest}")


def _columns(stated: Stated, table: Table | None, unreadable: str) -> Check:
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


def _rows(stated: Stated, table: Table | None, unreadable: str) -> Check:
    known = stated.at("records", "out")
    if table is None:
        return Check("rows", False, unreadable)
    if known != table.records:
        return Check("rows", False, f"{table.records} in the file, {known} certified")
    return Check("rows", True, f"{known}, as certified")


def _promises(stated: Stated, policy: Policy | None) -> Check:
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
    found = [fault_sentence(str(name), count) for name, count in faults.items() if count != 0]
    if found:
        return Check("promises", False, f"the certificate states faults: {', '.join(found)}")
    accepted = stated.at("attacks", "accept") or []
    if policy is not None and policy.model.accept and not accepted:
        return Check("promises", False, "the policy limits attacks, the certificate judges none")
    if not all(isinstance(row, Mapping) and row.get("holds") is not False for row in accepted):
        return Check("promises", False, "the certificate states an attack that is not accepted")
    return Check("promises", True, f"{len(stated.promises)} of {len(stated.promises)} held")


def _policy(stated: Stated, policy: Policy | None) -> Check:
    known = stated.at("policy", "sha256")
    if known is None:
        return stated.lacks("policy")
    if policy is None:
        return Check("policy", None, "not given; name it with --policy")
    if known != policy_sha256(policy, str(stated.at("verb"))):
        if stated.at("verb") == FUSION:
            text = "a fusion's policy is part of its agreement; name that with --policy"
            return Check("policy", None, text)
        return Check("policy", False, "is not the one certified, or an option overrode it")
    return Check("policy", True, f"is the one certified, SHA-256 {known}")


def _input(stated: Stated, original: str | Path | None) -> Check:
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
