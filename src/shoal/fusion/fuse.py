"""Fuse: all parties run on this machine, and talk as they would across organisations.

Each party is `shoal party run NAME`, with throw-away keys, a loopback port and its own folder; a
party that is killed is started again and resumes from its journal. The release is published when
all parties ended with the same bytes.
"""

import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

from shoal.auditor.audit import audit_table
from shoal.auditor.verdict import require_together_kept
from shoal.connectors import files
from shoal.connectors.frames import Frame, like, table_of
from shoal.connectors.outputs import remove_folder, remove_stale_signature, sole_writer
from shoal.data.certificate import Certificate
from shoal.data.progress import Progress, no_progress
from shoal.data.table import Table
from shoal.errors import InfeasibleError, InputError, PartyError, PromiseError, ShoalError
from shoal.fusion.ledger import START, PastFusions, ledger_path, write_ledger
from shoal.fusion.request import Keys, check_not_read, check_output, make_folder
from shoal.fusion.secure_maximum import check_computing
from shoal.policy.agreement import Agreement, AgreementLike, with_endpoints

if TYPE_CHECKING:
    from shoal.auditor.verdict import Publication


def fuse(
    agreement: AgreementLike,
    tables: Mapping[str, Frame] | None,
    transcript: str | Path | None,
    require_together: bool,
    progress: Progress,
) -> "Publication[Frame]":
    """`shoal.fuse`, without pages and figures; what it warns about stands in its certificate."""
    from shoal.auditor.verdict import Publication

    agreed = Agreement.of(agreement)
    frames = _frames_of(tables, agreed.owners)
    with tempfile.TemporaryDirectory(prefix="shoal-fuse-") as folder:
        paths = {name: str(Path(folder) / f"{name}.parquet") for name in frames}
        for name, frame in frames.items():
            files.write(frame, Path(paths[name]))
        output = str(Path(folder) / "fused.parquet")
        messages = None if transcript is None else Path(transcript)
        here = Agreement.from_dict(with_endpoints(agreed, {}, paths), agreed.base)
        certificate = fuse_file(
            here, output, transcript=messages, require_together=require_together, progress=progress
        )
        published = files.read(output).frame
    certificate = certificate.extended(output=None)
    found = audit_table(Table(published), agreed.policy, None)
    kind = published if tables is None else next(iter(tables.values()), published)
    labels = found.release.classes.labels
    return Publication(like(kind, published), certificate, labels, agreed.policy, found)


def _frames_of(
    tables: Mapping[str, Frame] | None, owners: Sequence[str]
) -> dict[str, pl.DataFrame]:
    """The frames by party; raises InputError for what is not a frame, or has no owner."""
    if tables is None:
        return {}
    if not isinstance(tables, Mapping):
        raise InputError("tables: is not a mapping; give a dict of frames by party")
    strangers = sorted({str(name) for name in tables} - set(owners))
    if strangers:
        are_not = "are not owners" if strangers[1:] else "is not an owner"
        raise InputError(
            f"tables: {', '.join(strangers)} {are_not}; the agreement has {', '.join(owners)}"
        )
    frames = {}
    for name, frame in tables.items():
        try:
            frames[name] = table_of(frame).frame
        except InputError as unfit:
            raise InputError(f"party '{name}', {unfit.args[0]}", unfit.said[1:]) from None
    return frames


def fuse_file(
    agreement: Agreement | str | Path,
    output: str,
    *,
    transcript: Path | None = None,
    beside: Sequence[Path] = (),
    require_together: bool = False,
    progress: Progress = no_progress,
    notice: Progress = no_progress,
) -> Certificate:
    """One release from all parties' tables; writes the output and its certificate.

    beside: what the caller will write afterwards; refused where a party reads it.
    require_together: as in `publish`. notice: called with a line about each party that has to be
    started again. Raises InputError, InfeasibleError, PromiseError or PartyError, and then writes
    nothing.
    """
    agreement = Agreement.of(agreement)
    agreement.rule()  # a method that is not installed is refused before a party is started
    tables = _tables_of(agreement)
    if agreement.is_secret and len(agreement.owners) > 1:
        check_computing(len(agreement.computing))
    check_output(agreement, output)
    check_not_read(agreement, *beside)
    if transcript is not None:
        make_folder(transcript, "transcript")
    with sole_writer([Path(output)]):
        path = Path(output)
        folder = path.parent / f".{path.name}.fuse"
        local = _prepared(agreement, folder, tables)
        try:
            _copy_ledgers(agreement, folder / "ledgers")
            parties = [
                PartyProcess(name, _command(name, local, folder, path.name, transcript))
                for name in agreement.participants
            ]
            run_to_end(parties, progress, notice)
            releases = [_release_of(name, folder, path.name) for name in agreement.owners]
            if len({files.file_sha256(release) for release in releases}) > 1:
                raise PartyError(
                    "the parties wrote different tables; nothing is published, report this as a bug"
                )
            if require_together:
                proof = Certificate.load(f"{releases[0]}.certificate.json")
                require_together_kept(proof, "nothing was written")
        except (InputError, InfeasibleError, PromiseError):
            remove_folder(folder)  # where a party is lost, it stays for the next run
            raise
        if agreement.model.before is not None:  # before the release, so that none is not in them
            for name in agreement.owners:
                content = ledger_path(folder / "ledgers", name).read_bytes()
                write_ledger(ledger_path(agreement.base, name), content)
        certificate = _publish(releases[0], output)
        remove_folder(folder)
        return certificate


