"""Verify: whether a file is the one that its certificate speaks of, and whether that still holds.

Needs nothing but the two files. Every further file that is given (the policy, the original, keys to
trust) lets it check more; what it can't check it names.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from shoal.auditor.as_written import as_written
from shoal.auditor.checks import OTHER_RELEASES, Check, Stated, broken_text, consistency
from shoal.auditor.description import DEFAULT_METHODS, policy_identity, verb_of
from shoal.auditor.dossier.context import accepted_in_words, is_dossier, signed_off_by
from shoal.auditor.linked.verify import linked_checks
from shoal.auditor.measured_again import (
    RELEASED_IN_PARTS,
    UNREADABLE,
    Reader,
    both_hashes,
    measured_again,
    not_measured,
    of_original,
)
from shoal.auditor.signatures import SIGNATURE_BYTES, Proof, Signer, read_trusted
from shoal.auditor.verdict import fails_together
from shoal.connectors import files
from shoal.connectors.coded_files import read_coded
from shoal.connectors.dialect import AS_FOUND, reading_as_stated
from shoal.connectors.files import SourceFile
from shoal.connectors.location import Location
from shoal.connectors.outputs import signature_path
from shoal.connectors.parquet_parts import check_released
from shoal.connectors.traces import traced_rows
from shoal.data import room
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.recoding import GROUP, sensitive_path
from shoal.data.regular_files import path_text, readable, require_regular
from shoal.data.table import Table
from shoal.errors import InputError, PromiseError, TooLargeError
from shoal.policy import policy as policies
from shoal.policy import registry
from shoal.policy.binding.files import read_both
from shoal.policy.binding.past_memory import is_about_memory, room_for
from shoal.policy.linked import usual_method
from shoal.policy.policy import Policy, PolicyLike

DEFAULTS = (
    policies.DEFAULT_METHOD,
    policies.DEFAULT_OVER_HIERARCHIES,
    policies.DEFAULT_FOR_CLOSENESS["name"],
    policies.DEFAULT_FOR_SAMPLES,
    *DEFAULT_METHODS.values(),
)
FAILS = "fails"
"""The kind of an open point of a dossier that no words close."""
PART = 1 << 20  # bytes that are hashed at once
AUDITED = "; 'shoal.audit' compares a release with a frame"


def verify(
    path: str | Path,
    certificate: str | Path | None = None,
    policy: PolicyLike | None = None,
    *,
    original: str | Path | None = None,
    trace: str | Path | None = None,
    trust: Sequence[str | Path] = (),
    read: Mapping[str, Any] | None = None,
    memory: int | str | None = None,
    progress: Progress = no_progress,
) -> list[Check]:
    """Every check of a released file against its certificate, in order; good if none is False.

    Grave findings come first, as checks named `grave finding`, which neither hold nor fail. Of a
    dossier's D.json, whether its page is the one that it names, and who signed it.

    certificate: by default PATH.certificate.json. policy: the promises are measured again; of a
    fusion, that of its agreement.
    original: its hash is compared, and people are counted, by the trace that was written with the
    release where rows are not in the original's order. trust: public keys, or folders of them;
    one of them must have signed. read: as of `shoal.audit`, beside a policy. memory: bytes that may
    be used, or a size such as `"700MB"`; a table that does not fit is worked on in nameless files.
    Raises InputError where a file can't be read, MissingExtraError where trust is given and the
    extra `sign` is missing.
    """
    path = path_text(path, "path")
    require_there(path)
    if is_dossier(path):
        return dossier_checks(path, trust)
    asked = None if policy is None else Policy.of(policy, read)
    source = None if original is None else path_text(original, "original", AUDITED)
    with room.using(memory):
        proof = Proof.of(path, certificate)
        traced = None if trace is None else path_text(trace, "trace")
        return verify_by(path, proof, asked, source, trust, progress, traced)


def dossier_checks(path: str, trust: Sequence[str | Path] = ()) -> list[Check]:
    """The grave findings of a dossier's release, whether the page beside its JSON is the one that
    it names, how much is open by it, what was accepted in words, and who signed both.
    """
    keys = read_trusted(trust) if trust else []
    with readable(f"dossier '{path}'"):
        content = Path(path).read_bytes()
        try:
            dossier = json.loads(content)
            named, left = dossier["page"], [one["kind"] for one in dossier["open"]]
            page, stated = Path(path).with_name(Path(named["name"]).name), str(named["sha256"])
            grave = Stated(Certificate(dossier["certificate"])).grave
            accepted, names = accepted_in_words(dossier), signed_off_by(dossier)
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            raise InputError(
                f"dossier '{path}': names no page; give the JSON that 'shoal dossier -o' wrote"
            ) from None
    is_named = page.is_file() and files.file_sha256(page) == stated
    which = "the one that was written" if is_named else "not there, or not the one written"
    found = Check("page", is_named, f"{page.name} is {which} with it")
    failing = f", {left.count(FAILS)} of them for something that fails" if FAILS in left else ""
    still_open = Check("open points", None, f"{len(left)}{failing}")
    who = f"signed off by {'; '.join(names)}" if names else "nobody has signed off"
    in_words = Check("accepted in words", None, f"{len(accepted)}; {who}")
    signature = _signature(Proof(Path(path), content), keys)
    return [*grave, found, still_open, in_words, signature]


def policy_beside(released: str, certificate: str | Path | None = None) -> Path | None:
    """The policy that a certificate names, if it lies beside the release: `policy.yaml`, or with
    the name of the file.
    """
    path, stated = Path(released), Stated(Proof.of(released, certificate).certificate)
    for name in ("policy.yaml", f"{path.stem}.policy.yaml"):
        with suppress(InputError):
            known = policy_identity(Policy.load(path.with_name(name)), stated.verb)
            if known["sha256"] == stated.at("policy", "sha256"):
                return path.with_name(name)
    return None


def verify_by(
    path: str,
    proof: Proof,
    policy: Policy | None = None,
    original: str | None = None,
    trust: Sequence[str | Path] = (),
    progress: Progress = no_progress,
    trace: str | None = None,
) -> list[Check]:
    """`verify` by a certificate that was read already."""
    stated = Stated(proof.certificate)
    keys = read_trusted(trust) if trust else []
    place = Location(path)
    if place.is_standard:
        raise InputError("file '-': standard input can't be verified; name a file")
    if stated.at("linked") is None:
        _ = place.kind  # raises where no format has that suffix
    named, signature = _policy(stated, policy), _signature(proof, keys)
    verb = None if policy is None else verb_of(policy)
    if verb is None and signature.ok:  # a trusted key signed what the certificate says
        verb = stated.verb
    if stated.at("linked") is not None and trace is not None:
        raise InputError(
            "trace: is not used for linked tables, whose people the original alone is matched with;"
            " leave it out"
        )
    rows = None if trace is None else traced_rows(trace)
    memory = room_for(path, original) if stated.at("linked") is None else None
    reader = Reader(policy, original, verb, named.ok is not False, memory, rows)
    return [*stated.grave, *_checks(stated, path, reader, named, progress), signature]


def _checks(
    stated: Stated, path: str, reader: Reader, named: Check, progress: Progress
) -> Iterator[Check]:
    """Every check of what the certificate states, in order. named: that of the policy."""
    policy, original = reader.policy, reader.original
    if stated.at("linked") is not None:
        yield from linked_checks(stated, path, reader, progress)
        if policy is None:
            yield _promises(stated, policy, is_measured=False)
        yield named
        yield not_measured(stated, policy is not None, original is not None)
        return
    progress("reading the release")
    table, digest, unreadable = _read(path, reader, stated)
    yield _file(stated, path, digest)
    if table is None:
        yield Check("output", False, f"can't be read as the certificate says; {unreadable}")
        yield stated.lacks("columns") if stated.is_earlier else Check("columns", False, UNREADABLE)
        yield Check("rows", False, UNREADABLE)
    else:
        yield as_written(stated, path, policy)
        yield _columns(stated, table)
        yield _rows(stated, table)
    yield consistency(stated)
    progress("measuring the promises")
    again = measured_again(stated, path, table, reader)
    yield _promises(stated, policy, bool(again.ok))
    for text in fails_together(stated.certificate):
        yield Check(OTHER_RELEASES, False, f"the certificate states that it fails {text}")
    yield named
    yield again
    yield _input(stated, reader, again)
    yield not_measured(stated, policy is not None, original is not None)


def require_there(path: str) -> None:
    """Raises InputError if the file does not exist."""
    place = Location(path)
    if not (place.is_standard or place.is_table or Path(path).exists()):
        raise InputError(f"file '{path}': is not there; check its name")


def _digest(path: str | Path) -> str:
    with readable(f"file '{path}'"):
        digest = files.table_sha256(path)
    return digest


def _read(path: str, reader: Reader, stated: Stated) -> tuple[Table | None, str, str]:
    """The released table and the hash of its file; or why it can't be read, as a damaged one."""
    dialect = stated.at("output", "dialect")
    reading = None if dialect is None else reading_as_stated(dialect)
    policy, room = reader.policy, reader.room

    def read(name: str) -> SourceFile:
        return files.read(name, stated.grouped, allow_empty=True, reading=reading or AS_FOUND)

    try:
        check_released(path)
        if policy is not None:
            source = policy.tables.read_as_written(path, room, allow_empty=True, stated=reading)
        elif room is not None:
            source = read_coded(path, Location(path).kind, reading or AS_FOUND, room)
        elif stated.at("presence") is not None:
            columns = stated.at("columns") or []
            hidden = [column["name"] for column in columns if column["role"] == "sensitive"]
            if len(hidden) != 1:
                raise InputError(
                    "two tables: the certificate names no sensitive attribute, or several"
                )
            source = read_both(path, str(hidden[0]), read)
        else:
            source = read(path)
    except InputError as unfit:
        digest = _digest(path)
        is_certified = digest == stated.at("output", "sha256")
        if is_about_memory(unfit) or (is_certified and isinstance(unfit, TooLargeError)):
            raise
        return None, digest, str(unfit.args[0]).partition(";")[0]
    return source.table, source.sha256, ""