def _tables_of(agreement: Agreement) -> dict[str, str]:
    """Where each owner's table is stored; raises InputError where one has none."""
    tables = {}
    for party in agreement.model.parties:
        if party.table is None:
            raise InputError(f"party '{party.name}': has no 'table'; name the file that it reads")
        tables[party.name] = str((agreement.base / party.table).resolve())
        if not Path(tables[party.name]).is_file():
            raise InputError(
                f"party '{party.name}': its table '{party.table}' does not exist; check the name"
            )
    return tables


def _prepared(agreement: Agreement, folder: Path, tables: dict[str, str]) -> Path:
    """The agreement as this machine runs it, in a folder with keys and journals.

    The folder of an interrupted run of the same agreement on the same tables is used again.
    """
    local = folder / "parties.json"
    hashes = [[name, files.file_sha256(table)] for name, table in sorted(tables.items())]
    asked = json.dumps(agreement.canonical | {"tables": hashes})
    mark = folder / "asked.json"
    if _is_own(folder) and local.exists() and mark.read_bytes() == asked.encode():
        return local
    if _is_own(folder):
        remove_folder(folder)
    elif folder.is_symlink() or folder.exists():
        raise InputError(
            f"'{folder}': is in the way of this fusion's journals and was not made by one; move it"
        )
    make_folder(folder, "folder")
    mark.write_text(asked)  # first, since it marks the folder as a fusion's
    endpoints = {}
    ports = free_ports(len(agreement.participants))
    for name, port in zip(agreement.participants, ports, strict=True):
        keys = Keys.of(name, folder)
        keys.make(name)
        address = agreement.party(name).address or f"127.0.0.1:{port}"
        endpoints[name] = (address, str(keys.certificate.resolve()))
    with files.atomic_write(str(local)) as draft:
        draft.write_text(json.dumps(with_endpoints(agreement, endpoints, tables)))
    return local


def _copy_ledgers(agreement: Agreement, folder: Path) -> None:
    """The ledgers that the parties will work on; the old ones stay until a release is there.

    All parties' ledgers are beside the agreement, as their tables are.
    Raises InputError where one is missing, or is not the one that the agreement continues.
    """
    if agreement.model.before is None or folder.exists():
        return
    contents = {
        name: PastFusions.load(ledger_path(agreement.base, name), agreement.model.before, name)
        for name in agreement.owners
    }
    make_folder(folder, "folder")
    for name, content in contents.items():
        if agreement.model.before != START:
            write_ledger(ledger_path(folder, name), content)


def _is_own(folder: Path) -> bool:
    """Whether a fusion made this folder, however far it came."""
    if folder.is_symlink() or not folder.is_dir():
        return False
    return (folder / "asked.json").is_file() or not any(folder.iterdir())


def _command(
    name: str, local: Path, folder: Path, output: str, transcript: Path | None
) -> list[str]:
    release = _release_of(name, folder, output)
    release.parent.mkdir(exist_ok=True)
    command = [sys.executable, "-m", "shoal", "party", "run", name, str(local)]
    options = {"--ledger": folder / "ledgers", "--keys": folder, "--folder": folder / name}
    options |= {"-o": release} | ({} if transcript is None else {"--transcript": transcript})
    return command + [str(word) for option in options.items() for word in option]


def _release_of(name: str, folder: Path, output: str) -> Path:
    return folder / f"{name}.out" / output


def _publish(release: Path, output: str) -> Certificate:
    proof = Path(f"{release}.certificate.json")
    certificate = Certificate.load(proof)
    for source, target in ((proof, f"{output}.certificate.json"), (release, output)):
        with files.atomic_write(target) as draft:
            shutil.copyfile(source, draft)
    remove_stale_signature(f"{output}.certificate.json")
    return certificate


# The parties of a fusion as processes of this machine: started, watched, restarted when killed.


RESTARTS = 8  # of a party that is killed
RETRIES = 3  # of a party that fails by itself, for a reason that may pass
LAST_WORDS = 5.0  # seconds to read what a party wrote before it ended
ATTACHED = "SHOAL_ATTACHED"  # set for a party that must die with the process that started it
_PREFIX = "shoal: "
_RECOVERABLE = "recoverable"  # a line by which a party says that it may be started again
_INTERNAL_ERROR = 70  # among them what a broken session led to
_POLL = 0.05  # seconds
_GRACE = 5  # seconds between SIGTERM and SIGKILL
_ERRORS: dict[int, type[ShoalError]] = {
    kind.exit_status: kind for kind in (PromiseError, InputError, InfeasibleError, PartyError)
}


@dataclass
class PartyProcess:
    """One party's process, and the last lines of its standard error."""

    name: str
    command: list[str]
    process: subprocess.Popen[bytes] | None = None
    lines: deque[str] = field(default_factory=lambda: deque(maxlen=20))
    listener: threading.Thread | None = None
    restarts: int = 0
    retries: int = 0
    is_recoverable: bool = False


def run_to_end(
    parties: Sequence[PartyProcess], progress: Progress, notice: Progress = no_progress
) -> None:
    """Runs all parties to their end; the first one's progress is shown.

    A party that was killed, or failed for a reason that may pass, is started again, a few times at
    most. notice: called with a line about each restart. Raises the first error that a party reports
    and that no restart helps against.
    """
    try:
        for party in parties:
            _start(party, parties[0].name, progress)
        running = list(parties)
        while running:
            for party in list(running):
                assert party.process is not None
                try:
                    status = party.process.wait(timeout=_POLL)
                except subprocess.TimeoutExpired:
                    continue
                if status == 0:
                    running.remove(party)
                    continue
                restart = _restart(party, status)
                if not restart:
                    raise _error_of(party, status)
                notice(restart)
                _start(party, parties[0].name, progress)
    finally:
        _stop(parties)


def _restart(party: PartyProcess, status: int) -> str:
    """What is said about a restart of a party that ended so; empty where it is not restarted."""
    said = _last_words(party)
    if status < 0:
        party.restarts += 1
        count, most, why = party.restarts, RESTARTS, "was killed"
    elif party.is_recoverable or status == _INTERNAL_ERROR:
        party.retries += 1
        count, most = party.retries, RETRIES
        why = f"failed ({said[-1]})" if said else f"ended with status {status}"
    else:
        return ""
    return f"party '{party.name}': {why}; starting it again ({count} of {most})" * (count <= most)


def _last_words(party: PartyProcess) -> list[str]:
    if party.listener is not None:
        party.listener.join(LAST_WORDS)
    return [line.removeprefix(_PREFIX) for line in party.lines if line.startswith(_PREFIX)]


def _start(party: PartyProcess, reporting: str, progress: Progress) -> None:
    party.lines.clear()
    party.is_recoverable = False
    # the pipe to its standard input breaks when this process dies, and the party dies with it
    environment = {**os.environ, ATTACHED: "1"}
    party.process = subprocess.Popen(
        party.command, stderr=subprocess.PIPE, stdin=subprocess.PIPE, env=environment
    )
    party.listener = threading.Thread(
        target=_listen, args=(party, party.process, party.name == reporting, progress), daemon=True
    )
    party.listener.start()


def _stop(parties: Sequence[PartyProcess]) -> None:
    for party in parties:
        if party.process is not None and party.process.poll() is None:
            party.process.send_signal(signal.SIGTERM)
    for party in parties:
        if party.process is not None:
            try:
                party.process.wait(timeout=_GRACE)
            except subprocess.TimeoutExpired:
                party.process.kill()
                party.process.wait()


def _listen(
    party: PartyProcess, process: subprocess.Popen[bytes], is_reporting: bool, progress: Progress
) -> None:
    assert process.stderr is not None
    for raw in process.stderr:
        line = raw.decode(errors="replace").rstrip()
        if line.startswith("progress: "):
            if is_reporting:
                progress(line.removeprefix("progress: "))
        elif line == _RECOVERABLE:
            party.is_recoverable = True
        elif line:
            party.lines.append(line)


def _error_of(party: PartyProcess, status: int) -> ShoalError:
    """The error that a party ended with, in its own words."""
    nothing = f"party '{party.name}': ended with status {status}; run again to resume"
    first, *others = _last_words(party) or [nothing]
    return _ERRORS.get(status, PartyError)(first, others)


def say_recoverable() -> None:
    """Says to the process that started this one that it may be started again."""
    if os.environ.get(ATTACHED):
        os.write(2, f"{_RECOVERABLE}\n".encode())


def die_with_starter() -> None:
    """Ends this process as soon as the one that started it ends; the journal keeps what is done."""
    if os.environ.get(ATTACHED):
        threading.Thread(target=_wait_for_end_of_input, daemon=True).start()


def _wait_for_end_of_input() -> None:
    while os.read(0, 1):  # not sys.stdin: its lock would still be held when the interpreter ends
        pass
    os._exit(130)


def free_ports(count: int) -> list[int]:
    """Ports of this machine that nobody listens on, none of those that systems give to outgoing
    connections: such a port could be taken before a party listens on it.
    """
    found: list[int] = []
    while len(found) < count:
        port = 20_000 + secrets.randbelow(12_000)
        with socket.socket() as one, suppress(OSError):
            one.bind(("127.0.0.1", port))
            found += [port] if port not in found else []
    return found