def _file(stated: Stated, path: str, digest: str) -> Check:
    known = stated.at("output", "sha256")
    stated.note("output", "sha256")
    if known is None:
        return Check("file", False, "the certificate names none; certify the file with an audit")
    if known != digest and _has_grown(stated, path, known):
        text = (
            f"begins with the one certified, its first {stated.at('output', 'bytes')} bytes: the"
            " stream went on, and this certificate says nothing about the rest; take the one beside"
            " the file"
        )
        return Check("file", False, text)
    if known != digest:
        text = "is not the one certified: one of the two was changed, or belongs to another"
        return Check("file", False, f"{text}; {both_hashes(known, digest)}; fetch both again")
    text = f"is the one certified, SHA-256 {digest}"
    if stated.at("presence") is None:
        return Check("file", True, text)
    second = Path(sensitive_path(path))
    stated.note("output", "sensitive")
    is_same = second.is_file() and {
        "sha256": _digest(second),
        "bytes": second.stat().st_size,
    } == stated.at("output", "sensitive")
    if is_same:
        return Check("file", True, f"{text}, and so is the table of sensitive values beside it")
    more = "the table of sensitive values beside it is missing, or not the one certified"
    return Check("file", False, f"{text}, but {more}; fetch both again")


def _columns(stated: Stated, table: Table) -> Check:
    if stated.is_earlier:
        return stated.lacks("columns")
    known, there = stated.published, table.names
    if stated.at("presence") is not None:
        there = [name for name in there if name != GROUP]
    if len(known) != len(there):
        return Check("columns", False, f"{len(there)} in the file, {len(known)} certified")
    other = sum(name != shown for name, shown in zip(known, there, strict=True))
    if other:
        text = f"{other} of {len(known)} have another name or place than certified"
        return Check("columns", False, text)
    for index, column in enumerate(stated.at("columns")):
        if column["technique"] != "removed":
            stated.note("columns", index, "name")
    return Check("columns", True, f"{len(known)}, as certified")


def _rows(stated: Stated, table: Table) -> Check:
    known = stated.at("records", "out")
    stated.note("records", "out")
    if table.records != known:
        return Check("rows", False, f"{table.records} in the file, {known} certified")
    return Check("rows", True, f"{known}, as certified")


def _promises(stated: Stated, policy: Policy | None, is_measured: bool) -> Check:
    """Whether the certificate says that all is kept, as it would of itself.

    is_measured: whether that was measured again.
    """
    name, promises = "promises", stated.promises
    if not promises:
        return Check(name, False, "the certificate states none")
    if broken := [broken_text(promise) for promise in promises if not promise["holds"]]:
        return Check(name, False, f"the certificate states broken ones: {'; '.join(broken)}")
    if stated.faults:
        return Check(name, False, f"the certificate states faults: {', '.join(stated.faults)}")
    if policy is not None and (unlimited := _unlimited(stated, policy.model.accept)):
        return Check(name, False, unlimited)
    if any(row["holds"] is False for row in stated.at("attacks", "accept") or []):
        return Check(name, False, "the certificate states an attack that is not accepted")
    unknown = sorted({p["model"] for p in promises} - registry.models().keys())
    others = f"; {', '.join(unknown)}: not known to this version" if unknown else ""
    text = f"{len(promises)} of {len(promises)} held{others}"
    if not is_measured:
        return Check(name, None, f"stated, not measured here: {text}")
    return Check(name, True, text)


def _unlimited(stated: Stated, accept: Mapping[str, float | dict[str, float]]) -> str:
    """What is wrong with how attacks were judged; empty where all is as the policy accepts."""
    if not accept:
        return ""
    accepted = stated.at("attacks", "accept") or []
    if not accepted:
        return "the policy limits attacks, the certificate judges none"
    stated_limits = {(row["measure"], row["at_most"]) for row in accepted}
    for measure, limit in accept.items():
        limits = limit.values() if isinstance(limit, dict) else [limit]
        if any((measure, at_most) not in stated_limits for at_most in limits):
            return f"the policy limits '{measure}' of attacks otherwise than the certificate"
    return ""


def _policy(stated: Stated, policy: Policy | None) -> Check:
    name, known = "policy", stated.at("policy")
    if stated.is_earlier:
        return stated.lacks(name)
    if known is None:
        if policy is None:
            return Check(name, None, "the certificate is of an audit without one")
        text = "the certificate is of an audit without one; certify the file by it, 'shoal audit'"
        return Check(name, False, text)
    if policy is None:
        return Check(name, None, "not given; name it with --policy")
    stated.note(name)
    identity = policy_identity(policy, stated.verb)
    if known["sha256"] != identity["sha256"]:
        both = both_hashes(known["sha256"], identity["sha256"])
        text = f"is not the one certified, {both}; {_way_out(stated, policy)}"
        return Check(name, False, text)
    if known["files"] != identity["files"]:
        return Check(name, False, "the files that it reads are not those certified")
    verb = verb_of(policy)
    if verb is not None and stated.verb not in (verb, "audit"):
        text = f"its method serves 'shoal {verb}', the certificate is of 'shoal {stated.verb}'"
        return Check(name, False, text)
    return Check(name, True, f"is the one certified, SHA-256 {known['sha256']}")


def _has_grown(stated: Stated, path: str, known: str) -> bool:
    """Whether the file is a stream's that begins with all that was certified."""
    count = stated.at("output", "bytes")
    if stated.verb != "stream" or not Path(path).is_file() or not isinstance(count, int):
        return False
    first = hashlib.sha256()
    with readable(f"file '{path}'"), open(path, "rb") as file:
        while count > 0 and (part := file.read(min(count, PART))):
            first.update(part)
            count -= len(part)
    return count == 0 and first.hexdigest() == known


def _way_out(stated: Stated, policy: Policy) -> str:
    """What may have made another policy of the one that is given."""
    if stated.verb == "fuse":
        return "of a fusion, name its agreement with --policy"
    is_of_k = policy.required_k in stated.asked_k
    again = [] if is_of_k else [f"--k {k}" for k in sorted(stated.asked_k)[:1]]
    method = stated.at("method", "name")
    usual: tuple[str, ...] = (policy.method_name,)
    if policy.model.method is None:
        usual = (*DEFAULTS, usual_method(policy.model))
    if method is not None and method not in usual:
        again.append(f"--method {method}")
    if stated.at("seed") not in (None, policy.model.seed):
        again.append(f"--seed {stated.at('seed')}")
    such = f"such as {' '.join(again)}" if again else "such as --set, --k or --write"
    return f"name that one, with the options that it was published with, {such}"


def _input(stated: Stated, reader: Reader, again: Check) -> Check:
    """Whether the original is the one that was published. again: what measuring again found."""
    name, known = "input", stated.at("input", "sha256")
    digest = None
    if reader.original is not None:  # it is read once
        with suppress(InputError):  # said where the original is compared
            digest = None if reader.policy is None else reader.source.sha256
        digest = digest or _digest(reader.original)
    is_unnamed = stated.verb in ("audit", "fuse") or reader.verb in RELEASED_IN_PARTS
    if known is None and not (digest is None or again.ok or is_unnamed):
        return Check(name, False, "the certificate names none, so it may be of another original")
    return of_original(stated, digest)


def _signature(proof: Proof, keys: Sequence[Any]) -> Check:
    name, path, signature = "signature", Path(signature_path(proof.path)), None
    require_regular(path, "signature")
    with readable(f"file '{path}'"), suppress(FileNotFoundError):
        signature = path.read_bytes()
    if signature is not None and len(signature) != SIGNATURE_BYTES:
        text = f"has {len(signature)} bytes, a signature has {SIGNATURE_BYTES}; fetch it again"
        return Check(name, False, text)
    if not keys:
        is_there = "there is none"
        if signature is not None:
            is_there = (
                "there is one, not checked: get the public key from whoever released this, by"
                " another way, and name it (--trust)"
            )
        return Check(name, None, is_there)
    if signature is None:
        return Check(name, False, "--trust asks for one, there is none")
    for key in keys:
        if key.accepts(signature, proof.content):
            return Check(name, True, f"by the key in {key.name}, {key.fingerprint}")
    return Check(name, False, "is by none of the keys that --trust names")


# A name under a certificate, and by it under the release that the certificate names.


def sign_file(path: str, signer: Signer, certificate: str | Path | None = None) -> str:
    """Signs the certificate of a release, if it is that file's, every promise holds in it and
    nothing in the two files denies it.

    certificate: by default the one beside the release. Returns the path of the signature. Raises
    InputError, or PromiseError where a promise does not hold or `verify` of the two files fails.
    """
    place = Location(path)
    if place.is_table and certificate is None:
        raise InputError(
            f"table '{path}': its certificate is in the database; write one to a file by 'shoal"
            " audit ... -o CERT' and name that: 'shoal sign TABLE CERT --key KEY'"
        )
    if not place.is_table and not Path(path).exists():
        raise InputError(f"file '{path}': is not there; check its name")
    beside = Path(place.certificate if certificate is None else certificate)
    if not beside.exists():
        raise InputError(
            f"file '{path}': has no certificate beside it, '{beside.name}'; only that is signed, so"
            " fetch it with the release"
        )
    proof = Proof.of(path, certificate)
    if not proof.certificate.holds:
        raise PromiseError(
            f"certificate '{proof.path}': states a promise that does not hold, faults, or that"
            " releases together give people away; nothing is signed, publish a release that holds"
        )
    checks = verify_by(path, proof)
    failed = [check for check in checks if check.ok is False and check.name != "signature"]
    if any(check.name == "file" for check in failed):
        raise InputError(
            f"file '{path}': is not the one that its certificate names; fetch both again, or audit"
            " the file"
        )
    if failed:
        found = [f"{check.name}: {check.text}" for check in failed]
        raise PromiseError(f"file '{path}': fails verify, {found[0]}; nothing is signed", found[1:])
    return signer.sign(proof.path, proof.content)
